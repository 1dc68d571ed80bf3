"""Arithmetic, comparison, rounding and logic."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from sampan.codegen.llvm_text import Value
from sampan.codegen.scalar_ops import scalar_op

HALF_EXACT = ("float32", "float64")


def sign_bit(x: Value) -> Value:
    """The float's sign bit, alone, as an integer."""
    return x.integer_bits() & (1 << (x.type.bits - 1))


def copy_sign(magnitude: Value, sign: Value) -> Value:
    return magnitude.writer.intrinsic("copysign", magnitude, sign)


def absolute(x: Value) -> Value:
    return x.writer.intrinsic("fabs", x)


def _rounded(operation: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """The operation rounded by itself: a result must not depend on what else its kernel computes."""

    def rounded(a: Value, b: Value) -> Value:
        with a.writer.exact():
            return operation(a, b)

    return rounded


scalar_op("neg", "iuf")(lambda x: -x)
scalar_op("add", "iuf", 2)(_rounded(operator.add))
scalar_op("sub", "iuf", 2)(_rounded(operator.sub))
scalar_op("mul", "iuf", 2)(_rounded(operator.mul))
scalar_op("div", "f", 2, cost=5)(lambda a, b: a / b)
scalar_op("add", "b", 2)(lambda a, b: a | b)
scalar_op("mul", "b", 2)(lambda a, b: a & b)
scalar_op("abs", "f")(absolute)
scalar_op("abs", "i")(lambda x: (x < 0).where(-x, x))
scalar_op("abs", "bu", cost=0)(lambda x: x)
scalar_op("sqrt", "f", cost=6)(lambda x: x.writer.intrinsic("sqrt", x))
scalar_op("rsqrt", "f", cost=10)(lambda x: 1.0 / x.writer.intrinsic("sqrt", x))
scalar_op("copysign", "f", 2, cost=2)(copy_sign)

for _relation in ("eq", "ne", "lt", "le", "gt", "ge"):
    scalar_op(_relation, "biuf", 2, "bool")(lambda a, b, relation=_relation: a.compare(relation, b))


@scalar_op("sign", "f", cost=3)
def sign(x: Value) -> Value:
    """-1, 0 or 1; NaN stays NaN and a zero keeps its sign."""
    one = copy_sign(x.writer.constant(1.0, x.type), x)
    return x.compare("one", 0.0).where(one, x)


@scalar_op("sign", "i", cost=3)
def integer_sign(x: Value) -> Value:
    return (x > 0).where(1, (x < 0).where(-1, x))


@scalar_op("sign", "u", cost=2)
def unsigned_sign(x: Value) -> Value:
    return (x > 0).where(1, x)


# Rounding. Without SSE4.1 (or another ISA's instruction) LLVM calls libm for each lane, which is right, only slow.

scalar_op("floor", "f")(lambda x: x.writer.intrinsic("floor", x))
scalar_op("ceil", "f")(lambda x: x.writer.intrinsic("ceil", x))
scalar_op("trunc", "f")(lambda x: x.writer.intrinsic("trunc", x))
scalar_op("round", "f")(lambda x: x.writer.intrinsic("rint", x))
for _name in ("floor", "ceil", "trunc", "round"):
    scalar_op(_name, "biu", cost=0)(lambda x: x)

scalar_op("isnan", "f", result="bool")(lambda x: x.is_nan())
scalar_op("isinf", "f", result="bool", cost=2)(lambda x: absolute(x).equals(float("inf")))
scalar_op("isfinite", "f", result="bool", cost=2)(lambda x: absolute(x).compare("one", float("inf")))
for _name, _answer in (("isnan", False), ("isinf", False), ("isfinite", True)):
    scalar_op(_name, "biu", result="bool", cost=0)(lambda x, answer=_answer: x.writer.constant(answer, x.type.bool()))


# Extremes. maximum and minimum give NaN when an argument is NaN; fmax and fmin give the other argument.


@scalar_op("maximum", "f", 2, cost=3)
def maximum(a: Value, b: Value) -> Value:
    return a.is_nan().where(a, (a > b).where(a, b))


@scalar_op("minimum", "f", 2, cost=3)
def minimum(a: Value, b: Value) -> Value:
    return a.is_nan().where(a, (a < b).where(a, b))


@scalar_op("fmax", "f", 2, cost=3)
def fmax(a: Value, b: Value) -> Value:
    return a.is_nan().where(b, (a < b).where(b, a))


@scalar_op("fmin", "f", 2, cost=3)
def fmin(a: Value, b: Value) -> Value:
    return a.is_nan().where(b, (a > b).where(b, a))


for _name in ("maximum", "fmax"):
    scalar_op(_name, "iu", 2)(lambda a, b: (a > b).where(a, b))
    scalar_op(_name, "b", 2)(lambda a, b: a | b)
for _name in ("minimum", "fmin"):
    scalar_op(_name, "iu", 2)(lambda a, b: (a < b).where(a, b))
    scalar_op(_name, "b", 2)(lambda a, b: a & b)


# Logic on truth values (zero is false, NaN is true).


def is_true(x: Value) -> Value:
    return x if x.type.kind == "b" else x.compare("ne", 0)


scalar_op("logical_not", "biuf", result="bool")(lambda x: ~is_true(x))
scalar_op("logical_and", "biuf", 2, "bool")(lambda a, b: is_true(a) & is_true(b))
scalar_op("logical_or", "biuf", 2, "bool")(lambda a, b: is_true(a) | is_true(b))
scalar_op("logical_xor", "biuf", 2, "bool")(lambda a, b: is_true(a) ^ is_true(b))
scalar_op("bitwise_not", "biu")(lambda x: ~x)
scalar_op("bitwise_and", "biu", 2)(lambda a, b: a & b)
scalar_op("bitwise_or", "biu", 2)(lambda a, b: a | b)
scalar_op("bitwise_xor", "biu", 2)(lambda a, b: a ^ b)


# Float division with a floor. The remainder comes first, exactly (as Python and NumPy do it), then the quotient.


def _crosses(remainder: Value, b: Value) -> Value:
    """Whether a remainder of the dividend's sign must move by b to have the divisor's."""
    return remainder.compare("one", 0.0) & (remainder < 0.0).where(b > 0.0, b < 0.0)


def _remainder(a: Value, b: Value) -> Value:
    """C's fmod: by a division where the quotient has few enough bits that the product with it is exact, else by libm."""
    writer = a.writer
    if "fma" not in writer.features:
        return a % b
    size, divisor = absolute(a), absolute(b)
    quotient = size / divisor
    is_short = (quotient < (2.0**22 if a.type.bits == 32 else 2.0**51)) & (divisor < math.inf)

    def short() -> list[Value]:
        rest = writer.fma(-writer.intrinsic("trunc", quotient), divisor, size)
        return [copy_sign((rest < 0.0).where(rest + divisor, rest), a)]

    return writer.choose(writer.any_lane(~is_short), lambda: [a % b], short)[0]


@scalar_op("mod", "f", 2, cost=24)
def mod(a: Value, b: Value) -> Value:
    """a - floor(a / b) * b, exactly: it has the divisor's sign; NaN for a zero divisor or an infinite dividend."""
    remainder = _remainder(a, b)
    return remainder.equals(0.0).where(copy_sign(remainder, b), _crosses(remainder, b).where(remainder + b, remainder))


@scalar_op("floordiv", "f", 2, cost=36)
def floordiv(a: Value, b: Value) -> Value:
    """floor(a / b) of the exact quotient; a / b itself (an infinity or NaN) for a zero divisor."""
    writer = a.writer
    quotient, remainder = a / b, _remainder(a, b)
    with writer.exact():
        whole = (a - remainder) / b
        whole = _crosses(remainder, b).where(whole - 1.0, whole)
    floor = writer.intrinsic("floor", whole)
    rounded = (whole - floor > 0.5).where(floor + 1.0, floor)
    rounded = whole.equals(0.0).where(copy_sign(whole, quotient), rounded)
    return b.equals(0.0).where(quotient, rounded)


@scalar_op("nextafter", "f", 2, cost=12, dtypes=HALF_EXACT)
def nextafter(a: Value, b: Value) -> Value:
    """The next representable number after a towards b; b itself when they are equal."""
    bits = a.integer_bits()
    step = ((a < b) ^ (bits < 0)).where(bits + 1, bits - 1)
    tiny = sign_bit(b) | 1
    moved = a.equals(0.0).where(tiny, step).bits_as(a.type)
    return a.compare("uno", b).where(a + b, a.equals(b).where(b, moved))
