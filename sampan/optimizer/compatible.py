"""What Paddle's optimizers have beside training: names of states, regularised gradients, and buffers that hold all states, of which there are none here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..nn.layer.state import ShardedWeight
from ..regularizer import L1Decay
from ..tensor import Tensor


class CompatibleNames:
    """The part of Optimizer that a training loop does not need."""

    #: One kernel updates many parameters where they lie, so no states are moved into one buffer.
    fused_buffer_version = 0
    fused_states_buffer = None
    fused_states_buffer_ipc_meta = None
    fused_states_accumulators_meta = None
    fused_states_master_weights_meta = None

    def use_fusion_storage(self) -> None:
        """Nothing: one kernel updates many parameters where they lie."""

    def need_refuse(self) -> None:
        """Nothing: there is no buffer that would have to be made again."""

    def reset_need_refuse(self) -> None:
        """Nothing: there is no buffer that would have to be made again."""

    def set_merged_model_params(self, merged_model_params: Any) -> None:
        """Keep what is given as ``merged_model_params``; parameters are not merged here."""
        self.merged_model_params = merged_model_params

    def get_opti_var_name_list(self: Any) -> list[str]:
        """The names of all states that exist, as in files.

        Example:
            >>> import sampan as paddle
            >>> weight = paddle.create_parameter([2], "float32", name="weight")
            >>> opt = paddle.optimizer.Momentum(0.1, parameters=[weight])
            >>> weight.sum().backward()
            >>> opt.step()
            >>> opt.get_opti_var_name_list()
            ['weight_velocity_0']
        """
        state = self.state_dict()
        return [key for key, value in state.items() if isinstance(value, Tensor)]

    def append_regularization_ops(
        self, parameters_and_grads: Sequence[tuple[Tensor, Tensor | None]], regularization: Any = None
    ) -> list[tuple[Tensor, Tensor | None]]:
        """The pairs with each gradient plus that of its regularizer: the parameter's own, else ``regularization``.

        Args:
            parameters_and_grads: pairs; a gradient may be None.
            regularization: an L1Decay or L2Decay, or None.
        """
        found = []
        for param, grad in parameters_and_grads:
            decay = getattr(param, "regularizer", None) or regularization
            if grad is not None and decay is not None:
                grad = grad + decay.coeff * (param.sign() if isinstance(decay, L1Decay) else param)
            found.append((param, grad))
        return found

    def sharded_state_dict(self: Any, model_sharded_state_dict: Any = None) -> dict[str, ShardedWeight]:
        """The states as this process's parts of tensors; without distribution, all of each. ``model_sharded_state_dict`` is not needed for that."""
        state = {key: value for key, value in self.state_dict().items() if isinstance(value, Tensor)}
        shapes = {key: tuple(value.shape) for key, value in state.items()}
        return {key: ShardedWeight(key, value, shapes[key], shapes[key], (0,) * len(shapes[key])) for key, value in state.items()}
