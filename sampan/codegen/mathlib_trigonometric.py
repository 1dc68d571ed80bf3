"""Sine, cosine and what is built on them or inverts them."""

from __future__ import annotations

import math

from sampan.codegen.llvm_text import F64, Value
from sampan.codegen.mathlib_basic import absolute
from sampan.codegen.scalar_ops import scalar_op

# pi / 2 in parts. With a fused multiply-add n * part needs no spare bits; without one each part leaves room for n.
_FUSED_PARTS = {
    32: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
_SHORT_PARTS = {
    32: (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12),
    64: (1.570796325802803, 9.920935791635221e-10, 5.170182981794105e-19),
}
_FUSED_LIMIT = {32: 30000.0, 64: 1.0e6}
_SHORT_LIMIT = {32: 6000.0, 64: 1.0e6}
_SIN = {
    32: (-0.16666653752326965, 0.008332131430506706, -0.00019510849961079657),
    64: (
        -0.16666666666666627,
        0.00833333333332128,
        -0.00019841269828866734,
        2.7557313355043543e-06,
        -2.50507039094176e-08,
        1.5893577281425376e-10,
    ),
}
_COS = {
    32: (0.04166664555668831, -0.0013887305976822972, 2.4431210476905107e-05),
    64: (
        0.04166666666666659,
        -0.00138888888888726,
        2.4801587288492474e-05,
        -2.755731405668577e-07,
        2.0875681894066465e-09,
        -1.135744938745203e-11,
    ),
}


def call_libm(name: str, *args: Value) -> Value:
    """A libm function lane by lane, always the float64 one: a float32 result is then correctly rounded but for rare ties."""
    writer = args[0].writer

    def one_lane(*lanes: Value) -> Value:
        wide = [a if a.type.bits == 64 else a.convert("fpext", F64) for a in lanes]
        result = writer.call(name, F64, wide)
        return result if lanes[0].type.bits == 64 else result.convert("fptrunc", lanes[0].type)

    return writer.map_lanes(one_lane, *args)


def _reduce_by_half_pi(x: Value) -> tuple[Value, Value, Value | None]:
    """x = n * pi / 2 + r + tail: an integer whose low bits are n, |r| <= pi / 4, and (float64 only) what rounding took from r."""
    writer, bits = x.writer, x.type.bits
    round_shift = 1.5 * 2.0 ** (23 if bits == 32 else 52)
    shifted = writer.fma(x, 2.0 / math.pi, round_shift)
    n = shifted - round_shift
    parts = _FUSED_PARTS[bits] if "fma" in writer.features else _SHORT_PARTS[bits]
    r = x
    if bits == 32:
        for part in parts:
            r = writer.fma(n, -part, r)
        return shifted.integer_bits(), r, None
    for part in parts[:-2]:
        r = writer.fma(n, -part, r)
    with writer.exact():
        before = r
        r = writer.fma(n, -parts[-2], r)
        tail = writer.fma(n, -parts[-2], before - r)
    return shifted.integer_bits(), r, writer.fma(n, -parts[-1], tail)


def _near_sine(x: Value, quarter_turns: int) -> Value:
    """sin(x + quarter_turns * pi / 2) for |x| below the limit."""
    writer, bits = x.writer, x.type.bits
    n, r, tail = _reduce_by_half_pi(x)
    if quarter_turns:
        n = n + quarter_turns
    z = r * r
    sine_rest, cosine_rest = writer.polynomial(z, _SIN[bits]), writer.polynomial(z, _COS[bits])
    if tail is None:
        sine = writer.fma(r * z, sine_rest, r)
        cosine = writer.fma(z * z, cosine_rest, writer.fma(z, -0.5, 1.0))
    else:
        sine = r + writer.fma(r * z, sine_rest, tail)
        with writer.exact():
            base = 1.0 - z * 0.5
            lost = (1.0 - base) - z * 0.5
        cosine = base + writer.fma(z * z, cosine_rest, lost - r * tail)
    value = (n & 1).equals(0).where(sine, cosine)
    sign = (n & 2) << (bits - 2)
    return (value.integer_bits() ^ sign).bits_as(x.type)


def _sine(x: Value, quarter_turns: int) -> Value:
    writer = x.writer
    limit = (_FUSED_LIMIT if "fma" in writer.features else _SHORT_LIMIT)[x.type.bits]
    far = absolute(x) > limit
    near = _near_sine(x, quarter_turns)
    name = "cos" if quarter_turns else "sin"

    def mixed() -> list[Value]:
        return [far.where(writer.out_of_line(f"far_{name}", lambda far_x: call_libm(name, far_x), [x]), near)]

    value = writer.choose(writer.any_lane(far), mixed, lambda: [near])[0]
    return value if quarter_turns else x.equals(0.0).where(x, value)


scalar_op("sin", "f", cost=32)(lambda x: _sine(x, 0))
scalar_op("cos", "f", cost=32)(lambda x: _sine(x, 1))
for _name in ("tan", "asin", "acos", "atan"):
    scalar_op(_name, "f", cost=150)(lambda x, name=_name: call_libm(name, x))
scalar_op("atan2", "f", 2, cost=250)(lambda y, x: call_libm("atan2", y, x))


def sine_and_cosine(x: Value) -> tuple[Value, Value]:
    return _sine(x, 0), _sine(x, 1)
