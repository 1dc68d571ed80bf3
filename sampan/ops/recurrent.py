"""Recurrent layers over whole sequences; one step of their cells, and the input's share of the gates for all steps at once.

A mask [N, 1] of a step says which instances the step is part of; the others keep their state.
"""

from __future__ import annotations

import numpy as np

from ..base.errors import ShapeError, message
from . import primitives as p
from .arguments import promoted
from .define import op
from .samples import indices, real


def _logistic(x):
    return 1 / (1 + np.exp(-x))


def _product(x, weight):
    """x [..., I] by the transpose of weight [O, I]."""
    x, weight = promoted(x, weight)
    if weight.ndim != 2 or x.ndim < 1 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            message(
                f"the input is {list(x.shape)} and its weight {list(weight.shape)}",
                f"the last axis of the input must be {weight.shape[-1]}",
                "check input_size and hidden_size",
            )
        )
    rows = 1
    for n in x.shape[:-1]:
        rows *= n
    y = p.matmul(p.reshape(x, (rows, x.shape[-1])), p.transpose(weight, (1, 0)))
    return p.reshape(y, (*x.shape[:-1], weight.shape[0]))


def _shifted(y, bias):
    return y if bias is None else p.add(y, p.cast(bias, y.dtype))


def _part(gates, k, count):
    """The k-th of ``count`` equal parts of the last axis."""
    width = gates.shape[-1] // count
    return p.slice_(gates, (0, k * width), (gates.shape[0], width), (1, 1))


def _kept(new, old, mask):
    return new if mask is None else p.select(p.broadcast_to(p.ne(mask, 0), new.shape), new, p.cast(old, new.dtype))


@op(
    title="recurrent cell",
    operands=("x", "weight", "bias"),
    reference=lambda x, w, b=0: x @ w.T + b,
    samples=[(real(3, 2, 4), real(5, 4), real(5)), (real(3, 4), real(2, 4))],
    tests="noempty noscalar",
)
def gate_inputs(x, weight, bias=None):
    """x [..., I] by the transpose of weight [gates, I], plus bias."""
    return _shifted(_product(x, weight), bias)


@op(
    title="recurrent cell",
    operands=("gates", "h", "weight", "bias", "mask"),
    reference=lambda g, h, w, b: np.tanh(g + h @ w.T + b),
    samples=[(real(2, 3), real(2, 3), real(3, 3), real(3))],
    tests="noempty noscalar",
)
def simple_rnn_step(gates, h, weight, bias=None, mask=None, activation="tanh"):
    """The next state activation(gates + h W' + bias)."""
    total = p.add(gates, _shifted(_product(h, weight), bias))
    return _kept(p.tanh(total) if activation == "tanh" else p.maximum(total, 0), h, mask)


def _lstm_reference(g, h, c, w, b):
    i, f, a, o = np.split(g + h @ w.T + b, 4, -1)
    c = _logistic(f) * c + _logistic(i) * np.tanh(a)
    return _logistic(o) * np.tanh(c), c


@op(
    title="recurrent cell",
    operands=("gates", "h", "c", "weight", "bias", "projection", "mask"),
    reference=_lstm_reference,
    samples=[(real(2, 12), real(2, 3), real(2, 3), real(12, 3), real(12))],
    tests="noempty noscalar",
)
def lstm_step(gates, h, c, weight, bias=None, projection=None, mask=None):
    """The next (h, c) of a long short-term memory, its gates in the order input, forget, candidate, output. S. Hochreiter, J. Schmidhuber, 1997.

    projection [hidden, projected]: h is multiplied by it. https://arxiv.org/abs/1402.1128
    """
    total = p.add(gates, _shifted(_product(h, weight), bias))
    i, f, a, o = (_part(total, k, 4) for k in range(4))
    new_c = p.add(p.mul(p.sigmoid(f), p.cast(c, total.dtype)), p.mul(p.sigmoid(i), p.tanh(a)))
    new_h = p.mul(p.sigmoid(o), p.tanh(new_c))
    if projection is not None:
        new_h = p.matmul(new_h, p.cast(projection, new_h.dtype))
    return _kept(new_h, h, mask), _kept(new_c, c, mask)


def _gru_reference(g, h, w, b):
    x_r, x_z, x_c = np.split(g, 3, -1)
    h_r, h_z, h_c = np.split(h @ w.T + b, 3, -1)
    r, z = _logistic(x_r + h_r), _logistic(x_z + h_z)
    c = np.tanh(x_c + r * h_c)
    return (h - c) * z + c


@op(
    title="recurrent cell",
    operands=("gates", "h", "weight", "bias", "mask"),
    reference=_gru_reference,
    samples=[(real(2, 9), real(2, 3), real(9, 3), real(9))],
    tests="noempty noscalar",
)
def gru_step(gates, h, weight, bias=None, mask=None):
    """The next state of a gated recurrent unit, its gates in the order reset, update, candidate. https://arxiv.org/abs/1406.1078"""
    hidden = _shifted(_product(h, weight), bias)
    reset = p.sigmoid(p.add(_part(gates, 0, 3), _part(hidden, 0, 3)))
    update = p.sigmoid(p.add(_part(gates, 1, 3), _part(hidden, 1, 3)))
    candidate = p.tanh(p.add(_part(gates, 2, 3), p.mul(reset, _part(hidden, 2, 3))))
    old = p.cast(h, candidate.dtype)
    return _kept(p.add(p.mul(p.sub(old, candidate), update), candidate), h, mask)


def _layer_reference(x, h, c, w_ih, w_hh, b_ih=None, b_hh=None, w_ho=None, lengths=None, kind="tanh", reverse=False):
    steps = len(x)
    b_ih, b_hh = (0 if b is None else b for b in (b_ih, b_hh))
    states, cells = (np.zeros((steps + 1, *(h if v is None else v).shape)) for v in (h, c))
    at = steps if reverse else 0
    states[at], cells[at] = h, 0 if c is None else c
    for t in range(steps - 1, -1, -1) if reverse else range(steps):
        after, before = (t, t + 1) if reverse else (t + 1, t)
        h, c = states[before], cells[before]
        g = x[t] @ w_ih.T + b_ih
        if kind == "lstm":
            new, new_c = _lstm_reference(g, h, c, w_hh, b_hh)
            new = new if w_ho is None else new @ w_ho
        elif kind == "gru":
            new, new_c = _gru_reference(g, h, w_hh, b_hh), c
        else:
            total = g + h @ w_hh.T + b_hh
            new, new_c = np.tanh(total) if kind == "tanh" else np.maximum(total, 0), c
        is_on = True if lengths is None else (t < lengths)[:, None]
        states[after], cells[after] = np.where(is_on, new, h), np.where(is_on, new_c, c)
    return (states, cells) if kind == "lstm" else states


@op(
    operands=("x", "h", "c", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_ho", "lengths"),
    title="recurrent layer",
    reference=_layer_reference,
    samples=[
        (real(3, 2, 4), real(2, 3), None, real(3, 4), real(3, 3), real(3), real(3)),
        (
            real(3, 2, 4),
            real(2, 3),
            None,
            real(3, 4),
            real(3, 3),
            None,
            None,
            None,
            indices(2, 3),
            {"kind": "relu", "reverse": True},
        ),
        (real(3, 2, 4), real(2, 3), real(2, 3), real(12, 4), real(12, 3), real(12), real(12), {"kind": "lstm"}),
        (
            *(real(4, 3, 2), real(3, 2), real(3, 2), real(8, 2), real(8, 2), real(8), None, None, indices(4, 1, 0)),
            {"kind": "lstm", "reverse": True},
        ),
        (real(3, 2, 4), real(2, 2), real(2, 3), real(12, 4), real(12, 2), real(12), real(12), real(3, 2), {"kind": "lstm"}),
        (
            *(real(4, 3, 2), real(3, 1), real(3, 2), real(8, 2), real(8, 1), real(8), None, real(2, 1), indices(4, 1, 0)),
            {"kind": "lstm", "reverse": True},
        ),
        (real(3, 2, 4), real(2, 3), None, real(9, 4), real(9, 3), real(9), real(9), {"kind": "gru", "reverse": True}),
        (real(4, 3, 2), real(3, 2), None, real(6, 2), real(6, 2), None, None, None, indices(4, 1, 0), {"kind": "gru"}),
    ],
    tests="noempty noscalar",
    tolerance=4,
)
def recurrent_layer(
    x, h, c, weight_ih, weight_hh, bias_ih=None, bias_hh=None, weight_ho=None, lengths=None, kind="tanh", reverse=False
):
    """The states [T + 1, N, H] of a recurrent layer over x [T, N, I] before and after every step, first h; with ``reverse`` the steps go backwards, and h stands
    last. For kind ``lstm`` also those of c. Beyond its length an instance keeps its state.

    kind: ``tanh`` or ``relu``: h' = kind(W_ih x + W_hh h + biases); ``lstm`` and ``gru`` as in their steps. weight_ho [H, P]: of ``lstm``, every new h is
    multiplied by it, and the states have P columns. 16-bit types are computed in float32.
    """
    x, h, weight_ih, weight_hh = promoted(x, h, weight_ih, weight_hh)
    dtype = x.dtype
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype

    def cast(value):
        return None if value is None else p.cast(value, wide)

    bias_ih, bias_hh = cast(bias_ih), cast(bias_hh)
    apart = bias_hh if kind == "gru" else None  # inside of the reset gate's product
    if apart is None and bias_hh is not None:
        bias_ih = bias_hh if bias_ih is None else p.add(bias_ih, bias_hh)
    gates = _shifted(_product(cast(x), cast(weight_ih)), bias_ih)
    lengths = None if lengths is None else p.cast(lengths, "int64")
    cell = cast(c) if kind == "lstm" else None
    results = p.rnn(gates, cast(h), cell, cast(weight_hh), apart, cast(weight_ho), lengths, kind, reverse)
    if kind == "lstm":
        return p.cast(results[0], dtype), p.cast(results[1], dtype)
    return p.cast(results[0] if kind == "gru" else results, dtype)


@op(
    operands=("x", "lengths"),
    reference=lambda x, n: x * (np.arange(len(x))[:, None] < n).reshape(len(x), -1, *(1 for _ in x.shape[2:])),
    samples=[(real(4, 3, 2), indices(4, 0, 2)), (real(3, 2), indices(3, 1, dtype="int32"))],
    tests="noempty noscalar",
)
def steps_within(x, lengths):
    """x [T, N, ...] with zeros at each instance's steps beyond its length."""
    if x.ndim < 2 or lengths.shape != x.shape[1:2]:
        raise ShapeError(
            message(f"steps_within(): x is {list(x.shape)} and lengths {list(lengths.shape)}", "they must be [T, N, ...] and [N]")
        )
    limit = p.reshape(p.cast(lengths, "int64"), (1, x.shape[1], *(1 for _ in x.shape[2:])))
    return p.select(p.lt(p.iota(x.shape, 0), p.broadcast_to(limit, x.shape)), x, 0)
