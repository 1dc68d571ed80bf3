"""Public functions over operators that need what the caller may leave out: ``where`` of a condition alone, ``assign`` of plain data."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np

from .. import _rt
from ..base.errors import ArgumentError, message
from ..ir.builder import current_builder
from ..ir.program import Value
from .build import OPS, attach, composed, publish
from .composed import nonzero, require_tensor
from .creation import to_tensor
from .explained import explained
from .variable_methods import replace

Tensor = _rt.Tensor
_select = OPS["where"]


def where(condition: Tensor, x: Any = None, y: Any = None, name: str | None = None, *, out: Tensor | None = None) -> Any:
    """x where the condition holds, else y, with broadcasting; of the condition alone, the positions where it holds.

    Args:
        condition: a bool tensor; of other dtypes, elements other than 0 hold.
        x: a tensor or number; with None, y is None too.
        y: a tensor or number.
        name: accepted for compatibility.
        out: receives the result.

    Returns:
        A tensor of the promoted dtype; without x and y, for each axis of the condition an int64 tensor [count], as ``nonzero(as_tuple=True)``.

    Raises:
        ArgumentError: one of x and y is given without the other.

    Example:
        >>> import sampan as paddle
        >>> paddle.where(paddle.to_tensor([True, False]), 1.0, 2.0).tolist()
        [1.0, 2.0]
        >>> paddle.where(paddle.to_tensor([True, False, True]))[0].tolist()
        [0, 2]
    """
    if x is None and y is None:
        return nonzero(require_tensor("where", "condition", condition), as_tuple=True)
    if x is None or y is None:
        given, missing = ("y", "x") if x is None else ("x", "y")
        raise ArgumentError(message(f"where(): {given} is given and {missing} is not", "both or neither must be"))
    return _select(condition, x, y) if out is None else _select(condition, x, y, out=out)


composed("where")(where)
attach("where", where)


@composed("assign")
def assign(x: Any, output: Tensor | None = None, name: str | None = None) -> Tensor:
    """x in memory of its own; gradients flow through it.

    Args:
        x: a tensor, an array, a number (of which a tensor of one element is made), or nested lists of those. Arrays keep their dtype, and
            Python floats in lists become float64.
        output: receives the result, taking its shape and dtype, and is what is given back.
        name: accepted for compatibility.

    Raises:
        AutogradError: output is a leaf that wants a gradient.

    Example:
        >>> import sampan as paddle
        >>> kept = paddle.zeros([2])
        >>> paddle.assign(paddle.to_tensor([1.0, 2.0]), kept) is kept, kept.tolist()
        (True, [1.0, 2.0])
    """
    if not isinstance(x, (Tensor, Value)):
        x = to_tensor(np.atleast_1d(np.asarray(x)) if isinstance(x, (bool, int, float, complex)) else _listed(x))
    if output is None:
        return OPS["clone"](x)
    require_tensor("assign", "output", output)
    if current_builder() is not None:
        return replace(output, OPS["clone"](x))
    if output.stop_gradient and (output.dtype != x.dtype or list(output.shape) != list(x.shape)):
        _rt.rebind(output, _rt.empty(list(x.shape), x.dtype.name))
    return OPS["clone"](x, out=output)


def _listed(x: Any) -> Any:
    is_plain = isinstance(x, (list, tuple)) and not any(isinstance(item, (list, tuple, Tensor)) for item in x)
    return np.asarray(x) if is_plain else x


@explained
def softmax(input: Tensor, dim: int | None = None, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """exp(input) over its sum along one axis; ``nn.functional.softmax`` takes the last axis unless it is given another.

    Args:
        input: a floating tensor; also given as ``x``.
        dim: the axis, also given as ``axis``. None: the first axis of tensors of 0, 1 and 3 axes, else the second.
        dtype: computed in, and of the result; by default the input's.
        out: receives the result.

    Example:
        >>> import sampan as paddle
        >>> paddle.softmax(paddle.to_tensor([[0.0, 0.0], [0.0, 0.0]])).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    axis = dim if dim is not None else 0 if len(require_tensor("softmax", "input", input).shape) in (0, 1, 3) else 1
    return OPS["softmax"](input, axis, dtype, out=out)


def _spelled(*args: Any, **kwargs: Any) -> Tensor:
    return softmax(*args, **{{"x": "input", "axis": "dim"}.get(k, k): v for k, v in kwargs.items() if k != "name"})


_spelled.__name__, _spelled.__qualname__, _spelled.__doc__ = "softmax", "softmax", softmax.__doc__
_spelled.__signature__ = inspect.signature(softmax)  # type: ignore[attr-defined]
publish("", "softmax", _spelled)
attach("softmax", _spelled)


class TopKRetType(NamedTuple):
    """What ``topk`` gives."""

    values: Tensor
    indices: Tensor


_largest = OPS["topk"]


def topk(*args: Any, **kwargs: Any) -> TopKRetType:
    """The k largest elements along an axis, and their positions."""
    return TopKRetType(*_largest(*args, **kwargs))


topk.__doc__, topk.__signature__ = _largest.__doc__, inspect.signature(_largest)  # type: ignore[attr-defined]
publish("", "topk", topk)
attach("topk", topk)
