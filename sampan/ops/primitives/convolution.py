"""Convolution and its two gradients, 1-, 2- and 3-d: grouped, dilated, strided, with asymmetric padding. Layouts are strides; shapes are channels-first."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import ShapeError, message
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, append, gradient_of, primitive, same_dtype

Sizes = tuple[int, ...]


def output_sizes(sizes: Sizes, kernel: Sizes, strides: Sizes, low: Sizes, high: Sizes, dilations: Sizes) -> Sizes:
    """The spatial sizes of a convolution's or pooling's result."""
    return tuple(
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, k, s, a, b, d in zip(sizes, kernel, strides, low, high, dilations, strict=True)
    )


def _infer_conv(op: Op) -> list[Type]:
    x, w = op.inputs
    a = op.attributes
    groups = a["groups"]
    if x.ndim != w.ndim or x.ndim < 3:
        raise ShapeError(
            message(
                f"conv{x.ndim - 2}d(): x is {list(x.shape)} and weight {list(w.shape)}", "they must have equal ranks, of 3 to 5"
            )
        )
    if groups < 1 or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ShapeError(
            message(
                f"conv{x.ndim - 2}d(): x has {x.shape[1]} channels, the weight is {list(w.shape)} with groups={groups}",
                "the weight's second axis must be channels / groups, and its first a multiple of groups",
                "check in_channels, and data_format if x is channels-last",
            )
        )
    sizes = output_sizes(x.shape[2:], w.shape[2:], a["strides"], a["padding_low"], a["padding_high"], a["dilations"])
    if any(n < 1 for n in sizes) and x.numel:
        raise ShapeError(
            message(
                f"conv{x.ndim - 2}d(): the kernel {list(w.shape[2:])} is larger than the padded input", f"x is {list(x.shape)}"
            )
        )
    return [(same_dtype(op), (x.shape[0], w.shape[0], *(max(n, 0) for n in sizes)))]


def _padded(x: Array, low: Sizes, high: Sizes, value: Any = 0) -> Array:
    return np.pad(x, [(0, 0), (0, 0), *zip(low, high, strict=True)], constant_values=value)


def windows(x: Array, kernel: Sizes, strides: Sizes, dilations: Sizes, sizes: Sizes) -> Array:
    """[N, C, *out, *kernel]: every window of a padded x, as a view."""
    spatial = x.strides[2:]
    shape = (*x.shape[:2], *sizes, *kernel)
    steps = (
        *x.strides[:2],
        *(s * t for s, t in zip(spatial, strides, strict=True)),
        *(s * d for s, d in zip(spatial, dilations, strict=True)),
    )
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    return np.lib.stride_tricks.as_strided(x, shape, steps, writeable=False)


def _wide(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


@primitive("native", _infer_conv, name="conv")
def _conv(x: Array, w: Array, strides: Sizes, padding_low: Sizes, padding_high: Sizes, dilations: Sizes, groups: int) -> Array:
    dtype = x.dtype
    sizes = output_sizes(x.shape[2:], w.shape[2:], strides, padding_low, padding_high, dilations)
    patches = windows(_padded(_wide(x), padding_low, padding_high), w.shape[2:], strides, dilations, sizes)
    rank = len(sizes)
    wide = _wide(w)
    parts = []
    for g in range(groups):
        c, o = w.shape[1], w.shape[0] // groups
        part = patches[:, g * c : (g + 1) * c]
        axes = [1, *range(2 + rank, 2 + 2 * rank)]
        parts.append(np.moveaxis(np.tensordot(part, wide[g * o : (g + 1) * o], (axes, list(range(1, 2 + rank)))), -1, 1))
    return np.concatenate(parts, axis=1).astype(dtype, copy=False)


@primitive("native", lambda op: [(same_dtype(op), op.attributes["input_shape"])], name="conv_backward_data")
def _conv_backward_data(
    g: Array, w: Array, input_shape: Sizes, strides: Sizes, padding_low: Sizes, padding_high: Sizes, dilations: Sizes, groups: int
) -> Array:
    dtype = g.dtype
    padded = [n + a + b for n, a, b in zip(input_shape[2:], padding_low, padding_high, strict=True)]
    result = np.zeros((input_shape[0], input_shape[1], *padded), np.float64 if dtype == np.float64 else np.float32)
    o, c = w.shape[0] // groups, w.shape[1]
    wide_g, wide_w = _wide(g), _wide(w)
    for position in np.ndindex(*w.shape[2:]):
        where = tuple(
            slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, s, n in zip(position, dilations, strides, g.shape[2:], strict=True)
        )
        for q in range(groups):
            tap = wide_w[(slice(q * o, (q + 1) * o), slice(None), *position)]
            part = np.moveaxis(np.tensordot(wide_g[:, q * o : (q + 1) * o], tap, ([1], [0])), -1, 1)
            result[(slice(None), slice(q * c, (q + 1) * c), *where)] += part
    crop = tuple(slice(a, a + n) for a, n in zip(padding_low, input_shape[2:], strict=True))
    return result[(slice(None), slice(None), *crop)].astype(dtype)


@primitive("native", lambda op: [(same_dtype(op), op.attributes["weight_shape"])], name="conv_backward_weights")
def _conv_backward_weights(
    x: Array,
    g: Array,
    weight_shape: Sizes,
    strides: Sizes,
    padding_low: Sizes,
    padding_high: Sizes,
    dilations: Sizes,
    groups: int,
) -> Array:
    dtype = x.dtype
    rank = len(strides)
    patches = windows(_padded(_wide(x), padding_low, padding_high), weight_shape[2:], strides, dilations, g.shape[2:])
    wide = _wide(g)
    c, o = weight_shape[1], weight_shape[0] // groups
    spatial = [0, *range(2, 2 + rank)]
    parts = [
        np.tensordot(wide[:, q * o : (q + 1) * o], patches[:, q * c : (q + 1) * c], (spatial, spatial)) for q in range(groups)
    ]
    return np.concatenate(parts, axis=0).astype(dtype, copy=False)


def conv(x: Value, w: Value, strides: Sizes, low: Sizes, high: Sizes, dilations: Sizes, groups: int) -> Value:
    """x [N, I, s...] by w [O, I / groups, k...]: [N, O, o...]."""
    return append("conv", x, w, strides=strides, padding_low=low, padding_high=high, dilations=dilations, groups=groups)


def conv_backward_data(
    g: Value, w: Value, input_shape: Sizes, strides: Sizes, low: Sizes, high: Sizes, dilations: Sizes, groups: int
) -> Value:
    """The gradient of a convolution's input; also the transposed convolution of g."""
    return append(
        "conv_backward_data",
        g,
        w,
        input_shape=tuple(input_shape),
        strides=strides,
        padding_low=low,
        padding_high=high,
        dilations=dilations,
        groups=groups,
    )


def conv_backward_weights(
    x: Value, g: Value, weight_shape: Sizes, strides: Sizes, low: Sizes, high: Sizes, dilations: Sizes, groups: int
) -> Value:
    """The gradient of a convolution's weight."""
    return append(
        "conv_backward_weights",
        x,
        g,
        weight_shape=tuple(weight_shape),
        strides=strides,
        padding_low=low,
        padding_high=high,
        dilations=dilations,
        groups=groups,
    )


def _window(op: Op) -> tuple[Sizes, Sizes, Sizes, Sizes, int]:
    a: dict[str, Any] = op.attributes
    return a["strides"], a["padding_low"], a["padding_high"], a["dilations"], a["groups"]


@gradient_of("conv")
def _conv_gradient(op: Op, g: Value) -> Gradients:
    x, w = op.inputs
    return conv_backward_data(g, w, x.shape, *_window(op)), conv_backward_weights(x, g, w.shape, *_window(op))


@gradient_of("conv_backward_data")
def _data_gradient(op: Op, u: Value) -> Gradients:
    g, w = op.inputs
    return conv(u, w, *_window(op)), conv_backward_weights(u, g, w.shape, *_window(op))


@gradient_of("conv_backward_weights")
def _weights_gradient(op: Op, u: Value) -> Gradients:
    x, g = op.inputs
    return conv_backward_data(g, u, x.shape, *_window(op)), conv(x, u, *_window(op))


__all__ = ["conv", "conv_backward_data", "conv_backward_weights", "output_sizes", "windows"]
