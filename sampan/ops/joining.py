"""Joining tensors and taking them apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ShapeError, message
from ..base.lazy import scipy_linalg as linalg
from ..ir.program import Value
from . import primitives as p
from .arguments import normalized_axis, promoted
from .define import op
from .samples import real
from .scans import part


def joined(name: str, xs: list[Value], axis: int) -> Value:
    """The tensors, promoted to one dtype, one after another along ``axis``."""
    if not xs:
        raise ArgumentError(f"{name}(): the list of tensors is empty")
    xs = list(promoted(*xs))
    if xs[0].ndim == 0:
        raise ShapeError(message(f"{name}(): 0-D tensors have no axis to join along", "", "use stack() for them"))
    return p.concat(xs, normalized_axis(name, axis, xs[0].ndim))


_THREE = [real(2, 3), real(2, 1), real(2, 2)]


@op(
    ["concat", "cat", "concatenate"],
    operands=("x",),
    lists=("x",),
    reference=lambda xs, axis=0: np.concatenate(xs, axis),
    samples=[([real(2, 3), real(1, 3)],), (_THREE, 1), (_THREE, -1), ([real(2)],)],
    aliases={"tensors": "x"},
)
def concat(x, axis=0):
    """The tensors one after another along ``axis``; they may differ in size there only. Their dtypes are promoted to one."""
    return joined("concat", x, axis)


def stacked(name: str, xs: list[Value], axis: int) -> Value:
    """The tensors, promoted to one dtype, along a new axis."""
    if not xs:
        raise ArgumentError(f"{name}(): the list of tensors is empty")
    xs = list(promoted(*xs))
    rank = xs[0].ndim + 1
    axis = normalized_axis(name, axis, rank)
    for v in xs:
        if v.shape != xs[0].shape:
            raise ShapeError(f"{name}(): tensors have shapes {list(xs[0].shape)} and {list(v.shape)}; they must be equal")
    shape = (*xs[0].shape[:axis], 1, *xs[0].shape[axis:])
    return p.concat([p.reshape(v, shape) for v in xs], axis)


@op(
    "stack",
    operands=("x",),
    lists=("x",),
    reference=lambda xs, axis=0: np.stack(xs, axis),
    samples=[([real(2, 3), real(2, 3)],), ([real(2, 3), real(2, 3)], -1), ([real(), real()],)],
    aliases={"tensors": "x"},
)
def stack(x, axis=0):
    """The tensors, of one shape, along a new axis."""
    return stacked("stack", x, axis)


_MIXED = [real(2, 3), real(2, 3)]


@op("hstack", lists=("x",), reference=np.hstack, samples=[(_MIXED,), ([real(3), real(2)],), ([real(), real()],)])
def hstack(x):
    """The tensors side by side: along axis 1, vectors along axis 0."""
    xs = [p.reshape(v, (1,)) if not v.ndim else v for v in x]
    return joined("hstack", xs, 0 if not xs or xs[0].ndim == 1 else 1)


@op(["vstack", "row_stack"], lists=("x",), reference=np.vstack, samples=[(_MIXED,), ([real(3), real(3)],), ([real(), real()],)])
def vstack(x):
    """The tensors below one another: along axis 0, vectors as rows."""
    return joined("vstack", [p.reshape(v, (1, v.numel)) if v.ndim < 2 else v for v in x], 0)


@op("dstack", lists=("x",), reference=np.dstack, samples=[(_MIXED,), ([real(3), real(3)],)])
def dstack(x):
    """The tensors behind one another: along axis 2, after (N,) became (1, N, 1) and (M, N) became (M, N, 1)."""
    return joined("dstack", [p.reshape(v, (1, v.numel, 1) if v.ndim < 2 else (*v.shape, 1)) if v.ndim < 3 else v for v in x], 2)


@op("column_stack", lists=("x",), reference=np.column_stack, samples=[(_MIXED,), ([real(3), real(3, 2)],)])
def column_stack(x):
    """Vectors as columns and matrices side by side."""
    return joined("column_stack", [p.reshape(v, (v.numel, 1)) if v.ndim < 2 else v for v in x], 1)


# ------------------------------------------------------------------ taking apart


def cut(x: Value, axis: int, sizes: list[int]) -> list[Value]:
    """Consecutive parts of these sizes along ``axis``."""
    parts, at = [], 0
    for size in sizes:
        parts.append(part(x, axis, at, size))
        at += size
    return parts


def _split_reference(x, sections, axis=0):
    if isinstance(sections, list):
        rest = x.shape[axis] - sum(s for s in sections if s != -1)
        sections = [rest if s == -1 else s for s in sections]
        return np.split(x, np.cumsum(sections)[:-1], axis)
    return np.split(x, sections, axis)


def _split_axis(name: str, x: Value, axis: Any) -> int:
    if x.ndim == 0:
        raise ShapeError(f"{name}(): a 0-D tensor has no axis to split")
    return normalized_axis(name, axis, x.ndim)


@op(
    "split",
    operands=("x",),
    method=True,
    is_view=True,
    reference=_split_reference,
    samples=[(real(4, 3), 2), (real(2, 7), [2, -1, 1], 1), (real(4), [1, 3])],
)
def split(x, num_or_sections, axis=0):
    """A list of parts along ``axis``: so many equal ones, or ones of the given sizes, of which one may be -1."""
    axis = _split_axis("split", x, axis)
    length = x.shape[axis]
    if isinstance(num_or_sections, int):
        if num_or_sections < 1 or length % num_or_sections:
            raise ShapeError(
                message(
                    f"split(): axis {axis} of a tensor of shape {list(x.shape)} "
                    f"does not divide into {num_or_sections} equal parts",
                    "",
                    "give the sizes as a list, or use tensor_split() for uneven parts",
                )
            )
        return cut(x, axis, [length // num_or_sections] * num_or_sections)
    sizes = list(num_or_sections)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = length - sum(s for s in sizes if s != -1)
    if any(s < 0 for s in sizes) or sum(sizes) != length:
        raise ShapeError(f"split(): sections {list(num_or_sections)} do not add up to the {length} of axis {axis}")
    return cut(x, axis, sizes)


@op(
    "",
    operands=("x",),
    method=True,
    is_view=True,
    reference=lambda x, s, a=0: np.split(x, np.cumsum(s)[:-1], a),
    samples=[(real(6, 2), [1, 2, 3])],
    tests="noempty noscalar noshape",
)
def split_with_sizes(x, split_sizes, axis=0):
    """A list of parts of the given sizes along ``axis``."""
    return split.body(x, split_sizes, axis)


@op(
    "chunk",
    operands=("x",),
    method=True,
    is_view=True,
    reference=lambda x, n, axis=0: np.split(x, range(-(-x.shape[axis] // n), x.shape[axis], -(-x.shape[axis] // n)), axis),
    samples=[(real(6, 2), 3), (real(2, 7), 3, 1)],
)
def chunk(x, chunks, axis=0):
    """A list of at most ``chunks`` parts along ``axis``, of one size except for a shorter last one."""
    axis = _split_axis("chunk", x, axis)
    length = x.shape[axis]
    if chunks > length > 0:
        raise ArgumentError(
            message(
                f"chunk(): chunks is {chunks}",
                f"axis {axis} of x of shape {list(x.shape)} has {length} elements only",
                "tensor_split() gives empty parts",
            )
        )
    size = max(-(-length // chunks), 1)
    return cut(x, axis, [min(size, length - at) for at in range(0, length, size)] or [0])


def tensor_parts(name: str, x: Value, num_or_indices: Any, axis: int) -> list[Value]:
    """Parts as NumPy's array_split: so many nearly equal ones, or cut at the given places."""
    axis = _split_axis(name, x, axis)
    length = x.shape[axis]
    if isinstance(num_or_indices, int):
        if num_or_indices < 1:
            raise ArgumentError(f"{name}(): num_or_indices is {num_or_indices}; it must be positive")
        size, more = divmod(length, num_or_indices)
        return cut(x, axis, [size + 1] * more + [size] * (num_or_indices - more))
    places = [max(0, min(k + length if k < 0 else k, length)) for k in num_or_indices]
    return [part(x, axis, a, max(b - a, 0)) for a, b in zip([0, *places], [*places, length], strict=True)]


@op(
    "tensor_split",
    operands=("x",),
    method=True,
    is_view=True,
    reference=np.array_split,
    samples=[(real(7, 2), 3), (real(2, 7), [2, 5], 1), (real(4), [1, -1])],
)
def tensor_split(x, num_or_indices, axis=0):
    """A list of parts along ``axis``: so many nearly equal ones (the first ones longer), or cut at the given places."""
    return tensor_parts("tensor_split", x, num_or_indices, axis)


@op("hsplit", operands=("x",), method=True, is_view=True, reference=np.hsplit, samples=[(real(2, 6), 3), (real(6), [2, 4])])
def hsplit(x, num_or_indices):
    """A list of parts along axis 1, of a vector along axis 0: see tensor_split; a number must divide the axis."""
    return _divided("hsplit", x, num_or_indices, 0 if x.ndim == 1 else 1, 1)


@op("vsplit", operands=("x",), method=True, is_view=True, reference=np.vsplit, samples=[(real(6, 2), 3), (real(6, 2), [2, 4])])
def vsplit(x, num_or_indices):
    """A list of parts along axis 0: see tensor_split; a number must divide the axis."""
    return _divided("vsplit", x, num_or_indices, 0, 2)


@op(
    "dsplit",
    operands=("x",),
    method=True,
    is_view=True,
    reference=np.dsplit,
    samples=[(real(2, 2, 6), 3), (real(2, 2, 6), [2, 4])],
)
def dsplit(x, num_or_indices):
    """A list of parts along axis 2: see tensor_split; a number must divide the axis."""
    return _divided("dsplit", x, num_or_indices, 2, 3)


def _divided(name: str, x: Value, num_or_indices: Any, axis: int, rank: int) -> list[Value]:
    if x.ndim < rank:
        raise ShapeError(f"{name}(): x is {list(x.shape)}; it must have {rank} axes at least")
    if isinstance(num_or_indices, int) and (num_or_indices < 1 or x.shape[axis] % num_or_indices):
        raise ShapeError(
            f"{name}(): axis {axis} of a tensor of shape {list(x.shape)} does not divide into {num_or_indices} parts"
        )
    return tensor_parts(name, x, num_or_indices, axis)


def _apart(name: str, x: Value, axis: int) -> list[Value]:
    axis = _split_axis(name, x, axis)
    shape = tuple(n for k, n in enumerate(x.shape) if k != axis)
    return [p.reshape(piece, shape) for piece in cut(x, axis, [1] * x.shape[axis])]


@op(
    "unstack",
    operands=("x",),
    method=True,
    is_view=True,
    reference=lambda x, axis=0, num=None: [np.take(x, k, axis) for k in range(x.shape[axis])],
    samples=[(real(3, 2),), (real(2, 3), -1)],
)
def unstack(x, axis=0, num=None):
    """The list of slices along ``axis``, without it. num: their number, checked when given."""
    slices = _apart("unstack", x, axis)
    if num is not None and num != len(slices):
        raise ArgumentError(f"unstack(): num is {num}, axis {axis} of a tensor of shape {list(x.shape)} has {len(slices)} slices")
    return slices


@op(
    "unbind",
    operands=("input",),
    method=True,
    is_view=True,
    reference=lambda x, axis=0: [np.take(x, k, axis) for k in range(x.shape[axis])],
    samples=[(real(3, 2),), (real(2, 3), -1)],
    aliases={"x": "input"},
)
def unbind(input, axis=0):
    """The list of slices along ``axis``, without it."""
    return _apart("unbind", input, axis)


# ------------------------------------------------------------------ products of lists


@op(
    "meshgrid",
    lists=("inputs",),
    variadic="inputs",
    keyword_only=("indexing",),
    reference=lambda xs, indexing="ij": list(np.meshgrid(*xs, indexing=indexing)),
    samples=[([real(3), real(2), real(4)],), ([real(3)],), ([real(3), real(2), real(4)], {"indexing": "xy"})],
    is_view=True,
)
def meshgrid(inputs, indexing="ij"):
    """One tensor for each vector, of shape [len(v) for v], that holds the vector along its own axis and repeats it along the others.

    indexing: ``"xy"`` has the first two axes swapped: [len(v1), len(v0), ...].
    """
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid(): indexing is {indexing!r}; it must be 'ij' or 'xy'")
    for v in inputs:
        if v.ndim > 1:
            raise ShapeError(f"meshgrid(): an input is {list(v.shape)}; they must be vectors or 0-D")
    axes = list(range(len(inputs)))
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    shape = tuple(inputs[k].numel for k in axes)
    return [
        p.broadcast_to(p.reshape(v, tuple(n if k == j else 1 for j, n in zip(axes, shape, strict=True))), shape)
        for k, v in enumerate(inputs)
    ]


@op(
    "cartesian_prod",
    lists=("x",),
    reference=lambda xs: np.stack([g.ravel() for g in np.meshgrid(*xs, indexing="ij")], -1) if len(xs) > 1 else xs[0],
    samples=[([real(3), real(2)],), ([real(3)],)],
)
def cartesian_prod(x):
    """Every tuple of one element from each vector, [count, vectors], the last one changing fastest; one vector as it is."""
    if any(v.ndim != 1 for v in x):
        raise ShapeError(f"cartesian_prod(): inputs have shapes {[list(v.shape) for v in x]}; they must be vectors")
    if len(x) == 1:
        return x[0]
    grids = meshgrid.body(list(promoted(*x)))
    return p.concat([p.reshape(g, (g.numel, 1)) for g in grids], 1)


@op(
    "block_diag",
    lists=("inputs",),
    reference=lambda xs: linalg.block_diag(*xs),
    samples=[([real(2, 3), real(1, 2), real(3)],), ([real(), real(2, 2)],)],
    tests="noempty noshape",
)
def block_diag(inputs):
    """A matrix with the inputs (at most 2-D; vectors are rows) along its diagonal and zeros elsewhere."""
    blocks = list(promoted(*inputs))
    if any(b.ndim > 2 for b in blocks):
        raise ShapeError(f"block_diag(): inputs have shapes {[list(b.shape) for b in blocks]}; they must have at most 2 axes")
    blocks = [p.reshape(b, (1,) * (2 - b.ndim) + b.shape) for b in blocks]
    columns, at, rows = sum(b.shape[1] for b in blocks), 0, []
    for b in blocks:
        rows.append(p.pad(b, (0, at), (0, columns - at - b.shape[1])))
        at += b.shape[1]
    return p.concat(rows, 0)
