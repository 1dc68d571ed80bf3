"""Views: other index maps over the same elements; no data moves. And sources: values that no tensor's data gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base import dtypes
from ...base.errors import ShapeError, message
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, Primitive, append, constant, expand_to, gradient_of, primitive, register
from .reductions import reduce_sum


def _infer_reshape(op: Op) -> list[Type]:
    x, shape = op.inputs[0], op.attributes["shape"]
    if math.prod(shape) != x.numel:
        raise ShapeError(
            f"reshape: {list(x.shape)} has {x.numel} elements and cannot become {list(shape)}, which has {math.prod(shape)}"
        )
    return [(x.dtype, shape)]


@primitive("view", _infer_reshape, name="reshape")
def _reshape(x: Array, shape: tuple[int, ...]) -> Array:
    return x.reshape(shape)


def _infer_transpose(op: Op) -> list[Type]:
    x, order = op.inputs[0], op.attributes["order"]
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(
            message(
                f"transpose(): perm {list(order)} does not fit a tensor of shape {list(x.shape)}",
                f"it must name each of the {x.ndim} axes once",
            )
        )
    return [(x.dtype, tuple(x.shape[k] for k in order))]


@primitive("view", _infer_transpose, name="transpose")
def _transpose(x: Array, order: tuple[int, ...]) -> Array:
    return x.transpose(order)


def _infer_broadcast(op: Op) -> list[Type]:
    x, shape = op.inputs[0], op.attributes["shape"]
    lead = len(shape) - x.ndim
    if lead < 0 or any(a != b and a != 1 for a, b in zip(x.shape, shape[lead:], strict=True)):
        raise ShapeError(
            message(
                f"a tensor of shape {list(x.shape)} does not broadcast to {list(shape)}",
                "each axis, matched from the last, must be equal or 1",
            )
        )
    return [(x.dtype, shape)]


@primitive("view", _infer_broadcast, name="broadcast_to")
def _broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(x, shape)


def _infer_slice(op: Op) -> list[Type]:
    x = op.inputs[0]
    starts, sizes, steps = (op.attributes[k] for k in ("starts", "sizes", "steps"))
    for k, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True)):
        last = start + (size - 1) * step
        if size < 0 or (size and not (0 <= start < x.shape[k] and 0 <= last < x.shape[k])):
            raise ShapeError(f"slice: axis {k} of {list(x.shape)} has no elements {start} to {last} by {step}")
    return [(x.dtype, sizes)]


def slice_index(starts: tuple[int, ...], sizes: tuple[int, ...], steps: tuple[int, ...]) -> tuple[slice, ...]:
    """The NumPy slices that take ``sizes`` elements from ``starts`` by ``steps``."""
    index = []
    for start, size, step in zip(starts, sizes, steps, strict=True):
        stop: int | None = start + size * step
        if size == 0:
            start, stop, step = 0, 0, 1
        elif step < 0 and stop is not None and stop < 0:
            stop = None
        index.append(slice(start, stop, step))
    return tuple(index)


@primitive("view", _infer_slice, name="slice")
def _slice(x: Array, starts: tuple[int, ...], sizes: tuple[int, ...], steps: tuple[int, ...]) -> Array:
    return x[slice_index(starts, sizes, steps)]


def reshape(x: Value, shape: tuple[int, ...]) -> Value:
    """x with another shape of as many elements; x itself when the shape is its own."""
    return x if x.shape == tuple(shape) else append("reshape", x, shape=tuple(shape))


def transpose(x: Value, order: tuple[int, ...]) -> Value:
    """x with axes in this order."""
    return x if tuple(order) == tuple(range(x.ndim)) else append("transpose", x, order=tuple(order))


def broadcast_to(x: Value, shape: tuple[int, ...]) -> Value:
    """x with axes of length 1, and missing leading axes, repeated."""
    return expand_to(x, tuple(shape))


def slice_(x: Value, starts: tuple[int, ...], sizes: tuple[int, ...], steps: tuple[int, ...]) -> Value:
    """``sizes`` elements from ``starts`` by ``steps`` (negative steps walk back); x itself when that is all of it."""
    if tuple(sizes) == x.shape and all(s == 1 for s in steps):
        return x
    return append("slice", x, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))


def swap_last(x: Value) -> Value:
    """x with its last two axes swapped."""
    return transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@gradient_of("reshape")
def _reshape_gradient(op: Op, g: Value) -> Gradients:
    return (reshape(g, op.inputs[0].shape),)


@gradient_of("transpose")
def _transpose_gradient(op: Op, g: Value) -> Gradients:
    order = op.attributes["order"]
    inverse = [0] * len(order)
    for k, axis in enumerate(order):
        inverse[axis] = k
    return (transpose(g, tuple(inverse)),)


@gradient_of("broadcast_to")
def _broadcast_gradient(op: Op, g: Value) -> Gradients:
    return (sum_to(g, op.inputs[0].shape),)


def sum_to(g: Value, shape: tuple[int, ...]) -> Value:
    """g summed over the axes that broadcasting from ``shape`` repeated."""
    lead = g.ndim - len(shape)
    axes = tuple(k for k in range(g.ndim) if k < lead or (shape[k - lead] == 1 and g.shape[k] != 1))
    return reshape(reduce_sum(g, axes) if axes else g, shape)


@gradient_of("slice")
def _slice_gradient(op: Op, g: Value) -> Gradients:
    x = op.inputs[0]
    starts, sizes, steps = (op.attributes[k] for k in ("starts", "sizes", "steps"))
    if all(step == 1 for step in steps):
        high = tuple(n - s - m for n, s, m in zip(x.shape, starts, sizes, strict=True))
        return (append("pad", g, low=tuple(starts), high=high, value=0),)
    return (append("insert_slice", full(x.shape, 0, g.dtype), g, starts=starts, sizes=sizes, steps=steps),)


# ------------------------------------------------------------------ sources

register(
    Primitive(
        "constant",
        "source",
        lambda op: [(op.attributes["dtype"], ())],
        lambda value, dtype: np.asarray(value).astype(dtypes.numpy_dtype(dtype)),
    )
)


def full(shape: tuple[int, ...], value: Any, dtype: str) -> Value:
    """A tensor of one repeated number."""
    return expand_to(constant(value, dtype), tuple(shape))


@primitive("source", lambda op: [(op.attributes["dtype"], op.attributes["shape"])], name="iota")
def _iota(shape: tuple[int, ...], axis: int, dtype: str) -> Array:
    index = np.arange(shape[axis]).astype(dtypes.numpy_dtype(dtype))
    return np.broadcast_to(index.reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape)


def iota(shape: tuple[int, ...], axis: int, dtype: str = "int64") -> Value:
    """The position along ``axis``, at every element."""
    return append("iota", shape=tuple(shape), axis=axis, dtype=dtype)


class ArrayData:
    """An array as an attribute: equal and printed alike for equal contents."""

    def __init__(self, array: Array) -> None:
        self.array = np.ascontiguousarray(array)
        self.array.flags.writeable = False
        import hashlib  # OpenSSL's library comes with it: only for Programs that hold arrays

        self.digest = hashlib.sha256(f"{self.array.dtype}{self.array.shape}".encode() + self.array.tobytes()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayData) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"array({self.array.dtype.name}{list(self.array.shape)}, {self.digest})"


register(
    Primitive(
        "literal",
        "literal",
        lambda op: [(op.attributes["value"].array.dtype.name, op.attributes["value"].array.shape)],
        lambda value: value.array,
    )
)


def literal(array: Array) -> Value:
    """The elements of an array that is known while the Program is built; the array is copied."""
    return append("literal", value=ArrayData(np.array(array)))


def philox_bits(key: int, counter: Array) -> Array:
    """32 random bits for every int64 counter, by Philox 4x32-10: word ``counter % 4`` of block ``counter // 4``.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """
    low32 = np.uint64(0xFFFFFFFF)
    block = (counter // 4).astype(np.uint64)
    c = [block & low32, block >> np.uint64(32), np.zeros_like(block), np.zeros_like(block)]
    k0, k1 = np.uint64(key & 0xFFFFFFFF), np.uint64((key >> 32) & 0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ k0, p1 & low32, (p0 >> np.uint64(32)) ^ c[3] ^ k1, p0 & low32]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low32, (k1 + np.uint64(0xBB67AE85)) & low32
    return np.choose((counter % 4).astype(np.intp), c).astype(np.int64)


@primitive("map", lambda op: [("int64", op.inputs[1].shape)], name="random_bits")
def _random_bits(key: Array, counter: Array) -> Array:
    return philox_bits(int(key.flat[0]) if key.size else 0, counter)


def random_bits(key: Value, shape: tuple[int, ...], stream: int = 0, streams: int = 1) -> Value:
    """32 random bits (an int64 in [0, 2^32)) for every element, a function of the key and the element's position only.

    An operator that needs several numbers an element takes ``streams`` and draws each stream once.
    """
    from .maps import add, mul

    counter = full(shape, 0, "int64")
    step = 1
    for axis in reversed(range(len(shape))):
        counter = add(counter, mul(iota(shape, axis), step))
        step *= shape[axis]
    counter = add(mul(counter, streams), stream)
    return append("random_bits", expand_to(key, tuple(shape)), counter)


@primitive("view", lambda op: [(op.inputs[0].dtype, op.inputs[0].shape)], lambda op, g: (None,), name="detach")
def _detach(x: Array) -> Array:
    return x


def detach(x: Value) -> Value:
    """x, through which no gradient flows; once gradients are taken ``simplify_algebra`` removes it."""
    return append("detach", x)


@primitive("order", lambda op: [(op.inputs[0].dtype, op.inputs[0].shape)])
def after(x: Array, late: Array) -> Array:
    """x itself, for readers that run once ``late`` is known; no data moves. Passes append it."""
    return x
