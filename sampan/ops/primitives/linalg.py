"""Decompositions and solvers over batches of matrices, by LAPACK through NumPy and SciPy, with their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base import dtypes
from ...base.errors import ArgumentError, ShapeError, message
from ...base.lazy import scipy_linalg as linalg
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, append, broadcast_shapes, gradient_of, primitive, require_kind, same_dtype
from .linear import matmul
from .maps import add, cast, conj, eq, imag, le, make_complex, mul, neg, select, sub
from .views import broadcast_to, full, iota, reshape, slice_, sum_to, swap_last


def matrices(op: Op, square: bool = True) -> Value:
    x = op.inputs[0]
    require_kind(op, "fc", x.dtype)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        wanted = "square matrices [..., N, N]" if square else "matrices [..., M, N]"
        raise ShapeError(f"{op.name}(): x is {list(x.shape)}; it must hold {wanted}")
    return x


def _same(op: Op) -> list[Type]:
    x = matrices(op)
    return [(x.dtype, x.shape)]


def wide(x: Array) -> Array:
    """float16 and bfloat16 as float32, which LAPACK has."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def call_lapack(name: str, function: Callable[..., Any], *arrays: Array, **attributes: Any) -> Any:
    """The function on wide arrays; a singular matrix becomes an ArgumentError."""
    dtype = arrays[0].dtype
    try:
        with np.errstate(all="ignore"):
            result = function(*map(wide, arrays), **attributes)
    except np.linalg.LinAlgError as error:
        raise ArgumentError(
            message(f"{name}(): {error}", "", "check the matrix's rank, or add a multiple of the identity")
        ) from None

    def narrow(r: Array) -> Array:
        r = np.asarray(r)
        return r.astype(dtype) if dtype.itemsize == 2 and r.dtype == np.float32 else r

    return tuple(map(narrow, result)) if isinstance(result, tuple) else narrow(result)


def adjoint(x: Value) -> Value:
    """The conjugate transpose of the last two axes."""
    x = swap_last(x)
    return conj(x) if dtypes.is_complex(x.dtype) else x


def on_diagonal(shape: tuple[int, ...]) -> Value:
    return eq(iota(shape, len(shape) - 2), iota(shape, len(shape) - 1))


def identity(x: Value) -> Value:
    """Identity matrices of x's shape and dtype."""
    return select(on_diagonal(x.shape), full(x.shape, 1, x.dtype), 0)


def lower(x: Value, diagonal: int = 0) -> Value:
    """x with zeros above a diagonal."""
    rank = x.ndim
    return select(le(iota(x.shape, rank - 1), add(iota(x.shape, rank - 2), diagonal)), x, 0)


def as_column(x: Value) -> Value:
    return reshape(x, (*x.shape, 1))


def as_row(x: Value) -> Value:
    return reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def scaled_columns(x: Value, scale: Value) -> Value:
    """x with column k times scale[k]."""
    return mul(x, broadcast_to(as_row(cast(scale, x.dtype)), x.shape))


# ------------------------------------------------------------------ cholesky, inverse, solve


@primitive("host", _same, name="cholesky")
def _cholesky(x: Array) -> Array:
    return call_lapack("cholesky", np.linalg.cholesky, x)


def cholesky(x: Value) -> Value:
    """The lower triangular L with x = L @ adjoint(L); only x's lower triangle is read."""
    return append("cholesky", x)


@gradient_of("cholesky")
def _cholesky_gradient(op: Op, g: Value) -> Gradients:
    """Source: Murray, "Differentiation of the Cholesky decomposition", https://arxiv.org/abs/1602.07527"""
    factor = op.outputs[0]
    inner = lower(matmul(adjoint(factor), g))
    inner = sub(inner, mul(select(on_diagonal(inner.shape), inner, 0), 0.5))
    upper = adjoint(factor)
    half = solve(upper, adjoint(solve(upper, adjoint(inner))))
    return (mul(add(half, adjoint(half)), 0.5),)


@primitive("host", _same, name="inverse")
def _inverse(x: Array) -> Array:
    return call_lapack("inv", np.linalg.inv, x)


def inverse(x: Value) -> Value:
    """The inverse matrices."""
    return append("inverse", x)


@gradient_of("inverse")
def _inverse_gradient(op: Op, g: Value) -> Gradients:
    y = adjoint(op.outputs[0])
    return (neg(matmul(y, matmul(g, y))),)


def _infer_solve(op: Op) -> list[Type]:
    a, b = matrices(op), op.inputs[1]
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ShapeError(
            f"solve(x, y): x is {list(a.shape)} and y is {list(b.shape)}; y must have as many rows as x ({a.shape[-1]})"
        )
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return [(same_dtype(op), (*batch, *b.shape[-2:]))]


@primitive("host", _infer_solve, name="solve")
def _solve(a: Array, b: Array) -> Array:
    return call_lapack("solve", np.linalg.solve, a, b)


def solve(a: Value, b: Value) -> Value:
    """x with a @ x = b; b [..., N, K]."""
    return append("solve", a, b)


@gradient_of("solve")
def _solve_gradient(op: Op, g: Value) -> Gradients:
    a, b = op.inputs
    gb = solve(adjoint(a), g)
    return sum_to(neg(matmul(gb, adjoint(op.outputs[0]))), a.shape), sum_to(gb, b.shape)


@primitive("host", _infer_solve, name="triangular_solve")
def _triangular_solve(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))
    result = np.empty(b.shape, b.dtype)
    for at in np.ndindex(*batch):
        if b.size:
            result[at] = call_lapack(
                "triangular_solve", linalg.solve_triangular, a[at], b[at], lower=not upper, unit_diagonal=unit
            )
    return result


def triangular_solve(a: Value, b: Value, upper: bool, unit: bool = False) -> Value:
    """x with a @ x = b, reading one triangle of a; unit: its diagonal counts as ones."""
    return append("triangular_solve", a, b, upper=upper, unit=unit)


@gradient_of("triangular_solve")
def _triangular_gradient(op: Op, g: Value) -> Gradients:
    a, b = op.inputs
    upper, unit = op.attributes["upper"], op.attributes["unit"]
    gb = triangular_solve(adjoint(a), g, not upper, unit)
    ga = neg(matmul(gb, adjoint(op.outputs[0])))
    ga = sub(ga, lower(ga, -1)) if upper else lower(ga)
    if unit:
        ga = select(on_diagonal(ga.shape), 0, ga)
    return sum_to(ga, a.shape), sum_to(gb, b.shape)


def _infer_slogdet(op: Op) -> list[Type]:
    x = matrices(op)
    return [(x.dtype, x.shape[:-2]), (dtypes.real_of(x.dtype), x.shape[:-2])]


@primitive("host", _infer_slogdet, name="slogdet")
def _slogdet(x: Array) -> tuple[Array, Array]:
    return call_lapack("slogdet", lambda a: tuple(np.linalg.slogdet(a)), x)


def slogdet(x: Value) -> tuple[Value, Value]:
    """(the determinant's sign, or its unit complex number; log |determinant|)."""
    return append("slogdet", x)


def _over_matrices(g: Value, x: Value) -> Value:
    return broadcast_to(reshape(g, (*g.shape, 1, 1)), x.shape)


@gradient_of("slogdet")
def _slogdet_gradient(op: Op, g_sign: Value | None, g: Value | None) -> Gradients:
    """A complex sign turns with the imaginary part of trace(inverse(x) @ dx), the logarithm grows with the real one."""
    x, sign = op.inputs[0], op.outputs[0]
    is_turning = g_sign is not None and dtypes.is_complex(x.dtype)
    if g is None and not is_turning:
        return (None,)
    size = full(sign.shape, 0, dtypes.real_of(x.dtype)) if g is None else g
    if dtypes.is_complex(x.dtype):
        turn = imag(mul(g_sign, conj(sign))) if is_turning else mul(size, 0)
        size = make_complex(size, turn)
    return (mul(_over_matrices(size, x), adjoint(inverse(x))),)


@primitive("host", lambda op: _infer_slogdet(op)[:1], name="determinant")
def _determinant(x: Array) -> Array:
    return call_lapack("det", np.linalg.det, x)


def determinant(x: Value) -> Value:
    """The determinants."""
    return append("determinant", x)


@primitive("host", _same, name="cofactors")
def _cofactors(x: Array) -> Array:
    """det(x) * inv(x) transposed and conjugated, right for singular x too: by its singular values."""

    def function(a: Array) -> Array:
        u, s, vh = np.linalg.svd(a)
        n = s.shape[-1]
        others = np.where(np.eye(n, dtype=bool), 1, np.broadcast_to(s[..., None, :], (*s.shape, n))).prod(-1)
        unit = np.linalg.det(u) * np.linalg.det(vh)
        made = (u * others[..., None, :]) @ vh
        return (made * np.conj(unit)[..., None, None]).astype(a.dtype)

    return call_lapack("det", function, x) if x.size else x


@gradient_of("determinant")
def _determinant_gradient(op: Op, g: Value) -> Gradients:
    x = op.inputs[0]
    return (mul(_over_matrices(g, x), append("cofactors", x)),)


# ------------------------------------------------------------------ least squares, exponential


def _infer_lstsq(op: Op) -> list[Type]:
    a, b = matrices(op, False), op.inputs[1]
    if b.ndim != a.ndim or b.shape[:-2] != a.shape[:-2] or b.shape[-2] != a.shape[-2]:
        raise ShapeError(f"lstsq(x, y): x is {list(a.shape)} and y is {list(b.shape)}; y must have x's batch and rows")
    dtype, batch = same_dtype(op), a.shape[:-2]
    return [
        (dtype, (*batch, a.shape[-1], b.shape[-1])),
        ("int32", batch),
    ]


@primitive("host", _infer_lstsq, name="lstsq")
def _lstsq(a: Array, b: Array, rcond: float) -> tuple[Array, Array]:
    batch = a.shape[:-2]
    x = np.zeros((*batch, a.shape[-1], b.shape[-1]), a.dtype)
    rank = np.zeros(batch, np.int32)
    for at in np.ndindex(*batch):
        if a.size:
            x[at], _, rank[at], _ = call_lapack(
                "lstsq", lambda p, q: tuple(map(np.asarray, np.linalg.lstsq(p, q, rcond))), a[at], b[at]
            )
    return x, rank


def lstsq(a: Value, b: Value, rcond: float) -> tuple[Value, Value]:
    """(x with the least |a @ x - b|, the ranks)."""
    return append("lstsq", a, b, rcond=rcond)


@gradient_of("lstsq")
def _lstsq_gradient(op: Op, g: Value | None, *unused: Value | None) -> Gradients:
    """Through x = pinv(a) @ b, for matrices of full rank."""
    a, b = op.inputs
    if g is None:
        return None, None
    x = op.outputs[0]
    tall = a.shape[-2] >= a.shape[-1]
    gram = matmul(adjoint(a), a) if tall else matmul(a, adjoint(a))
    if tall:
        core = solve(gram, g)
        gb = matmul(a, core)
        residual = sub(b, matmul(a, x))
        ga = sub(matmul(residual, adjoint(core)), matmul(gb, adjoint(x)))
        return ga, gb
    gb = solve(gram, matmul(a, g))
    dual = solve(gram, b)
    kernel = sub(g, matmul(adjoint(a), gb))
    return sub(matmul(dual, adjoint(kernel)), matmul(gb, adjoint(x))), gb


@primitive("host", _same, name="matrix_exp")
def _matrix_exp(x: Array) -> Array:
    return call_lapack("matrix_exp", linalg.expm, x).astype(x.dtype) if x.size else x


def matrix_exp(x: Value) -> Value:
    """The matrix exponentials."""
    return append("matrix_exp", x)


@gradient_of("matrix_exp")
def _matrix_exp_gradient(op: Op, g: Value) -> Gradients:
    """By the exponential of a block matrix [[A, G], [0, A]], whose corner is the derivative in direction G. Source: Najfeld and Havel (1995)."""
    x = op.inputs[0]
    n, rank = x.shape[-1], x.ndim
    a = adjoint(x)
    lead = (0,) * (rank - 2)
    diagonal = add(
        append("pad", a, low=(0,) * rank, high=(*lead, n, n), value=0),
        append("pad", a, low=(*lead, n, n), high=(0,) * rank, value=0),
    )
    block = add(diagonal, append("pad", g, low=(*lead, 0, n), high=(*lead, n, 0), value=0))
    return (slice_(matrix_exp(block), (*lead, 0, n), x.shape, (1,) * rank),)


__all__ = [
    "adjoint",
    "cholesky",
    "determinant",
    "identity",
    "inverse",
    "lower",
    "lstsq",
    "matrix_exp",
    "slogdet",
    "solve",
    "triangular_solve",
]
