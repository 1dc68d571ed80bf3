"""Losses by margins, distances and densities, and cross entropies in other interfaces."""

from __future__ import annotations

import math

import numpy as np

from ..base.errors import ShapeError, message
from ..base.kinds import Cosine, NotNegative, Positive
from . import primitives as p
from .arguments import dropped, floating, matched, normalized_axis, shifted
from .define import op
from .loss import cross_entropy, reduced
from .samples import integer, positive, real

_F = "nn.functional."


def _softplus(x):
    """log(1 + exp(x)), without overflow."""
    return p.add(p.maximum(x, 0), p.log1p(p.exp(p.neg(p.abs(x)))))


def _reduced_over(x, axes, average=False):
    total = dropped(p.reduce_sum(x, axes), axes, False)
    count = math.prod(x.shape[a] for a in axes)
    return p.mul(total, 1.0 / max(count, 1)) if average else total


@op(
    (_F + "hinge_embedding_loss",),
    operands=("input", "label"),
    reference=lambda x, y: (np.where(y == 1, x, 0) + np.where(y == -1, np.maximum(0, 1 - x), 0)).mean(),
    samples=[(real(3, 4), integer(3, 4, low=0, high=2))],
    tests="noempty",
)
def hinge_embedding_loss(input, label, margin=1.0, reduction="mean"):
    """input where the label is 1, max(0, margin - input) where it is -1."""
    x, y = matched(floating(input), label)
    near = p.select(p.eq(y, 1), x, 0)
    far = p.select(p.eq(y, -1), p.maximum(p.sub(margin, x), 0), 0)
    return reduced("hinge_embedding_loss", p.add(near, far), reduction)


@op(
    (_F + "cosine_embedding_loss",),
    operands=("input1", "input2", "label"),
    samples=[(real(3, 4), real(3, 4), integer(3, low=0, high=2))],
    tests="noempty",
)
def cosine_embedding_loss(input1, input2, label, margin: Cosine = 0, reduction="mean"):
    """1 - cosine where the label is 1, max(0, cosine - margin) where it is -1, for vectors along the last axis."""
    a, b = matched(floating(input1), floating(input2))
    if a.ndim not in (1, 2) or label.shape != a.shape[:-1]:
        raise ShapeError(
            message(
                f"cosine_embedding_loss(): inputs are {list(input1.shape)} and {list(input2.shape)}, label {list(label.shape)}",
                "inputs must be [N, M] with a label [N], or [M] with a label []",
            )
        )
    axes = (a.ndim - 1,)
    norm_a, norm_b = (p.add(_reduced_over(p.mul(v, v), axes), 1e-12) for v in (a, b))
    cosine = p.div(_reduced_over(p.mul(a, b), axes), p.sqrt(p.mul(norm_a, norm_b)))
    near = p.select(p.eq(label, 1), p.sub(1.0, cosine), 0)
    far = p.select(p.eq(label, -1), p.maximum(p.sub(cosine, float(margin)), 0), 0)
    return reduced("cosine_embedding_loss", p.add(near, far), reduction)


@op(
    (_F + "margin_ranking_loss",),
    operands=("input", "other", "label"),
    reference=lambda x, o, y: np.maximum(0, -y * (x - o)).mean(),
    samples=[(real(3, 4), real(3, 4), real(3, 4))],
    tests="noempty",
)
def margin_ranking_loss(input, other, label, margin=0.0, reduction="mean"):
    """max(0, -label * (input - other) + margin)."""
    x, other, y = matched(input, other, label)
    return reduced("margin_ranking_loss", p.maximum(p.add(p.mul(p.sub(other, x), y), margin), 0), reduction)


def distance(x, y, order, epsilon, keepdim):
    """The norm of x - y + epsilon along the last axis."""
    d = p.abs(p.add(p.sub(x, y), epsilon))
    axes = (d.ndim - 1,)
    if order == math.inf:
        size = p.reduce_max(d, axes)
    elif order == -math.inf:
        size = p.reduce_min(d, axes)
    elif order == 0:
        size = p.reduce_sum(p.cast(p.ne(d, 0), d.dtype), axes)
    elif order == 1:
        size = p.reduce_sum(d, axes)
    else:
        total = p.reduce_sum(p.mul(d, d) if order == 2 else p.pow(d, float(order)), axes)
        is_zero = p.eq(total, 0)
        safe = p.select(is_zero, 1, total)
        size = p.select(is_zero, 0, p.sqrt(safe) if order == 2 else p.pow(safe, 1.0 / order))
    return dropped(size, axes, keepdim)


@op(
    (_F + "pairwise_distance",),
    operands=("x", "y"),
    reference=lambda x, y, p=2.0: np.linalg.norm(x - y + 1e-6, p, axis=-1),
    samples=[(real(3, 4), real(3, 4)), (real(2, 5), real(2, 5), 1.0)],
    tests="noempty noscalar",
)
def pairwise_distance(x, y, p=2.0, epsilon=1e-6, keepdim=False):
    """The p-norm of x - y + epsilon over the last axis."""
    x, y = matched(x, y)
    if x.ndim not in (1, 2):
        raise ShapeError(message(f"pairwise_distance(): x has shape {list(x.shape)}", "x and y must have 1 or 2 axes"))
    return distance(floating(x), floating(y), p, epsilon, keepdim)


@op(
    (_F + "triplet_margin_loss",),
    operands=("input", "positive", "negative"),
    samples=[(real(3, 4), real(3, 4), real(3, 4))],
    tests="noempty noscalar",
)
def triplet_margin_loss(input, positive, negative, margin: NotNegative = 1.0, p=2.0, epsilon=1e-6, swap=False, reduction="mean"):
    """max(0, distance(input, positive) - distance(input, negative) + margin), of rows and their p-norm.

    swap: the negative's distance to the positive counts where it is smaller. http://www.bmva.org/bmvc/2016/papers/paper119
    """
    x, near, far = matched(input, positive, negative)
    return _triplet(x, near, far, margin, p, epsilon, swap, reduction)


def _triplet(x, near, far, margin, order, epsilon, swap, reduction):
    to_near, to_far = distance(x, near, order, epsilon, False), distance(x, far, order, epsilon, False)
    if swap:
        to_far = p.minimum(to_far, distance(near, far, order, epsilon, False))
    return reduced("triplet_margin_loss", p.maximum(p.add(p.sub(to_near, to_far), margin), 0), reduction)


@op(
    (_F + "soft_margin_loss",),
    operands=("input", "label"),
    reference=lambda x, y: np.log1p(np.exp(-y * x)).mean(),
    samples=[(real(3, 4), real(3, 4))],
    tests="noempty",
)
def soft_margin_loss(input, label, reduction="mean"):
    """log(1 + exp(-label * input)), for labels of 1 and -1."""
    x, y = matched(floating(input), label)
    return reduced("soft_margin_loss", _softplus(p.neg(p.mul(x, y))), reduction)


@op(
    (_F + "multi_label_soft_margin_loss",),
    operands=("input", "label", "weight"),
    samples=[(real(3, 4), positive(3, 4, low=0.0, high=1.0))],
    tests="noempty noscalar",
)
def multi_label_soft_margin_loss(input, label, weight=None, reduction="mean"):
    """Binary cross entropy of every class's logit, averaged over classes."""
    x, y = matched(floating(input), label)
    loss = p.add(p.mul(y, _softplus(p.neg(x))), p.mul(p.sub(1.0, y), _softplus(x)))
    if weight is not None:
        loss = p.mul(loss, p.broadcast_to(p.cast(weight, loss.dtype), loss.shape))
    return reduced("multi_label_soft_margin_loss", _reduced_over(loss, (x.ndim - 1,), True), reduction)


def _label_scores(x, ids):
    """x [N, C] at ids [N, K], as [N, K]."""
    return p.gather_elements(x, ids, 1, allow_negative=False)


@op(
    (_F + "multi_margin_loss",),
    operands=("input", "label", "weight"),
    samples=[(real(3, 4), integer(3, low=0, high=4))],
    tests="noempty noscalar",
)
def multi_margin_loss(input, label, p: NotNegative = 1, margin=1.0, weight=None, reduction="mean"):
    """The mean over classes of max(0, weight of the label * (margin - score of the label + score)) ** p, the label's own class left out."""
    return _multi_margin(input, label, p, margin, weight, reduction)


def _multi_margin(x, label, power, margin, weight, reduction):
    if x.ndim != 2 or label.shape != (x.shape[0],):
        raise ShapeError(
            message(f"multi_margin_loss(): input is {list(x.shape)} and label {list(label.shape)}", "they must be [N, C] and [N]")
        )
    ids = p.reshape(p.cast(label, "int64"), (x.shape[0], 1))
    gap = p.add(p.sub(x, _label_scores(x, ids)), margin)
    if weight is not None:
        picked = p.gather(p.cast(weight, x.dtype), p.reshape(ids, (x.shape[0],)), 0)
        gap = p.mul(gap, p.reshape(picked, ids.shape))
    hinge = p.maximum(gap, 0)
    if power != 1:
        hinge = p.mul(hinge, hinge) if power == 2 else p.pow(hinge, float(power))
    is_own = p.eq(p.iota(x.shape, 1), p.broadcast_to(ids, x.shape))
    return reduced("multi_margin_loss", _reduced_over(p.select(is_own, 0, hinge), (1,), True), reduction)


@op(
    (_F + "multi_label_margin_loss",),
    operands=("input", "label"),
    samples=[(real(3, 4), integer(3, 4, low=0, high=4))],
    tests="noempty noscalar",
)
def multi_label_margin_loss(input, label, reduction="mean"):
    """Over every listed class and every class not listed, max(0, 1 - score listed + score other) / C; a row's list ends at its first -1."""
    x = floating(input)
    if x.ndim != 2 or label.shape != x.shape:
        raise ShapeError(
            message(
                f"multi_label_margin_loss(): input is {list(input.shape)} and label {list(label.shape)}", "both must be [N, C]"
            )
        )
    n, c = x.shape
    label = p.cast(label, "int64")
    place = p.iota((n, c), 1)
    end = p.reduce_min(p.select(p.lt(label, 0), place, c), (1,))
    is_listed = p.lt(place, p.broadcast_to(end, (n, c)))
    ids = p.select(is_listed, label, 0)
    listed = p.broadcast_to(p.reshape(is_listed, (n, c, 1)), (n, c, c))
    same = p.eq(p.broadcast_to(p.reshape(ids, (n, c, 1)), (n, c, c)), p.iota((n, c, c), 2))
    is_target = p.reduce_any(p.bitwise_and(listed, same), (1,))
    scores = p.broadcast_to(p.reshape(_label_scores(x, ids), (n, c, 1)), (n, c, c))
    gap = p.maximum(p.add(p.sub(p.broadcast_to(p.reshape(x, (n, 1, c)), (n, c, c)), scores), 1.0), 0)
    counts = p.bitwise_and(listed, p.bitwise_not(p.broadcast_to(is_target, (n, c, c))))
    loss = p.mul(_reduced_over(p.select(counts, gap, 0), (1, 2)), 1.0 / max(c, 1))
    return reduced("multi_label_margin_loss", loss, reduction)


@op(
    (_F + "poisson_nll_loss",),
    operands=("input", "label"),
    samples=[(real(3, 4), positive(3, 4)), (positive(3, 4), positive(3, 4, high=4.0), False, True)],
    tests="noempty",
)
def poisson_nll_loss(input, label, log_input=True, full=False, epsilon: Positive = 1e-8, reduction="mean"):
    """-log of the Poisson probability of the label, for the logarithm of its rate (or, log_input False, the rate); full: with Stirling's term."""
    x, y = matched(floating(input), label)
    loss = p.sub(p.exp(x), p.mul(y, x)) if log_input else p.sub(x, p.mul(y, p.log(p.add(x, epsilon))))
    if full:
        is_large = p.gt(y, 1)
        safe = p.select(is_large, y, 1)
        stirling = p.add(p.sub(p.mul(safe, p.log(safe)), safe), p.mul(p.log(p.mul(safe, 2 * math.pi)), 0.5))
        loss = p.add(loss, p.select(is_large, stirling, 0))
    return reduced("poisson_nll_loss", loss, reduction)


@op(
    (_F + "gaussian_nll_loss",),
    operands=("input", "label", "variance"),
    samples=[(real(3, 4), real(3, 4), positive(3, 4))],
    tests="noempty",
)
def gaussian_nll_loss(input, label, variance, full=False, epsilon: NotNegative = 1e-6, reduction="mean"):
    """-log of the normal density of the label, for a mean and a variance (kept above epsilon); full: with its constant."""
    x, y = matched(floating(input), label)
    if variance.shape != x.shape and variance.shape == x.shape[:-1]:
        variance = p.reshape(variance, (*variance.shape, 1))
    spread = p.cast(variance, x.dtype)
    spread = p.add(spread, p.detach(p.sub(p.maximum(spread, epsilon), spread)))
    spread = p.broadcast_to(spread, x.shape)
    d = p.sub(x, y)
    loss = p.mul(p.add(p.log(spread), p.div(p.mul(d, d), spread)), 0.5)
    return reduced("gaussian_nll_loss", p.add(loss, 0.5 * math.log(2 * math.pi)) if full else loss, reduction)


@op(
    (_F + "sigmoid_focal_loss",),
    operands=("logit", "label", "normalizer"),
    samples=[(real(3, 4), positive(3, 4, low=0.0, high=1.0))],
    tests="noempty",
)
def sigmoid_focal_loss(logit, label, normalizer=None, alpha=0.25, gamma=2.0, reduction="sum"):
    """Binary cross entropy that counts well-classified examples less, over ``normalizer``. https://arxiv.org/abs/1708.02002"""
    x, y = matched(floating(logit), label)
    z = p.sigmoid(x)
    entropy = p.add(p.mul(p.sub(1.0, y), x), _softplus(p.neg(x)))
    right = p.add(p.mul(z, y), p.mul(p.sub(1.0, z), p.sub(1.0, y)))
    share = p.add(p.mul(y, alpha), p.mul(p.sub(1.0, y), 1 - alpha))
    wrong = p.sub(1.0, right)
    focus = p.mul(wrong, wrong) if gamma == 2 else p.pow(wrong, float(gamma))
    loss = p.mul(p.mul(share, focus), entropy)
    if normalizer is not None:
        loss = p.div(loss, p.broadcast_to(p.cast(normalizer, loss.dtype), loss.shape))
    return reduced("sigmoid_focal_loss", loss, reduction)


@op(
    (_F + "dice_loss",),
    operands=("input", "label"),
    samples=[(positive(3, 4, 2), integer(3, 4, 1, low=0, high=2))],
    tests="noempty noscalar",
)
def dice_loss(input, label, epsilon=1e-5):
    """1 - 2 |input * label| / (|input| + |label|), averaged over instances; label holds ids [N, ..., 1]."""
    x = floating(input)
    if x.ndim < 2 or label.ndim != x.ndim or label.shape[-1] != 1 or label.shape[:-1] != x.shape[:-1]:
        raise ShapeError(
            message(
                f"dice_loss(): input is {list(input.shape)} and label {list(label.shape)}",
                "they must be [N, ..., classes] and [N, ..., 1]",
            )
        )
    ids = p.checked_index(p.cast(label, "int64"), x.shape[-1], allow_negative=False)
    target = p.cast(p.eq(p.iota(x.shape, x.ndim - 1), p.broadcast_to(ids, x.shape)), x.dtype)
    axes = tuple(range(1, x.ndim))
    both = _reduced_over(p.mul(x, target), axes)
    each = p.add(_reduced_over(x, axes), _reduced_over(target, axes))
    loss = p.sub(1.0, p.div(p.mul(both, 2.0), p.add(each, epsilon)))
    return _reduced_over(loss, (0,), True)


@op(
    (_F + "npair_loss",),
    operands=("anchor", "positive", "labels"),
    samples=[(real(4, 3), real(4, 3), integer(4, low=0, high=2))],
    tests="noempty noscalar",
)
def npair_loss(anchor, positive, labels, l2_reg=0.002):
    """Cross entropy of anchors' similarities to all positives against equality of labels, plus a penalty on the norms. K. Sohn, NIPS 2016."""
    a, b = matched(anchor, positive)
    n = a.shape[0]
    ids = p.reshape(labels, (n,))
    same = p.cast(p.eq(p.broadcast_to(p.reshape(ids, (n, 1)), (n, n)), p.broadcast_to(p.reshape(ids, (1, n)), (n, n))), a.dtype)
    target = p.div(same, p.reduce_sum(same, (1,)))
    penalty = p.add(*(_reduced_over(_reduced_over(p.mul(v, v), (1,)), (0,), True) for v in (a, b)))
    similarity = p.matmul(a, p.transpose(b, (1, 0)))
    lowered = shifted(similarity, 1)
    log_share = p.sub(lowered, p.log(p.reduce_sum(p.exp(lowered), (1,))))
    entropy = p.neg(p.reduce_sum(p.mul(target, log_share), (1,)))
    loss = _reduced_over(_reduced_over(p.mul(target, entropy), (0,)), (0,), True)
    return p.add(p.mul(penalty, 0.25 * l2_reg), loss)


@op(
    (_F + "softmax_with_cross_entropy",),
    operands=("logits", "label"),
    samples=[(real(5, 4), integer(5, 1, low=0, high=4))],
    tests="noempty noscalar",
)
def softmax_with_cross_entropy(
    logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True, return_softmax=False, axis=-1
):
    """Cross entropy of logits, one number for each position, with the class axis kept at length 1; return_softmax: and the probabilities."""
    x = floating(logits)
    at = normalized_axis("softmax_with_cross_entropy", axis, x.ndim)
    loss = cross_entropy.body(x, label, None, ignore_index, "none", soft_label, at)
    loss = p.reshape(loss, tuple(1 if k == at else n for k, n in enumerate(x.shape)))
    if not return_softmax:
        return loss
    e = p.exp(shifted(x, at))
    return loss, p.div(e, p.reduce_sum(e, (at,)))


@op(
    operands=("logits", "label"),
    samples=[(real(3, 4, low=-0.9, high=0.9), integer(3, low=0, high=4), 1.0, 0.2, 0.1, 4.0)],
    tests="noempty noscalar",
)
def margin_softmax(logits, label, margin1, margin2, margin3, scale):
    """(losses [N, 1], probabilities) of cosines whose label's angle is margin1 * angle + margin2, less margin3, all times scale.

    Source: https://arxiv.org/abs/1801.07698 (ArcFace and its relatives).
    """
    n, c = logits.shape
    ids = p.reshape(p.cast(label, "int64"), (n, 1))
    is_label = p.eq(p.iota((n, c), 1), p.broadcast_to(ids, (n, c)))
    cosine = p.minimum(p.maximum(logits, -1.0), 1.0)
    if margin1 != 1.0 or margin2 != 0.0:
        safe = p.minimum(p.maximum(cosine, -1.0 + 1e-6), 1.0 - 1e-6)
        moved = p.cos(p.add(p.mul(p.acos(safe), margin1), margin2))
    else:
        moved = cosine
    y = p.mul(p.select(is_label, p.sub(moved, margin3), cosine), scale)
    lowered = shifted(y, 1)
    log_share = p.sub(lowered, p.log(p.reduce_sum(p.exp(lowered), (1,))))
    return p.neg(p.gather_elements(log_share, ids, 1, allow_negative=False)), p.exp(log_share)


@op(
    operands=("x1", "x2", "weight", "bias"),
    reference=lambda a, b, w, c=0: np.einsum("ni,oij,nj->no", a, w, b) + c,
    samples=[(real(3, 2), real(3, 4), real(5, 2, 4), real(1, 5))],
    tests="noempty noscalar",
)
def bilinear_op(x1, x2, weight, bias=None):
    """x1 [N, I] W x2 [N, J] for each matrix W of weight [O, I, J], plus bias [1, O]: [N, O]."""
    if x1.ndim != 2 or x2.ndim != 2 or weight.ndim != 3 or weight.shape[1:] != (x1.shape[1], x2.shape[1]):
        raise ShapeError(
            message(
                f"bilinear(): x1 is {list(x1.shape)}, x2 {list(x2.shape)}, weight {list(weight.shape)}",
                "they must be [N, I], [N, J] and [O, I, J]",
            )
        )
    x1, x2, weight = (p.cast(v, matched(x1, x1)[0].dtype) for v in (x1, x2, weight))
    left = p.matmul(p.reshape(x1, (1, *x1.shape)), weight)
    y = p.reduce_sum(p.mul(left, p.broadcast_to(p.reshape(x2, (1, *x2.shape)), left.shape)), (2,))
    y = p.transpose(p.reshape(y, y.shape[:2]), (1, 0))
    return y if bias is None else p.add(y, p.cast(bias, y.dtype))
