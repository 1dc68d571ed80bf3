"""Recurrent cells: one step of an RNN, an LSTM or a GRU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from ...base.errors import ArgumentError, message
from ...base.kinds import Count, Size
from ...tensor import OPS, Tensor
from ..initializer import Uniform
from .layers import Layer


def map_states(function: Any, states: Any, *others: Any) -> Any:
    """The function applied to corresponding tensors of nested tuples of states."""
    if isinstance(states, (list, tuple)):
        return type(states)(map_states(function, *parts) for parts in zip(states, *others, strict=True))
    return function(states, *others)


class RNNCellBase(Layer):
    """The base of cells: ``forward(inputs, states)`` gives (outputs, next states); ``state_shape`` says what a state looks like, without the batch."""

    def get_initial_states(
        self, batch_ref: Any, shape: Any = None, dtype: Any = None, init_value: float = 0.0, batch_dim_idx: int = 0
    ) -> Any:
        """States filled with one value, for a batch as large as ``batch_ref``'s.

        Args:
            batch_ref: a tensor, or a nested structure of them, with the batch at axis ``batch_dim_idx``.
            shape: nested shapes without the batch; the cell's ``state_shape`` by default.
            dtype: by default that of ``batch_ref`` if floating, else the cell's.
            init_value: of all elements.
        """
        while isinstance(batch_ref, (list, tuple)):
            batch_ref = batch_ref[0]
        batch = batch_ref.shape[batch_dim_idx]
        given = batch_ref.dtype.name
        kind = dtype or (given if given.startswith(("float", "bfloat")) else self._dtype)
        state_shape = self.state_shape if shape is None else shape
        if batch != -1:
            return _filled(state_shape, lambda sizes: OPS["full"]([batch, *sizes], init_value, kind))
        order = [batch_dim_idx, *(k for k in range(len(batch_ref.shape)) if k != batch_dim_idx)]
        column = OPS["slice"](
            OPS["flatten"](OPS["transpose"](batch_ref, order), 1), [1], [0], [1]
        )  # of a Program: the batch is known at a run
        return _filled(state_shape, lambda sizes: OPS["full_like"](OPS["expand"](column, [-1, *sizes]), init_value, kind))

    @property
    def state_shape(self) -> Any:
        """The (nested) shape of a state without the batch."""
        raise NotImplementedError(f"{type(self).__name__} defines no state_shape; pass initial states, or define it")

    @property
    def state_dtype(self) -> Any:
        """The (nested) dtype of a state."""
        raise NotImplementedError(f"{type(self).__name__} defines no state_dtype; pass initial states, or define it")


def _filled(shape: Any, make: Callable[[list[int]], Any]) -> Any:
    """What ``make`` gives for every shape of a nested structure, without the batch."""
    if shape and isinstance(shape[0], (list, tuple)):
        return type(shape)(_filled(s, make) for s in shape)
    return make(list(shape)[1:] if shape and shape[0] == -1 else list(shape))


class _Cell(RNNCellBase):
    """A cell with weights of ``_gates`` gates for its inputs and its state."""

    _gates = 1

    def __init__(
        self,
        input_size: Count,
        hidden_size: Count,
        weight_ih_attr: Any,
        weight_hh_attr: Any,
        bias_ih_attr: Any,
        bias_hh_attr: Any,
        name: str | None,
        state_size: int | None = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self._name = input_size, hidden_size, name
        limit = 1.0 / math.sqrt(hidden_size)
        self._start = Uniform(-limit, limit)
        rows = self._gates * hidden_size
        self.weight_ih = self.create_parameter([rows, input_size], weight_ih_attr, default_initializer=self._start)
        self.weight_hh = self.create_parameter(
            [rows, hidden_size if state_size is None else state_size], weight_hh_attr, default_initializer=self._start
        )
        self.bias_ih = self.create_parameter([rows], bias_ih_attr, is_bias=True, default_initializer=self._start)
        self.bias_hh = self.create_parameter([rows], bias_hh_attr, is_bias=True, default_initializer=self._start)

    def gate_inputs(self, inputs: Tensor) -> Tensor:
        """The inputs' share of the gates, for one step [N, I] or all of them [T, N, I]."""
        return OPS["gate_inputs"](inputs, self.weight_ih, self.bias_ih)

    @property
    def layer_kind(self) -> str:
        """What the operator for whole layers calls this cell; empty: it takes it step by step only."""
        return ""

    def step(self, gates: Tensor, states: Any, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        """(outputs, next states) from the inputs' share of the gates; instances whose mask is 0 keep their states."""
        raise NotImplementedError

    def forward(self, inputs: Tensor, states: Any = None) -> tuple[Tensor, Any]:
        if states is None:
            states = self.get_initial_states(inputs, self.state_shape)
        return self.step(self.gate_inputs(inputs), states)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(_Cell):
    """h' = activation(W_ih x + b_ih + W_hh h + b_hh).

    Args:
        input_size: the width of inputs.
        hidden_size: the width of the state.
        activation: ``tanh`` or ``relu``.
        weight_ih_attr: the ParamAttr of W_ih [hidden, input].
        weight_hh_attr: the ParamAttr of W_hh [hidden, hidden].
        bias_ih_attr: the ParamAttr of b_ih; False: none.
        bias_hh_attr: the ParamAttr of b_hh; False: none.

    Example:
        >>> import sampan as paddle
        >>> outputs, state = paddle.nn.SimpleRNNCell(4, 8)(paddle.ones([2, 4]))
        >>> state.shape
        paddle.Size([2, 8])
    """

    def __init__(
        self,
        input_size: Count,
        hidden_size: Count,
        activation: Literal["tanh", "relu"] = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr, name)
        self.activation = activation

    @property
    def layer_kind(self) -> str:
        return self.activation

    def step(self, gates: Tensor, states: Any, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        h = OPS["simple_rnn_step"](gates, states, self.weight_hh, self.bias_hh, mask, self.activation)
        return h, h

    @property
    def state_shape(self) -> tuple[int, ...]:
        return (self.hidden_size,)

    def extra_repr(self) -> str:
        return super().extra_repr() + (f", activation={self.activation}" if self.activation != "tanh" else "")


class LSTMCell(_Cell):
    """A long short-term memory; the state is (h, c), the gates are input, forget, candidate, output.

    Args:
        input_size: the width of inputs.
        hidden_size: the width of c, and of h unless it is projected.
        weight_ih_attr: the ParamAttr of W_ih [4 * hidden, input].
        weight_hh_attr: the ParamAttr of W_hh [4 * hidden, width of h].
        bias_ih_attr: the ParamAttr of b_ih; False: none.
        bias_hh_attr: the ParamAttr of b_hh; False: none.
        proj_size: h is projected to this width; 0: not.

    Source: S. Hochreiter, J. Schmidhuber, "Long short-term memory", 1997; projection: https://arxiv.org/abs/1402.1128
    """

    _gates = 4

    def __init__(
        self,
        input_size: Count,
        hidden_size: Count,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: Size = 0,
        name: str | None = None,
    ) -> None:
        if not 0 <= proj_size < max(hidden_size, 1):
            raise ArgumentError(
                message(f"LSTMCell: proj_size={proj_size}", f"it must be in [0, hidden_size), and hidden_size is {hidden_size}")
            )
        super().__init__(
            input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr, name, proj_size or hidden_size
        )
        self.proj_size = proj_size
        self.weight_ho = (
            self.create_parameter([hidden_size, proj_size], weight_hh_attr, default_initializer=self._start)
            if proj_size
            else None
        )

    @property
    def layer_kind(self) -> str:
        return "lstm"

    def step(self, gates: Tensor, states: Any, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        h, c = states
        h, c = OPS["lstm_step"](gates, h, c, self.weight_hh, self.bias_hh, self.weight_ho, mask)
        return h, (h, c)

    @property
    def state_shape(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return ((self.proj_size or self.hidden_size,), (self.hidden_size,))


class GRUCell(_Cell):
    """A gated recurrent unit; the gates are reset, update, candidate.

    Args:
        input_size: the width of inputs.
        hidden_size: the width of the state.
        weight_ih_attr: the ParamAttr of W_ih [3 * hidden, input].
        weight_hh_attr: the ParamAttr of W_hh [3 * hidden, hidden].
        bias_ih_attr: the ParamAttr of b_ih; False: none.
        bias_hh_attr: the ParamAttr of b_hh; False: none.

    Source: https://arxiv.org/abs/1406.1078
    """

    _gates = 3

    def __init__(
        self,
        input_size: Count,
        hidden_size: Count,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr, name)

    @property
    def layer_kind(self) -> str:
        return "gru"

    def step(self, gates: Tensor, states: Any, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        h = OPS["gru_step"](gates, states, self.weight_hh, self.bias_hh, mask)
        return h, h

    @property
    def state_shape(self) -> tuple[int, ...]:
        return (self.hidden_size,)


__all__ = ["GRUCell", "LSTMCell", "RNNCellBase", "SimpleRNNCell"]
