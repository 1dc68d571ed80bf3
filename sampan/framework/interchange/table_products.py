"""Rows of products, linear algebra and Fourier transforms."""

from __future__ import annotations

from typing import Any

from ...tensor import OPS
from .rows import row, table, writes

table("""
bmm
mv | mv(X, Vec=vec)
dot
addmm | addmm(Input=input, X=x, Y=y) {Beta:f=beta, Alpha:f=alpha}
baddbmm | baddbmm(Input=input, X=x, Y=y) {Beta:f=beta, Alpha:f=alpha}
kron
multi_dot | multi_dot(X*=x) | multi_dot(x*)
matrix_power | matrix_power(X) {n:i}
matmul | matmul_v2(X, Y) {trans_x:b=transpose_x, trans_y:b=transpose_y} | matmul(x, y)
cholesky | cholesky(X) {upper:b}
cholesky_solve | cholesky_solve(X, Y) {upper:b}
det | determinant(Input=x) | det(x)
inverse | inverse(Input=x) -> Output
eig | eig(X) -> Eigenvalues, Eigenvectors
eigh | eigh(X) {UPLO:s} -> Eigenvalues, Eigenvectors
eigvals
svd | svd(X) {full_matrices:b} -> U, S, VH
svdvals | svdvals(x=x) -> s
lu_solve | lu_solve(b=b, lu=lu, pivots=pivots) {trans:s} -> out
lu_unpack | lu_unpack(X, Pivots=y) {unpack_ludata:b, unpack_pivots:b} -> Pmat, L, U
triangular_solve | triangular_solve(X, Y) {upper:b, transpose:b, unitriangular:b}
""")


@row("mul(X, Y)", "mul(x, y)", tensors="x y")
def mul(x: Any, y: Any, x_num_col_dims: int = 1, y_num_col_dims: int = 1) -> Any:
    rows, columns = x.shape[:x_num_col_dims], y.shape[y_num_col_dims:]
    left = x if len(x.shape) == 2 else OPS["flatten"](OPS["reshape"](x, [_product(rows), -1]), 1)
    right = y if len(y.shape) == 2 else OPS["reshape"](y, [_product(y.shape[:y_num_col_dims]), -1])
    result = OPS["matmul"](left, right)
    return result if len(x.shape) == 2 and len(y.shape) == 2 else OPS["reshape"](result, [*rows, *columns])


def _product(sizes: Any) -> int:
    total = 1
    for n in sizes:
        if n < 0:
            return -1
        total *= n
    return total


@row("matmul(X, Y)", "legacy_matmul(x, y)", tensors="x y")
def old_matmul(
    x: Any, y: Any, transpose_X: bool = False, transpose_Y: bool = False, alpha: float = 1.0, head_number: int = 1
) -> Any:
    result = OPS["matmul"](x, y, transpose_X, transpose_Y)
    return result if alpha == 1 else OPS["scale"](result, alpha)


@writes("mm")
def write_mm(emit: Any, input: Any, mat2: Any) -> Any:
    return emit("matmul_v2", {"X": input, "Y": mat2}, {"trans_x:b": False, "trans_y:b": False})


@row("cross(X, Y) {dim:i=axis}", "cross(x, y)", tensors="x y")
def cross(x: Any, y: Any, axis: int = 9) -> Any:
    return OPS["cross"](x, y, axis)


@writes("cross")
def write_cross(emit: Any, x: Any, y: Any, axis: int) -> Any:
    return emit("cross", {"X": x, "Y": y}, {"dim:i": 9 if axis is None else axis})


@row("einsum(Operands*=x)", "einsum(x*)", lists="x", tensors=" ")
def einsum(x: Any = (), equation: str = "") -> Any:
    return OPS["einsum"](equation, *x)


@row("eigvalsh(X) -> Eigenvalues, Eigenvectors", "eigvalsh(x)")
def eigvalsh(x: Any, UPLO: str = "L", uplo: str = "", is_test: bool = True) -> Any:
    return OPS["eigvalsh"](x, uplo or UPLO)


@writes("eigvalsh")
def write_eigvalsh(emit: Any, x: Any, UPLO: str) -> Any:
    return emit("eigvalsh", {"X": x}, {"UPLO:s": UPLO, "is_test:b": True}, ("Eigenvalues",), spare=("Eigenvectors",))


@row("slogdeterminant(Input=x);slogdet_v2(x=x) -> sign, logdet", "slogdet(x);slogdet_v2(x)", needs_op=True)
def slogdet(x: Any, op: Any) -> Any:
    result = OPS["slogdet"](x)
    return tuple(OPS["unbind"](result, 0)) if op.kind == "slogdet_v2" else result


@writes("slogdet")
def write_slogdet(emit: Any, x: Any) -> Any:
    return emit("slogdeterminant", {"Input": x}, {})


@row("solve(X, Y)", "solve(x, y)", tensors="x y")
def solve(x: Any, y: Any) -> Any:
    return OPS["solve"](x, y)


@writes("solve")
def write_solve(emit: Any, x: Any, y: Any, left: bool) -> Any:
    return emit("solve", {"X": x, "Y": y}, {}) if left else NotImplemented


@row("qr(X) -> Q, R", "qr(x)")
def qr(x: Any, mode: str = "reduced") -> Any:
    result = OPS["qr"](x, mode)
    return (None, result) if mode == "r" else tuple(result)


@writes("qr")
def write_qr(emit: Any, x: Any, mode: str) -> Any:
    return emit("qr", {"X": x}, {"mode:s": mode}, ("", "R") if mode == "r" else ("Q", "R"), spare=("Q",) if mode == "r" else ())


@row("lu(X) {pivots=pivot} -> Out, Pivots, Infos", "lu(x)")
def lu(x: Any, pivot: bool = True) -> Any:
    return tuple(OPS["lu"](x, pivot, True))


@writes("lu")
def write_lu(emit: Any, x: Any, pivot: bool, get_infos: bool) -> Any:
    return emit(
        "lu",
        {"X": x},
        {"pivots:b": pivot},
        ("Out", "Pivots", "Infos") if get_infos else ("Out", "Pivots"),
        spare=() if get_infos else ("Infos",),
    )


@row("lstsq(X, Y) -> Solution, Residuals, Rank, SingularValues", "lstsq(x, y, rcond:f)", tensors="x y")
def lstsq(x: Any, y: Any, rcond: Any = None, driver: str = "gels") -> Any:
    return tuple(OPS["lstsq"](x, y, rcond, driver))


@row("matrix_rank(X, TolTensor=tol_tensor)", "matrix_rank(x);matrix_rank_tol(x, tol_tensor)", tensors="x tol_tensor")
def matrix_rank(x: Any, tol_tensor: Any = None, tol: float = 0.0, hermitian: bool = False, use_default_tol: bool = True) -> Any:
    limit = tol_tensor if tol_tensor is not None else None if use_default_tol else tol
    return OPS["matrix_rank"](x, limit, hermitian)


@row("fft_c2c(X)", "fft_c2c(x)")
def fft_c2c(x: Any, axes: Any = (), normalization: str = "backward", forward: bool = True) -> Any:
    return OPS["fftn" if forward else "ifftn"](x, None, list(axes), normalization)


@row("fft_r2c(X)", "fft_r2c(x)")
def fft_r2c(x: Any, axes: Any = (), normalization: str = "backward", forward: bool = True, onesided: bool = True) -> Any:
    names = ("rfftn", "ihfftn") if onesided else ("fftn", "ifftn")
    return OPS[names[not forward]](x, None, list(axes), normalization)


@row("fft_c2r(X)", "fft_c2r(x)")
def fft_c2r(x: Any, axes: Any = (), normalization: str = "backward", forward: bool = True, last_dim_size: int = 0) -> Any:
    sizes = [*(x.shape[a] for a in axes[:-1]), last_dim_size] if last_dim_size else None
    return OPS["hfftn" if forward else "irfftn"](x, sizes, list(axes), normalization)


@row("frame(X)", "frame(x)")
def frame(x: Any, frame_length: int = 1, hop_length: int = 1, axis: int = -1) -> Any:
    if axis == 0:
        return OPS["unfold"](x, 0, frame_length, hop_length).transpose([0, len(x.shape), *range(1, len(x.shape))])
    windows = OPS["unfold"](x, len(x.shape) - 1, frame_length, hop_length)
    return OPS["swapaxes"](windows, -1, -2)


#: What the format's ``frame`` takes.
_FRAMED = frozenset({"float16", "float32", "float64", "int32", "int64"})


@writes("unfold")
def write_unfold(emit: Any, x: Any, axis: Any, size: Any, step: Any) -> Any:
    if not x.ndim or size < 1 or x.dtype not in _FRAMED:
        return NotImplemented
    last, axis = x.ndim - 1, axis % x.ndim
    others = [k for k in range(x.ndim) if k != axis]
    ended = x if axis == last else emit("transpose2", {"X": x}, {"axis:I": [*others, axis]}, spare=("XShape",))
    frames = emit("frame", {"X": ended}, {"frame_length:i": size, "hop_length:i": step, "axis:i": -1})  # [..., size, windows]
    order = [*range(axis), last + 1, *range(axis, last), last]
    return emit("transpose2", {"X": frames}, {"axis:I": order}, spare=("XShape",))


@row("overlap_add(X)", "overlap_add(x)")
def overlap_add(x: Any, hop_length: int = 1, axis: int = -1) -> Any:
    if axis == 0:
        order = [*range(2, len(x.shape)), 1, 0]
        y = overlap_add(OPS["transpose"](x, order), hop_length)
        return OPS["transpose"](y, [len(y.shape) - 1, *range(len(y.shape) - 1)])
    *lead, length, count = x.shape
    flat = OPS["reshape"](x, [-1, length, count])
    total = (count - 1) * hop_length + length
    y = OPS["fold"](flat, [1, total], [1, length], [1, hop_length])
    return OPS["reshape"](y, [*lead, total])
