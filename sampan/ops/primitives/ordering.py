"""Sorting, selection, scans and searches along one axis; names and attributes as in docs/design/003-natives.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import dtypes
from ...base.errors import ArgumentError, ShapeError, message
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, append, gradient_of, primitive, require_kind, same_dtype
from .maps import add, bitwise_and, cast, conj, div, eq, exp, log, maximum, mul, neg, select, sub
from .moves import scatter_elements
from .views import full, slice_


def _axis_length(op: Op) -> int:
    x, axis = op.inputs[0], op.attributes["axis"]
    if not 0 <= axis < x.ndim:
        raise ShapeError(f"{op.name}: axis {axis} is outside of a tensor of rank {x.ndim}")
    return x.shape[axis]


def _order(x: Array, axis: int, descending: bool) -> Array:
    """The stable order along the axis, NaN as the largest."""
    if dtypes.kind(x.dtype.name) == "f" and x.dtype.itemsize == 2:
        x = x.astype(np.float32)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - backwards, axis)


def _infer_sort(op: Op) -> list[Type]:
    x = op.inputs[0]
    require_kind(op, "buif", x.dtype)
    _axis_length(op)
    return [(x.dtype, x.shape), ("int64", x.shape)]


@primitive("native", _infer_sort, name="sort")
def _sort(x: Array, axis: int, descending: int) -> tuple[Array, Array]:
    order = _order(x, axis, bool(descending))
    return np.take_along_axis(x, order, axis), order.astype(np.int64)


def sort(x: Value, axis: int, descending: bool = False) -> tuple[Value, Value]:
    """x sorted along ``axis``, equal elements in their order and NaN as the largest; and where each came from."""
    return append("sort", x, axis=axis, descending=int(descending))


def _to_source(op: Op, g: Value | None, index: Value) -> Gradients:
    """The gradient put back where the elements came from."""
    if g is None:
        return (None,)
    return (scatter_elements(full(op.inputs[0].shape, 0, g.dtype), index, g, op.attributes["axis"], "add"),)


@gradient_of("sort")
def _sort_gradient(op: Op, g: Value | None, unused: Value | None) -> Gradients:
    return _to_source(op, g, op.outputs[1])


def _infer_topk(op: Op) -> list[Type]:
    x, k = op.inputs[0], op.attributes["k"]
    require_kind(op, "buif", x.dtype)
    length = _axis_length(op)
    if not 0 <= k <= length:
        raise ShapeError(
            message(
                f"topk(): k is {k}", f"axis {op.attributes['axis']} of a tensor of shape {list(x.shape)} has {length} elements"
            )
        )
    shape = tuple(k if a == op.attributes["axis"] else n for a, n in enumerate(x.shape))
    return [(x.dtype, shape), ("int64", shape)]


@primitive("native", _infer_topk, name="topk")
def _topk(x: Array, k: int, axis: int, largest: int, sorted: int) -> tuple[Array, Array]:
    order = np.take(_order(x, axis, bool(largest)), np.arange(k), axis=axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int64)


def topk(x: Value, k: int, axis: int, largest: bool = True, sorted: bool = True) -> tuple[Value, Value]:
    """The k largest (or smallest) elements along ``axis`` in order, NaN as the largest; and their positions."""
    return append("topk", x, k=k, axis=axis, largest=int(largest), sorted=int(sorted))


@gradient_of("topk")
def _topk_gradient(op: Op, g: Value | None, unused: Value | None) -> Gradients:
    return _to_source(op, g, op.outputs[1])


# ------------------------------------------------------------------ scans


def _infer_scan(op: Op) -> list[Type]:
    x, kind = op.inputs[0], op.attributes["kind"]
    if kind not in ("sum", "prod", "max", "min", "logaddexp"):
        raise ArgumentError(f"scan: there is no kind {kind!r}")
    _axis_length(op)
    require_kind(op, {"sum": "uifc", "prod": "uifc", "logaddexp": "f"}.get(kind, "buif"), x.dtype)
    return [(x.dtype, x.shape), ("int64", x.shape)] if kind in ("max", "min") else [(x.dtype, x.shape)]


def _running_winner(x: Array, axis: int, kind: str) -> tuple[Array, Array]:
    """The largest (smallest) so far and where it stands: NaN wins, the later of equal ones too."""
    x = np.moveaxis(x, axis, 0)
    best, where = x.copy(), np.zeros(x.shape, np.int64)
    for k in range(1, len(x)):
        new, old = x[k], best[k - 1]
        wins = (new >= old) if kind == "max" else (new <= old)
        if dtypes.kind(x.dtype.name) == "f":
            wins = np.isnan(new) | (wins & ~np.isnan(old))
        best[k] = np.where(wins, new, old)
        where[k] = np.where(wins, k, where[k - 1])
    return np.moveaxis(best, 0, axis), np.moveaxis(where, 0, axis)


@primitive("native", _infer_scan, name="scan")
def _scan(x: Array, kind: str, axis: int, reverse: int, exclusive: int) -> Any:
    dtype = x.dtype
    if dtypes.kind(dtype.name) == "f" and dtype.itemsize == 2:
        x = x.astype(np.float32)
    if reverse:
        x = np.flip(x, axis)
    if kind in ("max", "min"):
        best, where = _running_winner(x, axis, kind)
        if reverse:
            best, where = np.flip(best, axis), x.shape[axis] - 1 - np.flip(where, axis)
        return best.astype(dtype), where
    with np.errstate(all="ignore"):
        result = {"sum": np.add, "prod": np.multiply, "logaddexp": np.logaddexp}[kind].accumulate(x, axis=axis, dtype=x.dtype)
    if exclusive:
        first = np.full_like(np.take(x, [0][: x.shape[axis]], axis=axis), {"sum": 0, "prod": 1, "logaddexp": -np.inf}[kind])
        result = (
            np.concatenate([first, np.take(result, np.arange(x.shape[axis] - 1), axis=axis)], axis) if x.shape[axis] else result
        )
    return (np.flip(result, axis) if reverse else result).astype(dtype)


def scan(x: Value, kind: str, axis: int, reverse: bool = False, exclusive: bool = False) -> Any:
    """The running sum, prod, logaddexp, max or min along ``axis``; max and min also give positions (the later of equal ones)."""
    return append("scan", x, kind=kind, axis=axis, reverse=int(reverse), exclusive=int(exclusive))


def _first_zero(x: Value, axis: int, reverse: bool) -> Value:
    """Whether each element is the first zero of its row in scan order."""
    is_zero = eq(x, 0)
    count = scan(cast(is_zero, "int64"), "sum", axis, reverse)
    return bitwise_and(is_zero, eq(count, 1))


def _conjugated(x: Value) -> Value:
    return conj(x) if dtypes.is_complex(x.dtype) else x


@gradient_of("scan")
def _scan_gradient(op: Op, g: Value | None, unused: Value | None = None) -> Gradients:
    x, y = op.inputs[0], op.outputs[0]
    kind, axis, reverse, exclusive = (op.attributes[k] for k in ("kind", "axis", "reverse", "exclusive"))
    if g is None:
        return (None,)
    if kind in ("max", "min"):
        return _to_source(op, g, op.outputs[1])
    if kind == "sum":
        return (scan(g, "sum", axis, not reverse, bool(exclusive)),)
    if exclusive:
        raise ArgumentError(f"scan: the gradient of an exclusive {kind} is not defined")
    if kind == "prod":
        # at the first zero of a row the quotient y / x says nothing: there the products are formed again without it
        first = _first_zero(x, axis, bool(reverse))
        without = scan(select(first, 1, x), "prod", axis, bool(reverse))
        at_zero = scan(mul(g, _conjugated(without)), "sum", axis, not reverse)
        elsewhere = div(scan(mul(g, _conjugated(y)), "sum", axis, not reverse), _conjugated(select(eq(x, 0), 1, x)))
        return (select(first, at_zero, select(eq(x, 0), 0, elsewhere)),)
    # sum over later j of g_j exp(x - y_j), in logarithms so that nothing overflows
    parts = []
    for signed in (g, neg(g)):
        later = scan(sub(log(maximum(signed, 0)), y), "logaddexp", axis, not reverse)
        parts.append(exp(add(later, x)))
    return (sub(*parts),)


# ------------------------------------------------------------------ search


def _infer_searchsorted(op: Op) -> list[Type]:
    row, x = op.inputs
    same_dtype(op)
    require_kind(op, "buif", x.dtype)
    if row.ndim == 0 or (row.ndim > 1 and row.shape[:-1] != x.shape[:-1]):
        raise ShapeError(
            message(
                f"searchsorted(): sorted_sequence is {list(row.shape)} and values {list(x.shape)}",
                "the sequence must be 1-D, or have the values' leading axes",
            )
        )
    return [("int64", x.shape)]


@primitive("native", _infer_searchsorted, name="searchsorted")
def _searchsorted(row: Array, x: Array, right: int) -> Array:
    side = "right" if right else "left"
    if row.dtype.itemsize == 2 and dtypes.kind(row.dtype.name) == "f":
        row, x = row.astype(np.float32), x.astype(np.float32)
    if row.ndim == 1:
        return np.asarray(np.searchsorted(row, x, side)).astype(np.int64)
    rows, keys = row.reshape(-1, row.shape[-1]), x.reshape(-1, x.shape[-1])
    found = [np.searchsorted(r, k, side) for r, k in zip(rows, keys, strict=True)]
    return np.array(found, np.int64).reshape(x.shape)


def searchsorted(row: Value, x: Value, right: bool = False) -> Value:
    """Where each x would be inserted into the ascending row(s) to keep the order, before equal elements or (right) after them."""
    return append("searchsorted", row, x, right=int(right))


def last_of(x: Value, axis: int) -> Value:
    """The last slice along ``axis``, kept with length 1."""
    starts = tuple(n - 1 if k == axis else 0 for k, n in enumerate(x.shape))
    sizes = tuple(1 if k == axis else n for k, n in enumerate(x.shape))
    return slice_(x, starts, sizes, (1,) * x.ndim)


__all__ = ["last_of", "scan", "searchsorted", "sort", "topk"]
