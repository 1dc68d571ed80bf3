"""Scaled dot-product attention. https://arxiv.org/abs/1706.03762"""

from __future__ import annotations

import math

import numpy as np

from ..base.errors import ShapeError, message
from ..base.lazy import scipy_special as special
from . import primitives as p
from .arguments import promoted
from .define import op
from .samples import real


def _heads_first(x):
    return p.transpose(x, (0, 2, 1, 3))


def _repeated(x, count):
    """Each head of x [N, H, T, D] ``count`` times in a row."""
    if count == 1:
        return x
    n, h, t, d = x.shape
    return p.reshape(p.broadcast_to(p.reshape(x, (n, h, 1, t, d)), (n, h, count, t, d)), (n, h * count, t, d))


def _scores(queries, keys, mask, is_causal, scale):
    """Masked scores [N, H, S, T] of heads-first queries and keys, in float32 at least."""
    scores = p.mul(
        p.matmul(queries, p.transpose(keys, (0, 1, 3, 2))), scale if scale is not None else 1.0 / math.sqrt(queries.shape[3])
    )
    scores = p.cast(scores, "float32") if scores.dtype in ("float16", "bfloat16") else scores
    if mask is not None:
        if mask.dtype == "bool":
            scores = p.select(p.broadcast_to(mask, scores.shape), scores, -math.inf)
        else:
            scores = p.add(scores, p.broadcast_to(p.cast(mask, scores.dtype), scores.shape))
    if is_causal:
        s, t = scores.shape[-2:]
        visible = p.le(p.iota((s, t), 1), p.add(p.iota((s, t), 0), t - s))
        scores = p.select(p.broadcast_to(visible, scores.shape), scores, -math.inf)
    return scores


def _weights(queries, keys, mask, is_causal, scale):
    """Softmax of the scores; rows without any keys are zeros."""
    scores = _scores(queries, keys, mask, is_causal, scale)
    if not scores.shape[3]:  # no keys, no weights
        return p.cast(scores, queries.dtype)
    top = p.detach(p.reduce_max(scores, (3,)))
    e = p.exp(p.sub(scores, p.select(p.eq(top, -math.inf), 0, top)))
    total = p.reduce_sum(e, (3,))
    return p.cast(p.div(e, p.select(p.eq(total, 0), 1, total)), queries.dtype)


def _prepared(name, queries, keys, values):
    """Heads-first tensors of one dtype, with keys and values repeated to the number of query heads."""
    if any(v.ndim != 4 for v in (queries, keys, values)):
        raise ShapeError(
            message(
                f"{name}(): query is {list(queries.shape)}, key {list(keys.shape)}, value {list(values.shape)}",
                "all must be [N, length, heads, width]",
            )
        )
    heads, groups = queries.shape[2], keys.shape[2]
    if (
        groups == 0
        or heads % groups
        or values.shape[:3] != keys.shape[:3]
        or queries.shape[3] != keys.shape[3]
        or queries.shape[0] != keys.shape[0]
    ):
        raise ShapeError(
            message(
                f"{name}(): query is {list(queries.shape)}, key {list(keys.shape)}, value {list(values.shape)}",
                "batches and widths must be equal, key and value equally long, and the query's heads a multiple of the key's",
            )
        )
    queries, keys, values = promoted(queries, keys, values)
    queries, keys, values = (_heads_first(v) for v in (queries, keys, values))
    return queries, _repeated(keys, heads // groups), _repeated(values, heads // groups)


def _reference(q, k, v, mask=None, is_causal=False, scale=None):
    q, k, v = (np.swapaxes(x, 1, 2) for x in (q, k, v))
    scores = q @ np.swapaxes(k, 2, 3) / math.sqrt(q.shape[-1])
    if is_causal:
        s, t = scores.shape[-2:]
        scores = np.where(np.tril(np.ones((s, t), bool), t - s), scores, -np.inf)
    return np.swapaxes(special.softmax(scores, -1) @ v, 1, 2)


@op(
    operands=("queries", "keys", "values", "mask"),
    reference=_reference,
    samples=[
        (real(2, 3, 2, 4), real(2, 5, 2, 4), real(2, 5, 2, 4)),
        (real(1, 4, 2, 3), real(1, 4, 2, 3), real(1, 4, 2, 3), None, True),
    ],
    tests="noempty noscalar",
)
def attention(queries, keys, values, mask=None, is_causal=False, scale=None):
    """softmax(queries keys' * scale + mask) values, for queries [N, S, H, D] and keys, values [N, T, H, D]: [N, S, H, D].

    mask: added to the scores, or bool: which of them count; broadcast to [N, H, S, T]. is_causal: the last query sees all keys, each earlier one a key less.
    """
    queries, keys, values = _prepared("attention", queries, keys, values)
    weights = _weights(queries, keys, mask, is_causal, scale)
    return _heads_first(p.matmul(weights, values))


@op(operands=("queries", "keys", "mask"), samples=[(real(2, 3, 2, 4), real(2, 5, 2, 4))], tests="noempty noscalar")
def attention_weights(queries, keys, mask=None, is_causal=False, scale=None):
    """The weights [N, H, S, T] of ``attention``."""
    queries, keys, _ = _prepared("attention_weights", queries, keys, keys)
    return _weights(queries, keys, mask, is_causal, scale)


@op(operands=("weights", "values"), samples=[(real(2, 2, 3, 5), real(2, 5, 2, 4))], tests="noempty noscalar")
def attention_values(weights, values):
    """Values [N, T, H, D] averaged by weights [N, H, S, T]: [N, S, H, D]."""
    weights, values = promoted(weights, values)
    values = _repeated(_heads_first(values), weights.shape[1] // max(values.shape[2], 1))
    return _heads_first(p.matmul(weights, values))


@op(operands=("queries", "keys", "mask"), samples=[(real(2, 3, 2, 4), real(2, 5, 2, 4))], tests="noempty noscalar")
def attention_log_sums(queries, keys, mask=None, is_causal=False, scale=None):
    """The logarithm of each query's sum of exponentiated scores, [N, H, S]."""
    queries, keys, _ = _prepared("attention_log_sums", queries, keys, keys)
    scores = _scores(queries, keys, mask, is_causal, scale)
    if not scores.shape[3]:
        return p.add(p.reshape(p.reduce_sum(scores, (3,)), scores.shape[:3]), -math.inf)
    top = p.detach(p.reduce_max(scores, (3,)))
    safe = p.select(p.eq(top, -math.inf), 0, top)
    total = p.add(safe, p.log(p.reduce_sum(p.exp(p.sub(scores, safe)), (3,))))
    return p.reshape(total, total.shape[:3])


@op(operands=("rows",), tests="nograd noempty noscalar")
def row_range_mask(rows, length, is_causal):
    """Which queries (of ``length``) see each key, as a bool mask [N, H, S, T], from rows [N, H, T, 1, 2 or 4].

    rows holds for each key the rows of a band below the diagonal, [start] or [start, end), and (not causal) of one above it, [end) or [start, end),
    that do not see it. https://arxiv.org/abs/2410.01359
    """
    n, h, t, kinds = rows.shape
    shape = (n, h, length, t)
    row = p.iota(shape, 2)
    bounds = [
        p.broadcast_to(p.reshape(p.slice_(p.cast(rows, "int64"), (0, 0, 0, k), (n, h, t, 1), (1,) * 4), (n, h, 1, t)), shape)
        for k in range(kinds)
    ]
    hidden = p.ge(row, bounds[0])
    if (is_causal and kinds == 2) or kinds == 4:
        hidden = p.bitwise_and(hidden, p.lt(row, bounds[1]))
    visible = p.bitwise_not(hidden)
    if is_causal:
        return p.bitwise_and(visible, p.le(p.iota(shape, 3), p.add(row, t - length)))
    if kinds == 1:
        return visible
    above = p.lt(row, bounds[-1])
    if kinds == 4:
        above = p.bitwise_and(above, p.ge(row, bounds[2]))
    return p.bitwise_and(visible, p.bitwise_not(above))
