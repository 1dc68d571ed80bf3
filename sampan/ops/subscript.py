"""What ``x[...]`` and ``x[...] = v`` become: slices as views, index tensors as gathers and scatters."""

from __future__ import annotations

from . import primitives as p
from .arguments import dropped
from .define import op
from .samples import integer, real


@op(
    title="tensor[...]",
    operands=("x",),
    is_view=True,
    reference=lambda x, starts, sizes, steps, dropped_axes, new_axes: x[::-1, 1][None],
    samples=[(real(3, 4), (2, 1), (3, 1), (-1, 1), (1,), (0,))],
    tests="noempty",
)
def take_slices(x, starts, sizes, steps, dropped_axes, new_axes):
    """``sizes`` elements from ``starts`` by ``steps`` along every axis, without the axes that an integer picked, with new axes of length 1."""
    y = dropped(p.slice_(x, starts, sizes, steps), dropped_axes, False)
    shape = list(y.shape)
    for axis in new_axes:
        shape.insert(axis, 1)
    return p.reshape(y, tuple(shape))


def _filled(target_shape, value, dtype):
    """The value cast and broadcast to what it is assigned to; leading axes of length 1 may be more than the target has."""
    extra = value.ndim - len(target_shape)
    if extra > 0 and all(n == 1 for n in value.shape[:extra]):
        value = p.reshape(value, value.shape[extra:])
    return p.broadcast_to(p.cast(value, dtype), tuple(target_shape))


@op(operands=("x", "value"), inplace="put_slices_", title="tensor[...] = value", tests="nograd noempty")
def put_slices(x, value, starts, sizes, steps, dropped_axes, new_axes):
    """x with the slices that ``take_slices`` takes replaced by value."""
    shape = [n for k, n in enumerate(sizes) if k not in dropped_axes]
    for axis in new_axes:
        shape.insert(axis, 1)
    part = p.reshape(_filled(shape, value, x.dtype), tuple(sizes))
    return p.insert_slice(x, part, starts, steps)


def _front(x, axes):
    """x with the indexed axes first, and the order that did it."""
    order = (*axes, *(k for k in range(x.ndim) if k not in axes))
    return p.transpose(x, order), order


def _wide(index):
    """The index in a type that gathers take: narrow integers as int64."""
    return index if index.dtype in ("int32", "int64") else p.cast(index, "int64")


def _stacked(indices):
    """Index tensors broadcast to one shape, as tuples along a last axis."""
    shape = p.broadcast_shapes(*(i.shape for i in indices))
    return p.concat([p.reshape(p.broadcast_to(p.cast(i, "int64"), shape), (*shape, 1)) for i in indices], len(shape)), len(shape)


def _place(rank, index_rank, axes, first):
    """Where the index's axes go: to the first indexed axis when those are adjacent, else to the front. The order of axes from the front form."""
    if not first:
        return tuple(range(rank))
    before = axes[0]
    return (*range(index_rank, index_rank + before), *range(index_rank), *range(index_rank + before, rank))


@op(
    title="tensor[...]",
    operands=("x", "indices"),
    lists=("indices",),
    reference=lambda x, indices, axes, in_place: x[:, indices[0], indices[1]],
    samples=[(real(2, 5, 6), [integer(3, low=-5, high=5), integer(4, 1, low=0, high=6)], (1, 2), True)],
    tests="noempty",
)
def take_indices(x, indices, axes, in_place):
    """x at integer index tensors along ``axes``. in_place: their result axes stand where the axes stood, else in front."""
    if len(indices) == 1:
        axis = axes[0] if in_place else 0
        return p.gather(x if in_place else _front(x, axes)[0], _wide(indices[0]), axis)
    index, index_rank = _stacked(indices)
    y = p.gather_nd(_front(x, axes)[0], index)
    return p.transpose(y, _place(y.ndim, index_rank, axes, in_place))


@op(
    operands=("x", "indices", "value"),
    lists=("indices",),
    inplace="put_indices_",
    title="tensor[...] = value",
    tests="nograd noempty",
)
def put_indices(x, indices, value, axes, in_place, mode="set"):
    """x with what ``take_indices`` takes replaced by value, or value added to it (mode ``add``); of several writers of a place the last one wins."""
    index, index_rank = _stacked(indices)
    moved, order = _front(x, axes)
    shape = (*index.shape[:-1], *moved.shape[len(axes) :])
    place = _place(len(shape), index_rank, axes, in_place)
    filled = _filled([shape[k] for k in place], value, x.dtype)
    inverse = [0] * len(place)
    for k, axis in enumerate(place):
        inverse[axis] = k
    result = p.scatter_nd(moved, index, p.transpose(filled, tuple(inverse)), mode)
    back = [0] * len(order)
    for k, axis in enumerate(order):
        back[axis] = k
    return p.transpose(result, tuple(back))
