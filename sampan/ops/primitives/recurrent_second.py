"""What second derivatives of recurrent layers need: the gradient of ``rnn_backward``, and its form with gradients of the activations. By NumPy: few programs ask."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import AutogradError, message
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, append, constant, gradient_of, primitive
from .recurrent import GATES, backward_operands, infer_rnn_backward, order, walk_back
from .views import broadcast_to


@primitive("host", infer_rnn_backward, name="rnn_backward_of_activations")
def _rnn_backward_of_activations(*operands: Array, kind: str, reverse: bool, **present: bool) -> Any:
    *rest, grad_activations = operands
    given: list[Any] = [*backward_operands(rest, kind, reverse, **present), grad_activations]
    return walk_back(*given, kind=kind, reverse=reverse)


def _infer_second(op: Op) -> list[Type]:
    """The gradients of rnn_backward's operands, in their order; lengths have none."""
    a = op.attributes
    inputs = op.inputs[: len(op.inputs) - _result_count(a)]
    names = ("kind", "reverse", "has_projection", "has_lengths", "has_grad_cells")
    lengths = list(backward_operands(inputs, **{n: a[n] for n in names}))[6]
    return [(v.dtype, v.shape) for v in inputs if v is not lengths]


def _result_count(attributes: Any) -> int:
    return 2 + (attributes["kind"] in ("lstm", "gru")) + attributes["has_projection"]


@primitive("host", _infer_second, name="rnn_second")
def _rnn_second(*operands: Array, kind: str, reverse: bool, has_projection: bool, has_lengths: bool, has_grad_cells: bool) -> Any:
    count = 2 + (kind in ("lstm", "gru")) + has_projection
    inputs, given = operands[:-count], list(operands[-count:])
    operand = list(backward_operands(inputs, kind, reverse, has_projection, has_lengths, has_grad_cells))
    grad_states, states, weight, cells, activations, projection, lengths, grad_cells = operand
    found = _Second(kind, grad_states, states, weight, cells, activations, projection)
    found.walk(reverse, lengths, grad_cells, given)
    results = (
        found.grad_states,
        found.states,
        found.weight,
        found.cells,
        found.activations,
        found.projection,
        None,
        found.grad_cells if has_grad_cells else None,
    )
    return tuple(r for r, v in zip(results, operand, strict=True) if v is not None and r is not None)


class _Second:
    """The gradients of what ``walk_back`` takes, by those of what it gives: its steps in the opposite order, each by the chain rule."""

    def __init__(
        self, kind: str, grad_states: Array, states: Array, weight: Array, cells: Any, activations: Any, projection: Any
    ) -> None:
        self.kind = kind
        self.of = {"states": states, "weight": weight, "cells": cells, "activations": activations, "projection": projection}
        width = weight.shape[0] // GATES[kind]
        self.shape_c = (states.shape[1], width)
        self.incoming = grad_states
        self.grad_states, self.states, self.weight = (np.zeros_like(v) for v in (grad_states, states, weight))
        self.cells, self.activations, self.projection = (
            None if v is None else np.zeros_like(v) for v in (cells, activations, projection)
        )
        self.grad_cells = np.zeros((len(states), *self.shape_c), states.dtype)

    def walk(self, reverse: bool, lengths: Any, grad_cells: Any, given: list[Array]) -> None:
        """Fill the gradients. ``given``: the gradients of grad_gates, grad_h, then of grad_c or grad_shifts, then of grad_steps."""
        steps = len(self.incoming) - 1
        last = 0 if reverse else steps
        of = self.of
        carried: list[tuple[Array, Array]] = []
        walk_back(
            self.incoming, of["states"], of["weight"], of["cells"], of["activations"], of["projection"], lengths, grad_cells,
            kind=self.kind, reverse=reverse, trail=carried,
        )  # fmt: skip
        u_gates, h_bar = given[0], given[1].copy()
        u_shifts = given[2] if self.kind == "gru" else np.zeros_like(u_gates)
        u_steps = given[-1] if self.of["projection"] is not None else None
        c_bar = given[2].copy() if self.kind == "lstm" else np.zeros(self.shape_c, h_bar.dtype)
        for t in order(steps, reverse):
            before, after = (t + 1, t) if reverse else (t, t + 1)
            on = np.ones((len(h_bar), 1), bool) if lengths is None else (t < lengths)[:, None]
            g, g_c = carried.pop()
            self.grad_states[before] += h_bar
            self.grad_cells[before] += c_bar
            u = u_gates[t] if self.kind != "gru" else u_shifts[t]
            shift_bar = np.where(on, u + h_bar @ self.of["weight"].T, 0)
            step = {"lstm": self._lstm, "gru": self._gru}.get(self.kind, self._plain)
            h_bar, c_bar = step(t, before, after, on, g, g_c, np.where(on, u_gates[t], 0), shift_bar, h_bar, c_bar)
            if u_steps is not None:
                h_bar = h_bar + np.where(on, u_steps[t], 0)
        self.grad_states[last] += h_bar
        self.grad_cells[last] += c_bar

    def _lstm(
        self, t: int, before: int, after: int, on: Array, g: Array, g_c: Array, _: Array, bar: Array, h_bar: Array, c_bar: Array
    ) -> Any:
        of = self.of
        i, f, a, o = np.split(of["activations"][t], 4, -1)
        squashed, cell = np.tanh(of["cells"][after]), of["cells"][before]
        slope = 1 - squashed * squashed
        projected = g if of["projection"] is None else g @ of["projection"].T
        d_c = g_c + projected * o * slope
        parts = [d_c * a * i * (1 - i), d_c * cell * f * (1 - f), d_c * i * (1 - a * a), projected * squashed * o * (1 - o)]
        self.weight += np.where(on, np.concatenate(parts, -1), 0).T @ h_bar
        b_i, b_f, b_a, b_o = np.split(bar, 4, -1)
        next_c = np.where(on, c_bar, 0)
        d_bar = next_c * f + b_i * a * i * (1 - i) + b_f * cell * f * (1 - f) + b_a * i * (1 - a * a)
        i_bar = b_i * d_c * a * (1 - 2 * i) + b_a * d_c * (1 - a * a)
        a_bar = b_i * d_c * i * (1 - i) - 2 * b_a * d_c * i * a
        f_bar = next_c * d_c + b_f * d_c * cell * (1 - 2 * f)
        self.cells[before] += b_f * d_c * f * (1 - f)
        g_bar = b_o * squashed * o * (1 - o) + d_bar * o * slope
        o_bar = b_o * projected * squashed * (1 - 2 * o) + d_bar * projected * slope
        s_bar = b_o * projected * o * (1 - o) - 2 * d_bar * projected * o * squashed
        self.cells[after] += s_bar * slope
        self.activations[t] += np.concatenate([i_bar, f_bar, a_bar, o_bar], -1)
        if of["projection"] is not None:
            self.projection += g_bar.T @ g
            g_bar = g_bar @ of["projection"]
        return g_bar + np.where(on, 0, h_bar), d_bar + np.where(on, 0, c_bar)

    def _gru(
        self,
        t: int,
        before: int,
        after: int,
        on: Array,
        g: Array,
        g_c: Array,
        direct: Array,
        bar: Array,
        h_bar: Array,
        c_bar: Array,
    ) -> Any:
        r, z, a, h_c = np.split(self.of["activations"][t], 4, -1)
        state = self.of["states"][before]
        d_a = g * (1 - z) * (1 - a * a)
        parts = [d_a * h_c * r * (1 - r), g * (state - a) * z * (1 - z), d_a * r]
        self.weight += np.where(on, np.concatenate(parts, -1), 0).T @ h_bar
        (p_r, p_z, p_a), (q_r, q_z, q_a) = np.split(direct, 3, -1), np.split(bar, 3, -1)
        b_r, b_z = p_r + q_r, p_z + q_z
        b_a = p_a + q_a * r + b_r * h_c * r * (1 - r)
        taken = np.where(on, h_bar, 0)
        r_bar = q_a * d_a + b_r * d_a * h_c * (1 - 2 * r)
        z_bar = taken * g + b_z * g * (state - a) * (1 - 2 * z) - b_a * g * (1 - a * a)
        a_bar = -b_z * g * z * (1 - z) - 2 * b_a * g * (1 - z) * a
        self.states[before] += b_z * g * z * (1 - z)
        self.activations[t] += np.concatenate([r_bar, z_bar, a_bar, b_r * d_a * r * (1 - r)], -1)
        g_bar = taken * z + b_z * (state - a) * z * (1 - z) + b_a * (1 - z) * (1 - a * a)
        return g_bar + np.where(on, 0, h_bar), c_bar

    def _plain(
        self, t: int, before: int, after: int, on: Array, g: Array, g_c: Array, _: Array, bar: Array, h_bar: Array, c_bar: Array
    ) -> Any:
        y = self.of["states"][after]
        slope = 1 - y * y if self.kind == "tanh" else (y > 0).astype(y.dtype)
        self.weight += np.where(on, g * slope, 0).T @ h_bar
        if self.kind == "tanh":
            self.states[after] -= 2 * bar * g * y
        return bar * slope + np.where(on, 0, h_bar), c_bar


@gradient_of("rnn_backward")
def _rnn_backward_gradient(op: Op, *gradients: Value | None) -> Gradients:
    given = [broadcast_to(constant(0, v.dtype), v.shape) if g is None else g for g, v in zip(gradients, op.outputs, strict=True)]
    results = append("rnn_second", *op.inputs, *given, **op.attributes)
    found: list[Any] = list(results) if isinstance(results, (list, tuple)) else [results]
    if op.attributes["has_lengths"]:
        found.insert(len(op.inputs) - 1 - op.attributes["has_grad_cells"], None)
    return tuple(found)


def _third(op: Op, *gradients: Value | None) -> Gradients:
    raise AutogradError(
        message(
            "a recurrent layer has no third derivatives",
            "its second ones are one function over all steps",
            "take the steps yourself: outputs, states = cell(x[:, t], states)",
        )
    )


gradient_of("rnn_second")(_third)
gradient_of("rnn_backward_of_activations")(_third)
