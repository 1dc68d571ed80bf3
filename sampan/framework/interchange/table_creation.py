"""Rows of tensors that are made of numbers: constants, ranges, identity."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import dtypes
from ...base.errors import UnsupportedError
from ...tensor import OPS
from ...tensor.variable import Variable
from .rows import row, table, writes
from .values import Known, to_plain


def known(values: Any, dtype: str) -> Known:
    """An array whose content the model file holds."""
    return Known(np.asarray(values, dtypes.numpy_dtype(dtype)))


@row("fill_constant(ValueTensor=value, ShapeTensor=shape, ShapeTensorList*=shape:L) {dtype:t, shape:L}", "-", tensors=" ")
def fill_constant(
    value: Any = 0.0, shape: Any = (), dtype: Any = "float32", str_value: str = "", force_cpu: bool = False, place_type: int = 0
) -> Any:
    number = to_plain(value)
    if str_value:  # the exact value; the other attribute is a float32
        number = int(str_value) if dtypes.is_integer(dtype) and str_value.lstrip("-").isdigit() else float(str_value)
    return _filled(shape, number, dtype)


@row("-", "full() {shape, value, dtype};full_with_tensor(value, shape:L)", tensors=" ")
def full(value: Any = 0.0, shape: Any = (), dtype: Any = "float32") -> Any:
    return _filled(shape, to_plain(value), dtype)


def _filled(shape: Any, number: Any, dtype: str | None) -> Any:
    sizes = list(shape)
    if isinstance(number, Variable):
        return OPS["full"](sizes, OPS["reshape"](number, []), dtype or "float32")
    number = np.asarray(number).reshape(-1)[0]
    if any(isinstance(n, Variable) for n in sizes):
        return OPS["full"](sizes, number.item(), dtype or "float32")
    if min(sizes, default=0) < 0:
        raise UnsupportedError(f"a constant of shape {sizes} has a size that is not known")
    dtype = dtype or "float32"
    if np.prod(sizes, dtype=float) <= 4096:
        return Known(np.full(sizes, number).astype(dtypes.numpy_dtype(dtype)))
    return OPS["full"](sizes, number.item(), dtype)


@row("full_int_array() {dtype:t} -> out", "full_int_array()", tensors=" ")
def full_int_array(value: Any = (), dtype: Any = "int64") -> Any:
    return known(value, dtype or "int64")


@row("assign_value() {dtype:t}", "assign_value();assign_value_(output)", tensors=" ")
def assign_value(
    output: Any = None,
    shape: Any = (),
    dtype: Any = "float32",
    values: Any = (),
    bool_values: Any = (),
    fp32_values: Any = (),
    fp64_values: Any = (),
    int32_values: Any = (),
    int64_values: Any = (),
    int8_values: Any = (),
) -> Any:
    given = values or bool_values or fp32_values or fp64_values or int32_values or int64_values or int8_values
    return known(np.asarray(given, dtypes.numpy_dtype(dtype)).reshape([int(n) for n in shape]), dtype)


@row("fill_any_like(X) {dtype:t}", "full_like(x, value:d)", tensors="x")
def full_like(x: Any, value: Any = 0.0, dtype: Any = None) -> Any:
    return OPS["full_like"](x, value, dtype or None)


@writes("full_like")
def write_full_like(emit: Any, x: Any, fill_value: Any, dtype: Any) -> Any:
    number = emit.number(fill_value)
    return (
        NotImplemented if number is None else emit("fill_any_like", {"X": x}, {"value:f": number, "dtype:t": emit.result_dtype()})
    )


@writes("zeros_like", "empty_like")
def write_zeros_like(emit: Any, x: Any, dtype: Any) -> Any:
    return emit("fill_any_like", {"X": x}, {"value:f": 0.0, "dtype:t": emit.result_dtype()})


@writes("ones_like")
def write_ones_like(emit: Any, x: Any, dtype: Any) -> Any:
    return emit("fill_any_like", {"X": x}, {"value:f": 1.0, "dtype:t": emit.result_dtype()})


@row(
    "fill_constant_batch_size_like(Input=input) {dtype:t}",
    "full_batch_size_like(input)",
    tensors="input",
)
def full_batch_size_like(
    input: Any,
    shape: Any = (),
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    dtype: Any = "float32",
    value: float = 0.0,
    str_value: str = "",
) -> Any:
    sizes = list(shape)
    size = input.shape[input_dim_idx]
    sizes[output_dim_idx] = OPS["shape"](input)[input_dim_idx] if size == -1 else size
    return OPS["full"](sizes, float(str_value) if str_value else value, dtype)


@row("empty(ShapeTensor=shape:L, ShapeTensorList*=shape:L) {dtype:t, shape:L}", "empty(shape:L)", tensors=" ")
def empty(shape: Any = (), dtype: Any = "float32") -> Any:
    return OPS["zeros"](list(shape), dtype)


@row("eye() {dtype:t}", "eye(num_rows:i, num_columns:i)", tensors=" ")
def eye(num_rows: int = 1, num_columns: int = -1, dtype: Any = "float32") -> Any:
    return OPS["eye"](num_rows, num_rows if num_columns < 0 else num_columns, dtype)


@row(
    "range(Start=start, End=end, Step=step);range_v2(Start=start, End=end, Step=step)",
    "arange(start, end, step);range_v2(start, end, step)",
    tensors=" ",
    needs_op=True,
)
def arange(start: Any = 0, end: Any = 0, step: Any = 1, dtype: Any = None, op: Any = None) -> Any:
    first, last, each = (np.asarray(to_plain(v)).reshape(-1)[0].item() for v in (start, end, step))
    given = dtype or ("int64" if all(isinstance(v, int) for v in (first, last, each)) else "float32")
    if op.kind == "range_v2":
        return OPS["range"](first, last, each, given)
    return OPS["arange"](first, last, each, given)


@row("linspace(Start=start, Stop=stop, Num=num:i) {dtype:t}", "linspace(start, stop, num:i)", tensors=" ")
def linspace(start: Any = 0, stop: Any = 0, num: int = 1, dtype: Any = "float32") -> Any:
    first, last = (np.asarray(to_plain(v)).reshape(-1)[0].item() for v in (start, stop))
    return OPS["linspace"](first, last, num, dtype)


@row("logspace(Start=start, Stop=stop, Num=num:i, Base=base) {dtype:t}", "logspace(start, stop, num:i, base)", tensors=" ")
def logspace(start: Any = 0, stop: Any = 0, num: int = 1, base: Any = 10.0, dtype: Any = "float32") -> Any:
    first, last, radix = (np.asarray(to_plain(v)).reshape(-1)[0].item() for v in (start, stop, base))
    return OPS["logspace"](first, last, num, radix, dtype)


@row("diag_v2(X)", "diag(x)")
def diag(x: Any, offset: int = 0, padding_value: float = 0.0) -> Any:
    return OPS["diag"](x, offset, padding_value)


@writes("diag")
def write_diag(emit: Any, x: Any, offset: int, padding_value: float) -> Any:
    return emit("diag_v2", {"X": x}, {"offset:i": offset, "padding_value:f": padding_value})


@row("tril_triu(X)")
def tril_triu(x: Any, diagonal: int = 0, lower: bool = True) -> Any:
    return OPS["tril" if lower else "triu"](x, diagonal)


table("""
tril | - | tril(x)
triu | - | triu(x)
""")


@writes("tril", "triu")
def write_tril(emit: Any, x: Any, diagonal: int) -> Any:
    return emit("tril_triu", {"X": x}, {"diagonal:i": diagonal, "lower:b": emit.name == "tril"})


@writes("full")
def write_full(emit: Any, shape: Any, fill_value: Any, dtype: Any) -> Any:
    number = emit.number(fill_value)
    return NotImplemented if number is None else emit.constant(number, emit.result_dtype(), emit.result_shape())


@writes("zeros", "empty")
def write_zeros(emit: Any, shape: Any, dtype: Any) -> Any:
    return emit.constant(0, emit.result_dtype(), emit.result_shape())


@writes("ones")
def write_ones(emit: Any, shape: Any, dtype: Any) -> Any:
    return emit.constant(1, emit.result_dtype(), emit.result_shape())


@writes("eye")
def write_eye(emit: Any, num_rows: int, num_columns: Any, dtype: Any) -> Any:
    return emit(
        "eye",
        {},
        {
            "num_rows:l": num_rows,
            "num_columns:l": num_rows if num_columns is None else num_columns,
            "dtype:t": emit.result_dtype(),
        },
    )
