"""Activations. https://arxiv.org/abs/1606.08415 (gelu), https://arxiv.org/abs/1710.05941 (swish), https://arxiv.org/abs/1908.08681 (mish)"""

from __future__ import annotations

import math

import numpy as np

from ..base.errors import ArgumentError, ShapeError, message
from ..base.kinds import AboveOne, Count, Format, NotNegative, NotZero
from ..base.lazy import scipy_special as special
from . import primitives as p
from .arguments import dtype_name, floating, normalized_axis, ranked, shifted
from .define import op
from .samples import real

_ONE = [(real(3, 5, low=-4.0, high=4.0),)]
_F = "nn.functional."
_ROOT_TWO_OVER_PI = math.sqrt(2 / math.pi)


def _relu_gradient(op_, g):
    return (p.select(p.gt(op_.outputs[0], 0), g, 0),)


@op((_F + "relu",), inplace=True, reference=lambda x: np.maximum(x, 0), samples=_ONE, gradient=_relu_gradient)
def relu(x):
    """max(x, 0); NaN stays NaN."""
    return p.maximum(x, 0)


@op((_F + "relu6",), reference=lambda x: np.clip(x, 0, 6), samples=_ONE)
def relu6(x):
    """min(max(x, 0), 6)."""
    return p.minimum(p.maximum(x, 0), 6)


@op(
    (_F + "leaky_relu",),
    inplace=True,
    reference=lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
    samples=_ONE,
)
def leaky_relu(x, negative_slope=0.01):
    """x where x > 0, else negative_slope * x."""
    return p.select(p.gt(x, 0), x, p.mul(x, negative_slope))


@op((_F + "elu",), inplace=True, reference=lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x)), samples=_ONE)
def elu(x, alpha=1.0):
    """x where x > 0, else alpha * (exp(x) - 1). https://arxiv.org/abs/1511.07289"""
    return p.select(p.gt(x, 0), x, p.mul(p.expm1(p.minimum(x, 0)), alpha))


@op((_F + "celu",), reference=lambda x, alpha=1.0: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)), samples=_ONE)
def celu(x, alpha: NotZero = 1.0):
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)). https://arxiv.org/abs/1704.07483"""
    return p.select(p.gt(x, 0), x, p.mul(p.expm1(p.div(p.minimum(x, 0), alpha)), alpha))


@op((_F + "selu",), samples=_ONE)
def selu(x, scale: AboveOne = 1.0507009873554804934193349852946, alpha: NotNegative = 1.6732632423543772848170429916717):
    """scale * (x where x > 0, else alpha * (exp(x) - 1)). https://arxiv.org/abs/1706.02515"""
    return p.mul(p.select(p.gt(x, 0), x, p.mul(p.expm1(p.minimum(x, 0)), alpha)), scale)


@op(("sigmoid", _F + "sigmoid"), method=True, inplace=True, reference=special.expit, samples=_ONE)
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return p.sigmoid(floating(x))


@op((_F + "log_sigmoid", _F + "logsigmoid"), reference=special.log_expit, samples=_ONE)
def log_sigmoid(x):
    """log(1 / (1 + exp(-x))), without overflow."""
    return p.sub(p.minimum(x, 0), p.log1p(p.exp(p.neg(p.abs(x)))))


@op((_F + "silu",), operands=("x",), reference=lambda x: x * special.expit(x), samples=_ONE)
def silu(x, inplace=False):
    """x * sigmoid(x); ``inplace`` is accepted for compatibility."""
    return p.mul(x, p.sigmoid(x))


@op((_F + "swish",), reference=lambda x: x * special.expit(x), samples=_ONE)
def swish(x):
    """x * sigmoid(x)."""
    return p.mul(x, p.sigmoid(x))


def _gelu_gradient(op_, g):
    (x,) = op_.inputs
    if op_.attributes["approximate"] not in (True, "tanh"):
        return (p.mul(g, p.gelu_slope(x)),)
    cube = p.add(p.mul(p.mul(x, x), 0.044715), 1)
    t = p.tanh(p.mul(p.mul(x, cube), _ROOT_TWO_OVER_PI))
    steep = p.mul(p.mul(p.mul(x, 0.5), p.sub(1, p.mul(t, t))), p.mul(p.sub(p.mul(cube, 3), 2), _ROOT_TWO_OVER_PI))
    return (p.mul(g, p.add(p.mul(p.add(t, 1), 0.5), steep)),)


@op(
    (_F + "gelu",),
    reference=lambda x, approximate=False: (
        x * special.ndtr(x) if not approximate else 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    samples=[*_ONE, (real(3, 5), True)],
    gradient=_gelu_gradient,
)
def gelu(x, approximate=False):
    """x times the normal distribution function of x; approximate (True or ``"tanh"``; ``"none"`` is False): by tanh."""
    if approximate not in (True, False, "tanh", "none"):
        raise ArgumentError(f"gelu(): approximate is {approximate!r}; it must be True, False, 'tanh' or 'none'")
    if approximate in (True, "tanh"):
        inner = p.mul(p.add(x, p.mul(p.mul(p.mul(x, x), x), 0.044715)), _ROOT_TWO_OVER_PI)
        return p.mul(p.mul(x, 0.5), p.add(p.tanh(inner), 1))
    return p.gelu(x)


@op((_F + "hardtanh",), inplace=True, reference=lambda x, min=-1.0, max=1.0: np.clip(x, min, max), samples=_ONE)
def hardtanh(x, min=-1.0, max=1.0):
    """x clipped to [min, max]."""
    return p.minimum(p.maximum(x, min), max)


@op((_F + "hardshrink",), reference=lambda x, threshold=0.5: np.where(np.abs(x) > threshold, x, 0), samples=_ONE)
def hardshrink(x, threshold=0.5):
    """x where |x| > threshold, else 0."""
    return p.select(p.le(p.abs(x), threshold), 0, x)


@op((_F + "softshrink",), reference=lambda x, threshold=0.5: np.sign(x) * np.maximum(np.abs(x) - threshold, 0), samples=_ONE)
def softshrink(x, threshold: NotNegative = 0.5):
    """x moved toward 0 by threshold; 0 inside of it."""
    return p.select(p.gt(x, threshold), p.sub(x, threshold), p.select(p.lt(x, -threshold), p.add(x, threshold), p.mul(x, 0)))


@op((_F + "tanhshrink",), reference=lambda x: x - np.tanh(x), samples=_ONE)
def tanhshrink(x):
    """x - tanh(x)."""
    return p.sub(x, p.tanh(x))


@op((_F + "hardsigmoid",), reference=lambda x: np.clip(x * 0.1666667 + 0.5, 0, 1), samples=_ONE)
def hardsigmoid(x, slope=0.1666667, offset=0.5):
    """slope * x + offset clipped to [0, 1]."""
    return p.minimum(p.maximum(p.add(p.mul(x, slope), offset), 0), 1)


@op((_F + "hardswish",), reference=lambda x: x * np.clip(x + 3, 0, 6) / 6, samples=_ONE)
def hardswish(x):
    """x * min(max(x + 3, 0), 6) / 6. https://arxiv.org/abs/1905.02244"""
    x = floating(x)
    return p.div(p.mul(x, p.minimum(p.maximum(p.add(x, 3), 0), 6)), 6)


@op(
    (_F + "softplus",),
    reference=lambda x, beta=1.0, threshold=20.0: np.where(
        x * beta > threshold, x, np.log1p(np.exp(np.minimum(x * beta, threshold))) / beta
    ),
    samples=_ONE,
)
def softplus(x, beta: NotZero = 1.0, threshold=20.0):
    """A smooth relu: log(1 + exp(beta * x)) / beta, and x itself where beta * x > threshold."""
    scaled = p.mul(x, beta)
    return p.select(p.gt(scaled, threshold), x, p.div(p.log1p(p.exp(p.minimum(scaled, threshold))), beta))


@op((_F + "softsign",), reference=lambda x: x / (1 + np.abs(x)), samples=_ONE)
def softsign(x):
    """x / (1 + |x|)."""
    x = floating(x)
    return p.div(x, p.add(p.abs(x), 1))


@op((_F + "mish",), reference=lambda x: x * np.tanh(np.log1p(np.exp(x))), samples=_ONE)
def mish(x):
    """x * tanh(softplus(x))."""
    return p.mul(x, p.tanh(p.select(p.gt(x, 20), x, p.log1p(p.exp(p.minimum(x, 20))))))


@op(
    (_F + "thresholded_relu",),
    inplace=True,
    reference=lambda x, threshold=1.0, value=0.0: np.where(x > threshold, x, value),
    samples=_ONE,
)
def thresholded_relu(x, threshold=1.0, value=0.0):
    """x where x > threshold, else value."""
    return p.select(p.le(x, threshold), value, x)


@op((_F + "prelu",), operands=("x", "weight"), reference=lambda x, w: np.where(x > 0, x, x * w), samples=[(real(2, 3), real(1))])
def prelu(x, weight, data_format: Format = "NCHW"):
    """x where x > 0, else weight * x; weight has one element, or one for each channel. https://arxiv.org/abs/1502.01852"""
    shape = [1] * x.ndim
    if weight.numel != 1:
        sizes = ranked("prelu", "x", x, "N C", more=True)
        channel = x.ndim - 1 if data_format[-1] == "C" else 1
        if weight.numel != sizes[channel]:
            raise ShapeError(
                message(
                    f"prelu(): weight has {weight.numel} elements",
                    f"it must have 1, or one for each of x's {sizes[channel]} channels",
                )
            )
        shape[channel] = weight.numel
    return p.select(p.gt(x, 0), x, p.mul(x, p.reshape(weight, tuple(shape))))


def _softmax_gradient(op_, g):
    y = op_.outputs[0]
    axis = normalized_axis("softmax", op_.attributes["axis"], y.ndim)
    weighted = p.mul(g, y)
    dx = p.sub(weighted, p.mul(y, p.reduce_sum(weighted, (axis,)))) if y.ndim else p.mul(g, 0)
    return (p.cast(dx, op_.inputs[0].dtype),)


@op(
    (_F + "softmax",),
    method=True,
    inplace=True,
    reference=lambda x, axis=-1: special.softmax(x, axis),
    samples=[(real(3, 5),), (real(3, 4, 2), 1)],
    gradient=_softmax_gradient,
    tests="noempty",
)
def softmax(x, axis=-1, dtype=None):
    """exp(x) divided by its sum along ``axis``."""
    x = floating(x if dtype is None else p.cast(x, dtype_name("softmax", dtype)))
    if not x.ndim:
        return p.exp(p.mul(x, 0))
    axis = normalized_axis("softmax", axis, x.ndim)
    e = p.exp(shifted(x, axis))
    return p.div(e, p.reduce_sum(e, (axis,)))


def _log_softmax_gradient(op_, g):
    y = op_.outputs[0]
    axis = normalized_axis("log_softmax", op_.attributes["axis"], y.ndim)
    dx = p.sub(g, p.mul(p.exp(y), p.reduce_sum(g, (axis,)))) if y.ndim else p.mul(g, 0)
    return (p.cast(dx, op_.inputs[0].dtype),)


@op(
    (_F + "log_softmax",),
    reference=lambda x, axis=-1: special.log_softmax(x, axis),
    samples=[(real(3, 5),), (real(3, 4, 2), 1)],
    gradient=_log_softmax_gradient,
    tests="noempty",
)
def log_softmax(x, axis=-1, dtype=None):
    """The logarithm of softmax along ``axis``, without overflow."""
    x = floating(x if dtype is None else p.cast(x, dtype_name("log_softmax", dtype)))
    if not x.ndim:
        return p.mul(x, 0)
    axis = normalized_axis("log_softmax", axis, x.ndim)
    lowered = shifted(x, axis)
    return p.sub(lowered, p.log(p.reduce_sum(p.exp(lowered), (axis,))))


@op(
    (_F + "glu",),
    reference=lambda x, axis=-1: np.split(x, 2, axis)[0] * special.expit(np.split(x, 2, axis)[1]),
    samples=[(real(3, 4),)],
)
def glu(x, axis=-1):
    """The first half along ``axis`` times the sigmoid of the second. https://arxiv.org/abs/1612.08083"""
    ranked("glu", "x", x, "channels", more=True)
    axis = normalized_axis("glu", axis, x.ndim)
    if x.shape[axis] % 2:
        raise ShapeError(f"glu(): axis {axis} of {list(x.shape)} has odd size and cannot be halved")
    half = x.shape[axis] // 2
    sizes = tuple(half if k == axis else n for k, n in enumerate(x.shape))
    first = p.slice_(x, (0,) * x.ndim, sizes, (1,) * x.ndim)
    second = p.slice_(x, tuple(half if k == axis else 0 for k in range(x.ndim)), sizes, (1,) * x.ndim)
    return p.mul(first, p.sigmoid(second))


@op(
    (_F + "maxout",),
    operands=("x",),
    reference=lambda x, groups: x.reshape(x.shape[0], x.shape[1] // groups, groups, *x.shape[2:]).max(2),
    samples=[(real(2, 6, 3, 3), 2)],
)
def maxout(x, groups: Count, axis=1):
    """The maximum over each of groups of ``groups`` channels. https://arxiv.org/abs/1302.4389"""
    ranked("maxout", "x", x, "channels", more=True)
    x = floating(x)
    given, axis = axis, normalized_axis("maxout", axis, x.ndim)
    if axis not in (1, x.ndim - 1):
        raise ArgumentError(
            message(
                f"maxout(): axis is {given}, of x of shape {list(x.shape)}", "channels are its second axis, 1, or its last, -1"
            )
        )
    if x.shape[axis] % groups:
        raise ShapeError(f"maxout(): axis {axis} of {list(x.shape)} is no multiple of groups={groups}")
    split = p.reshape(x, (*x.shape[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1 :]))
    return p.reshape(p.reduce_max(split, (axis + 1,)), (*x.shape[:axis], x.shape[axis] // groups, *x.shape[axis + 1 :]))


@op(
    (_F + "swiglu",),
    operands=("x", "y"),
    reference=lambda x, y=None: x * special.expit(x) * y if y is not None else np.multiply(*_swiglu_halves(x)),
    samples=[(real(3, 4), real(3, 4)), (real(3, 4),)],
    tests="noempty noscalar",
)
def swiglu(x, y=None):
    """x * sigmoid(x) * y; without y the last axis of x holds both, one after the other. https://arxiv.org/abs/2002.05202"""
    if y is None:
        if not x.ndim or x.shape[-1] % 2:
            raise ShapeError(f"swiglu(): x has shape {list(x.shape)}; its last axis must be even, or y be given")
        sizes = (*x.shape[:-1], x.shape[-1] // 2)
        steps = (1,) * x.ndim
        x, y = p.slice_(x, (0,) * x.ndim, sizes, steps), p.slice_(x, (*(0,) * (x.ndim - 1), sizes[-1]), sizes, steps)
    return p.mul(p.mul(x, p.sigmoid(x)), y)


def _swiglu_halves(x):
    first, second = np.split(x, 2, -1)
    return first * special.expit(first), second
