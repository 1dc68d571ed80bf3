"""Losses and activations that choose between operators, or call what the caller passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.errors import ArgumentError, ShapeError, message
from ...tensor import OPS, Tensor


def require_slopes(called: str, lower: float, upper: float) -> None:
    """Refuse slopes of rrelu that are no interval within [0, 1]."""
    if not 0 <= lower <= upper <= 1:
        raise ArgumentError(message(f"{called}(): lower={lower}, upper={upper}", "they must satisfy 0 <= lower <= upper <= 1"))


def rrelu(x: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = True, name: str | None = None) -> Tensor:
    """x where x >= 0, else x times a slope: drawn from [lower, upper] for each element in training, their mean in evaluation.

    Source: B. Xu et al., https://arxiv.org/abs/1505.00853
    """
    require_slopes("rrelu", lower, upper)
    if not training:
        return OPS["leaky_relu"](x, (lower + upper) / 2)
    return OPS["rrelu_train"](x, float(lower), float(upper))


def bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None, name: str | None = None) -> Tensor:
    """x1 [N, I] W x2 [N, J] for each matrix W of weight [O, I, J], plus bias [1, O]: [N, O]."""
    return OPS["bilinear"](x1, x2, weight, bias)


def _reduced(loss: Tensor, reduction: str | None) -> Tensor:
    if reduction in (None, "none"):
        return loss
    if reduction not in ("mean", "sum"):
        raise ArgumentError(message(f"reduction={reduction!r}", "it must be 'none', 'mean' or 'sum'"))
    return OPS[reduction](loss)


def triplet_margin_with_distance_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """max(0, distance(input, positive) - distance(input, negative) + margin).

    Args:
        input: the anchors.
        positive: what should be near.
        negative: what should be far.
        distance_function: of two tensors; by default their rows' Euclidean distance.
        margin: the wanted difference.
        swap: the negative's distance to the positive counts where it is smaller.
        reduction: ``none``, ``mean`` or ``sum``.
    """
    if not margin >= 0:
        raise ArgumentError(message(f"triplet_margin_with_distance_loss(): margin={margin}", "it must be at least 0"))
    distance = distance_function or OPS["pairwise_distance"]
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = OPS["minimum"](far, distance(positive, negative))
    return _reduced(OPS["relu"](near - far + margin), reduction)


def margin_cross_entropy(
    logits: Tensor,
    label: Tensor,
    margin1: float = 1.0,
    margin2: float = 0.5,
    margin3: float = 0.0,
    scale: float = 64.0,
    group: Any = None,
    return_softmax: bool = False,
    reduction: str | None = "mean",
) -> Any:
    """Cross entropy of cosines whose label's angle is made harder: cos(margin1 * angle + margin2) - margin3, all times scale.

    Args:
        logits: [N, classes], cosines.
        label: ids [N] or [N, 1].
        group: one process: None or False.
        return_softmax: also give the probabilities.
        reduction: ``mean``, ``sum``, or None for losses [N, 1].

    Source: J. Deng et al., "ArcFace", https://arxiv.org/abs/1801.07698
    """
    loss, probabilities = OPS["margin_softmax"](logits, label, float(margin1), float(margin2), float(margin3), float(scale))
    loss = _reduced(loss, reduction)
    return (loss, probabilities) if return_softmax else loss


def _head(input: Tensor, head_weight: Tensor, head_bias: Tensor | None) -> Tensor:
    return OPS["log_softmax"](OPS["linear"](input, head_weight, head_bias), -1)


def _tail(input: Tensor, pair: Sequence[Tensor]) -> Tensor:
    return OPS["log_softmax"](OPS["matmul"](OPS["matmul"](input, pair[0]), pair[1]), -1)


def adaptive_log_probabilities(
    input: Tensor,
    head_weight: Tensor,
    tail_weights: Sequence[Sequence[Tensor]],
    cutoffs: Sequence[int],
    head_bias: Tensor | None = None,
) -> Tensor:
    """The log-probabilities [N, classes] of all classes of an adaptive softmax; ``cutoffs`` end with the number of classes."""
    head = _head(input, head_weight, head_bias)
    shortlist = int(cutoffs[0])
    parts = [head[:, :shortlist]]
    for k, pair in enumerate(tail_weights):
        parts.append(_tail(input, pair) + head[:, shortlist + k : shortlist + k + 1])
    return OPS["concat"](parts, 1)


def adaptive_log_softmax_with_loss(
    input: Tensor,
    label: Tensor,
    head_weight: Tensor,
    tail_weights: Sequence[Sequence[Tensor]],
    cutoffs: Sequence[int],
    head_bias: Tensor | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """(the log-probability of each label, minus their mean) of an adaptive softmax.

    Args:
        input: [N, in_features], or [in_features].
        label: ids [N], or [].
        head_weight: [in_features, shortlist + clusters].
        tail_weights: a pair of matrices for each cluster.
        cutoffs: where each cluster begins, and the number of classes.
        head_bias: [shortlist + clusters] or None.

    Source: E. Grave et al., https://arxiv.org/abs/1609.04309
    """
    is_single = len(input.shape) == 1
    if len(label.shape) != len(input.shape) - 1 or (not is_single and list(label.shape) != list(input.shape[:1])):
        raise ShapeError(
            message(
                f"adaptive_log_softmax_with_loss(): input is {list(input.shape)} and label {list(label.shape)}",
                "they must be [N, D] and [N]",
            )
        )
    if is_single:
        input, label = OPS["unsqueeze"](input, 0), OPS["unsqueeze"](label, 0)
    log_probabilities = adaptive_log_probabilities(input, head_weight, tail_weights, cutoffs, head_bias)
    picked = OPS["nll_loss"](log_probabilities, label, None, -1 - int(cutoffs[-1]), "none") * -1.0
    loss = OPS["mean"](picked) * -1.0
    return (OPS["squeeze"](picked, 0) if is_single else picked), loss


__all__ = [
    "adaptive_log_probabilities",
    "adaptive_log_softmax_with_loss",
    "bilinear",
    "margin_cross_entropy",
    "rrelu",
    "triplet_margin_with_distance_loss",
]
