"""Gradients clipped in place."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...base.errors import ArgumentError, AutogradError, message
from ...base.kinds import NotNegative
from ...tensor import OPS, Tensor, to_tensor
from ...tensor.functions import no_grad
from ...tensor.runs import squared_norm


def _with_gradients(parameters: Iterable[Tensor] | Tensor) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p for p in given if p.grad is not None]


@no_grad()
def clip_grad_norm_(
    parameters: Iterable[Tensor] | Tensor, max_norm: NotNegative, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scale all gradients, in place, so that their norm as one vector is at most max_norm.

    Args:
        parameters: a Tensor or several; those without a gradient are left out.
        max_norm: the largest norm.
        norm_type: of the norm; may be infinite.
        error_if_nonfinite: raise when the norm is NaN or infinite.

    Returns:
        The norm before clipping.

    Raises:
        AutogradError: the norm is not finite and ``error_if_nonfinite``.
        ArgumentError: max_norm is negative.
    """
    found = _with_gradients(parameters)
    if not found:
        return to_tensor(0.0)
    grads = [p.grad for p in found]
    if norm_type == 2:
        total = OPS["sqrt"](squared_norm(grads))
    else:
        norms = OPS["stack"]([OPS["cast"](OPS["vector_norm"](g, float(norm_type)), "float32") for g in grads])
        total = OPS["max"](norms) if norm_type == math.inf else OPS["vector_norm"](norms, float(norm_type))
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise AutogradError(
            message(
                f"clip_grad_norm_(): the norm of the gradients is {total.item()}",
                "",
                "lower the learning rate, or look for the layer that overflows",
            )
        )
    factor = OPS["minimum"](OPS["divide"](to_tensor(float(max_norm), total.dtype), total + 1e-6), to_tensor(1.0, total.dtype))
    for g in grads:
        g.set_value(g * OPS["cast"](factor, g.dtype.name))
    return total


@no_grad()
def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: float) -> None:
    """Keep every element of the gradients in [-clip_value, clip_value], in place."""
    if clip_value < 0:
        raise ArgumentError(message(f"clip_grad_value_(): clip_value={clip_value}", "it must not be negative"))
    for p in _with_gradients(parameters):
        p.grad.set_value(OPS["clip"](p.grad, -float(clip_value), float(clip_value)))


__all__ = ["clip_grad_norm_", "clip_grad_value_"]
