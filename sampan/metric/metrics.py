"""Metrics that gather over the batches of an epoch."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, describe, message
from ..base.kinds import CountList
from ..framework.arrays import is_tensor, to_array, to_tensor
from ..tensor import OPS
from ..tensor.explained import Explained
from ..tensor.functions import no_grad
from ..tensor.variable import UNKNOWN, Variable
from ..tensor.variable_methods import write


class Metric(Explained, abc.ABC):
    """The base of metrics: ``compute`` on a batch's tensors, ``update`` with what it returns, ``accumulate`` over all batches.

    Example:
        >>> from sampan.metric import Metric
        >>> class Count(Metric):
        ...     def __init__(self):
        ...         self.reset()
        ...     def reset(self):
        ...         self.samples = 0
        ...     def update(self, predictions, labels):
        ...         self.samples += len(labels)
        ...     def accumulate(self):
        ...         return self.samples
        ...     def name(self):
        ...         return "count"
        >>> metric = Count()
        >>> metric.update([0.5, 0.7], [0, 1])
        >>> metric.accumulate()
        2
    """

    @abc.abstractmethod
    def reset(self) -> None:
        """Forget all batches."""

    @abc.abstractmethod
    def update(self, *args: Any) -> Any:
        """Take in a batch."""

    @abc.abstractmethod
    def accumulate(self) -> Any:
        """The metric over all batches since the last ``reset``."""

    @abc.abstractmethod
    def name(self) -> Any:
        """The metric's name, or the list of names of its values."""

    def compute(self, *args: Any) -> Any:
        """What ``update`` is to get for the network's outputs and the labels; by default these themselves."""
        return args


class Accuracy(Metric):
    """The part of samples whose label is among the k classes with the highest scores.

    Args:
        topk: the k's; one value for each.
        name: the metric's name; ``acc`` when it is None.

    Example:
        >>> import numpy as np
        >>> from sampan.metric import Accuracy
        >>> metric = Accuracy()
        >>> correct = metric.compute(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([[1], [1]]))
        >>> metric.update(correct), metric.accumulate()
        (0.5, 0.5)
    """

    def __init__(self, topk: CountList = (1,), name: str | None = None, *args: Any, **kwargs: Any) -> None:
        self.topk = topk
        self.maxk = max(topk)
        self._name = [name or "acc"] if len(topk) == 1 else [f"{name or 'acc'}_top{k}" for k in topk]
        self.reset()

    def compute(self, pred: Any, label: Any, *args: Any) -> Any:
        """For each sample, which of its highest classes (best first) is its label's.

        Args:
            pred: scores, with the classes along the last axis.
            label: class numbers, with or without a last axis of 1; or one-hot rows.

        Returns:
            A float32 tensor of 0 and 1, with max(topk) entries along the last axis.
        """
        if isinstance(pred, Variable):
            return self._recorded_compute(pred, label)
        scores, labels = to_array(pred), to_array(label)
        if labels.ndim == scores.ndim and labels.shape[-1] != 1:
            labels = labels.argmax(-1)
        labels = labels.reshape(*scores.shape[:-1], 1) if labels.size == scores[..., 0].size else labels
        if labels.shape != (*scores.shape[:-1], 1):
            raise ShapeError(
                message(
                    f"Accuracy.compute(): pred is {describe(pred)} and label is {describe(label)}", "one label a sample is needed"
                )
            )
        # The sort is stable, so that among equal scores the lower class number comes first, as in Paddle.
        best = np.argsort(-scores, axis=-1, kind="stable")[..., : self.maxk]
        return to_tensor((best == labels).astype(np.float32))

    def _recorded_compute(self, pred: Variable, label: Any) -> Any:
        """``compute`` as a statement of a Program."""
        if label.ndim == pred.ndim and label.shape[-1] != 1:
            label = OPS["argmax"](label, -1)
        if label.ndim == pred.ndim - 1:
            label = OPS["unsqueeze"](label, -1)
        if label.ndim != pred.ndim:
            raise ShapeError(message(f"Accuracy.compute(): pred is {pred} and label is {label}", "one label a sample is needed"))
        with no_grad():
            best = OPS["argsort"](pred, -1, True, True)[..., : self.maxk]
            return (best == label.astype("int64")).astype("float32")

    def update(self, correct: Any, *args: Any) -> Any:
        """Take in what ``compute`` returned; gives the accuracy of this batch alone."""
        array = to_array(correct)
        if array.dtype.kind not in "biuf":
            raise ArgumentTypeError(
                message(f"Accuracy.update(): correct is {describe(correct)}", "it must hold numbers", "pass what compute() gives")
            )
        rows = array.reshape(-1, np.shape(correct)[-1] if np.ndim(correct) else 1)
        found = [float(rows[:, :k].sum()) for k in self.topk]
        for i, value in enumerate(found):
            self.total[i] += value
            self.count[i] += len(rows)
        return _one_or_all([value / len(rows) if len(rows) else 0.0 for value in found])

    def reset(self) -> None:
        """Forget all batches."""
        self.total = [0.0] * len(self.topk)
        self.count = [0] * len(self.topk)

    def accumulate(self) -> Any:
        """The accuracy over all batches; a list when there are several k's."""
        return _one_or_all([total / count if count else 0.0 for total, count in zip(self.total, self.count, strict=True)])

    def name(self) -> list[str]:
        """The names of the values, one for each k."""
        return self._name


class _BinaryMetric(Metric):
    """Counts of true and false answers of a two-class problem; a probability from 0.5 on counts as positive."""

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        self._name = name
        self.reset()

    def _counts(self, preds: Any, labels: Any) -> tuple[int, int, int]:
        """True positives, false positives and false negatives of a batch."""
        predicted = _probabilities(type(self).__name__, "preds", preds).reshape(-1) >= 0.5
        actual = _probabilities(type(self).__name__, "labels", labels).reshape(-1) != 0
        if predicted.shape != actual.shape:
            raise ShapeError(
                message(
                    f"{type(self).__name__}.update(): {predicted.size} preds and {actual.size} labels",
                    "they must be equally many",
                )
            )
        return int((predicted & actual).sum()), int((predicted & ~actual).sum()), int((~predicted & actual).sum())

    def name(self) -> str:
        """The metric's name."""
        return self._name


class Precision(_BinaryMetric):
    """The part of the samples called positive that are positive.

    Args:
        name: the metric's name.

    Example:
        >>> import numpy as np
        >>> from sampan.metric import Precision
        >>> metric = Precision()
        >>> metric.update(np.array([0.1, 0.9, 0.8]), np.array([0, 1, 0]))
        >>> metric.accumulate()
        0.5
    """

    def __init__(self, name: str = "precision", *args: Any, **kwargs: Any) -> None:
        super().__init__(name)

    def reset(self) -> None:
        """Forget all batches."""
        self.tp = self.fp = 0

    def update(self, preds: Any, labels: Any) -> None:
        """Take in a batch.

        Args:
            preds: the probability of the positive class of each sample.
            labels: 0 or 1 for each sample.
        """
        true, false, _ = self._counts(preds, labels)
        self.tp += true
        self.fp += false

    def accumulate(self) -> float:
        """The precision over all batches; 0 when nothing was called positive."""
        return self.tp / (self.tp + self.fp) if self.tp else 0.0


class Recall(_BinaryMetric):
    """The part of the positive samples that are called positive.

    Args:
        name: the metric's name.

    Example:
        >>> import numpy as np
        >>> from sampan.metric import Recall
        >>> metric = Recall()
        >>> metric.update(np.array([0.1, 0.9, 0.2]), np.array([0, 1, 1]))
        >>> metric.accumulate()
        0.5
    """

    def __init__(self, name: str = "recall", *args: Any, **kwargs: Any) -> None:
        super().__init__(name)

    def reset(self) -> None:
        """Forget all batches."""
        self.tp = self.fn = 0

    def update(self, preds: Any, labels: Any) -> None:
        """Take in a batch.

        Args:
            preds: the probability of the positive class of each sample.
            labels: 0 or 1 for each sample.
        """
        true, _, missed = self._counts(preds, labels)
        self.tp += true
        self.fn += missed

    def accumulate(self) -> float:
        """The recall over all batches; 0 when nothing was positive."""
        return self.tp / (self.tp + self.fn) if self.tp else 0.0


class Auc(Metric):
    """The area under a curve of a two-class problem, over thresholds at equal distances.

    With ``curve='PR'`` it is the area under precision over recall; Paddle gives that of ROC there too.

    Args:
        curve: ``'ROC'`` (true over false positive rate) or ``'PR'`` (precision over recall).
        num_thresholds: how many steps the probabilities from 0 to 1 are cut into.
        name: the metric's name.

    Example:
        >>> import numpy as np
        >>> from sampan.metric import Auc
        >>> metric = Auc()
        >>> metric.update(np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]), np.array([0, 0, 1]))
        >>> metric.accumulate()
        1.0
    """

    def __init__(self, curve: str = "ROC", num_thresholds: int = 4095, name: str = "auc", *args: Any, **kwargs: Any) -> None:
        if curve not in ("ROC", "PR"):
            raise ArgumentError(message(f"Auc: curve is {curve!r}", "it must be 'ROC' or 'PR'"))
        if not isinstance(num_thresholds, int) or num_thresholds < 1:
            raise ArgumentError(message(f"Auc: num_thresholds is {describe(num_thresholds)}", "it must be a positive int"))
        self._curve = curve
        self._num_thresholds = num_thresholds
        self._name = name
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._stat_pos = np.zeros(self._num_thresholds + 1)
        self._stat_neg = np.zeros(self._num_thresholds + 1)

    def update(self, preds: Any, labels: Any) -> None:
        """Take in a batch.

        Args:
            preds: the probabilities, [N, 2] with those of the positive class second, or [N, 1] or [N] of it alone.
            labels: 0 or 1 for each sample.
        """
        scores = _probabilities("Auc", "preds", preds)
        scores = scores[:, -1] if scores.ndim == 2 else scores.reshape(-1)
        actual = _probabilities("Auc", "labels", labels).reshape(-1) != 0
        if scores.shape != actual.shape:
            raise ShapeError(
                message(
                    f"Auc.update(): preds is {describe(preds)} and labels is {describe(labels)}", "one label a sample is needed"
                )
            )
        if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
            raise ArgumentError(
                message(
                    f"Auc.update(): preds reach from {scores.min()} to {scores.max()}", "they must be probabilities, from 0 to 1"
                )
            )
        bins = (scores * self._num_thresholds).astype(np.int64)
        self._stat_pos += np.bincount(bins[actual], minlength=self._num_thresholds + 1)
        self._stat_neg += np.bincount(bins[~actual], minlength=self._num_thresholds + 1)

    @staticmethod
    def trapezoid_area(x1: float, x2: float, y1: float, y2: float) -> float:
        """The area under the line from (x1, y1) to (x2, y2)."""
        return abs(x1 - x2) * (y1 + y2) / 2.0

    def accumulate(self) -> float:
        """The area over all batches; 0 while one of the classes is missing."""
        positives = np.concatenate([[0.0], np.cumsum(self._stat_pos[::-1])])
        negatives = np.concatenate([[0.0], np.cumsum(self._stat_neg[::-1])])
        if not positives[-1] or not negatives[-1]:
            return 0.0
        if self._curve == "ROC":
            x, y = negatives / negatives[-1], positives / positives[-1]
        else:
            called = positives + negatives
            x, y = positives / positives[-1], np.divide(positives, called, out=np.ones_like(called), where=called > 0)
        return float(np.sum(self.trapezoid_area(x[1:], x[:-1], y[1:], y[:-1])))

    def name(self) -> str:
        """The metric's name."""
        return self._name


def accuracy(input: Any, label: Any, k: int = 1, correct: Any = None, total: Any = None, name: str | None = None) -> Any:
    """The part of samples whose label is among the k classes with the highest scores, as a tensor.

    Args:
        input: scores, [N, classes].
        label: class numbers, [N, 1].
        k: how many of the highest classes count.
        correct: an int tensor that gets the number of right samples.
        total: an int tensor that gets the number of samples.
        name: accepted for Paddle's signature.

    Raises:
        ShapeError: the shapes do not fit, or ``k`` is more than there are classes.

    Example:
        >>> import numpy as np
        >>> from sampan.metric import accuracy
        >>> float(accuracy(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([[1], [1]])))
        0.5
    """
    if isinstance(input, Variable):
        return _recorded_accuracy(input, label, k, correct, total)
    scores, labels = to_array(input), to_array(label)
    if scores.ndim != 2 or labels.shape != (len(scores), 1):
        raise ShapeError(
            message(
                f"accuracy(): input is {describe(input)} and label is {describe(label)}", "they must be [N, classes] and [N, 1]"
            )
        )
    if not 1 <= k <= scores.shape[1]:
        raise ShapeError(message(f"accuracy(): k is {k}", f"input has {scores.shape[1]} classes"))
    right = int(to_array(Accuracy(topk=(k,)).compute(input, label)).sum())
    for target, value in ((correct, right), (total, len(scores))):
        if is_tensor(target):
            target.set_value(np.full(target.shape, value, to_array(target).dtype))
    return to_tensor(np.array(right / len(scores) if len(scores) else 0.0, np.float32))


def _recorded_accuracy(input: Variable, label: Any, k: int, correct: Any, total: Any) -> Any:
    """``accuracy`` as a statement of a Program."""
    if input.ndim != 2 or label.ndim not in (1, 2) or (label.ndim == 2 and label.shape[1] != 1):
        raise ShapeError(
            message(
                f"accuracy(): input is {list(input.shape)} and label {list(label.shape)}", "they must be [N, classes] and [N, 1]"
            )
        )
    if not 1 <= k or (input.shape[1] != UNKNOWN and k > input.shape[1]):
        raise ShapeError(message(f"accuracy(): k is {k}", f"input has {input.shape[1]} classes"))
    with no_grad():
        picked = OPS["topk"](input, k)[1]
        hits = OPS["any"](picked == OPS["reshape"](label, [-1, 1]).astype("int64"), -1)
        right = OPS["sum"](hits.astype("int64"))
        rows = OPS["numel"](hits)
        for target, value in ((correct, right), (total, rows)):
            if target is not None:
                write(target, OPS["broadcast_to"](value, list(target.shape)) if target.shape else value, "accuracy")
        return right.astype("float32") / rows.astype("float32")


def _probabilities(owner: str, name: str, value: Any) -> np.ndarray:
    if not is_tensor(value) and not isinstance(value, np.ndarray):
        raise _ArrayError(message(f"{owner}.update(): {name} is {describe(value)}", "it must be a tensor or an array"))
    return to_array(value)


class _ArrayError(ArgumentTypeError, ValueError):
    """Something that is no array; also a ValueError, as in Paddle."""


def _one_or_all(values: list[float]) -> Any:
    return values[0] if len(values) == 1 else values
