"""Exponentials, logarithms and hyperbolic functions: minimax polynomials over vectors, at most 2 ulp.

Coefficients are our own Remez fits (relative error below 2**-27 for float32 and 2**-57 for float64 on the reduced range).
"""

from __future__ import annotations

import dataclasses
import math

from sampan.codegen.llvm_text import F64, Operand, Value, make_type
from sampan.codegen.mathlib_basic import absolute, copy_sign, sign_bit
from sampan.codegen.scalar_ops import scalar_op


@dataclasses.dataclass(frozen=True)
class _Format:
    """What a binary format needs: its layout, the range where exp is neither 0 nor infinite, and polynomials."""

    mantissa_bits: int
    bias: int
    round_shift: float  # adding it rounds to an integer, which then sits in the low mantissa bits
    ln2_high: float  # few enough bits that n * ln2_high is exact
    ln2_low: float
    exp_lowest: float
    exp_highest: float
    exp_usual: float  # up to this size, of either sign, exp is a normal number
    tanh_limit: float  # beyond it tanh rounds to 1
    least_normal: float
    exp: tuple[float, ...]  # (exp(r) - 1 - r) / r**2 for |r| <= ln(2) / 2
    log: tuple[float, ...]


_FORMATS = {
    32: _Format(
        mantissa_bits=23,
        bias=127,
        round_shift=1.5 * 2.0**23,
        ln2_high=0.693115234375,
        ln2_low=3.194618329871446e-05,
        exp_lowest=-104.0,
        exp_highest=89.0,
        exp_usual=87.0,
        tanh_limit=9.2,
        least_normal=2.0**-126,
        exp=(0.4999999403953552, 0.16666515171527863, 0.04166845604777336, 0.008369418792426586, 0.0013813163386657834),
        log=(
            0.33333316445350647,
            -0.25000810623168945,
            0.2000228613615036,
            -0.16624554991722107,
            0.14181186258792877,
            -0.13128747045993805,
            0.12881684303283691,
            -0.07859673351049423,
        ),
    ),
    64: _Format(
        mantissa_bits=52,
        bias=1023,
        round_shift=1.5 * 2.0**52,
        ln2_high=0.6931471803691238,
        ln2_low=1.9082149292705877e-10,
        exp_lowest=-746.0,
        exp_highest=710.0,
        exp_usual=708.0,
        tanh_limit=19.1,
        least_normal=2.0**-1022,
        exp=(
            0.5,
            0.16666666666666685,
            0.041666666666666734,
            0.00833333333331538,
            0.0013888888888856023,
            0.0001984126990045175,
            2.4801587377993936e-05,
            2.755723082430741e-06,
            2.7557230018220087e-07,
            2.511343572721352e-08,
            2.0927911290692543e-09,
        ),
        log=(
            0.666666666666674,
            0.3999999999937792,
            0.2857142875131121,
            0.22222197586768258,
            0.18183619008268706,
            0.1531256955114805,
            0.14811542100390035,
        ),
    ),
}


def _format(x: Value) -> _Format:
    return _FORMATS[x.type.bits]


def _limit(x: Value, lowest: float | None, highest: float | None) -> Value:
    """x moved into a range; NaN stays."""
    if lowest is not None:
        x = (x < lowest).where(lowest, x)
    return x if highest is None else (x > highest).where(highest, x)


@dataclasses.dataclass(frozen=True)
class _Reduced:
    """x = n * ln(2) + high + low with |high + low| <= ln(2) / 2; the low bits of `bits` are n + offset."""

    bits: Value
    n: Value
    high: Value
    low: Value


def _reduce_by_ln2(x: Value, offset: int) -> _Reduced:
    writer, f = x.writer, _format(x)
    shifted = writer.fma(x, math.log2(math.e), f.round_shift + offset)
    n = shifted - (f.round_shift + offset)
    return _Reduced(shifted.integer_bits(), n, writer.fma(n, -f.ln2_high, x), n * -f.ln2_low)


def _expm1_reduced(reduced: _Reduced) -> Value:
    """exp(r) - 1 for the reduced argument r, with r rounded."""
    writer = reduced.high.writer
    r = reduced.high + reduced.low  # contracted with the product in low
    square = r * r
    return writer.fma(square, writer.polynomial(r, _format(r).exp, square), r)


def _expm1_in_parts(reduced: _Reduced) -> tuple[Value, Value]:
    """exp(r) - 1 as a sum whose larger part is exact, for those who cannot afford the rounding of r."""
    writer = reduced.high.writer
    r = reduced.high + reduced.low
    square = r * r
    return reduced.high, writer.fma(square, writer.polynomial(r, _format(r).exp, square), reduced.low)


def _power_of_two(biased: Value, x: Value) -> Value:
    """2 ** n from an integer whose low bits are n plus the format's bias."""
    return (biased << _format(x).mantissa_bits).bits_as(x.type)


def _scale_twice(p: Value, bits: Value) -> Value:
    """(1 + p) * 2 ** n, the low bits of `bits` being n plus twice the bias.

    The two factors are exact, so that subnormal results round once and large ones overflow to infinity.
    """
    first, second = _halved_power(bits, p)
    return p.writer.fma(p, first, first) * second


def _halved_power(bits: Value, x: Value) -> tuple[Value, Value]:
    """Two powers of two whose product is 2 ** n, the low bits of `bits` being n plus twice the bias."""
    half = (bits.bits_as(bits.type.unsigned()) >> 1).bits_as(bits.type)
    return _power_of_two(half, x), _power_of_two(bits - half, x)


def _has_usual_exp(x: Value) -> Value:
    return absolute(x) < _format(x).exp_usual


def _exp_reduced(reduced: _Reduced) -> Value:
    """exp(r) for the reduced argument r, with r rounded."""
    r, f = reduced.high + reduced.low, _format(reduced.high)  # contracted with the product in low
    if r.type.bits == 32:
        return r.writer.horner(r, (1.0, 1.0, *f.exp))
    return _expm1_reduced(reduced) + 1.0


def _usual_exp(x: Value) -> Value:
    reduced = _reduce_by_ln2(x, 0)
    return add_exponent(_exp_reduced(reduced), reduced.bits)


def add_exponent(x: Value, n: Value) -> Value:
    """x * 2 ** n where both are normal numbers."""
    return (x.integer_bits() + (n << _format(x).mantissa_bits)).bits_as(x.type)


@scalar_op("exp", "f", cost=14, usual=(_has_usual_exp, _usual_exp))
def exp(x: Value) -> Value:
    f = _format(x)
    reduced = _reduce_by_ln2(_limit(x, f.exp_lowest, f.exp_highest), 2 * f.bias)
    first, second = _halved_power(reduced.bits, x)
    return _exp_reduced(reduced) * first * second


def _careful_exp(x: Value, exponent_change: int = 0) -> Value:
    """exp(x) * 2 ** exponent_change for x within exp's limits, without the rounding of the reduced argument."""
    reduced = _reduce_by_ln2(x, 2 * _format(x).bias + exponent_change)
    larger, smaller = _expm1_in_parts(reduced)
    return _scale_twice(larger + smaller, reduced.bits)


@scalar_op("exp2", "f", cost=18)
def exp2(x: Value) -> Value:
    writer, f = x.writer, _format(x)
    log2e = math.log2(math.e)
    x = _limit(x, f.exp_lowest * log2e - 1, f.exp_highest * log2e)
    shift = f.round_shift + 2 * f.bias
    shifted = x + shift
    r = (x - (shifted - shift)) * math.log(2)
    square = r * r
    return _scale_twice(writer.fma(square, writer.polynomial(r, f.exp, square), r), shifted.integer_bits())


@scalar_op("expm1", "f", cost=22)
def expm1(x: Value) -> Value:
    writer, f = x.writer, _format(x)
    reduced = _reduce_by_ln2(_limit(x, -2.0 * f.tanh_limit, f.exp_highest), f.bias - 1)
    larger, smaller = _expm1_in_parts(reduced)
    half = _power_of_two(reduced.bits, x)  # 2 ** (n - 1), which does not overflow
    scaled = writer.fma(smaller, half, writer.fma(larger, half, half - 0.5)) * 2.0
    return _with_sign_of(x, reduced.n.equals(0.0).where(larger + smaller, scaled))


def _with_sign_of(x: Value, value: Value) -> Value:
    """value, negative where x is: keeps -0.0 for an odd function whose other signs are right already."""
    return (value.integer_bits() | sign_bit(x)).bits_as(x.type)


@scalar_op("tanh", "f", cost=26)
def tanh(x: Value) -> Value:
    limited = _limit(absolute(x), None, _format(x).tanh_limit)
    return _with_sign_of(x, _short_tanh(limited) if x.type.bits == 32 else _long_tanh(limited))


def _short_tanh(x: Value) -> Value:
    """float32 _long_tanh: here a step of exp's range is exact enough, and 1 - tanh(x) stands for 2 / divisor."""
    writer, f = x.writer, _format(x)
    shifted = writer.fma(x, 2.0 * math.log2(math.e), f.round_shift + f.bias)
    half_r = writer.fma(shifted - (f.round_shift + f.bias), -0.5 * math.log(2.0), x)
    scale = _power_of_two(shifted.integer_bits(), x)
    bent = half_r * half_r * writer.horner(half_r, [2.0 ** (k + 2) * c for k, c in enumerate(f.exp)])
    growth = writer.fma(bent, scale, writer.fma(half_r, scale + scale, scale - 1.0))
    divisor = growth + 2.0
    value = growth / divisor
    with writer.exact():
        within = _limit(growth, None, 2.0**24)  # up to here the difference below is exact, and beyond it does not matter
        lost = (2.0 - (within + 2.0)) + within
    missing = writer.fma(-value, lost, writer.fma(-value, divisor, growth))
    return writer.fma(missing, writer.fma(value, -0.5, 0.5), value)


def _long_tanh(x: Value) -> Value:
    """g / (g + 2) with g = exp(2 x) - 1, and what rounding took from the divisor put back; x is not negative."""
    writer, f = x.writer, _format(x)
    reduced = _reduce_by_ln2(x + x, f.bias)
    scale = _power_of_two(reduced.bits, x)
    larger, smaller = _expm1_in_parts(reduced)
    growth = writer.fma(smaller, scale, writer.fma(larger, scale, scale - 1.0))
    divisor = growth + 2.0
    with writer.exact():
        lost = (2.0 - divisor) + growth
    value = growth / divisor
    return value - value * (lost / divisor)


def _usual_sigmoid(x: Value) -> Value:
    reduced = _reduce_by_ln2(-absolute(x), 0)
    larger, smaller = _expm1_in_parts(reduced)
    return _sigmoid_from_exp(x, add_exponent((larger + smaller) + 1.0, reduced.bits))


@scalar_op("sigmoid", "f", cost=24, usual=(_has_usual_exp, _usual_sigmoid))
def sigmoid(x: Value) -> Value:
    return _sigmoid_from_exp(x, _careful_exp(_limit(-absolute(x), _format(x).exp_lowest, None)))


def _sigmoid_from_exp(x: Value, z: Value) -> Value:
    """z / (1 + z) with z = exp(-|x|), taken from 1 or from z itself so that both ends keep their precision."""
    ratio = z / (z + 1.0)
    return (x < 0.0).where(x.writer.fma(-z, ratio, z), 1.0 - ratio)


@scalar_op("sinh", "f", cost=45)
def sinh(x: Value) -> Value:
    """x and its series up to 1, where the next term is below the last place; exp(|x|) / 2 - exp(-|x|) / 2 beyond."""
    writer, size = x.writer, absolute(x)
    square = size * size
    series = [1.0 / math.factorial(k) for k in range(3, 12 if x.type.bits == 32 else 20, 2)]
    small = writer.fma(size * square, writer.polynomial(square, series), size)
    half = _half_exp(size)
    return copy_sign((size > 1.0).where(half - 0.25 / half, small), x)


@scalar_op("cosh", "f", cost=32)
def cosh(x: Value) -> Value:
    half = _half_exp(absolute(x))
    return half + 0.25 / half


def _half_exp(size: Value) -> Value:
    """exp(size) / 2, which overflows later than exp."""
    return _careful_exp(_limit(size, None, _format(size).exp_highest + 2.0), -1)


# Logarithms. x = 2**e * m with m in [sqrt(1/2), sqrt(2)); log(x) = e * log(2) + log(m).


def _split_exponent(x: Value) -> tuple[Value, Value]:
    """e as a float and m, for positive finite x, subnormal numbers included."""
    f = _format(x)
    subnormal = x < f.least_normal
    e, m = _split_normal_exponent(subnormal.where(x * 2.0**f.mantissa_bits, x))
    return e + subnormal.where(x.writer.constant(-float(f.mantissa_bits), x.type), 0.0), m


def _split_normal_exponent(x: Value) -> tuple[Value, Value]:
    bits = x.integer_bits()
    root_half = 0x3F3504F3 if x.type.bits == 32 else 0x3FE6A09E667F3BCD
    exponent = (bits - root_half) & (-1 << _format(x).mantissa_bits)
    return _exponent_as_float(exponent, x), (bits - exponent).bits_as(x.type)


def _exponent_as_float(exponent: Value, x: Value) -> Value:
    """An integer held in the exponent field's place, as a float."""
    f = _format(x)
    if x.type.bits == 32:
        return (exponent >> f.mantissa_bits).convert("sitofp", x.type)
    # AVX2 has no int64 to float64 conversion and no 64-bit arithmetic shift; small integers go through the mantissa instead.
    magic = 2.0**52 + 2.0**51
    magic_bits = 0x4338000000000000
    biased = (exponent + (1 << 62)).bits_as(exponent.type.unsigned()) >> f.mantissa_bits
    return ((biased.bits_as(exponent.type) + (magic_bits - (1 << 10))).bits_as(x.type)) - magic


def _log_parts(f_: Value) -> tuple[Value, Value]:
    """log(1 + f) as f + t for 1 + f in [sqrt(1/2), sqrt(2)), t being the smaller part."""
    writer, f = f_.writer, _format(f_)
    square = f_ * f_
    if f_.type.bits == 32:
        return f_, writer.fma(square * f_, writer.polynomial(f_, f.log, square), square * -0.5)
    s = f_ / (f_ + 2.0)
    z = s * s
    half_square = square * 0.5
    return f_, s * (half_square + z * writer.polynomial(z, f.log)) - half_square


def _finish_log(x: Value, result: Value, zero_at: Operand = 0.0) -> Value:
    """Puts in the values outside the positive finite numbers."""
    result = (x < float("inf")).where(result, x)
    result = (x.equals(zero_at)).where(-math.inf, result)
    return (x < zero_at).where(math.nan, result)


def _has_usual_log(x: Value) -> Value:
    return (x >= _format(x).least_normal) & (x < math.inf)


def _usual_log(x: Value) -> Value:
    return _log_from_split(*_split_normal_exponent(x))


@scalar_op("log", "f", cost=24, usual=(_has_usual_log, _usual_log))
def log(x: Value) -> Value:
    return _finish_log(x, _log_from_split(*_split_exponent(x)))


def _log_from_split(e: Value, m: Value) -> Value:
    writer, f = m.writer, _format(m)
    large, small = _log_parts(m - 1.0)
    return writer.fma(e, f.ln2_high, writer.fma(e, f.ln2_low, small) + large)


_BASES = {  # log(2) and log(e) of the base, each as a high part of few bits and the rest
    ("log2", 32): (1.0, 0.0, 1.4423828125, 0.00031222839606925845),
    ("log2", 64): (1.0, 0.0, 1.4426950407214463, 1.6751713164886512e-10),
    ("log10", 32): (0.301025390625, 4.605039066518657e-06, 0.4342041015625, 9.038033749675378e-05),
    ("log10", 64): (0.3010299955494702, 1.1451100898021838e-10, 0.4342944818781689, 2.5082946711645275e-11),
}


def _log_to_base(x: Value, base: str) -> Value:
    writer = x.writer
    two_high, two_low, e_high, e_low = _BASES[base, x.type.bits]
    e, m = _split_exponent(x)
    large, small = _log_parts(m - 1.0)
    # large is split as well, so that its product with e_high is exact on every target
    kept = (large.integer_bits() & (-1 << (12 if x.type.bits == 32 else 27))).bits_as(x.type)
    rest = (large - kept) + small
    low = writer.fma(rest, e_high, (kept + rest) * e_low + e * two_low)
    with writer.exact():
        first, second = e * two_high, kept * e_high
        total = first + second
        larger_first = absolute(first) > absolute(second)
        lost = larger_first.where((first - total) + second, (second - total) + first)
        result = total + (lost + low)
    return _finish_log(x, result)


scalar_op("log2", "f", cost=45)(lambda x: _log_to_base(x, "log2"))
scalar_op("log10", "f", cost=45)(lambda x: _log_to_base(x, "log10"))


@scalar_op("log1p", "f", cost=44)
def log1p(x: Value) -> Value:
    """log of 1 + x with the rounding error of the sum put back."""
    writer, f = x.writer, _format(x)
    with writer.exact():
        total = x + 1.0
        back = total - 1.0
        lost = (1.0 - (total - back)) + (x - back)
    bits = total.integer_bits()
    root_half = 0x3F3504F3 if x.type.bits == 32 else 0x3FE6A09E667F3BCD
    exponent = (bits - root_half) & (-1 << f.mantissa_bits)
    # 2 ** -e; at the largest e it would leave the exponent's range, and there the lost part no longer matters
    inverse = (x > 2.0 ** (f.bias - 2)).where(0.0, ((f.bias << f.mantissa_bits) - exponent).bits_as(x.type))
    with writer.exact():
        fraction = ((bits - exponent).bits_as(x.type) - 1.0) + lost * inverse
    e = _exponent_as_float(exponent, x)
    large, small = _log_parts(fraction)
    result = writer.fma(e, f.ln2_high, writer.fma(e, f.ln2_low, small) + large)
    return _with_sign_of(x, _finish_log(x, result, -1.0))


@scalar_op("asinh", "f", cost=70)
def asinh(x: Value) -> Value:
    """log1p(|x| + x**2 / (1 + sqrt(1 + x**2))); log(|x|) + log(2) where the square would overflow."""
    size = absolute(x)
    square = size * size
    root = x.writer.intrinsic("sqrt", square + 1.0)
    usual = log1p(size + square / (root + 1.0))
    huge = log(size) + math.log(2)
    return copy_sign((size > 2.0 ** (_format(x).bias // 2 - 2)).where(huge, usual), x)


@scalar_op("acosh", "f", cost=70)
def acosh(x: Value) -> Value:
    t = x - 1.0
    usual = log1p(t + x.writer.intrinsic("sqrt", x.writer.fma(t, t, t + t)))
    return (x > 2.0 ** (_format(x).bias // 2 - 2)).where(log(x) + math.log(2), (x < 1.0).where(math.nan, usual))


@scalar_op("atanh", "f", cost=65)
def atanh(x: Value) -> Value:
    """log1p(2 |x| / (1 - |x|)) / 2, with what the difference and the quotient lose put back."""
    writer, size = x.writer, absolute(x)
    twice = size + size
    with writer.exact():
        rest = 1.0 - size
        lost = (1.0 - rest) - size
    quotient = twice / rest
    missing = writer.fma(-quotient, lost, writer.fma(-quotient, rest, twice)) / (size + 1.0)
    value = log1p(quotient) + (size < 1.0).where(missing, 0.0)
    return copy_sign(value * 0.5, x)


# Powers.


@scalar_op("pow", "f", 2, cost=110)
def pow_float(x: Value, y: Value) -> Value:
    """C's pow: float32 by way of float64 vectors, float64 by libm lane by lane (it needs a logarithm of 64 bits and more)."""
    # Squares, and the powers of one that are their gradients, are most of what programs ask for.
    writer = x.writer
    is_other = y.compare("une", 2.0) & y.compare("une", 1.0)
    return writer.choose(writer.any_lane(is_other), lambda: [_any_power(x, y)], lambda: [y.equals(1.0).where(x, x * x)])[0]


def _any_power(x: Value, y: Value) -> Value:
    writer = x.writer
    if x.type.bits == 64:
        return writer.map_lanes(lambda a, b: writer.call("pow", F64, [a, b]), x, y)
    wide = make_type("f", 64, x.type.lanes)
    size = absolute(x)
    power = exp(log(size.convert("fpext", wide)) * y.convert("fpext", wide)).convert("fptrunc", x.type)
    whole = writer.intrinsic("trunc", y).equals(y)
    half = y * 0.5
    odd = whole & writer.intrinsic("trunc", half).compare("une", half)
    negative = x.integer_bits() < 0
    signed = (odd & negative).where(-power, power)
    undefined = (x < 0.0) & ~whole & size.compare("one", math.inf)
    signed = undefined.where(math.nan, signed)
    signed = (size.equals(1.0) & absolute(y).equals(math.inf)).where(1.0, signed)
    return (x.equals(1.0) | y.equals(0.0)).where(1.0, signed)
