"""Complex numbers as pairs of registers."""

from __future__ import annotations

import dataclasses
import math

from sampan.codegen.dtypes import KernelError
from sampan.codegen.llvm_text import Type, Value
from sampan.codegen.mathlib_basic import absolute, copy_sign, maximum, minimum
from sampan.codegen.mathlib_exponential import cosh, exp, log, sinh
from sampan.codegen.mathlib_trigonometric import call_libm, sine_and_cosine
from sampan.codegen.scalar_ops import scalar_op


@dataclasses.dataclass(frozen=True)
class Complex:
    """The real and imaginary registers of complex lanes."""

    re: Value
    im: Value

    @property
    def type(self) -> Type:
        return self.re.type


def single(register: Value | Complex) -> Value:
    """A register known to hold real numbers (the verifier has seen to it)."""
    if isinstance(register, Complex):
        raise KernelError("a complex value stands where a real one must.")
    return register


scalar_op("make_complex", "f", 2, "complex", cost=0, dtypes=("float32", "float64"))(Complex)
scalar_op("real", "c", result="component", cost=0)(lambda z: z.re)
scalar_op("imag", "c", result="component", cost=0)(lambda z: z.im)
scalar_op("real", "biuf", cost=0)(lambda x: x)
scalar_op("conj", "c", cost=1)(lambda z: Complex(z.re, -z.im))
scalar_op("conj", "biuf", cost=0)(lambda x: x)
scalar_op("neg", "c", cost=2)(lambda z: Complex(-z.re, -z.im))
scalar_op("eq", "c", 2, "bool", cost=3)(lambda a, b: a.re.equals(b.re) & a.im.equals(b.im))
scalar_op("ne", "c", 2, "bool", cost=3)(lambda a, b: a.re.compare("ne", b.re) | a.im.compare("ne", b.im))
scalar_op("isnan", "c", result="bool", cost=2)(lambda z: z.re.is_nan() | z.im.is_nan())
scalar_op("isinf", "c", result="bool", cost=4)(lambda z: absolute(z.re).equals(math.inf) | absolute(z.im).equals(math.inf))
scalar_op("isfinite", "c", result="bool", cost=4)(
    lambda z: absolute(z.re).compare("one", math.inf) & absolute(z.im).compare("one", math.inf)
)
scalar_op("logical_not", "c", result="bool", cost=3)(lambda z: z.re.equals(0.0) & z.im.equals(0.0))


@scalar_op("add", "c", 2, cost=2)
def add(a: Complex, b: Complex) -> Complex:
    return Complex(a.re + b.re, a.im + b.im)


@scalar_op("sub", "c", 2, cost=2)
def sub(a: Complex, b: Complex) -> Complex:
    return Complex(a.re - b.re, a.im - b.im)


@scalar_op("mul", "c", 2, cost=6)
def mul(a: Complex, b: Complex) -> Complex:
    with a.re.writer.exact():  # symmetric in a and b, and z * conj(z) is exactly real
        return Complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


@scalar_op("div", "c", 2, cost=30)
def div(a: Complex, b: Complex) -> Complex:
    """Smith's method: scales by the divisor's larger part, so that nothing overflows on the way."""
    real_larger = absolute(b.re) >= absolute(b.im)
    large, small = real_larger.where(b.re, b.im), real_larger.where(b.im, b.re)
    ratio = small / large
    ratio = absolute(ratio).compare("uno", ratio).where(small, ratio)  # 0 / 0 and inf / inf
    scale = large + small * ratio
    first, second = real_larger.where(a.re, a.im), real_larger.where(a.im, a.re)
    re = (first + second * ratio) / scale
    im = (second - first * ratio) / scale
    return Complex(re, real_larger.where(im, -im))


@scalar_op("abs", "c", result="component", cost=20)
def magnitude(z: Complex) -> Value:
    """The length, without overflow or underflow on the way; infinite when a part is, even beside NaN."""
    a, b = absolute(z.re), absolute(z.im)
    large, small = maximum(a, b), minimum(a, b)
    ratio = large.equals(0.0).where(0.0, small / large)
    length = large * large.writer.intrinsic("sqrt", ratio * ratio + 1.0)
    infinite = a.equals(math.inf) | b.equals(math.inf)
    return infinite.where(math.inf, length)


@scalar_op("angle", "c", result="component", cost=250)
def angle(z: Complex) -> Value:
    return call_libm("atan2", z.im, z.re)


@scalar_op("sign", "c", cost=50)
def sign(z: Complex) -> Complex:
    """z / |z|, and 0 for 0."""
    length = magnitude(z)
    zero = length.equals(0.0)
    return Complex(zero.where(0.0, z.re / length), zero.where(0.0, z.im / length))


# Of infinities and NaN, what C99's Annex G says: a growth without bound wins over an angle that is not known, a zero over both.


def _is_lost(z: Complex) -> Value:
    """Whether the real part is infinite and the angle infinite or NaN."""
    return absolute(z.re).equals(math.inf) & absolute(z.im).compare("uge", math.inf)


def _times(a: Value, b: Value) -> Value:
    """a * b, and a zero where one of them is, whatever the other."""
    zero = a.writer.constant(0.0, a.type)
    is_zero = a.equals(0.0) | b.equals(0.0)
    one = a.writer.constant(1.0, a.type)
    return is_zero.where(copy_sign(zero, copy_sign(one, a) * copy_sign(one, b)), a * b)


@scalar_op("exp", "c", cost=100)
def complex_exp(z: Complex) -> Complex:
    growth, lost, one = exp(z.re), _is_lost(z), z.re.writer.constant(1.0, z.type)
    sine, cosine = sine_and_cosine(z.im)
    cosine = lost.where(one, cosine)
    sine = (lost & (z.re < 0.0)).where(copy_sign(one, z.im), sine)
    real_only = z.im.equals(0.0)
    return Complex(growth * cosine, real_only.where(z.im, growth * sine))


@scalar_op("log", "c", cost=300)
def complex_log(z: Complex) -> Complex:
    return Complex(log(magnitude(z)), angle(z))


@scalar_op("sqrt", "c", cost=60)
def complex_sqrt(z: Complex) -> Complex:
    """The root with a real part that is not negative."""
    writer = z.re.writer
    length = magnitude(z)
    root = writer.intrinsic("sqrt", length * 0.5 + absolute(z.re) * 0.5)
    other = root.equals(0.0).where(0.0, absolute(z.im) / (root + root))
    right, tall = z.re >= 0.0, absolute(z.im).equals(math.inf)
    re, im = tall.where(math.inf, right.where(root, other)), tall.where(math.inf, right.where(other, root))
    return Complex(re, copy_sign(im, z.im))


@scalar_op("pow", "c", 2, cost=450)
def complex_pow(a: Complex, b: Complex) -> Complex:
    """exp(b log a); 1 for a zero exponent, 0 for a zero base otherwise."""
    result = complex_exp(mul(b, complex_log(a)))
    zero_base = a.re.equals(0.0) & a.im.equals(0.0)
    zero_exponent = b.re.equals(0.0) & b.im.equals(0.0)
    re = zero_exponent.where(1.0, zero_base.where(0.0, result.re))
    return Complex(re, (zero_exponent | zero_base).where(0.0, result.im))


@scalar_op("sin", "c", cost=150)
def complex_sin(z: Complex) -> Complex:
    result = complex_sinh(Complex(-z.im, z.re))
    return Complex(result.im, -result.re)


@scalar_op("cos", "c", cost=150)
def complex_cos(z: Complex) -> Complex:
    return complex_cosh(Complex(-z.im, z.re))


@scalar_op("sinh", "c", cost=150)
def complex_sinh(z: Complex) -> Complex:
    sine, cosine = sine_and_cosine(z.im)
    return Complex(_times(sinh(z.re), _is_lost(z).where(1.0, cosine)), _times(cosh(z.re), sine))


@scalar_op("cosh", "c", cost=150)
def complex_cosh(z: Complex) -> Complex:
    sine, cosine = sine_and_cosine(z.im)
    return Complex(cosh(z.re) * _is_lost(z).where(1.0, cosine), _times(sinh(z.re), sine))


@scalar_op("tanh", "c", cost=330)
def complex_tanh(z: Complex) -> Complex:
    """sinh / cosh by the double angle, with the real part limited where it has reached 1."""
    limit = 40.0
    re = (absolute(z.re) > limit).where(copy_sign(z.re.writer.constant(limit, z.type), z.re), z.re)
    sine, cosine = sine_and_cosine(z.im + z.im)
    flat, zero = absolute(z.re).equals(math.inf), z.re.writer.constant(0.0, z.type)
    sine = flat.where(copy_sign(zero, absolute(z.im).compare("uge", math.inf).where(z.im, sine)), sine)
    scale = cosh(re + re) + flat.where(1.0, cosine)
    return Complex(z.re.equals(0.0).where(z.re, sinh(re + re) / scale), z.im.equals(0.0).where(z.im, sine / scale))


@scalar_op("tan", "c", cost=330)
def complex_tan(z: Complex) -> Complex:
    result = complex_tanh(Complex(-z.im, z.re))
    return Complex(result.im, -result.re)


@scalar_op("sigmoid", "c", cost=200)
def complex_sigmoid(z: Complex) -> Complex:
    decay = complex_exp(Complex(-z.re, -z.im))
    one = z.re.writer.constant(1.0, z.type)
    return div(Complex(one, z.re.writer.constant(0.0, z.type)), Complex(decay.re + one, decay.im))
