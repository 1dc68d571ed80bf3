"""Reading at indices: gathers, selections, searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, DTypeError, ShapeError, message
from ..ir.program import Value
from . import primitives as p
from .arguments import normalized_axis, promoted
from .define import op
from .samples import indices, integer, real, values


def checked_index(name: str, index: Value, parameter: str = "index") -> Value:
    """An index operand; raises for one that is not int32 or int64."""
    if index.weak:
        return p.cast(index, "int64")
    if index.dtype not in ("int32", "int64"):
        raise DTypeError(message(f"{name}(): {parameter} is {index.dtype}", "it must be int32 or int64", "cast it first"))
    return index


def _column_index(name: str, index: Value) -> Value:
    """A 0-D or 1-D index, or an [N, 1] one as [N]."""
    index = checked_index(name, index)
    if index.ndim == 2 and index.shape[1] == 1:
        return p.reshape(index, (index.shape[0],))
    if index.ndim > 1:
        raise ShapeError(f"{name}(): index is {list(index.shape)}; it must have at most 1 axis, or be [N, 1]")
    return index


def indexed_axis(name: str, x: Value, axis: Any) -> int:
    """The axis counted from 0; a 0-D x has none."""
    if x.ndim == 0:
        raise ShapeError(f"{name}(): x is 0-D; it must have an axis to index")
    return normalized_axis(name, axis, x.ndim)


@op(
    "gather",
    operands=("x", "index"),
    takes_positional_out=True,
    method=True,
    reference=lambda x, i, axis=None: np.take(x, i, axis or 0),
    samples=[
        (real(4, 3), integer(5, high=4)),
        (real(4, 3), integer(2, low=-3, high=3), 1),
        (real(4, 3), values(2, dtype="int32")),
    ],
)
def gather(x, index, axis=None):
    """Slices of x along ``axis`` (0 by default) at a 0-D or 1-D index; negative indices count from the end."""
    return p.gather(x, _column_index("gather", index), indexed_axis("gather", x, 0 if axis is None else axis))


@op(
    "index_select",
    operands=("x", "index"),
    method=True,
    reference=lambda x, i, axis=0: np.take(x, i, axis),
    samples=[(real(4, 3), integer(5, high=4)), (real(4, 3), integer(2, low=-3, high=3, dtype="int32"), -1)],
    tests="noscalar",
)
def index_select(x, index, axis=0):
    """Slices of x along ``axis`` at a 1-D index."""
    return p.gather(x, _column_index("index_select", index), indexed_axis("index_select", x, axis))


@op(
    "index_sample", method=True, reference=lambda x, i: np.take_along_axis(x, i, 1), samples=[(real(3, 4), integer(3, 2, high=4))]
)
def index_sample(x, index):
    """From each row of x [N, M] the elements at that row of index [N, K]: [N, K]."""
    if x.ndim != 2 or index.ndim != 2 or x.shape[0] != index.shape[0]:
        raise ShapeError(
            f"index_sample(): x is {list(x.shape)} and index {list(index.shape)}; they must be matrices with as many rows"
        )
    return p.gather_elements(x, checked_index("index_sample", index), 1)


def _gather_nd_reference(x, index):
    return x[tuple(np.moveaxis(index, -1, 0))]


@op(
    "gather_nd",
    method=True,
    reference=_gather_nd_reference,
    samples=[
        (real(3, 4, 2), integer(5, 2, high=3)),
        (real(3, 4), integer(2, 2, 2, low=-3, high=3)),
        (real(3, 4), integer(2, 1, high=3)),
    ],
    tests="noscalar",
)
def gather_nd(x, index):
    """Slices of x at the tuples along the last axis of index: index.shape[:-1] + x.shape[index.shape[-1]:]."""
    return p.gather_nd(x, checked_index("gather_nd", index))


def broadcast_index(name: str, x: Value, index: Value, axis: int) -> Value:
    """The index broadcast to x's shape, except along ``axis``."""
    if x.ndim != index.ndim:
        raise ShapeError(f"{name}(): indices have shape {list(index.shape)}, the tensor {list(x.shape)}; the ranks must be equal")
    shape = list(x.shape)
    shape[axis] = index.shape[axis]
    for k, (n, i) in enumerate(zip(x.shape, index.shape, strict=True)):
        if k != axis and i != n and i != 1 and n == 1:
            shape[k] = i
    if any(i not in (1, n) for k, (n, i) in enumerate(zip(shape, index.shape, strict=True)) if k != axis):
        raise ShapeError(
            message(
                f"{name}(): indices {list(index.shape)} do not broadcast against a tensor of shape {list(x.shape)}",
                f"sizes must be equal or 1, except along axis {axis}",
            )
        )
    return p.broadcast_to(index, tuple(shape))


def _along_reference(x, index, axis, broadcast=True):
    if not broadcast:
        x = x[tuple(slice(None) if k == axis % x.ndim else slice(n) for k, n in enumerate(index.shape))]
    return np.take_along_axis(x, index, axis)


@op(
    ["take_along_axis", "take_along_dim"],
    operands=("arr", "indices"),
    method=("take_along_axis", "take_along_dim"),
    reference=_along_reference,
    samples=[
        (real(3, 4), integer(3, 2, high=4), 1),
        (real(3, 4), integer(1, 4, low=-3, high=3), 0),
        (real(3, 4), integer(2, 3, high=4), 1, False),
    ],
    aliases={"input": "arr", "x": "arr", "dim": "axis"},
    tests="noscalar",
)
def take_along_axis(arr, indices, axis, broadcast=True):
    """Elements of arr at the indices along ``axis``; elsewhere the indices are broadcast, or (broadcast=False) name a leading block."""
    axis = indexed_axis("take_along_axis", arr, axis)
    indices = checked_index("take_along_axis", indices, "indices")
    if broadcast:
        indices = broadcast_index("take_along_axis", arr, indices, axis)
        shape = tuple(arr.shape[k] if k == axis else n for k, n in enumerate(indices.shape))
        arr = p.broadcast_to(arr, shape)
    return p.gather_elements(arr, indices, axis)


def _take_reference(x, index, mode="raise"):
    return np.take(x, index, mode=mode)


@op(
    "take",
    operands=("x", "index"),
    method=True,
    reference=_take_reference,
    samples=[
        (real(3, 4), integer(2, 3, high=12)),
        (real(3, 4), integer(5, low=-30, high=30), "wrap"),
        (real(3, 4), indices(-2, 3, 40), "clip"),
    ],
)
def take(x, index, mode="raise"):
    """Elements of the flattened x at the indices, in the index's shape.

    mode: ``"raise"`` for an index outside, ``"wrap"`` it around, or ``"clip"`` it to the ends (then negative ones give the first element).
    """
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"take(): mode is {mode!r}; it must be 'raise', 'wrap' or 'clip'")
    index = p.cast(checked_index("take", index), "int64")
    if mode != "raise" and not x.numel:
        raise ShapeError(f"take(): x is {list(x.shape)} and has no elements to take")
    if mode == "wrap":
        index = p.mod(index, x.numel)
    elif mode == "clip":
        index = p.minimum(p.maximum(index, 0), x.numel - 1)
    return p.gather(p.reshape(x, (x.numel,)), index, 0)


def _shard_reference(x, index_num, nshards, shard_id, ignore_value=-1):
    size = -(-index_num // nshards)
    return np.where(x // size == shard_id, x % size, ignore_value)


@op(
    "shard_index",
    operands=("input",),
    reference=_shard_reference,
    samples=[(integer(5, 1, high=20), 20, 2, 0), (integer(5, high=20, dtype="int32"), 20, 3, 2, -2)],
    aliases={"x": "input"},
)
def shard_index(input, index_num, nshards, shard_id, ignore_value=-1):
    """Positions within shard ``shard_id`` of ids split into nshards ranges; ignore_value for ids of other shards. Ids lie in [0, index_num)."""
    if not dtypes.is_integer(input.dtype):
        raise DTypeError(message(f"shard_index() does not take {input.dtype}", "it takes integer types"))
    if not 0 <= shard_id < nshards:
        raise ArgumentError(f"shard_index(): shard_id {shard_id} must be in [0, {nshards})")
    inside = p.bitwise_and(p.ge(input, 0), p.lt(input, index_num))
    ids = p.require(input, inside, f"shard_index(): input holds ids outside of [0, {index_num})")
    size = -(-index_num // nshards)
    return p.select(p.eq(p.floordiv(ids, size), shard_id), p.mod(ids, size), ignore_value)


def _search_reference(row, x, out_int32=False, right=False, side=None, sorter=None):
    kind = "right" if right or side == "right" else "left"
    if sorter is not None:
        row = np.take_along_axis(row, sorter, -1)
    if row.ndim == 1:
        found = np.searchsorted(row, x, kind)
    else:
        found = np.stack([np.searchsorted(r, v, kind) for r, v in zip(row, x, strict=True)])
    return np.asarray(found).astype(np.int32 if out_int32 else np.int64)


_ROW = values(-1.0, 0.0, 0.0, 1.0, 2.0)
_ROWS = values([-1.0, 0.0, 1.0], [0.0, 2.0, 4.0])


@op(
    "searchsorted",
    operands=("sorted_sequence", "values", "sorter"),
    keyword_only=("side", "sorter"),
    reference=_search_reference,
    samples=[
        (_ROW, real(2, 3)),
        (_ROWS, real(2, 4), True, True),
        (_ROW, values(0.0, np.nan), {"side": "right"}),
        (values(3.0, 1.0, 2.0), real(4), {"sorter": values(1, 2, 0, dtype="int64")}),
    ],
    tests="nograd noempty noscalar noshape",
    aliases={"input": "values"},
)
def searchsorted(sorted_sequence, values, out_int32=False, right=False, side=None, sorter=None):
    """Where each value would be inserted to keep the ascending order of the last axis: before equal elements, or (right) after them.

    sorted_sequence: 1-D, or with the leading axes of values. side: ``"left"`` or ``"right"``, in place of right. sorter: the order that sorts it.
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ArgumentError(
            f"searchsorted(): side is {side!r} and right {right}; side must be None, 'left' or 'right', and agree with right"
        )
    row, x = promoted(sorted_sequence, values)
    if sorter is not None:
        row = p.gather_elements(row, checked_index("searchsorted", sorter, "sorter"), row.ndim - 1)
    found = p.searchsorted(row, x, right or side == "right")
    return p.cast(found, "int32" if out_int32 else "int64")


@op(
    "bucketize",
    operands=("x", "sorted_sequence"),
    method=True,
    reference=lambda x, row, out_int32=False, right=False: _search_reference(row, x, out_int32, right),
    samples=[(real(2, 3), _ROW), (real(4), _ROW, True, True)],
    tests="nograd noempty noscalar noshape",
    aliases={"boundaries": "sorted_sequence"},
)
def bucketize(x, sorted_sequence, out_int32=False, right=False):
    """The bucket of each x between the ascending ends of a vector: see searchsorted."""
    if sorted_sequence.ndim != 1:
        raise ShapeError(f"bucketize(): sorted_sequence is {list(sorted_sequence.shape)}; it must be a vector")
    row, x = promoted(sorted_sequence, x)
    return p.cast(p.searchsorted(row, x, right), "int32" if out_int32 else "int64")
