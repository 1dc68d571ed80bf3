"""Running sums, products and extremes along an axis; differences and integrals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import ArgumentError, DTypeError, ShapeError, message
from ..base.lazy import LazyModule
from ..ir.program import Value
from . import primitives as p
from .arguments import broadcast, dtype_name, floating, normalized_axis, promoted
from .define import op
from .reduction import wide_integer
from .samples import distinct, integer, positive, real, values


def row_axis(name: str, x: Value, axis: Any) -> tuple[Value, int]:
    """x and the axis counted from 0; without an axis, x flattened. A 0-D x becomes one row of one element."""
    if axis is None or x.ndim == 0:
        if axis is not None:
            normalized_axis(name, axis, 0)
        return p.reshape(x, (x.numel,)), 0
    return x, normalized_axis(name, axis, x.ndim)


def _like(result: Value, x: Value, axis: Any) -> Value:
    return p.reshape(result, x.shape) if axis is not None else result


def _running(function: Any) -> Any:
    def reference(x, axis=None, dtype=None):
        x = x.astype(np.int64) if x.dtype.kind in "bui" else x
        return function(x, axis).reshape(x.shape if axis is not None else (-1,))

    return reference


_RUNS = [(real(3, 4),), (real(2, 3, 4), 1), (real(2, 3), -1)]


@op(
    "cumsum",
    operands=("x",),
    method=True,
    inplace=True,
    reference=_running(np.cumsum),
    samples=[*_RUNS, (integer(3, dtype="int32"), 0, "float64")],
)
def cumsum(x, axis=None, dtype=None):
    """The running sum along ``axis`` (of the flattened tensor by default);
    bool and integers as int64 unless ``dtype`` says otherwise.
    """
    row, k = row_axis("cumsum", wide_integer(x) if dtype is None else p.cast(x, dtype_name("cumsum", dtype)), axis)
    return _like(p.scan(row, "sum", k), x, axis)


@op(
    "cumprod",
    operands=("x",),
    method=True,
    inplace=True,
    reference=_running(np.cumprod),
    samples=[*_RUNS, (values([1.0, 0.0, 3.0, 2.0], [0.0, 2.0, 0.0, 3.0]), 1)],
    aliases={"axis": "dim"},
)
def cumprod(x, dim=None, dtype=None):
    """The running product along ``dim`` (of the flattened tensor by default);
    of bool and integers as int64 unless ``dtype`` says otherwise.
    """
    row, k = row_axis("cumprod", wide_integer(x) if dtype is None else p.cast(x, dtype_name("cumprod", dtype)), dim)
    return _like(p.scan(row, "prod", k), x, dim)


def _extreme(name: str, kind: str, x: Value, axis: Any, dtype: Any) -> tuple[Value, Value]:
    index = dtype_name(name, dtype)
    if index not in ("int32", "int64"):
        raise DTypeError(message(f"{name}(): dtype is {index}", "it is the positions' and must be int32 or int64"))
    row, k = row_axis(name, x, axis)
    best, where = p.scan(row, kind, k)
    return _like(best, x, axis), p.cast(_like(where, x, axis), index)


def _extreme_reference(function: Any) -> Any:
    def reference(x, axis=None, dtype="int64"):
        shape = x.shape if axis is not None else (-1,)
        x, axis = (x.reshape(-1), 0) if axis is None or not x.ndim else (x, axis)
        best = function.accumulate(x, axis=axis)
        order = np.broadcast_to(
            np.arange(x.shape[axis]).reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)]), x.shape
        )
        stays = (x == best) | (np.isnan(x) & np.isnan(best))
        return best.reshape(shape), np.maximum.accumulate(np.where(stays, order, 0), axis=axis).reshape(shape).astype(dtype)

    return reference


@op(
    "cummax",
    operands=("x",),
    method=True,
    reference=_extreme_reference(np.maximum),
    samples=[(distinct(3, 4),), (distinct(2, 3, 4), 1, "int32"), (values(1.0, 3.0, 3.0, np.nan, 5.0),)],
)
def cummax(x, axis=None, dtype="int64"):
    """(the largest element so far along ``axis``, its position): the later of equal ones; from a NaN on, NaN."""
    return _extreme("cummax", "max", x, axis, dtype)


@op(
    "cummin",
    operands=("x",),
    method=True,
    reference=_extreme_reference(np.minimum),
    samples=[(distinct(3, 4),), (distinct(2, 3, 4), 1, "int32"), (values(3.0, 1.0, 1.0, np.nan, 5.0),)],
)
def cummin(x, axis=None, dtype="int64"):
    """(the smallest element so far along ``axis``, its position): the later of equal ones; from a NaN on, NaN."""
    return _extreme("cummin", "min", x, axis, dtype)


@op(
    "logcumsumexp",
    operands=("x",),
    method=True,
    reference=lambda x, axis=None, dtype=None: np.logaddexp.accumulate(
        x if axis is not None and x.ndim else x.ravel(), axis=axis or 0
    ).reshape(x.shape if axis is not None else -1),
    samples=[*_RUNS, (values(-np.inf, 1.0, 1000.0, -np.inf),)],
    tolerance=3,
)
def logcumsumexp(x, axis=None, dtype=None):
    """The logarithm of the running sum of exp(x) along ``axis`` (of the flattened tensor by default), without overflow."""
    x = floating(x) if dtype is None else p.cast(x, dtype_name("logcumsumexp", dtype))
    row, k = row_axis("logcumsumexp", x, axis)
    return _like(p.scan(row, "logaddexp", k), x, axis)


def part(x: Value, axis: int, start: int, size: int, step: int = 1) -> Value:
    """``size`` slices of x along one axis."""
    starts = tuple(start if k == axis else 0 for k in range(x.ndim))
    sizes = tuple(size if k == axis else n for k, n in enumerate(x.shape))
    return p.slice_(x, starts, sizes, tuple(step if k == axis else 1 for k in range(x.ndim)))


def _diff_reference(x, n=1, axis=-1, prepend=None, append=None):
    extra = {k: v for k, v in (("prepend", prepend), ("append", append)) if v is not None}
    return np.diff(x, n, axis, **extra)


@op(
    "diff",
    operands=("x", "prepend", "append"),
    method=True,
    reference=_diff_reference,
    samples=[(real(3, 5),), (real(4, 3), 2, 0), (real(2, 3), 1, -1, real(2, 1), real(2, 2))],
)
def diff(x, n=1, axis=-1, prepend=None, append=None):
    """The n-th difference x[i + 1] - x[i] along ``axis``, after ``prepend`` and ``append`` are put before and after x;
    of bool: whether they differ.
    """
    if n < 0:
        raise ArgumentError(f"diff(): n is {n}; it must not be negative")
    axis = normalized_axis("diff", axis, x.ndim)
    if x.ndim == 0:
        raise ShapeError("diff(): x is 0-D; it must have an axis")
    for name, side in (("prepend", prepend), ("append", append)):
        if side is not None and side.weak:
            raise DTypeError(f"diff(): {name} is a number; it must be a tensor")
        if side is not None and (
            side.ndim != x.ndim or any(a != b for k, (a, b) in enumerate(zip(side.shape, x.shape, strict=True)) if k != axis)
        ):
            raise ShapeError(
                message(f"diff(): {name} is {list(side.shape)} and x {list(x.shape)}", f"they may differ along axis {axis} only")
            )
    x = p.concat(list(promoted(*(v for v in (prepend, x, append) if v is not None))), axis)
    for _ in range(min(n, x.shape[axis])):  # nothing is left after as many
        count = max(x.shape[axis] - 1, 0)
        first, second = part(x, axis, 0, count), part(x, axis, min(1, x.shape[axis]), count)
        x = p.ne(first, second) if x.dtype == "bool" else p.sub(second, first)
    return x


def _areas(name: str, y: Value, x: Value | None, dx: Any, axis: int) -> tuple[Value, int]:
    """The areas under neighbouring points along the axis."""
    if x is not None and dx is not None:
        raise ArgumentError(f"{name}(): both x and dx are given; pass one of them")
    y = floating(y)
    axis = normalized_axis(name, axis, y.ndim)
    if y.ndim == 0 or y.shape[axis] == 0:
        raise ShapeError(f"{name}(): y is {list(y.shape)}; it must have points along axis {axis}")
    count = y.shape[axis] - 1
    mean = p.mul(p.add(part(y, axis, 0, count), part(y, axis, 1, count)), 0.5)
    if x is None:
        return p.mul(mean, 1.0 if dx is None else float(dx)), axis
    x, mean = promoted(floating(x), mean)
    if x.ndim == 1:
        if x.shape[0] != count + 1:
            raise ShapeError(f"{name}(): x has {x.shape[0]} points and y {count + 1} along axis {axis}")
        x = p.reshape(x, tuple(count + 1 if k == axis else 1 for k in range(y.ndim)))
    step = p.sub(part(x, axis, 1, count), part(x, axis, 0, count))
    step, mean = broadcast(step, mean)
    return p.mul(step, mean), axis


def _trapezoid_reference(y, x=None, dx=None, axis=-1):
    return np.asarray(np.trapezoid(y, x, 1.0 if dx is None else dx, axis))


@op(
    "trapezoid",
    operands=("y", "x"),
    method=True,
    reference=_trapezoid_reference,
    samples=[(real(3, 5),), (real(4, 3), positive(4), {"axis": 0}), (real(3, 4), real(3, 4)), (real(3, 4), {"dx": 0.5})],
    aliases={"input": "y"},
    tests="noshape noscalar",
)
def trapezoid(y, x=None, dx=None, axis=-1):
    """The integral of y along ``axis`` by the trapezoidal rule, over the points x or steps of dx (1 by default)."""
    area, axis = _areas("trapezoid", y, x, dx, axis)
    return p.reshape(p.reduce_sum(area, (axis,)), tuple(n for k, n in enumerate(area.shape) if k != axis))


def _cumulative_reference(y, x=None, dx=None, axis=-1):
    return LazyModule("scipy.integrate").cumulative_trapezoid(y, x, 1.0 if dx is None else dx, axis)


@op(
    "cumulative_trapezoid",
    operands=("y", "x"),
    method=True,
    reference=_cumulative_reference,
    samples=[(real(3, 5),), (real(4, 3), positive(4), {"axis": 0}), (real(3, 4), {"dx": 0.5})],
    aliases={"input": "y"},
    tests="noshape noscalar",
)
def cumulative_trapezoid(y, x=None, dx=None, axis=-1):
    """The running integral of y along ``axis`` by the trapezoidal rule; one element shorter than y there."""
    area, axis = _areas("cumulative_trapezoid", y, x, dx, axis)
    return p.scan(area, "sum", axis)
