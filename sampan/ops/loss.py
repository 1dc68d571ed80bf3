"""Losses of classification and regression."""

from __future__ import annotations

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, ShapeError, message
from ..base.kinds import Probability
from ..base.lazy import scipy_special as special
from . import primitives as p
from .arguments import dropped, floating, matched, normalized_axis, ranked, shifted
from .define import op
from .samples import integer, positive, real

_F = "nn.functional."


def reduced(name, x, reduction, total=None):
    """x as it is, summed, or averaged: over ``total`` where given (0 where that is 0: nothing counts), else over its elements."""
    if reduction == "none":
        return x
    if reduction not in ("sum", "mean"):
        raise ArgumentError(message(f"{name}(): reduction={reduction!r}", "it must be 'none', 'mean' or 'sum'"))
    axes = tuple(range(x.ndim))
    value = dropped(p.reduce_sum(x, axes), axes, False)
    if reduction == "sum":
        return value
    if total is not None:
        return p.div(value, p.select(p.ne(total, 0), total, 1))
    return p.mul(value, 1.0 / x.numel) if x.numel else p.div(value, 0.0)


@op(
    (_F + "mse_loss",),
    operands=("input", "label"),
    reference=lambda x, y: ((x - y) ** 2).mean(),
    samples=[(real(3, 4), real(3, 4))],
    tests="noempty",
)
def mse_loss(input, label, reduction="mean"):
    """The square of input - label."""
    x, y = matched(input, label)
    d = p.sub(x, y)
    return reduced("mse_loss", p.mul(d, d), reduction)


@op(
    (_F + "square_error_cost",),
    operands=("input", "label"),
    reference=lambda x, y: (x - y) ** 2,
    samples=[(real(3, 4), real(3, 4))],
)
def square_error_cost(input, label):
    """(input - label) ** 2."""
    x, y = matched(input, label)
    d = p.sub(x, y)
    return p.mul(d, d)


@op(
    (_F + "l1_loss",),
    operands=("input", "label"),
    reference=lambda x, y: np.abs(x - y).mean(),
    samples=[(real(3, 4), real(3, 4))],
    tests="noempty",
)
def l1_loss(input, label, reduction="mean"):
    """|input - label|."""
    x, y = matched(input, label)
    return reduced("l1_loss", p.abs(p.sub(x, y)), reduction)


@op(
    (_F + "smooth_l1_loss",),
    operands=("input", "label"),
    reference=lambda x, y: np.where(np.abs(x - y) < 1, 0.5 * (x - y) ** 2, np.abs(x - y) - 0.5).mean(),
    samples=[(real(3, 4), real(3, 4))],
    tests="noempty",
)
def smooth_l1_loss(input, label, reduction="mean", delta=1.0, is_huber=True):
    """0.5 d^2 where |d| < delta, else delta (|d| - delta / 2), of d = input - label; is_huber False: divided by delta. https://arxiv.org/abs/1504.08083"""
    x, y = matched(input, label)
    d = p.abs(p.sub(x, y))
    loss = p.select(p.lt(d, delta), p.mul(p.mul(d, d), 0.5), p.mul(p.sub(d, 0.5 * delta), delta))
    return reduced("smooth_l1_loss", loss if is_huber else p.div(loss, delta), reduction)


@op(
    (_F + "kl_div",),
    operands=("input", "label"),
    reference=lambda x, y: (special.xlogy(y, y) - y * x).mean(),
    samples=[(real(3, 4), positive(3, 4))],
    tests="noempty",
)
def kl_div(input, label, reduction="mean", log_target=False):
    """label * (log(label) - input) for log-probabilities ``input``; log_target: label is a logarithm too."""
    x, y = matched(input, label)
    if log_target:
        loss = p.mul(p.exp(y), p.sub(y, x))
    else:
        is_positive = p.gt(y, 0)
        loss = p.select(is_positive, p.mul(y, p.sub(p.log(p.select(is_positive, y, 1)), x)), 0)
    if reduction == "batchmean":
        return p.div(reduced("kl_div", loss, "sum"), float(loss.shape[0] if loss.ndim else 1))
    return reduced("kl_div", loss, reduction)


def _weighted(x, weight):
    return x if weight is None else p.mul(x, p.broadcast_to(p.cast(weight, x.dtype), x.shape))


@op(
    (_F + "binary_cross_entropy",),
    operands=("input", "label", "weight"),
    reference=lambda x, y: -(y * np.log(x) + (1 - y) * np.log1p(-x)).mean(),
    samples=[(positive(3, 4, low=0.1, high=0.9), positive(3, 4, low=0.0, high=1.0))],
    tests="noempty",
)
def binary_cross_entropy(input, label, weight=None, reduction="mean"):
    """-(label log(input) + (1 - label) log(1 - input)); logarithms are kept above -100."""
    x, y = matched(input, label)
    first = p.maximum(p.log(x), -100.0)
    second = p.maximum(p.log(p.sub(1.0, x)), -100.0)
    loss = p.neg(p.add(p.mul(y, first), p.mul(p.sub(1.0, y), second)))
    return reduced("binary_cross_entropy", _weighted(loss, weight), reduction)


@op(
    (_F + "binary_cross_entropy_with_logits",),
    operands=("logit", "label", "weight", "pos_weight"),
    reference=lambda x, y: (np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))).mean(),
    samples=[(real(3, 4), positive(3, 4, low=0.0, high=1.0))],
    tests="noempty",
)
def binary_cross_entropy_with_logits(logit, label, weight=None, reduction="mean", pos_weight=None):
    """Binary cross entropy of sigmoid(logit), without overflow; pos_weight weighs the positive term."""
    x, y = matched(logit, label)
    soft = p.add(p.log1p(p.exp(p.neg(p.abs(x)))), p.maximum(p.neg(x), 0.0))
    if pos_weight is None:
        loss = p.add(p.mul(p.sub(1.0, y), x), soft)
    else:
        factor = p.add(p.mul(p.sub(p.broadcast_to(p.cast(pos_weight, x.dtype), x.shape), 1.0), y), 1.0)
        loss = p.add(p.mul(p.sub(1.0, y), x), p.mul(factor, soft))
    return reduced("binary_cross_entropy_with_logits", _weighted(loss, weight), reduction)


def _picked(log_probabilities, label, axis, ignore_index):
    """(the label's log-probability at every position, whether the position counts, its label)."""
    shape = tuple(1 if k == axis else n for k, n in enumerate(log_probabilities.shape))
    index = p.reshape(p.cast(label, "int64"), shape)
    counts = p.ne(index, ignore_index)
    safe = p.select(counts, index, 0)
    return p.gather_elements(log_probabilities, safe, axis, allow_negative=False), counts, safe


def _class_weights(weight, safe, counts, dtype):
    """The weight of each position's class; 0 where the position does not count."""
    if weight is None:
        return p.cast(counts, dtype)
    picked = p.gather(p.cast(weight, dtype), p.reshape(safe, (safe.numel,)), 0)
    return p.select(counts, p.reshape(picked, safe.shape), 0)


@op(
    (_F + "nll_loss",),
    operands=("input", "label", "weight"),
    reference=lambda x, y: -np.mean([x[i, k] for i, k in enumerate(y)]),
    samples=[(real(5, 4), integer(5, low=0, high=4))],
    tests="noempty",
)
def nll_loss(input, label, weight=None, ignore_index=-100, reduction="mean"):
    """-input at the label, for log-probabilities [N, C, ...]; the mean is over the classes' weights, 0 where no position counts."""
    ranked("nll_loss", "input", input, "classes", more=True)
    axis = 1 if input.ndim > 1 else 0
    flat = tuple(n for k, n in enumerate(input.shape) if k != axis)
    if label.shape not in (flat, (*flat[:axis], 1, *flat[axis:])):
        raise ShapeError(
            message(f"nll_loss(): label is {list(label.shape)} and input {list(input.shape)}", f"label must be {list(flat)}")
        )
    if weight is not None and weight.shape != (input.shape[axis],):
        raise ShapeError(message(f"nll_loss(): weight is {list(weight.shape)}", f"there are {input.shape[axis]} classes"))
    value, counts, safe = _picked(input, label, axis, ignore_index)
    weights = _class_weights(weight, safe, counts, input.dtype)
    loss = dropped(p.select(counts, p.neg(p.mul(value, weights)), 0), (axis,), False)
    axes = tuple(range(weights.ndim))
    return reduced("nll_loss", loss, reduction, dropped(p.reduce_sum(weights, axes), axes, False))


@op(
    (_F + "cross_entropy",),
    operands=("input", "label", "weight"),
    reference=lambda x, y: -np.mean([special.log_softmax(x, -1)[i, k] for i, k in enumerate(y)]),
    samples=[(real(5, 4), integer(5, low=0, high=4))],
    tests="noempty",
)
def cross_entropy(
    input,
    label,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    soft_label=False,
    axis=-1,
    use_softmax=True,
    label_smoothing: Probability = 0.0,
):
    """-log of the label's probability, from logits (or, use_softmax False, from probabilities).

    label: ids shaped like input without ``axis`` (or with length 1 there), or with soft_label probabilities shaped like input.
    The mean over ids is over the classes' weights, positions of ``ignore_index`` left out; 0 where none are left.
    """
    x = floating(input)
    x = p.cast(x, "float32") if dtypes.itemsize(x.dtype) == 2 else x
    ranked("cross_entropy", "input", x, "classes", more=True)
    axis = normalized_axis("cross_entropy", axis, x.ndim)
    if use_softmax:
        scores = shifted(x, axis)
        total = p.log(p.reduce_sum(p.exp(scores), (axis,)))
    else:
        scores, total = p.log(x), None
    classes = x.shape[axis]

    def result(loss, weights=None):
        loss = p.cast(loss, floating(input).dtype)
        if reduction == "none":
            return loss
        if weights is not None:
            axes = tuple(range(weights.ndim))
            return reduced(
                "cross_entropy", loss, reduction, p.cast(dropped(p.reduce_sum(weights, axes), axes, False), loss.dtype)
            )
        return reduced("cross_entropy", loss, reduction)

    if soft_label or (label.shape == x.shape and dtypes.is_differentiable(label.dtype)):
        if label.shape != x.shape:
            raise ShapeError(
                message(
                    f"cross_entropy(): soft labels are {list(label.shape)} and input {list(input.shape)}", "they must be equal"
                )
            )
        target = p.cast(label, x.dtype)
        if label_smoothing:
            target = p.add(p.mul(target, 1 - label_smoothing), label_smoothing / classes)
        log_probabilities = scores if total is None else p.sub(scores, total)
        losses = p.neg(p.reduce_sum(p.mul(target, log_probabilities), (axis,)))
        weights = None
        if weight is not None:
            shape = tuple(classes if k == axis else 1 for k in range(x.ndim))
            weights = p.reduce_sum(p.mul(target, p.reshape(p.cast(weight, x.dtype), shape)), (axis,))
            losses = p.mul(losses, weights)
        return result(losses if reduction == "none" else dropped(losses, (axis,), False), weights)

    has_kept_axis = label.ndim == x.ndim
    expected = tuple(1 if k == axis else n for k, n in enumerate(x.shape))
    flat = tuple(n for k, n in enumerate(x.shape) if k != axis)
    if label.shape not in (expected, flat):
        raise ShapeError(
            message(
                f"cross_entropy(): label is {list(label.shape)} and input {list(input.shape)}",
                f"ids must be {list(flat)}, the input without its class axis {axis}",
                "pass soft_label=True for probabilities",
            )
        )
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(message(f"cross_entropy(): weight is {list(weight.shape)}", f"there are {classes} classes"))
    value, counts, safe = _picked(scores, label, axis, ignore_index)
    value = value if total is None else p.sub(value, total)
    weights = _class_weights(weight, safe, counts, x.dtype)
    losses = p.neg(value)
    if label_smoothing:
        uniform = p.mul(p.reduce_sum(scores, (axis,)), 1.0 / classes)
        uniform = uniform if total is None else p.sub(uniform, total)
        losses = p.sub(p.mul(losses, 1 - label_smoothing), p.mul(uniform, label_smoothing))
        if weight is not None:  # a smoothed label's weight is the mean of the classes' weights under it
            average = p.mul(p.reduce_sum(p.cast(weight, x.dtype), (0,)), label_smoothing / classes)
            spread = p.add(
                p.mul(weights, 1 - label_smoothing), p.broadcast_to(p.reshape(average, (1,) * weights.ndim), weights.shape)
            )
            weights = p.select(counts, spread, 0)
    losses = p.select(counts, p.mul(losses, weights), 0)
    losses = losses if has_kept_axis and reduction == "none" else dropped(losses, (axis,), False)
    return result(losses, weights)


@op(
    (_F + "log_loss",),
    operands=("input", "label"),
    reference=lambda x, y: -y * np.log(x + 1e-4) - (1 - y) * np.log(1 - x + 1e-4),
    samples=[(positive(3, 1, low=0.1, high=0.9), positive(3, 1, low=0.0, high=1.0))],
)
def log_loss(input, label, epsilon=1e-4):
    """-label log(input + epsilon) - (1 - label) log(1 - input + epsilon)."""
    x, y = matched(input, label)
    return p.neg(p.add(p.mul(y, p.log(p.add(x, epsilon))), p.mul(p.sub(1.0, y), p.log(p.add(p.sub(1.0, x), epsilon)))))
