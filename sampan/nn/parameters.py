"""ParamAttr, and how parameters are made from it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import tensor
from ..base import dtypes, names
from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..tensor import Parameter
from ..tensor.explained import explained
from ..tensor.functions import in_dynamic_mode, no_grad
from ..tensor.program import ParameterVariable, declare, default_main_program
from .initializer import Constant, XavierUniform, global_initializers


class ParamAttr:
    """How a parameter is made and trained.

    Args:
        name: its name; by default one is generated.
        initializer: an ``nn.initializer`` object.
        learning_rate: the factor on the optimizer's learning rate.
        regularizer: an L1Decay or L2Decay for this parameter alone.
        trainable: whether it is trained.
        do_model_average: accepted for compatibility with ModelAverage.
        need_clip: whether gradient clipping touches it.

    Example:
        >>> import sampan as paddle
        >>> attr = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.5))
        >>> paddle.nn.Linear(1, 1, weight_attr=attr).weight.item()
        0.5
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Any = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = True,
        need_clip: bool = True,
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise ArgumentTypeError(message(f"ParamAttr(): name={name!r}", "it must be a string"))
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average
        self.need_clip = need_clip

    def _make(self, shape: list[int], dtype: str, initializer: Any, name: str) -> Any:
        """The parameter. In a Program, a name that is known already means the parameter that has it."""
        made: Any
        if in_dynamic_mode():
            with no_grad():
                made = Parameter(tensor.to_tensor(np.zeros(shape, dtypes.numpy_dtype(dtype))), self.trainable, name)
                initializer(made)
        else:
            known = default_main_program().find(name)
            if known is not None:
                return _shared(known, shape, dtype)
            made = declare(ParameterVariable(dtype, shape, name, self.trainable), initializer)
        made.optimize_attr = {"learning_rate": self.learning_rate}
        made.regularizer = self.regularizer
        made.do_model_average = self.do_model_average
        made.need_clip = self.need_clip
        return made

    @staticmethod
    def _to_attr(arg: Any) -> Any:
        """A ParamAttr of what layers accept as ``weight_attr``; False for no parameter."""
        if arg is None or arg is True:
            return ParamAttr()
        if arg is False or isinstance(arg, ParamAttr):
            return arg
        if isinstance(arg, str):
            return ParamAttr(name=arg)
        if callable(arg):
            return ParamAttr(initializer=arg)
        raise ArgumentTypeError(
            message(
                f"ParamAttr: a parameter's attribute is a {type(arg).__name__}",
                "it must be a ParamAttr, an initializer, a name, True, False or None",
            )
        )


def _shared(known: Any, shape: list[int], dtype: str) -> Any:
    """The Variable of this name that the Program has already, which must be a parameter of this type."""
    if not hasattr(known, "trainable") or list(known.shape) != shape or known.dtype != dtype:
        raise ArgumentError(
            message(
                f"a parameter {dtype}{shape} is to be called {known.name!r}, which is {known!r} already",
                "a parameter is shared by its name where dtype and shape are equal",
                "give it another name",
            )
        )
    return known


def make_parameter(
    shape: Sequence[int], attr: Any, dtype: str, is_bias: bool, default_initializer: Any, generated_name: str
) -> Parameter | None:
    """The Parameter that the attr describes, initialised; None for attr False."""
    if attr is False:
        return None
    sizes = [operator.index(n) for n in shape]
    if min(sizes, default=0) < 0:
        # Not yet an error of sampan's own: the layer that is made adds its name and what it was given.
        raise ValueError(
            message(f"a parameter cannot have the shape {sizes}", "sizes must be 0 or more", "check which size is negative")
        )
    initializer = (
        attr.initializer or global_initializers[is_bias] or default_initializer or (Constant(0.0) if is_bias else XavierUniform())
    )
    return attr._make(sizes, dtype, initializer, attr.name or generated_name)  # type: ignore[no-any-return]


class LazyGuard:
    """A block in which layers are made as everywhere: parameters have their memory and their values at once.

    Paddle defers both until ``parameter.initialize()``, which does nothing here.

    Example:
        >>> import sampan as paddle
        >>> with paddle.LazyGuard():
        ...     layer = paddle.nn.Linear(2, 3)
        >>> layer.weight.shape
        paddle.Size([2, 3])
    """

    def __enter__(self) -> LazyGuard:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


@explained
def create_parameter(
    shape: Sequence[int],
    dtype: Any = "float32",
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Any = None,
) -> Parameter | None:
    """A new parameter on its own.

    Example:
        >>> import sampan as paddle
        >>> paddle.create_parameter([2, 3], "float32").shape
        paddle.Size([2, 3])
    """
    found = ParamAttr._to_attr(attr)
    generated = name or f"{names.generate('create_parameter')}.{'b' if is_bias else 'w'}_0"
    return make_parameter(
        shape, found, tensor.functions.dtype_name("create_parameter", dtype), is_bias, default_initializer, generated
    )
