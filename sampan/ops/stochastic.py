"""Layers' random operators beside dropout: alpha dropout, randomised leaky relu, Gumbel softmax."""

from __future__ import annotations

import math

from ..base.errors import ArgumentError, message
from . import primitives as p
from .arguments import floating, normalized_axis, shifted
from .common import uniform_bits
from .define import op

#: What selu tends to for very negative inputs: -scale * alpha.
_SELU_LIMIT = -1.7580993408473766


@op(operands=("x", "key"), tests="nograd noempty")
def alpha_dropout_op(x, p_drop, mask_shape, key):
    """x with elements set to selu's negative limit with probability ``p_drop``, then scaled and shifted to keep mean and variance."""
    if p_drop >= 1:
        return p.mul(x, 0)
    keep = p.broadcast_to(p.ge(uniform_bits(key, tuple(mask_shape)), p_drop), x.shape)
    scale = 1.0 / math.sqrt((1 - p_drop) * (1 + p_drop * _SELU_LIMIT**2))
    return p.add(p.mul(p.select(keep, x, _SELU_LIMIT), scale), -scale * _SELU_LIMIT * p_drop)


@op(operands=("x", "key"), tests="nograd noempty")
def rrelu_train(x, lower, upper, key):
    """x where x >= 0, else x times a slope drawn uniformly from [lower, upper] for each element."""
    slope = p.add(p.mul(uniform_bits(key, x.shape), upper - lower), lower)
    return p.select(p.ge(x, 0), x, p.mul(x, p.cast(slope, x.dtype)))


@op("nn.functional.gumbel_softmax", operands=("x", "key"), tests="nograd noempty")
def gumbel_softmax(x, temperature=1.0, hard=False, axis=-1, key=None):
    """Softmax of (x + Gumbel noise) / temperature along ``axis``: a relaxed sample of the categories whose logits x holds.

    hard: the result is one-hot, while its gradient is that of the relaxed sample. https://arxiv.org/abs/1611.01144
    """
    if temperature <= 0:
        raise ArgumentError(message(f"gumbel_softmax(): temperature={temperature}", "it must be positive"))
    x = floating(x)
    axis = normalized_axis("gumbel_softmax", axis, x.ndim)
    uniform = p.add(uniform_bits(key, x.shape), 0.5 / 16777216.0)
    noise = p.cast(p.neg(p.log(p.neg(p.log(uniform)))), x.dtype)
    noisy = p.div(p.add(x, noise), float(temperature))
    e = p.exp(shifted(noisy, axis))
    soft = p.div(e, p.reduce_sum(e, (axis,)))
    if not hard:
        return soft
    winner = p.broadcast_to(p.reduce_argmax(soft, (axis,)), x.shape)
    one_hot = p.cast(p.eq(p.iota(x.shape, axis), winner), x.dtype)
    return p.add(p.detach(p.sub(one_hot, soft)), soft)
