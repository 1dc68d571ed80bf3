"""Triangles and diagonals of matrices."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ShapeError
from ..ir.program import Value
from . import primitives as p
from .arguments import dtype_name, normalized_axis
from .define import op
from .samples import real


def below(shape: tuple[int, ...], diagonal: int) -> Value:
    """Whether each element of [..., rows, columns] lies on or below a diagonal."""
    rank = len(shape)
    return p.le(p.iota(shape, rank - 1), p.add(p.iota(shape, rank - 2), diagonal))


def _matrix(name: str, x: Value) -> Value:
    if x.ndim < 2:
        raise ShapeError(f"{name}(): x is {list(x.shape)}; it must have 2 axes at least")
    return x


_TRIANGLES = [(real(3, 4),), (real(2, 4, 3), 1), (real(3, 3), -1), (real(3, 3), 9)]


@op("tril", operands=("x",), method=True, inplace=True, reference=np.tril, samples=_TRIANGLES)
def tril(x, diagonal=0):
    """x with zeros above a diagonal (0 the main one, positive above it) of its last two axes."""
    return p.select(below(_matrix("tril", x).shape, int(diagonal)), x, 0)


@op("triu", operands=("x",), method=True, inplace=True, reference=np.triu, samples=_TRIANGLES)
def triu(x, diagonal=0):
    """x with zeros below a diagonal (0 the main one, positive above it) of its last two axes."""
    return p.select(below(_matrix("triu", x).shape, int(diagonal) - 1), 0, x)


def _indices(name: str, row: Any, col: Any, offset: int, dtype: Any, function: Any) -> Value:
    if row < 0 or col < 0:
        raise ArgumentError(f"{name}(): row {row} and col {col} must not be negative")
    return p.array(np.array(function(row, offset, col), np.int64).reshape(2, -1), dtype_name(name, dtype))


@op(
    "tril_indices",
    operands=(),
    reference=lambda r, c, o=0, dtype="int64": np.array(np.tril_indices(r, o, c)),
    samples=[(3, 4), (4, 3, 1)],
)
def tril_indices(row, col, offset=0, dtype="int64"):
    """[2, N]: the rows and columns of the lower triangle of a row x col matrix, row by row."""
    return _indices("tril_indices", row, col, offset, dtype, np.tril_indices)


@op(
    "triu_indices",
    operands=(),
    reference=lambda r, c=None, o=0, dtype="int64": np.array(np.triu_indices(r, o, c or r)),
    samples=[(3, 4), (4, 3, 1), (3,)],
)
def triu_indices(row, col=None, offset=0, dtype="int64"):
    """[2, N]: the rows and columns of the upper triangle of a row x col (row x row by default) matrix, row by row."""
    return _indices("triu_indices", row, row if col is None else col, offset, dtype, np.triu_indices)


def plane(name: str, x: Value, offset: int, axis1: int, axis2: int) -> tuple[Value, tuple[int, ...], tuple[int, int, int]]:
    """x with the two axes last and flattened into one; the order of axes; and (start, count, step) of the diagonal along it."""
    a, b = (normalized_axis(name, k, x.ndim) for k in (axis1, axis2))
    if a == b or x.ndim < 2:
        raise ShapeError(
            f"{name}(): axis1 {axis1} and axis2 {axis2} must be two different axes of a tensor of shape {list(x.shape)}"
        )
    order = (*(k for k in range(x.ndim) if k not in (a, b)), a, b)
    rows, columns = x.shape[a], x.shape[b]
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    start = (offset if offset >= 0 else -offset * columns) if count else 0
    moved = p.transpose(x, order)
    return p.reshape(moved, (*moved.shape[:-2], rows * columns)), order, (start, count, columns + 1)


def _along(x: Value, line: tuple[int, int, int]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    lead = x.ndim - 1
    return (*(0 for _ in range(lead)), line[0]), (*x.shape[:-1], line[1]), (*(1 for _ in range(lead)), line[2])


def diagonal_of(name: str, x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """A diagonal of the planes of two axes, as the last axis."""
    flat, _, line = plane(name, x, int(offset), axis1, axis2)
    return p.slice_(flat, *_along(flat, line))


_DIAGONALS = [(real(3, 4),), (real(2, 3, 4), 1, 1, 2), (real(3, 4), -1), (real(3, 4, 2), 0, -1, 0), (real(3, 3), 5)]


@op(["diagonal", "linalg.diagonal"], operands=("x",), method=True, is_view=True, reference=np.diagonal, samples=_DIAGONALS)
def diagonal(x, offset=0, axis1=0, axis2=1):
    """The diagonal of the planes of two axes, as the last axis; a positive offset moves toward later columns."""
    return diagonal_of("diagonal", x, offset, axis1, axis2)


@op("trace", operands=("x",), method=True, reference=lambda *a: np.asarray(np.trace(*a)), samples=_DIAGONALS)
def trace(x, offset=0, axis1=0, axis2=1):
    """The sum of a diagonal of the planes of two axes."""
    line = diagonal_of("trace", x, offset, axis1, axis2)
    return p.reshape(p.reduce_sum(line, (line.ndim - 1,)), line.shape[:-1])


def written_diagonal(name: str, x: Value, y: Value, offset: int, axis1: int, axis2: int) -> Value:
    """x with y over a diagonal."""
    flat, order, line = plane(name, x, int(offset), axis1, axis2)
    starts, sizes, steps = _along(flat, line)
    if y.shape != sizes:
        raise ShapeError(f"{name}(): y is {list(y.shape)}; the diagonal of x {list(x.shape)} takes {list(sizes)}")
    written = p.insert_slice(flat, p.cast(y, x.dtype), starts, steps)
    inverse = tuple(order.index(k) for k in range(x.ndim))
    return p.transpose(p.reshape(written, tuple(x.shape[k] for k in order)), inverse)


def _scatter_reference(x, y, offset=0, axis1=0, axis2=1):
    x = x.copy()
    view = np.moveaxis(x, (axis1, axis2), (-2, -1))
    rows = np.arange(y.shape[-1]) + max(-offset, 0)
    view[..., rows, rows + offset] = y
    return x


@op(
    "diagonal_scatter",
    operands=("x", "y"),
    method=True,
    reference=_scatter_reference,
    samples=[
        (real(3, 4), real(3)),
        (real(2, 3, 4), real(2, 3), 1, 1, 2),
        (real(3, 4), real(2), -1),
        (real(4, 3, 2), real(3, 2), 0, 2, 0),
    ],
    tests="noempty noscalar noshape",
)
def diagonal_scatter(x, y, offset=0, axis1=0, axis2=1):
    """x with y written over the diagonal that diagonal(x, offset, axis1, axis2) gives."""
    return written_diagonal("diagonal_scatter", x, y, offset, axis1, axis2)


@op(
    "",
    operands=("x", "y"),
    method=True,
    inplace=True,
    reference=_scatter_reference,
    samples=[(real(3, 4), real(3)), (real(2, 3, 4), real(2, 3), 1, 1, 2)],
    tests="noempty noscalar noshape",
    aliases={"dim1": "axis1", "dim2": "axis2"},
)
def fill_diagonal_tensor(x, y, offset=0, axis1=0, axis2=1):
    """x with y written over a diagonal of two of its axes."""
    return written_diagonal("fill_diagonal_tensor", x, y, offset, axis1, axis2)


def _fill_reference(x, value, offset=0, wrap=False):
    x = x.copy()
    rows, columns = x.shape[-2:] if x.ndim == 2 else (x.shape[0], x.shape[0])
    if wrap and x.ndim == 2 and not offset:
        np.fill_diagonal(x, value, wrap=True)
        return x
    for k in range(rows):
        if 0 <= k + offset < columns:
            x[(k, k + offset) if x.ndim == 2 else (k,) * x.ndim] = value
    return x


@op(
    "",
    operands=("x",),
    method=True,
    inplace="fill_diagonal_",
    reference=_fill_reference,
    samples=[(real(3, 4), 2), (real(7, 3), 1, 0, True), (real(7, 3), 1), (real(3, 4), 5, 1), (real(3, 3, 3), 4)],
    tests="noempty noscalar noshape",
)
def fill_diagonal(x, value, offset=0, wrap=False):
    """x with ``value`` along its main diagonal (of a matrix: shifted by ``offset``;
    ``wrap`` starts again below a square in a tall one).
    """
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(f"fill_diagonal_(): x is {list(x.shape)}; it must be a matrix, or have equal sizes along all axes")
    position = p.full(x.shape, 0, "int64")
    step = 1
    strides = []
    for axis in reversed(range(x.ndim)):
        position = p.add(position, p.mul(p.iota(x.shape, axis), step))
        strides.append(step)
        step *= x.shape[axis]
    if x.ndim > 2:
        return p.select(p.eq(p.mod(position, sum(strides)), 0), p.full(x.shape, value, x.dtype), x)
    rows, columns = x.shape
    row, column = p.iota(x.shape, 0), p.iota(x.shape, 1)
    if wrap and rows > columns:
        row = p.mod(row, columns + 1)
    return p.select(p.eq(column, p.add(row, int(offset))), p.full(x.shape, value, x.dtype), x)


def embedded(x: Value, offset: int, fill: Any = 0) -> Value:
    """[..., n] as a diagonal of [..., n + |offset|, n + |offset|]."""
    size = x.shape[-1] + abs(offset)
    lead = (0,) * (x.ndim - 1)
    low, high = (0, offset) if offset >= 0 else (-offset, 0)
    rows = p.reshape(p.pad(x, (*lead, low), (*lead, high)), (*x.shape[:-1], size, 1))
    shape = (*x.shape[:-1], size, size)
    on = p.eq(p.iota(shape, x.ndim), p.add(p.iota(shape, x.ndim - 1), offset))
    return p.select(on, p.broadcast_to(rows, shape), fill)


def _diag_reference(x, offset=0, padding_value=0):
    if x.ndim == 2:
        return np.diagonal(x, offset)
    made = np.diag(x.ravel(), offset)
    return np.where(np.diag(np.ones(x.size, bool), offset), made, np.asarray(padding_value, x.dtype))


@op(
    "diag",
    operands=("x",),
    method=True,
    reference=_diag_reference,
    samples=[(real(3),), (real(3), 1, 9), (real(3), -2), (real(3, 4), 1), (real(),)],
    tests="noempty",
)
def diag(x, offset=0, padding_value=0):
    """A vector as a diagonal of a square matrix filled with padding_value; of a matrix its diagonal."""
    if x.ndim > 2:
        raise ShapeError(f"diag(): x is {list(x.shape)}; it must be a vector or a matrix")
    return diagonal_of("diag", x, offset) if x.ndim == 2 else embedded(p.reshape(x, (x.numel,)), int(offset), padding_value)


@op("diagflat", operands=("x",), method=True, reference=np.diagflat, samples=[(real(2, 2),), (real(3), -1)], tests="noempty")
def diagflat(x, offset=0):
    """All elements of x as a diagonal of a square matrix of zeros."""
    return embedded(p.reshape(x, (x.numel,)), int(offset))


def _embed_reference(x, offset=0, dim1=-2, dim2=-1):
    size = x.shape[-1] + abs(offset)
    y = np.zeros((*x.shape[:-1], size, size), x.dtype)
    rows = np.arange(x.shape[-1]) + max(-offset, 0)
    y[..., rows, rows + offset] = x
    return np.moveaxis(y, (-2, -1), (dim1, dim2))


@op(
    ["diag_embed"],
    operands=("input",),
    method=True,
    reference=_embed_reference,
    samples=[(real(2, 3),), (real(2, 3), 1, 0, 2), (real(3), -1)],
    aliases={"x": "input"},
    tests="noempty",
)
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """The last axis as a diagonal of planes of zeros, whose rows and columns are the axes dim1 and dim2 of the result."""
    if not input.ndim:
        raise ShapeError("diag_embed(): input is 0-D; it must have an axis")
    rank = input.ndim + 1
    a, b = (normalized_axis("diag_embed", k, rank) for k in (dim1, dim2))
    if a == b:
        raise ShapeError(f"diag_embed(): dim1 {dim1} and dim2 {dim2} are the same axis")
    y = embedded(input, int(offset))
    lead = iter(range(rank - 2))
    return p.transpose(y, tuple(rank - 2 if k == a else rank - 1 if k == b else next(lead) for k in range(rank)))


@op(
    "vander",
    operands=("x",),
    method=True,
    reference=lambda x, n=None, increasing=False: np.vander(x, n, increasing),
    samples=[(real(3),), (real(3), 2, True), (real(3), 1), (real(3), 0)],
    tests="noshape noscalar",
)
def vander(x, n=None, increasing=False):
    """[len(x), n]: the powers x ** (n - 1) ... x ** 0 of a vector (or increasing), n = len(x) by default."""
    if x.ndim != 1:
        raise ShapeError(f"vander(): x is {list(x.shape)}; it must be a vector")
    n = x.shape[0] if n is None else n
    if n < 0:
        raise ArgumentError(f"vander(): n is {n}; it must not be negative")
    x = p.cast(x, "int64") if x.dtype == "bool" else x
    if n == 0:
        return p.full((x.shape[0], 0), 0, x.dtype)
    ones = p.full((x.shape[0], 1), 1, x.dtype)
    powers = p.scan(p.broadcast_to(p.reshape(x, ones.shape), (x.shape[0], n - 1)), "prod", 1, not increasing)
    return p.concat([ones, powers] if increasing else [powers, ones], 1)


@op(
    "combinations",
    operands=("x",),
    method=True,
    reference=lambda x, r=2, w=False: np.array(
        list((itertools.combinations_with_replacement if w else itertools.combinations)(x, r)), x.dtype
    ).reshape(-1, r),
    samples=[(real(4),), (real(3), 2, True), (real(4), 3), (real(2), 3)],
    tests="noshape noscalar",
)
def combinations(x, r=2, with_replacement=False):
    """[count, r]: every choice of r elements of a vector, in order; with_replacement lets an element be chosen again."""
    if x.ndim != 1:
        raise ShapeError(f"combinations(): x is {list(x.shape)}; it must be a vector")
    if r < 0:
        raise ArgumentError(f"combinations(): r is {r}; it must not be negative")
    if r == 0:
        return p.full((0,), 0, x.dtype)
    return p.gather(x, p.choices(x.shape[0], r, with_replacement), 0)
