"""How primitives are written: what recorded operators without a row of their own come down to.

Every function takes ``emit``, the operands and the primitive's attributes, and gives the result; NotImplemented where the format cannot say it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...base import dtypes

PRIMITIVE_WRITERS: dict[str, Callable[..., Any]] = {}


@dataclass(frozen=True)
class FromEnd:
    """A number that depends on an unknown size: the size plus ``offset``; None: in another way."""

    offset: int | None


class Copied(FromEnd):
    """The unknown size that the operand has at the same place."""


def primitive(*names: str) -> Callable[..., Any]:
    """The decorated function writes primitives of these names."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            PRIMITIVE_WRITERS[name] = function
        return function

    return decorate


_MAPS = {
    "sign": "sign", "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "log2": "log2", "log10": "log10", "sqrt": "sqrt",
    "rsqrt": "rsqrt", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "sigmoid": "sigmoid", "erf": "erf",
    "erfinv": "erfinv", "lgamma": "lgamma", "digamma": "digamma", "floor": "floor", "ceil": "ceil", "round": "round", "trunc": "trunc",
    "isnan": "isnan_v2", "isinf": "isinf_v2", "isfinite": "isfinite_v2", "bitwise_not": "bitwise_not", "conj": "conj", "abs": "abs",
    "real": "real", "imag": "imag", "angle": "angle", "gelu": "gelu",
    "add": "elementwise_add", "sub": "elementwise_sub", "mul": "elementwise_mul", "div": "elementwise_div", "floordiv": "elementwise_floordiv",
    "mod": "elementwise_mod", "pow": "elementwise_pow", "maximum": "elementwise_max", "minimum": "elementwise_min", "fmax": "elementwise_fmax",
    "fmin": "elementwise_fmin", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor", "eq": "equal",
    "ne": "not_equal", "lt": "less_than", "le": "less_equal", "gt": "greater_than", "ge": "greater_equal", "make_complex": "complex",
}  # fmt: skip
_OTHER_SLOTS = {"atan2": ("atan2", "X1", "X2", "Out")} | {
    name: (kind, "x", "y", "out")
    for name, kind in {
        "nextafter": "nextafter", "copysign": "copysign", "shift_left": "bitwise_left_shift", "shift_right": "bitwise_right_shift",
        "gammaincc": "gammaincc", "i0": "i0", "i0e": "i0e", "i1": "i1", "i1e": "i1e",
    }.items()
}  # fmt: skip
_WITH_AXIS = frozenset("elementwise_add elementwise_sub elementwise_mul elementwise_div elementwise_max elementwise_min".split())


def _map(kind: str, slots: Sequence[str], result: str) -> Callable[..., Any]:
    def write(emit: Any, *operands: Any, **attributes: Any) -> Any:
        extra = {"axis:i": -1} if kind in _WITH_AXIS else {"is_arithmetic:b": True} if kind.endswith("_shift") else {}
        handles, is_lazy = _spread_out(emit, operands)
        made = emit(kind, dict(zip(slots, handles, strict=False)), extra, (result,), repeats=True)
        made.is_lazy = is_lazy
        return made

    return write


def _spread_out(emit: Any, operands: Sequence[Any]) -> tuple[list[Any], bool]:
    """(what an elementwise operation takes, whether its result has less than its shape says): numbers as 0-D, one whole where nothing else is."""
    handles, is_lazy = [emit.scalar(v) for v in operands], _is_lazy(operands)
    for k, v in enumerate(operands) if is_lazy else ():
        if v.value is not None and v.shape and -1 not in v.shape:
            handles[k] = emit.of(v)
            return handles, False
    return handles, is_lazy


def _is_lazy(operands: Sequence[Any]) -> bool:
    """Whether an elementwise result has less than its shape says: no operand has all of it."""
    return all(v.is_lazy or v.value is not None for v in operands) and any(v.is_lazy or v.shape for v in operands)


for _name, _kind in _MAPS.items():
    PRIMITIVE_WRITERS[_name] = _map(_kind, ("X", "Y"), "Out")
for _name, (_kind, *_slots, _result) in _OTHER_SLOTS.items():
    PRIMITIVE_WRITERS[_name] = _map(_kind, _slots, _result)


@primitive("neg")
def neg(emit: Any, x: Any) -> Any:
    (handle,), is_lazy = _spread_out(emit, (x,))
    made = emit("scale", {"X": handle}, {"scale:f": -1.0, "bias:f": 0.0, "bias_after_scale:b": True}, repeats=True)
    made.is_lazy = is_lazy
    return made


@primitive("erfc")
def erfc(emit: Any, x: Any) -> Any:
    return emit("scale", {"X": emit("erf", {"X": x}, {})}, {"scale:f": -1.0, "bias:f": 1.0, "bias_after_scale:b": True})


@primitive("select")
def select(emit: Any, condition: Any, x: Any, y: Any) -> Any:
    operands = [emit.scalar(v) for v in (condition, x, y)]
    whole = [v for v, given in zip(operands, (condition, x, y), strict=True) if not v.is_lazy and given.value is None]
    if len(whole) < 3:  # this operation does not broadcast; adding zeros does
        if not whole or "bool" in (operands[1].dtype, operands[2].dtype):
            return NotImplemented
        operands = [v if v in whole else _spread(emit, v, whole[0]) for v in operands]
    return emit("where", dict(zip(("Condition", "X", "Y"), operands, strict=True)), {}, dtype=operands[1].dtype)


def _spread(emit: Any, value: Any, like: Any) -> Any:
    """The value repeated to the shape of another tensor."""
    dtype = "int32" if value.dtype == "bool" else value.dtype
    zeros = emit("fill_any_like", {"X": like}, {"value:f": 0.0, "dtype:t": dtype}, dtype=dtype)
    made = emit("elementwise_add", {"X": emit.cast(value, dtype), "Y": zeros}, {"axis:i": -1}, dtype=dtype, repeats=True)
    return emit.cast(made, value.dtype)


@primitive("cast")
def cast(emit: Any, x: Any, dtype: str) -> Any:
    made = emit.cast(x, dtype)
    made.is_lazy = x.is_lazy or (x.value is not None and -1 in x.shape)
    return made


@primitive("detach")
def detach(emit: Any, x: Any) -> Any:
    return x


def _reduce(kind: str) -> Callable[..., Any]:
    letter = "L" if kind in ("reduce_any", "reduce_all") else "I"

    def write(emit: Any, x: Any, axes: Any) -> Any:
        if not axes:
            return x
        return emit(kind, {"X": x}, {f"dim:{letter}": list(axes), "keep_dim:b": True, "reduce_all:b": len(axes) == x.ndim})

    return write


for _kind in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all"):
    PRIMITIVE_WRITERS[_kind] = _reduce(_kind)


@primitive("reduce_argmax", "reduce_argmin")
def reduce_arg(emit: Any, x: Any, axes: Any) -> Any:
    if len(axes) != 1:
        return NotImplemented
    kind = "arg_max" if emit.name == "reduce_argmax" else "arg_min"
    return emit(kind, {"X": x}, {"axis:l": axes[0], "keepdims:b": True, "flatten:b": False, "dtype:t": "int64"})


def _sizes(shape: Any) -> list[int] | None:
    """The sizes, -1 for unknown ones; None where one is a part of an unknown size only."""
    found = [-1 if isinstance(n, FromEnd) else int(n) for n in shape]
    return found if all(not isinstance(n, FromEnd) or n.offset == 0 for n in shape) else None


@primitive("reshape")
def reshape(emit: Any, x: Any, shape: Any) -> Any:
    sizes = [-1 if isinstance(n, FromEnd) else int(n) for n in shape]
    if sizes.count(-1) > 1:  # 0 stands for the operand's own size
        sizes = [0 if isinstance(n, Copied) else size for n, size in zip(shape, sizes, strict=True)]
    if sizes.count(-1) > 1:
        return NotImplemented
    if x.value is not None:
        return emit.renumbered(x, sizes)
    return emit("reshape2", {"X": x}, {"shape:I": sizes}, spare=("XShape",))


@primitive("transpose")
def transpose(emit: Any, x: Any, order: Any) -> Any:
    return emit("transpose2", {"X": x}, {"axis:I": list(order)}, spare=("XShape",))


@primitive("broadcast_to")
def broadcast_to(emit: Any, x: Any, shape: Any) -> Any:
    sizes = _sizes(shape)
    if sizes is None:
        return NotImplemented
    if x.value is not None:
        return emit.renumbered(x, sizes)
    own = [1] * (len(sizes) - x.ndim) + list(x.shape)
    if x.is_lazy or any(n == -1 and m != -1 for n, m in zip(sizes, own, strict=True)):
        padded = x if len(sizes) == x.ndim else emit("reshape2", {"X": x}, {"shape:I": own}, spare=("XShape",), repeats=True)
        return emit.lazy(padded, sizes)
    return emit("expand_v2", {"X": x}, {"shape:I": sizes})


@primitive("slice")
def slice_(emit: Any, x: Any, starts: Any, sizes: Any, steps: Any) -> Any:
    axes, firsts, lasts, strides = [], [], [], []
    for axis, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True)):
        if step == 1 and start == 0 and size == (x.shape[axis] if not isinstance(size, FromEnd) else FromEnd(0)):
            continue
        bounds = _bounds(start, size, step)
        if bounds is None:
            return NotImplemented
        axes.append(axis)
        firsts.append(bounds[0])
        lasts.append(bounds[1])
        strides.append(step)
    if not axes:
        return x
    picked = {"axes:I": axes, "starts:I": firsts, "ends:I": lasts, "infer_flags:I": [1] * len(axes), "decrease_axis:I": []}
    if all(step == 1 for step in strides):
        return emit("slice", {"Input": x}, picked)
    return emit("strided_slice", {"Input": x}, {**picked, "strides:I": strides})


def _bounds(start: Any, size: Any, step: int) -> tuple[int, int] | None:
    """(start, end) as the format counts them: negative ones from the end."""
    if isinstance(start, FromEnd):
        if step == 1 and start.offset is not None and start.offset < 0 and isinstance(size, int):
            return start.offset, start.offset + size or 2**31 - 1
        if step == -1 and start.offset == -1 and isinstance(size, FromEnd) and size.offset == 0:
            return -1, -(2**31) + 1
        return None
    if isinstance(size, FromEnd) and size.offset is None:
        return None
    if isinstance(size, FromEnd):  # to the end, or short of it by a fixed number
        short = size.offset + start
        return (start, short or 2**31 - 1) if step == 1 and short <= 0 else None
    end = start + size * step
    return start, end if step > 0 or end >= 0 else -(2**31) + 1


@primitive("concat")
def concat(emit: Any, *xs: Any, axis: int) -> Any:
    return emit("concat", {"X": list(xs)}, {"axis:i": axis})


@primitive("pad")
def pad(emit: Any, x: Any, low: Any, high: Any, value: Any) -> Any:
    widths = [n for pair in zip(low, high, strict=True) for n in pair]
    if any(isinstance(n, FromEnd) or n < 0 for n in widths):
        return NotImplemented
    return emit("pad", {"X": x}, {"paddings:I": widths, "pad_value:f": float(value)})


@primitive("iota")
def iota(emit: Any, shape: Any, axis: int, dtype: str) -> Any:
    if any(isinstance(n, FromEnd) for n in shape):
        return NotImplemented
    bounds = {slot: emit.constant(n, dtype, []) for slot, n in (("Start", 0), ("End", shape[axis]), ("Step", 1))}
    line = emit("range", bounds, {}, dtype=dtype)
    if len(shape) == 1:
        return line
    row = emit(
        "reshape2", {"X": line}, {"shape:I": [shape[axis] if k == axis else 1 for k in range(len(shape))]}, spare=("XShape",)
    )
    return emit("expand_v2", {"X": row}, {"shape:I": list(shape)})


@primitive("matmul")
def matmul(emit: Any, x: Any, y: Any) -> Any:
    return emit("matmul_v2", {"X": x, "Y": y}, {"trans_x:b": False, "trans_y:b": False})


@primitive("gather")
def gather(emit: Any, x: Any, index: Any, axis: int, allow_negative: bool = True) -> Any:
    if index.ndim == 1:
        return emit("gather", {"X": x, "Index": index}, {"axis:i": axis})
    sizes = [*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]]
    if sizes.count(-1) > 1:
        return NotImplemented
    flat = emit("reshape2", {"X": index}, {"shape:I": [-1]}, spare=("XShape",))
    rows = emit("gather", {"X": x, "Index": flat}, {"axis:i": axis}, dtype=x.dtype)
    return emit("reshape2", {"X": rows}, {"shape:I": sizes}, spare=("XShape",))


@primitive("gather_nd")
def gather_nd(emit: Any, x: Any, index: Any) -> Any:
    return emit("gather_nd", {"X": x, "Index": index}, {})


@primitive("gather_elements")
def gather_elements(emit: Any, x: Any, index: Any, axis: int, allow_negative: bool = True) -> Any:
    return emit("take_along_axis", {"Input": x, "Index": index}, {"Axis:i": axis}, ("Result",))


@primitive("scatter_nd")
def scatter_nd(emit: Any, x: Any, index: Any, updates: Any, mode: str) -> Any:
    return emit("scatter_nd_add", {"X": x, "Index": index, "Updates": updates}, {}) if mode == "add" else NotImplemented


@primitive("scatter_elements")
def scatter_elements(emit: Any, x: Any, index: Any, updates: Any, axis: int, mode: str, allow_negative: bool = True) -> Any:
    names = {"set": "assign", "add": "add", "mul": "multiply", "max": "amax", "min": "amin"}
    attributes = {"Axis:i": axis, "Reduce:s": names[mode], "Include_self:b": True}
    return emit("put_along_axis", {"Input": x, "Index": index, "Value": updates}, attributes, ("Result",))


@primitive("scatter")
def scatter(emit: Any, x: Any, index: Any, updates: Any, axis: int, mode: str, allow_negative: bool = True) -> Any:
    if mode == "add" and index.ndim == 1:
        return emit("index_add", {"X": x, "Index": index, "AddValue": emit.of(updates)}, {"axis:i": axis})
    if mode == "set" and index.ndim == 1 and axis == 0:
        return emit("scatter", {"X": x, "Ids": index, "Updates": emit.of(updates)}, {"overwrite:b": True})
    return NotImplemented


@primitive("insert_slice")
def insert_slice(emit: Any, x: Any, part: Any, starts: Any, sizes: Any, steps: Any) -> Any:
    if any(isinstance(n, FromEnd) for n in (*starts, *sizes)):
        return NotImplemented
    ends = [a + n * s for a, n, s in zip(starts, sizes, steps, strict=True)]
    attributes = {
        "dtype:t": x.dtype,
        "axes:L": list(range(len(starts))),
        "starts:L": list(starts),
        "ends:L": [e if s > 0 or e >= 0 else -(2**31) for e, s in zip(ends, steps, strict=True)],
        "steps:L": list(steps),
        "decrease_axes:L": [],
        "none_axes:L": [],
        "shape:L": [],
        "values:scalars": [],
    }
    return emit("set_value", {"Input": x, "ValueTensor": emit.of(part)}, attributes)


_SCANS = {"sum": "cumsum", "prod": "cumprod", "logaddexp": "logcumsumexp", "max": "cummax", "min": "cummin"}


@primitive("scan")
def scan(emit: Any, x: Any, kind: str, axis: int, reverse: int, exclusive: int) -> Any:
    if kind in ("max", "min"):
        if reverse or exclusive:
            return NotImplemented
        return emit(_SCANS[kind], {"x": x}, {"axis:i": axis, "dtype:t": "int64"}, ("out", "indices"))
    place = "dim:i" if kind == "prod" else "axis:i"
    attributes = {place: axis, "exclusive:b": bool(exclusive), "reverse:b": bool(reverse)}
    return emit(_SCANS[kind], {"X": x}, attributes if kind == "prod" else {**attributes, "flatten:b": False})


@primitive("searchsorted")
def searchsorted(emit: Any, row: Any, x: Any, right: int) -> Any:
    if row.ndim != 1:
        return NotImplemented
    return emit("searchsorted", {"SortedSequence": row, "Values": x}, {"out_int32:b": False, "right:b": bool(right)})


@primitive("svd")
def svd(emit: Any, x: Any, full_matrices: bool) -> Any:
    return emit("svd", {"X": x}, {"full_matrices:b": full_matrices}, ("U", "S", "VH"))


@primitive("solve")
def solve(emit: Any, x: Any, y: Any) -> Any:
    return emit("solve", {"X": x, "Y": y}, {})


@primitive("inverse")
def inverse(emit: Any, x: Any) -> Any:
    return emit("inverse", {"Input": x}, {}, ("Output",))


@primitive("triangular_solve")
def triangular_solve(emit: Any, a: Any, b: Any, upper: bool, unit: bool) -> Any:
    return emit("triangular_solve", {"X": a, "Y": b}, {"upper:b": upper, "transpose:b": False, "unitriangular:b": unit})


def _transform(axes: Sequence[int], inverse: bool) -> dict[str, Any]:
    """The attributes of a transform that divides by nothing."""
    return {"axes:L": list(axes), "normalization:s": "forward" if inverse else "backward", "forward:b": not inverse}


@primitive("fft_c2c")
def fft_c2c(emit: Any, x: Any, axes: Any, inverse: bool) -> Any:
    if dtypes.is_complex(x.dtype):
        return emit("fft_c2c", {"X": x}, _transform(axes, inverse))
    return emit("fft_r2c", {"X": x}, {**_transform(axes, inverse), "onesided:b": False})


@primitive("fft_r2c")
def fft_r2c(emit: Any, x: Any, axis: int, inverse: bool) -> Any:
    return emit("fft_r2c", {"X": x}, {**_transform([axis], inverse), "onesided:b": True})


@primitive("fft_c2r")
def fft_c2r(emit: Any, x: Any, axis: int, n: int) -> Any:
    return emit("fft_c2r", {"X": x}, {**_transform([axis], True), "last_dim_size:l": n})


@primitive("sort")
def sort(emit: Any, x: Any, axis: int, descending: int) -> Any:
    return emit("argsort", {"X": x}, {"axis:i": axis, "descending:b": bool(descending), "stable:b": True}, ("Out", "Indices"))


@primitive("topk")
def topk(emit: Any, x: Any, k: int, axis: int, largest: int, sorted: int) -> Any:
    return emit(
        "top_k_v2", {"X": x}, {"k:i": k, "axis:i": axis, "largest:b": bool(largest), "sorted:b": bool(sorted)}, ("Out", "Indices")
    )


@primitive("check_index")
def check_index(emit: Any, index: Any, *others: Any, **attributes: Any) -> Any:
    """A check of values, which the format's operations make themselves."""
    return index


@primitive("require")
def require(emit: Any, x: Any, *conditions: Any, **attributes: Any) -> Any:
    """A check of values, which the format's operations make themselves."""
    return x
