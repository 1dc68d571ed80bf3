"""Tensors from nothing: constants, ranges, identity matrices."""

from __future__ import annotations

import math

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, message
from . import primitives as p
from .arguments import dtype_name, known_shape
from .define import op
from .samples import real


def sizes(name, shape):
    """A shape argument: no size may be negative."""
    found = known_shape(name, shape)
    if any(n < 0 for n in found):
        raise ArgumentError(message(f"{name}(): shape {list(found)} has a negative size", "sizes are 0 or more"))
    return found


def _dtype(name, dtype, default=None):
    return dtype_name(name, dtype) if dtype is not None else default or dtypes.default_float()


@op(
    "zeros",
    operands=(),
    creates=True,
    reference=lambda s, d=None: np.zeros(s, d or "float32"),
    samples=[((2, 3),), ((2, 0), "int64")],
    aliases={"size": "shape"},
)
def zeros(shape, dtype=None):
    """A tensor of zeros."""
    return p.full(sizes("zeros", shape), 0, _dtype("zeros", dtype))


@op(
    "ones",
    operands=(),
    creates=True,
    reference=lambda s, d=None: np.ones(s, d or "float32"),
    samples=[((2, 3),), ((), "bool")],
    aliases={"size": "shape"},
)
def ones(shape, dtype=None):
    """A tensor of ones."""
    return p.full(sizes("ones", shape), 1, _dtype("ones", dtype))


@op(
    "full",
    operands=("fill_value",),
    creates=True,
    samples=[((2, 3), 1.5, "float32")],
    aliases={"size": "shape"},
    tests="nograd noempty",
)
def full(shape, fill_value, dtype=None):
    """A tensor of one repeated number; by default of a tensor's dtype, bool for a bool, the default floating one for a number."""
    shape = sizes("full", shape)
    weak = {"bool": "bool", "complex128": "complex64"}.get(fill_value.dtype, dtypes.default_float())
    found = weak if fill_value.weak else fill_value.dtype
    value = p.cast(fill_value, _dtype("full", dtype, found))
    return p.broadcast_to(p.reshape(value, ()) if value.numel == 1 else value, shape)


@op(
    "zeros_like",
    creates=True,
    operands=("x",),
    reference=lambda x: np.zeros_like(x),
    samples=[(real(2, 3),)],
    aliases={"input": "x"},
    tests="nograd",
)
def zeros_like(x, dtype=None):
    """Zeros shaped like x, of its dtype by default."""
    return p.full(x.shape, 0, _dtype("zeros_like", dtype, x.dtype))


@op(
    "ones_like",
    creates=True,
    operands=("x",),
    reference=lambda x: np.ones_like(x),
    samples=[(real(2, 3),)],
    aliases={"input": "x"},
    tests="nograd",
)
def ones_like(x, dtype=None):
    """Ones shaped like x, of its dtype by default."""
    return p.full(x.shape, 1, _dtype("ones_like", dtype, x.dtype))


@op(
    "full_like",
    creates=True,
    operands=("x", "fill_value"),
    reference=lambda x, v: np.full_like(x, v),
    samples=[(real(2, 3), 2)],
    aliases={"input": "x"},
    tests="nograd",
)
def full_like(x, fill_value, dtype=None):
    """A number repeated, shaped like x, of its dtype by default."""
    return p.broadcast_to(p.reshape(p.cast(fill_value, _dtype("full_like", dtype, x.dtype)), ()), x.shape)


@op(
    "eye",
    operands=(),
    creates=True,
    reference=lambda n, m=None: np.eye(n, m, dtype="float32"),
    samples=[(3,), (2, 4)],
    aliases={"n": "num_rows", "m": "num_columns"},
)
def eye(num_rows, num_columns=None, dtype=None):
    """The identity matrix, [num_rows, num_columns]."""
    shape = sizes("eye", (num_rows, num_rows if num_columns is None else num_columns))
    return p.cast(p.eq(p.iota(shape, 0), p.iota(shape, 1)), _dtype("eye", dtype))


def _range_dtype(name, values, dtype):
    if dtype is not None:
        return dtype_name(name, dtype)
    return dtypes.default_float() if any(isinstance(v, float) for v in values) else "int64"


@op(
    "arange",
    operands=(),
    creates=True,
    reference=lambda a, b=None, s=1: np.arange(a, b, s) if b is not None else np.arange(a),
    samples=[(5,), (1, 10, 3)],
)
def arange(start=0, end=None, step=1, dtype=None):
    """start, start + step, ... below end; their count is ceil((end - start) / step), computed in float64. Integers give int64."""
    if end is None:
        start, end = 0, start
    if step == 0:
        raise ArgumentError("arange(): step is 0; it must not be")
    values = (start, end, step)
    if not all(math.isfinite(v) for v in values):
        raise ArgumentError(f"arange(): start, end and step must be finite, got {start}, {end}, {step}")
    exact = all(isinstance(v, int) for v in values)
    count = max(-((end - start) // -step) if exact else math.ceil((end - start) / step), 0)
    dtype = _range_dtype("arange", values, dtype)
    position = p.iota((count,), 0, "int64" if exact else "float64")
    computed = p.add(p.mul(position, step), start)
    return p.cast(computed, dtype)


@op(
    "linspace",
    operands=(),
    creates=True,
    reference=lambda a, b, n: np.linspace(a, b, n).astype("float32"),
    samples=[(0, 10, 5), (0, 10, 1), (3.0, -2.0, 4)],
    aliases={"end": "stop", "steps": "num"},
)
def linspace(start, stop, num, dtype=None):
    """``num`` numbers from start to stop, both included, at equal steps."""
    if num < 1:
        raise ArgumentError(message(f"linspace(): num={num}", "it must be at least 1"))
    return p.cast(_line(float(start), float(stop), num), _dtype("linspace", dtype))


def _line(start, stop, num):
    """Exact at both ends: the second half counts down from stop."""
    position = p.iota((num,), 0, "float64")
    step = (stop - start) / (num - 1) if num > 1 else 0.0
    up, down = p.add(p.mul(position, step), start), p.sub(stop, p.mul(p.sub(float(num - 1), position), step))
    return p.select(p.lt(position, num / 2), up, down) if num > 1 else up


@op(
    "logspace",
    operands=(),
    reference=lambda a, b, n: np.logspace(a, b, n).astype("float32"),
    samples=[(0, 3, 4)],
    aliases={"end": "stop", "steps": "num"},
)
def logspace(start, stop, num, base=10.0, dtype=None):
    """base to the power of each of linspace(start, stop, num)."""
    if num < 1:
        raise ArgumentError(message(f"logspace(): num={num}", "it must be at least 1"))
    exponent = _line(float(start), float(stop), num)
    return p.cast(p.pow(p.full((num,), float(base), "float64"), exponent), _dtype("logspace", dtype))


@op(
    "range",
    operands=(),
    creates=True,
    reference=lambda *a: np.arange(a[0], a[1] + 0.5 * a[2], a[2]).astype("float32"),
    samples=[(0, 3, 1), (1, 2, 0.5)],
)
def range_op(start=0, end=None, step=1, dtype=None):
    """start, start + step, ... as far as ``end``, which belongs to it (unlike arange's); float32 by default. end alone: from 0."""
    first, last = (0, start) if end is None else (start, end)
    if step == 0:
        raise ArgumentError("range(): step is 0")
    count = max(int((float(last) - float(first)) / float(step)) + 1, 0)
    place = p.mul(p.iota((count,), 0, "float64"), float(step))
    return p.cast(p.add(place, float(first)), _dtype("range", dtype))


@op("empty", operands=(), creates=True, samples=[([2, 3],), ([2], "int32")], tests="nograd")
def empty(shape, dtype=None):
    """A tensor whose elements are to be written; they are zeros."""
    return p.full(sizes("empty", shape), 0, _dtype("empty", dtype))


@op("empty_like", operands=("x",), creates=True, samples=[(real(2, 3),)], tests="nograd")
def empty_like(x, dtype=None):
    """A tensor shaped like x, of its dtype by default, whose elements are to be written; they are zeros."""
    return p.full(x.shape, 0, _dtype("empty_like", dtype, x.dtype))
