"""Elementwise primitives: one table row each, with its NumPy meaning, and the gradients as a second table."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base import dtypes
from ...base.errors import DTypeError
from ...base.lazy import scipy_special as special
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Primitive, constant, gradient_of, map_call, register, require_kind, same_dtype, same_shape

ANY, NUMBER, REAL, FLOAT, INEXACT, INTEGER, BITS = "buifc", "uifc", "buif", "f", "fc", "ui", "bui"


def _wide(function: Callable[..., Array]) -> Callable[..., Array]:
    """Compute 16-bit floats in float32 and round once."""

    def evaluate(*arrays: Array, **attributes: Any) -> Array:
        dtype = arrays[0].dtype
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if dtype.itemsize == 2 and dtypes.kind(dtype.name) == "f":
                result = function(*(a.astype(np.float32) if a.dtype == dtype else a for a in arrays), **attributes)
                return result.astype(dtype) if result.dtype == np.float32 else result
            return function(*arrays, **attributes)

    return evaluate


def _map(name: str, kinds: str, function: Callable[..., Any], result: str = "") -> Callable[..., Value]:
    """Define a map. result: the output dtype when it is not the operands'."""

    def infer(op: Op) -> list[Type]:
        dtype = require_kind(op, kinds, same_dtype(op))
        return [(result or dtype, same_shape(op))]

    def evaluate(*arrays: Array) -> Array:
        return np.asarray(function(*arrays)).astype(result or arrays[0].dtype, copy=False)

    register(Primitive(name, "map", infer, _wide(evaluate)))

    def call(*operands: Any) -> Value:
        return map_call(name, *operands)

    call.__name__ = name
    return call


def _integer_safe(function: Callable[..., Any], at_zero: int) -> Callable[..., Any]:
    """Integer division by zero gives ``at_zero`` here, as in the kernels; dispatch raises before it comes to that."""

    def safe(x: Array, y: Array) -> Array:
        if x.dtype.kind in "iub":
            return np.where(y == 0, np.asarray(at_zero, x.dtype), function(x, np.where(y == 0, np.asarray(1, x.dtype), y)))
        return function(x, y)

    return safe


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        # a negative exponent: 1/x rounded toward zero
        small = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0)).astype(x.dtype)
        return np.where(y < 0, small, np.power(x, np.where(y < 0, np.zeros_like(y), y)))
    return np.power(x, y)


def _divide(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        quotient = np.floor_divide(x, y)
        inexact = (quotient * y != x) & (quotient < 0)
        return quotient + inexact
    return np.divide(x, y)


def _shift(function: Callable[..., Any], left: bool) -> Callable[..., Any]:
    def shift(x: Array, y: Array) -> Array:
        width = x.dtype.itemsize * 8
        far = (y < 0) | (y >= width)
        shifted = function(x, np.where(far, np.zeros_like(y), y))
        return np.where(far, np.zeros_like(x) if left else np.where(x < 0, -1, 0).astype(x.dtype), shifted)

    return shift


def _sign(x: Array) -> Array:
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size))
    return np.sign(x)


neg = _map("neg", NUMBER, np.negative)
sign = _map("sign", NUMBER, _sign)
exp = _map("exp", INEXACT, np.exp)
expm1 = _map("expm1", INEXACT, np.expm1)
log = _map("log", INEXACT, np.log)
log1p = _map("log1p", INEXACT, np.log1p)
log2 = _map("log2", INEXACT, np.log2)
log10 = _map("log10", INEXACT, np.log10)
sqrt = _map("sqrt", INEXACT, np.sqrt)
rsqrt = _map("rsqrt", INEXACT, lambda x: 1 / np.sqrt(x))
sin = _map("sin", INEXACT, np.sin)
cos = _map("cos", INEXACT, np.cos)
tan = _map("tan", INEXACT, np.tan)
asin = _map("asin", INEXACT, np.arcsin)
acos = _map("acos", INEXACT, np.arccos)
atan = _map("atan", INEXACT, np.arctan)
sinh = _map("sinh", INEXACT, np.sinh)
cosh = _map("cosh", INEXACT, np.cosh)
tanh = _map("tanh", INEXACT, np.tanh)
asinh = _map("asinh", INEXACT, np.arcsinh)
acosh = _map("acosh", INEXACT, np.arccosh)
atanh = _map("atanh", INEXACT, np.arctanh)
sigmoid = _map("sigmoid", INEXACT, lambda x: special.expit(x) if x.dtype.kind == "f" else 1 / (1 + np.exp(-x)))
erf = _map("erf", FLOAT, special.erf)
erfc = _map("erfc", FLOAT, special.erfc)
_one_over_root_two_pi = 1 / math.sqrt(2 * math.pi)


def _normal_density(x: Array) -> Array:
    return np.exp(x * x * -0.5) * _one_over_root_two_pi


gelu = _map("gelu", FLOAT, lambda x: np.where(x == -np.inf, 0, x) * special.ndtr(x))
gelu_slope = _map("gelu_slope", FLOAT, lambda x: special.ndtr(x) + np.where(np.abs(x) > 40, 0, x * _normal_density(x)))
erfinv = _map("erfinv", FLOAT, special.erfinv)


def _lgamma(x: Array) -> Array:
    """SciPy's, but +inf at -inf as in C99."""
    return np.where(np.isinf(x), np.inf, special.gammaln(x))


lgamma = _map("lgamma", FLOAT, _lgamma)
digamma = _map("digamma", FLOAT, special.digamma)
floor = _map("floor", "uif", np.floor)
ceil = _map("ceil", "uif", np.ceil)
round = _map("round", "uif", np.round)
trunc = _map("trunc", "uif", np.trunc)
isnan = _map("isnan", ANY, np.isnan, "bool")
isinf = _map("isinf", ANY, np.isinf, "bool")
isfinite = _map("isfinite", ANY, np.isfinite, "bool")
bitwise_not = _map("bitwise_not", BITS, np.invert)
conj = _map("conj", "c", np.conj)

add = _map("add", ANY, np.add)
sub = _map("sub", NUMBER, np.subtract)
mul = _map("mul", ANY, np.multiply)
div = _map("div", NUMBER, _integer_safe(_divide, 0))
floordiv = _map("floordiv", "uif", _integer_safe(np.floor_divide, 0))
mod = _map("mod", "uif", _integer_safe(np.mod, 0))
fmod = _map("fmod", "uif", _integer_safe(np.fmod, 0))
pow = _map("pow", NUMBER, _power)
maximum = _map("maximum", REAL, np.maximum)
minimum = _map("minimum", REAL, np.minimum)
fmax = _map("fmax", REAL, np.fmax)
fmin = _map("fmin", REAL, np.fmin)
atan2 = _map("atan2", FLOAT, np.arctan2)
nextafter = _map("nextafter", FLOAT, np.nextafter)
copysign = _map("copysign", FLOAT, np.copysign)
bitwise_and = _map("bitwise_and", BITS, np.bitwise_and)
bitwise_or = _map("bitwise_or", BITS, np.bitwise_or)
bitwise_xor = _map("bitwise_xor", BITS, np.bitwise_xor)
shift_left = _map("shift_left", INTEGER, _shift(np.left_shift, True))
shift_right = _map("shift_right", INTEGER, _shift(np.right_shift, False))
eq = _map("eq", ANY, np.equal, "bool")
ne = _map("ne", ANY, np.not_equal, "bool")
lt = _map("lt", REAL, np.less, "bool")
le = _map("le", REAL, np.less_equal, "bool")
gt = _map("gt", REAL, np.greater, "bool")
ge = _map("ge", REAL, np.greater_equal, "bool")


def _infer_real(op: Op) -> list[Type]:
    return [(dtypes.real_of(op.inputs[0].dtype), op.inputs[0].shape)]


register(Primitive("abs", "map", _infer_real, _wide(np.abs)))
register(Primitive("real", "map", _infer_real, lambda x: np.real(x)))
register(Primitive("imag", "map", _infer_real, lambda x: np.imag(x)))
register(Primitive("angle", "map", _infer_real, _wide(np.angle)))
register(
    Primitive(
        "make_complex",
        "map",
        lambda op: [(dtypes.complex_of(same_dtype(op)), same_shape(op))],
        lambda x, y: _pair(x, y),
    )
)


def _pair(x: Array, y: Array) -> Array:
    result = np.empty(x.shape, dtypes.complex_of(x.dtype.name))
    result.real, result.imag = x, y
    return result


def abs(x: Any) -> Value:
    """|x|; of a complex number its magnitude, real."""
    return map_call("abs", x)


def real(x: Any) -> Value:
    """The real part."""
    return map_call("real", x)


def imag(x: Any) -> Value:
    """The imaginary part."""
    return map_call("imag", x)


def angle(x: Any) -> Value:
    """The angle in radians; of a negative real number pi."""
    return map_call("angle", x)


def make_complex(x: Any, y: Any) -> Value:
    """x + iy."""
    return map_call("make_complex", x, y)


def _infer_select(op: Op) -> list[Type]:
    if op.inputs[0].dtype != "bool" or op.inputs[1].dtype != op.inputs[2].dtype:
        raise DTypeError(f"select: takes (bool, T, T), got ({', '.join(v.dtype for v in op.inputs)})")
    return [(op.inputs[1].dtype, same_shape(op))]


register(Primitive("select", "map", _infer_select, lambda c, a, b: np.where(c, a, b)))


def select(condition: Value, a: Any, b: Any) -> Value:
    """a where the condition holds, else b."""
    dtype = next(v.dtype for v in (a, b) if isinstance(v, Value))
    a, b = (v if isinstance(v, Value) else constant(v, dtype) for v in (a, b))
    return map_call("select", condition, a, b)


def _cast(x: Array, dtype: str) -> Array:
    target = dtypes.numpy_dtype(dtype)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if x.dtype.kind == "c" and target.kind != "c":
            x = x.real if target.kind != "b" else x != 0
        if dtypes.kind(x.dtype.name) == "f" and dtypes.kind(dtype) in "iu":
            # NaN gives 0 and values outside the range saturate, on every device alike
            limits = np.iinfo(target)
            wide = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
            inside = (wide >= float(limits.min)) & (wide < float(limits.max) + (limits.bits < 64))
            low_or_high = np.where(wide < 0, limits.min, limits.max).astype(target)
            return np.where(inside, np.where(inside, wide, 0).astype(target), low_or_high)
        return x.astype(target)


register(Primitive("cast", "map", lambda op: [(op.attributes["dtype"], op.inputs[0].shape)], _cast))


def cast(x: Value, dtype: str) -> Value:
    """x in another dtype; x itself when it has it. Floats become integers toward zero, saturating; NaN gives 0."""
    return x if x.dtype == dtype else map_call("cast", x, dtype=dtype)


register(
    Primitive(
        "bitcast",
        "map",
        lambda op: [(op.attributes["dtype"], op.inputs[0].shape)],
        lambda x, dtype: np.ascontiguousarray(x).view(dtypes.numpy_dtype(dtype)),
    )
)

# ------------------------------------------------------------------ gradients, one row each

_two_over_root_pi = 2 / math.sqrt(math.pi)


def _row(name: str, rule: Callable[..., Any]) -> None:
    """rule(g, y, *x) gives the gradients of the operands; y is the output."""

    @gradient_of(name)
    def gradient(op: Op, g: Value) -> tuple[Value | None, ...]:
        result = rule(g, op.outputs[0], *op.inputs)
        return result if isinstance(result, tuple) else (result,)


def _conjugate(x: Value) -> Value:
    return conj(x) if dtypes.is_complex(x.dtype) else x


def _zero_to_one(x: Value) -> Value:
    return select(eq(x, 0), 1, x)


def _picked(g: Value, x: Value, y: Value, first: Value) -> tuple[Value, Value]:
    """The gradient to the winner of (x, y); a tie is shared."""
    half = mul(g, 0.5)
    tie = eq(x, y)
    return select(tie, half, select(first, g, 0)), select(tie, half, select(first, 0, g))


for _name, _rule in {
    "neg": lambda g, y, x: neg(g),
    "abs": lambda g, y, x: mul(g, sign(x)) if not dtypes.is_complex(x.dtype) else mul(make_complex(g, mul(g, 0)), sign(x)),
    "exp": lambda g, y, x: mul(g, _conjugate(y)),
    "expm1": lambda g, y, x: mul(g, _conjugate(add(y, 1))),
    "log": lambda g, y, x: div(g, _conjugate(x)),
    "log1p": lambda g, y, x: div(g, _conjugate(add(x, 1))),
    "log2": lambda g, y, x: div(g, _conjugate(mul(x, math.log(2)))),
    "log10": lambda g, y, x: div(g, _conjugate(mul(x, math.log(10)))),
    "sqrt": lambda g, y, x: div(mul(g, 0.5), _conjugate(y)),
    "rsqrt": lambda g, y, x: mul(mul(g, -0.5), _conjugate(div(y, x))),
    "sin": lambda g, y, x: mul(g, _conjugate(cos(x))),
    "cos": lambda g, y, x: neg(mul(g, _conjugate(sin(x)))),
    "tan": lambda g, y, x: mul(g, _conjugate(add(mul(y, y), 1))),
    "asin": lambda g, y, x: div(g, _conjugate(sqrt(sub(1, mul(x, x))))),
    "acos": lambda g, y, x: neg(div(g, _conjugate(sqrt(sub(1, mul(x, x)))))),
    "atan": lambda g, y, x: div(g, _conjugate(add(mul(x, x), 1))),
    "sinh": lambda g, y, x: mul(g, _conjugate(cosh(x))),
    "cosh": lambda g, y, x: mul(g, _conjugate(sinh(x))),
    "tanh": lambda g, y, x: mul(g, _conjugate(sub(1, mul(y, y)))),
    "asinh": lambda g, y, x: div(g, _conjugate(sqrt(add(mul(x, x), 1)))),
    "acosh": lambda g, y, x: div(g, _conjugate(sqrt(sub(mul(x, x), 1)))),
    "atanh": lambda g, y, x: div(g, _conjugate(sub(1, mul(x, x)))),
    "sigmoid": lambda g, y, x: mul(g, _conjugate(mul(y, sub(1, y)))),
    "erf": lambda g, y, x: mul(g, mul(exp(neg(mul(x, x))), _two_over_root_pi)),
    "erfc": lambda g, y, x: mul(g, mul(exp(neg(mul(x, x))), -_two_over_root_pi)),
    "gelu": lambda g, y, x: mul(g, gelu_slope(x)),
    "gelu_slope": lambda g, y, x: mul(g, mul(mul(exp(mul(mul(x, x), -0.5)), _one_over_root_two_pi), sub(2, mul(x, x)))),
    "erfinv": lambda g, y, x: mul(g, mul(exp(mul(y, y)), 1 / _two_over_root_pi)),
    "lgamma": lambda g, y, x: mul(g, digamma(x)),
    "real": lambda g, y, x: make_complex(g, mul(g, 0)) if dtypes.is_complex(x.dtype) else g,
    "imag": lambda g, y, x: make_complex(mul(g, 0), g) if dtypes.is_complex(x.dtype) else mul(g, 0),
    "conj": lambda g, y, x: conj(g),
    "make_complex": lambda g, y, a, b: (real(g), imag(g)),
    "add": lambda g, y, a, b: (g, g),
    "sub": lambda g, y, a, b: (g, neg(g)),
    "mul": lambda g, y, a, b: (mul(g, _conjugate(b)), mul(g, _conjugate(a))),
    "div": lambda g, y, a, b: (div(g, _conjugate(b)), neg(mul(g, _conjugate(div(y, b))))),
    "mod": lambda g, y, a, b: (g, neg(mul(g, floor(div(a, b))))),
    "fmod": lambda g, y, a, b: (g, neg(mul(g, trunc(div(a, b))))),
    "pow": lambda g, y, a, b: (
        mul(g, _conjugate(select(eq(b, 0), 0, mul(b, pow(a, sub(b, 1)))))),
        mul(g, _conjugate(select(eq(a, 0), 0, mul(y, log(_zero_to_one(a)))))),
    ),
    "maximum": lambda g, y, a, b: _picked(g, a, b, gt(a, b)),
    "minimum": lambda g, y, a, b: _picked(g, a, b, lt(a, b)),
    "fmax": lambda g, y, a, b: _picked(g, a, b, bitwise_or(gt(a, b), isnan(b))),
    "fmin": lambda g, y, a, b: _picked(g, a, b, bitwise_or(lt(a, b), isnan(b))),
    "atan2": lambda g, y, a, b: (div(mul(g, b), add(mul(a, a), mul(b, b))), neg(div(mul(g, a), add(mul(a, a), mul(b, b))))),
    "copysign": lambda g, y, a, b: (mul(g, mul(select(eq(a, 0), 0, sign(a)), copysign(select(eq(a, a), 1, a), b))), mul(g, 0)),
    "select": lambda g, y, c, a, b: (None, select(c, g, 0), select(c, 0, g)),
}.items():
    _row(_name, _rule)


def _sign_gradient(g: Value, y: Value, x: Value) -> Value:
    """0 of real numbers; of complex ones the part of g across y, over the magnitude."""
    if not dtypes.is_complex(x.dtype):
        return mul(g, 0)
    size = abs(x)
    along = real(mul(conj(y), g))
    across = sub(g, mul(y, make_complex(along, mul(along, 0))))
    return mul(across, make_complex(select(eq(size, 0), 0, div(1, _zero_to_one(size))), mul(size, 0)))


_row("sign", _sign_gradient)
for _name in ("floor", "ceil", "round", "trunc", "floordiv", "nextafter"):  # flat almost everywhere
    _row(_name, lambda g, y, *x: tuple(mul(g, 0) for _ in x))


@gradient_of("cast")
def _cast_gradient(op: Op, g: Value) -> tuple[Value | None, ...]:
    source = op.inputs[0].dtype
    if dtypes.is_complex(g.dtype) and not dtypes.is_complex(source):
        g = real(g)
    return (cast(g, source) if dtypes.is_differentiable(source) else None,)


@gradient_of("angle")
def _angle_gradient(op: Op, g: Value) -> tuple[Value | None, ...]:
    x = op.inputs[0]
    if not dtypes.is_complex(x.dtype):
        return (mul(g, 0),)
    size = add(mul(real(x), real(x)), mul(imag(x), imag(x)))
    return (make_complex(neg(div(mul(g, imag(x)), size)), div(mul(g, real(x)), size)),)
