"""Weights reparameterised: by length and direction, or divided by their largest singular value. A hook recomputes them before every call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base.errors import ArgumentError, message
from ...tensor import OPS, Parameter, Tensor, to_tensor
from ...tensor.functions import no_grad
from ..initializer import Normal
from ..layer.common import Linear
from ..layer.conv import Conv1DTranspose, Conv2DTranspose, Conv3DTranspose
from ..layer.layers import HookRemoveHelper, Layer
from ..layer.norm import spectrally_normalized


def _length(v: Tensor, dim: int | None) -> Tensor:
    """The norm of v over all axes but ``dim`` (kept flat), or over all."""
    axes = None if dim is None else [k for k in range(len(v.shape)) if k != dim]
    total = OPS["sum"](v * v, axes)
    return OPS["sqrt"](total)


class _WeightNorm:
    """Recomputes g * v / |v| as the layer's weight."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim
        self.handle: HookRemoveHelper | None = None

    def weight(self, layer: Layer) -> Tensor:
        v, g = getattr(layer, f"{self.name}_v"), getattr(layer, f"{self.name}_g")
        factor = g / _length(v, self.dim)
        if self.dim is not None:
            factor = OPS["reshape"](factor, [-1 if k == self.dim else 1 for k in range(len(v.shape))])
        return v * factor

    def __call__(self, layer: Layer, inputs: Any) -> None:
        object.__setattr__(layer, self.name, self.weight(layer))


def _taken(layer: Layer, name: str, function: str) -> Tensor:
    weight = layer._parameters.get(name)
    if weight is None:
        raise ArgumentError(
            message(
                f"{function}(): {type(layer).__name__} has no parameter {name!r}",
                f"it has {', '.join(layer._parameters) or 'none'}",
            )
        )
    del layer._parameters[name]
    return weight


def _rules(layer: Layer) -> list[Any]:
    return [hook.function for hook in layer._forward_pre_hooks.values()]


def _norms(layer: Layer) -> dict[str, _WeightNorm]:
    return {h.name: h for h in _rules(layer) if isinstance(h, _WeightNorm)}


def weight_norm(layer: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Train the weight as a length ``weight_g`` and a direction ``weight_v``; gives the layer.

    Args:
        layer: has a parameter of this name.
        name: the parameter.
        dim: the axis along which lengths are separate; None: one length.

    Source: T. Salimans, D. Kingma, https://arxiv.org/abs/1602.07868
    """
    if name in _norms(layer):
        raise ArgumentError(f"weight_norm(): {type(layer).__name__}.{name} has a weight norm already")
    weight = _taken(layer, name, "weight_norm")
    rank = len(weight.shape)
    if dim is not None and not -rank <= dim < rank:
        raise ArgumentError(message(f"weight_norm(): dim={dim}", f"the weight has {rank} axes"))
    rule = _WeightNorm(name, None if dim in (None, -1) else dim % rank)
    with no_grad():
        layer.add_parameter(f"{name}_v", Parameter(to_tensor(weight), weight.trainable, f"{weight.name}_v"))
        layer.add_parameter(f"{name}_g", Parameter(_length(weight, rule.dim), weight.trainable, f"{weight.name}_g"))
    rule(layer, ())
    rule.handle = layer.register_forward_pre_hook(rule)
    return layer


def remove_weight_norm(layer: Layer, name: str = "weight") -> Layer:
    """Make the weight a plain parameter again, of its present value; gives the layer."""
    rule = _norms(layer).get(name)
    if rule is None:
        raise ArgumentError(message(f"remove_weight_norm(): {type(layer).__name__}.{name} has no weight norm"))
    with no_grad():
        weight = rule.weight(layer)
    old = layer._parameters.pop(f"{name}_v")
    layer._parameters.pop(f"{name}_g")
    layer.__dict__.pop(name, None)
    if rule.handle is not None:
        rule.handle.remove()
    layer.add_parameter(
        name,
        Parameter(weight, old.trainable if old is not None else True, old.name.removesuffix("_v") if old is not None else None),
    )
    return layer


class _SpectralNorm:
    """Recomputes the layer's weight divided by its largest singular value; training also improves the vectors."""

    def __init__(self, name: str, n_power_iterations: int, eps: float, dim: int) -> None:
        self.name, self.n_power_iterations, self.eps, self.dim = name, n_power_iterations, eps, dim

    def __call__(self, layer: Layer, inputs: Any) -> None:
        original, u, v = (getattr(layer, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        steps = self.n_power_iterations if layer.training else 0
        object.__setattr__(layer, self.name, spectrally_normalized(original, u, v, self.dim, steps, self.eps))


def spectral_norm(
    layer: Layer, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Layer:
    """Divide the weight by its largest singular value, found by power iteration, before every call; gives the layer.

    Args:
        layer: has a parameter of this name.
        name: the parameter; it becomes ``weight_orig``.
        n_power_iterations: a training call.
        eps: the smallest norm to divide by.
        dim: the axis that becomes the matrix's rows: by default 1 for Linear and transposed convolutions, else 0.

    Source: T. Miyato et al., https://arxiv.org/abs/1802.05957
    """
    if n_power_iterations < 1:
        raise ArgumentError(message(f"spectral_norm(): n_power_iterations={n_power_iterations}", "it must be positive"))
    if any(isinstance(h, _SpectralNorm) and h.name == name for h in _rules(layer)):
        raise ArgumentError(f"spectral_norm(): {type(layer).__name__}.{name} has a spectral norm already")
    weight = _taken(layer, name, "spectral_norm")
    if dim is None:
        dim = int(isinstance(layer, (Linear, Conv1DTranspose, Conv2DTranspose, Conv3DTranspose)))
    rows = weight.shape[dim]
    layer.add_parameter(f"{name}_orig", weight)
    for part, size in (("u", rows), ("v", math.prod(weight.shape) // max(rows, 1))):
        drawn = Normal(0.0, 1.0).values([size])
        layer.register_buffer(f"{name}_{part}", to_tensor((drawn / max(float(np.linalg.norm(drawn)), eps)).astype("float32")))
    rule = _SpectralNorm(name, n_power_iterations, eps, dim)
    rule(layer, ())
    layer.register_forward_pre_hook(rule)
    return layer


__all__ = ["remove_weight_norm", "spectral_norm", "weight_norm"]
