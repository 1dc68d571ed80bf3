"""Rows of reductions, scans, order and statistics."""

from __future__ import annotations

from typing import Any

from ...base.errors import UnsupportedError
from ...tensor import OPS, composed
from .rows import row, table, writes

_REDUCTIONS = {
    "sum": "reduce_sum", "mean": "reduce_mean", "max": "reduce_max", "min": "reduce_min", "prod": "reduce_prod", "all": "reduce_all",
    "any": "reduce_any", "amax": "reduce_amax", "amin": "reduce_amin",
}  # fmt: skip
#: Whose list of axes is of 64-bit integers.
_LONG_AXES = frozenset({"all", "any", "amax", "amin"})


def _reduction(ours: str, program: str) -> None:
    function = OPS[ours]

    @row(
        f"{program}(X, AxisTensor=axis, AxisTensorList=axis) {{dim:A=axis, keep_dim:b=keepdim, out_dtype:t=dtype}}",
        f"{ours}(x, axis:A) {{axis:A, dims:A=axis}}",
        tensors="x",
    )
    def read(x: Any, axis: Any = None, keepdim: bool = False, reduce_all: bool = False, dtype: Any = None) -> Any:
        extra = {"dtype": dtype} if dtype is not None and ours == "sum" else {}
        return function(x, None if reduce_all else axis, keepdim=keepdim, **extra)

    @writes(ours)
    def write(emit: Any, x: Any, axis: Any, keepdim: bool, dtype: Any = None) -> Any:
        axes = [] if axis is None else list(axis) if isinstance(axis, (list, tuple)) else [axis]
        axes = axes or list(range(x.ndim))
        attributes = {
            f"dim:{'L' if ours in _LONG_AXES else 'I'}": axes or [0],
            "keep_dim:b": keepdim,
            "reduce_all:b": len(axes) == x.ndim,
        }
        if ours in ("sum", "prod", "mean"):
            x = emit.cast(x, emit.result_dtype())
        return emit(program, {"X": x}, attributes)


for _ours, _program in _REDUCTIONS.items():
    _reduction(_ours, _program)


@row("mean(X)", "mean_all(x)")
def mean_all(x: Any) -> Any:
    return OPS["mean"](x)


@row("logsumexp(X) {axis:A}", "logsumexp(x) {axis:A}")
def logsumexp(x: Any, axis: Any = None, keepdim: bool = False, reduce_all: bool = False) -> Any:
    return OPS["logsumexp"](x, None if reduce_all else axis, keepdim)


@writes("logsumexp")
def write_logsumexp(emit: Any, x: Any, axis: Any, keepdim: bool) -> Any:
    axes = [] if axis is None else list(axis) if isinstance(axis, (list, tuple)) else [axis]
    return emit("logsumexp", {"X": x}, {"axis:I": axes or [0], "keepdim:b": keepdim, "reduce_all:b": not axes})


def _arg(ours: str, program: str) -> None:
    @row(f"{program}(X) {{axis:i, dtype:t}}", f"{ours}(x, axis:i)", tensors="x")
    def read(x: Any, axis: Any = 0, keepdims: bool = False, flatten: bool = False, dtype: Any = "int64") -> Any:
        return OPS[ours](x, None if flatten else axis, keepdims, dtype or "int64")

    @writes(ours)
    def write(emit: Any, x: Any, axis: Any, keepdim: bool, dtype: Any) -> Any:
        return emit(
            program,
            {"X": x},
            {
                "axis:l": 0 if axis is None else axis,
                "keepdims:b": keepdim,
                "flatten:b": axis is None,
                "dtype:t": emit.result_dtype(),
            },
        )


_arg("argmax", "arg_max")
_arg("argmin", "arg_min")


@row("cumsum(X)", "cumsum(x, axis:i)", tensors="x")
def cumsum(x: Any, axis: int = -1, flatten: bool = False, exclusive: bool = False, reverse: bool = False) -> Any:
    return _scanned(lambda v, a: OPS["cumsum"](v, a), x, axis, flatten, exclusive, reverse)


@row("cumprod(X)", "cumprod(x)", tensors="x")
def cumprod(x: Any, dim: int = -1, exclusive: bool = False, reverse: bool = False) -> Any:
    return _scanned(lambda v, a: OPS["cumprod"](v, a), x, dim, False, exclusive, reverse)


@row("logcumsumexp(X)", "logcumsumexp(x)")
def logcumsumexp(x: Any, axis: int = -1, flatten: bool = False, exclusive: bool = False, reverse: bool = False) -> Any:
    return _scanned(lambda v, a: OPS["logcumsumexp"](v, a), x, axis, flatten, exclusive, reverse)


def _scanned(scan: Any, x: Any, axis: int, flatten: bool, exclusive: bool, reverse: bool) -> Any:
    if exclusive:
        raise UnsupportedError("an exclusive scan (cumsum, cumprod or logcumsumexp with exclusive=True) is not supported")
    if flatten:
        x, axis = OPS["flatten"](x), 0
    turned = OPS["flip"](x, [axis]) if reverse else x
    result = scan(turned, axis)
    return OPS["flip"](result, [axis]) if reverse else result


@writes("cumsum", "logcumsumexp")
def write_cumsum(emit: Any, x: Any, axis: Any, dtype: Any) -> Any:
    x = emit.cast(x, emit.result_dtype())
    return emit(
        emit.name,
        {"X": x},
        {"axis:i": -1 if axis is None else axis, "flatten:b": axis is None, "exclusive:b": False, "reverse:b": False},
    )


@writes("cumprod")
def write_cumprod(emit: Any, x: Any, dim: Any, dtype: Any) -> Any:
    x = emit.cast(x, emit.result_dtype())
    if dim is None:
        x, dim = emit("flatten_contiguous_range", {"X": x}, {"start_axis:i": 0, "stop_axis:i": -1}), 0
    return emit("cumprod", {"X": x}, {"dim:i": dim, "exclusive:b": False, "reverse:b": False})


table("""
kthvalue | kthvalue(X) {k:i, axis:i, keepdim:b} -> Out, Indices
mode | mode(X) {axis:i, keepdim:b} -> Out, Indices
dist | dist(X, Y) {p:f}
searchsorted | searchsorted(SortedSequence=sorted_sequence, Values=values) {out_int32:b, right:b} | searchsorted(sorted_sequence, values)
reduce_as | reduce_as(x=x, target=target) -> out
is_empty
numel | size(Input=x) | numel(x)
""")


def _winner(name: str) -> None:
    @row(f"{name}(x=x) {{dtype:t}} -> out, indices", f"{name}(x)", tensors="x")
    def read(x: Any, axis: int = -1, dtype: Any = "int64") -> Any:
        return tuple(OPS[name](x, axis, dtype))

    @writes(name)
    def write(emit: Any, x: Any, axis: Any, dtype: Any) -> Any:
        if axis is None:
            x, axis = emit("flatten_contiguous_range", {"X": x}, {"start_axis:i": 0, "stop_axis:i": -1}), 0
        return emit(name, {"x": x}, {"axis:i": axis, "dtype:t": str(dtype)}, ("out", "indices"))


_winner("cummax")
_winner("cummin")


@row("argsort(X) -> Out, Indices", "argsort(x)")
def argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = False) -> Any:
    order = OPS["argsort"](x, axis, descending, stable)
    return (OPS["take_along_axis"](x, order, axis) if len(x.shape) else x), order


@writes("argsort")
def write_argsort(emit: Any, x: Any, axis: int, descending: bool, stable: bool) -> Any:
    return emit(
        "argsort", {"X": x}, {"axis:i": axis, "descending:b": descending, "stable:b": stable}, ("", "Indices"), spare=("Out",)
    )


@writes("sort")
def write_sort(emit: Any, x: Any, axis: int, descending: bool, stable: bool) -> Any:
    return emit(
        "argsort", {"X": x}, {"axis:i": axis, "descending:b": descending, "stable:b": stable}, ("Out", ""), spare=("Indices",)
    )


@row("top_k_v2(X, K=k) {k:i} -> Out, Indices;top_k(X, K=k) {k:i} -> Out, Indices", "topk(x, k:i)", tensors="x")
def topk(x: Any, k: int = 1, axis: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return tuple(OPS["topk"](x, k, axis, largest, sorted))


@writes("topk")
def write_topk(emit: Any, x: Any, k: int, axis: Any, largest: bool, sorted: bool) -> Any:
    attributes = {"k:i": k, "axis:i": -1 if axis is None else axis, "largest:b": largest, "sorted:b": sorted}
    return emit("top_k_v2", {"X": x}, attributes, ("Out", "Indices"))


@row("p_norm(X)", "p_norm(x)")
def p_norm(
    x: Any, porder: float = 2.0, axis: int = -1, epsilon: float = 0.0, keepdim: bool = False, asvector: bool = False
) -> Any:
    return OPS["vector_norm"](x, porder, None if asvector else axis, keepdim)


@row("renorm(X)", "renorm(x)", tensors="x")
def renorm(x: Any, p: float = 2.0, axis: int = 0, max_norm: float = 1.0) -> Any:
    return OPS["renorm"](x, p, axis, max_norm)


@writes("renorm")
def write_renorm(emit: Any, x: Any, p: float, axis: int, max_norm: float) -> Any:
    return emit("renorm", {"X": x}, {"p:f": p, "axis:i": axis % x.ndim, "max_norm:f": max_norm})


@row("frobenius_norm(X) {dim:A=axis}", "frobenius_norm(x, axis:A)", tensors="x")
def frobenius_norm(x: Any, axis: Any = None, keep_dim: bool = False, reduce_all: bool = False, out_dtype: int = -1) -> Any:
    return OPS["vector_norm"](x, 2.0, None if reduce_all else axis, keep_dim)


@row("squared_l2_norm(X)", "squared_l2_norm(x)")
def squared_l2_norm(x: Any) -> Any:
    return OPS["reshape"](OPS["sum"](OPS["square"](x)), [1])


@row("norm(X) -> Out, Norm", "norm(x)")
def norm(x: Any, axis: int = -1, epsilon: float = 1e-10) -> Any:
    length = OPS["sqrt"](OPS["add"](OPS["sum"](OPS["square"](x), axis, keepdim=True), epsilon))
    return OPS["divide"](x, length), length


@row("nanmedian(X) {axis:A} -> Out, MedianIndex", "nanmedian(x) {axis:A}")
def nanmedian(x: Any, axis: Any = None, keepdim: bool = False, mode: str = "avg") -> Any:
    if isinstance(axis, (list, tuple)) and len(axis) == 1:  # of one axis there is a position too
        (axis,) = axis
    return OPS["nanmedian"](x, axis, keepdim, mode)


@row("median(x=x, AxisTensor=axis, AxisTensorList=axis) {axis:A} -> out", "median(x) {axis:A}", tensors="x")
def median(x: Any, axis: Any = None, keepdim: bool = False, mode: str = "avg") -> Any:
    return OPS["median"](x, axis, keepdim, mode)


@row("histogram(X=input, Weight=weight)", "histogram(input, weight)", tensors="input weight")
def histogram(input: Any, weight: Any = None, bins: int = 100, min: float = 0.0, max: float = 0.0, density: bool = False) -> Any:
    return OPS["histogram"](input, bins, min, max, weight, density)


@row("bincount(X, Weights=weights)", "bincount(x, weights, minlength:i)", tensors="x weights")
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    return composed.bincount(x, weights, minlength)


@row("where_index(Condition=condition)", "nonzero(condition)")
def nonzero(condition: Any) -> Any:
    return composed.nonzero(condition)


@row("masked_select(X, Mask=mask) -> Y", "masked_select(x, mask)")
def masked_select(x: Any, mask: Any) -> Any:
    return composed.masked_select(x, mask)


@row("unique(X) {dtype:t, axis:A} -> Out, Indices, Index, Counts", "unique(x) {axis:A}")
def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    dtype: Any = "int64",
    is_sorted: bool = True,
) -> Any:
    axis = axis[0] if isinstance(axis, list) else axis
    found = composed.unique(x, True, True, True, axis, dtype or "int64")
    return tuple(found)
