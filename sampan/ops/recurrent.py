"""One step of recurrent cells, and the input's share of their gates for all steps at once.

A mask [N, 1] of a step says which instances the step is part of; the others keep their state.
"""

from __future__ import annotations

import numpy as np

from ..base.errors import ShapeError, message
from . import primitives as p
from .arguments import promoted
from .define import op
from .samples import real


def _logistic(x):
    return 1 / (1 + np.exp(-x))


def _product(x, weight):
    """x [..., I] by the transpose of weight [O, I]."""
    x, weight = promoted(x, weight)
    if weight.ndim != 2 or x.ndim < 1 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            message(
                f"recurrent cell: the input is {list(x.shape)} and its weight {list(weight.shape)}",
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
    operands=("x", "weight", "bias"),
    reference=lambda x, w, b=0: x @ w.T + b,
    samples=[(real(3, 2, 4), real(5, 4), real(5)), (real(3, 4), real(2, 4))],
    tests="noempty noscalar",
)
def gate_inputs(x, weight, bias=None):
    """x [..., I] by the transpose of weight [gates, I], plus bias."""
    return _shifted(_product(x, weight), bias)


@op(
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
