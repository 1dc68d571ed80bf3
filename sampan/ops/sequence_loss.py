"""Losses over sequences and trees: CTC, the transducer, hierarchical sigmoid."""

from __future__ import annotations

import numpy as np

from ..base.errors import ArgumentError, ShapeError, message
from ..base.kinds import NotNegative
from . import primitives as p
from .arguments import floating, shifted
from .define import op
from .loss import reduced
from .samples import integer, real


def _lengths(name, what, x, count):
    if x.shape != (count,):
        raise ShapeError(
            message(f"{name}(): {what} has shape {list(x.shape)}", f"it must be [{count}], one length for each instance")
        )
    return p.cast(x, "int64")


@op(
    "nn.functional.ctc_loss",
    operands=("log_probs", "labels", "input_lengths", "label_lengths"),
    samples=[(real(6, 2, 4), integer(2, 3, low=1, high=4), integer(2, low=5, high=7), integer(2, low=1, high=3))],
    tests="noempty noscalar",
    tolerance=5,
)
def ctc_loss(
    log_probs, labels, input_lengths, label_lengths, blank=0, reduction="mean", norm_by_times=False, zero_infinity=False
):
    """-log of the probability of all alignments of the labels [N, L] with logits [T, N, C]; softmax is taken inside.

    The mean divides each loss by its label's length first. norm_by_times: gradients are divided by the number of steps.
    zero_infinity: an impossible alignment counts 0, not infinity; its gradient is 0 either way.
    """
    x = floating(log_probs)
    if x.ndim != 3 or labels.ndim != 2 or labels.shape[0] != x.shape[1]:
        raise ShapeError(
            message(
                f"ctc_loss(): log_probs is {list(log_probs.shape)} and labels {list(labels.shape)}",
                "they must be [T, N, C] and [N, L]",
            )
        )
    if not 0 <= blank < x.shape[2]:
        raise ArgumentError(message(f"ctc_loss(): blank={blank}", f"it must be a class, in [0, {x.shape[2] - 1}]"))
    steps = _lengths("ctc_loss", "input_lengths", input_lengths, x.shape[1])
    sizes = _lengths("ctc_loss", "label_lengths", label_lengths, x.shape[1])
    lowered = shifted(x, 2)
    log_share = p.sub(lowered, p.log(p.reduce_sum(p.exp(lowered), (2,))))
    loss, _ = p.ctc(log_share, p.cast(labels, "int64"), steps, sizes, blank)
    if zero_infinity:
        loss = p.select(p.isinf(loss), 0, loss)
    if norm_by_times:
        scaled = p.div(loss, p.maximum(p.cast(steps, x.dtype), 1))
        loss = p.add(scaled, p.detach(p.sub(loss, scaled)))
    if reduction == "mean":
        loss = p.div(loss, p.maximum(p.cast(sizes, x.dtype), 1))
    return reduced("ctc_loss", loss, reduction)


@op(
    "nn.functional.rnnt_loss",
    operands=("input", "label", "input_lengths", "label_lengths"),
    samples=[(real(2, 4, 3, 5), integer(2, 2, low=1, high=5), integer(2, low=3, high=5), integer(2, low=1, high=3), 0, 0.0)],
    tests="noempty noscalar",
    tolerance=5,
)
def rnnt_loss(input, label, input_lengths, label_lengths, blank=0, fastemit_lambda: NotNegative = 0.001, reduction="mean"):
    """-log of the probability of all alignments of the label [N, U] with log-probabilities [N, T, U + 1, C].

    fastemit_lambda: how much more the gradient rewards emitting early (the loss itself stays). https://arxiv.org/abs/1211.3711
    """
    x = floating(input)
    if x.ndim != 4 or label.ndim != 2 or label.shape[0] != x.shape[0] or label.shape[1] + 1 != x.shape[2]:
        raise ShapeError(
            message(
                f"rnnt_loss(): input is {list(input.shape)} and label {list(label.shape)}",
                "they must be [N, T, U + 1, C] and [N, U]",
            )
        )
    if not 0 <= blank < x.shape[3]:
        raise ArgumentError(message(f"rnnt_loss(): blank={blank}", f"it must be a class, in [0, {x.shape[3] - 1}]"))
    steps = _lengths("rnnt_loss", "input_lengths", input_lengths, x.shape[0])
    sizes = _lengths("rnnt_loss", "label_lengths", label_lengths, x.shape[0])
    loss, _ = p.transducer(x, p.cast(label, "int64"), steps, sizes, blank, float(fastemit_lambda))
    return reduced("rnnt_loss", loss, reduction)


def _tree_paths(label, num_classes):
    """(inner node, code bit, whether it is on the path), each [N, depth], of a complete binary tree whose leaves are the classes."""
    depth = int(num_classes - 1).bit_length()
    n = label.shape[0]
    leaf = p.broadcast_to(p.reshape(p.add(label, num_classes), (n, 1)), (n, depth))
    level = p.iota((n, depth), 1)
    above = p.shift_right(leaf, p.add(level, 1))
    code = p.bitwise_and(p.shift_right(leaf, level), p.full((n, depth), 1, "int64"))
    return p.maximum(p.sub(above, 1), 0), code, p.gt(above, 0)


def _tree_reference(x, label, classes, w, b=None):
    total = []
    for row, leaf in zip(x, label + classes, strict=True):
        loss = 0.0
        while leaf > 1:
            pre = row @ w[leaf // 2 - 1] + (0 if b is None else b[leaf // 2 - 1, 0])
            loss += np.log1p(np.exp(pre)) - (leaf % 2) * pre
            leaf //= 2
        total.append([loss])
    return np.array(total)


@op(
    "nn.functional.hsigmoid_loss",
    operands=("input", "label", "weight", "bias", "path_table", "path_code"),
    reference=_tree_reference,
    samples=[(real(4, 3), integer(4, low=0, high=6), 6, real(5, 3), real(5, 1))],
    tests="noempty noscalar",
)
def hsigmoid_loss(input, label, num_classes, weight, bias=None, path_table=None, path_code=None, is_sparse=False):
    """-log of the label's probability by the decisions on its path down a binary tree of classes: [N, 1].

    By default the tree is complete. A custom one comes as inner nodes ``path_table`` and bits ``path_code``, [N, depth], -1 after a path's end.
    Levels below a shallow leaf count nothing (Paddle adds log 2 for each).
    """
    x = floating(input)
    if x.ndim != 2 or weight.ndim != 2 or weight.shape[1] != x.shape[1]:
        raise ShapeError(
            message(
                f"hsigmoid_loss(): input is {list(input.shape)} and weight {list(weight.shape)}",
                "they must be [N, D] and [nodes, D]",
            )
        )
    if (path_table is None) != (path_code is None):
        raise ArgumentError("hsigmoid_loss(): path_table and path_code must be given together")
    if num_classes < 2:
        raise ArgumentError(message(f"hsigmoid_loss(): num_classes is {num_classes}", "a tree has 2 classes at least"))
    n = x.shape[0]
    if path_table is None:
        ids = p.reshape(p.cast(label, "int64"), (n,))
        ids = p.require(
            ids,
            p.bitwise_and(p.ge(ids, 0), p.lt(ids, num_classes)),
            f"hsigmoid_loss(): label holds ids outside of [0, {num_classes - 1}]",
        )
        node, code, is_used = _tree_paths(ids, num_classes)
    else:
        table, code = p.cast(path_table, "int64"), p.cast(path_code, "int64")
        is_used = p.ge(table, 0)
        node = p.maximum(table, 0)
    rows = p.gather(p.cast(weight, x.dtype), node, 0)
    pre = p.reduce_sum(p.mul(rows, p.broadcast_to(p.reshape(x, (n, 1, x.shape[1])), rows.shape)), (2,))
    pre = p.reshape(pre, node.shape)
    if bias is not None:
        pre = p.add(pre, p.gather(p.reshape(p.cast(bias, x.dtype), (bias.numel,)), node, 0))
    soft = p.add(p.maximum(pre, 0), p.log1p(p.exp(p.neg(p.abs(pre)))))
    loss = p.select(is_used, p.sub(soft, p.mul(p.cast(code, x.dtype), pre)), 0)
    return p.reduce_sum(loss, (1,))
