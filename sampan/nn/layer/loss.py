"""Losses as layers; each computes the function of its kind in ``nn.functional``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ...base.errors import ArgumentError, message
from ...base.kinds import Cosine, Count, NotNegative, Positive, Probability, Reduction, Size
from ...tensor import Tensor
from .. import functional as F
from .configured import Configured
from .layers import Layer


class CrossEntropyLoss(Configured):
    """-log of the label's probability, from logits.

    Args:
        weight: a weight for each class.
        ignore_index: the id that does not count.
        reduction: ``none``, ``mean`` (over the classes' weights) or ``sum``.
        soft_label: labels are probabilities in place of ids.
        axis: the axis of classes.
        use_softmax: False: the input holds probabilities.
        label_smoothing: how much of the label is spread over all classes.

    Example:
        >>> import sampan as paddle
        >>> loss = paddle.nn.CrossEntropyLoss()(paddle.to_tensor([[0.0, 0.0]]), paddle.to_tensor([1]))
        >>> round(loss.item(), 4)
        0.6931
    """

    def __init__(
        self,
        weight: Any = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        soft_label: bool = False,
        axis: int = -1,
        use_softmax: bool = True,
        label_smoothing: Probability = 0.0,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            soft_label=soft_label,
            axis=axis,
            use_softmax=use_softmax,
            label_smoothing=label_smoothing,
        )

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            label,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            soft_label=self.soft_label,
            axis=self.axis,
            use_softmax=self.use_softmax,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(Configured):
    """-input at the label, for log-probabilities [N, C, ...]; the mean is over the classes' weights."""

    def __init__(
        self, weight: Any = None, ignore_index: int = -100, reduction: Reduction = "mean", name: str | None = None
    ) -> None:
        super().__init__(name, _weight=weight, _ignore_index=ignore_index, _reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.nll_loss(input, label, self._weight, self._ignore_index, self._reduction)


class MSELoss(Configured):
    """The square of input - label."""

    def __init__(self, reduction: Reduction = "mean", name: str | None = None) -> None:
        super().__init__(name, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.mse_loss(input, label, self.reduction)


class L1Loss(Configured):
    """|input - label|."""

    def __init__(self, reduction: Reduction = "mean", name: str | None = None) -> None:
        super().__init__(name, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.l1_loss(input, label, self.reduction)


class SmoothL1Loss(Configured):
    """Quadratic near 0 and linear beyond ``delta``. https://arxiv.org/abs/1504.08083"""

    def __init__(self, reduction: Reduction = "mean", delta: float = 1.0, is_huber: bool = True, name: str | None = None) -> None:
        super().__init__(name, reduction=reduction, delta=delta, is_huber=is_huber)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, label, self.reduction, self.delta, self.is_huber)


class BCELoss(Configured):
    """Binary cross entropy of probabilities."""

    def __init__(self, weight: Any = None, reduction: Reduction = "mean", name: str | None = None) -> None:
        super().__init__(name, weight=weight, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, label, self.weight, self.reduction)


class BCEWithLogitsLoss(Configured):
    """Binary cross entropy of sigmoid(logit); ``pos_weight`` weighs the positive term."""

    def __init__(
        self, weight: Any = None, reduction: Reduction = "mean", pos_weight: Any = None, name: str | None = None
    ) -> None:
        super().__init__(name, weight=weight, reduction=reduction, pos_weight=pos_weight)

    def forward(self, logit: Tensor, label: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(logit, label, self.weight, self.reduction, self.pos_weight)


class KLDivLoss(Configured):
    """label * (log(label) - input) for log-probabilities ``input``; log_target: the label is a logarithm too."""

    def __init__(
        self, reduction: Literal["none", "mean", "sum", "batchmean"] = "mean", log_target: bool = False, name: str | None = None
    ) -> None:
        super().__init__(name, reduction=reduction, log_target=log_target)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.kl_div(input, label, self.reduction, self.log_target)


class CTCLoss(Configured):
    """Connectionist temporal classification: -log of the probability of all alignments. A. Graves et al., ICML 2006."""

    def __init__(
        self, blank: Size = 0, reduction: Reduction = "mean", zero_infinity: bool = False, name: str | None = None
    ) -> None:
        super().__init__(name, blank=blank, reduction=reduction, zero_infinity=zero_infinity)

    def forward(
        self, log_probs: Tensor, labels: Tensor, input_lengths: Tensor, label_lengths: Tensor, norm_by_times: bool = False
    ) -> Tensor:
        return F.ctc_loss(
            log_probs, labels, input_lengths, label_lengths, self.blank, self.reduction, norm_by_times, self.zero_infinity
        )


class RNNTLoss(Configured):
    """The transducer's loss. https://arxiv.org/abs/1211.3711"""

    def __init__(
        self, blank: Size = 0, fastemit_lambda: NotNegative = 0.001, reduction: Reduction = "mean", name: str | None = None
    ) -> None:
        super().__init__(name, blank=blank, fastemit_lambda=fastemit_lambda, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor, input_lengths: Tensor, label_lengths: Tensor) -> Tensor:
        return F.rnnt_loss(input, label, input_lengths, label_lengths, self.blank, self.fastemit_lambda, self.reduction)


class MarginRankingLoss(Configured):
    """max(0, -label * (input - other) + margin)."""

    def __init__(self, margin: float = 0.0, reduction: Reduction = "mean", name: str | None = None) -> None:
        super().__init__(name, margin=margin, reduction=reduction)

    def forward(self, input: Tensor, other: Tensor, label: Tensor) -> Tensor:
        return F.margin_ranking_loss(input, other, label, self.margin, self.reduction)


class HingeEmbeddingLoss(Configured):
    """input where the label is 1, max(0, margin - input) where it is -1."""

    def __init__(self, margin: float = 1.0, reduction: Reduction = "mean", name: str | None = None) -> None:
        super().__init__(name, margin=margin, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, label, self.margin, self.reduction)


class CosineEmbeddingLoss(Configured):
    """1 - cosine where the label is 1, max(0, cosine - margin) where it is -1."""

    def __init__(self, margin: Cosine = 0, reduction: Reduction = "mean", name: str | None = None) -> None:
        super().__init__(name, margin=margin, reduction=reduction)

    def forward(self, input1: Tensor, input2: Tensor, label: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, label, self.margin, self.reduction)


class TripletMarginLoss(Configured):
    """max(0, distance to the positive - distance to the negative + margin)."""

    def __init__(
        self,
        margin: NotNegative = 1.0,
        p: float = 2.0,
        epsilon: float = 1e-6,
        swap: bool = False,
        reduction: Reduction = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__(name, margin=margin, p=p, epsilon=epsilon, swap=swap, reduction=reduction)

    def forward(self, input: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(input, positive, negative, self.margin, self.p, self.epsilon, self.swap, self.reduction)


class TripletMarginWithDistanceLoss(Configured):
    """As ``TripletMarginLoss``, with a distance of the caller's."""

    def __init__(
        self,
        distance_function: Any = None,
        margin: NotNegative = 1.0,
        swap: bool = False,
        reduction: Reduction = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__(name, distance_function=distance_function, margin=margin, swap=swap, reduction=reduction)

    def forward(self, input: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            input, positive, negative, self.distance_function, self.margin, self.swap, self.reduction
        )


class MultiLabelSoftMarginLoss(Configured):
    """Binary cross entropy of every class's logit, averaged over classes."""

    def __init__(self, weight: Any = None, reduction: Reduction = "mean", name: str | None = None) -> None:
        super().__init__(name, weight=weight, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.multi_label_soft_margin_loss(input, label, self.weight, self.reduction)


class MultiLabelMarginLoss(Configured):
    """Hinges between every listed class and every other one; the list of a row ends at -1."""

    def __init__(self, reduction: Reduction = "mean", name: str | None = None) -> None:
        super().__init__(name, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.multi_label_margin_loss(input, label, self.reduction)


class MultiMarginLoss(Configured):
    """The mean over classes of max(0, margin - score of the label + score) ** p."""

    def __init__(
        self, p: NotNegative = 1, margin: float = 1.0, weight: Any = None, reduction: Reduction = "mean", name: str | None = None
    ) -> None:
        super().__init__(name, p=p, margin=margin, weight=weight, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.multi_margin_loss(input, label, self.p, self.margin, self.weight, self.reduction)


class SoftMarginLoss(Configured):
    """log(1 + exp(-label * input)), for labels of 1 and -1."""

    def __init__(self, reduction: Reduction = "mean", name: str | None = None) -> None:
        super().__init__(name, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.soft_margin_loss(input, label, self.reduction)


class PoissonNLLLoss(Configured):
    """-log of the Poisson probability of the label, for a rate or its logarithm."""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        epsilon: Positive = 1e-8,
        reduction: Reduction = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__(name, _log_input=log_input, _full=full, _epsilon=epsilon, _reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.poisson_nll_loss(input, label, self._log_input, self._full, self._epsilon, self._reduction)


class GaussianNLLLoss(Configured):
    """-log of the normal density of the label, for a mean and a variance."""

    def __init__(
        self, full: bool = False, epsilon: NotNegative = 1e-6, reduction: Reduction = "mean", name: str | None = None
    ) -> None:
        super().__init__(name, full=full, epsilon=epsilon, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor, variance: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, label, variance, self.full, self.epsilon, self.reduction)


class HSigmoidLoss(Layer):
    """-log of the label's probability by a binary tree over classes: log(classes) decisions in place of a softmax.

    Args:
        feature_size: the last axis of the input.
        num_classes: how many classes, at least 2.
        weight_attr: the ParamAttr of the inner nodes' weights.
        bias_attr: the ParamAttr of their biases; False: none.
        is_custom: the tree is passed to forward as path table and path code; num_classes counts its inner nodes then.
        is_sparse: accepted for compatibility; the gradient's values are the same.

    Source: F. Morin, Y. Bengio, "Hierarchical probabilistic neural network language model", AISTATS 2005.
    """

    def __init__(
        self,
        feature_size: Count,
        num_classes: Count,
        weight_attr: Any = None,
        bias_attr: Any = None,
        is_custom: bool = False,
        is_sparse: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if num_classes < 2 and not is_custom:
            raise ArgumentError(message(f"HSigmoidLoss: num_classes={num_classes}", "it must be at least 2"))
        nodes = num_classes if is_custom else num_classes - 1
        self._num_classes, self._is_custom, self._is_sparse = num_classes, is_custom, is_sparse
        self.weight = self.create_parameter([nodes, feature_size], weight_attr)
        self.bias = self.create_parameter([nodes, 1], bias_attr, is_bias=True)

    def forward(self, input: Tensor, label: Tensor, path_table: Tensor | None = None, path_code: Tensor | None = None) -> Tensor:
        return F.hsigmoid_loss(input, label, self._num_classes, self.weight, self.bias, path_table, path_code, self._is_sparse)


class AdaptiveLogSoftmaxWithLoss(Layer):
    """Softmax for many classes: frequent ones in the head, rare ones in smaller clusters.

    The clusters' weights are parameters of the layer, saved and trained (Paddle does not register them).

    Args:
        in_features: the last axis of the input.
        n_classes: how many classes, sorted by falling frequency.
        cutoffs: where each cluster begins.
        weight_attr: the ParamAttr of all weights.
        bias_attr: the ParamAttr of the head's bias.
        div_value: each cluster's inner width is the one before divided by this.
        head_bias: the head has a bias.

    Source: E. Grave et al., https://arxiv.org/abs/1609.04309
    """

    def __init__(
        self,
        in_features: Count,
        n_classes: Count,
        cutoffs: Sequence[int],
        weight_attr: Any = None,
        bias_attr: Any = None,
        div_value: Positive = 4.0,
        head_bias: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        edges = list(cutoffs)
        if not edges or edges != sorted(set(edges)) or edges[0] <= 0 or edges[-1] > n_classes - 1:
            raise ArgumentError(
                message(
                    f"AdaptiveLogSoftmaxWithLoss: cutoffs={edges}",
                    f"they must be different positive integers in rising order, below n_classes={n_classes}",
                )
            )
        self.in_features, self.n_classes, self.div_value, self.is_head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*edges, n_classes]
        self.shortlist_size, self.n_clusters = edges[0], len(edges)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head_weight = self.create_parameter([in_features, self.head_size], weight_attr)
        self.head_bias = self.create_parameter([self.head_size], bias_attr, is_bias=True) if head_bias else None
        self.tail_weights: list[list[Any]] = []
        for k in range(self.n_clusters):
            width = int(in_features // div_value ** (k + 1))
            pair = [
                self.create_parameter([in_features, width], weight_attr),
                self.create_parameter([width, self.cutoffs[k + 1] - self.cutoffs[k]], weight_attr),
            ]
            for j, weight in enumerate(pair):
                self.add_parameter(f"tail_{k}_{j}", weight)
            self.tail_weights.append(pair)

    def forward(self, input: Tensor, label: Tensor) -> Any:
        return F.adaptive_log_softmax_with_loss(input, label, self.head_weight, self.tail_weights, self.cutoffs, self.head_bias)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities [N, n_classes] of all classes."""
        return F.adaptive_log_probabilities(input, self.head_weight, self.tail_weights, self.cutoffs, self.head_bias)

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each row."""
        return self.log_prob(input).argmax(axis=1)


__all__ = [
    "AdaptiveLogSoftmaxWithLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HSigmoidLoss",
    "HingeEmbeddingLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "RNNTLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]
