"""DataParallel in one process: the layer itself, with the names that programs for several processes call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...base.errors import ArgumentTypeError, message
from ...tensor import Tensor
from .layers import Layer


class DataParallel(Layer):
    """A layer whose gradients are the means over all processes of the group. In one process it computes what the layer computes.

    Args:
        layers: the layer to train.
        strategy, comm_buffer_size, last_comm_buffer_size, find_unused_parameters, group: how several processes exchange gradients.

    Raises:
        ArgumentTypeError: ``layers`` is no Layer.

    Example:
        >>> import sampan as paddle
        >>> net = paddle.DataParallel(paddle.nn.Linear(4, 2))
        >>> net(paddle.ones([3, 4])).shape, list(net.state_dict())
        (paddle.Size([3, 2]), ['weight', 'bias'])
    """

    def __init__(
        self,
        layers: Layer,
        strategy: Any = None,
        comm_buffer_size: int = 25,
        last_comm_buffer_size: float = 1,
        find_unused_parameters: bool = False,
        group: Any = None,
    ) -> None:
        if not isinstance(layers, Layer):
            raise ArgumentTypeError(message(f"DataParallel(): layers is a {type(layers).__name__}", "it must be a Layer"))
        super().__init__(layers.full_name() + "_data_parallel")
        self._layers = layers
        self.find_unused_parameters = find_unused_parameters

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self._layers(*inputs, **kwargs)

    def init_reducer(self) -> None:
        """Nothing: one process exchanges no gradients."""

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block whose gradients are added up and not exchanged: in one process, any block."""
        yield

    def scale_loss(self, loss: Tensor) -> Tensor:
        """The loss over the number of processes: itself."""
        return loss

    def apply_collective_grads(self) -> None:
        """Nothing: one process exchanges no gradients."""

    def state_dict(  # type: ignore[override]
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Any]:
        """The state of the layer inside, by its names."""
        return self._layers.state_dict(destination, include_sublayers, structured_name_prefix, use_hook, keep_vars)

    def set_state_dict(  # type: ignore[override]
        self, state_dict: Mapping[str, Any], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        """Take the state of the layer inside: see Layer.set_state_dict."""
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = load_dict = set_state_dict


__all__ = ["DataParallel"]
