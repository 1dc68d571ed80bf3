"""Slices, windows and strided views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, describe, message
from ..ir.program import Value
from . import primitives as p
from .arguments import known_shape, normalized_axis
from .define import op
from .samples import real
from .scans import part

Sizes = tuple[int, ...]


def _sliced(x, axes, starts, ends, strides=None):
    index = [slice(None)] * x.ndim
    for a, s, e, step in zip(axes, starts, ends, strides or [1] * len(axes), strict=True):
        index[a] = slice(s, e, step)
    return x[tuple(index)]


@op(
    ["slice"],
    operands=("input",),
    method=True,
    is_view=True,
    reference=_sliced,
    samples=[(real(3, 4), [0, 1], [1, 0], [3, -1]), (real(3, 4), [1], [-2], [100])],
    aliases={"x": "input"},
)
def slice_op(input, axes, starts, ends):
    """input[starts:ends] along each of the axes; positions count from the end when negative and stop at the ends of the axis."""
    return strided_slice.body(input, axes, starts, ends, (1,) * len(axes))


@op(
    "strided_slice",
    operands=("x",),
    method=True,
    is_view=True,
    reference=_sliced,
    samples=[(real(5, 4), [0, 1], [1, 0], [5, -1], [2, 1]), (real(5), [0], [4], [1], [-2]), (real(5), [0], [-1], [-100], [-1])],
)
def strided_slice(x, axes, starts, ends, strides):
    """x[starts:ends:strides] along each of the axes; a negative stride walks back."""
    return p.slice_(x, *sliced_block("strided_slice", x, axes, starts, ends, strides))


def sliced_block(name: str, x: Value, axes: Any, starts: Any, ends: Any, strides: Any) -> tuple[Sizes, Sizes, Sizes]:
    """(first element, sizes, steps) of x[starts:ends:strides] along the axes."""
    if not len(axes) == len(starts) == len(ends) == len(strides):
        raise ShapeError(
            f"{name}(): axes {list(axes)}, starts {list(starts)}, ends {list(ends)} and strides {list(strides)} differ in length"
        )
    first, size, step = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        k = normalized_axis(name, axis, x.ndim)
        if x.ndim == 0:
            raise ShapeError(f"{name}(): a 0-D tensor has no axis to slice")
        if stride == 0:
            raise ArgumentError(f"{name}(): a stride is 0")
        begin, _, _ = found = slice(start, end, stride).indices(x.shape[k])
        size[k] = len(range(*found))
        first[k], step[k] = begin if size[k] else 0, stride
    return tuple(first), tuple(size), tuple(step)


def _require_integers(name: str, **given: Any) -> None:
    for parameter, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentTypeError(message(f"{name}(): {parameter} is {describe(value)}", "it must be an integer"))


@op(
    "narrow",
    operands=("input",),
    method=True,
    is_view=True,
    reference=lambda x, d, s, n: np.take(x, np.arange(s, s + n), d),
    samples=[(real(3, 5), 1, 2, 3)],
    aliases={"x": "input", "axis": "dim"},
)
def narrow(input, dim, start, length):
    """``length`` slices along ``dim`` from ``start``."""
    _require_integers("narrow", start=start, length=length)
    axis = normalized_axis("narrow", dim, input.ndim)
    size = input.shape[axis] if input.ndim else 0
    begin = start + size if start < 0 else start
    if not (0 <= begin and length >= 0 and begin + length <= size):
        raise ShapeError(
            f"narrow(): start {start} and length {length} leave axis {axis} of a tensor of shape {list(input.shape)}"
        )
    return part(input, axis, begin, length)


def _crop_reference(x, shape=None, offsets=None):
    offsets = offsets or [0] * x.ndim
    return x[tuple(slice(o, n if s == -1 else o + s) for o, s, n in zip(offsets, shape or x.shape, x.shape, strict=True))]


@op(
    "crop",
    operands=("x",),
    method=False,
    reference=_crop_reference,
    samples=[(real(3, 4), [2, -1], [1, 1]), (real(3, 4), [2, 2])],
)
def crop(x, shape=None, offsets=None):
    """The block of ``shape`` at ``offsets`` (zeros by default); a size of -1 reaches to the end."""
    offsets = (0,) * x.ndim if offsets is None else tuple(offsets)
    wanted = x.shape if shape is None else known_shape("crop", shape)
    if len(offsets) != x.ndim or len(wanted) != x.ndim:
        raise ShapeError(f"crop(): shape {list(wanted)} and offsets {list(offsets)} must have the {x.ndim} axes of x")
    sizes = tuple(n - o if s == -1 else s for s, o, n in zip(wanted, offsets, x.shape, strict=True))
    if any(o < 0 or s < 0 or o + s > n for o, s, n in zip(offsets, sizes, x.shape, strict=True)):
        raise ShapeError(f"crop(): a block of {list(sizes)} at {list(offsets)} leaves a tensor of shape {list(x.shape)}")
    return p.slice_(x, offsets, sizes, (1,) * x.ndim)


def _strided_index(shape: Sequence[int], stride: Sequence[int], offset: int) -> Value:
    index = p.full(tuple(shape), offset, "int64")
    for axis, step in enumerate(stride):
        index = p.add(index, p.mul(p.iota(tuple(shape), axis), int(step)))
    return index


def _as_strided_reference(x, shape, stride, offset=0):
    flat = np.ascontiguousarray(x).ravel()[offset:]
    return np.lib.stride_tricks.as_strided(flat, shape, [s * x.itemsize for s in stride])


@op(
    "as_strided",
    operands=("x",),
    method=True,
    is_view=True,
    reference=_as_strided_reference,
    samples=[(real(3, 4), [2, 2], [4, 1], 1), (real(12), [3, 4], [2, 1])],
    tests="noempty noscalar noshape",
)
def as_strided(x, shape, stride, offset=0):
    """The elements offset + sum(index * stride) of x's memory in row-major order; elements may be met several times."""
    shape = known_shape("as_strided", shape)
    if len(shape) != len(stride):
        raise ShapeError(f"as_strided(): shape {list(shape)} and stride {list(stride)} differ in length")
    reach = [(n - 1) * s for n, s in zip(shape, stride, strict=True)]
    low = offset + math.fsum(min(r, 0) for r in reach)
    high = offset + math.fsum(max(r, 0) for r in reach)
    if math.prod(shape) and (low < 0 or high >= x.numel):
        raise ShapeError(
            f"as_strided(): shape {list(shape)} by stride {list(stride)} from {offset} leaves the {x.numel} elements of x"
        )
    return p.gather(p.reshape(x, (x.numel,)), _strided_index(shape, stride, offset), 0)


def _unfold_reference(x, axis, size, step):
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    return np.take(windows, np.arange(0, windows.shape[axis], step), axis)


@op(
    "unfold",
    operands=("x",),
    method=True,
    is_view=True,
    reference=_unfold_reference,
    samples=[(real(3, 9), 1, 3, 2), (real(9), 0, 2, 4), (real(5, 2), -2, 2, 1)],
    tests="noempty noscalar noshape",
    aliases={"dimension": "axis"},
)
def unfold(x, axis, size, step):
    """Windows of ``size`` along ``axis`` every ``step``: the axis counts windows, a new last axis their elements."""
    _require_integers("unfold", size=size, step=step)
    axis = normalized_axis("unfold", axis, x.ndim)
    length = x.shape[axis] if x.ndim else 1
    if step < 1 or size < 0 or size > length:
        raise ShapeError(f"unfold(): size {size} by step {step} does not fit axis {axis} of a tensor of shape {list(x.shape)}")
    count = (length - size) // step + 1
    windows = p.gather(x, _strided_index((count, size), (step, 1), 0), axis)
    order = [k for k in range(windows.ndim) if k != axis + 1]
    return p.transpose(windows, (*order, axis + 1))
