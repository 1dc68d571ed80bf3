"""Reading and writing elements of every dtype: memory's form and registers, and vectors of which only some lanes are live."""

from __future__ import annotations

from sampan.codegen.dtypes import DTYPES, DType
from sampan.codegen.llvm_text import I64, PTR, Type, Value, Writer, make_type
from sampan.codegen.mathlib_complex import Complex

Register = Value | Complex


def register_type(dtype: str, lanes: int) -> Type:
    """The type of a dtype's register (of each of the two, for a complex one)."""
    d = DTYPES[dtype]
    if d.kind == "b":
        return make_type("b", 1, lanes)
    return make_type("f" if d.kind == "c" else d.kind, d.compute_bits, lanes)


def _memory_type(d: DType, lanes: int) -> Type:
    if d.kind == "c":
        return make_type("f", d.compute_bits, max(lanes, 1) * 2)
    if d.bits == 16 and d.kind == "f":
        return make_type("i", 16, lanes)
    return make_type("u" if d.kind == "b" else d.kind, d.bits, lanes)


def element_text(dtype: str) -> str:
    """An LLVM type of the element's size, for address arithmetic."""
    return f"i{DTYPES[dtype].bits}"


def _alignment(d: DType) -> int:
    return (d.bits // 2 if d.kind == "c" else d.bits) // 8


# Conversions between memory's form and registers.


def decode(raw: Value, dtype: str) -> Register:
    """Registers from an element, or a vector of elements, as loaded."""
    d, writer = DTYPES[dtype], raw.writer
    if d.kind == "b":
        return raw.compare("ne", 0)
    if d.kind == "c":
        lanes = raw.type.lanes // 2
        if lanes == 1:
            return Complex(raw.lane(0), raw.lane(1))
        evens = range(0, 2 * lanes, 2)
        return Complex(writer.shuffle(raw, raw, list(evens)), writer.shuffle(raw, raw, [k + 1 for k in evens]))
    if dtype == "bfloat16":
        wide = raw.convert("zext", make_type("i", 32, raw.type.lanes))
        return (wide << 16).bits_as(make_type("f", 32, raw.type.lanes))
    if dtype == "float16":
        return _decode_float16(raw)
    return raw


def encode(value: Register, dtype: str) -> Value:
    """What a store of registers writes; float16 and bfloat16 round to nearest even."""
    d = DTYPES[dtype]
    if isinstance(value, Complex):
        lanes = value.re.type.lanes
        if not lanes:
            return value.re.writer.join_lanes([value.re, value.im])
        return value.re.writer.shuffle(value.re, value.im, [k + half for k in range(lanes) for half in (0, lanes)])
    if d.kind == "b":
        return value.convert("zext", make_type("u", 8, value.type.lanes))
    if dtype == "bfloat16":
        return encode_bfloat16(value)
    if dtype == "float16":
        return _encode_float16(value)
    return value


def encode_bfloat16(value: Value) -> Value:
    """The upper half of the float32, rounded to nearest even; NaN stays a (quiet) NaN."""
    bits = value.bits_as(value.type.unsigned())
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    kept = value.is_nan().where(bits | 0x400000, rounded) >> 16
    return kept.convert("trunc", make_type("i", 16, value.type.lanes))


def _decode_float16(raw: Value) -> Value:
    lanes = raw.type.lanes
    single = make_type("f", 32, lanes)
    if "f16c" in raw.writer.features:
        return raw.bits_as(make_type("f", 16, lanes)).convert("fpext", single)
    # Moved into float32's fields, the exponent is short by 112; multiplying by 2**112 is exact and handles subnormals too.
    wide = raw.convert("zext", make_type("i", 32, lanes))
    magnitude = ((wide & 0x7FFF) << 13).bits_as(single) * 2.0**112
    special = (wide & 0x7C00).equals(0x7C00)
    bits = special.where(magnitude.integer_bits() | 0x7F800000, magnitude.integer_bits())
    return (bits | ((wide & 0x8000) << 16)).bits_as(single)


def _encode_float16(value: Value) -> Value:
    lanes = value.type.lanes
    half_bits = make_type("i", 16, lanes)
    if "f16c" in value.writer.features:
        return value.convert("fptrunc", make_type("f", 16, lanes)).bits_as(half_bits)
    unsigned = value.type.unsigned()
    bits = value.bits_as(unsigned)
    magnitude = bits & 0x7FFFFFFF
    # Normal results: rebias and round the 13 dropped bits; subnormal ones: an addition that aligns them rounds as it should.
    normal = (magnitude - (112 << 23) + 0xFFF + ((magnitude >> 13) & 1)) >> 13
    aligned = magnitude.bits_as(value.type) + 0.5
    subnormal = aligned.bits_as(unsigned) - 0x3F000000
    result = (magnitude < (113 << 23)).where(subnormal, normal)
    result = (magnitude >= 0x477FF000).where(0x7C00, result)
    result = (magnitude > 0x7F800000).where(0x7E00, result)
    return (result | ((bits >> 16) & 0x8000)).convert("trunc", half_bits)


# Accesses. An access has a pointer to lane 0 of the vector; `live` is the number of live lanes, or None when all are.


class Tail:
    """The last vector of a row, of which only `count` lanes are live."""

    def __init__(self, count: Value, mask: Value) -> None:
        self.count, self.mask = count, mask


def load_scalar(writer: Writer, pointer: Value, dtype: str) -> Register:
    d = DTYPES[dtype]
    return decode(writer.load(pointer, _memory_type(d, 0), _alignment(d)), dtype)


def store_scalar(writer: Writer, value: Register, pointer: Value, dtype: str) -> None:
    writer.store(encode(value, dtype), pointer, _alignment(DTYPES[dtype]))


def load_raw(writer: Writer, pointer: Value, dtype: str, lanes: int, tail: Tail | None) -> Value:
    """A vector of consecutive elements as memory holds them; dead lanes are zero or hold anything of this function's own."""
    d = DTYPES[dtype]
    type_ = _memory_type(d, lanes)
    if tail is None:
        return writer.load(pointer, type_, _alignment(d))
    if _has_masked_access(writer, d):
        writer.declarations.add(
            f"declare {type_.text} @llvm.masked.load.{type_.suffix}.p0(ptr, {tail.mask.type.text}, {type_.text})"
        )
        return writer.instruction(
            f"call {type_.text} @llvm.masked.load.{type_.suffix}.p0(ptr align {_alignment(d)} {pointer.name}, "
            f"{tail.mask.type.text} {tail.mask.name}, {type_.text} zeroinitializer)",
            type_,
        )
    slot = writer.stack(type_)
    writer.lines.append(f"  store {type_.text} zeroinitializer, ptr {slot.name}, align 64")
    writer.copy_bytes(slot, pointer, tail.count * d.size_bytes)
    return writer.load(slot, type_, 64)


def store_raw(writer: Writer, raw: Value, pointer: Value, dtype: str, tail: Tail | None) -> None:
    """Writes the live lanes to consecutive elements."""
    d = DTYPES[dtype]
    type_ = raw.type
    if tail is None:
        writer.store(raw, pointer, _alignment(d))
    elif _has_masked_access(writer, d):
        writer.declarations.add(f"declare void @llvm.masked.store.{type_.suffix}.p0({type_.text}, ptr, {tail.mask.type.text})")
        place = f"ptr align {_alignment(d)} {pointer.name}, {tail.mask.type.text} {tail.mask.name}"
        writer.lines.append(f"  call void @llvm.masked.store.{type_.suffix}.p0({type_.text} {raw.name}, {place})")
    else:
        slot = writer.stack(type_)
        writer.store(raw, slot, 64)
        writer.copy_bytes(pointer, slot, tail.count * d.size_bytes)


def _has_masked_access(writer: Writer, d: DType) -> bool:
    if d.kind == "c":
        return False
    return (d.bits in (32, 64) and "avx2" in writer.features) or {"avx512bw", "avx512vl"} <= writer.features


def gather_raw(writer: Writer, base: Value, offsets: Value, dtype: str, tail: Tail | None) -> Value:
    """One element a lane, from base + offset, as memory holds them; dead lanes read lane 0's element, which is always there."""
    lanes = offsets.type.lanes
    if tail is not None:
        offsets = tail.mask.where(offsets, offsets.lane(0).splat(lanes))
    d = DTYPES[dtype]
    elements = [
        writer.load(writer.address(base, offsets.lane(k), element_text(dtype)), _memory_type(d, 0), _alignment(d))
        for k in range(lanes)
    ]
    if d.kind == "c":
        elements = [e.lane(part) for e in elements for part in (0, 1)]
    return writer.join_lanes(elements)


def scatter_strided(writer: Writer, raw: Value, base: Value, stride: Value, dtype: str, lanes: int, tail: Tail | None) -> None:
    """Writes lane k to base + k * stride."""
    d = DTYPES[dtype]
    one = _memory_type(d, 0)
    if tail is None and d.kind != "c":
        for k in range(lanes):
            pointer = base if k == 0 else writer.address(base, stride * k, element_text(dtype))
            writer.store(raw.lane(k), pointer, _alignment(d))
        return
    slot = writer.stack(raw.type)
    writer.store(raw, slot, 64)

    def one_lane(k: Value, _: list[Value]) -> list[Value]:
        element = writer.load(writer.address(slot, k, element_text(dtype)), one, _alignment(d))
        writer.store(element, writer.address(base, k * stride, element_text(dtype)), _alignment(d))
        return []

    count = writer.constant(lanes, I64) if tail is None else tail.count
    writer.loop(writer.constant(0, I64), count, 1, [], one_lane)


def pointer_argument(writer: Writer, name: str) -> Value:
    return Value(writer, PTR, name)
