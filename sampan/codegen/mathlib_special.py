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


# Our own rational Remez fits for float32, over t = |x| up to where exp(-t**2 / 2) leaves the normal numbers. The normal
# distribution's tail is 2**(_BELL_SCALE * t**2) * TAIL, so that the fit holds what rounding took from the constant. With e for
# exp(-t**2 / 2), its slope times t less than that tail is e * SLOPE. Both fits are smooth.
_NORMAL_END = 13.1
_BELL_SCALE, _BELL_SCALE_REST = -0.7213475108146667, -9.62981495e-09  # their sum is -log2(e) / 2
_TAIL = (
    (0.5, 0.43977248668670654, 0.18416543304920197, 0.040907684713602066, 0.004147593397647142),
    (1.0, 1.6774297952651978, 1.206722378730774, 0.4719060957431793, 0.10254457592964172, 0.010396458208560944),
)
_SLOPE = (
    (0.5, -0.23076365888118744, -0.41963884234428406, -0.1881607472896576, -0.02938712015748024),
    (1.0, 1.1342428922653198, 0.4706982970237732, 0.0737113505601883),
)
_EXP2 = (  # 2**r for |r| <= 1/2
    1.0,
    0.6931471824645996,
    0.24022647738456726,
    0.055503323674201965,
    0.00961843691766262,
    0.0013398875016719103,
    0.00015353361959569156,
)


def _normal_part(x: Value, fit: tuple[tuple[float, ...], tuple[float, ...]], rest: float) -> Value:
    """2**((_BELL_SCALE + rest) * t**2) times the fit at t = |x|, or 1 less that where x is positive."""
    writer, magic, t = x.writer, 1.5 * 2.0**23, absolute(x)
    square = t * t
    shifted = writer.fma(square, _BELL_SCALE, magic)
    r = writer.fma(square, _BELL_SCALE, -(shifted - magic))
    if rest:
        r = writer.fma(square, rest, r)
    r = writer.fma(writer.fma(t, t, -square), _BELL_SCALE, r)  # the square's rounding error
    power, dividend = writer.horner(r, _EXP2), writer.polynomial(t, fit[0])
    bell = add_exponent(power, shifted.integer_bits())
    part = (t > _NORMAL_END).where(0.0, bell * dividend / writer.polynomial(t, fit[1]))
    return (x > 0.0).where(1.0 - part, part)


@scalar_op("ndtr", "f", cost=32)
def ndtr(x: Value) -> Value:
    """The normal distribution function, to a few units of float32 in its tail too; float64 by libm lane by lane."""
    if x.type.bits == 64:
        return call_libm("erfc", x * -math.sqrt(0.5)) * 0.5
    return _normal_part(x, _TAIL, 0.0)


@scalar_op("gelu_slope", "f", cost=34)
def gelu_slope(x: Value) -> Value:
    """The derivative of x * ndtr(x), with one exponential for both of its terms."""
    if x.type.bits == 64:
        density = exp(x * x * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
        return ndtr(x) + x.is_nan().where(x, (absolute(x) > 40.0).where(0.0, x * density))
    return _normal_part(x, _SLOPE, _BELL_SCALE_REST)


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
