"""Spread, order statistics and counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, describe, message
from ..base.kinds import Finite
from ..ir.program import Value
from . import primitives as p
from .arguments import dropped, floating, normalized_axes
from .define import op
from .reduction import AXES, mean_of
from .samples import distinct, positive, real, values


def variance_over(name: str, x: Value, axes: tuple[int, ...], correction: float) -> Value:
    """The variance over axes, kept with length 1, in two passes: the mean, then the mean square about it."""
    x = floating(x)
    count = math.prod(x.shape[a] for a in axes)
    away = p.abs(p.sub(x, p.broadcast_to(mean_of(name, x, axes), x.shape)))
    total = p.reduce_sum(p.mul(away, away), axes)
    divisor = count - correction
    return p.div(total, float(divisor)) if divisor > 0 else p.full(total.shape, float("nan"), total.dtype)


def _by_numpy(function: Any) -> Any:
    def reference(x, axis=None, unbiased=True, keepdim=False, correction=1):
        axis = tuple(axis) if isinstance(axis, list) else axis
        return np.asarray(function(x, axis=axis, ddof=correction if unbiased else 0, keepdims=keepdim))

    return reference


_SPREAD = [*AXES[:3], (real(2, 3, 4), -1, False, True), (real(1),)]


@op(
    "var",
    operands=("x",),
    keyword_only=("correction",),
    method=True,
    reference=_by_numpy(np.var),
    samples=[*_SPREAD, (real(5), {"correction": 2})],
    tests="noscalar",
)
def var(x, axis=None, unbiased=None, keepdim=False, correction=1):
    """The variance over the axes, divided by n - correction (n with ``unbiased=False``); NaN where that is not positive."""
    axes = normalized_axes("var", axis, x.ndim)
    return dropped(variance_over("var", x, axes, 0 if unbiased is False else correction), axes, keepdim)


@op("std", operands=("x",), method=True, reference=_by_numpy(np.std), samples=_SPREAD, tests="noscalar")
def std(x, axis=None, unbiased=True, keepdim=False):
    """The standard deviation over the axes: the square root of var."""
    axes = normalized_axes("std", axis, x.ndim)
    return dropped(p.sqrt(variance_over("std", x, axes, 1 if unbiased else 0)), axes, keepdim)


# ------------------------------------------------------------------ order statistics


def _rows(name: str, x: Value, axis: Any) -> tuple[Value, tuple[int, ...]]:
    """x with the axes moved last and flattened into one."""
    axes = normalized_axes(name, axis, x.ndim)
    others = [k for k in range(x.ndim) if k not in axes]
    if not math.prod(x.shape[a] for a in axes):
        raise ShapeError(f"{name}(): a tensor of shape {list(x.shape)} has no elements along axes {list(axes)}")
    moved = p.transpose(x, (*others, *axes))
    return p.reshape(moved, (*(x.shape[k] for k in others), math.prod(x.shape[a] for a in axes))), axes


def _restored(y: Value, x: Value, axes: tuple[int, ...], keepdim: bool) -> Value:
    """A result over the rows, [...], in the shape of x reduced over the axes."""
    kept = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    return p.reshape(y, kept if keepdim else tuple(n for k, n in enumerate(x.shape) if k not in axes))


def _column(x: Value, k: int) -> Value:
    """x[..., k]."""
    last = x.ndim - 1
    y = p.slice_(x, (*(0 for _ in range(last)), k), (*x.shape[:-1], 1), (1,) * x.ndim)
    return p.reshape(y, x.shape[:-1])


def _at(x: Value, index: Value) -> Value:
    """x[..., index[...]]."""
    return p.reshape(p.gather_elements(x, p.reshape(index, (*index.shape, 1)), x.ndim - 1), index.shape)


def _median_reference(x, axis=None, keepdim=False, mode="avg"):
    if mode == "avg":
        return np.asarray(np.median(x, axis=axis, keepdims=keepdim))
    order = np.argsort(x, axis=axis, kind="stable")
    middle = np.take(order, [(x.shape[axis] - 1) // 2], axis)
    both = np.take_along_axis(x, middle, axis), middle
    return both if keepdim else tuple(np.squeeze(b, axis) for b in both)


def _median(name: str, x: Value, axis: Any, keepdim: bool, mode: str, skip_nan: bool) -> Any:
    if mode not in ("avg", "min"):
        raise ArgumentError(f"{name}(): mode is {mode!r}; it must be 'avg' or 'min'")
    if isinstance(axis, (list, tuple)) and not axis:
        raise ArgumentError(f"{name}(): axis is {axis!r}; it must name an axis, or be None for all of them")
    if mode == "avg":
        x = floating(x)
    rows, axes = _rows(name, x, axis)
    ordered, order = p.sort(rows, rows.ndim - 1)
    is_nan = p.isnan(ordered) if dtypes.is_floating(x.dtype) else p.full(ordered.shape, False, "bool")
    count = p.reshape(p.reduce_sum(p.cast(p.bitwise_not(is_nan), "int64"), (rows.ndim - 1,)), rows.shape[:-1])
    length = rows.shape[-1]
    if not skip_nan:
        # NaNs stand last, in order: then the first of them is the middle
        count = p.select(p.eq(count, length), count, p.add(p.mul(count, 2), 1))
    low = p.floordiv(p.maximum(p.sub(count, 1), 0), 2)
    if mode == "min":
        value, index = _at(ordered, low), _at(order, low)
        if skip_nan:
            index = p.select(p.eq(count, 0), -1, index)
        results = _restored(value, x, axes, keepdim), _restored(index, x, axes, keepdim)
        is_one_axis = isinstance(axis, int) if skip_nan else axis is not None
        return results if is_one_axis else results[0]
    high = p.minimum(p.floordiv(count, 2), length - 1)
    high = p.maximum(high, low)
    mean = p.mul(p.add(_at(ordered, low), _at(ordered, high)), 0.5)
    return _restored(mean, x, axes, keepdim)


@op(
    "median",
    operands=("x",),
    method=True,
    reference=_median_reference,
    samples=[
        (distinct(3, 4),),
        (distinct(2, 3, 5), 1, True),
        (values([1.0, np.nan, 3.0], [1.0, 2.0, 4.0]), 1),
        (distinct(3, 4), 1, False, "min"),
    ],
)
def median(x, axis=None, keepdim=False, mode="avg"):
    """The median over the axis (of all elements by default); NaN where there is one; the mean of the middle two.

    mode ``"min"``: the lower of the middle two, and with an axis also its position.
    """
    return _median("median", x, axis, keepdim, mode, False)


def _nanmedian_reference(x, axis=None, keepdim=False, mode="avg"):
    axis = tuple(axis) if isinstance(axis, list) else axis
    if mode == "avg":
        return np.asarray(np.nanmedian(x, axis=axis, keepdims=keepdim))
    value = np.asarray(np.nanquantile(x, 0.5, axis=axis, keepdims=keepdim, method="lower"))
    if not isinstance(axis, int):
        return value
    low = (np.sum(~np.isnan(x), axis, keepdims=True) - 1) // 2
    place = np.take_along_axis(np.argsort(x, axis=axis, kind="stable"), low, axis)
    return value, place if keepdim else np.squeeze(place, axis)


@op(
    "nanmedian",
    operands=("x",),
    method=True,
    reference=_nanmedian_reference,
    samples=[
        (distinct(3, 4),),
        (distinct(2, 3, 5), [0, 1], True),
        (values([1.0, np.nan, 3.0, 9.0], [np.nan] * 4, [5.0, 2.0, 4.0, 3.0]), 1),
        (values([1.0, np.nan, 3.0, 9.0], [5.0, 2.0, 4.0, 3.0]), 1, False, "min"),
        (values([1.0, np.nan, 3.0, 9.0], [5.0, 2.0, 4.0, 3.0]), 0, True, "min"),
        (values([1.0, np.nan, 3.0, 9.0], [5.0, 2.0, 4.0, 3.0]), None, False, "min"),
        (values([1.0, np.nan, 3.0, 9.0], [5.0, 2.0, 4.0, 3.0]), [0, 1], True, "min"),
    ],
)
def nanmedian(x, axis=None, keepdim=False, mode="avg"):
    """The median over the axes of what is not NaN; NaN where there is nothing else.

    mode ``"min"``: the lower of the middle two, and with one integer axis also its position (-1 where all are NaN).
    """
    return _median("nanmedian", x, axis, keepdim, mode, True)


_INTERPOLATIONS = ("linear", "higher", "lower", "midpoint", "nearest")


def _quantile(name: str, x: Value, q: Any, axis: Any, keepdim: bool, interpolation: str, skip_nan: bool) -> Value:
    if interpolation not in _INTERPOLATIONS:
        raise ArgumentError(f"{name}(): interpolation is {interpolation!r}; it must be one of {', '.join(_INTERPOLATIONS)}")
    many = isinstance(q, (list, tuple))
    if not all(isinstance(v, (int, float)) for v in (q if many else [q])):
        raise ArgumentTypeError(message(f"{name}(): q is {q!r}", "it must be a number or a list of numbers"))
    wanted = [float(v) for v in (q if many else [q])]
    if not wanted or any(not 0 <= v <= 1 for v in wanted):
        raise ArgumentError(f"{name}(): q is {q!r}; it must hold numbers in [0, 1]")
    x = floating(x)
    rows, axes = _rows(name, x, axis)
    ordered, _ = p.sort(rows, rows.ndim - 1)
    length = rows.shape[-1]
    is_nan = p.isnan(ordered)
    count = p.reshape(p.reduce_sum(p.cast(p.bitwise_not(is_nan), "int64"), (rows.ndim - 1,)), rows.shape[:-1])
    results = []
    for v in wanted:
        last = p.maximum(p.sub(count, 1), 0) if skip_nan else p.full(count.shape, length - 1, "int64")
        position = p.mul(p.cast(last, "float64"), v)
        low, high = p.floor(position), p.ceil(position)
        if interpolation == "nearest":
            low = high = p.round(position)
        elif interpolation != "linear" and interpolation != "midpoint":
            low = high = low if interpolation == "lower" else high
        below, above = (_at(ordered, p.cast(side, "int64")) for side in (low, high))
        weight = p.full(count.shape, 0.5, "float64") if interpolation == "midpoint" else p.sub(position, low)
        y = (
            p.add(below, p.mul(p.cast(weight, x.dtype), p.sub(above, below)))
            if interpolation in ("linear", "midpoint")
            else below
        )
        if not skip_nan:
            y = p.select(p.eq(count, length), y, float("nan"))
        results.append(_restored(y, x, axes, keepdim))
    return p.concat([p.reshape(r, (1, *r.shape)) for r in results], 0) if many else results[0]


def _quantile_reference(function: Any) -> Any:
    def reference(x, q, axis=None, keepdim=False, interpolation="linear"):
        axis = tuple(axis) if isinstance(axis, list) else axis
        return np.asarray(function(x, q, axis=axis, keepdims=keepdim, method=interpolation))

    return reference


_QUANTILES = [
    (distinct(3, 4), 0.3),
    (distinct(2, 3, 5), [0.1, 0.5, 1.0], 1),
    (distinct(2, 3, 5), [0.25], [0, 2], True),
    *((distinct(3, 5), 0.4, 1, False, i) for i in _INTERPOLATIONS),
]
_HOLES = values([1.0, np.nan, 3.0, 9.0], [5.0, 2.0, 4.0, 3.0])


@op("quantile", operands=("x",), method=True, reference=_quantile_reference(np.quantile), samples=[*_QUANTILES, (_HOLES, 0.3, 1)])
def quantile(x, q, axis=None, keepdim=False, interpolation="linear"):
    """The quantile q (a number or list of numbers in [0, 1]) over the axes; NaN where there is one.

    A list gives a new first axis.
    """
    return _quantile("quantile", x, q, axis, keepdim, interpolation, False)


@op(
    "nanquantile",
    operands=("x",),
    method=True,
    reference=_quantile_reference(np.nanquantile),
    samples=[*_QUANTILES[:3], (_HOLES, [0.3, 0.5], 1), (_HOLES, 0.3, 1, True, "higher")],
)
def nanquantile(x, q, axis=None, keepdim=False, interpolation="linear"):
    """The quantile q over the axes of what is not NaN."""
    return _quantile("nanquantile", x, q, axis, keepdim, interpolation, True)


# ------------------------------------------------------------------ counts


def _range_of(x: Value, low: float, high: float) -> tuple[Value, Value]:
    """The ends of a histogram as 0-D tensors: as given, or x's own when both are 0; widened where they are equal."""
    if high < low:
        raise ArgumentError(f"histogram(): max ({high}) is below min ({low})")
    if low == 0 and high == 0 and x.numel:
        axes = tuple(range(x.ndim))
        first, last = (p.reshape(reduce(x, axes), ()) for reduce in (p.reduce_min, p.reduce_max))
    else:
        first, last = p.full((), low, x.dtype), p.full((), high, x.dtype)
    equal = p.eq(first, last)
    return p.select(equal, p.sub(first, 0.5), first), p.select(equal, p.add(last, 0.5), last)


def _bins_of(x: Value, first: Value, last: Value, bins: int) -> Value:
    """The bin of every element, ``bins`` for those outside and NaN; the last bin holds its upper end."""
    first, last = (p.broadcast_to(v, x.shape) for v in (first, last))
    inside = p.bitwise_and(p.ge(x, first), p.le(x, last))
    place = p.floor(p.mul(p.div(p.sub(x, first), p.sub(last, first)), float(bins)))
    place = p.minimum(p.cast(p.select(inside, place, 0), "int64"), bins - 1)
    return p.select(inside, place, bins)


def counted(place: Value, weight: Value | None, bins: int, dtype: str) -> Value:
    """How often (or with which weight) each of ``bins`` places occurs; places not below ``bins`` are dropped."""
    place = p.reshape(place, (place.numel,))
    amount = p.full(place.shape, 1, dtype) if weight is None else p.reshape(p.cast(weight, dtype), place.shape)
    total = p.scatter(p.full((bins + 1,), 0, dtype), place, amount, 0, "add")
    return p.slice_(total, (0,), (bins,), (1,))


def _histogram_reference(x, bins=100, min=0.0, max=0.0, weight=None, density=False):
    ends = (x.min(), x.max()) if min == max == 0 and x.size else (min, max)
    count = np.histogram(x, bins, ends, weights=weight, density=density)[0]
    return count.astype(np.float32) if density or weight is not None else count


def _positive_bins(name: str, bins: Any) -> int:
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise ArgumentError(f"{name}(): bins is {bins!r}; it must be a positive integer")
    return bins


@op(
    "histogram",
    operands=("input", "weight"),
    method=True,
    reference=_histogram_reference,
    samples=[(real(30), 5), (real(3, 7), 4, -1.0, 1.5), (real(20), 4, {"density": True}), (real(20), 4, -1, 1, positive(20))],
    tests="nograd",
    aliases={"x": "input"},
    tolerance=1e5,
)
def histogram(input, bins=100, min: Finite = 0.0, max: Finite = 0.0, weight=None, density=False):
    """How many elements fall into each of ``bins`` equal bins over [min, max], or the data's own range when both are 0.

    int64 counts; float32 weights where ``weight`` is given, or with ``density`` (whose integral is 1).
    """
    bins = _positive_bins("histogram", bins)
    x = input if dtypes.is_floating(input.dtype) and dtypes.itemsize(input.dtype) > 2 else p.cast(input, "float64")
    first, last = _range_of(x, float(min), float(max))
    count = counted(_bins_of(x, first, last, bins), weight, bins, "int64" if weight is None else "float32")
    if not density:
        return count
    count = p.cast(count, "float64")
    total = p.mul(p.reduce_sum(count, (0,)), p.reshape(p.cast(p.div(p.sub(last, first), float(bins)), "float64"), (1,)))
    return p.cast(p.div(count, p.broadcast_to(total, count.shape)), "float32")


@op(
    "histogram_bin_edges",
    operands=("input",),
    method=True,
    reference=lambda x, bins=100, min=0.0, max=0.0: np.histogram_bin_edges(
        x, bins, (x.min(), x.max()) if min == max == 0 else (min, max)
    ).astype(np.float32),
    samples=[(real(30), 5), (real(3, 7), 4, -1.0, 1.5)],
    tests="nograd noempty",
    aliases={"x": "input"},
    tolerance=1e4,
)
def histogram_bin_edges(input, bins=100, min: Finite = 0.0, max: Finite = 0.0):
    """The bins + 1 ends of histogram's bins, as float32."""
    bins = _positive_bins("histogram_bin_edges", bins)
    first, last = _range_of(p.cast(input, "float64"), float(min), float(max))
    return p.cast(_edges(first, last, bins), "float32")


def _edges(first: Value, last: Value, bins: int) -> Value:
    share = p.div(p.iota((bins + 1,), 0, first.dtype), float(bins))
    first, last = (p.broadcast_to(v, (bins + 1,)) for v in (first, last))
    return p.add(first, p.mul(p.sub(last, first), share))


def _histogramdd_reference(x, bins=10, ranges=None, density=False, weights=None):
    pairs = list(zip(ranges[::2], ranges[1::2], strict=True)) if ranges is not None else None
    count, edges = np.histogramdd(x, bins, pairs, density=density, weights=weights)
    return count, list(edges)


@op(
    "histogramdd",
    operands=("x", "weights"),
    method=True,
    reference=_histogramdd_reference,
    samples=[
        (real(20, 2), [3, 4]),
        (real(20, 3), 2, [-1.0, 1.0, -1.5, 1.5, -1.0, 2.0]),
        (real(20, 2), 3, None, True),
        (real(20, 1), 3, None, False, positive(20)),
    ],
    tests="nograd noshape noempty noscalar",
    tolerance=3,
)
def histogramdd(x, bins=10, ranges=None, density=False, weights=None):
    """(counts [b1, ..., bD], list of the D axes' bin ends) of N points x [N, D]; counts are floating.

    ranges: the leftmost and rightmost ends, axis after axis: [low1, high1, low2, high2, ...]; the data's own by default.
    """
    if x.ndim != 2 or not x.shape[0]:
        raise ShapeError(f"histogramdd(): x is {list(x.shape)}; it must be [N, D] with points")
    x = floating(x)
    depth = x.shape[1]
    if ranges is not None and not (
        isinstance(ranges, (list, tuple)) and all(isinstance(r, (int, float)) and not isinstance(r, bool) for r in ranges)
    ):
        raise ArgumentTypeError(message(f"histogramdd(): ranges is {describe(ranges)}", "it must be a list of numbers"))
    sizes = [_positive_bins("histogramdd", b) for b in (bins if isinstance(bins, (list, tuple)) else [bins] * depth)]
    if len(sizes) != depth or (ranges is not None and len(ranges) != 2 * depth):
        raise ArgumentError(message(f"histogramdd(): bins {bins} and ranges {ranges} do not fit points of {depth} coordinates"))
    place, outside, edges = p.full((x.shape[0],), 0, "int64"), p.full((x.shape[0],), False, "bool"), []
    volume = p.full((1,), 1, x.dtype)
    for k, size in enumerate(sizes):
        column = p.reshape(p.slice_(x, (0, k), (x.shape[0], 1), (1, 1)), (x.shape[0],))
        ends = (0.0, 0.0) if ranges is None else (float(ranges[2 * k]), float(ranges[2 * k + 1]))
        first, last = _range_of(column, *ends)
        at = _bins_of(column, first, last, size)
        outside = p.bitwise_or(outside, p.eq(at, size))
        place = p.add(p.mul(place, size), at)
        edges.append(_edges(first, last, size))
        volume = p.mul(volume, p.reshape(p.div(p.sub(last, first), float(size)), (1,)))
    total = math.prod(sizes)
    count = counted(p.select(outside, total, place), weights, total, x.dtype)
    if density:
        whole = p.mul(p.reduce_sum(count, (0,)), volume)
        count = p.div(count, p.broadcast_to(whole, count.shape))
    return p.reshape(count, tuple(sizes)), edges


@op(
    "",
    operands=("x", "weights"),
    reference=lambda x, weights=None, bins=0: np.bincount(x, weights, bins),
    samples=[(values(1, 0, 3, 1, dtype="int64"), None, 6), (values(1, 0, 3, 1, dtype="int32"), positive(4), 5)],
    tests="nograd noempty noscalar noshape",
)
def bincount_into(x, weights=None, bins=0):
    """How often each of 0 .. bins - 1 occurs in x (bincount with a known length); with weights, their sums."""
    dtype = "int64" if weights is None else floating(weights).dtype
    return counted(x, weights, bins, dtype)


@op(
    "linalg.cov",
    operands=("x", "fweights", "aweights"),
    method=True,
    reference=lambda x, rowvar=True, ddof=True, fweights=None, aweights=None: np.cov(
        x, rowvar=rowvar, ddof=int(ddof), fweights=fweights, aweights=aweights
    ),
    samples=[
        (real(3, 6),),
        (real(6, 3), False, False),
        (real(5),),
        (real(2, 5), True, True, values(1, 2, 1, 3, 2, dtype="int32"), positive(5)),
    ],
    tests="noshape noempty noscalar",
    tolerance=3,
)
def cov(x, rowvar=True, ddof=True, fweights=None, aweights=None):
    """The covariance matrix of variables in rows (or columns with ``rowvar=False``), by n - 1 (n with ``ddof=False``),
    with weights of the observations.
    """
    return covariance(floating(x), rowvar, 1 if ddof else 0, fweights, aweights)


def covariance(x: Value, rowvar: bool, ddof: int, fweights: Value | None, aweights: Value | None) -> Value:
    """The covariance matrix [V, V]; 0-D for one variable given as a vector."""
    if x.ndim > 2:
        raise ShapeError(f"cov(): x is {list(x.shape)}; it must have at most 2 axes")
    given = x.ndim
    x = p.reshape(x, (1, x.numel)) if given < 2 else x if rowvar else p.transpose(x, (1, 0))
    count = x.shape[1]
    weight = p.full((1, count), 1, dtypes.real_of(x.dtype))
    for w in (fweights, aweights):
        if w is not None:
            if w.shape != (count,):
                raise ShapeError(f"cov(): weights are {list(w.shape)}; there are {count} observations")
            weight = p.mul(weight, p.reshape(p.cast(w, weight.dtype), (1, count)))
    total = p.reduce_sum(weight, (1,))
    share = p.broadcast_to(p.cast(weight, x.dtype), x.shape)
    mean = p.div(p.reduce_sum(p.mul(x, share), (1,)), p.broadcast_to(p.cast(total, x.dtype), (x.shape[0], 1)))
    away = p.sub(x, p.broadcast_to(mean, x.shape))
    divisor = total
    if ddof and aweights is not None:
        again = p.reduce_sum(p.mul(weight, p.reshape(p.cast(aweights, weight.dtype), (1, count))), (1,))
        divisor = p.sub(total, p.div(again, total))
    elif ddof:
        divisor = p.sub(total, 1)
    other = p.transpose(p.mul(away, share), (1, 0))
    if dtypes.is_complex(x.dtype):
        other = p.conj(other)
    result = p.matmul(away, other)
    result = p.div(result, p.broadcast_to(p.cast(divisor, x.dtype), result.shape))
    return p.reshape(result, ()) if given < 2 else result


@op(
    "linalg.corrcoef",
    operands=("x",),
    method=True,
    reference=lambda x, rowvar=True: np.corrcoef(x, rowvar=rowvar),
    samples=[(real(3, 6),), (real(6, 3), False)],
    tests="noshape noempty noscalar",
    tolerance=3,
)
def corrcoef(x, rowvar=True):
    """The correlation matrix of variables in rows (or columns with ``rowvar=False``), within [-1, 1]."""
    matrix = covariance(floating(x), rowvar, 1, None, None)
    if not matrix.ndim:
        return p.div(matrix, matrix)
    count = matrix.shape[0]
    flat = p.reshape(matrix, (count * count,))
    spread = p.sqrt(p.slice_(flat, (0,), (count,), (count + 1,)))
    across, down = (p.broadcast_to(p.reshape(spread, s), matrix.shape) for s in ((1, count), (count, 1)))
    ratio = p.div(p.div(matrix, across), down)
    if dtypes.is_complex(ratio.dtype):
        return ratio
    return p.select(p.gt(ratio, 1), 1, p.select(p.lt(ratio, -1), -1, ratio))
