"""Primitives that move elements: pad, concat, slices written into a tensor, gather and scatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base import dtypes
from ...base.errors import DTypeError, IndexRangeError, ShapeError, message
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, append, constant, gradient_of, primitive
from .maps import cast, conj, div, eq, mul, select
from .views import broadcast_to, full, reshape, slice_, slice_index


def _infer_pad(op: Op) -> list[Type]:
    x, low, high = op.inputs[0], op.attributes["low"], op.attributes["high"]
    if any(a < 0 or b < 0 for a, b in zip(low, high, strict=True)):
        raise ShapeError(f"pad: widths {list(low)} and {list(high)} must not be negative")
    return [(x.dtype, tuple(n + a + b for n, a, b in zip(x.shape, low, high, strict=True)))]


@primitive("move", _infer_pad, name="pad")
def _pad(x: Array, low: tuple[int, ...], high: tuple[int, ...], value: Any) -> Array:
    return np.pad(x, list(zip(low, high, strict=True)), constant_values=np.asarray(value).astype(x.dtype))


def pad(x: Value, low: tuple[int, ...], high: tuple[int, ...], value: Any = 0) -> Value:
    """x with ``low`` elements of ``value`` before and ``high`` after it, along every axis."""
    return append("pad", x, low=tuple(low), high=tuple(high), value=value) if any(low) or any(high) else x


@gradient_of("pad")
def _pad_gradient(op: Op, g: Value) -> Gradients:
    x = op.inputs[0]
    return (slice_(g, op.attributes["low"], x.shape, (1,) * x.ndim),)


def _infer_concat(op: Op) -> list[Type]:
    axis, first = op.attributes["axis"], op.inputs[0]
    total = 0
    for v in op.inputs:
        if v.dtype != first.dtype:
            raise DTypeError(f"concat(): operands are {first.dtype} and {v.dtype}; cast one of them first")
        if v.ndim != first.ndim or any(a != b for k, (a, b) in enumerate(zip(v.shape, first.shape, strict=True)) if k != axis):
            raise ShapeError(
                message(
                    f"concat(): operands have shapes {list(first.shape)} and {list(v.shape)}",
                    f"they may differ along axis {axis} only",
                )
            )
        total += v.shape[axis]
    return [(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]))]


@primitive("move", _infer_concat, name="concat")
def _concat(*xs: Array, axis: int) -> Array:
    return np.concatenate(xs, axis=axis)


def concat(xs: list[Value], axis: int) -> Value:
    """The tensors one after another along ``axis``."""
    return xs[0] if len(xs) == 1 else append("concat", *xs, axis=axis)


@gradient_of("concat")
def _concat_gradient(op: Op, g: Value) -> Gradients:
    axis, at, grads = op.attributes["axis"], 0, []
    for v in op.inputs:
        starts = tuple(at if k == axis else 0 for k in range(v.ndim))
        grads.append(slice_(g, starts, v.shape, (1,) * v.ndim))
        at += v.shape[axis]
    return grads


def _infer_insert(op: Op) -> list[Type]:
    x, part = op.inputs
    if part.shape != op.attributes["sizes"] or part.dtype != x.dtype:
        raise ShapeError(
            f"insert_slice: a {part.dtype}{list(part.shape)} does not fill {list(op.attributes['sizes'])} of a {x.dtype}"
        )
    return [(x.dtype, x.shape)]


@primitive("move", _infer_insert, name="insert_slice")
def _insert_slice(x: Array, part: Array, starts: tuple[int, ...], sizes: tuple[int, ...], steps: tuple[int, ...]) -> Array:
    result = x.copy()
    result[slice_index(starts, sizes, steps)] = part
    return result


def insert_slice(x: Value, part: Value, starts: tuple[int, ...], steps: tuple[int, ...]) -> Value:
    """x with ``part`` written over the elements from ``starts`` by ``steps``."""
    return append("insert_slice", x, part, starts=tuple(starts), sizes=part.shape, steps=tuple(steps))


@gradient_of("insert_slice")
def _insert_gradient(op: Op, g: Value) -> Gradients:
    starts, sizes, steps = (op.attributes[k] for k in ("starts", "sizes", "steps"))
    part = slice_(g, starts, sizes, steps)
    zeros = broadcast_to(constant(0, g.dtype), sizes)
    return append("insert_slice", g, zeros, starts=starts, sizes=sizes, steps=steps), part


# ------------------------------------------------------------------ gather and scatter


def check_index(name: str, index: Array, size: int, allow_negative: bool = True) -> Array:
    """The indices with negative ones counted from the end; raises IndexRangeError for one outside the axis."""
    lowest = -size if allow_negative else 0
    outside = (index < lowest) | (index >= size)
    if outside.any():
        at = tuple(int(k) for k in np.argwhere(outside)[0])
        raise IndexRangeError(
            message(
                f"{name}(): index {int(index[at])} at position {list(at)} is outside of an axis of {size}",
                f"valid indices are {lowest} to {size - 1}",
            )
        )
    return np.where(index < 0, index + size, index)


def _sign(allow_negative: bool) -> dict[str, bool]:
    """The attribute of an Op whose index may not be negative; none where negative ones count from the end."""
    return {} if allow_negative else {"allow_negative": False}


def _require_index(op: Op, index: Value) -> None:
    if index.dtype not in ("int32", "int64"):
        raise DTypeError(message(f"{op.name}(): the index is {index.dtype}", "it must be int32 or int64", "cast it first"))


def _infer_gather(op: Op) -> list[Type]:
    x, index = op.inputs
    _require_index(op, index)
    axis = op.attributes["axis"]
    return [(x.dtype, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))]


@primitive("move", _infer_gather, name="gather")
def _gather(x: Array, index: Array, axis: int, allow_negative: bool = True) -> Array:
    return np.take(x, check_index("gather", index, x.shape[axis], allow_negative), axis=axis)


def gather(x: Value, index: Value, axis: int, allow_negative: bool = True) -> Value:
    """Slices of x along ``axis`` at the indices; the axis becomes the index's axes. Negative indices count from the end, or are refused."""
    return append("gather", x, index, axis=axis, **_sign(allow_negative))


_APPLY: dict[str, Callable[..., None]] = {
    "add": np.add.at,
    "mul": np.multiply.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
}


def _write(target: Array, index: Any, updates: Array, mode: str) -> Array:
    if mode == "set":
        target[index] = updates
        return target
    wide = target.astype(np.float32) if target.dtype.itemsize == 2 and target.dtype.kind not in "iub" else target
    _APPLY[mode](wide, index, updates.astype(wide.dtype, copy=False))
    return wide.astype(target.dtype, copy=False)


def _infer_scatter(op: Op) -> list[Type]:
    x, index, updates = op.inputs
    _require_index(op, index)
    axis = op.attributes["axis"]
    wanted = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    if updates.shape != wanted or updates.dtype != x.dtype:
        raise ShapeError(
            message(
                f"scatter(): updates are {updates.dtype}{list(updates.shape)}",
                f"index {list(index.shape)} into {x.dtype}{list(x.shape)} takes {list(wanted)}",
            )
        )
    return [(x.dtype, x.shape)]


@primitive("move", _infer_scatter, name="scatter")
def _scatter(x: Array, index: Array, updates: Array, axis: int, mode: str, allow_negative: bool = True) -> Array:
    where = (slice(None),) * axis + (check_index("scatter", index, x.shape[axis], allow_negative),)
    return _write(x.copy(), where, updates, mode)


def scatter(x: Value, index: Value, updates: Value, axis: int, mode: str, allow_negative: bool = True) -> Value:
    """x with slices along ``axis`` combined with updates, in index order; mode: set, add, mul, max, min."""
    return append("scatter", x, index, updates, axis=axis, mode=mode, **_sign(allow_negative))


def _infer_gather_elements(op: Op) -> list[Type]:
    x, index = op.inputs
    _require_index(op, index)
    axis = op.attributes["axis"]
    if x.ndim != index.ndim or any(i > n for k, (n, i) in enumerate(zip(x.shape, index.shape, strict=True)) if k != axis):
        raise ShapeError(
            message(
                f"take_along_axis(): indices {list(index.shape)} do not fit a tensor of shape {list(x.shape)}",
                f"ranks must be equal, and sizes not larger, except along axis {axis}",
            )
        )
    return [(x.dtype, index.shape)]


def _element_index(name: str, x: Array, index: Array, axis: int, allow_negative: bool) -> tuple[Array, ...]:
    grid = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    grid[axis] = check_index(name, index, x.shape[axis], allow_negative)
    return tuple(grid)


@primitive("move", _infer_gather_elements, name="gather_elements")
def _gather_elements(x: Array, index: Array, axis: int, allow_negative: bool = True) -> Array:
    return x[_element_index("take_along_axis", x, index, axis, allow_negative)]


def gather_elements(x: Value, index: Value, axis: int, allow_negative: bool = True) -> Value:
    """x's elements at the index along ``axis``, other positions being the index's own; negative indices as in gather."""
    return append("gather_elements", x, index, axis=axis, **_sign(allow_negative))


def _infer_scatter_elements(op: Op) -> list[Type]:
    x, index, updates = op.inputs
    _infer_gather_elements(Op(op.name, (x, index), {"axis": op.attributes["axis"]}))
    if updates.shape != index.shape or updates.dtype != x.dtype:
        raise ShapeError(
            f"put_along_axis(): values are {updates.dtype}{list(updates.shape)}, the indices {list(index.shape)} into {x.dtype}"
        )
    return [(x.dtype, x.shape)]


@primitive("move", _infer_scatter_elements, name="scatter_elements")
def _scatter_elements(x: Array, index: Array, updates: Array, axis: int, mode: str, allow_negative: bool = True) -> Array:
    return _write(x.copy(), _element_index("put_along_axis", x, index, axis, allow_negative), updates, mode)


def scatter_elements(x: Value, index: Value, updates: Value, axis: int, mode: str, allow_negative: bool = True) -> Value:
    """x with elements along ``axis`` at the index combined with updates; mode: set, add, mul, max, min."""
    return append("scatter_elements", x, index, updates, axis=axis, mode=mode, **_sign(allow_negative))


def _infer_gather_nd(op: Op) -> list[Type]:
    x, index = op.inputs
    _require_index(op, index)
    depth = index.shape[-1] if index.ndim else 0
    if index.ndim == 0 or depth > x.ndim:
        raise ShapeError(f"gather_nd(): index {list(index.shape)} addresses {depth} axes of a tensor of rank {x.ndim}")
    return [(x.dtype, (*index.shape[:-1], *x.shape[depth:]))]


def _nd_index(name: str, x: Array, index: Array) -> tuple[Array, ...]:
    return tuple(check_index(name, index[..., k], x.shape[k]) for k in range(index.shape[-1]))


@primitive("move", _infer_gather_nd, name="gather_nd")
def _gather_nd(x: Array, index: Array) -> Array:
    where = _nd_index("gather_nd", x, index)
    return x[where] if where else np.broadcast_to(x, index.shape[:-1] + x.shape).copy()


def gather_nd(x: Value, index: Value) -> Value:
    """Slices of x at the tuples along the index's last axis."""
    return append("gather_nd", x, index)


def _infer_scatter_nd(op: Op) -> list[Type]:
    x, index, updates = op.inputs
    ((_, wanted),) = _infer_gather_nd(Op(op.name, (x, index)))
    if updates.shape != wanted or updates.dtype != x.dtype:
        raise ShapeError(
            message(
                f"scatter_nd(): updates are {updates.dtype}{list(updates.shape)}",
                f"index {list(index.shape)} into {x.dtype}{list(x.shape)} takes {list(wanted)}",
            )
        )
    return [(x.dtype, x.shape)]


@primitive("move", _infer_scatter_nd, name="scatter_nd")
def _scatter_nd(x: Array, index: Array, updates: Array, mode: str) -> Array:
    where = _nd_index("scatter_nd", x, index)
    if where:
        return _write(x.copy(), where, updates, mode)
    target = np.broadcast_to(x, (1, *x.shape)).copy()
    flat = updates.reshape(-1, *x.shape)
    return _write(target, (np.zeros(len(flat), np.int64),), flat, mode)[0]


def scatter_nd(x: Value, index: Value, updates: Value, mode: str) -> Value:
    """x with slices at the tuples along the index's last axis combined with updates; mode: set, add."""
    return append("scatter_nd", x, index, updates, mode=mode)


def _pair_gradients(name: str, gather_call: Callable[..., Value], scatter_call: Callable[..., Value]) -> None:
    """Gather's gradient scatters; scatter's gathers. ``set`` hides what it overwrites, ``max``/``min`` pass to the winner."""

    @gradient_of(name.replace("scatter", "gather"))
    def gather_gradient(op: Op, g: Value) -> Gradients:
        x, index = op.inputs
        return scatter_call(full(x.shape, 0, g.dtype), index, g, mode="add", **op.attributes), None

    @gradient_of(name)
    def scatter_gradient(op: Op, g: Value) -> Gradients:
        x, index, updates = op.inputs
        rest = {k: v for k, v in op.attributes.items() if k != "mode"}
        mode = op.attributes["mode"]
        at_index = gather_call(g, index, **rest)
        if mode == "add":
            return g, None, at_index
        if mode == "set":
            hidden = scatter_call(g, index, full(updates.shape, 0, g.dtype), mode="set", **rest)
            # of several writers of one place only the last one counts
            order = reshape(append("iota", shape=(updates.numel,), axis=0, dtype="int64"), updates.shape)
            winner = scatter_call(full(x.shape, -1, "int64"), index, order, mode="set", **rest)
            return hidden, None, select(eq(gather_call(winner, index, **rest), order), at_index, 0)
        y = op.outputs[0]
        if mode == "mul":
            # without divisions by x or by an update, either of which may be zero
            conjugated = conj if dtypes.is_complex(g.dtype) else (lambda v: v)
            product = scatter_call(full(x.shape, 1, x.dtype), index, updates, mode="mul", **rest)
            is_zero = eq(updates, 0)
            nonzero = scatter_call(x, index, select(is_zero, 1, updates), mode="mul", **rest)
            zeros = scatter_call(full(x.shape, 0, "int64"), index, cast(is_zero, "int64"), mode="add", **rest)
            alone = select(eq(gather_call(zeros, index, **rest), 1), gather_call(nonzero, index, **rest), 0)
            others = select(is_zero, alone, div(gather_call(y, index, **rest), select(is_zero, 1, updates)))
            return mul(g, conjugated(product)), None, mul(at_index, conjugated(others))
        at_y = gather_call(y, index, **rest)
        return select(eq(x, y), g, 0), None, select(eq(updates, at_y), at_index, 0)


_pair_gradients("scatter", gather, scatter)
_pair_gradients("scatter_elements", gather_elements, scatter_elements)
_pair_gradients("scatter_nd", gather_nd, scatter_nd)
