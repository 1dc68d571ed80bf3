"""Metrics as statements of a Program, with sums that are kept from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import nn
from ..base import names
from ..base.errors import ArgumentError, ShapeError, UnsupportedError, message
from ..metric import accuracy as any_accuracy
from ..tensor import OPS
from ..tensor.functions import in_dynamic_mode, no_grad
from ..tensor.program import declare
from ..tensor.variable import Variable
from ..tensor.variable_methods import write


def accuracy(input: Any, label: Any, k: int = 1, correct: Any = None, total: Any = None) -> Any:
    """The part of samples whose label is among the k classes with the highest scores: float32, one number.

    Args:
        input: scores, [N, classes].
        label: class numbers, [N, 1].
        k: how many of the highest classes count.
        correct, total: int Variables that get the number of right samples, and of samples.

    Raises:
        ShapeError: the shapes do not fit, or ``k`` is more than there are classes.

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program()):
        ...     scores, label = paddle.static.data("scores", [None, 3]), paddle.static.data("label", [None, 1], "int64")
        ...     paddle.static.accuracy(scores, label, k=2).dtype
        'float32'
        >>> paddle.disable_static()
    """
    return any_accuracy(input, label, k, correct, total)


def _kept(key: str, shape: Sequence[int], dtype: str) -> Any:
    """A new Variable of zeros that is kept from run to run."""
    return declare(Variable(dtype, shape, names.generate(key), persistable=True), nn.initializer.Constant(0))


def auc(
    input: Any,
    label: Any,
    curve: str = "ROC",
    num_thresholds: int = 4095,
    topk: int = 1,
    slide_steps: int = 1,
    ins_tag_weight: Any = None,
) -> tuple[Any, Any, list[Any]]:
    """The area under the curve of a binary classifier, over all runs and over the last ones.

    Args:
        input: [N, 2], the probabilities of no and yes; [N, 1] of yes.
        label: 0 or 1, [N] or [N, 1].
        curve: ``ROC`` or ``PR``.
        num_thresholds: into how many steps probabilities are rounded.
        topk: must be 1.
        slide_steps: over how many runs the second area goes; 0: over all.
        ins_tag_weight: [N, 1], 1 for samples that count, 0 for others.

    Returns:
        (area over all runs, area over the last ``slide_steps`` runs, [the counts they are made of: yes and no of the last, yes and no of all]).

    Raises:
        ArgumentError: an unknown curve; slide_steps or num_thresholds out of range.
    """
    if in_dynamic_mode():
        raise UnsupportedError(message("static.auc() in eager mode", "it keeps sums in a Program", "use paddle.metric.Auc"))
    if curve not in ("ROC", "PR"):
        raise ArgumentError(message(f"auc(): curve={curve!r}", "it must be 'ROC' or 'PR'"))
    if num_thresholds < 1 or slide_steps < 0 or topk != 1:
        raise ArgumentError(
            message(
                f"auc(): num_thresholds={num_thresholds}, slide_steps={slide_steps}, topk={topk}",
                "they must be positive, not negative, and 1",
            )
        )
    if input.ndim != 2 or input.shape[1] not in (1, 2):
        raise ShapeError(message(f"auc(): input has shape {list(input.shape)}", "it must be [N, 2] or [N, 1]"))
    count = num_thresholds + 1
    totals = [_kept(f"auc_stat_{what}", [1, count], "int64") for what in ("pos", "neg")]
    recent = [_kept(f"auc_batch_stat_{what}", [max(slide_steps, 1), count], "int64") for what in ("pos", "neg")]
    with no_grad():
        steps = OPS["cast"](OPS["clip"](input[:, -1].astype("float64"), 0.0, 1.0) * float(num_thresholds), "int64")
        yes = OPS["reshape"](label, [-1]).astype("int64")
        weight = OPS["ones_like"](yes) if ins_tag_weight is None else OPS["reshape"](ins_tag_weight, [-1]).astype("int64")
        for kept, last, part in zip(totals, recent, (yes * weight, (1 - yes) * weight), strict=True):
            found = OPS["scatter_nd_add"](OPS["zeros"]([count], "int64"), OPS["unsqueeze"](steps, 1), part)
            row = OPS["unsqueeze"](found, 0)
            OPS["add_"](kept, row)
            if slide_steps == 0:
                OPS["add_"](last, row)
            else:
                write(last, OPS["concat"]([last[1:], row], 0) if slide_steps > 1 else row, "auc")
        areas = [_area(OPS["sum"](pos, 0), OPS["sum"](neg, 0), curve) for pos, neg in (totals, recent)]
    return areas[0], areas[1], [*recent, *totals]


def _area(positives: Any, negatives: Any, curve: str) -> Any:
    """The area under the curve of counts by rising probability; 0 where one of them is empty."""
    found, false = (OPS["cumsum"](OPS["flip"](v, [0])).astype("float64") for v in (positives, negatives))
    before_found, before_false = (OPS["concat"]([OPS["zeros"]([1], "float64"), v[:-1]], 0) for v in (found, false))
    if curve == "ROC":
        area = OPS["sum"]((false - before_false) * (found + before_found)) * 0.5
        whole = found[-1] * false[-1]
    else:
        share, before = (_precision(p, n) for p, n in ((found, false), (before_found, before_false)))
        area = OPS["sum"]((found - before_found) * (share + before)) * 0.5
        whole = found[-1]
    safe = OPS["where"](whole > 0, whole, OPS["ones_like"](whole))
    return OPS["where"](whole > 0, area / safe, OPS["zeros_like"](whole))


def _precision(found: Any, false: Any) -> Any:
    """The part of what is called positive that is; 1 where nothing is."""
    called = found + false
    return OPS["where"](called > 0, found / OPS["clip"](called, 1.0), OPS["ones_like"](called))


def ctr_metric_bundle(input: Any, label: Any, ins_tag_weight: Any = None) -> tuple[Any, ...]:
    """Sums over all runs that metrics of click-through models are made of.

    Args:
        input: [N, 1], predicted probabilities.
        label: [N, 1], 0 or 1.
        ins_tag_weight: [N, 1], the weight of each sample.

    Returns:
        (squared errors, absolute errors, predictions, sigmoids of predictions, positive samples, samples), each [1], float32.
    """
    if in_dynamic_mode():
        raise UnsupportedError(message("ctr_metric_bundle() in eager mode", "it keeps sums in a Program"))
    if list(input.shape) != list(label.shape) or input.ndim != 2 or input.shape[1] != 1:
        raise ShapeError(
            message(f"ctr_metric_bundle(): input is {list(input.shape)} and label {list(label.shape)}", "both must be [N, 1]")
        )
    sums = [_kept(f"ctr_{what}", [1], "float32") for what in ("sqrerr", "abserr", "prob", "q", "pos", "total")]
    with no_grad():
        wanted = label.astype("float32")
        weight = OPS["ones_like"](input) if ins_tag_weight is None else ins_tag_weight.astype("float32")
        error = input - wanted
        parts = (error * error, OPS["abs"](error), input, OPS["sigmoid"](input), wanted, OPS["ones_like"](input))
        for kept, part in zip(sums, parts, strict=True):
            OPS["add_"](kept, OPS["reshape"](OPS["sum"](part * weight), [1]))
    return tuple(sums)
