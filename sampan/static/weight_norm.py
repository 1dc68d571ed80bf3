"""WeightNormParamAttr: a weight as a length and a direction."""

from __future__ import annotations

from typing import Any

from ..base.errors import ArgumentError, UnsupportedError, message
from ..nn.parameters import ParamAttr
from ..tensor import OPS
from ..tensor.functions import in_dynamic_mode, no_grad
from ..tensor.program import ParameterVariable, default_main_program, default_startup_program
from ..tensor.variable import Variable


class WeightNormParamAttr(ParamAttr):
    """A weight w = g * v / |v|, with trained lengths g and directions v in its place.

    Args:
        dim: the axis that has a length for each position; None: one length for the whole weight.
        name, initializer, learning_rate, regularizer, trainable, do_model_average, need_clip: those of ``ParamAttr``; v starts as the initializer
            says, and g as v's length.

    Source: T. Salimans, D. Kingma, https://arxiv.org/abs/1602.07868

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main = paddle.static.Program()
        >>> with paddle.static.program_guard(main, paddle.static.Program()):
        ...     x = paddle.static.data("x", [None, 4])
        ...     y = paddle.static.nn.fc(x, 5, weight_attr=paddle.static.WeightNormParamAttr(dim=1, name="w"), bias_attr=False)
        >>> [(p.name, list(p.shape)) for p in main.all_parameters()]
        [('w_v', [4, 5]), ('w_g', [1, 5])]
        >>> paddle.disable_static()
    """

    #: The weights that were made so.
    params_with_weight_norm: list[Any] = []

    def __init__(
        self,
        dim: int | None = None,
        name: str | None = None,
        initializer: Any = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = False,
        need_clip: bool = True,
    ) -> None:
        super().__init__(name, initializer, learning_rate, regularizer, trainable, do_model_average, need_clip)
        self.dim = dim

    def _make(self, shape: list[int], dtype: str, initializer: Any, name: str) -> Any:
        """The weight, as a Variable that is computed of two parameters."""
        if in_dynamic_mode():
            raise UnsupportedError(
                message("WeightNormParamAttr in eager mode", "it is for Programs", "use paddle.nn.utils.weight_norm(layer)")
            )
        if self.dim is not None and not -len(shape) <= self.dim < len(shape):
            raise ArgumentError(
                message(f"WeightNormParamAttr(): dim={self.dim} for a weight of shape {shape}", "it must be an axis")
            )
        kept = None if self.dim is None else self.dim % len(shape)
        axes = [k for k in range(len(shape)) if k != kept]
        direction = super()._make(shape, dtype, initializer, f"{name}_v")
        length_name = f"{name}_g"
        length: Any = default_main_program().find(length_name)
        if length is None:
            sizes = [1 if k in axes else n for k, n in enumerate(shape)]
            length = default_main_program().add(ParameterVariable(dtype, sizes, length_name, self.trainable))
            for key in ("optimize_attr", "need_clip", "do_model_average"):
                setattr(length, key, getattr(direction, key))
            _start_as_length(direction.name, length, axes)
        weight = direction * (length / _length(direction, axes))
        WeightNormParamAttr.params_with_weight_norm.append(weight)
        return weight


def _length(direction: Any, axes: list[int]) -> Any:
    return OPS["sqrt"](OPS["sum"](OPS["square"](direction), axes, keepdim=True))


def _start_as_length(direction: str, length: Variable, axes: list[int]) -> None:
    """Make the startup Program give the length its first value: that of the direction's."""
    startup = default_startup_program()
    handle = Variable(length.dtype, length.sizes, length.name, persistable=True)
    startup.add(handle, is_input=False)
    recorder = startup.recorder
    with recorder.active(), no_grad():
        recorder.versions[id(handle)] = _length(startup.variables[direction], axes)
