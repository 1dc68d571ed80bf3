"""Rows of elementwise operators: arithmetic, comparison, logic, activations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...nn import functional
from ...tensor import OPS
from ...tensor.variable import Variable
from .rows import row, table, writes
from .values import Mixed, as_tensor, to_plain

table("""
abs
acos
acosh
angle | angle
asin
asinh
atan
atan2 | - | atan2(x, y)
atanh
~bitwise_and
~bitwise_left_shift | bitwise_left_shift(x=x, y=y) {is_arithmetic:b} -> out
bitwise_not
~bitwise_or
~bitwise_right_shift | bitwise_right_shift(x=x, y=y) {is_arithmetic:b} -> out
~bitwise_xor
ceil
celu | celu(X) {alpha:f}
complex | complex(X=real, Y=imag)
conj
~copysign | copysign(x=x, y=y) -> out
cos
cosh
digamma
elu | elu(X) {alpha:f}
erf
erfinv
exp
expm1
floor
~fmax | elementwise_fmax(X, Y)
~fmin | elementwise_fmin(X, Y)
gammaln | gammaln(x=x) -> out
gammaincc | - | gammaincc(x, y)
gelu | gelu(X) {approximate:b}
hardshrink | hard_shrink(X) {threshold:f}
hardsigmoid | hard_sigmoid(X) {slope:f, offset:f}
hardtanh | brelu(X) {t_min:f=min, t_max:f=max} | hardtanh(x) {t_min=min, t_max=max}
~heaviside | elementwise_heaviside(X, Y)
i0 | i0(x=x) -> out
i0e | i0e(x=x) -> out
i1 | i1(x=x) -> out
i1e | i1e(x=x) -> out
isfinite | isfinite_v2(X)
isinf | isinf_v2(X)
isnan | isnan_v2(X)
leaky_relu | leaky_relu(X) {alpha:f=negative_slope}
~lerp | lerp(X, Y, Weight)
lgamma
log
log10
log1p
log2
log_sigmoid | logsigmoid(X) | logsigmoid(x)
logical_and
logical_not
logical_or
logical_xor
logit | logit(X) {eps:f}
~nextafter | nextafter(x=x, y=y) -> out
polygamma | polygamma(x=x) {n:i} -> out
reciprocal
relu
relu6
round | round(X) {decimals:i}
rsqrt
selu | selu(X) {scale:f, alpha:f}
sigmoid
sign
silu
sin
sinh
softplus | softplus(X) {beta:f, threshold:f}
softshrink | softshrink(X) {lambda:f=threshold} | softshrink(x) {threshold}
softsign
sqrt
square
stanh | stanh(X) {scale_a:f, scale_b:f}
swiglu | swiglu(x=x, y=y) -> out
swish
tan
tanh
tanhshrink | tanh_shrink(X) | tanh_shrink(x)
thresholded_relu | thresholded_relu(X) {threshold:f, value:f}
trunc | trunc(X=input) | trunc(x=input)
where | - | where(condition, x, y)
""")


@row("cast(X:r=x) {out_dtype:t=dtype}", "cast(x:r)", tensors="x")
def cast(x: Any, dtype: Any = None) -> Any:
    if isinstance(x, Mixed) and "int" in dtype:
        return Mixed(x.items, dtype, x.is_single)
    return OPS["cast"](as_tensor(x), dtype)


@writes("cast")
def write_cast(emit: Any, x: Any, dtype: Any) -> Any:
    return emit.cast(x, emit.result_dtype())


@row("real(X)", "real(x)")
def real(x: Any) -> Any:
    return OPS["real"](x)


@row("imag(X)", "imag(x)")
def imag(x: Any) -> Any:
    return OPS["imag"](x)


@writes("real", "imag")
def write_part(emit: Any, x: Any) -> Any:
    if x.dtype.startswith("complex"):
        return emit(emit.name, {"X": x}, {})
    return x if emit.name == "real" else emit.filled(x, 0.0)


@row("where(Condition=condition, X=x, Y=y)")
def where(condition: Any, x: Any, y: Any) -> Any:
    return OPS["where"](condition, x, y)


@writes("where")
def write_where(emit: Any, condition: Any, x: Any, y: Any) -> Any:
    operands = emit.broadcast(condition, *emit.promoted(x, y))
    return NotImplemented if operands is None else emit("where", dict(zip(("Condition", "X", "Y"), operands, strict=True)), {})


def _write_pair(emit: Any, name: str, slots: Sequence[str], x: Any, y: Any, *outputs: Any) -> Any:
    """An operation of two operands that does not broadcast or promote by itself."""
    operands = emit.broadcast(*emit.promoted(x, y))
    return NotImplemented if operands is None else emit(name, dict(zip(slots, operands, strict=True)), {}, *outputs)


@row("gammaincc(x=x, y=y) -> out")
def gammaincc(x: Any, y: Any) -> Any:
    return OPS["gammaincc"](x, y)


@writes("gammaincc")
def write_gammaincc(emit: Any, x: Any, y: Any) -> Any:
    return _write_pair(emit, "gammaincc", "xy", x, y, ("out",))


@row("atan2(X1=x, X2=y)")
def atan2(x: Any, y: Any) -> Any:
    return OPS["atan2"](x, y)


@writes("atan2")
def write_atan2(emit: Any, x: Any, y: Any) -> Any:
    return _write_pair(emit, "atan2", ("X1", "X2"), x, y)


def aligned(x: Any, y: Any, axis: int) -> tuple[Any, Any]:
    """x and y as NumPy broadcasts them, where y's first axis lies at x's ``axis``."""
    if axis == -1 or len(y.shape) >= len(x.shape):
        return x, y
    return x, OPS["reshape"](y, [*y.shape, *[1] * (len(x.shape) - axis - len(y.shape))])


_ELEMENTWISE = {
    "add": ("elementwise_add", "add"),
    "subtract": ("elementwise_sub", "subtract"),
    "multiply": ("elementwise_mul", "multiply"),
    "divide": ("elementwise_div", "divide"),
    "floor_divide": ("elementwise_floordiv", "floor_divide"),
    "remainder": ("elementwise_mod", "remainder"),
    "maximum": ("elementwise_max", "maximum"),
    "minimum": ("elementwise_min", "minimum"),
    "pow": ("elementwise_pow", "elementwise_pow"),
    "equal": ("equal", "equal"),
    "not_equal": ("not_equal", "not_equal"),
    "less_than": ("less_than", "less_than"),
    "less_equal": ("less_equal", "less_equal"),
    "greater_than": ("greater_than", "greater_than"),
    "greater_equal": ("greater_equal", "greater_equal"),
}


def _elementwise(ours: str, program: str, pir: str) -> None:
    function = OPS[ours]

    @row(f"{program}(X, Y)", f"{pir}(x, y)", tensors="x y")
    def read(x: Any, y: Any, axis: int = -1) -> Any:
        return function(*aligned(x, y, axis))

    @writes(ours)
    def write(emit: Any, x: Any, y: Any, alpha: Any = 1, rounding_mode: Any = None) -> Any:
        if rounding_mode is not None or alpha != 1:
            return NotImplemented
        x, y = emit.promoted(x, y)
        return emit(program, {"X": x, "Y": y}, {"axis:i": -1})


for _ours, _names in _ELEMENTWISE.items():
    _elementwise(_ours, *_names)


@row("grad_add(X, Y)", "grad_add(x, y)", tensors="x y")
def grad_add(x: Any, y: Any, axis: int = -1) -> Any:
    return OPS["add"](*aligned(x, y, axis))


@row("pow(X, FactorTensor=y)", "pow(x)", tensors="x")
def pow_scalar(x: Any, y: Any = 1.0, factor: Any = None) -> Any:
    return OPS["pow"](x, _number(x, y if factor is None else factor))


def _number(x: Any, value: Any) -> Any:
    """A plain number, an integer where x holds integers and the value is one."""
    if isinstance(value, Variable):
        return value
    number = np.asarray(to_plain(value)).reshape(-1)[0].item()
    is_whole = "int" in str(x.dtype) and number == int(number)
    return int(number) if is_whole else number


@row("scale(X, ScaleTensor=scale, BiasTensor=bias)", "scale(x, scale:f)", tensors="x")
def scale(x: Any, scale: Any = 1.0, bias: Any = 0.0, bias_after_scale: bool = True) -> Any:
    return OPS["scale"](x, _number(x, scale), _number(x, bias), bias_after_scale)


@writes("scale")
def write_scale(emit: Any, x: Any, scale: Any, bias: float, bias_after_scale: bool, act: str | None) -> Any:
    if act is not None:
        return NotImplemented
    factor = emit.number(scale)
    inputs, attributes = {"X": x}, {"bias:f": bias, "bias_after_scale:b": bias_after_scale}
    if factor is None:
        inputs["ScaleTensor"] = scale
    else:
        attributes["scale:f"] = factor
    return emit("scale", inputs, attributes)


@row("clip(X, Min=min, Max=max)", "clip(x, min, max)", tensors="x")
def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    return OPS["clip"](x, *(None if limit is None else _number(x, limit) for limit in (min, max)))


@writes("clip")
def write_clip(emit: Any, x: Any, min: Any, max: Any) -> Any:
    for limit, kind in ((min, "elementwise_max"), (max, "elementwise_min")):
        if limit is not None:
            x = emit(kind, {"X": x, "Y": emit.promoted(x, limit)[1]}, {"axis:i": -1})
    return x


@row("hard_swish(X)", "hardswish(x)")
def hardswish(x: Any, threshold: float = 6.0, scale: float = 6.0, offset: float = 3.0) -> Any:
    return OPS["multiply"](x, OPS["scale"](OPS["clip"](OPS["add"](x, offset), 0.0, threshold), 1.0 / scale))


@writes("hardswish")
def write_hardswish(emit: Any, x: Any) -> Any:
    return emit("hard_swish", {"X": x}, {"threshold:f": 6.0, "scale:f": 6.0, "offset:f": 3.0})


@row("mish(X)", "mish(x) {lambda=threshold}")
def mish(x: Any, threshold: float = 20.0) -> Any:
    return OPS["mish"](x)


@writes("mish")
def write_mish(emit: Any, x: Any) -> Any:
    return emit("mish", {"X": x}, {"threshold:f": 20.0})


@row("prelu(X, Alpha=weight)", "prelu(x, weight)")
def prelu(x: Any, weight: Any, data_format: str = "NCHW", mode: str = "all") -> Any:
    if mode == "element":
        return OPS["where"](OPS["greater_than"](x, 0), x, OPS["multiply"](x, weight))
    return OPS["prelu"](x, OPS["reshape"](weight, [-1]), data_format)


@writes("prelu")
def write_prelu(emit: Any, x: Any, weight: Any, data_format: str) -> Any:
    mode = "all" if math.prod(weight.shape) == 1 else "channel"
    return emit(
        "prelu", {"X": x, "Alpha": weight}, {"data_format:s": "NHWC" if data_format[-1] == "C" else "NCHW", "mode:s": mode}
    )


@row("softmax(X)", "softmax(x)")
def softmax(x: Any, axis: int = -1) -> Any:
    return OPS["softmax"](x, axis)


@row("log_softmax(X)", "log_softmax(x)")
def log_softmax(x: Any, axis: int = -1) -> Any:
    return OPS["log_softmax"](x, axis)


@writes("softmax")
def write_softmax(emit: Any, x: Any, axis: int, dtype: Any) -> Any:
    return emit("softmax", {"X": emit.cast(x, dtype)}, {"axis:i": axis})


@writes("log_softmax")
def write_log_softmax(emit: Any, x: Any, axis: int, dtype: Any) -> Any:
    return emit("log_softmax", {"X": emit.cast(x, dtype)}, {"axis:i": axis})


@row("rrelu(X)", "rrelu(x)")
def rrelu(x: Any, lower: float = 0.125, upper: float = 1.0 / 3, is_test: bool = True) -> Any:
    return functional.rrelu(x, lower, upper, training=not is_test)


@row(
    "assign(X)",
    "assign(x);assign_out_(x, output);share_data_(x);share_data(x);memcpy(x);memcpy_d2h(x);memcpy_h2d(x)",
    tensors="x",
)
def assign(x: Any, output: Any = None, dst_place_type: int = 0) -> Any:
    return OPS["clone"](x)


@writes("clone")
def write_assign(emit: Any, x: Any) -> Any:
    return emit("assign", {"X": x}, {})


@row("increment(X)", "increment(x);increment_(x)")
def increment(x: Any, step: float = 1.0, value: Any = None) -> Any:
    return OPS["add"](x, _number(x, step if value is None else value))


@writes("increment")
def write_increment(emit: Any, x: Any, value: float) -> Any:
    return emit("increment", {"X": x}, {"step:f": value})


@writes("neg", "negative")
def write_neg(emit: Any, x: Any) -> Any:
    return emit("scale", {"X": x}, {"scale:f": -1.0, "bias:f": 0.0, "bias_after_scale:b": True})


@row("isclose(Input=x, Other=y, Rtol=rtol, Atol=atol) {rtol:f, atol:f}", "isclose(x, y, rtol:f, atol:f)", tensors="x y")
def isclose(x: Any, y: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return OPS["isclose"](x, y, float(rtol), float(atol), equal_nan)


@row("allclose(Input=x, Other=y, Rtol=rtol, Atol=atol) {rtol:f, atol:f}", "allclose(x, y, rtol:f, atol:f)", tensors="x y")
def allclose(x: Any, y: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return OPS["allclose"](x, y, float(rtol), float(atol), equal_nan)


@writes("isclose")
def write_isclose(emit: Any, x: Any, y: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    return emit(
        "isclose", {"Input": x, "Other": y}, {"rtol:s": repr(float(rtol)), "atol:s": repr(float(atol)), "equal_nan:b": equal_nan}
    )


@writes("allclose")
def write_allclose(emit: Any, x: Any, y: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    return emit(
        "allclose", {"Input": x, "Other": y}, {"rtol:s": repr(float(rtol)), "atol:s": repr(float(atol)), "equal_nan:b": equal_nan}
    )


table("""
equal_all
as_complex
as_real
add_n | sum(X*=inputs) | add_n(inputs*)
multiplex | multiplex(X*=inputs, Ids=index) | multiplex(inputs*, index)
label_smooth | label_smooth(X=label, PriorDist=prior_dist) {epsilon:f} | label_smooth(label, prior_dist)
maxout | maxout(X) {groups:i, axis:i}
""")
