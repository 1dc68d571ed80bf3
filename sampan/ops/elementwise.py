"""Arithmetic of two or three tensors, elementwise, with broadcasting and type promotion."""

from __future__ import annotations

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, DTypeError, ShapeError, message
from ..ir.program import Value
from . import primitives as p
from .arguments import broadcast, floating, matched, promoted
from .define import op
from .samples import boolean, distinct, integer, positive, real, values

PAIRS = [(real(3, 4), real(3, 4)), (real(2, 3, 4), real(3, 1)), (real(4), 1.5), (real(), real(2, 2))]
DIVISORS = [(real(3, 4), positive(3, 4, low=1, high=4)), (real(2, 3), positive(3, low=1, high=4)), (real(5, low=-9, high=9), 3)]
SPECIAL = (values(np.nan, np.inf, -np.inf, 0.0, -0.0, np.inf, -1.0), values(1.0, np.inf, 2.0, np.nan, 0.0, -np.inf, np.nan))


def matched_floating(x: Value, y: Value) -> tuple[Value, ...]:
    """Both in one floating (or complex) dtype and one shape."""
    return matched(*map(floating, promoted(x, y)))


def nonzero_divisor(name: str, y: Value) -> Value:
    """y, an integer y with a check at run time that it has no zeros; a number that is plainly not zero needs none."""
    if not dtypes.is_integer(y.dtype):
        return y
    if y.op is not None and y.op.name == "constant" and y.op.attributes["value"] != 0:
        return y
    return p.require(y, p.ne(y, 0), f"{name}(): the integer divisor y holds a zero")


@op(
    ["add"],
    operands=("x", "y"),
    keyword_only=("alpha",),
    method=True,
    inplace=True,
    reference=lambda x, y, alpha=1: np.add(x, alpha * y if alpha != 1 else y),
    samples=[*PAIRS, (real(2, 3), real(3), {"alpha": 3})],
)
def add(x, y, alpha=1):
    """x + alpha * y, elementwise, with broadcasting. Of bool tensors: the logical or."""
    x, y = matched(x, y)
    return p.add(x, y if alpha == 1 else p.mul(y, alpha))


@op(
    ["subtract", "sub"],
    operands=("x", "y"),
    keyword_only=("alpha",),
    method=("subtract", "sub"),
    inplace=("subtract_", "sub_"),
    reference=lambda x, y, alpha=1: np.subtract(x, alpha * y if alpha != 1 else y),
    samples=[*PAIRS, (real(2, 3), real(3), {"alpha": 3})],
)
def subtract(x, y, alpha=1):
    """x - alpha * y, elementwise, with broadcasting."""
    x, y = matched(x, y)
    return p.sub(x, y if alpha == 1 else p.mul(y, alpha))


@op(["multiply", "mul"], method=("multiply", "mul"), inplace=("multiply_", "mul_"), reference=np.multiply, samples=PAIRS)
def multiply(x, y):
    """x * y, elementwise, with broadcasting. Of bool tensors: the logical and."""
    x, y = matched(x, y)
    return p.mul(x, y)


def _divide_reference(x, y, rounding_mode=None):
    return {None: np.divide, "trunc": lambda a, b: np.trunc(np.divide(a, b)), "floor": np.floor_divide}[rounding_mode](x, y)


@op(
    ["divide", "div"],
    operands=("x", "y"),
    keyword_only=("rounding_mode",),
    method=("divide", "div"),
    inplace=("divide_", "div_"),
    reference=_divide_reference,
    samples=[
        *DIVISORS[:2],
        (real(3), 1.5),
        (real(4, low=-9, high=9), positive(4, low=1, high=3), {"rounding_mode": "floor"}),
        (real(4, low=-9, high=9), 4, {"rounding_mode": "trunc"}),
    ],
)
def divide(x, y, rounding_mode=None):
    """x / y, elementwise, with broadcasting; integers divide to the default floating dtype.

    rounding_mode: ``"floor"`` or ``"trunc"`` rounds the quotient and keeps integer dtypes.
    """
    if rounding_mode is None:
        return p.div(*matched_floating(x, y))
    x, y = matched(x, y)
    if rounding_mode == "floor":
        return p.floordiv(x, nonzero_divisor("divide", y))
    if rounding_mode != "trunc":
        raise ArgumentError(message(f"divide(): rounding_mode is {rounding_mode!r}", "it must be None, 'trunc' or 'floor'"))
    quotient = p.div(x, nonzero_divisor("divide", y))
    return quotient if dtypes.is_integer(x.dtype) else p.trunc(quotient)


@op("true_divide", method=True, reference=np.true_divide, samples=DIVISORS)
def true_divide(x, y):
    """x / y, elementwise, with broadcasting; integers divide to the default floating dtype."""
    return p.div(*matched_floating(x, y))


@op("floor_divide", method=True, inplace=True, reference=np.floor_divide, samples=DIVISORS)
def floor_divide(x, y):
    """The largest integer not above x / y. Raises for an integer division by zero; a floating one gives inf or NaN."""
    given = y
    x, y = matched(x, y)
    return p.floordiv(x, y if _is_plain_number(given) else nonzero_divisor("floor_divide", y))


def _is_plain_number(y: Value) -> bool:
    return y.op is not None and y.op.name == "constant" and y.op.attributes["value"] != 0


@op(
    ["remainder", "mod", "floor_mod"],
    method=("remainder", "mod", "floor_mod"),
    inplace=("remainder_", "mod_", "floor_mod_"),
    reference=np.mod,
    samples=DIVISORS,
)
def remainder(x, y):
    """x - floor(x / y) * y, with the sign of y. Raises for an integer division by zero; a floating one gives NaN."""
    given = y
    x, y = matched(x, y)
    return p.mod(x, y if _is_plain_number(given) else nonzero_divisor("remainder", y))


@op(
    "pow",
    method=True,
    inplace=True,
    reference=np.power,
    samples=[(positive(3, 4), real(3, 4)), (real(4), 2), (positive(2, 3), 0.5), (positive(), real(3))],
    tests="noempty",
    aliases={"exponent": "y"},
)
def pow(x, y):
    """x to the power y, elementwise, with broadcasting. A negative integer power of an integer is rounded toward zero."""
    x, y = matched(x, y)
    return p.pow(x, y)


@op("maximum", method=True, reference=np.maximum, samples=[*PAIRS, SPECIAL])
def maximum(x, y):
    """The larger of x and y, elementwise; NaN where either is NaN. Equal elements share the gradient."""
    x, y = matched(x, y)
    return p.maximum(x, y)


@op("minimum", method=True, reference=np.minimum, samples=[*PAIRS, SPECIAL])
def minimum(x, y):
    """The smaller of x and y, elementwise; NaN where either is NaN. Equal elements share the gradient."""
    x, y = matched(x, y)
    return p.minimum(x, y)


@op("fmax", method=True, reference=np.fmax, samples=[*PAIRS, SPECIAL])
def fmax(x, y):
    """The larger of x and y, elementwise; the other one where one is NaN."""
    x, y = matched(x, y)
    return p.fmax(x, y)


@op("fmin", method=True, reference=np.fmin, samples=[*PAIRS, SPECIAL])
def fmin(x, y):
    """The smaller of x and y, elementwise; the other one where one is NaN."""
    x, y = matched(x, y)
    return p.fmin(x, y)


@op("atan2", method=True, reference=np.arctan2, samples=[(real(3, 4), real(3, 4)), (real(3, 1), real(4)), SPECIAL])
def atan2(x, y):
    """The angle of the point (y, x), in (-pi, pi]; float64 for integers."""
    x, y = matched(x, y)
    if dtypes.is_integer(x.dtype):
        x, y = p.cast(x, "float64"), p.cast(y, "float64")
    return p.atan2(floating(x), floating(y))


@op(
    "hypot",
    method=True,
    inplace=True,
    reference=np.hypot,
    samples=[(real(3, 4), real(3, 4)), (values(3e200, 0.0, np.inf, np.nan), values(4e200, 0.0, np.nan, 1.0)), (real(3), 2.0)],
    tests="nograd1",
)
def hypot(x, y):
    """sqrt(x * x + y * y) without overflow; infinite where either is."""
    x, y = (p.abs(v) for v in matched_floating(x, y))
    large, small = p.maximum(x, y), p.minimum(x, y)
    ratio = p.div(small, p.select(p.eq(large, 0), 1, large))
    length = p.mul(large, p.sqrt(p.add(p.mul(ratio, ratio), 1)))
    return p.select(p.bitwise_or(p.isinf(x), p.isinf(y)), float("inf"), length)


@op("logaddexp", method=True, reference=np.logaddexp, samples=[(real(3, 4), real(3, 4)), SPECIAL, (real(3), 2.0)])
def logaddexp(x, y):
    """log(exp(x) + exp(y)) without overflow."""
    x, y = matched_floating(x, y)
    same = p.eq(x, y)
    distance = p.abs(p.sub(p.select(same, 0, x), p.select(same, 0, y)))
    return p.add(p.maximum(x, y), p.log1p(p.exp(p.neg(distance))))


@op("copysign", method=True, inplace=True, reference=np.copysign, samples=[(real(3, 4), real(3, 4)), (real(2, 3), -1.0), SPECIAL])
def copysign(x, y):
    """|x| with the sign of y, that of a zero or NaN too; of signed integers an integer."""
    x, y = matched(x, y)
    if dtypes.kind(x.dtype) == "i":
        size = p.abs(x)
        return p.select(p.lt(y, 0), p.neg(size), size)
    return p.copysign(floating(x), floating(y))


@op("nextafter", method=True, samples=[(real(3, 4), real(3, 4)), (real(3), 1.0), SPECIAL], tests="nograd")
def nextafter(x, y):
    """The next floating number after x in the direction of y; float32 and float64."""
    x, y = matched_floating(x, y)
    if x.dtype not in ("float32", "float64"):
        raise DTypeError(
            message(f"nextafter() does not take {x.dtype}", "it takes float32 and float64", "cast the tensors first")
        )
    return p.nextafter(x, y)


@op(
    "ldexp",
    method=True,
    inplace=True,
    reference=lambda x, y: np.ldexp(x, y),
    samples=[(real(3, 4), integer(3, 4)), (values(1e-30, 2.0), values(100, 3, dtype="int32"))],
)
def ldexp(x, y):
    """x * 2 ** y, in two steps so that only the result can overflow."""
    x, y = matched_floating(x, y)
    if dtypes.itemsize(x.dtype) == 2:  # 2 ** y must not overflow where the product does not
        return p.cast(ldexp(p.cast(x, "float32"), p.cast(y, "float32")), x.dtype)
    half = p.trunc(p.mul(y, 0.5))
    two = p.full(y.shape, 2, y.dtype)
    return p.mul(p.mul(x, p.pow(two, half)), p.pow(two, p.sub(y, half)))


@op(
    "heaviside",
    method=True,
    reference=np.heaviside,
    samples=[(real(3, 4), real(4)), (values(-1.0, 0.0, 2.0, np.nan), values(0.5))],
)
def heaviside(x, y):
    """0 where x < 0, y where x is 0, 1 where x > 0; NaN stays."""
    x, y = matched(x, y)
    return p.select(p.eq(x, 0), y, p.select(p.lt(x, 0), 0, p.select(p.gt(x, 0), 1, x)))


@op(
    "gcd",
    method=True,
    inplace=True,
    reference=np.gcd,
    samples=[(integer(3, 4, low=-30, high=30), integer(3, 4, low=-30, high=30)), (integer(3, dtype="int32"), 6)],
)
def gcd(x, y):
    """The greatest common divisor, not negative; of two zeros 0."""
    x, y = matched(x, y)
    return p.gcd(x, y)


@op(
    "lcm",
    method=True,
    inplace=True,
    reference=np.lcm,
    samples=[(integer(3, 4, low=-30, high=30), integer(3, 4, low=-30, high=30)), (integer(3, dtype="int32"), 6)],
)
def lcm(x, y):
    """The least common multiple, not negative; of a zero and anything 0."""
    x, y = matched(x, y)
    divisor = p.gcd(x, y)
    return p.abs(p.mul(p.floordiv(x, p.maximum(divisor, 1)), y))


@op(
    "lerp",
    method=True,
    inplace=True,
    reference=lambda x, y, w: x + w * (y - x),
    samples=[(real(3, 4), real(3, 4), 0.3), (real(3, 4), real(4), real(3, 1))],
)
def lerp(x, y, weight):
    """x + weight * (y - x)."""
    x, y = promoted(*map(floating, promoted(x, y)))
    x, y, weight = broadcast(x, y, p.cast(weight, x.dtype))
    return p.add(x, p.mul(weight, p.sub(y, x)))


@op(
    ["clip", "clamp"],
    operands=("x", "min", "max"),
    method=("clip", "clamp"),
    inplace=("clip_", "clamp_"),
    reference=lambda x, min=None, max=None: np.clip(x, min, max),
    samples=[
        (real(3, 4), -1, 1),
        (real(3, 4), -1),
        (real(3, 4), {"max": 1}),
        (real(3, 4), real(3, 4, low=-2, high=-1), real(4, low=0, high=1)),
        (SPECIAL[0], -1, 1),
    ],
)
def clip(x, min=None, max=None):
    """x, elements below ``min`` raised to it and those above ``max`` lowered to it; NaN stays. The dtype is x's, or where floating bounds meet an integer x theirs."""
    if x.dtype == "bool":
        raise DTypeError(message("clip() does not take bool", "it takes integer and floating types", "cast the tensor first"))

    bounds = [v for v in (min, max) if v is not None and dtypes.is_floating(v.dtype)]
    if bounds and dtypes.is_integer(x.dtype):
        x = promoted(x, *bounds)[0]

    def as_bound(v: Value) -> Value:
        if not dtypes.is_integer(x.dtype):
            return p.cast(v, x.dtype)
        limits = np.iinfo(x.dtype)
        return p.cast(p.minimum(p.maximum(p.cast(v, "int64"), int(limits.min)), int(limits.max)), x.dtype)

    shape = p.broadcast_shapes(x.shape, *(v.shape for v in (min, max) if v is not None))
    x = p.broadcast_to(x, shape)
    for bound, outside in ((min, p.lt), (max, p.gt)):
        if bound is not None:
            bound = p.broadcast_to(as_bound(bound), shape)
            x = p.select(outside(x, bound), bound, x)
    return x


def _scale_reference(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None):
    return x * scale + bias if bias_after_scale else (x + bias) * scale


@op(
    "scale",
    operands=("x", "scale"),
    method=True,
    inplace=True,
    reference=_scale_reference,
    samples=[(real(3, 4), 2, 1), (real(3, 4), 3, 2, False), (real(3), values(2.0))],
)
def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None):
    """scale * x + bias, or scale * (x + bias) with ``bias_after_scale=False``; in x's dtype.

    Act: an activation's name applied last.
    """
    scale = p.cast(scale, x.dtype)
    factor = p.broadcast_to(p.reshape(scale, ()) if scale.numel == 1 else scale, x.shape)
    bias = p.full(x.shape, bias, x.dtype)
    y = p.add(p.mul(x, factor), bias) if bias_after_scale else p.mul(p.add(x, bias), factor)
    if act is None:
        return y
    activations = {"relu": lambda v: p.maximum(v, 0), "tanh": p.tanh, "sigmoid": p.sigmoid, "exp": p.exp, "sqrt": p.sqrt}
    if act not in activations:
        raise ArgumentError(message(f"scale(): act is {act!r}", f"it must be None or one of {', '.join(activations)}"))
    return activations[act](y)


@op(
    "add_n",
    operands=("inputs",),
    lists=("inputs",),
    variadic="inputs",
    reference=lambda xs: sum(xs[1:], xs[0]),
    samples=[([real(3, 4), real(3, 4), real(3, 4)],), ([real(2)],)],
)
def add_n(inputs):
    """The sum of tensors of one shape."""
    if not inputs:
        raise ArgumentError("add_n(): inputs is an empty list; it takes at least one tensor")
    total, *others = promoted(*inputs)
    for x in others:
        if x.shape != total.shape:
            raise ShapeError(f"add_n(): inputs have shapes {list(total.shape)} and {list(x.shape)}; they must be equal")
        total = p.add(total, x)
    return total


@op(
    "multiplex",
    lists=("inputs",),
    reference=lambda xs, i: np.stack([xs[k][r] for r, k in enumerate(i.ravel())]),
    samples=[([real(3, 4), real(3, 4)], values([[1], [0], [1]], dtype="int32"))],
    tests="noempty",
)
def multiplex(inputs, index):
    """Row r of the tensor inputs[index[r]], for every r. inputs: [N, ...] each; index: int32 or int64 [N, 1] or [N]."""
    inputs = list(promoted(*inputs))
    rows = inputs[0].shape[0] if inputs and inputs[0].ndim else 0
    if index.numel != rows or any(x.shape != inputs[0].shape for x in inputs):
        raise ShapeError(
            f"multiplex(): index {list(index.shape)} must name one of the equally shaped inputs for each of {rows} rows"
        )
    stacked = p.concat([p.reshape(x, (1, *x.shape)) for x in inputs], 0)
    chosen = p.reshape(p.cast(index, "int64"), (rows, 1))
    place = p.concat([chosen, p.iota((rows, 1), 0)], 1)
    return p.gather_nd(stacked, place)


@op(
    "nan_to_num",
    method=True,
    inplace=True,
    reference=lambda x, nan=0.0, posinf=None, neginf=None: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
    samples=[(real(3),), (values(np.nan, np.inf, -np.inf, 1.0), 2.0, 3.0, 4.0)],
)
def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    """x with NaN, inf and -inf replaced by numbers; the infinities by the dtype's largest and smallest by default."""
    if dtypes.is_complex(x.dtype):
        return p.make_complex(*(nan_to_num(part, nan, posinf, neginf) for part in (p.real(x), p.imag(x))))
    if not dtypes.is_floating(x.dtype):
        return x
    largest = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}.get(x.dtype) or float(np.finfo(x.dtype).max)
    high, low = largest if posinf is None else posinf, -largest if neginf is None else neginf
    return p.select(p.isnan(x), nan, p.select(p.isinf(x), p.select(p.gt(x, 0), p.full(x.shape, high, x.dtype), low), x))


@op(
    "increment",
    operands=("x",),
    method=True,
    reference=lambda x, value=1.0: x + value,
    samples=[(real(1),), (real(1), 3)],
    updates=("x",),
    tests="nograd noshape noempty",
)
def increment(x, value=1.0):
    """x + value, in x's dtype, written into x; x has one element. Gives x."""
    if x.numel != 1:
        raise ShapeError(f"increment(): x is {list(x.shape)}; it must have exactly one element")
    return p.add(x, value)


@op(
    ["where"],
    operands=("condition", "x", "y"),
    inplace=True,
    inplace_target="x",
    reference=np.where,
    samples=[(boolean(3, 4), real(3, 4), real(3, 4)), (boolean(3, 1), real(4), 2.0), (boolean(3), distinct(2, 3), real())],
)
def where(condition, x=None, y=None):
    """x where the condition holds, else y, with broadcasting."""
    if x is None or y is None:
        raise ArgumentError(message("where(): x or y is not given", "both are needed to choose between them"))
    x, y = promoted(x, y)
    if condition.dtype != "bool":
        condition = p.ne(condition, 0)
    condition, x, y = broadcast(condition, x, y)
    return p.select(condition, x, y)
