"""Products of vectors, matrices and tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, describe, message
from ..base.kinds import DistanceMode, NotNegative
from ..ir.program import Value
from . import primitives as p
from .arguments import broadcast, floating, matched, normalized_axis, promoted
from .define import op
from .reduction import norm_over, wide_integer
from .samples import matrix, real
from .scans import part


def product(x: Value, y: Value, transpose_x: bool = False, transpose_y: bool = False) -> Value:
    """x @ y with NumPy's rules for vectors; transposing a vector changes nothing."""
    x, y = promoted(x, y)
    if x.dtype == "bool":
        raise DTypeError(message("matmul() does not take bool", "it takes numbers", "cast the tensors first"))
    if not x.ndim or not y.ndim:
        raise ShapeError(
            message(
                f"matmul(x, y): x is {list(x.shape)} and y is {list(y.shape)}",
                "both must have an axis",
                "use multiply() for 0-D tensors",
            )
        )
    a = p.reshape(x, (1, x.shape[0])) if x.ndim == 1 else p.swap_last(x) if transpose_x else x
    b = p.reshape(y, (y.shape[0], 1)) if y.ndim == 1 else p.swap_last(y) if transpose_y else y
    result = p.matmul(a, b)
    shape = result.shape[:-2]
    shape += () if x.ndim == 1 else result.shape[-2:-1]
    shape += () if y.ndim == 1 else result.shape[-1:]
    return p.reshape(result, shape)


def _matmul_reference(x, y, transpose_x=False, transpose_y=False):
    x = np.swapaxes(x, -1, -2) if transpose_x and x.ndim > 1 else x
    y = np.swapaxes(y, -1, -2) if transpose_y and y.ndim > 1 else y
    return np.asarray(np.matmul(x, y))


@op(
    ["matmul", "linalg.matmul"],
    operands=("x", "y"),
    method=True,
    reference=_matmul_reference,
    samples=[
        (real(3, 4), real(4, 2)),
        (real(2, 3, 4), real(4, 2)),
        (real(2, 1, 3, 4), real(5, 4, 2)),
        (real(4), real(4)),
        (real(3, 4), real(4)),
        (real(4), real(2, 4, 3)),
        (real(4, 3), real(2, 4), True, True),
        (real(2, 3), real(3), False, True),
    ],
    tolerance=2,
)
def matmul(x, y, transpose_x=False, transpose_y=False):
    """The matrix product over the last two axes, the leading ones broadcast; vectors stand for a row (x) or a column (y).

    transpose_x, transpose_y: with the last two axes swapped first.
    """
    return product(x, y, transpose_x, transpose_y)


@op(
    "mm",
    operands=("input", "mat2"),
    method=True,
    reference=_matmul_reference,
    samples=[(real(3, 4), real(4, 2)), (real(2, 3, 4), real(4, 2))],
    aliases={"x": "input", "y": "mat2"},
)
def mm(input, mat2):
    """The matrix product: see matmul."""
    return product(input, mat2)


@op("bmm", method=True, reference=_matmul_reference, samples=[(real(2, 3, 4), real(2, 4, 5))], aliases={"mat2": "y"})
def bmm(x, y):
    """[B, M, K] by [B, K, N]: [B, M, N]."""
    if x.ndim != 3 or y.ndim != 3 or x.shape[0] != y.shape[0]:
        raise ShapeError(f"bmm(x, y): x is {list(x.shape)} and y is {list(y.shape)}; both must have 3 axes and one batch size")
    return product(x, y)


@op("mv", method=True, reference=_matmul_reference, samples=[(real(3, 4), real(4))])
def mv(x, vec):
    """A matrix [M, N] by a vector [N]: [M]."""
    if x.ndim != 2 or vec.ndim != 1:
        raise ShapeError(f"mv(x, vec): x is {list(x.shape)} and vec is {list(vec.shape)}; they must be a matrix and a vector")
    return product(x, vec)


@op(
    "dot",
    method=True,
    reference=lambda x, y: np.sum(x * y, -1),
    samples=[(real(4), real(4)), (real(3, 4), real(3, 4))],
    aliases={"tensor": "y"},
)
def dot(x, y):
    """The sum of products over the last axis of vectors, or of rows [B, N]."""
    if x.shape != y.shape or x.ndim not in (1, 2):
        raise ShapeError(f"dot(x, y): x is {list(x.shape)} and y is {list(y.shape)}; both must be [N], or both [B, N]")
    return _summed(p.mul(*promoted(x, y)), x.ndim - 1)


def _summed(x: Value, axis: int) -> Value:
    return p.reshape(p.reduce_sum(x, (axis,)), tuple(n for k, n in enumerate(x.shape) if k != axis))


def _vecdot_reference(x, y, axis=-1):
    return np.sum(np.conj(x) * y, axis)


@op(
    ["vecdot", "linalg.vecdot"],
    operands=("x", "y"),
    method=True,
    reference=_vecdot_reference,
    samples=[(real(3, 4), real(3, 4)), (real(3, 4), real(3, 1), 0)],
)
def vecdot(x, y, axis=-1):
    """sum(conj(x) * y) along ``axis``, with broadcasting; of integers as int64."""
    x, y = map(wide_integer, matched(x, y))
    axis = normalized_axis("vecdot", axis, x.ndim)
    if not x.ndim:
        raise ShapeError("vecdot(): x and y are 0-D; they must have an axis")
    return _summed(p.mul(p.conj(x) if dtypes.is_complex(x.dtype) else x, y), axis)


@op(
    "inner",
    method=True,
    reference=lambda x, y: np.inner(x, y),
    samples=[(real(3, 4), real(2, 4)), (real(4), real(4)), (real(), real(2, 3))],
)
def inner(x, y):
    """Sums of products over the last axes: x.shape[:-1] + y.shape[:-1]; the product where one is 0-D."""
    if not x.ndim or not y.ndim:
        return p.mul(*matched(x, y))
    x, y = promoted(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"inner(x, y): x is {list(x.shape)} and y is {list(y.shape)}; their last axes must be equal")
    rows = [p.reshape(v, (math.prod(v.shape[:-1]), v.shape[-1])) for v in (x, y)]
    return p.reshape(product(rows[0], rows[1], transpose_y=True), (*x.shape[:-1], *y.shape[:-1]))


@op(
    ["outer", "ger"],
    method=("outer", "ger"),
    reference=lambda x, y: np.outer(x, y),
    samples=[(real(3), real(4)), (real(2, 2), real(3))],
    aliases={"vec2": "y"},
)
def outer(x, y):
    """Every product of an element of x and one of y, both flattened: [x.numel, y.numel]."""
    x, y = promoted(x, y)
    return p.mul(*broadcast(p.reshape(x, (x.numel, 1)), p.reshape(y, (1, y.numel))))


def _cross_axis(x: Value, axis: Any) -> int:
    if axis not in (9, None):
        return normalized_axis("cross", axis, x.ndim)
    found = [k for k, n in enumerate(x.shape) if n == 3]
    if not found:
        raise ShapeError(f"cross(): x is {list(x.shape)}; it has no axis of length 3")
    return found[0]


def _cross_reference(x, y, axis=9):
    return np.cross(x, y, axis=next(k for k, n in enumerate(x.shape) if n == 3) if axis == 9 else axis)


@op(
    ["cross", "linalg.cross"],
    operands=("x", "y"),
    method=True,
    reference=_cross_reference,
    samples=[(real(3, 4), real(3, 4)), (real(3, 3), real(3, 3), 1)],
    tests="noscalar noshape noempty",
)
def cross(x, y, axis=9):
    """The cross product along an axis of length 3, the first such by default."""
    x, y = matched(x, y)
    axis = _cross_axis(x, axis)
    if x.shape[axis] != 3:
        raise ShapeError(f"cross(): axis {axis} of shape {list(x.shape)} has length {x.shape[axis]}; it must have 3")

    def turned(v: Value, first: int) -> Value:
        return p.concat([part(v, axis, (first + k) % 3, 1) for k in range(3)], axis)

    return p.sub(p.mul(turned(x, 1), turned(y, 2)), p.mul(turned(x, 2), turned(y, 1)))


@op("kron", method=True, reference=np.kron, samples=[(real(2, 3), real(3, 2)), (real(3), real(2, 2)), (real(), real(2))])
def kron(x, y):
    """The Kronecker product: every product of an element of x and one of y, in blocks of y's shape."""
    x, y = promoted(x, y)
    rank = max(x.ndim, y.ndim)
    a, b = (p.reshape(v, (1,) * (rank - v.ndim) + v.shape) for v in (x, y))
    left = p.reshape(a, tuple(n for size in a.shape for n in (size, 1)))
    right = p.reshape(b, tuple(n for size in b.shape for n in (1, size)))
    blocks = p.mul(*broadcast(left, right))
    return p.reshape(blocks, tuple(m * n for m, n in zip(a.shape, b.shape, strict=True)))


def _contracted_axes(x: Value, y: Value, axes: Any) -> tuple[list[int], list[int]]:
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise ArgumentError(f"tensordot(): axes {axes} is more than the axes of x {list(x.shape)} and y {list(y.shape)}")
        return list(range(x.ndim - axes, x.ndim)), list(range(axes))
    if not isinstance(axes, (list, tuple)) or (len(axes) > 2 and any(isinstance(a, (list, tuple)) for a in axes)):
        raise ArgumentTypeError(
            message(f"tensordot(): axes is {describe(axes)}", "it must be a number of axes, a list of them, or two such lists")
        )
    sides = [list(a) if isinstance(a, (list, tuple)) else [a] for a in axes]
    if sides and all(not isinstance(a, (list, tuple)) for a in axes):
        sides = [list(axes), list(axes)]
    if len(sides) == 1:
        sides *= 2
    first, second = sides
    second = second + first[len(second) :]
    first = first + second[len(first) :]
    return [normalized_axis("tensordot", a, x.ndim) for a in first], [normalized_axis("tensordot", a, y.ndim) for a in second]


@op(
    "tensordot",
    operands=("x", "y"),
    method=True,
    reference=lambda x, y, axes=2: np.tensordot(x, y, axes),
    samples=[
        (real(2, 3, 4), real(3, 4, 5)),
        (real(2, 3, 4), real(4, 5), 1),
        (real(2, 3), real(4), 0),
        (real(2, 3, 4), real(4, 2), [[0, 2], [1, 0]]),
    ],
    tests="noscalar noshape noempty",
)
def tensordot(x, y, axes=2):
    """Sums of products over pairs of axes: the last of x with the first of y when ``axes`` is a number, else the pairs of its two lists."""
    x, y = promoted(x, y)
    first, second = _contracted_axes(x, y, axes)
    shared = [x.shape[a] for a in first]
    if shared != [y.shape[b] for b in second]:
        raise ShapeError(f"tensordot(): axes {first} of x {list(x.shape)} and {second} of y {list(y.shape)} differ in size")
    kept_x = [k for k in range(x.ndim) if k not in first]
    kept_y = [k for k in range(y.ndim) if k not in second]
    inner_size = math.prod(shared)
    a = p.reshape(p.transpose(x, (*kept_x, *first)), (math.prod(x.shape[k] for k in kept_x), inner_size))
    b = p.reshape(p.transpose(y, (*second, *kept_y)), (inner_size, math.prod(y.shape[k] for k in kept_y)))
    return p.reshape(product(a, b), (*(x.shape[k] for k in kept_x), *(y.shape[k] for k in kept_y)))


def _chain_order(sizes: list[int]) -> list[list[int]]:
    """Where to cut each range of a chain of matrices so that the fewest products are formed."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [(cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i][j], split[i][j] = min(options)
    return split


@op(
    "linalg.multi_dot",
    lists=("x",),
    method=True,
    reference=lambda xs: np.linalg.multi_dot(xs),
    samples=[([real(2, 3), real(3, 4), real(4, 2)],), ([real(3), real(3, 4), real(4)],), ([real(2, 3), real(3, 2)],)],
    tests="noscalar noshape noempty",
    tolerance=3,
)
def multi_dot(x):
    """The product of a chain of matrices in the cheapest order; the first and the last may be vectors."""
    if len(x) < 2:
        raise ArgumentError(f"multi_dot(): x has {len(x)} tensors; it must have 2 at least")
    xs = list(promoted(*x))
    first, last = xs[0].ndim == 1, xs[-1].ndim == 1
    xs[0] = p.reshape(xs[0], (1, xs[0].numel)) if first else xs[0]
    xs[-1] = p.reshape(xs[-1], (xs[-1].numel, 1)) if last else xs[-1]
    if any(v.ndim != 2 for v in xs):
        raise ShapeError(
            f"multi_dot(): tensors have shapes {[list(v.shape) for v in x]}; they must be matrices (vectors at the ends)"
        )
    split = _chain_order([xs[0].shape[0], *(v.shape[1] for v in xs)])

    def chain(i: int, j: int) -> Value:
        return xs[i] if i == j else p.matmul(chain(i, split[i][j]), chain(split[i][j] + 1, j))

    result = chain(0, len(xs) - 1)
    return p.reshape(result, (() if first else result.shape[:1]) + (() if last else result.shape[1:]))


@op(
    "linalg.matrix_power",
    operands=("x",),
    method=True,
    reference=np.linalg.matrix_power,
    samples=[(matrix(3, 3), 3), (matrix(2, 3, 3), -2), (matrix(3, 3), 0)],
    tests="noscalar",
    tolerance=3,
)
def matrix_power(x, n):
    """Square matrices to the power n by repeated squaring; of the inverse where n is negative."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power(): x is {list(x.shape)}; it must hold square matrices [..., N, N]")
    if isinstance(n, bool) or not isinstance(n, int):
        raise ArgumentError(f"matrix_power(): n is {n!r}; it must be an integer")
    power, result, rest = (p.inverse(floating(x)) if n < 0 else x), None, abs(n)
    while rest:
        if rest & 1:
            result = power if result is None else p.matmul(result, power)
        rest >>= 1
        power = p.matmul(power, power) if rest else power
    return p.identity(x) if result is None else result


def _scaled_sum(input: Value, x: Value, y: Value, beta: Any, alpha: Any) -> Value:
    input, x, y = promoted(input, x, y)
    result = p.matmul(x, y)
    shape = p.broadcast_shapes(input.shape, result.shape)
    if shape != result.shape:
        raise ShapeError(f"addmm(): input {list(input.shape)} does not broadcast to the product's shape {list(result.shape)}")
    input = p.broadcast_to(input, shape)
    result = result if alpha == 1 else p.mul(result, alpha)
    return p.add(result, input if beta == 1 else p.mul(input, beta))


def _addmm_reference(i, x, y, beta=1.0, alpha=1.0):
    return beta * i + alpha * (x @ y)


@op(
    "addmm",
    operands=("input", "x", "y"),
    method=True,
    inplace=True,
    reference=_addmm_reference,
    samples=[(real(3, 2), real(3, 4), real(4, 2)), (real(2), real(3, 4), real(4, 2), 2.0, 3.0)],
    tests="noscalar noshape noempty",
    tolerance=2,
)
def addmm(input, x, y, beta=1.0, alpha=1.0):
    """beta * input + alpha * (x @ y), for matrices; input is broadcast."""
    if x.ndim != 2 or y.ndim != 2:
        raise ShapeError(f"addmm(): x is {list(x.shape)} and y is {list(y.shape)}; they must be matrices")
    return _scaled_sum(input, x, y, beta, alpha)


@op(
    "baddbmm",
    operands=("input", "x", "y"),
    method=True,
    inplace=True,
    reference=_addmm_reference,
    samples=[(real(2, 3, 2), real(2, 3, 4), real(2, 4, 2)), (real(1, 3, 2), real(2, 3, 4), real(2, 4, 2), 3.0, 2.0)],
    tests="noscalar noshape noempty",
    tolerance=2,
)
def baddbmm(input, x, y, beta=1.0, alpha=1.0):
    """beta * input + alpha * (x @ y), for batches of matrices [B, M, K] and [B, K, N]; input is broadcast."""
    if x.ndim != 3 or y.ndim != 3 or x.shape[0] != y.shape[0]:
        raise ShapeError(f"baddbmm(): x is {list(x.shape)} and y is {list(y.shape)}; both must have 3 axes and one batch size")
    return _scaled_sum(input, x, y, beta, alpha)


def distances(name: str, x: Value, y: Value, order: float) -> Value:
    """The p-norm distance of every row of x [..., P, M] to every row of y [..., R, M]: [..., P, R]."""
    x, y = promoted(floating(x), floating(y))
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"{name}(): x is {list(x.shape)} and y is {list(y.shape)}; both must be [..., rows, M]")
    if order < 0:
        raise ArgumentError(f"{name}(): p is {order}; it must not be negative")
    left = p.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))
    right = p.reshape(y, (*y.shape[:-2], 1, *y.shape[-2:]))
    apart = p.sub(*broadcast(left, right))
    return p.reshape(norm_over(apart, order, (apart.ndim - 1,)), apart.shape[:-1])


def _cdist_reference(x, y, p=2.0, compute_mode=""):
    d = np.abs(x[..., :, None, :] - y[..., None, :, :])
    if np.isinf(p):
        return d.max(-1)
    return (d != 0).sum(-1).astype(d.dtype) if p == 0 else (d**p).sum(-1) ** (1 / p)


@op(
    "cdist",
    operands=("x", "y"),
    method=True,
    reference=_cdist_reference,
    samples=[
        (real(3, 4), real(2, 4)),
        (real(2, 3, 4), real(2, 5, 4), 1.0),
        (real(3, 4), real(2, 4), float("inf")),
        (real(3, 4), real(2, 4), 0),
        (real(3, 4), real(2, 4), 3.0),
    ],
    tests="noscalar noshape noempty",
    tolerance=3,
)
def cdist(x, y, p: NotNegative = 2.0, compute_mode: DistanceMode = "use_mm_for_euclid_dist_if_necessary"):
    """The p-norm distance of every row of x [..., P, M] to every row of y [..., R, M]: [..., P, R]; computed from differences in every mode."""
    return distances("cdist", x, y, float(p))


@op(
    "pdist",
    operands=("x",),
    reference=lambda x, p=2.0: _cdist_reference(x, x, p)[np.triu_indices(len(x), 1)],
    samples=[(real(4, 3),), (real(3, 4), 1.0)],
    tests="noscalar noshape noempty",
    tolerance=3,
)
def pdist(x, p=2.0):
    """The p-norm distances between every two of N rows, [N * (N - 1) / 2], row by row."""
    if x.ndim != 2:
        raise ShapeError(f"pdist(): x is {list(x.shape)}; it must be a matrix")
    return _upper_pairs(distances("pdist", x, x, float(p)))


def _upper_pairs(x: Value) -> Value:
    rows, columns = np.triu_indices(x.shape[0], 1)
    return p.gather(p.reshape(x, (x.numel,)), p.array(rows * x.shape[0] + columns, "int64"), 0)
