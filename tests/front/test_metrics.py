"""Metrics and regularisers against independent definitions, scikit-free, and against the real PaddlePaddle."""

from __future__ import annotations

import numpy as np
import pytest

from sampan import metric, regularizer
from sampan.framework.arrays import to_array
from sampan.tensor import to_tensor

from .reference import ask_paddle, needs_paddle

SCORES = np.array([[0.1, 0.2, 0.7], [0.8, 0.1, 0.1], [0.3, 0.4, 0.3]], "float32")
LABELS = np.array([[2], [1], [1]])


@pytest.mark.parametrize("labels", [LABELS, LABELS[:, 0], np.eye(3)[LABELS[:, 0]]])
@pytest.mark.parametrize("wrap", [np.asarray, to_tensor])
def test_accuracy_takes_numbers_and_one_hot_labels(labels, wrap):
    counted = metric.Accuracy(topk=(1, 2))
    correct = counted.compute(wrap(SCORES), wrap(labels))
    assert to_array(correct).tolist() == [[1, 0], [0, 1], [1, 0]]
    assert counted.update(correct) == [pytest.approx(2 / 3), 1.0]
    counted.update(np.array([[0.0, 0.0]]))
    assert counted.accumulate() == [0.5, 0.75]
    counted.reset()
    assert counted.accumulate() == [0.0, 0.0]


def test_names():
    assert metric.Accuracy().name() == ["acc"]
    assert metric.Accuracy(topk=(1, 5)).name() == ["acc_top1", "acc_top5"]
    assert metric.Accuracy(topk=(1, 5), name="a").name() == ["a_top1", "a_top5"]
    assert (metric.Precision().name(), metric.Recall("r").name(), metric.Auc().name()) == ("precision", "r", "auc")


def test_accuracy_of_positions_in_sequences():
    scores = np.random.default_rng(0).random((2, 5, 4))
    labels = scores.argmax(-1)
    counted = metric.Accuracy()
    assert counted.update(counted.compute(scores, labels)) == 1.0


def test_precision_and_recall_count_over_batches():
    predictions, labels = np.array([0.1, 0.5, 0.6, 0.9]), np.array([0, 1, 1, 0])
    precision, recall = metric.Precision(), metric.Recall()
    for counted in (precision, recall):
        assert counted.accumulate() == 0.0
        counted.update(predictions, labels)
        counted.update(to_tensor(np.array([[0.1], [0.7]])), to_tensor(np.array([[1], [1]])))
    assert precision.accumulate() == 3 / 4
    assert recall.accumulate() == 3 / 4


def test_auc_is_the_chance_that_a_positive_scores_higher():
    random = np.random.default_rng(1)
    scores, labels = random.integers(0, 64, 300) / 64, random.integers(0, 2, 300)
    area = metric.Auc(num_thresholds=64)
    area.update(np.stack([1 - scores, scores], 1)[:200], labels[:200, None])
    area.update(scores[200:], labels[200:])
    positive, negative = scores[labels == 1], scores[labels == 0]
    wins = (positive[:, None] > negative).mean() + (positive[:, None] == negative).mean() / 2
    assert area.accumulate() == pytest.approx(wins, abs=1e-12)


def test_area_under_precision_over_recall():
    area = metric.Auc(curve="PR")
    area.update(np.array([0.9, 0.8, 0.2]), np.array([1, 0, 1]))
    assert area.accumulate() == pytest.approx(0.5 * 1 + 0.5 * (0.5 + 2 / 3) / 2)
    area.reset()
    area.update(np.array([0.9]), np.array([1]))
    assert area.accumulate() == 0.0


def test_accuracy_function():
    right, count = to_tensor(np.zeros(1, "int32")), to_tensor(np.zeros(1, "int32"))
    assert float(metric.accuracy(to_tensor(SCORES), to_tensor(LABELS), k=1, correct=right, total=count)) == pytest.approx(2 / 3)
    assert (int(right), int(count)) == (2, 3)
    assert float(metric.accuracy(SCORES, LABELS, k=2)) == 1.0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: metric.Metric(), TypeError, "abstract"),
        (lambda: metric.Accuracy(topk=1), TypeError, r"topk is 1; it must be a list of integers"),
        (lambda: metric.Accuracy().compute(SCORES, LABELS[:2]), ValueError, "one label a sample"),
        (lambda: metric.Precision().update([0.1], [1]), ValueError, r"preds is \[0.1\]"),
        (lambda: metric.Recall().update(np.ones(2), np.ones(3)), ValueError, "2 preds and 3 labels"),
        (lambda: metric.Auc(curve="XX"), ValueError, "curve is 'XX'"),
        (lambda: metric.Auc().update(np.array([1.5]), np.array([1])), ValueError, "must be probabilities"),
        (lambda: metric.accuracy(SCORES, LABELS[:, 0]), ValueError, r"\[N, classes\] and \[N, 1\]"),
        (lambda: metric.accuracy(SCORES, LABELS, k=5), ValueError, "input has 3 classes"),
        (lambda: regularizer.L2Decay("a"), TypeError, "coeff is 'a'"),
    ],
)
def test_bad_arguments_raise_with_the_argument_and_the_value(call, error, text):
    with pytest.raises(error, match=text):
        call()


PADDLE = """
import json, numpy as np, paddle
random = np.random.RandomState(2)
scores, labels = random.rand(40, 2), random.randint(0, 2, (40, 1))
found = []
for name in ("Precision", "Recall", "Auc"):
    counted = getattr(paddle.metric, name)()
    counted.update(scores if name == "Auc" else scores[:, 1], labels)
    found.append(float(counted.accumulate()))
print(json.dumps(found))
"""


@needs_paddle
def test_values_equal_paddles():
    random = np.random.RandomState(2)
    scores, labels = random.rand(40, 2), random.randint(0, 2, (40, 1))
    found = []
    for counted in (metric.Precision(), metric.Recall(), metric.Auc()):
        counted.update(scores if isinstance(counted, metric.Auc) else scores[:, 1], labels)
        found.append(counted.accumulate())
    np.testing.assert_allclose(found, ask_paddle(PADDLE), rtol=1e-12)


def test_regularisers_show_themselves():
    assert str(regularizer.L1Decay(0.1)) == "L1Decay, coeff=0.100000"
    assert regularizer.L2Decay(0.25)._coeff == 0.25
