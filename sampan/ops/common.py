"""What layers use beside convolutions and norms: linear, dropout, embedding, one_hot, cosine similarity, pixel shuffle, label smoothing."""

from __future__ import annotations

import math

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, DTypeError, ShapeError, message
from ..base.kinds import Format2D, NotNegative, Probability
from . import primitives as p
from .arguments import dropped, floating, normalized_axis, promoted, ranked
from .define import op
from .samples import integer, real


@op(
    "nn.functional.linear",
    operands=("x", "weight", "bias"),
    reference=lambda x, w, b=0: x @ w + b,
    samples=[(real(2, 3, 4), real(4, 5), real(5)), (real(3, 4), real(4, 2)), (real(2, 3), real(3), real(1))],
    tests="noempty",
)
def linear(x, weight, bias=None):
    """x [..., in_features] @ weight [in_features, out_features] + bias [out_features]; of a weight [in_features] the result lacks the last axis."""
    x, weight = promoted(x, weight)
    if weight.ndim not in (1, 2) or x.ndim == 0 or x.shape[-1] != weight.shape[0]:
        raise ShapeError(
            message(
                f"linear(x, weight): x is {list(x.shape)} and weight {list(weight.shape)}",
                f"the last axis of x must be the weight's first ({weight.shape[0] if weight.ndim else '?'})",
                "the weight is [in_features, out_features]",
            )
        )
    rows = p.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    y = p.matmul(rows, p.reshape(weight, (weight.shape[0], math.prod(weight.shape[1:]))))
    if bias is not None:
        y = p.add(y, p.cast(bias, y.dtype))
    return p.reshape(y, (*x.shape[:-1], *weight.shape[1:]))


def uniform_bits(key, shape, dtype="float32"):
    """Uniform numbers in [0, 1): 24 random bits for float32 and narrower, 53 for float64."""
    if dtype == "float64":
        high = p.cast(p.shift_right(p.random_bits(key, shape, 0, 2), 5), "float64")
        low = p.cast(p.shift_right(p.random_bits(key, shape, 1, 2), 6), "float64")
        return p.mul(p.add(p.mul(high, 67108864.0), low), 1.0 / 9007199254740992.0)
    return p.mul(p.cast(p.shift_right(p.random_bits(key, shape), 8), "float32"), 1.0 / 16777216.0)


@op(operands=("x", "key"), inplace=False, tests="nograd noempty")
def dropout_op(x, p_drop, mask_shape, is_scaled, key):
    """x with elements zeroed with probability ``p_drop``; one draw for each element of ``mask_shape``, broadcast."""
    keep = p.ge(uniform_bits(key, tuple(mask_shape)), p_drop)
    kept = p.mul(x, 0 if p_drop >= 1 else 1 / (1 - p_drop)) if is_scaled else x
    return p.select(p.broadcast_to(keep, x.shape), kept, 0)


def _embedding_gradient(op_, g):
    ids, weight = op_.inputs
    dw = p.scatter(p.full(weight.shape, 0, g.dtype), ids, g, 0, "add")
    if op_.attributes["scale_grad_by_freq"]:
        count = p.scatter(p.full((weight.shape[0],), 0, g.dtype), ids, p.full(ids.shape, 1, g.dtype), 0, "add")
        dw = p.div(dw, p.broadcast_to(p.reshape(p.maximum(count, 1), (weight.shape[0], 1)), weight.shape))
    padding = op_.attributes["padding_idx"]
    if padding is not None:
        row = padding + weight.shape[0] if padding < 0 else padding
        is_padding = p.eq(p.iota((weight.shape[0], 1), 0), row)
        dw = p.select(p.broadcast_to(is_padding, weight.shape), 0, dw)
    return None, dw


@op(
    operands=("x", "weight"),
    reference=lambda i, w, q: np.where((i == (q if q is not None else -1))[..., None], 0, w[i]),
    samples=[(integer(2, 3, low=0, high=5), real(5, 4), None), (integer(2, 3, low=0, high=5), real(5, 4), 2)],
    gradient=_embedding_gradient,
    tests="noempty",
)
def embedding_op(x, weight, padding_idx, scale_grad_by_freq=False):
    """Rows of weight at the ids; zeros, and no gradient, at ``padding_idx``."""
    if x.dtype not in ("int32", "int64"):
        raise DTypeError(message(f"embedding(): x is {x.dtype}", "ids must be int32 or int64", "cast them first"))
    if weight.ndim != 2:
        raise ShapeError(
            message(f"embedding(): weight has shape {list(weight.shape)}", "it must be [num_embeddings, embedding_dim]")
        )
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise ArgumentError(
            message(f"embedding(): padding_idx={padding_idx}", f"it must be in [{-weight.shape[0]}, {weight.shape[0] - 1}]")
        )
    rows = p.gather(weight, x, 0, allow_negative=False)
    if padding_idx is None:
        return rows
    row = padding_idx + weight.shape[0] if padding_idx < 0 else padding_idx
    is_padding = p.reshape(p.eq(x, row), (*x.shape, 1))
    return p.select(p.broadcast_to(is_padding, rows.shape), 0, rows)


@op(
    operands=("x",),
    reference=lambda x, n: np.eye(n)[x],
    samples=[(integer(3, low=0, high=4), 4)],
    tests="nograd noempty",
)
def one_hot(x, num_classes):
    """[..., num_classes] of float32: 1 at each id, which must be in [0, num_classes)."""
    if not dtypes.is_integer(x.dtype):
        raise DTypeError(message(f"one_hot(): x is {x.dtype}", "it must hold integer ids"))
    ids = p.cast(x, "int64")
    inside = p.bitwise_and(p.ge(ids, 0), p.lt(ids, num_classes))
    ids = p.require(
        ids, inside, message(f"one_hot(): x holds ids outside of [0, {num_classes - 1}]", f"num_classes is {num_classes}")
    )
    shape = (*x.shape, num_classes)
    return p.cast(p.eq(p.iota(shape, x.ndim), p.broadcast_to(p.reshape(ids, (*x.shape, 1)), shape)), "float32")


@op(
    operands=("x",),
    reference=lambda x, n, dtype: (np.arange(n) < x[..., None]).astype(dtype),
    samples=[(integer(3, low=0, high=4), 4, "int64")],
    tests="nograd noempty",
)
def length_mask(x, width, dtype):
    """[..., width]: 1 at positions below each length, 0 from there on."""
    shape = (*x.shape, width)
    lengths = p.broadcast_to(p.reshape(p.cast(x, "int64"), (*x.shape, 1)), shape)
    return p.cast(p.lt(p.iota(shape, x.ndim), lengths), dtype)


@op(
    "nn.functional.cosine_similarity",
    operands=("x1", "x2"),
    reference=lambda a, b: (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)),
    samples=[(real(3, 4), real(3, 4))],
    tests="noempty",
)
def cosine_similarity(x1, x2, axis=1, eps: NotNegative = 1e-8):
    """The cosine of the angle between vectors along ``axis``."""
    shape = p.broadcast_shapes(x1.shape, x2.shape)
    a, b = (p.broadcast_to(floating(v), shape) for v in promoted(x1, x2))
    axis = normalized_axis("cosine_similarity", axis, a.ndim)
    dot = p.reduce_sum(p.mul(a, b), (axis,))
    norms = p.mul(p.reduce_sum(p.mul(a, a), (axis,)), p.reduce_sum(p.mul(b, b), (axis,)))
    return dropped(p.div(dot, p.sqrt(p.maximum(norms, eps * eps))), (axis,), False)


@op("nn.functional.pixel_shuffle", operands=("x",), samples=[(real(2, 8, 3, 2), 2)], tests="noempty")
def pixel_shuffle(x, upscale_factor, data_format: Format2D = "NCHW"):
    """[N, C r^2, H, W] as [N, C, H r, W r]. https://arxiv.org/abs/1609.05158"""
    ranked("pixel_shuffle", "x", x, "N H W C" if data_format == "NHWC" else "N C H W")
    r, is_last = upscale_factor, data_format == "NHWC"
    x = p.transpose(x, (0, 3, 1, 2)) if is_last else x
    n, c, h, w = x.shape
    if c % (r * r):
        raise ShapeError(f"pixel_shuffle(): {c} channels are no multiple of {r} squared")
    y = p.reshape(p.transpose(p.reshape(x, (n, c // (r * r), r, r, h, w)), (0, 1, 4, 2, 5, 3)), (n, c // (r * r), h * r, w * r))
    return p.transpose(y, (0, 2, 3, 1)) if is_last else y


@op("nn.functional.pixel_unshuffle", operands=("x",), samples=[(real(2, 2, 4, 6), 2)], tests="noempty")
def pixel_unshuffle(x, downscale_factor, data_format: Format2D = "NCHW"):
    """[N, C, H r, W r] as [N, C r^2, H, W]: the inverse of pixel_shuffle."""
    ranked("pixel_unshuffle", "x", x, "N H W C" if data_format == "NHWC" else "N C H W")
    r, is_last = downscale_factor, data_format == "NHWC"
    x = p.transpose(x, (0, 3, 1, 2)) if is_last else x
    n, c, h, w = x.shape
    if h % r or w % r:
        raise ShapeError(f"pixel_unshuffle(): {h} x {w} is no multiple of {r}")
    y = p.reshape(p.transpose(p.reshape(x, (n, c, h // r, r, w // r, r)), (0, 1, 3, 5, 2, 4)), (n, c * r * r, h // r, w // r))
    return p.transpose(y, (0, 2, 3, 1)) if is_last else y


@op("nn.functional.channel_shuffle", operands=("x",), samples=[(real(2, 6, 3, 2), 3)], tests="noempty")
def channel_shuffle(x, groups, data_format: Format2D = "NCHW"):
    """Channels regrouped: [N, g, C / g, ...] as [N, C / g, g, ...]. https://arxiv.org/abs/1707.01083"""
    ranked("channel_shuffle", "x", x, "N H W C" if data_format == "NHWC" else "N C H W")
    is_last = data_format == "NHWC"
    x = p.transpose(x, (0, 3, 1, 2)) if is_last else x
    n, c, h, w = x.shape
    if c % groups:
        raise ShapeError(f"channel_shuffle(): {c} channels are no multiple of groups={groups}")
    y = p.reshape(p.transpose(p.reshape(x, (n, groups, c // groups, h, w)), (0, 2, 1, 3, 4)), (n, c, h, w))
    return p.transpose(y, (0, 2, 3, 1)) if is_last else y


@op(
    "nn.functional.label_smooth",
    operands=("label", "prior_dist"),
    reference=lambda y: y * 0.9 + 0.1 / y.shape[-1],
    samples=[(real(3, 4),)],
)
def label_smooth(label, prior_dist=None, epsilon: Probability = 0.1):
    """(1 - epsilon) * label + epsilon * the prior, uniform by default. https://arxiv.org/abs/1512.00567"""
    ranked("label_smooth", "label", label, "classes", more=True)
    label = floating(label)
    kept = p.mul(label, 1 - epsilon)
    return p.add(
        kept, epsilon / max(label.shape[-1], 1) if prior_dist is None else p.mul(p.cast(prior_dist, label.dtype), epsilon)
    )
