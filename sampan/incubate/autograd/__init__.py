"""Derivatives of functions: products with Jacobians, whole Jacobians and Hessians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import tensor as T
from ...autograd import grad as _grad
from ...autograd import jvp, vjp
from ...base.errors import ShapeError, UnsupportedError, message
from ...tensor import Tensor

__all__ = ["Hessian", "Jacobian", "disable_prim", "enable_prim", "forward_grad", "grad", "jvp", "prim_enabled", "vjp"]

_prim: set[bool] = set()


def _inputs(xs: Any) -> list[Tensor]:
    found = []
    for x in xs if isinstance(xs, (list, tuple)) else [xs]:
        own = x.detach()
        own.stop_gradient = False
        found.append(own)
    return found


def _flat(tensors: list[Tensor], is_batched: bool) -> Tensor:
    """All elements side by side: [n], or [batch, n]."""
    parts = [T.reshape(t, [t.shape[0], -1] if is_batched else [-1]) for t in tensors]
    return parts[0] if len(parts) == 1 else T.concat(parts, -1)


class Jacobian:
    """The matrix of a function's first derivatives: [outputs, inputs], all elements flattened and side by side, or [batch, outputs, inputs].

    Args:
        func: takes xs, gives a tensor or several.
        xs: a tensor or several.
        is_batched: the first axis of all counts independent examples.

    Example:
        >>> import sampan as paddle
        >>> paddle.incubate.autograd.Jacobian(lambda x: x * x, paddle.to_tensor([1.0, 2.0]))[:].tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """

    def __init__(self, func: Callable[..., Any], xs: Any, is_batched: bool = False) -> None:
        inputs = _inputs(xs)
        ys = func(*inputs)
        outputs = _flat(list(ys) if isinstance(ys, (list, tuple)) else [ys], is_batched)
        self._matrix = self._derivatives(outputs, inputs, is_batched)

    @staticmethod
    def _derivatives(outputs: Tensor, inputs: list[Tensor], is_batched: bool) -> Tensor:
        rows = []
        for k in range(outputs.shape[-1]):
            root = outputs[:, k].sum() if is_batched else outputs[k]
            found = _grad(root, inputs, retain_graph=True, create_graph=True, allow_unused=True)
            rows.append(_flat([T.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)], is_batched))
        return T.stack(rows, 1 if is_batched else 0)

    @property
    def shape(self) -> list[int]:
        """[outputs, inputs], or [batch, outputs, inputs]."""
        return self._matrix.shape

    def __getitem__(self, index: Any) -> Tensor:
        return self._matrix[index]


class Hessian(Jacobian):
    """The matrix of a one-element function's second derivatives: [inputs, inputs], or [batch, inputs, inputs].

    Args:
        func: takes xs, gives one element, or one for each example.
        xs: a tensor or several.
        is_batched: the first axis of all counts independent examples.

    Raises:
        ShapeError: the function gives more.

    Example:
        >>> import sampan as paddle
        >>> paddle.incubate.autograd.Hessian(lambda x: (x * x * x).sum(), paddle.to_tensor([1.0, 2.0]))[:].tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """

    def __init__(self, func: Callable[..., Any], xs: Any, is_batched: bool = False) -> None:
        inputs = _inputs(xs)
        value = func(*inputs)
        if value.size != (value.shape[0] if is_batched else 1):
            raise ShapeError(
                message(f"Hessian(): the function gives {list(value.shape)}", "it must give one element, or one for each example")
            )
        found = _grad(value.sum(), inputs, create_graph=True, allow_unused=True)
        slopes = [T.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]
        self._matrix = self._derivatives(_flat(slopes, is_batched), inputs, is_batched)


def enable_prim() -> None:
    """Accepted for compatibility: operators are always differentiated through their primitives."""
    _prim.add(True)


def disable_prim() -> None:
    """Accepted for compatibility; see ``enable_prim``."""
    _prim.clear()


def prim_enabled() -> bool:
    """Whether ``enable_prim`` was called last, and not ``disable_prim``."""
    return bool(_prim)


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None) -> Any:
    """The gradients of the outputs with respect to the inputs: a tensor for one input, a list for several."""
    found = _grad(outputs, inputs, grad_outputs, retain_graph=True, create_graph=True, allow_unused=True)
    return found if isinstance(inputs, (list, tuple)) else found[0]


def forward_grad(outputs: Any, inputs: Any, grad_inputs: Any = None) -> Any:
    """Derivatives of static Programs in forward mode.

    Raises:
        UnsupportedError: always, outside of static Programs.
    """
    raise UnsupportedError(
        message(
            "forward_grad(): there is no static Program here",
            "eager functions are differentiated as functions",
            "use jvp(func, xs, v)",
        )
    )
