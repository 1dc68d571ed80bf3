"""Invertible functions of random values, with the determinants of their Jacobians."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import tensor as T
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedError, message
from ..tensor import OPS, Tensor
from ..tensor.functions import broadcast_shape, is_tensor

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "ChainTransform",
    "ExpTransform",
    "IndependentTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
]


#: What calling a Transform on a value of a kind gives, where that is not ``forward``.
CALLS: dict[type, Callable[[Any, Any], Any]] = {}


def sum_rightmost(x: Tensor, rank: int) -> Tensor:
    """The sum over the last ``rank`` axes."""
    return x.sum(list(range(x.ndim - rank, x.ndim))) if rank > 0 else x


def log_det(transform: Transform, x: Tensor, rank: int) -> Tensor:
    """log |det| of the Jacobian at x, summed over ``rank`` further axes that count as one value."""
    found = transform.forward_log_det_jacobian(x)
    if rank <= 0:
        return found
    # the determinant of a function without parameters of x's shape does not have the shape yet
    lead = list(x.shape[: x.ndim - transform._domain_rank])
    return sum_rightmost(T.expand(found, list(broadcast_shape(list(found.shape), lead))), rank)


class Transform:
    """The base of invertible functions; a subclass defines ``_forward``, ``_inverse`` and ``_forward_log_det_jacobian``.

    Called on a tensor it is ``forward``; on a Distribution it gives the transformed one; on another Transform the chain of both.
    """

    #: How many of the last axes the function looks at together, of its argument and of its result.
    _domain_rank = 0
    _codomain_rank = 0

    def __call__(self, value: Any) -> Any:
        for kind, make in CALLS.items():
            if isinstance(value, kind):
                return make(self, value)
        return self.forward(value)

    @staticmethod
    def _checked(name: str, x: Any, rank: int) -> Tensor:
        if not is_tensor(x):
            raise ArgumentTypeError(message(f"{name}(): got a {type(x).__name__}", "it takes a Tensor"))
        if x.ndim < rank:
            raise ShapeError(message(f"{name}(): the value has shape {list(x.shape)}", f"it must have at least {rank} axes"))
        return x

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return self._forward(self._checked(f"{type(self).__name__}.forward", x, self._domain_rank))

    def inverse(self, y: Tensor) -> Tensor:
        """The x that the function takes to y."""
        return self._inverse(self._checked(f"{type(self).__name__}.inverse", y, self._codomain_rank))

    def forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        """log |det| of the Jacobian at x."""
        return self._forward_log_det_jacobian(
            self._checked(f"{type(self).__name__}.forward_log_det_jacobian", x, self._domain_rank)
        )

    def inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        """log |det| of the inverse's Jacobian at y."""
        return -self.forward_log_det_jacobian(self.inverse(y))

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of ``forward``'s result for an argument of this shape."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of ``inverse``'s result for an argument of this shape."""
        return tuple(shape)

    def _forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} defines no _forward()")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} defines no _inverse()")

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        raise UnsupportedError(f"{type(self).__name__} is not one-to-one: its Jacobian has no determinant")


class AbsTransform(Transform):
    """|x|; its inverse gives both solutions.

    Example:
        >>> import sampan as paddle
        >>> low, high = paddle.distribution.AbsTransform().inverse(paddle.to_tensor(1.0))
        >>> low.item(), high.item()
        (-1.0, 1.0)
    """

    def _forward(self, x: Tensor) -> Tensor:
        return T.abs(x)

    def _inverse(self, y: Tensor) -> Any:
        return -y, y

    def inverse_log_det_jacobian(self, y: Tensor) -> Any:
        """0 for both solutions."""
        return T.zeros_like(y), T.zeros_like(y)


class AffineTransform(Transform):
    """loc + scale * x.

    Args:
        loc: what is added.
        scale: the factor.
    """

    def __init__(self, loc: Tensor, scale: Tensor) -> None:
        for name, value in (("loc", loc), ("scale", scale)):
            self._checked(f"AffineTransform {name}", value, 0)
        self._loc, self._scale = loc, scale

    @property
    def loc(self) -> Tensor:
        """What is added."""
        return self._loc

    @property
    def scale(self) -> Tensor:
        """The factor."""
        return self._scale

    def _forward(self, x: Tensor) -> Tensor:
        return self._loc + self._scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self._loc) / self._scale

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return T.log(T.abs(self._scale))

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape broadcast with the parameters'."""
        return tuple(broadcast_shape(broadcast_shape(list(shape), list(self._loc.shape)), list(self._scale.shape)))

    inverse_shape = forward_shape


class ChainTransform(Transform):
    """One function after the other, the first applied first.

    Args:
        transforms: the functions.
    """

    def __init__(self, transforms: Sequence[Transform]) -> None:
        if not all(isinstance(t, Transform) for t in transforms):
            raise ArgumentTypeError(message("ChainTransform(): transforms holds something else", "it must hold Transforms"))
        self.transforms = list(transforms)
        need, rank = 0, 0
        for t in reversed(self.transforms):
            need = max(need + t._domain_rank - t._codomain_rank, t._domain_rank)
        rank = need
        for t in self.transforms:
            rank += t._codomain_rank - t._domain_rank
        self._domain_rank, self._codomain_rank = need, rank

    def _forward(self, x: Tensor) -> Tensor:
        for t in self.transforms:
            x = t.forward(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for t in reversed(self.transforms):
            y = t.inverse(y)
        return y

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        total: Any = 0.0
        rank = self._domain_rank
        for t in self.transforms:
            total = total + log_det(t, x, rank - t._domain_rank)
            x = t.forward(x)
            rank += t._codomain_rank - t._domain_rank
        return total

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape after all functions."""
        for t in self.transforms:
            shape = t.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape before all functions."""
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        return tuple(shape)


CALLS[Transform] = lambda transform, following: ChainTransform([transform, following])


class ExpTransform(Transform):
    """exp(x)."""

    def _forward(self, x: Tensor) -> Tensor:
        return T.exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return T.log(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return x


class IndependentTransform(Transform):
    """A function whose Jacobian's determinant is that over further axes together.

    Args:
        base: the function.
        reinterpreted_batch_rank: how many further axes.
    """

    def __init__(self, base: Transform, reinterpreted_batch_rank: int) -> None:
        if not isinstance(base, Transform):
            raise ArgumentTypeError(message(f"IndependentTransform(): base is a {type(base).__name__}", "it must be a Transform"))
        if reinterpreted_batch_rank <= 0:
            raise ArgumentError(
                message(f"IndependentTransform(): reinterpreted_batch_rank={reinterpreted_batch_rank!r}", "it must be above 0")
            )
        self._base, self._rank = base, reinterpreted_batch_rank
        self._domain_rank = base._domain_rank + reinterpreted_batch_rank
        self._codomain_rank = base._codomain_rank + reinterpreted_batch_rank

    def _forward(self, x: Tensor) -> Tensor:
        return self._base.forward(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._base.inverse(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return log_det(self._base, x, self._rank)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The function's."""
        return self._base.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The function's."""
        return self._base.inverse_shape(shape)


class PowerTransform(Transform):
    """x ** power, for x above 0.

    Args:
        power: the exponent.
    """

    def __init__(self, power: Tensor) -> None:
        self._power = self._checked("PowerTransform power", power, 0)

    @property
    def power(self) -> Tensor:
        """The exponent."""
        return self._power

    def _forward(self, x: Tensor) -> Tensor:
        return T.pow(x, self._power)

    def _inverse(self, y: Tensor) -> Tensor:
        return T.pow(y, 1 / self._power)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return T.log(T.abs(self._power * T.pow(x, self._power - 1)))

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape broadcast with the exponent's."""
        return tuple(broadcast_shape(list(shape), list(self._power.shape)))

    inverse_shape = forward_shape


class ReshapeTransform(Transform):
    """The last axes in another shape.

    Args:
        in_event_shape: their shape.
        out_event_shape: the shape that they get, of as many elements.
    """

    def __init__(self, in_event_shape: Sequence[int], out_event_shape: Sequence[int]) -> None:
        if math.prod(in_event_shape) != math.prod(out_event_shape):
            raise ShapeError(
                message(
                    f"ReshapeTransform(): {list(in_event_shape)} and {list(out_event_shape)} differ in the number of elements"
                )
            )
        self._in, self._out = tuple(in_event_shape), tuple(out_event_shape)
        self._domain_rank, self._codomain_rank = len(self._in), len(self._out)

    @property
    def in_event_shape(self) -> tuple[int, ...]:
        """The shape of the argument's last axes."""
        return self._in

    @property
    def out_event_shape(self) -> tuple[int, ...]:
        """The shape of the result's last axes."""
        return self._out

    def _forward(self, x: Tensor) -> Tensor:
        return T.reshape(x, list(self.forward_shape(x.shape)))

    def _inverse(self, y: Tensor) -> Tensor:
        return T.reshape(y, list(self.inverse_shape(y.shape)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return T.zeros(list(x.shape[: x.ndim - len(self._in)]), x.dtype)

    @staticmethod
    def _replaced(shape: Sequence[int], old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
        lead = len(shape) - len(old)
        if lead < 0 or tuple(shape[lead:]) != old:
            raise ShapeError(message(f"ReshapeTransform: the shape {list(shape)} does not end in {list(old)}"))
        return (*shape[:lead], *new)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape with its last axes replaced."""
        return self._replaced(shape, self._in, self._out)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape with its last axes put back."""
        return self._replaced(shape, self._out, self._in)


def _softplus(x: Tensor) -> Tensor:
    return T.log1p(T.exp(-T.abs(x))) + T.maximum(x, T.zeros_like(x))


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))."""

    def _forward(self, x: Tensor) -> Tensor:
        return OPS["sigmoid"](x)

    def _inverse(self, y: Tensor) -> Tensor:
        return T.log(y) - T.log1p(-y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -_softplus(-x) - _softplus(x)


class SoftmaxTransform(Transform):
    """exp(x) scaled to a sum of 1 over the last axis. It loses the sum of x, so it has no determinant; the inverse gives log y."""

    _domain_rank = _codomain_rank = 1

    def _forward(self, x: Tensor) -> Tensor:
        powers = T.exp(x - T.max(x, -1, keepdim=True))
        return powers / powers.sum(-1, keepdim=True)

    def _inverse(self, y: Tensor) -> Tensor:
        return T.log(y)


class StackTransform(Transform):
    """One function for each position along an axis.

    Args:
        transforms: the functions.
        axis: the axis.
    """

    def __init__(self, transforms: Sequence[Transform], axis: int = 0) -> None:
        if not transforms or not all(isinstance(t, Transform) for t in transforms):
            raise ArgumentTypeError(
                message("StackTransform(): transforms is empty or holds something else", "it must hold Transforms")
            )
        self._transforms, self._axis = list(transforms), int(axis)

    @property
    def transforms(self) -> list[Transform]:
        """The functions."""
        return self._transforms

    @property
    def axis(self) -> int:
        """The axis."""
        return self._axis

    def _each(self, method: str, x: Tensor) -> Tensor:
        if not -x.ndim <= self._axis < x.ndim or x.shape[self._axis] != len(self._transforms):
            raise ShapeError(
                message(
                    f"StackTransform.{method}(): the value has shape {list(x.shape)}",
                    f"axis {self._axis} must have length {len(self._transforms)}",
                )
            )
        parts = T.unstack(x, self._axis)
        return T.stack([getattr(t, method)(part) for t, part in zip(self._transforms, parts, strict=True)], self._axis)

    def _forward(self, x: Tensor) -> Tensor:
        return self._each("forward", x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._each("inverse", y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return self._each("forward_log_det_jacobian", x)


class StickBreakingTransform(Transform):
    """k numbers as k + 1 positive ones that sum to 1: each breaks its share off what is left of a stick."""

    _domain_rank = _codomain_rank = 1

    @staticmethod
    def _offset(x: Tensor) -> Tensor:
        count = x.shape[-1]
        return T.log(T.arange(count, 0, -1, dtype=x.dtype))

    def _forward(self, x: Tensor) -> Tensor:
        share = OPS["sigmoid"](x - self._offset(x))
        one = T.ones([*x.shape[:-1], 1], x.dtype)
        return T.concat([share, one], -1) * T.concat([one, T.cumprod(1 - share, -1)], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        kept = y[..., :-1]
        left = 1 - T.cumsum(kept, -1)
        return T.log(kept) - T.log(left) + self._offset(kept)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        y, z = self.forward(x), x - self._offset(x)
        return (-_softplus(z) + T.log(y[..., :-1])).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """One element more on the last axis."""
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """One element less on the last axis."""
        return (*shape[:-1], shape[-1] - 1)


class TanhTransform(Transform):
    """tanh(x)."""

    def _forward(self, x: Tensor) -> Tensor:
        return T.tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return T.atanh(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return 2 * (math.log(2) - x - _softplus(-2 * x))
