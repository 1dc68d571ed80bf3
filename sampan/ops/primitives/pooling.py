"""Pooling: the maximum or mean of every window, 1- to 3-d, and the gradients. Shapes are channels-first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base.errors import ShapeError, message
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, append, gradient_of, primitive
from .moves import gather_elements
from .views import reshape

Sizes = tuple[int, ...]


def _infer_pool(op: Op) -> list[Type]:
    x, sizes = op.inputs[0], op.attributes["sizes"]
    if x.ndim < 3 or len(sizes) != x.ndim - 2 or any(n < 1 for n in sizes):
        raise ShapeError(
            message(
                f"pool(): x is {list(x.shape)}, the result's spatial sizes would be {list(sizes)}",
                "the kernel is larger than the padded input",
            )
        )
    return [(x.dtype, (*x.shape[:2], *sizes))]


def _bounds(op_kind: str, length: int, i: int, k: int, attributes: dict[str, Any], axis: int) -> tuple[range, int]:
    """The positions of window i inside the axis, and how many it counts with padding."""
    if op_kind == "adaptive":
        o = attributes["sizes"][axis]
        first, last = i * length // o, -(-(i + 1) * length // o)
        return range(first, last), last - first
    low, high = attributes["padding_low"][axis], attributes["padding_high"][axis]
    step, dilation = attributes["strides"][axis], attributes.get("dilations", (1,) * (axis + 1))[axis]
    start = i * step - low
    positions = range(start, start + k * dilation, dilation)
    inside = [p for p in positions if 0 <= p < length]
    counted = sum(1 for p in positions if p < length + high)
    return (range(inside[0], inside[-1] + 1, dilation) if inside else range(0)), counted


def _windows(x_shape: Sizes, attributes: dict[str, Any]) -> Iterator[tuple[Sizes, tuple[range, ...], int]]:
    """(output position, the window's ranges, how many elements it counts with padding)."""
    kind = "adaptive" if "kernel" not in attributes else "window"
    kernel = attributes.get("kernel", attributes["sizes"])
    for position in np.ndindex(*attributes["sizes"]):
        parts = [
            _bounds(kind, n, i, k, attributes, axis)
            for axis, (n, i, k) in enumerate(zip(x_shape[2:], position, kernel, strict=True))
        ]
        count = 1
        for _, c in parts:
            count *= c
        yield position, tuple(r for r, _ in parts), count


def _mesh(ranges: tuple[range, ...]) -> tuple[Any, ...]:
    return (slice(None), slice(None), *np.ix_(*(np.asarray(list(r), np.int64) for r in ranges)))


def _infer_max(op: Op) -> list[Type]:
    ((dtype, shape),) = _infer_pool(op)
    return [(dtype, shape), ("int64", shape)]


@primitive("native", _infer_max, name="max_pool")
def _max_pool(x: Array, **attributes: Any) -> tuple[Array, Array]:
    shape = (*x.shape[:2], *attributes["sizes"])
    values, indices = np.empty(shape, x.dtype), np.zeros(shape, np.int64)
    for position, ranges, _ in _windows(x.shape, attributes):
        where = _mesh(ranges)
        window = x[where].reshape(*x.shape[:2], -1)
        flat = np.ravel_multi_index(tuple(np.meshgrid(*ranges, indexing="ij")), x.shape[2:]).reshape(-1)
        best = np.argmax(window, axis=-1)
        values[(slice(None), slice(None), *position)] = np.take_along_axis(window, best[..., None], -1)[..., 0]
        indices[(slice(None), slice(None), *position)] = flat[best]
    return values, indices


@primitive("native", lambda op: [(op.inputs[0].dtype, op.attributes["input_shape"])], name="max_unpool")
def _max_unpool(g: Array, indices: Array, input_shape: Sizes) -> Array:
    n, c = input_shape[:2]
    flat = np.zeros((n * c, int(np.prod(input_shape[2:]))), np.float64 if g.dtype == np.float64 else np.float32)
    rows = np.arange(n * c)[:, None]
    np.add.at(flat, (rows, indices.reshape(n * c, -1)), g.reshape(n * c, -1).astype(flat.dtype))
    return flat.reshape(input_shape).astype(g.dtype)


@primitive("native", _infer_pool, name="avg_pool")
def _avg_pool(x: Array, **attributes: Any) -> Array:
    result = np.empty((*x.shape[:2], *attributes["sizes"]), x.dtype)
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    for position, ranges, count in _windows(x.shape, attributes):
        window = wide[_mesh(ranges)]
        result[(slice(None), slice(None), *position)] = window.sum(axis=tuple(range(2, x.ndim))) / _divisor(
            attributes, ranges, count
        )
    return result


def _divisor(attributes: dict[str, Any], ranges: tuple[range, ...], count: int) -> int:
    if attributes.get("divisor_override"):
        return int(attributes["divisor_override"])
    inside = int(np.prod([len(r) for r in ranges]))
    return max(count if attributes.get("count_include_pad", 1) and "kernel" in attributes else inside, 1)


@primitive("native", lambda op: [(op.inputs[0].dtype, op.attributes["input_shape"])], name="avg_pool_backward")
def _avg_pool_backward(g: Array, input_shape: Sizes, **attributes: Any) -> Array:
    result = np.zeros(input_shape, np.float64 if g.dtype == np.float64 else np.float32)
    for position, ranges, count in _windows(input_shape, attributes):
        part = g[(slice(None), slice(None), *position)].astype(result.dtype) / _divisor(attributes, ranges, count)
        result[_mesh(ranges)] += part.reshape(*part.shape, *(1,) * len(ranges))
    return result.astype(g.dtype)


def max_pool(x: Value, **attributes: Any) -> tuple[Value, Value]:
    """(values, int64 positions in the flattened spatial axes) of every window's maximum; the first winner, NaN wins.

    attributes: ``sizes`` (the result's), and ``kernel``, ``strides``, ``padding_low``, ``padding_high``, ``dilations``; without ``kernel`` the windows are adaptive.
    """
    values, indices = append("max_pool", x, **attributes)
    return values, indices


def avg_pool(x: Value, **attributes: Any) -> Value:
    """The mean of every window; attributes as for ``max_pool`` without dilations, and ``count_include_pad``, ``divisor_override``."""
    return append("avg_pool", x, **attributes)


def max_unpool(g: Value, indices: Value, input_shape: Sizes) -> Value:
    """g added at the positions; zeros elsewhere."""
    return append("max_unpool", g, indices, input_shape=tuple(input_shape))


@gradient_of("max_pool")
def _max_gradient(op: Op, g: Value | None, _: Value | None) -> Gradients:
    return (None if g is None else max_unpool(g, op.outputs[1], op.inputs[0].shape),)


@gradient_of("max_unpool")
def _unpool_gradient(op: Op, u: Value) -> Gradients:
    g, indices = op.inputs
    n, c = op.attributes["input_shape"][:2]
    flat = reshape(u, (n, c, u.numel // max(n * c, 1)))
    return reshape(gather_elements(flat, reshape(indices, (n, c, indices.numel // max(n * c, 1))), 2), g.shape), None


@gradient_of("avg_pool")
def _avg_gradient(op: Op, g: Value) -> Gradients:
    return (append("avg_pool_backward", g, input_shape=op.inputs[0].shape, **op.attributes),)


@gradient_of("avg_pool_backward")
def _avg_backward_gradient(op: Op, u: Value) -> Gradients:
    return (append("avg_pool", u, **{k: v for k, v in op.attributes.items() if k != "input_shape"}),)


__all__ = ["avg_pool", "max_pool", "max_unpool"]
