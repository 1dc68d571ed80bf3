"""Conversions between dtypes: floats to integers saturate with NaN as 0, halves round to nearest even, bool is 'not zero'."""

from __future__ import annotations

from sampan.codegen.dtypes import DTYPES, DType
from sampan.codegen.emit_memory import Register, decode, encode, register_type
from sampan.codegen.llvm_text import Value
from sampan.codegen.mathlib_basic import is_true
from sampan.codegen.mathlib_complex import Complex, single


def cast(value: Register, source: str, target: str) -> Register:
    """The value as another dtype; complex to real drops the imaginary part."""
    src, dst = DTYPES[source], DTYPES[target]
    if isinstance(value, Complex):
        component = "float32" if src.compute_bits == 32 else "float64"
        if dst.kind == "b":
            return is_true(value.re) | is_true(value.im)
        if dst.kind != "c":
            return cast(value.re, component, target)
        part = "float32" if dst.compute_bits == 32 else "float64"
        return Complex(cast(value.re, component, part), cast(value.im, component, part))  # type: ignore[arg-type]
    if dst.kind == "c":
        re = cast(value, source, "float32" if dst.compute_bits == 32 else "float64")
        return Complex(single(re), single(re).writer.constant(0.0, re.type))
    if dst.kind == "b":
        return is_true(value)
    if dst.kind == "f":
        return _to_float(value, src, target)
    if src.kind == "f":
        type_ = register_type(target, value.type.lanes)
        return value.writer.call(
            f"llvm.fpto{'u' if dst.kind == 'u' else 's'}i.sat.{type_.suffix}.{value.type.suffix}", type_, [value]
        )
    resized = value.resize(dst.bits)
    return Value(value.writer, register_type(target, value.type.lanes), resized.name)


def _to_float(value: Value, src: DType, target: str) -> Register:
    type_ = register_type(target, value.type.lanes)
    if src.kind == "f":
        if value.type.bits != type_.bits:
            value = value.convert("fpext" if type_.bits > value.type.bits else "fptrunc", type_)
    else:
        value = value.convert("sitofp" if src.kind == "i" else "uitofp", type_)
    if DTYPES[target].bits == 16:
        return decode(encode(value, target), target)
    return value
