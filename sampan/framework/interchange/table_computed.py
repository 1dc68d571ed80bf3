"""Operators that the format has no operation for, written as the computation that they are: loops and formulas over its operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .emit import Emit, Handle
from .rows import writes
from .table_primitives import primitive
from .write_control import inner_block, scopes

#: Terms of the exponential's series for matrices of a norm below 1 / 2: the first left out is below 1e-19.
_TERMS = 17


def _loop(
    emit: Any,
    start: Sequence[Handle],
    captured: Sequence[Handle],
    runs: Callable[..., Handle],
    step: Callable[..., Sequence[Handle]],
) -> list[Handle]:
    """``while runs(emit, values): values = step(emit, values)``."""
    carried = [emit("assign", {"X": v}, {}, dtype=v.dtype, shape=v.shape) for v in start]
    condition = emit("assign", {"X": runs(emit, carried)}, {}, dtype="bool")
    number, writer = inner_block(emit.writer)
    inside = Emit(writer, emit.name, ())
    ends = [inside("assign", {"X": v}, {}, dtype=v.dtype, shape=v.shape) for v in step(inside, carried)]
    for source, target in zip(ends, carried, strict=True):
        inside("assign", {"X": source}, {}, (), into={"Out": target})
    inside("assign", {"X": runs(inside, carried)}, {}, (), into={"Out": condition})
    emit.writer.operation(
        "while",
        {"X": [h.name for h in (*carried, *captured)], "Condition": [condition.name]},
        {"Out": [*(h.name for h in carried), condition.name], "StepScopes": [scopes(emit.writer)]},
        {"sub_block:block": number, "is_test:b": True},
    )
    return [emit("assign", {"X": h}, {}, dtype=h.dtype, shape=h.shape) for h in carried]


def _map(emit: Any, kind: str, x: Any, y: Any, dtype: str = "") -> Any:
    """An elementwise operation; ``dtype``: of a comparison's result."""
    return emit(kind, {"X": x, "Y": y}, {"axis:i": -1} if not dtype else {}, dtype=dtype or x.dtype)


def _scaled(emit: Any, x: Any, scale: float, bias: float = 0.0) -> Any:
    return emit("scale", {"X": x}, {"scale:f": scale, "bias:f": bias, "bias_after_scale:b": True}, dtype=x.dtype)


def _where(emit: Any, condition: Any, x: Any, y: Any) -> Any:
    return emit("where", {"Condition": condition, "X": x, "Y": y}, {}, dtype=x.dtype)


def size_of(emit: Any, x: Any, axis: int) -> Any:
    """A size of a tensor, as an int32 tensor of one element."""
    sizes = emit("shape", {"Input": x}, {}, dtype="int32")
    bounds = {"axes:I": [0], "starts:I": [axis], "ends:I": [axis + 1], "infer_flags:I": [1], "decrease_axis:I": []}
    return emit("slice", {"Input": sizes}, bounds, dtype="int32")


# ---------------------------------------------------------------------- numbers


@primitive("gcd")
def write_gcd(emit: Any, x: Any, y: Any) -> Any:
    """Euclid's algorithm on all elements at once."""
    x, y = emit.scalar(x), emit.scalar(y)
    narrow = x.dtype if x.dtype not in ("int32", "int64") else ""
    x, y = (emit.cast(v, "int64") if narrow else v for v in (x, y))
    first, second = (emit("abs", {"X": v}, {}, repeats=True) for v in (x, y))
    pair = []
    for v, other in ((first, second), (second, first)):  # both in the shape that they broadcast to
        pair.append(_map(emit, "elementwise_add", v, _scaled(emit, other, 0.0)))

    def runs(emit: Any, values: Sequence[Any]) -> Any:
        rest = values[1]
        nonzero = _map(emit, "not_equal", rest, emit.filled(rest, 0), "bool")
        return emit("reduce_any", {"X": nonzero}, {"dim:L": [0], "keep_dim:b": False, "reduce_all:b": True}, dtype="bool")

    def step(emit: Any, values: Sequence[Any]) -> list[Any]:
        a, b = values
        zeros = emit.filled(b, 0)
        goes_on = _map(emit, "not_equal", b, zeros, "bool")
        rest = _map(emit, "elementwise_mod", a, _where(emit, goes_on, b, emit.filled(b, 1)))
        return [_where(emit, goes_on, b, a), _where(emit, goes_on, rest, zeros)]

    found = _loop(emit, pair, [], runs, step)[0]
    return emit.cast(found, narrow) if narrow else found


@primitive("gammainc")
def write_gammainc(emit: Any, x: Any, y: Any) -> Any:
    upper = emit("gammaincc", {"x": emit.scalar(x), "y": emit.scalar(y)}, {}, ("out",), repeats=True)
    return _scaled(emit, upper, -1.0, 1.0)


# ---------------------------------------------------------------------- matrices


@writes("lstsq")
def write_lstsq(emit: Any, x: Any, y: Any, rcond: Any, driver: Any) -> Any:
    x, y = emit.promoted(x, y)
    if -1 in x.shape[-2:] or x.dtype not in ("float32", "float64"):
        return NotImplemented
    cut = rcond if rcond is not None else float(np.finfo(x.dtype).eps) * max(x.shape[-2:])
    attributes = {"rcond:f": cut, "driver:s": driver or "gelsy"}
    solution, residuals, rank, values = emit(
        "lstsq", {"X": x, "Y": y}, attributes, ("Solution", "Residuals", "Rank", "SingularValues")
    )
    rank.dtype = emit.writer.block.variables[rank.name].dtype = "int32"
    return solution, residuals, rank, values


@primitive("matrix_exp")
def write_matrix_exp(emit: Any, x: Any) -> Any:
    """The series of x / 2^s, squared s times: s by each matrix's norm."""
    size = x.shape[-1]
    if size < 1 or x.dtype not in ("float32", "float64"):
        return NotImplemented
    rank = x.ndim
    sums = emit("reduce_sum", {"X": emit("abs", {"X": x}, {})}, {"dim:I": [rank - 2], "keep_dim:b": True, "reduce_all:b": False})
    norm = emit("reduce_max", {"X": sums}, {"dim:I": [rank - 1], "keep_dim:b": True, "reduce_all:b": False})
    count = emit("ceil", {"X": _scaled(emit, emit("log2", {"X": norm}, {}), 1.0, 1.0)}, {})
    count = _map(emit, "elementwise_max", count, emit.filled(count, 0.0))
    power = _map(emit, "elementwise_pow", emit.filled(count, 2.0), count)
    small = _map(emit, "elementwise_div", x, power)
    identity = emit("eye", {}, {"num_rows:l": size, "num_columns:l": size, "dtype:t": x.dtype}, dtype=x.dtype)
    total = _map(emit, "elementwise_add", _scaled(emit, small, 0.0), identity)
    for k in range(_TERMS, 0, -1):  # Horner's rule
        product = emit("matmul_v2", {"X": small, "Y": total}, {"trans_x:b": False, "trans_y:b": False})
        total = _map(emit, "elementwise_add", _scaled(emit, product, 1.0 / k), identity)
    zeros = _scaled(emit, x, 0.0)
    counts = _map(emit, "elementwise_add", zeros, count)
    top = emit("reduce_max", {"X": counts}, {"dim:I": [0], "keep_dim:b": False, "reduce_all:b": True})

    def runs(emit: Any, values: Sequence[Any]) -> Any:
        return _map(emit, "less_than", values[1], top, "bool")

    def step(emit: Any, values: Sequence[Any]) -> list[Any]:
        found, done = values
        squared = emit("matmul_v2", {"X": found, "Y": found}, {"trans_x:b": False, "trans_y:b": False})
        goes_on = _map(emit, "greater_than", counts, _map(emit, "elementwise_add", zeros, done), "bool")
        return [_where(emit, goes_on, squared, found), _scaled(emit, done, 1.0, 1.0)]

    return _loop(emit, [total, _scaled(emit, top, 0.0)], [zeros, counts, top], runs, step)[0]


# ---------------------------------------------------------------------- indices and lengths


@writes("index_fill")
def write_index_fill(emit: Any, x: Any, index: Any, axis: int, value: Any) -> Any:
    axis = axis % x.ndim if x.ndim else 0
    size = x.shape[axis] if x.ndim else -1
    if size < 1 or x.dtype in ("bool", "complex64", "complex128"):
        return NotImplemented
    place = _map(emit, "elementwise_mod", index, emit.filled(index, size))  # negative ones count from the end
    place = emit("reshape2", {"X": place}, {"shape:I": [-1]}, spare=("XShape",))
    hot = emit(
        "one_hot_v2", {"X": place}, {"depth:i": size, "dtype:t": "float32", "allow_out_of_range:b": False}, dtype="float32"
    )
    chosen = emit("reduce_max", {"X": hot}, {"dim:I": [0], "keep_dim:b": False, "reduce_all:b": False})
    row = emit("reshape2", {"X": chosen}, {"shape:I": [size if k == axis else 1 for k in range(x.ndim)]}, spare=("XShape",))
    zeros = emit("fill_any_like", {"X": x}, {"value:f": 0.0, "dtype:t": "float32"}, dtype="float32")
    mask = emit.cast(_map(emit, "elementwise_add", zeros, row), "bool")
    filled = emit.cast(emit.of(value), x.dtype)
    flat = emit("reshape2", {"X": filled}, {"shape:I": [1] * x.ndim}, spare=("XShape",))
    return _where(emit, mask, _map(emit, "elementwise_add", emit.filled(x, 0.0), flat), x)


@writes("length_mask")
def write_length_mask(emit: Any, x: Any, width: Any, dtype: Any) -> Any:
    if not isinstance(width, int):
        return NotImplemented
    return emit("sequence_mask", {"X": emit.of(x)}, {"maxlen:i": width, "out_dtype:t": dtype}, ("Y",), dtype=dtype)


# ---------------------------------------------------------------------- losses over alignments


def _reduced(emit: Any, loss: Any, reduction: str) -> Any:
    if reduction == "none":
        return loss
    return emit(
        "reduce_mean" if reduction == "mean" else "reduce_sum",
        {"X": loss},
        {"dim:I": [0], "keep_dim:b": False, "reduce_all:b": True},
    )


@writes("ctc_loss")
def write_ctc_loss(
    emit: Any,
    log_probs: Any,
    labels: Any,
    input_lengths: Any,
    label_lengths: Any,
    blank: int,
    reduction: str,
    norm_by_times: bool,
    zero_infinity: bool,
) -> Any:
    """The operation takes logits, as we do. norm_by_times changes gradients only."""
    lengths = [emit.cast(emit.of(v), "int64") for v in (input_lengths, label_lengths)]
    loss = emit(
        "warpctc",
        {"Logits": log_probs, "Label": emit.cast(labels, "int32"), "LogitsLength": lengths[0], "LabelLength": lengths[1]},
        {"blank:i": blank, "norm_by_times:b": norm_by_times},
        ("Loss",),
        spare=("WarpCTCGrad",),
    )
    loss = emit("squeeze2", {"X": loss}, {"axes:I": [-1]}, spare=("XShape",))
    if zero_infinity:
        infinite = emit("isinf_v2", {"X": loss}, {}, dtype="bool")
        loss = _where(emit, infinite, emit.filled(loss, 0.0), loss)
    if reduction == "mean":
        sizes = emit.cast(lengths[1], log_probs.dtype)
        loss = _map(emit, "elementwise_div", loss, _map(emit, "elementwise_max", sizes, emit.filled(sizes, 1.0)))
    return _reduced(emit, loss, reduction)


@writes("rnnt_loss")
def write_rnnt_loss(
    emit: Any,
    input: Any,
    label: Any,
    input_lengths: Any,
    label_lengths: Any,
    blank: int,
    fastemit_lambda: float,
    reduction: str,
) -> Any:
    inputs = {"input": input} | {
        slot: emit.cast(emit.of(v), "int32")
        for slot, v in (("label", label), ("input_lengths", input_lengths), ("label_lengths", label_lengths))
    }
    loss = emit("warprnnt", inputs, {"blank:i": blank, "fastemit_lambda:f": fastemit_lambda}, ("loss",), spare=("warprnntgrad",))
    return _reduced(emit, loss, reduction)


# ---------------------------------------------------------------------- attention


def _count(emit: Any, ones: Any, axis: int) -> Any:
    """1, 2, 3 … along an axis of a tensor of ones, less its length: 0 at the last place."""
    places = emit("cumsum", {"X": ones}, {"axis:i": axis, "exclusive:b": False, "reverse:b": False, "flatten:b": False})
    length = emit("reduce_max", {"X": places}, {"dim:I": [0], "keep_dim:b": False, "reduce_all:b": True})
    return _map(emit, "elementwise_sub", places, length)


@writes("attention")
def write_attention(emit: Any, queries: Any, keys: Any, values: Any, mask: Any, is_causal: bool, scale: Any) -> Any:
    """Products, a masked softmax and a product: for any lengths."""
    queries, keys, values = emit.promoted(queries, keys, values)
    width, lengths = queries.shape[3], (queries.shape[1], keys.shape[1])
    if queries.shape[2] != keys.shape[2] or width < 1 or queries.dtype not in ("float32", "float64"):
        return NotImplemented
    q, k, v = (emit("transpose2", {"X": x}, {"axis:I": [0, 2, 1, 3]}, spare=("XShape",)) for x in (queries, keys, values))
    factor = scale if scale is not None else 1.0 / math.sqrt(width)
    scores = _scaled(emit, emit("matmul_v2", {"X": q, "Y": k}, {"trans_x:b": False, "trans_y:b": True}), factor)
    seen = None
    if mask is not None and mask.dtype == "bool":
        seen = _map(emit, "elementwise_mul", emit.filled(scores, 1.0), emit.cast(mask, queries.dtype))
    elif mask is not None:
        scores = _map(emit, "elementwise_add", scores, emit.cast(mask, queries.dtype))
    if is_causal:
        ones = emit.filled(scores, 1.0)
        if -1 in lengths:
            visible = emit.cast(_map(emit, "less_equal", _count(emit, ones, 3), _count(emit, ones, 2), "bool"), queries.dtype)
        else:
            visible = emit("tril_triu", {"X": ones}, {"diagonal:i": lengths[1] - lengths[0], "lower:b": True})
        seen = visible if seen is None else _map(emit, "elementwise_mul", seen, visible)
    if seen is not None:
        scores = _where(emit, emit.cast(seen, "bool"), scores, emit.filled(scores, -math.inf))
    weights = emit("softmax", {"X": scores}, {"axis:i": -1})
    if seen is not None:  # a query that sees no key gets zeros
        some = emit("reduce_max", {"X": seen}, {"dim:I": [3], "keep_dim:b": True, "reduce_all:b": False})
        some = emit.cast(_map(emit, "elementwise_add", emit.filled(scores, 0.0), some), "bool")
        weights = _where(emit, some, weights, emit.filled(weights, 0.0))
    out = emit("matmul_v2", {"X": weights, "Y": v}, {"trans_x:b": False, "trans_y:b": False})
    return emit("transpose2", {"X": out}, {"axis:I": [0, 2, 1, 3]}, spare=("XShape",))
