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
from .maps import add, cast, conj, div, eq, imag, le, make_complex, mul, neg, real, select, sub
from .reductions import reduce_sum
from .views import broadcast_to, full, iota, reshape, slice_, sum_to, swap_last


def _matrices(op: Op, square: bool = True) -> Value:
    x = op.inputs[0]
    require_kind(op, "fc", x.dtype)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        wanted = "square matrices [..., N, N]" if square else "matrices [..., M, N]"
        raise ShapeError(f"{op.name}(): x is {list(x.shape)}; it must hold {wanted}")
    return x


def _same(op: Op) -> list[Type]:
    x = _matrices(op)
    return [(x.dtype, x.shape)]


def _wide(x: Array) -> Array:
    """float16 and bfloat16 as float32, which LAPACK has."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _lapack(name: str, function: Callable[..., Any], *arrays: Array, **attributes: Any) -> Any:
    """The function on wide arrays; a singular matrix becomes an ArgumentError."""
    dtype = arrays[0].dtype
    try:
        with np.errstate(all="ignore"):
            result = function(*map(_wide, arrays), **attributes)
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


def _on_diagonal(shape: tuple[int, ...]) -> Value:
    return eq(iota(shape, len(shape) - 2), iota(shape, len(shape) - 1))


def identity(x: Value) -> Value:
    """Identity matrices of x's shape and dtype."""
    return select(_on_diagonal(x.shape), full(x.shape, 1, x.dtype), 0)


def lower(x: Value, diagonal: int = 0) -> Value:
    """x with zeros above a diagonal."""
    rank = x.ndim
    return select(le(iota(x.shape, rank - 1), add(iota(x.shape, rank - 2), diagonal)), x, 0)


def _as_column(x: Value) -> Value:
    return reshape(x, (*x.shape, 1))


def _as_row(x: Value) -> Value:
    return reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def _scaled_columns(x: Value, scale: Value) -> Value:
    """x with column k times scale[k]."""
    return mul(x, broadcast_to(_as_row(cast(scale, x.dtype)), x.shape))


# ------------------------------------------------------------------ cholesky, inverse, solve


@primitive("host", _same, name="cholesky")
def _cholesky(x: Array) -> Array:
    return _lapack("cholesky", np.linalg.cholesky, x)


def cholesky(x: Value) -> Value:
    """The lower triangular L with x = L @ adjoint(L); only x's lower triangle is read."""
    return append("cholesky", x)


@gradient_of("cholesky")
def _cholesky_gradient(op: Op, g: Value) -> Gradients:
    """Source: Murray, "Differentiation of the Cholesky decomposition", https://arxiv.org/abs/1602.07527"""
    factor = op.outputs[0]
    inner = lower(matmul(adjoint(factor), g))
    inner = sub(inner, mul(select(_on_diagonal(inner.shape), inner, 0), 0.5))
    upper = adjoint(factor)
    half = solve(upper, adjoint(solve(upper, adjoint(inner))))
    return (mul(add(half, adjoint(half)), 0.5),)


@primitive("host", _same, name="inverse")
def _inverse(x: Array) -> Array:
    return _lapack("inv", np.linalg.inv, x)


def inverse(x: Value) -> Value:
    """The inverse matrices."""
    return append("inverse", x)


@gradient_of("inverse")
def _inverse_gradient(op: Op, g: Value) -> Gradients:
    y = adjoint(op.outputs[0])
    return (neg(matmul(y, matmul(g, y))),)


def _infer_solve(op: Op) -> list[Type]:
    a, b = _matrices(op), op.inputs[1]
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ShapeError(
            f"solve(x, y): x is {list(a.shape)} and y is {list(b.shape)}; y must have as many rows as x ({a.shape[-1]})"
        )
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return [(same_dtype(op), (*batch, *b.shape[-2:]))]


@primitive("host", _infer_solve, name="solve")
def _solve(a: Array, b: Array) -> Array:
    return _lapack("solve", np.linalg.solve, a, b)


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
            result[at] = _lapack("triangular_solve", linalg.solve_triangular, a[at], b[at], lower=not upper, unit_diagonal=unit)
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
        ga = select(_on_diagonal(ga.shape), 0, ga)
    return sum_to(ga, a.shape), sum_to(gb, b.shape)


def _infer_slogdet(op: Op) -> list[Type]:
    x = _matrices(op)
    return [(x.dtype, x.shape[:-2]), (dtypes.real_of(x.dtype), x.shape[:-2])]


@primitive("host", _infer_slogdet, name="slogdet")
def _slogdet(x: Array) -> tuple[Array, Array]:
    return _lapack("slogdet", lambda a: tuple(np.linalg.slogdet(a)), x)


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
    return _lapack("det", np.linalg.det, x)


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

    return _lapack("det", function, x) if x.size else x


@gradient_of("determinant")
def _determinant_gradient(op: Op, g: Value) -> Gradients:
    x = op.inputs[0]
    return (mul(_over_matrices(g, x), append("cofactors", x)),)


# ------------------------------------------------------------------ eigenvalues


def _infer_eigh(op: Op) -> list[Type]:
    x = _matrices(op)
    return [(dtypes.real_of(x.dtype), x.shape[:-1]), (x.dtype, x.shape)]


@primitive("host", _infer_eigh, name="eigh")
def _eigh(x: Array, upper: bool) -> tuple[Array, Array]:
    return _lapack("eigh", lambda a: tuple(np.linalg.eigh(a, "U" if upper else "L")), x)


def eigh(x: Value, upper: bool = False) -> tuple[Value, Value]:
    """(ascending real eigenvalues, eigenvectors in columns) of Hermitian matrices; one triangle is read."""
    return append("eigh", x, upper=upper)


def _gaps(values: Value) -> Value:
    """1 / (v[j] - v[i]) at [i, j], 0 where equal."""
    shape = (*values.shape, values.shape[-1])
    gap = sub(broadcast_to(_as_row(values), shape), broadcast_to(_as_column(values), shape))
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
        diagonal = select(_on_diagonal(shape), broadcast_to(_as_row(cast(gw, v.dtype)), shape), 0)
        inner = diagonal if inner is None else add(inner, diagonal)
    if inner is None:
        return (None,)
    whole = matmul(v, matmul(inner, adjoint(v)))
    return (mul(add(whole, adjoint(whole)), 0.5),)


def _infer_eig(op: Op) -> list[Type]:
    x = _matrices(op)
    wide = dtypes.complex_of(x.dtype)
    return [(wide, x.shape[:-1]), (wide, x.shape)]


@primitive("host", _infer_eig, name="eig")
def _eig(x: Array) -> tuple[Array, Array]:
    wide = dtypes.complex_of(x.dtype.name)
    w, v = _lapack("eig", lambda a: tuple(np.linalg.eig(a)), x)
    return w.astype(wide), v.astype(wide)


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
        lengths = real(reduce_sum(select(_on_diagonal(along.shape), along, 0), (along.ndim - 2,)))
        along = sub(along, _scaled_columns(matmul(vh, v), reshape(lengths, w.shape)))
        inner = mul(conj(_gaps(w)), along)
    if gw is not None:
        shape = (*w.shape, w.shape[-1])
        diagonal = select(_on_diagonal(shape), broadcast_to(_as_row(gw), shape), 0)
        inner = diagonal if inner is None else add(inner, diagonal)
    if inner is None:
        return (None,)
    whole = matmul(solve(vh, inner), vh)
    return (whole if dtypes.is_complex(x.dtype) else cast(real(whole), x.dtype),)


# ------------------------------------------------------------------ singular values, QR, LU


def _infer_svd(op: Op) -> list[Type]:
    x = _matrices(op, False)
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
    return _lapack("svd", lambda a: tuple(np.linalg.svd(a, full_matrices=full_matrices)), x)


def svd(x: Value, full_matrices: bool = False) -> tuple[Value, Value, Value]:
    """(U, descending singular values, V adjoint) with x = U @ diag(S) @ VH."""
    return append("svd", x, full_matrices=full_matrices)


@gradient_of("svd")
def _svd_gradient(op: Op, gu: Value | None, gs: Value | None, gvh: Value | None) -> Gradients:
    """Source: Townsend, "Differentiating the singular value decomposition" (2016); equal singular values give no gradient to U and V."""
    x = op.inputs[0]
    u, s, vh = op.outputs
    k = s.shape[-1]
    if op.attributes["full_matrices"] and (gu is not None or gvh is not None) and x.shape[-1] != x.shape[-2]:
        raise ArgumentError("svd(): with full_matrices=True the vectors of a matrix that is not square have no gradient")

    def columns(v: Value) -> Value:
        return slice_(v, (0,) * v.ndim, (*v.shape[:-1], k), (1,) * v.ndim)

    u, v = columns(u), columns(adjoint(vh))
    wide = x.dtype
    inner = None if gs is None else select(_on_diagonal((*s.shape, k)), broadcast_to(_as_row(cast(gs, wide)), (*s.shape, k)), 0)
    squares = _gaps(mul(s, s))
    is_zero = eq(s, 0)
    inverse_s = select(is_zero, 0, div(full(s.shape, 1, s.dtype), select(is_zero, 1, s)))
    outside: list[Value] = []

    def skewed(a: Value) -> Value:
        return mul(cast(squares, wide), sub(a, adjoint(a)))

    if gu is not None:
        gu = columns(gu)
        term = _scaled_columns(skewed(matmul(adjoint(u), gu)), s)
        if dtypes.is_complex(wide):
            term = add(term, _phase(matmul(adjoint(u), gu), inverse_s))
        inner = term if inner is None else add(inner, term)
        rest = _scaled_columns(sub(gu, matmul(u, matmul(adjoint(u), gu))), inverse_s)
        outside.append(matmul(rest, adjoint(v)))
    if gvh is not None:
        gv = columns(adjoint(gvh))
        rows = skewed(matmul(adjoint(v), gv))
        term = mul(rows, broadcast_to(_as_column(cast(s, wide)), rows.shape))
        inner = term if inner is None else add(inner, term)
        rest = _scaled_columns(sub(gv, matmul(v, matmul(adjoint(v), gv))), inverse_s)
        outside.append(matmul(u, adjoint(rest)))
    if inner is None:
        return (None,)
    total = matmul(u, matmul(inner, adjoint(v)))
    for term in outside:
        total = add(total, term)
    return (total,)


def _phase(a: Value, inverse_s: Value) -> Value:
    """The imaginary diagonal of a, over the singular values: what turning U and V together leaves."""
    turned = select(_on_diagonal(a.shape), imag(a), 0)
    return _scaled_columns(make_complex(mul(turned, 0), turned), inverse_s)


def _infer_qr(op: Op) -> list[Type]:
    x = _matrices(op, False)
    m, n = x.shape[-2:]
    k = m if op.attributes["complete"] else min(m, n)
    return [(x.dtype, (*x.shape[:-2], m, k)), (x.dtype, (*x.shape[:-2], k, n))]


@primitive("host", _infer_qr, name="qr")
def _qr(x: Array, complete: bool) -> tuple[Array, Array]:
    return _lapack("qr", lambda a: tuple(np.linalg.qr(a, "complete" if complete else "reduced")), x)


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
        raise ArgumentError("qr(): mode 'complete' of a matrix with more rows than columns has no gradient; use 'reduced'")
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
    half = select(_on_diagonal(inner.shape), inner, 0)
    if dtypes.is_complex(q.dtype):
        size = real(half)
        half = make_complex(size, mul(size, 0))
    symmetric = add(add(strict, adjoint(strict)), half)
    middle = matmul(q, symmetric)
    if gq is not None:
        middle = add(gq, middle)
    return adjoint(triangular_solve(r, adjoint(middle), True))


def _infer_lu(op: Op) -> list[Type]:
    x = _matrices(op, False)
    k = min(x.shape[-2:])
    return [(x.dtype, x.shape), ("int32", (*x.shape[:-2], k)), ("int32", x.shape[:-2])]


@primitive("host", _infer_lu, name="lu")
def _lu(x: Array) -> tuple[Array, Array, Array]:
    wide = _wide(x)
    batch, k = x.shape[:-2], min(x.shape[-2:])
    packed, pivots, info = np.array(wide), np.zeros((*batch, k), np.int32), np.zeros(batch, np.int32)
    if x.size:
        (getrf,) = linalg.get_lapack_funcs(("getrf",), (wide,))
        for at in np.ndindex(*batch):
            packed[at], pivots[at], info[at] = getrf(wide[at])
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
    if m != n:
        raise ArgumentError(f"lu(): the gradient is defined for square matrices, x is {list(x.shape)}")
    packed, pivots, _ = op.outputs
    left = add(lower(packed, -1), identity(packed))
    upper = sub(packed, lower(packed, -1))
    gl, gu = lower(g, -1), sub(g, lower(g, -1))
    inner_l = lower(matmul(adjoint(left), gl), -1)
    inner_u = matmul(gu, adjoint(upper))
    inner = add(inner_l, sub(inner_u, lower(inner_u, -1)))
    middle = triangular_solve(adjoint(left), inner, True, True)
    middle = adjoint(triangular_solve(upper, adjoint(middle), True))
    return (matmul(pivot_matrix(pivots, m, x.dtype), middle),)


# ------------------------------------------------------------------ least squares, exponential


def _infer_lstsq(op: Op) -> list[Type]:
    a, b = _matrices(op, False), op.inputs[1]
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
            x[at], _, rank[at], _ = _lapack(
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
    return _lapack("matrix_exp", linalg.expm, x).astype(x.dtype) if x.size else x


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
    "eig",
    "eigh",
    "identity",
    "inverse",
    "lower",
    "lstsq",
    "lu",
    "matrix_exp",
    "pivot_matrix",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "triangular_solve",
]
