"""A recurrent layer over all steps in one direction, and its gradient.

Shapes: gates [T, N, G] are the inputs' share of the gates (all biases in them, but a GRU's own of its state), h and c [N, H], weight [G, H], bias [3 H] (GRU),
lengths [N]. Kinds: ``tanh`` and ``relu`` (G = H), ``lstm`` (G = 4 H: input, forget, candidate, output), ``gru`` (G = 3 H: reset, update, candidate).

``states`` [T + 1, N, H] holds the state before and after every step: h stands first, or last when the steps are taken backwards. Beyond its length an instance
keeps its state. ``cells`` are the same for c; ``activations`` [T, N, 4 H] are the gates after their functions (GRU: and the state's share of the candidate).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...base.errors import AutogradError, DTypeError, ShapeError, message
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, append, constant, gradient_of, primitive
from .linear import matmul
from .reductions import reduce_sum
from .views import broadcast_to, reshape, slice_, swap_last

GATES = {"tanh": 1, "relu": 1, "lstm": 4, "gru": 3}


def rnn(
    gates: Value, h: Value, c: Value | None, weight: Value, bias: Value | None, lengths: Value | None, kind: str, reverse: bool
) -> Any:
    """(states, ...) by the kind: states alone; (states, cells, activations) of lstm; (states, activations) of gru."""
    given = [v for v in (gates, h, c, weight, bias, lengths) if v is not None]
    return append("rnn", *given, kind=kind, reverse=reverse, has_bias=bias is not None, has_lengths=lengths is not None)


def _operands(inputs: Sequence[Any], kind: str, has_bias: bool, has_lengths: bool) -> Iterator[Any]:
    """gates, h, c, weight, bias, lengths; None for what is absent."""
    rest = iter(inputs)
    for is_there in (True, True, kind == "lstm", True, has_bias, has_lengths):
        yield next(rest) if is_there else None


def _infer_rnn(op: Op) -> list[Type]:
    kind = op.attributes["kind"]
    gates, h, c, weight, bias, lengths = _operands(op.inputs, kind, op.attributes["has_bias"], op.attributes["has_lengths"])
    if gates.dtype not in ("float32", "float64"):
        raise DTypeError(message(f"rnn(): the gates are {gates.dtype}", "recurrent layers compute in float32 or float64"))
    if gates.ndim != 3 or h.ndim != 2:
        raise ShapeError(
            message(f"rnn(): gates are {list(gates.shape)}, h is {list(h.shape)}", "they must be [T, N, G] and [N, H]")
        )
    steps, batch, _ = gates.shape
    width = h.shape[1]
    count = GATES[kind] * width
    for name, value, shape in (
        ("gates", gates, (steps, batch, count)),
        ("h", h, (batch, width)),
        ("c", c, (batch, width)),
        ("weight_hh", weight, (count, width)),
        ("bias_hh", bias, (count,)),
        ("sequence_length", lengths, (batch,)),
    ):
        if value is None:
            continue
        if value.shape != shape:
            raise ShapeError(
                message(
                    f"rnn(): {name} is {list(value.shape)}", f"it must be {list(shape)}", "check the batch's size and hidden_size"
                )
            )
        wanted = "int64" if value is lengths else gates.dtype
        if value.dtype != wanted:
            raise DTypeError(message(f"rnn(): {name} is {value.dtype}", f"it must be {wanted}"))
    states = (gates.dtype, (steps + 1, batch, width))
    activations = (gates.dtype, (steps, batch, 4 * width))
    return {"lstm": [states, states, activations], "gru": [states, activations]}.get(kind, [states])


def _logistic(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


@primitive("native", _infer_rnn, name="rnn")
def _rnn(*operands: Array, kind: str, reverse: bool, has_bias: bool, has_lengths: bool) -> Any:
    gates, h, c, weight, bias, lengths = _operands(operands, kind, has_bias, has_lengths)
    steps, batch, _ = gates.shape
    states = np.empty((steps + 1, *h.shape), h.dtype)
    cells, activations = np.empty_like(states), np.zeros((steps, batch, 4 * h.shape[1]), h.dtype)
    start = steps if reverse else 0
    states[start], cells[start] = h, 0 if c is None else c
    for t in _order(steps, reverse):
        before, after = (t + 1, t) if reverse else (t, t + 1)
        on = np.ones((batch, 1), bool) if lengths is None else (t < lengths)[:, None]
        shift = states[before] @ weight.T + (0 if bias is None else bias)
        if kind == "lstm":
            i, f, a, o = np.split(gates[t] + shift, 4, -1)
            i, f, a, o = _logistic(i), _logistic(f), np.tanh(a), _logistic(o)
            new_c = f * cells[before] + i * a
            new = o * np.tanh(new_c)
            cells[after] = np.where(on, new_c, cells[before])
            activations[t] = np.where(on, np.concatenate([i, f, a, o], -1), 0)
        elif kind == "gru":
            (x_r, x_z, x_c), (h_r, h_z, h_c) = np.split(gates[t], 3, -1), np.split(shift, 3, -1)
            r, z = _logistic(x_r + h_r), _logistic(x_z + h_z)
            a = np.tanh(x_c + r * h_c)
            new = (states[before] - a) * z + a
            activations[t] = np.where(on, np.concatenate([r, z, a, h_c], -1), 0)
        else:
            total = gates[t] + shift
            new = np.tanh(total) if kind == "tanh" else np.maximum(total, 0)
        states[after] = np.where(on, new, states[before])
    return {"lstm": (states, cells, activations), "gru": (states, activations)}.get(kind, states)


def _order(steps: int, reverse: bool) -> range:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def _backward_operands(inputs: Sequence[Any], kind: str, has_lengths: bool, has_grad_cells: bool) -> Iterator[Any]:
    """grad_states, states, weight, cells, activations, lengths, grad_cells; None for what is absent."""
    rest = iter(inputs)
    for is_there in (True, True, True, kind == "lstm", kind in ("lstm", "gru"), has_lengths, has_grad_cells):
        yield next(rest) if is_there else None


def _infer_rnn_backward(op: Op) -> list[Type]:
    kind = op.attributes["kind"]
    states, weight = op.inputs[1:3]
    steps, batch, width = states.shape
    gates = (states.dtype, (steps - 1, batch, weight.shape[0]))
    state = (states.dtype, (batch, width))
    return {"lstm": [gates, state, state], "gru": [gates, state, gates]}.get(kind, [gates, state])


@primitive("native", _infer_rnn_backward, name="rnn_backward")
def _rnn_backward(*operands: Array, kind: str, reverse: bool, has_lengths: bool, has_grad_cells: bool) -> Any:
    given = _backward_operands(operands, kind, has_lengths, has_grad_cells)
    grad_states, states, weight, cells, activations, lengths, grad_cells = given
    steps, batch, _ = states.shape
    steps -= 1
    grad_gates = np.zeros((steps, batch, weight.shape[0]), states.dtype)
    grad_shifts = np.zeros_like(grad_gates)
    last = 0 if reverse else steps
    g, g_c = grad_states[last].copy(), np.zeros_like(states[0]) if grad_cells is None else grad_cells[last].copy()
    for t in _order(steps, not reverse):
        before, after = (t + 1, t) if reverse else (t, t + 1)
        on = np.ones((batch, 1), bool) if lengths is None else (t < lengths)[:, None]
        direct, direct_c = np.where(on, 0, g), np.where(on, 0, g_c)
        if kind == "lstm":
            i, f, a, o = np.split(activations[t], 4, -1)
            squashed = np.tanh(cells[after])
            d_c = g_c + g * o * (1 - squashed * squashed)
            parts = [d_c * a * i * (1 - i), d_c * cells[before] * f * (1 - f), d_c * i * (1 - a * a), g * squashed * o * (1 - o)]
            grad_gates[t] = np.where(on, np.concatenate(parts, -1), 0)
            grad_shifts[t] = grad_gates[t]
            g_c = np.where(on, d_c * f, direct_c)
        elif kind == "gru":
            r, z, a, h_c = np.split(activations[t], 4, -1)
            d_a = g * (1 - z) * (1 - a * a)
            d_r, d_z = d_a * h_c * r * (1 - r), g * (states[before] - a) * z * (1 - z)
            grad_gates[t] = np.where(on, np.concatenate([d_r, d_z, d_a], -1), 0)
            grad_shifts[t] = np.where(on, np.concatenate([d_r, d_z, d_a * r], -1), 0)
            direct = np.where(on, g * z, g)
        else:
            slope = 1 - states[after] ** 2 if kind == "tanh" else (states[after] > 0)
            grad_gates[t] = np.where(on, g * slope, 0)
            grad_shifts[t] = grad_gates[t]
        g = grad_shifts[t] @ weight + direct + grad_states[before]
        if grad_cells is not None:
            g_c = g_c + grad_cells[before]
    return {"lstm": (grad_gates, g, g_c), "gru": (grad_gates, g, grad_shifts)}.get(kind, (grad_gates, g))


@gradient_of("rnn")
def _rnn_gradient(op: Op, grad_states: Value | None, *others: Value | None) -> Gradients:
    a = op.attributes
    kind, reverse, has_lengths = a["kind"], a["reverse"], a["has_lengths"]
    _, h, c, weight, bias, lengths = _operands(op.inputs, kind, a["has_bias"], has_lengths)
    states = op.outputs[0]
    cells = op.outputs[1] if kind == "lstm" else None
    activations = op.outputs[-1] if kind in ("lstm", "gru") else None
    grad_cells = others[0] if kind == "lstm" else None  # activations are for this rule only
    if grad_states is None and grad_cells is None:
        return (None,) * len(op.inputs)
    if grad_states is None:
        grad_states = broadcast_to(constant(0, states.dtype), states.shape)
    given = [v for v in (grad_states, states, weight, cells, activations, lengths, grad_cells) if v is not None]
    results = append(
        "rnn_backward", *given, kind=kind, reverse=reverse, has_lengths=has_lengths, has_grad_cells=grad_cells is not None
    )
    grad_gates, grad_h = results[:2]
    grad_shifts = results[2] if kind == "gru" else grad_gates
    steps, batch, count = grad_gates.shape
    width = h.shape[1]
    before = slice_(states, (1 if reverse else 0, 0, 0), (steps, batch, width), (1, 1, 1))
    flat = reshape(grad_shifts, (steps * batch, count))
    grad_weight = matmul(swap_last(flat), reshape(before, (steps * batch, width)))
    found = [grad_gates, grad_h]
    if c is not None:
        found.append(results[2])
    found.append(grad_weight)
    if bias is not None:
        found.append(reshape(reduce_sum(flat, (0,)), (count,)))
    return (*found, None) if has_lengths else tuple(found)


@gradient_of("rnn_backward")
def _rnn_backward_gradient(op: Op, *gradients: Value | None) -> Gradients:
    raise AutogradError(
        message(
            "a recurrent layer has no second derivatives",
            "its gradient is one kernel over all steps",
            "take the steps yourself: outputs, states = cell(x[:, t], states)",
        )
    )


__all__ = ["GATES", "rnn"]
