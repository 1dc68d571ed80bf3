"""Writing at indices: scatters, fills, slices written into a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, DTypeError, ShapeError, message
from ..ir.program import Value
from . import primitives as p
from .arguments import known_shape
from .define import op
from .elementwise import where
from .indexing import broadcast_index, checked_index, indexed_axis
from .samples import boolean, indices, real
from .slicing import sliced_block


def _scatter_reference(x, index, updates, overwrite=True):
    x, index = x.copy(), index.ravel()
    if not overwrite:
        x[index] = 0
        np.add.at(x, index, updates.reshape(index.shape + x.shape[1:]))
        return x
    x[index] = updates.reshape(index.shape + x.shape[1:])
    return x


@op(
    "scatter",
    operands=("x", "index", "updates"),
    takes_positional_out=True,
    method=True,
    inplace=True,
    reference=_scatter_reference,
    samples=[
        (real(4, 2), indices(2, 0, 2), real(3, 2)),
        (real(4, 2), indices(2, 0, 2), real(3, 2), False),
        (real(4), indices([1], [3]), real(2)),
    ],
    tests="noempty noscalar",
)
def scatter(x, index, updates, overwrite=True):
    """x with rows at a 1-D index replaced by the rows of updates, the last of equal indices winning.

    ``overwrite=False``: the rows at the indices are set to zero first and all updates are then added.
    """
    index = checked_index("scatter", index)
    axis = indexed_axis("scatter", x, 0)
    if index.ndim == 2 and index.shape[1] == 1:
        index = p.reshape(index, (index.shape[0],))
    if index.ndim > 1:
        raise ShapeError(f"scatter(): index is {list(index.shape)}; it must have at most 1 axis, or be [N, 1]")
    updates = p.cast(updates, x.dtype)
    if overwrite:
        return p.scatter(x, index, updates, axis, "set")
    cleared = p.scatter(x, index, p.full(updates.shape, 0, x.dtype), axis, "set")
    return p.scatter(cleared, index, updates, axis, "add")


def _nd_add(x, index, updates):
    x = x.copy()
    np.add.at(x, tuple(np.moveaxis(index, -1, 0)), updates)
    return x


@op(
    "scatter_nd_add",
    method=True,
    reference=_nd_add,
    samples=[(real(3, 4, 2), indices([0, 1], [2, 3], [0, 1]), real(3, 2)), (real(5), indices([1], [3], [1]), real(3))],
    tests="noempty noscalar",
)
def scatter_nd_add(x, index, updates):
    """x with updates added at the tuples along the last axis of index."""
    return p.scatter_nd(x, checked_index("scatter_nd_add", index), p.cast(updates, x.dtype), "add")


@op(
    "scatter_nd",
    operands=("index", "updates"),
    method=True,
    reference=lambda i, u, s: _nd_add(np.zeros(s, u.dtype), i, u),
    samples=[(indices([0, 1], [2, 3], [0, 1]), real(3, 2), [3, 4, 2])],
    tests="noempty noscalar",
)
def scatter_nd(index, updates, shape):
    """Zeros of ``shape`` with updates added at the tuples along the last axis of index."""
    zeros = p.full(known_shape("scatter_nd", shape), 0, updates.dtype)
    return p.scatter_nd(zeros, checked_index("scatter_nd", index), updates, "add")


def _index_add_reference(x, index, axis, value, alpha=1):
    x = x.copy()
    np.add.at(np.moveaxis(x, axis, 0), index, np.moveaxis(np.asarray(value * alpha).astype(x.dtype), axis, 0))
    return x


@op(
    "index_add",
    operands=("x", "index", "value"),
    method=True,
    inplace=True,
    reference=_index_add_reference,
    samples=[(real(3, 4), indices(0, 2, 0), 1, real(3, 3)), (real(3, 4), indices(1, 1, dtype="int32"), -2, real(2, 4), 2)],
    tests="noempty noscalar",
    aliases={"source": "value"},
)
def index_add(x, index, axis, value, alpha=1):
    """x with alpha * value added along ``axis`` at a 1-D index; equal indices add up."""
    axis = indexed_axis("index_add", x, axis)
    value = p.cast(value, x.dtype)
    return p.scatter(x, checked_index("index_add", index), value if alpha == 1 else p.mul(value, alpha), axis, "add")


def _index_fill_reference(x, index, axis, value):
    x = x.copy()
    np.moveaxis(x, axis, 0)[index] = value
    return x


@op(
    "index_fill",
    operands=("x", "index", "value"),
    method=True,
    inplace=True,
    reference=_index_fill_reference,
    samples=[(real(3, 4), indices(0, 2, 0), 1, 5), (real(3, 4), indices(1, dtype="int32"), -2, real())],
    tests="noempty noscalar",
)
def index_fill(x, index, axis, value):
    """x with its slices along ``axis`` at a 1-D index filled with a number."""
    axis = indexed_axis("index_fill", x, axis)
    index = checked_index("index_fill", index)
    if value.numel != 1:
        raise ShapeError(f"index_fill(): value is {list(value.shape)}; it must be one number")
    shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    filled = p.broadcast_to(p.cast(p.reshape(value, ()), x.dtype), shape)
    return p.scatter(x, index, filled, axis, "set")


def stacked_index(name: str, x: Value, indices: list[Value]) -> Value:
    """Index tensors broadcast to one shape, as tuples along a last axis."""
    if not indices or len(indices) > x.ndim:
        raise ShapeError(f"{name}(): {len(indices)} index tensors do not fit a tensor of shape {list(x.shape)}")
    shape = p.broadcast_shapes(*(i.shape for i in indices))
    columns = [p.reshape(p.broadcast_to(p.cast(checked_index(name, i), "int64"), shape), (*shape, 1)) for i in indices]
    return p.concat(columns, len(shape))


def _index_put_reference(x, indices, value, accumulate=False):
    x, indices = x.copy(), tuple(indices)
    if accumulate:
        np.add.at(x, indices, value)
    else:
        x[indices] = value
    return x


@op(
    "index_put",
    operands=("x", "indices", "value"),
    lists=("indices",),
    method=True,
    inplace=True,
    reference=_index_put_reference,
    samples=[
        (real(3, 4), [indices(0, 2), indices(1, 3)], real(2)),
        (real(3, 4), [indices(0, 2, 0)], real(4), True),
        (real(3, 4), [indices([0], [2]), indices(1, 3)], real(1)),
        (real(3, 4), [boolean(3, 4)], real()),
    ],
    tests="noempty noscalar noshape",
    aliases={"values": "value"},
)
def index_put(x, indices, value, accumulate=False):
    """x with x[indices] replaced by value (broadcast), or value added there; of several writers of a place the last one wins.

    indices: integer tensors, broadcast to one shape; or one bool mask of x's leading axes with a value that broadcasts over what it selects.
    """
    value = p.cast(value, x.dtype)
    if len(indices) == 1 and indices[0].dtype == "bool":
        return _masked_put(x, indices[0], value, accumulate)
    index = stacked_index("index_put", x, indices)
    shape = (*index.shape[:-1], *x.shape[len(indices) :])
    return p.scatter_nd(x, index, p.broadcast_to(value, shape), "add" if accumulate else "set")


def _masked_put(x: Value, mask: Value, value: Value, accumulate: bool) -> Value:
    if mask.shape != x.shape[: mask.ndim] or (value.ndim > x.ndim - mask.ndim and value.numel != 1):
        raise ShapeError(
            message(
                f"index_put(): a mask {list(mask.shape)} with a value {list(value.shape)} into a tensor of shape {list(x.shape)}",
                "the mask must have x's leading axes and the value broadcast over the selected slices",
                "for one value an element, give integer indices: nonzero(mask, as_tuple=True)",
            )
        )
    rest = x.shape[mask.ndim :]
    value = p.broadcast_to(p.broadcast_to(p.reshape(value, rest and value.shape if value.numel != 1 else ()), rest), x.shape)
    mask = p.broadcast_to(p.reshape(mask, (*mask.shape, *(1 for _ in rest))), x.shape)
    return p.select(mask, p.add(x, value) if accumulate else value, x)


# ------------------------------------------------------------------ along an axis

_MODES = {
    "assign": "set",
    "add": "add",
    "sum": "add",
    "mul": "mul",
    "multiply": "mul",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
    "mean": "mean",
}


def _identity(mode: str, dtype: str) -> Any:
    """What leaves the other operand of the mode as it is."""
    if mode in ("add", "mean"):
        return 0
    if mode == "mul":
        return 1
    sign = -1 if mode == "max" else 1
    if dtypes.is_floating(dtype):
        return sign * float("inf")
    limits = np.iinfo(dtype)
    return int(limits.min if sign < 0 else limits.max)


def written_along(name: str, x: Value, index: Value, source: Value, axis: int, reduce: str, include_self: bool) -> Value:
    """x with the source combined at the index along ``axis``. Without include_self, written elements forget their own value first."""
    if reduce not in _MODES:
        raise ArgumentError(f"{name}(): reduce is {reduce!r}; it must be one of {', '.join(_MODES)}")
    mode = _MODES[reduce]
    if (mode != "set" and x.dtype == "bool") or (mode in ("max", "min") and dtypes.is_complex(x.dtype)):
        raise DTypeError(message(f"{name}(): reduce {reduce!r} does not take {x.dtype}", "", "cast the tensor first"))
    if mode != "set" and not include_self:
        x = p.scatter_elements(x, index, p.full(index.shape, _identity(mode, x.dtype), x.dtype), axis, "set")
    if mode != "mean":
        return p.scatter_elements(x, index, source, axis, mode)
    total = p.scatter_elements(x, index, source, axis, "add")
    one = p.full(index.shape, 1, "int64")
    count = p.scatter_elements(p.full(x.shape, int(include_self), "int64"), index, one, axis, "add")
    count = p.cast(p.maximum(count, 1), x.dtype)
    return p.floordiv(total, count) if dtypes.is_integer(x.dtype) else p.div(total, count)


def _put_reference(arr, indices, source, axis, reduce="assign", include_self=True, broadcast=True):
    mode = _MODES[reduce]
    out = arr.copy()
    if broadcast:
        shape = [n if k != axis % arr.ndim else indices.shape[k] for k, n in enumerate(arr.shape)]
        indices = np.broadcast_to(indices, shape)
    source = (
        np.broadcast_to(source, indices.shape) if np.ndim(source) == 0 or broadcast else source[tuple(map(slice, indices.shape))]
    )
    seen = np.full(arr.shape, int(include_self))
    for at in np.ndindex(*indices.shape):
        to = list(at)
        to[axis] = indices[at]
        to = tuple(to)
        new, old = source[at], out[to]
        first = not seen[to]
        combined = {
            "set": new,
            "add": old + new,
            "mean": old + new,
            "mul": old * new,
            "max": max(old, new),
            "min": min(old, new),
        }[mode]
        out[to] = new if first else combined
        seen[to] += 1
    if mode != "mean":
        return out
    return out // np.maximum(seen, 1) if out.dtype.kind in "iu" else out / np.maximum(seen, 1)


_PUTS = [(real(3, 4), indices([0, 2, 2], [1, 1, 0], [3, 3, 3]), real(3, 3), 1)]


@op(
    "put_along_axis",
    operands=("arr", "indices", "values"),
    method=True,
    inplace=True,
    reference=_put_reference,
    samples=[
        *_PUTS,
        (real(3, 4), indices([[0, 2, 2, 1]]), 2.5, 0),
        *((*_PUTS[0], mode) for mode in ("add", "mul", "amax", "amin", "mean")),
        *((*_PUTS[0], mode, False) for mode in ("add", "mul", "amax", "amin", "mean")),
        (real(3, 4), indices([0, 2], [1, 1]), real(3, 3), 1, "add", True, False),
    ],
    aliases={"input": "arr", "x": "arr", "dim": "axis"},
    tests="noempty noscalar noshape",
)
def put_along_axis(arr, indices, values, axis, reduce="assign", include_self=True, broadcast=True):
    """arr with values combined at the indices along ``axis``; elsewhere indices are broadcast, or (broadcast=False) name a leading block.

    reduce: assign (the last of several wins), add, mul, mean, amax or amin; include_self: whether arr's own element takes part.
    """
    axis = indexed_axis("put_along_axis", arr, axis)
    indices = checked_index("put_along_axis", indices, "indices")
    values = p.cast(values, arr.dtype)
    if broadcast:
        indices = broadcast_index("put_along_axis", arr, indices, axis)
    if values.numel == 1 or broadcast:
        values = p.broadcast_to(p.reshape(values, ()) if values.numel == 1 else values, indices.shape)
    else:
        if values.ndim != indices.ndim or any(v < i for v, i in zip(values.shape, indices.shape, strict=True)):
            raise ShapeError(f"put_along_axis(): values {list(values.shape)} are fewer than the indices {list(indices.shape)}")
        values = p.slice_(values, (0,) * values.ndim, indices.shape, (1,) * values.ndim)
    return written_along("put_along_axis", arr, indices, values, axis, reduce, include_self)


def _scatter_along(name: str, x: Value, dim: Any, index: Value, src: Value, reduce: str, include_self: bool) -> Value:
    axis = indexed_axis(name, x, dim)
    index = checked_index(name, index)
    src = p.cast(src, x.dtype)
    if src.ndim != index.ndim or any(s < i for s, i in zip(src.shape, index.shape, strict=True)):
        raise ShapeError(f"{name}(): src {list(src.shape)} is smaller than the index {list(index.shape)}")
    return written_along(name, x, index, p.slice_(src, (0,) * src.ndim, index.shape, (1,) * src.ndim), axis, reduce, include_self)


def _scatter_add_reference(x, dim, index, src):
    return _put_reference(x, index, src, dim, "add", True, False)


@op(
    "scatter_add",
    operands=("input", "index", "src"),
    method=True,
    inplace=True,
    reference=_scatter_add_reference,
    samples=[(real(3, 4), 1, indices([0, 2], [1, 1]), real(3, 3))],
    aliases={"x": "input", "axis": "dim"},
    tests="noempty noscalar noshape",
)
def scatter_add(input, dim, index, src):
    """The input with src[k] added at index[k] along ``dim``; the index names a leading block of src."""
    return _scatter_along("scatter_add", input, dim, index, src, "add", True)


@op(
    "scatter_reduce",
    operands=("input", "index", "src"),
    keyword_only=("include_self",),
    method=True,
    reference=lambda x, d, i, s, r, include_self=True: _put_reference(x, i, s, d, r, include_self, False),
    samples=[(real(3, 4), 1, indices([0, 2], [1, 1]), real(3, 3), r) for r in ("sum", "prod", "mean", "amax", "amin")],
    aliases={"x": "input", "axis": "dim"},
    tests="noempty noscalar noshape",
)
def scatter_reduce(input, dim, index, src, reduce, include_self=True):
    """The input with src combined at the index along ``dim``. reduce: sum, prod, mean, amax or amin."""
    return _scatter_along("scatter_reduce", input, dim, index, src, reduce, include_self)


# ------------------------------------------------------------------ masks and slices


@op(
    "masked_fill",
    operands=("x", "mask", "value"),
    method=True,
    inplace=True,
    reference=lambda x, m, v: np.where(m, np.asarray(v).astype(x.dtype), x),
    samples=[(real(3, 4), boolean(3, 4), 2), (real(3, 4), boolean(4), real()), (real(3, 1), boolean(3, 4), 1.5)],
)
def masked_fill(x, mask, value):
    """x with elements where the mask holds replaced by a number; x and mask are broadcast."""
    if mask.dtype != "bool":
        raise DTypeError(message(f"masked_fill(): mask is {mask.dtype}", "it must be bool"))
    return where.body(mask, p.cast(value, x.dtype), x)


def _masked_scatter_reference(x, mask, value):
    x, mask = (a.copy() for a in np.broadcast_arrays(x, mask))
    x[mask] = value.ravel()[: mask.sum()]
    return x


@op(
    "masked_scatter",
    method=True,
    inplace=True,
    reference=_masked_scatter_reference,
    samples=[(real(3, 4), boolean(3, 4), real(12)), (real(3, 4), boolean(4), real(4, 4))],
    tests="noempty noscalar noshape",
)
def masked_scatter(x, mask, value):
    """x with its elements where the mask holds replaced by those of value, in order; value has at least as many."""
    if mask.dtype != "bool":
        raise DTypeError(message(f"masked_scatter(): mask is {mask.dtype}", "it must be bool"))
    shape = p.broadcast_shapes(x.shape, mask.shape)
    x, mask = p.broadcast_to(x, shape), p.broadcast_to(mask, shape)
    order = p.scan(p.cast(p.reshape(mask, (mask.numel,)), "int64"), "sum", 0)
    enough = p.full((), value.numel, "int64")
    if mask.numel:
        count = p.reshape(p.last_of(order, 0), ())
        order = p.require(
            order, p.le(count, enough), f"masked_scatter(): value has {value.numel} elements, fewer than the mask selects"
        )
    if not value.numel:
        return x
    place = p.minimum(p.maximum(p.sub(order, 1), 0), value.numel - 1)
    taken = p.gather(p.reshape(p.cast(value, x.dtype), (value.numel,)), place, 0)
    return p.select(mask, p.reshape(taken, shape), x)


def _select_reference(x, v, axis, index):
    x = x.copy()
    np.moveaxis(x, axis, 0)[index] = v
    return x


@op(
    "select_scatter",
    operands=("x", "values"),
    method=True,
    reference=_select_reference,
    samples=[(real(3, 4), real(3), 1, 2), (real(3, 4), real(4), 0, -1)],
    tests="noempty noscalar noshape",
)
def select_scatter(x, values, axis, index):
    """x with its slice ``index`` along ``axis`` replaced by values."""
    axis = indexed_axis("select_scatter", x, axis)
    length = x.shape[axis]
    if not -length <= index < length:
        raise ArgumentError(f"select_scatter(): index {index} is outside of axis {axis} of a tensor of shape {list(x.shape)}")
    shape = tuple(n for k, n in enumerate(x.shape) if k != axis)
    if values.shape != shape:
        raise ShapeError(f"select_scatter(): values are {list(values.shape)}; the slice has shape {list(shape)}")
    kept = tuple(1 if k == axis else n for k, n in enumerate(x.shape))
    starts = tuple(index % length if k == axis else 0 for k in range(x.ndim))
    return p.insert_slice(x, p.reshape(p.cast(values, x.dtype), kept), starts, (1,) * x.ndim)


def _slice_scatter_reference(x, value, axes, starts, ends, strides):
    x = x.copy()
    index = [slice(None)] * x.ndim
    for a, s, e, t in zip(axes, starts, ends, strides, strict=True):
        index[a] = slice(s, e, t)
    x[tuple(index)] = value
    return x


@op(
    "slice_scatter",
    operands=("x", "value"),
    method=True,
    reference=_slice_scatter_reference,
    samples=[(real(5, 4), real(2, 4), [0], [1], [5], [2]), (real(5, 4), real(5, 1), [1], [0], [-1], [1])],
    tests="noempty noscalar noshape",
)
def slice_scatter(x, value, axes, starts, ends, strides):
    """x with x[starts:ends:strides] along the axes replaced by value, which is broadcast to it."""
    first, sizes, steps = sliced_block("slice_scatter", x, axes, starts, ends, strides)
    return p.insert_slice(x, p.broadcast_to(p.cast(value, x.dtype), sizes), first, steps)
