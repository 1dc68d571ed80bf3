"""Parameters of functions that make their own, named as PaddlePaddle names them: ``fc_0.w_0``, ``fc_0.b_0``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import nn
from ...base import names
from ...base.errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedError, message
from ...nn.parameters import ParamAttr, make_parameter
from ...tensor.functions import in_dynamic_mode
from ...tensor.variable import UNKNOWN, Variable


class Owner:
    """What makes the parameters of one call.

    Args:
        function: the public function's name.
        kind: the prefix of generated names.
        name: the user's own in place of a generated one.
        instead: what to use in eager mode.
    """

    def __init__(self, function: str, kind: str, name: str | None, instead: str) -> None:
        if in_dynamic_mode():
            raise UnsupportedError(
                message(
                    f"static.nn.{function}() in eager mode",
                    "it makes new parameters in every call, which a Program does once",
                    f"use paddle.{instead}, or call paddle.enable_static() first",
                )
            )
        self.function = function
        self.name = name if name is not None else names.generate(kind)
        self._counts = {"w": 0, "b": 0}

    def parameter(self, shape: Sequence[int], attr: Any, dtype: str, is_bias: bool = False, initializer: Any = None) -> Any:
        """The next weight or bias; None for attr False."""
        kind = "b" if is_bias else "w"
        number = self._counts[kind]
        self._counts[kind] += 1
        return make_parameter(shape, ParamAttr._to_attr(attr), dtype, is_bias, initializer, f"{self.name}.{kind}_{number}")

    def state(self, shape: Sequence[int], name: str | None, dtype: str, initializer: Any) -> Any:
        """A Variable that is kept from run to run and not trained."""
        return self.parameter(shape, ParamAttr(name=name, initializer=initializer, trainable=False), dtype)

    def require(self, name: str, value: Any, ranks: Sequence[int] = ()) -> Variable:
        """The value, if it is a Variable with one of these numbers of axes."""
        if not isinstance(value, Variable):
            raise ArgumentTypeError(
                message(f"{self.function}(): {name} is a {type(value).__name__}", "it must be a Variable of a Program")
            )
        if ranks and value.ndim not in ranks:
            raise ShapeError(
                message(
                    f"{self.function}(): {name} has shape {list(value.shape)}",
                    f"it must have {' or '.join(map(str, ranks))} axes",
                )
            )
        return value

    def known(self, name: str, value: Any, axis: int) -> int:
        """The size of an axis that parameters are made for."""
        size = int(value.shape[axis])
        if size == UNKNOWN:
            raise ShapeError(
                message(
                    f"{self.function}(): {name} has shape {list(value.shape)}",
                    f"axis {axis} must be known, for parameters are made for it",
                    "declare the Variable with that size",
                )
            )
        return size

    def choice(self, name: str, value: Any, allowed: Sequence[Any]) -> Any:
        """The value, if it is one of those allowed."""
        if value not in allowed:
            raise ArgumentError(
                message(f"{self.function}(): {name}={value!r}", f"it must be one of {', '.join(map(repr, allowed))}")
            )
        return value

    def count(self, name: str, value: Any) -> int:
        """The value, if it is a positive integer."""
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise ArgumentTypeError(message(f"{self.function}(): {name} is {value!r}", "it must be an integer"))
        if int(value) < 1:
            raise ArgumentError(message(f"{self.function}(): {name}={value}", "it must be positive"))
        return int(value)

    def activated(self, value: Any, activation: str | None) -> Any:
        """The value through a function of ``nn.functional`` by name."""
        if activation is None:
            return value
        function = getattr(nn.functional, activation, None) if isinstance(activation, str) else None
        if function is None:
            raise ArgumentError(
                message(
                    f"{self.function}(): the activation is {activation!r}",
                    "it must be the name of a function in nn.functional, such as 'relu'",
                )
            )
        return function(value)
