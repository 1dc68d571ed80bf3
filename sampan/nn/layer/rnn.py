"""Recurrent networks over whole sequences."""

from __future__ import annotations

from typing import Any, Literal

from ...base.errors import ShapeError, message
from ...base.kinds import Count, Probability, Size
from ...tensor import OPS, Tensor
from .. import functional as F
from .cells import GRUCell, LSTMCell, RNNCellBase, SimpleRNNCell, _Cell, map_states
from .container import LayerList
from .layers import Layer


def _masks(sequence_length: Tensor | None, steps: int, dtype: str) -> list[Tensor] | None:
    """For each step a mask [N, 1] of the instances that are as long."""
    if sequence_length is None:
        return None
    mask = OPS["transpose"](F.sequence_mask(sequence_length, steps, dtype), [1, 0])
    return list(OPS["unbind"](OPS["unsqueeze"](mask, -1), 0))


def _blended(new: Tensor, old: Tensor, mask: Tensor) -> Tensor:
    """new where the mask [N, 1] is 1, else old."""
    share = OPS["reshape"](mask, [-1, *(1 for _ in new.shape[1:])])
    return OPS["where"](OPS["cast"](share, "bool"), new, old)


def _run(
    cell: Layer,
    inputs: Any,
    states: Any,
    sequence_length: Tensor | None,
    time_major: bool,
    is_reverse: bool,
    kwargs: dict[str, Any],
) -> tuple[Any, Any]:
    """(outputs, final states) of the cell over all steps, backwards when ``is_reverse``. Outputs after an instance's end are zeros."""
    first = inputs
    while isinstance(first, (list, tuple)):
        first = first[0]
    if len(first.shape) < 2:
        raise ShapeError(
            message(
                f"RNN: inputs have shape {list(first.shape)}", "they must be [N, T, ...], or [T, N, ...] with time_major=True"
            )
        )
    if states is None:
        states = cell.get_initial_states(first, batch_dim_idx=1 if time_major else 0)
    is_built_in = isinstance(cell, _Cell) and not kwargs and type(cell).forward is _Cell.forward
    if is_built_in and cell.layer_kind:
        return _run_layer(cell, inputs, states, sequence_length, time_major, is_reverse)
    steps = first.shape[0 if time_major else 1]
    masks = _masks(sequence_length, steps, first.dtype.name)
    order = range(steps - 1, -1, -1) if is_reverse else range(steps)
    sequence = map_states(lambda x: _by_time(x, time_major), inputs)
    pieces = (
        OPS["unbind"](cell.gate_inputs(sequence), 0) if is_built_in else map_states(lambda x: list(OPS["unbind"](x, 0)), sequence)
    )
    outputs: list[Any] = [None] * steps
    for t in order:
        mask = masks[t] if masks is not None else None
        if is_built_in:
            out, states = cell.step(pieces[t], states, mask)
        else:
            out, new = cell(_at(pieces, inputs, t), states, **kwargs)
            states = new if mask is None else map_states(lambda a, b, m=mask: _blended(a, b, m), new, states)
        outputs[t] = (
            out if mask is None else map_states(lambda a, m=mask: a * OPS["reshape"](m, [-1, *(1 for _ in a.shape[1:])]), out)
        )
    axis = 0 if time_major else 1
    if isinstance(outputs[0], (list, tuple)):
        return type(outputs[0])(OPS["stack"](list(parts), axis) for parts in zip(*outputs, strict=True)), states
    return OPS["stack"](outputs, axis), states


def _run_layer(
    cell: _Cell, inputs: Tensor, states: Any, sequence_length: Tensor | None, time_major: bool, is_reverse: bool
) -> tuple[Tensor, Any]:
    """As ``_run``, all steps by one operator."""
    is_pair = cell.layer_kind == "lstm"
    h, c = states if is_pair else (states, None)
    weights = cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh, getattr(cell, "weight_ho", None)
    x = _by_time(inputs, time_major)
    results = OPS["recurrent_layer"](x, h, c, *weights, sequence_length, cell.layer_kind, is_reverse)
    all_h = results[0] if is_pair else results
    last = 0 if is_reverse else -1
    outputs = all_h[:-1] if is_reverse else all_h[1:]
    if sequence_length is not None:
        outputs = OPS["steps_within"](outputs, sequence_length)
    final = (all_h[last], results[1][last]) if is_pair else all_h[last]
    return _by_time(outputs, time_major), final


def _by_time(x: Tensor, time_major: bool) -> Tensor:
    return x if time_major else OPS["transpose"](x, [1, 0, *range(2, len(x.shape))])


def _at(pieces: Any, structure: Any, t: int) -> Any:
    """The step t of nested lists of steps."""
    if isinstance(structure, (list, tuple)):
        return type(structure)(_at(p, s, t) for p, s in zip(pieces, structure, strict=True))
    return pieces[t]


class RNN(Layer):
    """A cell run over sequences.

    Args:
        cell: a SimpleRNNCell, LSTMCell, GRUCell or RNNCellBase of your own.
        is_reverse: from the last step to the first.
        time_major: inputs are [T, N, ...], not [N, T, ...].

    Example:
        >>> import sampan as paddle
        >>> outputs, state = paddle.nn.RNN(paddle.nn.GRUCell(4, 8))(paddle.ones([2, 5, 4]))
        >>> outputs.shape, state.shape
        (paddle.Size([2, 5, 8]), paddle.Size([2, 8]))
    """

    def __init__(self, cell: RNNCellBase, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        self.cell = cell
        self.is_reverse, self.time_major = is_reverse, time_major

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Tensor | None = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        return _run(self.cell, inputs, initial_states, sequence_length, self.time_major, self.is_reverse, kwargs)


class BiRNN(Layer):
    """Two cells run over sequences, one in each direction; outputs are joined along the last axis, final states are a pair.

    Args:
        cell_fw: from the first step to the last.
        cell_bw: from the last step to the first.
        time_major: inputs are [T, N, ...], not [N, T, ...].
    """

    def __init__(self, cell_fw: RNNCellBase, cell_bw: RNNCellBase, time_major: bool = False) -> None:
        super().__init__()
        self.cell_fw, self.cell_bw = cell_fw, cell_bw
        self.time_major = time_major

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Tensor | None = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        first, second = (None, None) if initial_states is None else initial_states
        out_fw, state_fw = _run(self.cell_fw, inputs, first, sequence_length, self.time_major, False, kwargs)
        out_bw, state_bw = _run(self.cell_bw, inputs, second, sequence_length, self.time_major, True, kwargs)
        return map_states(lambda a, b: OPS["concat"]([a, b], -1), out_fw, out_bw), (state_fw, state_bw)


class _Stack(LayerList):
    """Layers of recurrent cells, each in one or both directions; parameters are also known by layer, as ``weight_ih_l0_reverse``."""

    _cell: type[_Cell] = SimpleRNNCell

    def __init__(
        self,
        input_size: Count,
        hidden_size: Count,
        num_layers: Count,
        direction: Literal["forward", "bidirect", "bidirectional"],
        time_major: bool,
        dropout: Probability,
        output_size: int,
        cell_options: dict[str, Any],
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.num_directions = 1 if direction == "forward" else 2
        self.time_major, self.dropout = time_major, dropout
        width = input_size
        for _ in range(num_layers):
            cells = [self._cell(width, hidden_size, **cell_options) for _ in range(self.num_directions)]
            self.append(RNN(cells[0], False, time_major) if len(cells) == 1 else BiRNN(cells[0], cells[1], time_major))
            width = output_size * self.num_directions
        for k, layer in enumerate(self):
            cells = [layer.cell] if self.num_directions == 1 else [layer.cell_fw, layer.cell_bw]
            for cell, suffix in zip(cells, ("", "_reverse"), strict=False):
                for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    if getattr(cell, part) is not None:
                        self.add_parameter(f"{part}_l{k}{suffix}", getattr(cell, part))

    def flatten_parameters(self) -> None:
        """Accepted for compatibility: weights are packed where a Plan needs them so."""

    def forward(self, inputs: Tensor, initial_states: Any = None, sequence_length: Tensor | None = None) -> tuple[Tensor, Any]:
        count = self.num_directions
        if initial_states is not None:
            initial_states = self._split(initial_states)
        finals: list[Any] = []
        outputs = inputs
        for k, layer in enumerate(self):
            if k and self.dropout:
                outputs = F.dropout(outputs, self.dropout, training=self.training)
            states = None
            if initial_states is not None:
                states = initial_states[k * count] if count == 1 else tuple(initial_states[k * count : (k + 1) * count])
            outputs, final = layer(outputs, states, sequence_length)
            finals += [final] if count == 1 else list(final)
        if isinstance(finals[0], tuple):
            return outputs, tuple(OPS["stack"](list(parts), 0) for parts in zip(*finals, strict=True))
        return outputs, OPS["stack"](finals, 0)

    def _split(self, states: Any) -> list[Any]:
        """For each layer and direction its states, from tensors [layers * directions, N, width]."""
        tensors = list(states) if isinstance(states, (list, tuple)) else [states]
        wanted = self.num_layers * self.num_directions
        for s in tensors:
            if len(s.shape) != 3 or s.shape[0] != wanted:
                raise ShapeError(
                    message(
                        f"{type(self).__name__}: initial states have shape {list(s.shape)}", f"they must be [{wanted}, N, width]"
                    )
                )
        parts = [OPS["unbind"](s, 0) for s in tensors]
        return [parts[0][k] if len(parts) == 1 else tuple(p[k] for p in parts) for k in range(wanted)]

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.num_layers != 1:
            shown += f", num_layers={self.num_layers}"
        if self.time_major:
            shown += f", time_major={self.time_major}"
        return shown + (f", dropout={self.dropout}" if self.dropout else "")


class SimpleRNN(_Stack):
    """Layers of ``SimpleRNNCell``.

    Args:
        input_size: the width of inputs.
        hidden_size: the width of states.
        num_layers: how many layers.
        direction: ``forward``, or ``bidirect``: both, joined along the last axis.
        time_major: inputs are [T, N, input], not [N, T, input].
        dropout: between layers, in training.
        activation: ``tanh`` or ``relu``.
        weight_ih_attr: the ParamAttr of the inputs' weights.
        weight_hh_attr: the ParamAttr of the states' weights.
        bias_ih_attr: the ParamAttr of the inputs' biases; False: none.
        bias_hh_attr: the ParamAttr of the states' biases; False: none.

    Called with (inputs, initial states [layers * directions, N, hidden] or None, lengths [N] or None), it gives (outputs, final states).
    """

    _cell = SimpleRNNCell

    def __init__(
        self,
        input_size: Count,
        hidden_size: Count,
        num_layers: Count = 1,
        direction: Literal["forward", "bidirect", "bidirectional"] = "forward",
        time_major: bool = False,
        dropout: Probability = 0.0,
        activation: Literal["tanh", "relu"] = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        options = {
            "activation": activation,
            "weight_ih_attr": weight_ih_attr,
            "weight_hh_attr": weight_hh_attr,
            "bias_ih_attr": bias_ih_attr,
            "bias_hh_attr": bias_hh_attr,
        }
        super().__init__(input_size, hidden_size, num_layers, direction, time_major, dropout, hidden_size, options)


class LSTM(_Stack):
    """Layers of ``LSTMCell``; arguments as for ``SimpleRNN``, and ``proj_size``: h is projected to this width.

    States are pairs (h, c) of tensors [layers * directions, N, width].

    Example:
        >>> import sampan as paddle
        >>> outputs, (h, c) = paddle.nn.LSTM(4, 8, num_layers=2)(paddle.ones([3, 5, 4]))
        >>> outputs.shape, h.shape
        (paddle.Size([3, 5, 8]), paddle.Size([2, 3, 8]))
    """

    _cell = LSTMCell

    def __init__(
        self,
        input_size: Count,
        hidden_size: Count,
        num_layers: Count = 1,
        direction: Literal["forward", "bidirect", "bidirectional"] = "forward",
        time_major: bool = False,
        dropout: Probability = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: Size = 0,
        name: str | None = None,
    ) -> None:
        options = {
            "weight_ih_attr": weight_ih_attr,
            "weight_hh_attr": weight_hh_attr,
            "bias_ih_attr": bias_ih_attr,
            "bias_hh_attr": bias_hh_attr,
            "proj_size": proj_size,
        }
        super().__init__(input_size, hidden_size, num_layers, direction, time_major, dropout, proj_size or hidden_size, options)
        self.proj_size = proj_size


class GRU(_Stack):
    """Layers of ``GRUCell``; arguments as for ``SimpleRNN``."""

    _cell = GRUCell

    def __init__(
        self,
        input_size: Count,
        hidden_size: Count,
        num_layers: Count = 1,
        direction: Literal["forward", "bidirect", "bidirectional"] = "forward",
        time_major: bool = False,
        dropout: Probability = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        options = {
            "weight_ih_attr": weight_ih_attr,
            "weight_hh_attr": weight_hh_attr,
            "bias_ih_attr": bias_ih_attr,
            "bias_hh_attr": bias_hh_attr,
        }
        super().__init__(input_size, hidden_size, num_layers, direction, time_major, dropout, hidden_size, options)


__all__ = ["GRU", "LSTM", "RNN", "BiRNN", "SimpleRNN"]
