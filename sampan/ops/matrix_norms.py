"""Norms and condition numbers of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ShapeError, message
from ..ir.program import Value
from . import primitives
from . import primitives as p
from .arguments import dropped, dtype_name, floating, normalized_axes, normalized_axis
from .define import op
from .linalg import square_matrices
from .reduction import checked_order, norm_over
from .samples import matrix, real, values

# ------------------------------------------------------------------ norms and condition


def matrix_norm_of(name: str, x: Value, order: Any, axes: tuple[int, int], keepdim: bool) -> Value:
    """A norm of the matrices of two axes."""
    rows, columns = axes
    if order == "fro":
        return dropped(norm_over(x, 2.0, axes), axes, keepdim)
    if order in (1, -1, float("inf"), float("-inf")):
        along, over = (rows, columns) if order in (1, -1) else (columns, rows)
        sums = p.reduce_sum(p.abs(x), (along,))
        return dropped((p.reduce_max if order > 0 else p.reduce_min)(sums, (over,)), axes, keepdim)
    if order in ("nuc", 2, -2):
        others = tuple(k for k in range(x.ndim) if k not in axes)
        s = p.svd(p.transpose(x, (*others, rows, columns)))[1]
        reduce = p.reduce_sum if order == "nuc" else p.reduce_max if order == 2 else p.reduce_min
        kept = p.reshape(reduce(s, (s.ndim - 1,)), tuple(1 if k in axes else n for k, n in enumerate(x.shape)))
        return dropped(kept, axes, keepdim)
    raise ArgumentError(message(f"{name}(): p is {order!r}", "a matrix norm takes 'fro', 'nuc', 1, -1, 2, -2, inf or -inf"))


def _matrix_norm_reference(x, p="fro", axis=(-2, -1), keepdim=False):
    return np.asarray(np.linalg.norm(x, p, tuple(axis), keepdim))


_INF = float("inf")


@op(
    ["linalg.matrix_norm"],
    operands=("x",),
    keyword_only=("dtype",),
    reference=_matrix_norm_reference,
    samples=[
        (real(3, 4),),
        *((real(2, 3, 4), o) for o in ("nuc", 1, -1, 2, -2, _INF, -_INF)),
        (real(3, 2, 4), "fro", [0, 2], True),
    ],
    tests="noscalar noempty noshape",
    tolerance=5,
)
def matrix_norm(x, p="fro", axis=(-2, -1), keepdim=False, dtype=None):
    """A norm of the matrices of two axes: fro, nuc, 1, -1, 2, -2, inf or -inf."""
    x = floating(x)
    if dtype is not None:
        x = primitives.cast(x, dtype_name("matrix_norm", dtype))
    if not isinstance(axis, (list, tuple)) or len(axis) != 2:
        raise ArgumentError(message(f"matrix_norm(): axis is {axis!r}", "it must be a list of the two axes of the matrices"))
    rows, columns = (normalized_axis("matrix_norm", a, x.ndim) for a in axis)
    if rows == columns or x.ndim < 2:
        raise ShapeError(f"matrix_norm(): axis {list(axis)} must be two different axes of a tensor of shape {list(x.shape)}")
    return matrix_norm_of("matrix_norm", x, p, (rows, columns), keepdim)


def _norm_reference(x, p=None, axis=None, keepdim=False):
    axes = tuple(range(x.ndim)) if axis is None else tuple(np.atleast_1d(axis))
    if axis is not None and len(axes) == 2:
        return np.asarray(np.linalg.norm(x, p, axes, keepdim))
    others = [k for k in range(x.ndim) if k not in [a % x.ndim for a in axes]]
    rows = np.transpose(x, [*others, *(a for a in range(x.ndim) if a not in others)])
    flat = np.linalg.norm(rows.reshape([*rows.shape[: len(others)], -1]), 2 if p in (None, "fro") else p, -1)
    return np.expand_dims(flat, tuple(k for k in range(x.ndim) if k not in others)) if keepdim else np.asarray(flat)


@op(
    ["linalg.norm", "norm"],
    operands=("x",),
    method=True,
    reference=_norm_reference,
    samples=[
        (real(3, 4),),
        (real(2, 3, 4), 1, -1),
        (real(2, 3, 4), "fro", [1, 2], True),
        *((real(2, 3, 4), o, [0, 2]) for o in (None, 1, -1, 2, -2, _INF, -_INF)),
        (real(2, 3, 4, 2), 3.0, [0, 2, 3]),
        (real(3, 4), 1),
        (real(3, 4), 0.5, [1], True),
        (real(3, 4), "nuc", [0, 1]),
        (real(3, 4), _INF),
        (values(0.0, 0.0),),
    ],
    tests="noempty noscalar noshape",
    tolerance=5,
)
def norm(x, p=None, axis=None, keepdim=False, dtype=None):
    """A matrix norm where ``axis`` names two axes, else a vector norm over the axis, or over all elements by default.

    p: of matrices ``"fro"`` (the default), ``"nuc"``, 1, -1, 2, -2, inf or -inf, as in ``linalg.matrix_norm``;
    of vectors any number, 2 by default. The gradient at a zero vector is 0.
    """
    x = floating(x)
    if dtype is not None:
        x = primitives.cast(x, dtype_name("norm", dtype))
    axes = normalized_axes("norm", axis, x.ndim)
    if isinstance(axis, (list, tuple)) and len(axis) == 2:
        rows, columns = (normalized_axis("norm", a, x.ndim) for a in axis)
        return matrix_norm_of("norm", x, "fro" if p is None else p, (rows, columns), keepdim)
    if p == "nuc":
        raise ArgumentError(message("norm(): p is 'nuc'", f"it takes a list of two axes, and axis is {axis!r}"))
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(f"norm(): p is {p!r}; it must be a number, 'fro' or 'nuc'")
    order = 2.0 if p in (None, "fro") else checked_order("norm", p)
    return dropped(norm_over(x, order, axes), axes, keepdim)


def _cond_reference(x, p=None):
    return np.asarray(np.linalg.cond(x, p)).real  # before NumPy 2.3 complex, for complex matrices


@op(
    ["linalg.cond"],
    operands=("x",),
    method="cond",
    reference=_cond_reference,
    samples=[(matrix(3, 3),), *((matrix(2, 3, 3), o) for o in ("fro", "nuc", 1, -1, 2, -2, _INF, -_INF)), (real(4, 3),)],
    tests="noscalar noempty noshape",
    tolerance=50,
)
def cond(x, p=None):
    """The condition number of matrices: norm(x, p) * norm(inv(x), p); of singular values for p None, 2 and -2 (then x may be any matrix)."""
    x = floating(x)
    if x.ndim < 2:
        raise ShapeError(f"cond(): x is {list(x.shape)}; it must hold matrices [..., M, N]")
    if p in (None, 2, -2):
        return _singular_ratio(x, p == -2)
    axes = (x.ndim - 2, x.ndim - 1)
    size = matrix_norm_of("cond", square_matrices("cond", x), p, axes, False)
    return primitives.mul(size, matrix_norm_of("cond", primitives.inverse(x), p, axes, False))


def _singular_ratio(x: Value, inverted: bool) -> Value:
    s = p.svd(x)[1]
    last = (s.ndim - 1,)
    top, low = (p.reshape(reduce(s, last), s.shape[:-1]) for reduce in (p.reduce_max, p.reduce_min))
    return p.div(low, top) if inverted else p.div(top, low)
