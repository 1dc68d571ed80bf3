"""Sorting and selection along an axis."""

from __future__ import annotations

import numpy as np

from ..base.errors import ArgumentError, ShapeError
from ..ir.program import Value
from . import primitives as p
from .arguments import normalized_axis
from .define import op
from .samples import distinct, indices, real, values
from .scans import part, row_axis

_ROWS = [(distinct(3, 4),), (distinct(2, 3, 4), 1), (distinct(2, 3, 4), 0, True), (values(1.0, np.nan, 3.0, 2.0),)]


def _order(x, axis=-1, descending=False, stable=False):
    if x.ndim == 0:
        return np.zeros((), np.int64)
    if descending:
        back = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
        return np.flip(x.shape[axis] - 1 - back, axis)
    return np.argsort(x, axis=axis, kind="stable")


def _sorted_reference(x, axis=-1, descending=False, stable=False):
    return np.take_along_axis(x, _order(x, axis, descending), axis) if x.ndim else x


@op("sort", operands=("x",), method=True, reference=_sorted_reference, samples=_ROWS)
def sort(x, axis=-1, descending=False, stable=False):
    """x sorted along ``axis``; NaN counts as the largest, equal elements keep their order."""
    row, k = row_axis("sort", x, axis)
    return p.reshape(p.sort(row, k, descending)[0], x.shape)


@op(
    "argsort",
    operands=("x",),
    method=True,
    reference=_order,
    samples=[*_ROWS, (real(3, 9, low=-2, high=2), 1), (values(1, 0, 1, 0, 1), -1, True)],
    tests="nograd",
)
def argsort(x, axis=-1, descending=False, stable=False):
    """The int64 order that sorts x along ``axis``; NaN counts as the largest, equal elements keep their order."""
    row, k = row_axis("argsort", x, axis)
    return p.reshape(p.sort(row, k, descending)[1], x.shape)


@op(
    "msort",
    operands=("input",),
    method=True,
    reference=lambda x: np.sort(x, 0) if x.ndim else x,
    samples=[(distinct(3, 4),)],
    aliases={"x": "input"},
)
def msort(input):
    """The tensor sorted along its first axis."""
    row, k = row_axis("msort", input, 0)
    return p.reshape(p.sort(row, k)[0], input.shape)


def _topk_reference(x, k, axis=None, largest=True, sorted=True):
    if not x.ndim:
        return x, np.zeros((), np.int64)
    axis = -1 if axis is None else axis
    order = np.take(_order(x, axis, largest), np.arange(k), axis)
    return np.take_along_axis(x, order, axis), order


@op(
    "topk",
    operands=("x",),
    method=True,
    reference=_topk_reference,
    samples=[(distinct(3, 5), 2), (distinct(4, 3), 3, 0, False), (values(1.0, np.nan, 3.0), 2), (distinct(3, 5), 5)],
    tests="noshape noempty",
)
def topk(x, k, axis=None, largest=True, sorted=True):
    """(the k largest elements along ``axis`` (the last by default) in descending order, their int64 positions); smallest ones ascending."""
    row, a = row_axis("topk", x, -1 if axis is None else axis)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= max(row.shape[a], 1):
        raise ArgumentError(f"topk(): k is {k!r}; it must be an integer in [1, {row.shape[a]}]")
    found, where = p.topk(row, k, a, largest, sorted)
    return (p.reshape(found, ()), p.reshape(where, ())) if x.ndim == 0 else (found, where)


def _taken(name: str, x: Value, axis: int, keepdim: bool, picked: tuple[Value, Value]) -> tuple[Value, ...]:
    """One slice of values and one of positions, with or without their axis of length 1."""
    if x.ndim == 0:
        return tuple(p.reshape(v, ()) for v in picked)
    return tuple(v if keepdim else p.reshape(v, tuple(n for k, n in enumerate(v.shape) if k != axis)) for v in picked)


def _kth_reference(x, k, axis=None, keepdim=False):
    if not x.ndim:
        return x, np.zeros((), np.int64)
    axis = -1 if axis is None else axis
    order = np.take(_order(x, axis), [k - 1], axis)
    both = np.take_along_axis(x, order, axis), order
    return both if keepdim else tuple(np.squeeze(b, axis) for b in both)


@op(
    "kthvalue",
    operands=("x",),
    method=True,
    reference=_kth_reference,
    samples=[(distinct(3, 5), 2), (distinct(4, 3), 3, 0, True), (indices(2, 5, 3, 3, 1), 3)],
    tests="noshape noempty",
)
def kthvalue(x, k, axis=None, keepdim=False):
    """(the k-th smallest element along ``axis`` (the last by default), its int64 position); k counts from 1."""
    row, a = row_axis("kthvalue", x, -1 if axis is None else axis)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= row.shape[a]:
        raise ArgumentError(f"kthvalue(): k is {k!r}; it must be an integer in [1, {row.shape[a]}]")
    ordered, order = p.sort(row, a)
    return _taken("kthvalue", x, a, keepdim, (part(ordered, a, k - 1, 1), part(order, a, k - 1, 1)))


def _mode_reference(x, axis=-1, keepdim=False):
    if not x.ndim:
        return x, np.zeros((), np.int64)
    rows = np.moveaxis(x, axis, -1)
    value, index = np.empty(rows.shape[:-1], x.dtype), np.empty(rows.shape[:-1], np.int64)
    for at in np.ndindex(*rows.shape[:-1]):
        distinct_values, count = np.unique(rows[at], return_counts=True)
        value[at] = distinct_values[count.argmax()]
        index[at] = np.flatnonzero(rows[at] == value[at])[-1]
    return (np.expand_dims(value, axis), np.expand_dims(index, axis)) if keepdim else (value, index)


@op(
    "mode",
    operands=("x",),
    method=True,
    reference=_mode_reference,
    samples=[(indices([2, 2, 3, 3, 1], [5, 4, 4, 5, 1]),), (real(6, 3, low=0, high=3), 0, True), (distinct(3, 4), 1)],
    tests="noempty",
)
def mode(x, axis=-1, keepdim=False):
    """(the most frequent element along ``axis``, the smallest of equally frequent ones; the int64 position of its last occurrence)."""
    row, a = row_axis("mode", x, axis)
    length = row.shape[a]
    if not length:
        raise ShapeError(f"mode(): axis {axis} of a tensor of shape {list(x.shape)} has no elements")
    ordered, order = p.sort(row, a)
    position = p.iota(row.shape, a)
    starts = p.full(part(row, a, 0, 1).shape, True, "bool")
    if length > 1:
        starts = p.concat([starts, p.ne(part(ordered, a, 1, length - 1), part(ordered, a, 0, length - 1))], a)
    start, _ = p.scan(p.select(starts, position, 0), "max", a)
    longest = p.reduce_argmax(p.sub(position, start), (a,))
    picked = p.gather_elements(ordered, longest, a), p.gather_elements(order, longest, a)
    return _taken("mode", x, normalized_axis("mode", axis, x.ndim), keepdim, picked)
