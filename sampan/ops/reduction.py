"""Reductions along axes: sums, products, extremes, norms, counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, DTypeError, ShapeError, message
from ..base.lazy import scipy_special as special
from ..ir.program import Op, Value
from . import primitives
from . import primitives as p
from .arguments import broadcast, dropped, dtype_name, floating, normalized_axes, normalized_axis, promoted
from .comparison import truth
from .define import op
from .samples import boolean, distinct, integer, real, values


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, (list, tuple)) and axis else None if isinstance(axis, (list, tuple)) else axis


def by_numpy(function: Any) -> Any:
    """The NumPy reduction with Paddle's argument names and order."""
    return lambda x, axis=None, keepdim=False: np.asarray(function(x, axis=_axes(axis), keepdims=keepdim))


AXES = [(real(3, 4),), (real(2, 3, 4), 1), (real(2, 3, 4), [0, -1]), (real(2, 3, 4), -1, True), (real(),)]
DISTINCT = [
    (distinct(3, 4),),
    (distinct(2, 3, 4), 1),
    (distinct(2, 3, 4), [0, -1]),
    (distinct(2, 3, 4), -1, True),
    (values(1.0),),
]


def wide_integer(x: Value) -> Value:
    """bool and integers as int64, so that sums do not wrap at the width of the elements."""
    return p.cast(x, "int64") if dtypes.kind(x.dtype) in "bui" else x


def _sum(name: str, x: Value, axis: Any, keepdim: bool) -> Value:
    axes = normalized_axes(name, axis, x.ndim)
    return dropped(p.reduce_sum(x, axes), axes, keepdim)


def _wide(x):
    return x.astype(np.int64) if x.dtype.kind in "bui" else x


def _sum_reference(x, axis=None, dtype=None, keepdim=False):
    return np.asarray(np.sum(_wide(x) if dtype is None else x.astype(dtype), axis=_axes(axis), keepdims=keepdim))


@op(
    "sum",
    operands=("x",),
    method=True,
    reference=_sum_reference,
    samples=[*AXES[:3], (real(2, 3), -1, None, True), (real(3), None, "float64"), (boolean(5),)],
)
def sum(x, axis=None, dtype=None, keepdim=False):
    """The sum over the axes (all of them by default). bool and integers are summed as int64 unless ``dtype`` says otherwise."""
    x = wide_integer(x) if dtype is None else p.cast(x, dtype_name("sum", dtype))
    return _sum("sum", x, axis, keepdim)


def _zero_nan(x: Value) -> Value:
    return p.select(p.isnan(x), 0, x)


@op(
    "nansum",
    operands=("x",),
    method=True,
    reference=lambda x, axis=None, dtype=None, keepdim=False: np.asarray(np.nansum(_wide(x), axis=_axes(axis), keepdims=keepdim)),
    samples=[(real(3, 4), 1), (values(1.0, np.nan, 3.0),)],
)
def nansum(x, axis=None, dtype=None, keepdim=False):
    """The sum over the axes with NaN as 0."""
    x = wide_integer(x) if dtype is None else p.cast(x, dtype_name("nansum", dtype))
    return _sum("nansum", _zero_nan(x), axis, keepdim)


def mean_of(name: str, x: Value, axes: Sequence[int]) -> Value:
    """The mean over counted axes, kept with length 1; of nothing NaN."""
    count = math.prod(x.shape[a] for a in axes)
    total = p.reduce_sum(x, tuple(axes))
    return p.div(total, count) if count else p.full(total.shape, float("nan"), x.dtype)


@op("mean", operands=("x",), keyword_only=("dtype",), method=True, reference=by_numpy(np.mean), samples=AXES)
def mean(x, axis=None, keepdim=False, dtype=None):
    """The mean over the axes (all of them by default); of integers in the default floating dtype."""
    x = floating(x) if dtype is None else p.cast(x, dtype_name("mean", dtype))
    axes = normalized_axes("mean", axis, x.ndim)
    return dropped(mean_of("mean", x, axes), axes, keepdim)


@op(
    "nanmean",
    operands=("x",),
    method=True,
    reference=by_numpy(np.nanmean),
    samples=[(real(3, 4), 1), (values(1.0, np.nan, 3.0),), (values([np.nan, np.nan], [1, 2]), 1)],
)
def nanmean(x, axis=None, keepdim=False):
    """The mean over the axes of what is not NaN; NaN where there is nothing else."""
    x = floating(x)
    axes = normalized_axes("nanmean", axis, x.ndim)
    count = p.reduce_sum(p.cast(p.bitwise_not(p.isnan(x)), dtypes.real_of(x.dtype)), axes)
    return dropped(p.div(p.reduce_sum(_zero_nan(x), axes), p.cast(count, x.dtype)), axes, keepdim)


def _prod_reference(x, axis=None, keepdim=False, dtype=None):
    return np.asarray(np.prod(_wide(x), axis=_axes(axis), keepdims=keepdim))


@op(
    "prod",
    operands=("x",),
    takes_positional_out=True,
    method=True,
    reference=_prod_reference,
    samples=[*AXES, (values([1.0, 0.0, 3.0], [0.0, 0.0, 2.0]), 1)],
)
def prod(x, axis=None, keepdim=False, dtype=None):
    """The product over the axes; of bool and integers as int64 unless ``dtype`` says otherwise."""
    x = wide_integer(x) if dtype is None else p.cast(x, dtype_name("prod", dtype))
    axes = normalized_axes("prod", axis, x.ndim)
    return dropped(p.reduce_prod(x, axes), axes, keepdim)


def _every_winner(op_: Op, g: Value) -> tuple[Value]:
    """Every equal winner receives the whole gradient, as Paddle documents for max and min."""
    x, axes = op_.inputs[0], normalized_axes(op_.name, op_.attributes["axis"], op_.inputs[0].ndim)
    kept = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    y, g = (p.broadcast_to(p.reshape(v, kept), x.shape) for v in (op_.outputs[0], g))
    return (p.select(p.eq(x, y), g, 0),)


def _extreme(name: str, primitive: Any, x: Value, axis: Any, keepdim: bool) -> Value:
    axes = normalized_axes(name, axis, x.ndim)
    if x.dtype == "bool":
        primitive = {p.reduce_max: p.reduce_any, p.reduce_min: p.reduce_all}.get(primitive, primitive)
    return dropped(primitive(x, axes), axes, keepdim)


@op(
    "max",
    operands=("x",),
    method=True,
    gradient=_every_winner,
    reference=by_numpy(np.max),
    samples=[*DISTINCT, (values(1.0, np.nan, 3.0),)],
)
def max(x, axis=None, keepdim=False):
    """The largest element over the axes; NaN where there is one. Each of equal largest elements receives the whole gradient."""
    return _extreme("max", p.reduce_max, x, axis, keepdim)


@op(
    "min",
    operands=("x",),
    method=True,
    gradient=_every_winner,
    reference=by_numpy(np.min),
    samples=[*DISTINCT, (values(1.0, np.nan, 3.0),)],
)
def min(x, axis=None, keepdim=False):
    """The smallest element over the axes; NaN where there is one. Each of equal smallest elements receives the whole gradient."""
    return _extreme("min", p.reduce_min, x, axis, keepdim)


@op("amax", operands=("x",), method=True, reference=by_numpy(np.max), samples=DISTINCT)
def amax(x, axis=None, keepdim=False):
    """The largest element over the axes; NaN where there is one. Equal largest elements share the gradient evenly."""
    return _extreme("amax", p.reduce_max, x, axis, keepdim)


@op("amin", operands=("x",), method=True, reference=by_numpy(np.min), samples=DISTINCT)
def amin(x, axis=None, keepdim=False):
    """The smallest element over the axes; NaN where there is one. Equal smallest elements share the gradient evenly."""
    return _extreme("amin", p.reduce_min, x, axis, keepdim)


@op(
    "all",
    operands=("x",),
    method=True,
    reference=by_numpy(np.all),
    samples=[(boolean(3, 4),), (real(2, 3, 4), [0, 2]), (boolean(2, 3), -1, True)],
    tests="nograd",
)
def all(x, axis=None, keepdim=False):
    """Whether every element over the axes is not zero."""
    return _extreme("all", p.reduce_all, truth(x), axis, keepdim)


@op(
    "any",
    operands=("x",),
    method=True,
    reference=by_numpy(np.any),
    samples=[(boolean(3, 4),), (real(2, 3, 4), [0, 2]), (boolean(2, 3), -1, True)],
    tests="nograd",
)
def any(x, axis=None, keepdim=False):
    """Whether an element over the axes is not zero."""
    return _extreme("any", p.reduce_any, truth(x), axis, keepdim)


def _argument(function: Any) -> Any:
    return lambda x, axis=None, keepdim=False, dtype="int64": np.asarray(function(x, axis=axis, keepdims=keepdim)).astype(dtype)


def _extreme_position(name: str, primitive: Any, x: Value, axis: Any, keepdim: bool, dtype: Any) -> Value:
    result = dtype_name(name, dtype)
    if result not in ("int32", "int64"):
        raise DTypeError(message(f"{name}(): dtype is {result}", "it must be int32 or int64"))
    x = p.cast(x, "uint8") if x.dtype == "bool" else x
    axes = tuple(range(x.ndim)) if axis is None else normalized_axes(name, normalized_axis(name, axis, x.ndim), x.ndim)
    return p.cast(dropped(primitive(x, axes), axes, keepdim), result)


@op(
    "argmax",
    operands=("x",),
    method=True,
    reference=_argument(np.argmax),
    samples=[(distinct(3, 4),), (real(2, 3, 4, low=-3, high=3), 1), (real(2, 3), -1, True, "int32"), (values(1.0, np.nan, 3.0),)],
    tests="nograd",
)
def argmax(x, axis=None, keepdim=False, dtype="int64"):
    """The position of the largest element along the axis (in the flattened tensor by default):
    the first of equal ones, NaN before all.
    """
    return _extreme_position("argmax", p.reduce_argmax, x, axis, keepdim, dtype)


@op(
    "argmin",
    operands=("x",),
    method=True,
    reference=_argument(np.argmin),
    samples=[(distinct(3, 4),), (real(2, 3, 4, low=-3, high=3), 1), (real(2, 3), -1, True, "int32"), (values(1.0, np.nan, 3.0),)],
    tests="nograd",
)
def argmin(x, axis=None, keepdim=False, dtype="int64"):
    """The position of the smallest element along the axis (in the flattened tensor by default):
    the first of equal ones, NaN before all.
    """
    return _extreme_position("argmin", p.reduce_argmin, x, axis, keepdim, dtype)


@op(
    "count_nonzero",
    operands=("x",),
    method=True,
    reference=by_numpy(np.count_nonzero),
    samples=[(real(3, 4, low=-1, high=2),), (boolean(2, 3, 4), [0, 2], True), (values(0.0, np.nan, -0.0),)],
    tests="nograd",
)
def count_nonzero(x, axis=None, keepdim=False):
    """How many elements over the axes are not zero, as int64; NaN counts."""
    return _sum("count_nonzero", p.cast(truth(x), "int64"), axis, keepdim)


def _logsumexp_gradient(op_: Op, g: Value) -> tuple[Value]:
    x = op_.inputs[0]
    axes = normalized_axes("logsumexp", op_.attributes["axis"], x.ndim)
    kept = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    y, g = (p.broadcast_to(p.reshape(v, kept), x.shape) for v in (op_.outputs[0], g))
    share = p.mul(p.cast(g, y.dtype), p.exp(p.sub(floating(x), p.select(p.isinf(y), 0, y))))
    return (p.cast(share, x.dtype) if dtypes.is_differentiable(x.dtype) else None,)


@op(
    "logsumexp",
    operands=("x",),
    method=True,
    gradient=_logsumexp_gradient,
    reference=by_numpy(special.logsumexp),
    samples=[
        *AXES,
        (values(1000.0, 1000.0),),
        (values(-np.inf, -np.inf, 1.0),),
        (values(-np.inf, -np.inf),),
        (values(np.inf, 1.0),),
    ],
    tests="noscalar",
)
def logsumexp(x, axis=None, keepdim=False):
    """log(sum(exp(x))) over the axes without overflow."""
    x = floating(x)
    axes = normalized_axes("logsumexp", axis, x.ndim)
    if not math.prod(x.shape[a] for a in axes):
        return dropped(p.log(p.reduce_sum(x, axes)), axes, keepdim)
    top = p.reduce_max(x, axes)
    shift = p.select(p.isinf(top), 0, top)
    total = p.reduce_sum(p.exp(p.sub(x, p.broadcast_to(shift, x.shape))), axes)
    return dropped(p.add(p.log(total), shift), axes, keepdim)


@op(
    "reduce_as",
    operands=("x", "target"),
    method=True,
    reference=lambda x, t: x.sum(0, keepdims=True)[0].sum(-1, keepdims=True),
    samples=[(real(2, 3, 4), real(3, 1))],
    tests="noscalar noempty noshape",
)
def reduce_as(x, target):
    """x summed over the axes that broadcasting from target's shape repeats."""
    if p.broadcast_shapes(x.shape, target.shape) != x.shape:
        raise ShapeError(f"reduce_as(): x {list(x.shape)} cannot be reduced to target's shape {list(target.shape)}")
    return p.sum_to(wide_integer(x), target.shape)


# ------------------------------------------------------------------ norms


def norm_over(x: Value, order: float, axes: Sequence[int]) -> Value:
    """The p-norm over axes, kept with length 1; its gradient at a zero vector is 0."""
    size = p.abs(x)
    axes = tuple(axes)
    if order == float("inf"):
        return p.reduce_max(size, axes)
    if order == float("-inf"):
        return p.reduce_min(size, axes)
    if order == 0:
        return p.reduce_sum(p.select(p.eq(size, 0), p.mul(size, 0), 1), axes)  # of a gradient that is 0, not missing
    if order == 1:
        return p.reduce_sum(size, axes)
    if order == 2:
        total = p.reduce_sum(p.mul(size, size), axes)
        is_zero = p.eq(total, 0)
        return p.select(is_zero, 0, p.sqrt(p.select(is_zero, 1, total)))
    nothing = p.eq(size, 0)
    powers = p.pow(p.select(nothing, 1, size), order)
    total = p.reduce_sum(p.select(nothing, 0 if order > 0 else float("inf"), powers), axes)
    is_zero = p.eq(total, 0)
    return p.select(is_zero, 0, p.pow(p.select(is_zero, 1, total), 1 / order))


def _vector_norm(x, p=2.0, axis=None, keepdim=False):
    a = np.abs(x)
    axis = _axes(axis)
    if np.isinf(p):
        return np.asarray((np.max if p > 0 else np.min)(a, axis=axis, keepdims=keepdim))
    if p == 0:
        return np.asarray(np.sum(x != 0, axis=axis, keepdims=keepdim)).astype(a.dtype)
    return np.asarray(np.sum(a**p, axis=axis, keepdims=keepdim) ** (1 / p))


_NORMS = [
    (real(3, 4),),
    (real(2, 3, 4), 3, 1),
    (real(2, 3), 1, -1, True),
    (real(2, 3), float("inf"), 1),
    (real(2, 3), float("-inf"), 1),
    (real(2, 3), 0),
    (real(2, 3), 0.5, [0, 1]),
]


@op("linalg.vector_norm", operands=("x",), keyword_only=("dtype",), reference=_vector_norm, samples=_NORMS, tolerance=3)
def vector_norm(x, p=2.0, axis=None, keepdim=False, dtype=None):
    """(sum |x| ** p) ** (1 / p) over the axes (all of them by default); p may be 0 (a count), inf or -inf."""
    x = floating(x)
    if dtype is not None:
        x = primitives.cast(x, dtype_name("vector_norm", dtype))
    axes = normalized_axes("vector_norm", axis, x.ndim)
    return dropped(norm_over(x, checked_order("vector_norm", p), axes), axes, keepdim)


def checked_order(name: str, order: Any) -> float:
    """A norm's order as a float."""
    if isinstance(order, bool) or not isinstance(order, (int, float)):
        raise ArgumentError(f"{name}(): p is {order!r}; for a vector norm it must be a number")
    return float(order)


@op(
    "dist",
    operands=("x", "y"),
    method=True,
    reference=lambda x, y, p=2: _vector_norm(x - y, float(p)),
    samples=[
        (real(3, 4), real(3, 4)),
        (real(3, 1), real(4), 1),
        (real(3), real(3), 0),
        (real(3), real(3), float("inf")),
        (real(3), real(3), 3.0),
    ],
    tolerance=3,
)
def dist(x, y, p=2):
    """The p-norm of x - y, with broadcasting, as a 0-D tensor."""
    x, y = broadcast(*promoted(floating(x), floating(y)))
    return primitives.reshape(norm_over(primitives.sub(x, y), checked_order("dist", p), tuple(range(x.ndim))), ())


def _renorm_reference(x, p, axis, max_norm):
    others = tuple(k for k in range(x.ndim) if k != axis % x.ndim)
    size = _vector_norm(x, p, others, True)
    return np.where(size > max_norm, x * (max_norm / np.where(size == 0, 1, size)), x)


@op(
    "renorm",
    operands=("x",),
    method=True,
    inplace=True,
    reference=_renorm_reference,
    samples=[(real(2, 3, 4), 2.0, 1, 1.0), (real(2, 3), 1.0, -1, 2.5)],
    tests="noscalar",
    tolerance=3,
)
def renorm(x, p, axis, max_norm):
    """x, each slice along ``axis`` whose p-norm is above max_norm scaled down to it."""
    x = floating(x)
    if x.ndim < 2:
        raise ShapeError(f"renorm(): x is {list(x.shape)}; it must have 2 axes at least")
    axis = normalized_axis("renorm", axis, x.ndim)
    size = norm_over(x, checked_order("renorm", p), tuple(k for k in range(x.ndim) if k != axis))
    is_long = primitives.gt(size, max_norm)
    factor = primitives.select(is_long, primitives.div(float(max_norm), primitives.select(is_long, size, 1)), 1)
    return primitives.mul(x, primitives.broadcast_to(factor, x.shape))


@op(
    "shape",
    operands=("input",),
    reference=lambda x: np.array(x.shape, np.int64),
    samples=[(real(3, 4),), (real(),)],
    tests="nograd",
    aliases={"x": "input"},
)
def shape(input):
    """The sizes of the axes as an int64 vector."""
    return p.array(np.array(input.shape, np.int64), "int64")


@op("numel", method=("numel",), reference=lambda x: np.asarray(x.size), samples=[(real(3, 4),), (real(),)], tests="nograd")
def numel(x):
    """The number of elements, as a 0-D int64 tensor."""
    return p.full((), x.numel, "int64")


@op(
    "rank",
    operands=("input",),
    method=True,
    reference=lambda x: np.asarray(x.ndim, np.int32),
    samples=[(real(3, 4),), (integer(),)],
    tests="nograd",
    aliases={"x": "input"},
)
def rank(input):
    """The number of axes, as a 0-D int32 tensor."""
    return p.full((), input.ndim, "int32")


@op("is_empty", method=True, reference=lambda x: np.asarray(x.size == 0), samples=[(real(3, 4),), (real(0, 2),)], tests="nograd")
def is_empty(x):
    """Whether x has no elements, as a 0-D bool."""
    return p.full((), x.numel == 0, "bool")
