"""Decompositions, solvers and norms of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, DTypeError, ShapeError, message
from ..base.kinds import Size
from ..base.lazy import scipy_linalg
from ..ir.program import Value
from . import primitives as p
from .arguments import floating, promoted
from .define import op
from .samples import definite, matrix, real, values

_LA = "linalg."
_SKIP = "noscalar noshape noempty"


def square_matrices(name: str, x: Value) -> Value:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}(): x is {list(x.shape)}; it must hold square matrices [..., N, N]")
    return floating(x)


def _adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


@op(
    ["linalg.cholesky", "cholesky"],
    operands=("x",),
    method=True,
    reference=lambda x, upper=False: np.linalg.cholesky(x) if not upper else _adjoint(np.linalg.cholesky(x)),
    samples=[(definite(3, 3),), (definite(2, 3, 3), True)],
    tolerance=3,
    tests="nograd",
)
def cholesky(x, upper=False):
    """The triangular L with x = L @ L^H (or U with x = U^H @ U) of Hermitian positive definite matrices; one triangle of x is read."""
    x = square_matrices("cholesky", x)
    if upper:
        return p.adjoint(p.cholesky(p.adjoint(x)))
    return p.cholesky(x)


@op(
    ["linalg.cholesky_solve"],
    operands=("x", "y"),
    method=True,
    reference=lambda x, y, upper=False: np.linalg.solve(_adjoint(y) @ y if upper else y @ _adjoint(y), x),
    samples=[(real(3, 2), matrix(3, 3)), (real(2, 3, 1), matrix(2, 3, 3), True)],
    tolerance=20,
    tests=_SKIP + " novalue nograd",
)
def cholesky_solve(x, y, upper=False):
    """The solution of A @ z = x, where y is the triangular factor of A that cholesky gives."""
    x, y = promoted(floating(x), floating(y))
    first = p.triangular_solve(p.adjoint(y) if upper else y, x, False)
    return p.triangular_solve(y if upper else p.adjoint(y), first, True)


@op(
    ["linalg.cholesky_inverse"],
    operands=("x",),
    method=True,
    reference=lambda x, upper=False: np.linalg.inv(
        np.triu(x).conj().T @ np.triu(x) if upper else np.tril(x) @ np.tril(x).conj().T
    ),
    samples=[(matrix(3, 3),), (matrix(3, 3), True)],
    tolerance=20,
    tests="noscalar",
)
def cholesky_inverse(x, upper=False):
    """The inverse of the matrix whose triangular factor (of cholesky) is x."""
    x = square_matrices("cholesky_inverse", x)
    half = p.triangular_solve(x, p.identity(x), upper)
    return p.matmul(half, p.adjoint(half)) if upper else p.matmul(p.adjoint(half), half)


@op(
    [_LA + "inv", "inverse"],
    method="inverse",
    reference=np.linalg.inv,
    samples=[(matrix(3, 3),), (matrix(2, 3, 3),)],
    tolerance=5,
)
def inverse(x):
    """The inverse of square matrices; raises for a singular one."""
    return p.inverse(square_matrices("inv", x))


@op(
    [_LA + "det"],
    method="det",
    reference=lambda x: np.asarray(np.linalg.det(x)),
    samples=[(matrix(3, 3),), (matrix(2, 3, 3),), (values([1.0, 2.0], [2.0, 4.0]),)],
    tolerance=5,
)
def det(x):
    """The determinant of square matrices."""
    return p.determinant(square_matrices("det", x))


@op(
    [_LA + "slogdet"],
    method="slogdet",
    reference=lambda x: np.stack(np.linalg.slogdet(x)),
    samples=[(matrix(3, 3),), (matrix(2, 3, 3),)],
    tolerance=5,
)
def slogdet(x):
    """[2, ...]: the determinant's sign (or unit complex number) and the logarithm of its magnitude."""
    x = square_matrices("slogdet", x)
    sign, size = p.slogdet(x)
    if dtypes.is_complex(x.dtype):
        size = p.make_complex(size, p.mul(size, 0))
    return p.concat([p.reshape(v, (1, *v.shape)) for v in (sign, size)], 0)


def _solve_reference(x, y, left=True):
    column = y.ndim == 1
    y = y[:, None] if column else y
    z = np.linalg.solve(x, y) if left else np.swapaxes(np.linalg.solve(np.swapaxes(x, -1, -2), np.swapaxes(y, -1, -2)), -1, -2)
    return z[..., 0] if column else z


@op(
    [_LA + "solve"],
    operands=("x", "y"),
    method="solve",
    reference=_solve_reference,
    samples=[
        (matrix(3, 3), real(3, 2)),
        (matrix(2, 3, 3), real(2, 3, 1)),
        (matrix(3, 3), real(3)),
        (matrix(3, 3), real(2, 3), False),
    ],
    tolerance=10,
    tests=_SKIP,
)
def solve(x, y, left=True):
    """z with x @ z = y (z @ x = y with ``left=False``), for square x [..., N, N]; y may be a vector [N]. Raises for a singular x."""
    x, y = promoted(square_matrices("solve", x), floating(y))
    is_vector = y.ndim == 1 or (y.ndim == x.ndim - 1 and y.shape == x.shape[:-1] and x.ndim > 2)
    column = p.reshape(y, (*y.shape, 1)) if is_vector else y
    if not left:
        column = p.swap_last(column) if not is_vector else column
        z = p.solve(p.swap_last(x), column)
        z = z if is_vector else p.swap_last(z)
    else:
        z = p.solve(x, column)
    return p.reshape(z, z.shape[:-1]) if is_vector else z


def _triangular_reference(x, y, upper=True, transpose=False, unitriangular=False):
    a = np.triu(x) if upper else np.tril(x)
    if unitriangular:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    return np.linalg.solve(np.swapaxes(a, -1, -2) if transpose else a, y)


@op(
    [_LA + "triangular_solve"],
    operands=("x", "y"),
    method=True,
    reference=_triangular_reference,
    samples=[
        (matrix(3, 3), real(3, 2)),
        (matrix(2, 3, 3), real(2, 3, 1), False),
        (matrix(3, 3), real(3, 2), True, True),
        (matrix(3, 3), real(3, 2), False, False, True),
    ],
    tolerance=10,
    tests=_SKIP,
)
def triangular_solve(x, y, upper=True, transpose=False, unitriangular=False):
    """z with T @ z = y (T^T @ z = y with ``transpose``), T the upper or lower triangle of x, its diagonal ones with ``unitriangular``."""
    x, y = promoted(square_matrices("triangular_solve", x), floating(y))
    return p.triangular_solve(p.swap_last(x) if transpose else x, y, upper != transpose, unitriangular)


@op(
    [_LA + "lstsq"],
    operands=("x", "y"),
    method="lstsq",
    reference=lambda x, y, rcond=None, driver=None: _lstsq_parts(x, y, driver),
    samples=[(real(5, 3), real(5, 2)), (real(5, 3), real(5, 2), None, "gelsd")],
    tolerance=50,
    tests=_SKIP,
)
def lstsq(x, y, rcond=None, driver=None):
    """(solution, residuals, rank, singular values) of the least squares problem min |x @ z - y|, for x [..., M, N] and y [..., M, K].

    residuals: the sums of squares, for M > N and full rank in mind, else empty. The singular values are empty for the drivers gels and gelsy
    (the default). rcond: singular values below rcond times the largest count as zero (machine precision times max(M, N) by default).
    """
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ArgumentError(f"lstsq(): driver is {driver!r}; it must be gels, gelsy, gelsd or gelss")
    x, y = promoted(floating(x), floating(y))
    wide = "float64" if dtypes.real_of(x.dtype) == "float64" else "float32"
    m, n = x.shape[-2:] if x.ndim > 1 else (0, 0)
    cut = float(rcond) if rcond is not None else float(np.finfo(wide).eps) * max(m, n)
    z, rank = p.lstsq(x, y, cut)
    real = dtypes.real_of(x.dtype)
    if m > n:
        away = p.abs(p.sub(p.matmul(x, z), y))
        residual = p.reshape(p.reduce_sum(p.mul(away, away), (away.ndim - 2,)), (*away.shape[:-2], away.shape[-1]))
    else:
        residual = p.full((0,), 0, real)
    singular = p.svd(x)[1] if driver in ("gelsd", "gelss") else p.full((0,), 0, real)
    return z, residual, rank, singular


def _lstsq_parts(x, y, driver):
    z, _, rank, s = np.linalg.lstsq(x, y, rcond=None)
    return z, (np.abs(x @ z - y) ** 2).sum(-2), np.asarray(rank), s if driver else np.zeros(0)


@op(
    [_LA + "eigh"],
    operands=("x",),
    reference=lambda x, UPLO="L": np.linalg.eigh(x, UPLO),
    samples=[(definite(3, 3),)],
    tests="novalue nograd noscalar",
)
def eigh(x, UPLO="L"):
    """(ascending real eigenvalues [..., N], eigenvectors in columns [..., N, N]) of Hermitian matrices; one triangle of x is read."""
    return p.eigh(square_matrices("eigh", x), _is_upper("eigh", UPLO))


def _is_upper(name: str, uplo: str) -> bool:
    if uplo not in ("L", "U"):
        raise ArgumentError(f"{name}(): UPLO is {uplo!r}; it must be 'L' or 'U'")
    return uplo == "U"


@op(
    [_LA + "eigvalsh", "eigvalsh"],
    operands=("x",),
    method="eigvalsh",
    reference=lambda x, UPLO="L": np.linalg.eigvalsh(x, UPLO),
    samples=[(definite(3, 3),), (definite(2, 3, 3), "U")],
    tests="nograd noscalar",
    tolerance=5,
)
def eigvalsh(x, UPLO="L"):
    """The ascending real eigenvalues [..., N] of Hermitian matrices."""
    return p.eigh(square_matrices("eigvalsh", x), _is_upper("eigvalsh", UPLO))[0]


@op([_LA + "eig"], method="eig", samples=[(matrix(3, 3),), (definite(2, 3, 3),)], tests="noscalar nograd")
def eig(x):
    """(complex eigenvalues [..., N], unit eigenvectors in columns [..., N, N]) of square matrices."""
    return p.eig(square_matrices("eig", x))


@op(
    [_LA + "eigvals"],
    method="eigvals",
    reference=lambda x: np.linalg.eigvals(x).astype(complex),
    samples=[(definite(3, 3),)],
    tests="noscalar",
    tolerance=20,
)
def eigvals(x):
    """The complex eigenvalues [..., N] of square matrices, in LAPACK's order."""
    return p.eig(square_matrices("eigvals", x))[0]


@op([_LA + "svd"], operands=("x",), method=False, samples=[(real(4, 3),), (real(2, 3, 4), True)], tests="noscalar nograd")
def svd(x, full_matrices=False):
    """(U, singular values in descending order, V^H) with x = U @ diag(S) @ V^H; full_matrices: square U and V."""
    return p.svd(floating(x), full_matrices)


@op(
    [_LA + "svdvals"],
    method=False,
    reference=lambda x: np.linalg.svd(x, compute_uv=False),
    samples=[(real(4, 3),), (real(2, 3, 4),)],
    tests="noscalar",
    tolerance=5,
)
def svdvals(x):
    """The singular values in descending order."""
    return p.svd(floating(x), False)[1]


@op([_LA + "qr"], operands=("x",), method="qr", samples=[(real(4, 3),), (real(2, 3, 4),), (real(4, 3), "r")], tests="noscalar")
def qr(x, mode="reduced"):
    """(Q with orthonormal columns, upper triangular R) with x = Q @ R. mode: reduced, complete (square Q) or r (R alone)."""
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr(): mode is {mode!r}; it must be 'reduced', 'complete' or 'r'")
    q, r = p.qr(floating(x), mode == "complete")
    return r if mode == "r" else (q, r)


@op([_LA + "lu"], operands=("x",), method="lu", samples=[(matrix(3, 3),), (real(2, 3, 4), True, True)], tests="noscalar nograd")
def lu(x, pivot=True, get_infos=False):
    """(L below the diagonal and U in one matrix, int32 row exchanges counted from 1, and with get_infos int32 flags) with x = P @ L @ U."""
    if not pivot:
        raise ArgumentError("lu(): pivot=False is not supported on the CPU; LAPACK always exchanges rows")
    packed, pivots, info = p.lu(floating(x))
    return (packed, pivots, info) if get_infos else (packed, pivots)


def _unpacked(packed: Value) -> tuple[Value, Value]:
    """The lower and upper factors of an LU matrix [..., M, N]."""
    m, n = packed.shape[-2:]
    k, zeros, ones = min(m, n), (0,) * packed.ndim, (1,) * packed.ndim
    left = p.slice_(packed, zeros, (*packed.shape[:-1], k), ones)
    rows = p.eq(p.iota(left.shape, left.ndim - 2), p.iota(left.shape, left.ndim - 1))
    left = p.select(rows, p.full(left.shape, 1, left.dtype), p.lower(left, -1))
    right = p.slice_(packed, zeros, (*packed.shape[:-2], k, n), ones)
    return left, p.sub(right, p.lower(right, -1))


def _check_factors(name: str, first: str, packed: Value, second: str, pivots: Value) -> None:
    """Raise unless these may be an LU factorisation and its row exchanges."""
    if packed.ndim < 2 or pivots.ndim != packed.ndim - 1 or pivots.shape[:-1] != packed.shape[:-2]:
        raise ShapeError(
            message(
                f"{name}(): {first} is {list(packed.shape)} and {second} {list(pivots.shape)}",
                "they must be [..., M, N] and [..., min(M, N)]",
                "pass what lu() gives",
            )
        )
    if dtypes.kind(pivots.dtype) not in "iu":
        raise DTypeError(message(f"{name}(): {second} is {pivots.dtype}", "row exchanges are integers", "pass what lu() gives"))
    if pivots.shape[-1] > packed.shape[-2]:
        raise ShapeError(
            f"{name}(): {second} is {list(pivots.shape)}; {first} of shape {list(packed.shape)} has {packed.shape[-2]} rows"
        )


@op(
    [_LA + "lu_unpack"],
    operands=("x", "y"),
    method="lu_unpack",
    samples=[(matrix(3, 3), values(2, 3, 3, dtype="int32"))],
    tests=_SKIP,
)
def lu_unpack(x, y, unpack_ludata=True, unpack_pivots=True):
    """(P, L, U) from lu's packed matrix x and row exchanges y."""
    _check_factors("lu_unpack", "x", x, "y", y)
    left, right = _unpacked(floating(x))
    return p.pivot_matrix(y, x.shape[-2], left.dtype), left, right


@op(
    [_LA + "lu_solve"],
    operands=("b", "lu", "pivots"),
    samples=[
        (real(3, 2), matrix(3, 3), values(2, 3, 3, dtype="int32")),
        (real(3, 2), matrix(3, 3), values(2, 3, 3, dtype="int32"), "T"),
    ],
    tests=_SKIP,
)
def lu_solve(b, lu, pivots, trans="N"):
    """z with A @ z = b from A's lu factors; trans "T" or "C": with A transposed or adjoint."""
    if trans not in ("N", "T", "C"):
        raise ArgumentError(f"lu_solve(): trans is {trans!r}; it must be 'N', 'T' or 'C'")
    _check_factors("lu_solve", "lu", lu, "pivots", pivots)
    b, packed = promoted(floating(b), floating(lu))
    exchange = p.pivot_matrix(pivots, packed.shape[-2], packed.dtype)
    if trans == "N":
        first = p.triangular_solve(packed, p.matmul(p.swap_last(exchange), b), False, True)
        return p.triangular_solve(packed, first, True)
    turn = p.swap_last if trans == "T" else p.adjoint
    first = p.triangular_solve(turn(packed), b, False)
    return p.matmul(exchange, p.triangular_solve(turn(packed), first, True, True))


# ------------------------------------------------------------------ pseudo-inverse, rank, exponential


def _inverted(s: Value, cut: Value) -> Value:
    """1 / s where |s| is above the cut, else 0."""
    large = p.gt(p.abs(s), p.broadcast_to(cut, s.shape))
    return p.select(large, p.div(p.full(s.shape, 1, s.dtype), p.select(large, s, 1)), 0)


def _relative_cut(s: Value, rcond: Value) -> Value:
    """rcond times the largest magnitude, kept with an axis of length 1."""
    top = p.reduce_max(p.abs(s), (s.ndim - 1,))
    factor = p.cast(rcond, s.dtype)
    return p.mul(top, p.broadcast_to(p.reshape(factor, (*factor.shape, 1)) if factor.ndim else factor, top.shape))


@op(
    [_LA + "pinv"],
    operands=("x", "rcond"),
    method="pinv",
    reference=lambda x, rcond=1e-15, hermitian=False: np.linalg.pinv(x, rcond, hermitian=hermitian),
    samples=[(real(4, 3),), (real(2, 3, 4), 0.01)],
    tests="noscalar noshape noempty",
    tolerance=20,
)
def pinv(x, rcond=1e-15, hermitian=False):
    """The Moore-Penrose inverse [..., N, M] of x [..., M, N]; singular values at most rcond times the largest count as zero."""
    x = floating(x)
    if hermitian:
        w, v = p.eigh(square_matrices("pinv", x))
        scale = _inverted(w, _relative_cut(w, rcond))
        left = v
    else:
        u, s, vh = p.svd(x)
        scale = _inverted(s, _relative_cut(s, rcond))
        left, v = p.adjoint(vh), u
    scaled = p.mul(left, p.broadcast_to(p.reshape(p.cast(scale, x.dtype), (*scale.shape[:-1], 1, scale.shape[-1])), left.shape))
    return p.matmul(scaled, p.adjoint(v))


@op(
    [_LA + "matrix_rank"],
    operands=("x", "tol", "atol", "rtol"),
    method=False,
    reference=lambda x, tol=None, hermitian=False, atol=None, rtol=None: np.asarray(np.linalg.matrix_rank(x, tol=tol)),
    samples=[(real(4, 3),), (values([1.0, 2.0], [2.0, 4.0]),), (definite(2, 3, 3), 1.5)],
    tests="noscalar noshape noempty nograd",
)
def matrix_rank(x, tol=None, hermitian=False, atol=None, rtol=None):
    """How many singular values (magnitudes of eigenvalues with ``hermitian``) are above a tolerance, as int64.

    tol: absolute. Otherwise max(atol, rtol * the largest), rtol being machine precision times max(M, N) where neither is given.
    """
    x = floating(x)
    s = p.abs(p.eigh(square_matrices("matrix_rank", x))[0]) if hermitian else p.svd(x)[1]
    top = p.reduce_max(s, (s.ndim - 1,))

    def kept(v: Value) -> Value:
        v = p.cast(v, s.dtype)
        return p.broadcast_to(p.reshape(v, (*v.shape, 1)) if v.ndim else v, top.shape)

    if tol is not None:
        cut = kept(tol)
    else:
        wide = s.dtype if s.dtype in ("float32", "float64") else "float32"
        relative = 0.0 if atol is not None else float(np.finfo(wide).eps) * max(x.shape[-2:])
        cut = p.mul(top, kept(rtol) if rtol is not None else relative)
        cut = cut if atol is None else p.maximum(cut, kept(atol))
    above = p.cast(p.gt(s, p.broadcast_to(cut, s.shape)), "int64")
    return p.reshape(p.reduce_sum(above, (s.ndim - 1,)), s.shape[:-1])


@op(
    [_LA + "matrix_exp"],
    reference=lambda x: scipy_linalg.expm(x),
    samples=[(real(3, 3, low=-1, high=1),), (real(2, 2, 2),)],
    tests="noscalar",
    tolerance=20,
)
def matrix_exp(x):
    """The matrix exponential of square matrices: the sum of x^k / k!."""
    return p.matrix_exp(square_matrices("matrix_exp", x))


def _reflected(x: Value, tau: Value, y: Value | None, order: Any, conjugate: bool) -> Value:
    """y multiplied by the reflectors I - tau v v^H of x's columns, in the given order."""
    strict = p.lower(x, -1)
    on = p.eq(p.iota(x.shape, x.ndim - 2), p.iota(x.shape, x.ndim - 1))
    vectors = p.select(on, p.full(x.shape, 1, x.dtype), strict)
    for k in order:
        starts = (*(0 for _ in range(x.ndim - 1)), k)
        v = p.slice_(vectors, starts, (*x.shape[:-1], 1), (1,) * x.ndim)
        t = p.slice_(tau, (*(0 for _ in range(tau.ndim - 1)), k), (*tau.shape[:-1], 1), (1,) * tau.ndim)
        t = p.conj(t) if conjugate and dtypes.is_complex(t.dtype) else t
        row = p.matmul(p.adjoint(v), y)
        step = p.matmul(v, row)
        y = p.sub(y, p.mul(step, p.broadcast_to(p.reshape(t, (*t.shape, 1)), step.shape)))
    return y


def _householder_reference(x, tau):
    m, n = x.shape[-2:]
    q = np.eye(m, dtype=x.dtype)
    for k in range(tau.shape[-1]):
        v = np.where(np.arange(m) > k, x[..., :, k], np.where(np.arange(m) == k, 1, 0))
        q = q @ (np.eye(m) - tau[..., k] * np.outer(v, np.conj(v)))
    return q[..., :n]


@op(
    [_LA + "householder_product"],
    method="householder_product",
    reference=_householder_reference,
    samples=[(real(4, 3), real(3)), (real(4, 3), real(2))],
    tests=_SKIP,
    tolerance=5,
)
def householder_product(x, tau):
    """The first N columns of the product of the reflectors I - tau[k] v_k v_k^H, v_k below the diagonal of x [..., M, N], as geqrf gives them."""
    x, tau = promoted(floating(x), floating(tau))
    is_fitting = x.ndim > 1 and tau.ndim == x.ndim - 1 and tau.shape[:-1] == x.shape[:-2]
    if not is_fitting or x.shape[-2] < x.shape[-1] or tau.shape[-1] > x.shape[-1]:
        raise ShapeError(
            f"householder_product(): x is {list(x.shape)} and tau {list(tau.shape)}; x must be [..., M, N] with M >= N and tau [..., K <= N]"
        )
    return _reflected(x, tau, p.identity(x), reversed(range(tau.shape[-1])), False)


@op(
    [_LA + "ormqr"],
    operands=("x", "tau", "y"),
    method="ormqr",
    samples=[(real(4, 3), real(3), real(4, 2)), (real(4, 3), real(3), real(2, 4), False, True)],
    tests=_SKIP,
)
def ormqr(x, tau, y, left=True, transpose=False):
    """Q @ y, or y @ Q with ``left=False``, Q the full product of the reflectors in x and tau (adjoint with ``transpose``): see householder_product."""
    x, tau, y = promoted(floating(x), floating(tau), floating(y))
    is_fitting = x.ndim > 1 and x.ndim == y.ndim == tau.ndim + 1 and x.shape[:-2] == y.shape[:-2] == tau.shape[:-1]
    if not is_fitting or tau.shape[-1] > x.shape[-1] or y.shape[-2 if left else -1] != x.shape[-2]:
        raise ShapeError(
            message(
                f"ormqr(): x is {list(x.shape)}, tau {list(tau.shape)} and y {list(y.shape)}",
                f"they must be [..., M, N], [..., K <= N] and {'[..., M, any]' if left else '[..., any, M]'} with left={bool(left)}",
                "x and tau are what geqrf gives",
            )
        )
    order = range(tau.shape[-1])
    if left:
        return _reflected(x, tau, y, order if transpose else reversed(order), transpose)
    turned = _reflected(x, tau, p.adjoint(y), reversed(order) if transpose else order, not transpose)
    return p.adjoint(turned)


def _leading(name: str, x: Value, q: Any, default: int) -> tuple[Value, Value, Value]:
    """The q leading singular vectors and values: (U, S, V)."""
    if x.ndim < 2:
        raise ShapeError(f"{name}(): x is {list(x.shape)}; it must hold matrices [..., M, N]")
    limit = min(x.shape[-2:])
    q = min(default, limit) if q is None else q
    if isinstance(q, bool) or not isinstance(q, int) or not 0 <= q <= limit:
        raise ArgumentError(f"{name}(): q is {q!r}; it must be an integer in [0, {limit}]")
    u, s, vh = p.svd(x)

    def first(v: Value) -> Value:
        return p.slice_(v, (0,) * v.ndim, (*v.shape[:-1], q), (1,) * v.ndim)

    return first(u), first(s), first(p.adjoint(vh))


@op(
    [_LA + "svd_lowrank"],
    operands=("x", "M"),
    method=True,
    samples=[(real(4, 3), 2), (real(2, 4, 5), 2, 2, real(2, 4, 5))],
    tests="noscalar nograd",
)
def svd_lowrank(x, q=None, niter: Size = 2, M=None):
    """(U, S, V): the q (6 by default) leading singular values and vectors of x, or of x - M; found exactly, whatever niter."""
    x = floating(x)
    if M is not None:
        x = p.sub(x, p.broadcast_to(p.cast(M, x.dtype), x.shape))
    return _leading("svd_lowrank", x, q, 6)


@op(
    [_LA + "pca_lowrank"],
    operands=("x",),
    method=True,
    samples=[(real(5, 3), 2), (real(2, 4, 5), 2, False)],
    tests="noscalar nograd",
)
def pca_lowrank(x, q=None, center=True, niter: Size = 2):
    """(U, S, V): the q (6 by default) leading principal components of rows x [..., M, N], about their mean with ``center``; found exactly."""
    x = floating(x)
    if center and x.ndim > 1 and x.shape[-2]:
        mean = p.div(p.reduce_sum(x, (x.ndim - 2,)), float(x.shape[-2]))
        x = p.sub(x, p.broadcast_to(mean, x.shape))
    return _leading("pca_lowrank", x, q, 6)
