"""Normalisations: batch, layer, group, instance, RMS, local response, and vectors to length 1. Means and variances are taken in two passes."""

from __future__ import annotations

import math

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, ShapeError, message
from ..base.kinds import Count, Format, NotNegative
from . import primitives as p
from . import primitives as q  # in normalize(), where p is the norm's order
from .arguments import normalized_axis, ranked
from .define import op
from .samples import positive, real


def _wide(x):
    return p.cast(x, "float32") if dtypes.itemsize(x.dtype) == 2 else x


def _share(x, axes):
    """One over the number of elements that axes have."""
    return 1.0 / max(math.prod(x.shape[a] for a in axes), 1)


def _through_moments(x, mean, share, mean_gradient, variance_gradient):
    """Without the variance's path through the mean, which sums deviations from it and so comes to zero."""
    parts = []
    if mean_gradient is not None:
        parts.append(p.broadcast_to(p.mul(mean_gradient, share), x.shape))
    if variance_gradient is not None:
        parts.append(p.mul(p.sub(x, mean), p.mul(variance_gradient, 2.0 * share)))
    return p.add(*parts) if len(parts) == 2 else parts[0]


def _moments_gradient(op_, mean_gradient, variance_gradient):
    x = op_.inputs[0]
    return (_through_moments(x, op_.outputs[0], _share(x, op_.attributes["axes"]), mean_gradient, variance_gradient),)


@op(operands=("x",), gradient=_moments_gradient, samples=[(real(3, 4, 2), (0, 2))], tests="noempty")
def moments(x, axes):
    """The mean and the biased variance over axes, kept; by two passes, so that a large mean costs no digits."""
    share = _share(x, axes)
    mean = p.mul(p.reduce_sum(x, axes), share)
    centered = p.sub(x, mean)
    return mean, p.mul(p.reduce_sum(p.mul(centered, centered), axes), share)


def _normalized(x, axes, epsilon):
    mean, variance = moments(x, axes)
    return p.mul(p.sub(x, mean), p.rsqrt(p.add(variance, epsilon)))


def _affine(y, weight, bias, shape):
    if weight is not None:
        y = p.mul(y, p.reshape(p.cast(weight, y.dtype), shape))
    if bias is not None:
        y = p.add(y, p.reshape(p.cast(bias, y.dtype), shape))
    return y


def _require_one_for_each(name, count, of, **parameters):
    """Raise ShapeError for a parameter that has not ``count`` elements."""
    for what, value in parameters.items():
        if value is not None and value.numel != count:
            told = f"{name}(): {what} has {value.numel} elements"
            raise ShapeError(
                message(told, f"it must have {count}, one for each {of}", "check the size that the layer was made for")
            )


def _channel_shape(x, channel):
    return tuple(x.shape[k] if k == channel else 1 for k in range(x.ndim))


def _summed_to(value, like):
    """The value summed over the axes along which ``like`` is repeated; None for None."""
    return None if like is None else p.reduce_sum(value, tuple(k for k, n in enumerate(like.shape) if n == 1 != value.shape[k]))


def _channel_norm_gradient(op_, g, mean_gradient, variance_gradient):
    """From two sums over what is normalised together, of g and of g times the deviations: everything else is one number a channel."""
    x, weight, bias, axes, epsilon = channel_norm.arguments(op_, list(op_.inputs))
    _, mean, variance = op_.outputs
    share = _share(x, axes)
    if g is None:
        dx = _through_moments(x, mean, share, mean_gradient, variance_gradient)
        return (dx, *(None,) * (len(op_.inputs) - 1))
    centered, rstd = p.sub(x, mean), p.rsqrt(p.add(variance, epsilon))
    scale = rstd if weight is None else p.mul(rstd, weight)
    total, product = p.reduce_sum(g, axes), p.reduce_sum(p.mul(g, centered), axes)
    slope = p.mul(p.mul(p.mul(scale, p.mul(rstd, rstd)), product), -share)
    offset = p.mul(p.mul(scale, total), -share)
    if variance_gradient is not None:
        slope = p.add(slope, p.mul(variance_gradient, 2.0 * share))
    if mean_gradient is not None:
        offset = p.add(offset, p.mul(mean_gradient, share))
    dx = p.add(p.mul(g, scale), p.add(p.mul(centered, slope), offset))
    others = (_summed_to(p.mul(product, rstd), weight), _summed_to(total, bias))
    return (dx, *(d for d in others if d is not None))


@op(
    operands=("x", "weight", "bias"),
    gradient=_channel_norm_gradient,
    samples=[(real(4, 3, 2), real(1, 3, 1), real(1, 3, 1), (0, 2), 1e-5), (real(4, 3, 5), real(1, 3, 1), None, (2,), 1e-5)],
    tests="noempty",
)
def channel_norm(x, weight, bias, axes, epsilon):
    """(x normalised over axes, along which weight and bias have length 1, then weight * x + bias; the mean; the biased variance)."""
    mean, variance = moments(x, axes)
    rstd = p.rsqrt(p.add(variance, epsilon))
    y = p.mul(p.sub(x, mean), rstd if weight is None else p.mul(rstd, weight))
    return (y if bias is None else p.add(y, bias)), mean, variance


def _of_channels(parameter, x, channel):
    """A parameter [C] along the channel axis of x; None stays."""
    return None if parameter is None else p.reshape(p.cast(parameter, x.dtype), _channel_shape(x, channel))


@op(
    operands=("x", "running_mean", "running_var", "weight", "bias"),
    updates=("running_mean", "running_var"),
    samples=[(real(4, 3, 2), real(3), positive(3), real(3), real(3), 0.9, 1e-5, 1)],
    tests="nograd noempty",
)
def batch_norm_train(x, running_mean, running_var, weight, bias, momentum, epsilon, channel):
    """(the new running mean and variance, x normalised by its own statistics). https://arxiv.org/abs/1502.03167"""
    wide = _wide(x)
    axes = tuple(k for k in range(x.ndim) if k != channel)
    y, mean, variance = channel_norm(wide, _of_channels(weight, wide, channel), _of_channels(bias, wide, channel), axes, epsilon)
    if not x.numel:  # nothing was seen
        return p.detach(running_mean), p.detach(running_var), p.cast(y, x.dtype)
    flat = (x.shape[channel],)
    new = [
        p.add(p.mul(r, momentum), p.mul(p.cast(p.detach(p.reshape(s, flat)), r.dtype), 1 - momentum))
        for r, s in ((running_mean, mean), (running_var, variance))
    ]
    return p.detach(new[0]), p.detach(new[1]), p.cast(y, x.dtype)


@op(operands=("x", "running_mean", "running_var", "weight", "bias"), tests="noempty")
def batch_norm_infer(x, running_mean, running_var, weight, bias, epsilon, channel):
    """x normalised by the running statistics: one product and one sum for each channel, which a convolution before it takes over."""
    wide = _wide(x)
    mean, variance = (p.cast(v, wide.dtype) for v in (running_mean, running_var))
    scale = p.rsqrt(p.add(variance, epsilon))
    if weight is not None:
        scale = p.mul(scale, p.cast(weight, wide.dtype))
    shift = p.neg(p.mul(mean, scale))
    if bias is not None:
        shift = p.add(shift, p.cast(bias, wide.dtype))
    shape = _channel_shape(x, channel)
    return p.cast(p.add(p.mul(wide, p.reshape(scale, shape)), p.reshape(shift, shape)), x.dtype)


@op(
    "nn.functional.layer_norm",
    operands=("x", "weight", "bias"),
    reference=lambda x, s, w, b: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b,
    samples=[(real(3, 4, 5), 5, real(5), real(5))],
    tests="noempty",
)
def layer_norm(x, normalized_shape, weight=None, bias=None, epsilon: NotNegative = 1e-5):
    """x normalised over its last axes, those of ``normalized_shape``, then weight * x + bias. https://arxiv.org/abs/1607.06450"""
    shape = tuple(normalized_shape) if isinstance(normalized_shape, (list, tuple)) else (normalized_shape,)
    if x.shape[x.ndim - len(shape) :] != shape or len(shape) > x.ndim:
        raise ShapeError(
            message(
                f"layer_norm(): x has shape {list(x.shape)} and normalized_shape is {list(shape)}",
                "the last axes of x must equal it",
            )
        )
    _require_one_for_each("layer_norm", math.prod(shape), "position of the normalised axes", weight=weight, bias=bias)
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    y = _normalized(_wide(x), axes, epsilon)
    return p.cast(_affine(y, weight, bias, shape), x.dtype)


def _rms_reference(x, shape, w):
    inverse = 1 / np.sqrt((x * x).mean(-1) + 1e-5)
    return x * inverse[..., None] * w, inverse


@op(
    "nn.functional.rms_norm",
    operands=("input", "weight"),
    reference=_rms_reference,
    samples=[(real(3, 5), 5, real(5))],
    tests="noempty",
)
def rms_norm(input, normalized_shape, weight=None, eps=1e-5):
    """(input divided by its root mean square over its last axes, times weight; one over that mean square's root). https://arxiv.org/abs/1910.07467"""
    x = input
    shape = tuple(normalized_shape) if isinstance(normalized_shape, (list, tuple)) else (normalized_shape,)
    if x.shape[x.ndim - len(shape) :] != shape:
        raise ShapeError(
            message(
                f"rms_norm(): input has shape {list(x.shape)} and normalized_shape is {list(shape)}",
                "the last axes of input must equal it",
            )
        )
    _require_one_for_each("rms_norm", math.prod(shape), "position of the normalised axes", weight=weight)
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    wide = _wide(x)
    inverse = p.rsqrt(p.add(p.mul(p.reduce_sum(p.mul(wide, wide), axes), _share(x, axes)), eps))
    y = p.cast(_affine(p.mul(wide, inverse), weight, None, shape), x.dtype)
    return y, p.reshape(inverse, x.shape[: x.ndim - len(shape)])


@op(
    "nn.functional.group_norm",
    operands=("x", "weight", "bias"),
    samples=[(real(2, 4, 3), 2, 1e-5, real(4), real(4))],
    tests="noempty",
)
def group_norm(x, num_groups, epsilon: NotNegative = 1e-5, weight=None, bias=None, data_format: Format = "NCHW"):
    """x normalised over each of ``num_groups`` groups of channels. https://arxiv.org/abs/1803.08494"""
    ranked("group_norm", "x", x, "N C", more=True)
    is_last = data_format[-1] == "C" and x.ndim > 2
    first = p.transpose(x, (0, x.ndim - 1, *range(1, x.ndim - 1))) if is_last else x
    n, c = first.shape[:2]
    if c % num_groups:
        raise ArgumentError(
            message(
                f"group_norm(): x has {c} channels and num_groups is {num_groups}",
                "the channels must be a multiple of the groups",
            )
        )
    _require_one_for_each("group_norm", c, "channel", weight=weight, bias=bias)
    # groups, their channels and positions as axes of their own: scale and shift then join the kernel that normalises
    inner = first.numel // max(n * c, 1)
    channels = (num_groups, c // num_groups, 1)
    y = _normalized(p.reshape(_wide(first), (n, *channels[:2], inner)), (2, 3), epsilon)
    y = p.reshape(_affine(y, weight, bias, (1, *channels)), first.shape)
    y = p.transpose(y, (0, *range(2, y.ndim), 1)) if is_last else y
    return p.cast(y, x.dtype)


@op(operands=("x", "weight", "bias"), samples=[(real(2, 3, 4), real(3), real(3), 1e-5, 1)], tests="noempty")
def instance_norm_op(x, weight, bias, epsilon, channel):
    """x normalised over the positions of every channel of every instance. https://arxiv.org/abs/1607.08022"""
    _require_one_for_each("instance_norm", x.shape[channel], "channel", weight=weight, bias=bias)
    axes = tuple(k for k in range(1, x.ndim) if k != channel)
    wide = _wide(x)
    y, _, _ = channel_norm(wide, _of_channels(weight, wide, channel), _of_channels(bias, wide, channel), axes, epsilon)
    return p.cast(y, x.dtype)


@op(
    "nn.functional.normalize",
    operands=("x",),
    reference=lambda x: x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12),
    samples=[(real(3, 4),)],
    takes_positional_out=True,
    tests="noempty",
)
def normalize(x, p=2, axis=1, epsilon=1e-12):
    """x divided by its p-norm along ``axis``, or by epsilon where that is larger."""
    axis = normalized_axis("normalize", axis, x.ndim)
    if p == 2:
        squares = q.reduce_sum(q.mul(x, x), (axis,))
        is_zero = q.eq(squares, 0)
        norm = q.select(is_zero, 0, q.sqrt(q.select(is_zero, 1, squares)))
    elif p == float("inf"):
        norm = q.reduce_max(q.abs(x), (axis,))
    else:
        powers = q.reduce_sum(q.pow(q.abs(x), float(p)), (axis,))
        is_zero = q.eq(powers, 0)
        norm = q.select(is_zero, 0, q.pow(q.select(is_zero, 1, powers), 1.0 / p))
    return q.div(x, q.maximum(norm, epsilon))


@op("nn.functional.local_response_norm", operands=("x",), samples=[(real(2, 5, 4), 3)], tests="noempty")
def local_response_norm(x, size: Count, alpha=1e-4, beta=0.75, k=1.0, data_format: Format = "NCHW"):
    """x divided by (k + alpha * mean of squares over ``size`` neighbouring channels) ** beta."""
    ranked("local_response_norm", "x", x, "N C L", more=True)
    channel = x.ndim - 1 if data_format[-1] == "C" else 1
    squares = p.mul(x, x)
    low, high = [0] * x.ndim, [0] * x.ndim
    low[channel], high[channel] = size // 2, (size - 1) // 2
    padded = p.pad(squares, tuple(low), tuple(high))
    total = None
    for i in range(size):
        starts = tuple(i if a == channel else 0 for a in range(x.ndim))
        part = p.slice_(padded, starts, x.shape, (1,) * x.ndim)
        total = part if total is None else p.add(total, part)
    return p.div(x, p.pow(p.add(p.mul(total, alpha / size), k), beta))
