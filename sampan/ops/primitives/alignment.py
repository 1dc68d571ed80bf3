"""Losses over all alignments of a sequence with labels: connectionist temporal classification and the transducer.

Each gives the losses and their gradient in one pass of the forward-backward algorithm, in float64 logarithms.
Sources: A. Graves et al., "Connectionist temporal classification", ICML 2006; A. Graves, https://arxiv.org/abs/1211.3711;
J. Yu et al. (FastEmit), https://arxiv.org/abs/2010.11148.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import ArgumentError, IndexRangeError, message
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, append, gradient_of, primitive
from .maps import mul
from .views import broadcast_to, reshape

_NEVER = -np.inf


def _add(*terms: Array) -> Array:
    """The logarithm of the sum of exponentials; minus infinity where all terms are."""
    top = np.maximum.reduce(terms)
    safe = np.where(np.isfinite(top), top, 0.0)
    total = sum(np.exp(t - safe) for t in terms)
    with np.errstate(divide="ignore"):
        return np.where(np.isfinite(top), safe + np.log(total), top)


def _check(name: str, labels: Array, input_lengths: Array, label_lengths: Array, steps: int, classes: int) -> None:
    """Lengths and labels within their axes. Raises otherwise."""
    if (input_lengths < 0).any() or (input_lengths > steps).any():
        raise ArgumentError(message(f"{name}(): input_lengths are {input_lengths.tolist()}", f"each must be in [0, {steps}]"))
    if (label_lengths < 0).any() or (label_lengths > labels.shape[1]).any():
        raise ArgumentError(
            message(f"{name}(): label_lengths are {label_lengths.tolist()}", f"each must be in [0, {labels.shape[1]}]")
        )
    used = np.arange(labels.shape[1]) < label_lengths[:, None]
    if ((labels < 0) | (labels >= classes))[used].any():
        raise IndexRangeError(
            message(
                f"{name}(): labels hold a class outside of [0, {classes - 1}]", "the last axis of the input holds the classes"
            )
        )


def _infer_ctc(op: Op) -> list[Type]:
    x = op.inputs[0]
    return [(x.dtype, (x.shape[1],)), (x.dtype, x.shape)]


@primitive("host", _infer_ctc, name="ctc")
def _ctc(x: Array, labels: Array, input_lengths: Array, label_lengths: Array, blank: int) -> tuple[Array, Array]:
    steps, batch, classes = x.shape
    _check("ctc_loss", labels, input_lengths, label_lengths, steps, classes)
    log_p = x.astype(np.float64)
    width = 2 * labels.shape[1] + 1
    path = np.full((batch, width), blank, np.int64)
    path[:, 1::2] = np.where(np.arange(labels.shape[1]) < label_lengths[:, None], labels, blank)
    can_skip = np.zeros((batch, width), bool)
    can_skip[:, 2:] = (path[:, 2:] != blank) & (path[:, 2:] != path[:, :-2])
    last = 2 * label_lengths
    rows, places = np.arange(batch), np.arange(width)
    emitted = np.take_along_axis(log_p, np.broadcast_to(path, (steps, batch, width)), axis=2)

    alpha = np.full((steps, batch, width), _NEVER)
    beta = np.full((steps, batch, width), _NEVER)
    never = np.full((batch, 2), _NEVER)
    is_start = (places < 2) & (places <= last[:, None])
    is_end = (places == last[:, None]) | (places == last[:, None] - 1)
    skip_next = np.zeros_like(can_skip)
    skip_next[:, :-2] = can_skip[:, 2:]
    for t in range(steps):
        if t == 0:
            alpha[t] = np.where(is_start, emitted[t], _NEVER)
            continue
        one = np.concatenate([never[:, :1], alpha[t - 1][:, :-1]], 1)
        two = np.where(can_skip, np.concatenate([never, alpha[t - 1][:, :-2]], 1)[:, :width], _NEVER)
        alpha[t] = _add(alpha[t - 1], one, two) + emitted[t]
    for t in range(steps - 1, -1, -1):
        following = np.full((batch, width), _NEVER) if t == steps - 1 else beta[t + 1] + emitted[t + 1]
        one = np.concatenate([following[:, 1:], never[:, :1]], 1)
        two = np.where(skip_next, np.concatenate([following[:, 2:], never], 1)[:, :width], _NEVER)
        step = _add(following, one, two)
        beta[t] = np.where((t == input_lengths - 1)[:, None], np.where(is_end, 0.0, _NEVER), step)
        beta[t][t >= input_lengths] = _NEVER

    total = np.full(batch, _NEVER)
    has_steps = input_lengths > 0
    at = np.maximum(input_lengths - 1, 0)
    final = _add(alpha[at, rows, last], np.where(last > 0, alpha[at, rows, np.maximum(last - 1, 0)], _NEVER))
    total[has_steps] = final[has_steps]
    total[~has_steps & (label_lengths == 0)] = 0.0
    gradient = np.zeros_like(log_p)
    is_possible = np.isfinite(total)
    share = np.where(is_possible[:, None], np.exp(alpha + beta - np.where(is_possible, total, 0.0)[:, None]), 0.0)
    np.subtract.at(gradient, (np.arange(steps)[:, None, None], rows[None, :, None], path[None]), share)
    return (-total).astype(x.dtype), gradient.astype(x.dtype)


def _infer_transducer(op: Op) -> list[Type]:
    x = op.inputs[0]
    return [(x.dtype, (x.shape[0],)), (x.dtype, x.shape)]


@primitive("host", _infer_transducer, name="transducer")
def _transducer(
    x: Array, labels: Array, input_lengths: Array, label_lengths: Array, blank: int, fastemit_lambda: float
) -> tuple[Array, Array]:
    batch, steps, rows, classes = x.shape
    _check("rnnt_loss", labels, input_lengths, label_lengths, steps, classes)
    log_p = x.astype(np.float64)
    n, t_axis, u_axis = np.arange(batch)[:, None, None], np.arange(steps)[None, :, None], np.arange(rows)[None, None, :]
    inside = (t_axis < input_lengths[:, None, None]) & (u_axis <= label_lengths[:, None, None])
    padded = np.zeros((batch, rows), np.int64)
    padded[:, : rows - 1] = np.where(np.arange(rows - 1) < label_lengths[:, None], labels[:, : rows - 1], blank)
    stay = np.where(inside, log_p[..., blank], _NEVER)
    emit = np.where(inside & (u_axis < label_lengths[:, None, None]), log_p[n, t_axis, u_axis, padded[:, None, :]], _NEVER)

    alpha = np.full((batch, steps, rows), _NEVER)
    alpha[:, 0, 0] = 0.0
    beta = np.full((batch, steps, rows), _NEVER)
    is_end = (t_axis == input_lengths[:, None, None] - 1) & (u_axis == label_lengths[:, None, None])
    for diagonal in range(1, steps + rows - 1):
        t, u = _diagonal(diagonal, steps, rows)
        before = np.where(t > 0, alpha[:, t - 1, u] + stay[:, t - 1, u], _NEVER)
        left = np.where(u > 0, alpha[:, t, u - 1] + emit[:, t, u - 1], _NEVER)
        alpha[:, t, u] = _add(before, left)
    for diagonal in range(steps + rows - 2, -1, -1):
        t, u = _diagonal(diagonal, steps, rows)
        after, up = np.minimum(t + 1, steps - 1), np.minimum(u + 1, rows - 1)
        down = np.where(t + 1 < steps, beta[:, after, u] + stay[:, t, u], _NEVER)
        right = np.where(u + 1 < rows, beta[:, t, up] + emit[:, t, u], _NEVER)
        beta[:, t, u] = np.where(is_end[:, t, u], stay[:, t, u], _add(down, right))
    total = beta[:, 0, 0]
    is_possible = np.isfinite(total)
    base = alpha - np.where(is_possible, total, 0.0)[:, None, None]
    next_step = np.concatenate([beta[:, 1:], np.full((batch, 1, rows), _NEVER)], 1)
    next_label = np.concatenate([beta[:, :, 1:], np.full((batch, steps, 1), _NEVER)], 2)
    stays = np.exp(base + stay + np.where(is_end, 0.0, next_step))
    emits = np.exp(base + emit + next_label) * (1.0 + fastemit_lambda)
    gradient = np.zeros_like(log_p)
    gradient[..., blank] -= np.where(is_possible[:, None, None], stays, 0.0)
    np.subtract.at(gradient, (n, t_axis, u_axis, padded[:, None, :]), np.where(is_possible[:, None, None], emits, 0.0))
    return (-total).astype(x.dtype), gradient.astype(x.dtype)


def _diagonal(number: int, steps: int, rows: int) -> tuple[Array, Array]:
    """The places (t, u) with t + u equal to the number."""
    u = np.arange(max(0, number - steps + 1), min(rows, number + 1))
    return number - u, u


def _by_the_losses(op: Op, g: Value | None, axis: int) -> Gradients:
    """The stored gradient times the losses' own, which runs along ``axis``."""
    if g is None:
        return (None,) * len(op.inputs)
    stored = op.outputs[1]
    shape = tuple(stored.shape[k] if k == axis else 1 for k in range(stored.ndim))
    return mul(stored, broadcast_to(reshape(g, shape), stored.shape)), *(None,) * (len(op.inputs) - 1)


@gradient_of("ctc")
def _ctc_gradient(op: Op, g: Value | None, _: Value | None) -> Gradients:
    return _by_the_losses(op, g, 1)


@gradient_of("transducer")
def _transducer_gradient(op: Op, g: Value | None, _: Value | None) -> Gradients:
    return _by_the_losses(op, g, 0)


def ctc(x: Value, labels: Value, input_lengths: Value, label_lengths: Value, blank: int) -> Any:
    """(losses [N], their gradient) of log-probabilities x [T, N, C] and int64 labels [N, L]."""
    return append("ctc", x, labels, input_lengths, label_lengths, blank=blank)


def transducer(x: Value, labels: Value, input_lengths: Value, label_lengths: Value, blank: int, fastemit_lambda: float) -> Any:
    """(losses [N], their gradient) of log-probabilities x [N, T, U + 1, C] and int64 labels [N, U]."""
    return append("transducer", x, labels, input_lengths, label_lengths, blank=blank, fastemit_lambda=fastemit_lambda)


__all__ = ["ctc", "transducer"]
