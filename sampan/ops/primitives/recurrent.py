"""A recurrent layer over all steps in one direction, and its gradient.

Shapes: gates [T, N, G] are the inputs' share of the gates (all biases in them, but a GRU's own of its state), h and c [N, H], weight [G, H], bias [3 H] (GRU),
lengths [N]. Kinds: ``tanh`` and ``relu`` (G = H), ``lstm`` (G = 4 H: input, forget, candidate, output), ``gru`` (G = 3 H: reset, update, candidate).

``states`` [T + 1, N, H] holds the state before and after every step: h stands first, or last when the steps are taken backwards. Beyond its length an instance
keeps its state. ``cells`` are the same for c; ``activations`` [T, N, 4 H] are the gates after their functions (GRU: and the state's share of the candidate).

With a projection [H, P] (LSTM), the state is projected after every step: h, ``states`` and the weight's last axis have the width P.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...base.errors import DTypeError, ShapeError, message
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, append, constant, gradient_of, primitive
from .linear import matmul
from .maps import mul, tanh
from .reductions import reduce_sum
from .views import broadcast_to, reshape, slice_, swap_last

GATES = {"tanh": 1, "relu": 1, "lstm": 4, "gru": 3}


def rnn(
    gates: Value,
    h: Value,
    c: Value | None,
    weight: Value,
    bias: Value | None,
    projection: Value | None,
    lengths: Value | None,
    kind: str,
    reverse: bool,
) -> Any:
    """(states, ...) by the kind: states alone; (states, cells, activations) of lstm; (states, activations) of gru."""
    given = [v for v in (gates, h, c, weight, bias, projection, lengths) if v is not None]
    present = {"has_bias": bias is not None, "has_projection": projection is not None, "has_lengths": lengths is not None}
    return append("rnn", *given, kind=kind, reverse=reverse, **present)


def _operands(
    inputs: Sequence[Any], kind: str, reverse: bool, has_bias: bool, has_projection: bool, has_lengths: bool
) -> Iterator[Any]:
    """gates, h, c, weight, bias, projection, lengths; None for what is absent. Called with the attributes of the Op."""
    rest = iter(inputs)
    for is_there in (True, True, kind == "lstm", True, has_bias, has_projection, has_lengths):
        yield next(rest) if is_there else None


def _infer_rnn(op: Op) -> list[Type]:
    kind = op.attributes["kind"]
    gates, h, c, weight, bias, projection, lengths = _operands(op.inputs, **op.attributes)
    if gates.dtype not in ("float32", "float64"):
        raise DTypeError(message(f"rnn(): the gates are {gates.dtype}", "recurrent layers compute in float32 or float64"))
    if gates.ndim != 3 or h.ndim != 2:
        raise ShapeError(
            message(f"rnn(): gates are {list(gates.shape)}, h is {list(h.shape)}", "they must be [T, N, G] and [N, H]")
        )
    steps, batch, _ = gates.shape
    state_width = h.shape[1]
    width = state_width if projection is None else c.shape[-1]
    count = GATES[kind] * width
    for name, value, shape in (
        ("gates", gates, (steps, batch, count)),
        ("h", h, (batch, state_width)),
        ("c", c, (batch, width)),
        ("weight_hh", weight, (count, state_width)),
        ("bias_hh", bias, (count,)),
        ("weight_ho", projection, (width, state_width)),
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
    states, cells = ((gates.dtype, (steps + 1, batch, n)) for n in (state_width, width))
    activations = (gates.dtype, (steps, batch, 4 * width))
    return {"lstm": [states, cells, activations], "gru": [states, activations]}.get(kind, [states])


def logistic(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


@primitive("native", _infer_rnn, name="rnn")
def _rnn(*operands: Array, kind: str, reverse: bool, **present: bool) -> Any:
    gates, h, c, weight, bias, projection, lengths = _operands(operands, kind, reverse, **present)
    steps, batch, _ = gates.shape
    width = gates.shape[2] // GATES[kind]
    states, cells = (np.empty((steps + 1, batch, n), h.dtype) for n in (h.shape[1], width))
    activations = np.zeros((steps, batch, 4 * width), h.dtype)
    start = steps if reverse else 0
    states[start], cells[start] = h, 0 if c is None else c
    for t in order(steps, reverse):
        before, after = (t + 1, t) if reverse else (t, t + 1)
        on = np.ones((batch, 1), bool) if lengths is None else (t < lengths)[:, None]
        shift = states[before] @ weight.T + (0 if bias is None else bias)
        if kind == "lstm":
            i, f, a, o = np.split(gates[t] + shift, 4, -1)
            i, f, a, o = logistic(i), logistic(f), np.tanh(a), logistic(o)
            new_c = f * cells[before] + i * a
            new = o * np.tanh(new_c)
            new = new if projection is None else new @ projection
            cells[after] = np.where(on, new_c, cells[before])
            activations[t] = np.where(on, np.concatenate([i, f, a, o], -1), 0)
        elif kind == "gru":
            (x_r, x_z, x_c), (h_r, h_z, h_c) = np.split(gates[t], 3, -1), np.split(shift, 3, -1)
            r, z = logistic(x_r + h_r), logistic(x_z + h_z)
            a = np.tanh(x_c + r * h_c)
            new = (states[before] - a) * z + a
            activations[t] = np.where(on, np.concatenate([r, z, a, h_c], -1), 0)
        else:
            total = gates[t] + shift
            new = np.tanh(total) if kind == "tanh" else np.maximum(total, 0)
        states[after] = np.where(on, new, states[before])
    return {"lstm": (states, cells, activations), "gru": (states, activations)}.get(kind, states)


def order(steps: int, reverse: bool) -> range:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def backward_operands(
    inputs: Sequence[Any], kind: str, reverse: bool, has_projection: bool, has_lengths: bool, has_grad_cells: bool
) -> Iterator[Any]:
    """grad_states, states, weight, cells, activations, projection, lengths, grad_cells; None for what is absent."""
    rest = iter(inputs)
    present = (True, True, True, kind == "lstm", kind in ("lstm", "gru"), has_projection, has_lengths, has_grad_cells)
    for is_there in present:
        yield next(rest) if is_there else None


def infer_rnn_backward(op: Op) -> list[Type]:
    """grad_gates, grad_h, then by the kind grad_c or grad_shifts, then grad_steps of a projected state."""
    kind = op.attributes["kind"]
    states, weight = op.inputs[1:3]
    steps, batch, width = states.shape
    gates = (states.dtype, (steps - 1, batch, weight.shape[0]))
    found = [gates, (states.dtype, (batch, width))]
    if kind == "lstm":
        found.append((states.dtype, (batch, weight.shape[0] // 4)))
    if kind == "gru":
        found.append(gates)
    if op.attributes["has_projection"]:
        found.append((states.dtype, (steps - 1, batch, width)))
    return found


@primitive("native", infer_rnn_backward, name="rnn_backward")
def _rnn_backward(*operands: Array, kind: str, reverse: bool, **present: bool) -> Any:
    return walk_back(*backward_operands(operands, kind, reverse, **present), kind=kind, reverse=reverse)


def walk_back(
    grad_states: Array,
    states: Array,
    weight: Array,
    cells: Any,
    activations: Any,
    projection: Any,
    lengths: Any,
    grad_cells: Any,
    grad_activations: Any = None,
    *,
    kind: str,
    reverse: bool,
    trail: list[tuple[Array, Array]] | None = None,
) -> Any:
    """rnn_backward on arrays; with gradients that come to the activations too. trail: takes the gradients of state and cell that reach each step."""
    steps, batch, _ = states.shape
    steps -= 1
    width = weight.shape[0] // GATES[kind]
    grad_gates = np.zeros((steps, batch, weight.shape[0]), states.dtype)
    grad_shifts, grad_steps = np.zeros_like(grad_gates), np.zeros_like(states[1:])
    last = 0 if reverse else steps
    g = grad_states[last].copy()
    g_c = np.zeros((batch, width), states.dtype) if grad_cells is None else grad_cells[last].copy()
    for t in order(steps, not reverse):
        before, after = (t + 1, t) if reverse else (t, t + 1)
        on = np.ones((batch, 1), bool) if lengths is None else (t < lengths)[:, None]
        direct, direct_c = np.where(on, 0, g), np.where(on, 0, g_c)
        if trail is not None:
            trail.append((g, g_c))
        extra = [0.0] * 4 if grad_activations is None else np.split(grad_activations[t], 4, -1)
        if kind == "lstm":
            grad_steps[t] = np.where(on, g, 0)
            g = g if projection is None else g @ projection.T
            i, f, a, o = np.split(activations[t], 4, -1)
            squashed = np.tanh(cells[after])
            d_c = g_c + g * o * (1 - squashed * squashed)
            d_i, d_f, d_a, d_o = (
                d + e for d, e in zip((d_c * a, d_c * cells[before], d_c * i, g * squashed), extra, strict=True)
            )
            parts = [d_i * i * (1 - i), d_f * f * (1 - f), d_a * (1 - a * a), d_o * o * (1 - o)]
            grad_gates[t] = np.where(on, np.concatenate(parts, -1), 0)
            grad_shifts[t] = grad_gates[t]
            g_c = np.where(on, d_c * f, direct_c)
        elif kind == "gru":
            r, z, a, h_c = np.split(activations[t], 4, -1)
            d_a = (g * (1 - z) + extra[2]) * (1 - a * a)
            d_r, d_z = (d_a * h_c + extra[0]) * r * (1 - r), (g * (states[before] - a) + extra[1]) * z * (1 - z)
            grad_gates[t] = np.where(on, np.concatenate([d_r, d_z, d_a], -1), 0)
            grad_shifts[t] = np.where(on, np.concatenate([d_r, d_z, d_a * r + extra[3]], -1), 0)
            direct = np.where(on, g * z, g)
        else:
            slope = 1 - states[after] ** 2 if kind == "tanh" else (states[after] > 0)
            grad_gates[t] = np.where(on, g * slope, 0)
            grad_shifts[t] = grad_gates[t]
        g = grad_shifts[t] @ weight + direct + grad_states[before]
        if grad_cells is not None:
            g_c = g_c + grad_cells[before]
    found = {"lstm": (grad_gates, g, g_c), "gru": (grad_gates, g, grad_shifts)}.get(kind, (grad_gates, g))
    return found if projection is None else (*found, grad_steps)


@gradient_of("rnn")
def _rnn_gradient(op: Op, grad_states: Value | None, *others: Value | None) -> Gradients:
    a = op.attributes
    kind, reverse = a["kind"], a["reverse"]
    _, h, c, weight, bias, projection, lengths = _operands(op.inputs, **a)
    states = op.outputs[0]
    cells = op.outputs[1] if kind == "lstm" else None
    activations = op.outputs[-1] if kind in ("lstm", "gru") else None
    grad_cells = others[0] if kind == "lstm" else None
    grad_activations = others[-1] if others else None  # of second derivatives: nobody sees the activations
    if grad_states is None and grad_cells is None and grad_activations is None:
        return (None,) * len(op.inputs)
    if grad_states is None:
        grad_states = broadcast_to(constant(0, states.dtype), states.shape)
    operands = (grad_states, states, weight, cells, activations, projection, lengths, grad_cells, grad_activations)
    present = {
        "has_projection": projection is not None,
        "has_lengths": lengths is not None,
        "has_grad_cells": grad_cells is not None,
    }
    name = "rnn_backward" if grad_activations is None else "rnn_backward_of_activations"
    results = append(name, *(v for v in operands if v is not None), kind=kind, reverse=reverse, **present)
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
    if projection is not None:
        found.append(_projection_gradient(cells, activations, results[-1], reverse))
    return (*found, None) if lengths is not None else tuple(found)


def _projection_gradient(cells: Any, activations: Any, grad_steps: Any, reverse: bool) -> Value:
    steps, (batch, width) = cells.shape[0] - 1, cells.shape[1:]
    after = slice_(cells, (0 if reverse else 1, 0, 0), (steps, batch, width), (1, 1, 1))
    out_gate = slice_(activations, (0, 0, 3 * width), (steps, batch, width), (1, 1, 1))  # 0 beyond an instance's length
    hidden = reshape(mul(out_gate, tanh(after)), (steps * batch, width))
    return matmul(swap_last(hidden), reshape(grad_steps, (steps * batch, grad_steps.shape[2])))


__all__ = ["GATES", "rnn"]
