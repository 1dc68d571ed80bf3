"""The error function and its relatives, the gamma function's logarithm and its derivative."""

from __future__ import annotations

import math

from sampan.codegen.llvm_text import F64, Value
from sampan.codegen.mathlib_basic import absolute, copy_sign, sign_bit
from sampan.codegen.mathlib_exponential import add_exponent, exp, log, log1p
from sampan.codegen.mathlib_trigonometric import call_libm
from sampan.codegen.scalar_ops import scalar_op

# Our own Remez fits. Below the switch: erf(x) / x - 1 in x**2. Above: log2(erfc(t)) / t in t, and 2**r for |r| <= 1/2 with
# 23 bits, which suffice because erfc is small there.
_ERF_SWITCH = 0.865
_ERF_SMALL = (
    0.12837916612625122,
    -0.37612560391426086,
    0.11282576620578766,
    -0.02679617889225483,
    0.005039642099291086,
    -0.0006244497490115464,
)
_ERF_LARGE = (
    -1.6281218528747559,
    -0.9170800447463989,
    -0.15195061266422272,
    0.03308134153485298,
    -0.004656459670513868,
    0.000310945586534217,
)
_EXP2_SHORT = (
    1.0000001192092896,
    0.6931469440460205,
    0.24022120237350464,
    0.05550713837146759,
    0.00967553909868002,
    0.001327633741311729,
)


@scalar_op("erf", "f", cost=34)
def erf(x: Value) -> Value:
    """float32 by polynomials over vectors, float64 by libm lane by lane."""
    if x.type.bits == 64:
        return call_libm("erf", x)
    writer = x.writer
    size = absolute(x)
    limited = (size > 4.0).where(4.0, size)
    exponent = limited * writer.polynomial(limited, _ERF_LARGE)
    shifted = exponent + 1.5 * 2.0**23
    power = writer.polynomial(exponent - (shifted - 1.5 * 2.0**23), _EXP2_SHORT)
    erfc = add_exponent(power, shifted.integer_bits())
    large = ((1.0 - erfc).integer_bits() | sign_bit(x)).bits_as(x.type)
    small = writer.fma(x, writer.polynomial(x * x, _ERF_SMALL), x)
    return (size > _ERF_SWITCH).where(large, small)


# Our own rational fits for float32, over t = |x|. The normal distribution's tail is the square of TAIL: the square needs fewer digits
# where the tail is small. The tail less t times the density, which is gelu's slope left of 0, is SLOPE * (1 - t / _SLOPE_END) ** 2.
_TAIL_END = 5.8  # the tail is below 4e-9, the slope's below 1e-7
_TAIL = (
    (0.7071067690849304, -0.4375675916671753, 0.10311144590377808, -0.010961759835481644, 0.00044335328857414424),
    (
        1.0,
        -0.21987226605415344,
        0.13768774271011353,
        -0.01283166091889143,
        0.00344121758826077,
        0.0008383807726204395,
        -0.00014358943735715002,
        3.938752706744708e-05,
    ),
)
_SLOPE_END = 6.3
_SLOPE = (
    (
        0.5,
        -1.018729329109192,
        0.5653563737869263,
        -0.13774609565734863,
        0.01575987972319126,
        -0.0006963239284232259,
    ),
    (
        1.0,
        -0.7591590881347656,
        0.5914143919944763,
        -0.2747649848461151,
        0.11542697995901108,
        -0.03404562920331955,
        0.008351191878318787,
        -0.0012894165702164173,
        0.00013127984129823744,
    ),
)


def _ratio(t: Value, fit: tuple[tuple[float, ...], tuple[float, ...]]) -> Value:
    """The quotient of two polynomials, as single chains: two chains in t**2 would cancel."""
    return t.writer.horner(t, fit[0]) / t.writer.horner(t, fit[1])


@scalar_op("gelu", "f", cost=22)
def gelu(x: Value) -> Value:
    """x times the normal distribution function of x, 0 at -inf; float64 by libm lane by lane."""
    if x.type.bits == 64:
        return (x < -1e300).where(0.0, x * 0.5 * call_libm("erfc", x * -math.sqrt(0.5)))
    t = absolute(x)
    root = _ratio(t, _TAIL)
    return _positive_part(x) - (t > _TAIL_END).where(0.0, t * (root * root))


def _positive_part(x: Value) -> Value:
    """x or 0, in the one comparison that keeps NaN and -0."""
    return (x < 0.0).where(0.0, x)


@scalar_op("gelu_slope", "f", cost=25)
def gelu_slope(x: Value) -> Value:
    """The derivative of gelu."""
    if x.type.bits == 64:
        density = exp(x * x * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
        normal = call_libm("erfc", x * -math.sqrt(0.5)) * 0.5
        return normal + x.is_nan().where(x, (absolute(x) > 40.0).where(0.0, x * density))
    t = absolute(x)
    left = x.writer.fma(t, -1.0 / _SLOPE_END, 1.0)
    part = (t > _SLOPE_END).where(0.0, _ratio(t, _SLOPE) * (left * left))
    return (x > 0.0).where(1.0 - part, part)


scalar_op("erfc", "f", cost=200)(lambda x: call_libm("erfc", x))
scalar_op("lgamma", "f", cost=300)(lambda x: call_libm("lgamma", x))


# Giles, "Approximating the erfinv function" (2010): a start for Newton's method, good to a few units of float32.
_ERFINV_CENTRE = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
_ERFINV_TAIL = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)


@scalar_op("erfinv", "f", cost=600)
def erfinv(x: Value) -> Value:
    """A polynomial start, then Halley's steps in float64 on erf, or on erfc near the ends, where erf has no digits left."""
    writer = x.writer
    if x.type.bits == 32:
        return erfinv(x.convert("fpext", F64.with_lanes(x.type.lanes))).convert("fptrunc", x.type)
    size = absolute(x)
    w = -(log1p(-size) + log1p(size))
    centre = writer.polynomial(w - 2.5, _ERFINV_CENTRE)
    tail = writer.polynomial(writer.intrinsic("sqrt", w) - 3.0, _ERFINV_TAIL)
    y = (w < 5.0).where(centre, tail) * size
    near_end = size > 0.5
    for _ in range(3):
        missing = near_end.where((1.0 - size) - call_libm("erfc", y), call_libm("erf", y) - size)
        step = missing / (exp(-(y * y)) * (2.0 / math.sqrt(math.pi)))
        y = y - step / (y * step + 1.0)
    y = size.equals(1.0).where(math.inf, (size > 1.0).where(math.nan, y))
    tiny = size < 1e-150
    y = tiny.where(size * (math.sqrt(math.pi) / 2.0), y)
    return x.is_nan().where(x, copy_sign(y, x))


@scalar_op("digamma", "f", cost=200)
def digamma(x: Value) -> Value:
    """The derivative of lgamma: the recurrence up to 10, then the asymptotic series; by reflection for negative numbers."""
    writer = x.writer
    if x.type.bits == 32:
        return digamma(x.convert("fpext", F64.with_lanes(x.type.lanes))).convert("fptrunc", x.type)
    reflected = x <= 0.0
    y = reflected.where(1.0 - x, x)
    shift = writer.constant(0.0, x.type)
    for _ in range(10):
        small = y < 10.0
        shift = small.where(shift - 1.0 / y, shift)
        y = small.where(y + 1.0, y)
    inverse = 1.0 / y
    z = inverse * inverse
    series = z * writer.polynomial(z, (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12))
    value = log(y) - inverse * 0.5 - series + shift
    fraction = x - writer.intrinsic("rint", x)
    value = reflected.where(value - math.pi / call_libm("tan", fraction * math.pi), value)
    pole = (reflected & fraction.equals(0.0)) | x.equals(-math.inf)
    value = pole.where(math.nan, value)
    return x.equals(0.0).where(-copy_sign(writer.constant(math.inf, x.type), x), value)
