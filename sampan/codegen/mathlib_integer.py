"""Integer division, shifts and powers. Nothing here traps: a zero divisor gives 0, and integers wrap."""

from __future__ import annotations

from sampan.codegen.llvm_text import I64, Value, make_type
from sampan.codegen.scalar_ops import scalar_op


def _divide(a: Value, b: Value) -> tuple[Value, Value]:
    """The truncated quotient and its remainder, both 0 for a zero divisor; the least integer over -1 wraps."""
    if a.type.bits < 32:
        quotient, remainder = _divide_guarded(a.resize(32), b.resize(32))
        return quotient.resize(a.type.bits), remainder.resize(a.type.bits)
    return _divide_guarded(a, b)


def _divide_guarded(a: Value, b: Value) -> tuple[Value, Value]:
    zero = b.equals(0)
    if a.type.bits == 32:
        quotient = _divide_in_float64(a, zero.where(1, b))
    else:
        unsafe = zero | b.equals(-1) if a.type.kind == "i" else zero
        quotient = a.writer.map_lanes(lambda x, y: x / y, a, unsafe.where(1, b))
        if a.type.kind == "i":
            quotient = b.equals(-1).where(-a, quotient)
    quotient = zero.where(0, quotient)
    return quotient, zero.where(0, a - quotient * b)


def _divide_in_float64(a: Value, b: Value) -> Value:
    """32-bit division by way of float64, whose 53 bits hold the truncated quotient exactly; x86 has no vector division."""
    wide = make_type("f", 64, a.type.lanes)
    to_float = "sitofp" if a.type.kind == "i" else "uitofp"
    quotient = a.convert(to_float, wide) / b.convert(to_float, wide)
    if a.type.kind == "u":
        return quotient.convert("fptosi", make_type("u", 64, a.type.lanes)).resize(32)
    # the least integer over -1 is out of range and wraps
    return (quotient > 2147483647.0).where(-2147483648.0, quotient).convert("fptosi", a.type)


@scalar_op("div", "iu", 2, cost=25)
def div(a: Value, b: Value) -> Value:
    """The quotient rounded towards zero."""
    return _divide(a, b)[0]


@scalar_op("floordiv", "iu", 2, cost=27)
def floordiv(a: Value, b: Value) -> Value:
    quotient, remainder = _divide(a, b)
    if a.type.kind == "u":
        return quotient
    return _crosses(remainder, b).where(quotient - 1, quotient)


@scalar_op("mod", "iu", 2, cost=27)
def mod(a: Value, b: Value) -> Value:
    """The remainder with the divisor's sign."""
    remainder = _divide(a, b)[1]
    if a.type.kind == "u":
        return remainder
    return _crosses(remainder, b).where(remainder + b, remainder)


def _crosses(remainder: Value, b: Value) -> Value:
    return remainder.compare("ne", 0) & ((remainder ^ b) < 0)


def _shift_count(b: Value) -> tuple[Value, Value]:
    """A count safe to shift by, and whether b was too large; a negative count is too large."""
    bits = b.type.bits
    unsigned = b.bits_as(b.type.unsigned())
    too_large = unsigned > bits - 1
    return too_large.where(0, b), too_large


@scalar_op("shift_left", "iu", 2, cost=3)
def shift_left(a: Value, b: Value) -> Value:
    count, too_large = _shift_count(b)
    return too_large.where(0, a << count)


@scalar_op("shift_right", "iu", 2, cost=3)
def shift_right(a: Value, b: Value) -> Value:
    count, too_large = _shift_count(b)
    if a.type.kind == "u":
        return too_large.where(0, a >> count)
    return a >> too_large.where(a.type.bits - 1, count)


@scalar_op("pow", "iu", 2, cost=40)
def integer_pow(base: Value, exponent: Value) -> Value:
    """base ** exponent, wrapping; a negative exponent gives 0 except for the bases 1 and -1."""
    writer, type_ = base.writer, base.type
    is_signed = type_.kind == "i"
    magnitude = (exponent < 0).where(0, exponent) if is_signed else exponent
    every = magnitude
    if type_.lanes:
        every = writer.call(f"llvm.vector.reduce.or.{type_.suffix}", type_.with_lanes(0), [magnitude])
    wide = every.resize(64)
    zeros = writer.call("llvm.ctlz.i64", I64, [Value(writer, I64, wide.name), writer.constant(0, make_type("b", 1))])

    def square(_: Value, state: list[Value]) -> list[Value]:
        result, power, remaining = state
        return [(remaining & 1).equals(1).where(result * power, result), power * power, remaining.bits_as(type_.unsigned()) >> 1]

    one = writer.constant(1, type_)
    state = [one, base, Value(writer, type_.unsigned(), magnitude.name)]
    result = writer.loop(writer.constant(0, I64), 64 - zeros, 1, state, square)[0]
    if not is_signed:
        return result
    unit = base.equals(-1).where((exponent & 1).equals(0).where(1, base), base.equals(1).where(one, 0))
    return (exponent < 0).where(unit, result)
