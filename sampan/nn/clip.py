"""Gradient clipping: by value, by norm, by the norm over all gradients."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..tensor import OPS, Tensor
from ..tensor.explained import Explained
from ..tensor.functions import no_grad
from ..tensor.runs import scaled_to_norm, squared_norm
from ..tensor.selected_rows import merged, selected_places, with_values

Pairs = Sequence[tuple[Tensor, Tensor | None]]


class ClipGradBase(Explained):
    """The base of clipping rules: called on (parameter, gradient) pairs it gives pairs with clipped gradients.

    A pair whose gradient is None, or whose parameter has ``need_clip`` False, stays as it is.
    """

    @no_grad()
    def __call__(self, params_grads: Pairs) -> list[tuple[Tensor, Tensor | None]]:
        touched = [k for k, (p, g) in enumerate(params_grads) if g is not None and getattr(p, "need_clip", True)]
        if not touched:
            return list(params_grads)
        grads = [params_grads[k][1] for k in touched]
        rows = {
            k: merged(grads[k], is_padded=True) for k in selected_places(grads)
        }  # an element's value is the sum over equal rows
        for k, grad in rows.items():
            grads[k] = grad
        results = list(self._clipped(grads))
        for k, grad in rows.items():
            results[k] = with_values(grad, results[k])
        clipped = dict(zip(touched, results, strict=True))
        return [(p, clipped.get(k, g)) for k, (p, g) in enumerate(params_grads)]

    def _clipped(self, grads: list[Any]) -> list[Tensor]:
        """The gradients, clipped; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} defines no _clipped()")


def _positive(name: str, parameter: str, value: Any) -> float:
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentTypeError(message(f"{name}: {parameter} is a {type(value).__name__}", "it must be a number"))
    if not value >= 0:
        raise ArgumentError(message(f"{name}: {parameter}={value}", "it must not be negative"))
    return float(value)


class ClipGradByValue(ClipGradBase):
    """Every element kept in [min, max].

    Args:
        max: the largest value.
        min: the smallest; -max by default.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.ClipGradByValue(max=1.0, min=-0.5)
        Clip Gradient By Value, min = -0.500000, max=1.000000
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        if min is None:
            if not max > 0:
                raise ArgumentError(message(f"ClipGradByValue: max={max}", "without min it must be positive"))
            min = -max
        if min > max:
            raise ArgumentError(message(f"ClipGradByValue: min={min} is above max={max}"))
        self.max, self.min = float(max), float(min)

    def _clipped(self, grads: list[Any]) -> list[Tensor]:
        return [OPS["clip"](g, self.min, self.max) for g in grads]

    def __repr__(self) -> str:
        return f"Clip Gradient By Value, min = {self.min:f}, max={self.max:f}"


class ClipGradByNorm(ClipGradBase):
    """Each gradient whose Euclidean norm is above clip_norm scaled down to it; a zero gradient stays zero.

    Args:
        clip_norm: the largest norm.
    """

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = _positive("ClipGradByNorm", "clip_norm", clip_norm)

    def _clipped(self, grads: list[Any]) -> list[Tensor]:
        return [OPS["scaled_to_norm"]([g], OPS["squared_norm"]([g]), self.clip_norm)[0] for g in grads]

    def __repr__(self) -> str:
        return f"Gradient Clip By Norm, clip_norm={self.clip_norm:f}"


class ClipGradByGlobalNorm(ClipGradBase):
    """All gradients scaled by one factor, so that the Euclidean norm over all of them is at most clip_norm.

    Args:
        clip_norm: the largest norm.
        group_name: accepted for compatibility.
        auto_skip_clip: accepted for compatibility: gradients within the norm are not changed either way.

    Source: R. Pascanu et al., https://arxiv.org/abs/1211.5063
    """

    def __init__(self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False) -> None:
        self.clip_norm = _positive("ClipGradByGlobalNorm", "clip_norm", clip_norm)
        self.group_name, self.auto_skip_clip = group_name, auto_skip_clip

    def _clipped(self, grads: list[Any]) -> list[Tensor]:
        return scaled_to_norm(grads, squared_norm(grads), self.clip_norm)

    def __repr__(self) -> str:
        return f"Gradient Clip By GlobalNorm, global_norm={self.clip_norm:f}"


__all__ = ["ClipGradBase", "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"]
