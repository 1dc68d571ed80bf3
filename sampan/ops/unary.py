"""Functions of one tensor, elementwise: arithmetic, rounding, powers, exponentials, logarithms, trigonometry."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import dtypes
from ..base.errors import DTypeError, message
from ..base.lazy import scipy_special as special
from ..ir.program import Value
from . import primitives as p
from .arguments import dtype_name, floating
from .define import OpDef, op
from .samples import Random, real, values

SPECIAL = (values(np.nan, np.inf, -np.inf, 0.0, -0.0),)


def _float_map(
    name: str,
    function: Callable[[Any], Value],
    text: str,
    reference: Any,
    low: float = -2.0,
    high: float = 2.0,
    inplace: Any = True,
    **more: Any,
) -> OpDef:
    """An operator of one tensor that gives floating results; integers and bool go through the default floating dtype."""

    def body(x):
        return function(floating(x))

    body.__name__, body.__doc__ = name, text
    samples = [(Random((3, 4), low, high),), (Random((), low, high),), SPECIAL]
    return op(name, method=True, inplace=inplace, reference=reference, samples=samples, **more)(body)


exp = _float_map("exp", p.exp, "e to the power x.", np.exp)
expm1 = _float_map("expm1", p.expm1, "exp(x) - 1, exact near 0.", np.expm1)
log = _float_map("log", p.log, "The natural logarithm; NaN below 0, -inf at 0.", np.log, 0.1)
log2 = _float_map("log2", p.log2, "The logarithm to base 2.", np.log2, 0.1)
log10 = _float_map("log10", p.log10, "The logarithm to base 10.", np.log10, 0.1)
log1p = _float_map("log1p", p.log1p, "log(1 + x), exact near 0.", np.log1p, -0.9)
sqrt = _float_map("sqrt", p.sqrt, "The square root; NaN below 0.", np.sqrt, 0.1)
rsqrt = _float_map("rsqrt", p.rsqrt, "1 / sqrt(x).", lambda x: 1 / np.sqrt(x), 0.1)
reciprocal = _float_map("reciprocal", lambda x: p.div(p.full(x.shape, 1, x.dtype), x), "1 / x.", lambda x: 1 / x, 0.5)
sin = _float_map("sin", p.sin, "The sine of x in radians.", np.sin)
cos = _float_map("cos", p.cos, "The cosine of x in radians.", np.cos)
tan = _float_map("tan", p.tan, "The tangent of x in radians.", np.tan, -1.2, 1.2)
asin = _float_map("asin", p.asin, "The angle in [-pi/2, pi/2] whose sine is x.", np.arcsin, -0.9, 0.9)
acos = _float_map("acos", p.acos, "The angle in [0, pi] whose cosine is x.", np.arccos, -0.9, 0.9)
atan = _float_map("atan", p.atan, "The angle in (-pi/2, pi/2) whose tangent is x.", np.arctan)
sinh = _float_map("sinh", p.sinh, "The hyperbolic sine.", np.sinh)
cosh = _float_map("cosh", p.cosh, "The hyperbolic cosine.", np.cosh)
tanh = _float_map("tanh", p.tanh, "The hyperbolic tangent.", np.tanh)
asinh = _float_map("asinh", p.asinh, "The inverse hyperbolic sine.", np.arcsinh)
acosh = _float_map("acosh", p.acosh, "The inverse hyperbolic cosine; NaN below 1.", np.arccosh, 1.2, 3.0)
atanh = _float_map("atanh", p.atanh, "The inverse hyperbolic tangent; NaN outside of [-1, 1].", np.arctanh, -0.9, 0.9)
deg2rad = _float_map("deg2rad", lambda x: p.mul(x, math.pi / 180), "Degrees to radians.", np.deg2rad, inplace=False)
rad2deg = _float_map("rad2deg", lambda x: p.mul(x, 180 / math.pi), "Radians to degrees.", np.rad2deg, inplace=False)


def _sinc(x: Value) -> Value:
    angle = p.mul(x, math.pi)
    is_zero = p.eq(x, 0)
    return p.select(is_zero, 1, p.div(p.sin(angle), p.select(is_zero, 1, angle)))


sinc = _float_map("sinc", _sinc, "sin(pi x) / (pi x); 1 at 0, NaN at infinities.", np.sinc)


def _number_map(
    name: str, function: Callable[[Any], Value], text: str, reference: Any, inplace: Any = True, samples: Any = None, **more: Any
) -> OpDef:
    """An operator of one tensor that keeps its dtype."""

    def body(x):
        return function(x)

    body.__name__, body.__doc__ = name, text
    more.setdefault("method", True)
    return op(
        more.pop("api", name),
        inplace=inplace,
        reference=reference,
        samples=samples or [(real(3, 4),), (real(),), SPECIAL],
        **more,
    )(body)


def _rounded(primitive: Callable[[Any], Value]) -> Callable[[Any], Value]:
    return lambda x: x if dtypes.is_integer(x.dtype) else primitive(x)


abs = _number_map("abs", lambda x: p.abs(x) if x.dtype != "bool" else x, "|x|; the magnitude (real) of complex numbers.", np.abs)
neg = _number_map("neg", p.neg, "-x.", np.negative)
negative = _number_map("negative", p.neg, "-x.", np.negative, inplace=False)
square = _number_map("square", lambda x: p.mul(x, x), "x * x.", np.square)
floor = _number_map("floor", _rounded(p.floor), "The largest integer not above x.", np.floor)
ceil = _number_map("ceil", _rounded(p.ceil), "The smallest integer not below x.", np.ceil)
sign = _number_map("sign", p.sign, "-1, 0 or 1 by the sign of x; x / |x| of complex numbers.", np.sign, inplace=False)
sgn = _number_map("sgn", p.sign, "-1, 0 or 1 by the sign of x; x / |x| of complex numbers.", np.sign, inplace=False)
signbit = _number_map(
    "signbit",
    lambda x: p.lt(p.copysign(p.full(x.shape, 1, x.dtype), x), 0) if dtypes.is_floating(x.dtype) else p.lt(x, 0),
    "Whether the sign bit of x is set: true for -0.0 and a negative NaN.",
    lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0,
    inplace=False,
)


@op("positive", method=True, reference=lambda x: +x if x.dtype != bool else x, samples=[(real(3, 4),)])
def positive(x):
    """x itself; bool tensors are refused."""
    if x.dtype == "bool":
        raise DTypeError(message("positive() does not take bool", "it takes numbers", "cast the tensor first"))
    return x


@op(
    "trunc",
    operands=("input",),
    method=True,
    inplace=True,
    reference=lambda x: np.trunc(x),
    samples=[(real(3, 4),), SPECIAL],
    aliases={"x": "input"},
)
def trunc(input):
    """x without its fraction, toward zero."""
    return _rounded(p.trunc)(input)


@op("frac", method=True, inplace=True, reference=lambda x: x - np.trunc(x), samples=[(real(3, 4),)])
def frac(x):
    """x - trunc(x), with the sign of x."""
    return p.sub(x, _rounded(p.trunc)(x))


def _round_reference(x, decimals=0):
    return np.round(x, decimals)


@op(
    "round",
    operands=("x",),
    method=True,
    inplace=True,
    reference=_round_reference,
    samples=[(real(3, 4),), (values(0.5, 1.5, 2.5, -0.5, np.nan),), (real(3, low=-9, high=9), 1), SPECIAL],
    tolerance=2,
)
def round(x, decimals=0):
    """x rounded to ``decimals`` places (negative: to tens, hundreds ...), halves to even."""
    if not decimals or dtypes.is_integer(x.dtype):
        return _rounded(p.round)(x)
    if dtypes.itemsize(x.dtype) == 2:
        return p.cast(round(p.cast(x, "float32"), decimals), x.dtype)
    if decimals > 0:
        return p.div(p.round(p.mul(x, 10.0**decimals)), 10.0**decimals)
    return p.mul(p.round(p.div(x, 10.0**-decimals)), 10.0**-decimals)


@op(
    "stanh",
    operands=("x",),
    method=True,
    reference=lambda x, a=0.67, b=1.7159: b * np.tanh(a * x),
    samples=[(real(3, 4),), (real(3), 1.5, 2.0)],
)
def stanh(x, scale_a=0.67, scale_b=1.7159):
    """scale_b * tanh(scale_a * x)."""
    return p.mul(p.tanh(p.mul(floating(x), scale_a)), scale_b)


def _logit_reference(x, eps=None):
    return special.logit(x if eps is None else np.clip(x, eps, 1 - eps))


@op(
    "logit",
    operands=("x",),
    method=True,
    inplace=True,
    reference=_logit_reference,
    samples=[(real(3, 4, low=0.1, high=0.9),), (values(-0.5, 0.02, 1.5, 0.4), 0.1), (values(0.0, 1.0, 2.0, np.nan),)],
    tolerance=3,
)
def logit(x, eps=None):
    """log(x / (1 - x)), x first brought into [eps, 1 - eps] where eps is given; NaN outside of [0, 1]."""
    x = floating(x)
    if eps is not None:
        x = p.select(p.lt(x, eps), eps, p.select(p.gt(x, 1 - eps), 1 - eps, x))
    return p.log(p.div(x, p.sub(1, x)))


@op(
    "cast",
    operands=("x",),
    method=("cast", "astype"),
    inplace=True,
    reference=lambda x, t: x.astype(t),
    samples=[(real(3, 4), "float32"), (real(3, 4, low=0), "int32"), (real(3), "complex64")],
    tests="nograd",
)
def cast(x, dtype):
    """x in another dtype. Floats become integers toward zero, saturating; NaN gives 0."""
    return p.cast(x, dtype_name("cast", dtype))


@op(tests="nograd noempty")
def python_number(x):
    """The 0-D tensor x as a Python number is to operators: it lifts the kind of another operand's dtype, never the width."""
    made = p.reshape(p.mul(x, 1) if x.dtype != "bool" else x, ())
    made.weak = True
    return made


def checked_probability(name: str, x: Value) -> Value:
    """x, checked at run time to lie in [0, 1]."""
    inside = p.bitwise_and(p.ge(x, 0), p.le(x, 1))
    return p.require(x, inside, f"{name}(): a probability is outside of [0, 1]")


@op(
    "frexp",
    method=True,
    reference=lambda x: tuple(a.astype(x.dtype) for a in np.frexp(x)),
    samples=[(real(3, 4, low=-50, high=50),), (values(8.5, 0.0, -3.0, 0.0625),)],
    tests="nograd",
)
def frexp(x):
    """(mantissa, exponent): x = mantissa * 2 ** exponent with 0.5 <= |mantissa| < 1; both in x's floating dtype."""
    x = floating(x)
    if dtypes.is_complex(x.dtype):
        raise DTypeError(message(f"frexp() does not take {x.dtype}", "it takes real types"))
    ordinary = p.bitwise_and(p.isfinite(x), p.ne(x, 0))
    size = p.select(ordinary, p.abs(x), 1)
    exponent = p.add(p.floor(p.log2(size)), 1)
    power = p.pow(p.full(x.shape, 2, x.dtype), exponent)
    # log2 may be rounded to the wrong side of a power of two
    exponent = p.select(
        p.ge(size, power), p.add(exponent, 1), p.select(p.lt(size, p.mul(power, 0.5)), p.sub(exponent, 1), exponent)
    )
    mantissa = p.div(x, p.pow(p.full(x.shape, 2, x.dtype), exponent))
    return p.select(ordinary, mantissa, x), p.select(ordinary, exponent, 0)


erf = _float_map("erf", p.erf, "The error function.", special.erf)
erfinv = _float_map(
    "erfinv",
    p.erfinv,
    "The inverse of erf; NaN outside of [-1, 1], infinite at its ends.",
    special.erfinv,
    -0.9,
    0.9,
    tolerance=5,
)
lgamma = _float_map(
    "lgamma", p.lgamma, "log(|gamma(x)|).", lambda x: np.where(np.isinf(x), np.inf, special.gammaln(x)), 0.5, tolerance=3
)
gammaln = _float_map(
    "gammaln", p.lgamma, "log(|gamma(x)|).", lambda x: np.where(np.isinf(x), np.inf, special.gammaln(x)), 0.5, tolerance=3
)
digamma = _float_map(
    "digamma", p.digamma, "The derivative of lgamma; NaN at 0 and the negative integers.", special.digamma, 0.5, tolerance=3
)
i0 = _float_map("i0", p.i0, "The modified Bessel function of the first kind, order 0.", special.i0)
i0e = _float_map("i0e", p.i0e, "exp(-|x|) * i0(x).", special.i0e, inplace=False)
i1 = _float_map("i1", p.i1, "The modified Bessel function of the first kind, order 1.", special.i1, inplace=False)
i1e = _float_map("i1e", p.i1e, "exp(-|x|) * i1(x).", special.i1e, inplace=False)
