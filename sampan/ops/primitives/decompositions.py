"""Eigenvalues, singular values, QR and LU of batches of matrices, with their gradients."""

from __future__ import annotations

import numpy as np

from ...base import dtypes
from ...base.errors import ArgumentError
from ...base.lazy import scipy_linalg as linalg
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, append, gradient_of, primitive
from .host import require
from .linalg import (
    adjoint,
    as_column,
    as_row,
    call_lapack,
    identity,
    lower,
    matrices,
    on_diagonal,
    scaled_columns,
    solve,
    triangular_solve,
    wide,
)
from .linear import matmul
from .maps import add, cast, conj, div, eq, imag, make_complex, mul, neg, real, select, sub
from .moves import concat
from .reductions import reduce_sum
from .views import broadcast_to, full, reshape, slice_

# ------------------------------------------------------------------ eigenvalues


def _infer_eigh(op: Op) -> list[Type]:
    x = matrices(op)
    return [(dtypes.real_of(x.dtype), x.shape[:-1]), (x.dtype, x.shape)]


@primitive("host", _infer_eigh, name="eigh")
def _eigh(x: Array, upper: bool) -> tuple[Array, Array]:
    return call_lapack("eigh", lambda a: tuple(np.linalg.eigh(a, "U" if upper else "L")), x)


def eigh(x: Value, upper: bool = False) -> tuple[Value, Value]:
    """(ascending real eigenvalues, eigenvectors in columns) of Hermitian matrices; one triangle is read."""
    return append("eigh", x, upper=upper)


def _gaps(values: Value) -> Value:
    """1 / (v[j] - v[i]) at [i, j], 0 where equal."""
    shape = (*values.shape, values.shape[-1])
    gap = sub(broadcast_to(as_row(values), shape), broadcast_to(as_column(values), shape))
    same = eq(gap, 0)
    return select(same, 0, div(full(shape, 1, gap.dtype), select(same, 1, gap)))


@gradient_of("eigh")
def _eigh_gradient(op: Op, gw: Value | None, gv: Value | None) -> Gradients:
    w, v = op.outputs
    inner = None
    if gv is not None:
        inner = mul(cast(_gaps(w), v.dtype), matmul(adjoint(v), gv))
    if gw is not None:
        shape = (*w.shape, w.shape[-1])
        diagonal = select(on_diagonal(shape), broadcast_to(as_row(cast(gw, v.dtype)), shape), 0)
        inner = diagonal if inner is None else add(inner, diagonal)
    if inner is None:
        return (None,)
    whole = matmul(v, matmul(inner, adjoint(v)))
    return (mul(add(whole, adjoint(whole)), 0.5),)


def _infer_eig(op: Op) -> list[Type]:
    x = matrices(op)
    result = dtypes.complex_of(x.dtype)
    return [(result, x.shape[:-1]), (result, x.shape)]


@primitive("host", _infer_eig, name="eig")
def _eig(x: Array) -> tuple[Array, Array]:
    result = dtypes.complex_of(x.dtype.name)
    w, v = call_lapack("eig", lambda a: tuple(np.linalg.eig(a)), x)
    return w.astype(result), v.astype(result)


def eig(x: Value) -> tuple[Value, Value]:
    """(complex eigenvalues, unit eigenvectors in columns)."""
    return append("eig", x)


@gradient_of("eig")
def _eig_gradient(op: Op, gw: Value | None, gv: Value | None) -> Gradients:
    """Source: Boeddeker et al., "On the computation of complex-valued gradients with application to statistically optimum beamforming"."""
    x = op.inputs[0]
    w, v = op.outputs
    vh = adjoint(v)
    inner = None
    if gv is not None:
        # eigenvectors have unit length: the part of the gradient along each is dropped
        along = matmul(vh, gv)
        lengths = real(reduce_sum(select(on_diagonal(along.shape), along, 0), (along.ndim - 2,)))
        along = sub(along, scaled_columns(matmul(vh, v), reshape(lengths, w.shape)))
        inner = mul(conj(_gaps(w)), along)
    if gw is not None:
        shape = (*w.shape, w.shape[-1])
        diagonal = select(on_diagonal(shape), broadcast_to(as_row(gw), shape), 0)
        inner = diagonal if inner is None else add(inner, diagonal)
    if inner is None:
        return (None,)
    whole = matmul(solve(vh, inner), vh)
    return (whole if dtypes.is_complex(x.dtype) else cast(real(whole), x.dtype),)


# ------------------------------------------------------------------ singular values, QR, LU


def _infer_svd(op: Op) -> list[Type]:
    x = matrices(op, False)
    m, n = x.shape[-2:]
    k, batch = min(m, n), x.shape[:-2]
    whole = op.attributes["full_matrices"]
    return [
        (x.dtype, (*batch, m, m if whole else k)),
        (dtypes.real_of(x.dtype), (*batch, k)),
        (x.dtype, (*batch, n if whole else k, n)),
    ]


@primitive("host", _infer_svd, name="svd")
def _svd(x: Array, full_matrices: bool) -> tuple[Array, Array, Array]:
    return call_lapack("svd", lambda a: tuple(np.linalg.svd(a, full_matrices=full_matrices)), x)


def svd(x: Value, full_matrices: bool = False) -> tuple[Value, Value, Value]:
    """(U, descending singular values, V adjoint) with x = U @ diag(S) @ VH."""
    return append("svd", x, full_matrices=full_matrices)


@gradient_of("svd")
def _svd_gradient(op: Op, gu: Value | None, gs: Value | None, gvh: Value | None) -> Gradients:
    """Source: Townsend, "Differentiating the singular value decomposition" (2016); equal singular values give no gradient to U and V."""
    x = op.inputs[0]
    u, s, vh = op.outputs
    k = s.shape[-1]
    u, v = _columns(u, k), _columns(adjoint(vh), k)
    dtype = x.dtype
    inner = None if gs is None else select(on_diagonal((*s.shape, k)), broadcast_to(as_row(cast(gs, dtype)), (*s.shape, k)), 0)
    squares = _gaps(mul(s, s))
    is_zero = eq(s, 0)
    inverse_s = select(is_zero, 0, div(full(s.shape, 1, s.dtype), select(is_zero, 1, s)))
    outside: list[Value] = []

    def skewed(a: Value) -> Value:
        return mul(cast(squares, dtype), sub(a, adjoint(a)))

    if gu is not None:
        gu = _reduced_gradient("svd(full_matrices=True)", gu, k)
        term = scaled_columns(skewed(matmul(adjoint(u), gu)), s)
        if dtypes.is_complex(dtype):
            term = add(term, _phase(matmul(adjoint(u), gu), inverse_s))
        inner = term if inner is None else add(inner, term)
        rest = scaled_columns(sub(gu, matmul(u, matmul(adjoint(u), gu))), inverse_s)
        outside.append(matmul(rest, adjoint(v)))
    if gvh is not None:
        gv = _reduced_gradient("svd(full_matrices=True)", adjoint(gvh), k)
        rows = skewed(matmul(adjoint(v), gv))
        term = mul(rows, broadcast_to(as_column(cast(s, dtype)), rows.shape))
        inner = term if inner is None else add(inner, term)
        rest = scaled_columns(sub(gv, matmul(v, matmul(adjoint(v), gv))), inverse_s)
        outside.append(matmul(u, adjoint(rest)))
    if inner is None:
        return (None,)
    total = matmul(u, matmul(inner, adjoint(v)))
    for term in outside:
        total = add(total, term)
    return (total,)


def _columns(v: Value, stop: int, start: int = 0) -> Value:
    return slice_(v, (*(0 for _ in v.shape[:-1]), start), (*v.shape[:-1], stop - start), (1,) * v.ndim)


def _reduced_gradient(name: str, g: Value, k: int) -> Value:
    """The gradient of the first k columns; those after them complete a basis in any way, so that running it raises if their gradient is not zero."""
    if g.shape[-1] == k:
        return g
    text = f"{name}: columns after the first {k} only complete a basis and have no gradient; use the reduced form, or those {k}"
    return require(_columns(g, k), eq(_columns(g, g.shape[-1], k), 0), text)


def _phase(a: Value, inverse_s: Value) -> Value:
    """The imaginary diagonal of a, over the singular values: what turning U and V together leaves."""
    turned = select(on_diagonal(a.shape), imag(a), 0)
    return scaled_columns(make_complex(mul(turned, 0), turned), inverse_s)


def _infer_qr(op: Op) -> list[Type]:
    x = matrices(op, False)
    m, n = x.shape[-2:]
    k = m if op.attributes["complete"] else min(m, n)
    return [(x.dtype, (*x.shape[:-2], m, k)), (x.dtype, (*x.shape[:-2], k, n))]


@primitive("host", _infer_qr, name="qr")
def _qr(x: Array, complete: bool) -> tuple[Array, Array]:
    return call_lapack("qr", lambda a: tuple(np.linalg.qr(a, "complete" if complete else "reduced")), x)


def qr(x: Value, complete: bool = False) -> tuple[Value, Value]:
    """(Q with orthonormal columns, upper triangular R) with x = Q @ R."""
    return append("qr", x, complete=complete)


@gradient_of("qr")
def _qr_gradient(op: Op, gq: Value | None, gr: Value | None) -> Gradients:
    """Source: Seeger et al., "Auto-differentiating linear algebra", https://arxiv.org/abs/1710.08717"""
    x = op.inputs[0]
    q, r = op.outputs
    m, n = x.shape[-2:]
    if op.attributes["complete"] and m > n:
        gq = None if gq is None else _reduced_gradient("qr(mode='complete')", gq, n)
        gr = None if gr is None else _rows(gr, n)
        return (_qr_square(_columns(q, n), _rows(r, n), gq, gr),)
    if m < n:
        # x = [a, b] and r = [q adjoint a, q adjoint b]: the gradient goes through the square part a
        first = (*x.shape[:-1], m)
        rest = (*x.shape[:-1], n - m)
        zeros, at, ones = (0,) * x.ndim, (*(0 for _ in x.shape[:-1]), m), (1,) * x.ndim
        b = slice_(x, at, rest, ones)
        gq = gq if gq is not None else full(q.shape, 0, x.dtype)
        gr1 = None if gr is None else slice_(gr, zeros, first, ones)
        ga2 = None
        if gr is not None:
            gr2 = slice_(gr, at, rest, ones)
            gq = add(gq, matmul(b, adjoint(gr2)))
            ga2 = matmul(q, gr2)
        ga1 = _qr_square(q, slice_(r, zeros, first, ones), gq, gr1)
        low, high = (0,) * x.ndim, (*(0 for _ in x.shape[:-1]), n - m)
        result = append("pad", ga1, low=low, high=high, value=0)
        if ga2 is not None:
            result = add(result, append("pad", ga2, low=at, high=(0,) * x.ndim, value=0))
        return (result,)
    return (_qr_square(q, r, gq, gr),)


def _rows(v: Value, stop: int, start: int = 0) -> Value:
    return adjoint(_columns(adjoint(v), stop, start))


def _qr_square(q: Value, r: Value, gq: Value | None, gr: Value | None) -> Value:
    inner = None
    if gr is not None:
        inner = matmul(r, adjoint(gr))
    if gq is not None:
        term = neg(matmul(adjoint(gq), q))
        inner = term if inner is None else add(inner, term)
    if inner is None:
        raise ArgumentError("qr(): no gradient was given")
    strict = lower(inner, -1)
    half = select(on_diagonal(inner.shape), inner, 0)
    if dtypes.is_complex(q.dtype):
        size = real(half)
        half = make_complex(size, mul(size, 0))
    symmetric = add(add(strict, adjoint(strict)), half)
    middle = matmul(q, symmetric)
    if gq is not None:
        middle = add(gq, middle)
    return adjoint(triangular_solve(r, adjoint(middle), True))


def _infer_lu(op: Op) -> list[Type]:
    x = matrices(op, False)
    k = min(x.shape[-2:])
    return [(x.dtype, x.shape), ("int32", (*x.shape[:-2], k)), ("int32", x.shape[:-2])]


@primitive("host", _infer_lu, name="lu")
def _lu(x: Array) -> tuple[Array, Array, Array]:
    array = wide(x)
    batch, k = x.shape[:-2], min(x.shape[-2:])
    packed, pivots, info = np.array(array), np.zeros((*batch, k), np.int32), np.zeros(batch, np.int32)
    if x.size:
        (getrf,) = linalg.get_lapack_funcs(("getrf",), (array,))
        for at in np.ndindex(*batch):
            packed[at], pivots[at], info[at] = getrf(array[at])
    return packed.astype(x.dtype), pivots + 1, info


def lu(x: Value) -> tuple[Value, Value, Value]:
    """(L without its unit diagonal and U in one matrix, row exchanges counted from 1, 0 or the position of a zero pivot)."""
    return append("lu", x)


def _infer_permutation(op: Op) -> list[Type]:
    pivots = op.inputs[0]
    rows = op.attributes["rows"]
    return [(op.attributes["dtype"], (*pivots.shape[:-1], rows, rows))]


@primitive("host", _infer_permutation, name="pivot_matrix")
def _pivot_matrix(pivots: Array, rows: int, dtype: str) -> Array:
    result = np.zeros((*pivots.shape[:-1], rows, rows), dtypes.numpy_dtype(dtype))
    for at in np.ndindex(*pivots.shape[:-1]):
        order = np.arange(rows)
        for k, other in enumerate(pivots[at]):
            order[[k, other - 1]] = order[[other - 1, k]]
        result[(*at, order, np.arange(rows))] = 1
    return result


def pivot_matrix(pivots: Value, rows: int, dtype: str) -> Value:
    """The permutation matrix P, x = P @ L @ U, of row exchanges counted from 1."""
    return append("pivot_matrix", pivots, rows=rows, dtype=dtype)


@gradient_of("lu")
def _lu_gradient(op: Op, g: Value | None, *unused: Value | None) -> Gradients:
    x = op.inputs[0]
    m, n = x.shape[-2:]
    if g is None:
        return (None,)
    packed, pivots, _ = op.outputs
    k = min(m, n)
    square = _rows(_columns(packed, k), k)
    left = add(lower(square, -1), identity(square))
    upper = sub(square, lower(square, -1))
    g_square = _rows(_columns(g, k), k)
    gl, gu = lower(g_square, -1), sub(g_square, lower(g_square, -1))
    inner_l, inner_u = matmul(adjoint(left), gl), matmul(gu, adjoint(upper))
    # What lies outside the square depends on its factors: U2 = L \ x2 right of it, L2 = x2 / U below it.
    if n > k:
        beside, g_beside = _columns(packed, n, k), _columns(g, n, k)
        inner_l = sub(inner_l, matmul(g_beside, adjoint(beside)))
    if m > k:
        below, g_below = _rows(packed, m, k), _rows(g, m, k)
        inner_u = sub(inner_u, matmul(adjoint(below), g_below))
    inner = add(lower(inner_l, -1), sub(inner_u, lower(inner_u, -1)))
    middle = triangular_solve(adjoint(left), inner, True, True)
    middle = adjoint(triangular_solve(upper, adjoint(middle), True))
    if n > k:
        middle = concat([middle, triangular_solve(adjoint(left), g_beside, True, True)], x.ndim - 1)
    if m > k:
        middle = concat([middle, adjoint(triangular_solve(upper, adjoint(g_below), True))], x.ndim - 2)
    return (matmul(pivot_matrix(pivots, m, x.dtype), middle),)


__all__ = ["eig", "eigh", "lu", "pivot_matrix", "qr", "svd"]
