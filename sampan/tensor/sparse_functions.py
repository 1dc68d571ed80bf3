"""Functions over sparse tensors: of each value, of two tensors, products, and other orders of their places."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, describe, message
from ..ops.arguments import dtype_name, known_shape, normalized_axes
from .build import OPS
from .creation import share_array
from .explained import explained
from .sparse_tensor import Array, SparseTensor, ordered, require_sparse, values_at

Tensor = _rt.Tensor


def _chosen(values: Tensor, at: Array) -> Tensor:
    return OPS["index_select"](values, share_array(np.ascontiguousarray(at, np.int64)), 0)


def _added(count: int, at: Array, values: Tensor) -> Tensor:
    zeros = OPS["zeros"]([count, *values.shape[1:]], values.dtype.name)
    return OPS["index_add"](zeros, share_array(np.ascontiguousarray(at, np.int64)), 0, values)


def _formed(x: SparseTensor, made: SparseTensor) -> SparseTensor:
    """A result by coordinates in the form of x."""
    return made.to_sparse_csr() if x.is_sparse_csr() else made


# ---------------------------------------------------------------------- of each value


def of_values(name: str, x: Any, *args: Any) -> SparseTensor:
    """The operator of each kept value; those of equal places are added before, as they are one element."""
    kept = ordered(require_sparse(name, "x", x))
    return kept.with_values(OPS[name](kept.values(), *args))


def _each(name: str, what: str) -> Callable[..., SparseTensor]:
    def function(x: SparseTensor, name: str | None = None) -> SparseTensor:
        return of_values(function.__name__, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{what} of the kept values, at the same places.\n\nArgs:\n    x: a sparse tensor.\n    name: accepted for compatibility."
    )
    return function


#: Functions that are 0 at 0: what is not kept stays so.
EACH = {
    "sin": "The sine", "tan": "The tangent", "asin": "The arc sine", "atan": "The arc tangent", "sinh": "The hyperbolic sine",
    "tanh": "The hyperbolic tangent", "asinh": "The inverse hyperbolic sine", "atanh": "The inverse hyperbolic tangent", "sqrt": "The square root",
    "square": "The square", "log1p": "log(1 + x)", "abs": "The absolute value", "neg": "The negative", "deg2rad": "Degrees as radians",
    "rad2deg": "Radians as degrees", "expm1": "exp(x) - 1", "isnan": "Whether each is NaN,",
}  # fmt: skip
FUNCTIONS: dict[str, Any] = {name: _each(name, what) for name, what in EACH.items()}


def pow(x: SparseTensor, factor: float, name: str | None = None) -> SparseTensor:
    """The kept values to the power ``factor``."""
    return of_values("pow", x, factor)


def cast(x: SparseTensor, index_dtype: Any = None, value_dtype: Any = None, name: str | None = None) -> SparseTensor:
    """x with coordinates and values of other dtypes; None: as they are. Coordinates are int32 or int64."""
    made = require_sparse("cast", "x", x) if value_dtype is None else x.astype(value_dtype)
    if index_dtype is None:
        return made
    kind = dtype_name("cast", index_dtype)
    if kind not in ("int32", "int64"):
        raise ArgumentTypeError(message(f"cast(): index_dtype is {kind}", "it must be int32 or int64"))
    return made.with_index_dtype(kind)


def coalesce(x: SparseTensor, name: str | None = None) -> SparseTensor:
    """x with ascending places, the values of equal ones added."""
    return require_sparse("coalesce", "x", x).coalesce()


def is_same_shape(x: Any, y: Any) -> bool:
    """Whether the two, sparse or dense, have the same shape."""
    for name, value in (("x", x), ("y", y)):
        if not isinstance(value, (SparseTensor, Tensor)):
            raise ArgumentTypeError(message(f"is_same_shape(): {name} is {describe(value)}", "it must be a tensor"))
    return list(x.shape) == list(y.shape)


# ---------------------------------------------------------------------- of two tensors


def _matched(name: str, x: Any, y: Any) -> tuple[SparseTensor, SparseTensor]:
    require_sparse(name, "x", x)
    require_sparse(name, "y", y)
    if x.is_sparse_csr() != y.is_sparse_csr() or x.sparse_dim() != y.sparse_dim():
        raise ArgumentError(
            message(f"{name}(): x and y are kept in different forms", "", "convert one with to_sparse_coo() or to_sparse_csr()")
        )
    if not is_same_shape(x, y):
        raise ShapeError(message(f"{name}(): x is {list(x.shape)} and y {list(y.shape)}", "they must have the same shape"))
    return ordered(x), ordered(y)


def _joined(name: str, x: SparseTensor, y: SparseTensor, combine: str) -> SparseTensor:
    """x and y combined at the places that either keeps."""
    a, b = _matched(name, x, y)
    keys = np.union1d(a.keys(), b.keys())
    spread = [_added(len(keys), np.searchsorted(keys, s.keys()), s.values()) for s in (a, b)]
    lead = tuple(x.shape)[: x.sparse_dim()]
    places = np.stack(np.unravel_index(keys, lead)).astype(np.int64)
    return SparseTensor(places, OPS[combine](*spread), x.shape, x.is_sparse_csr())


def add(x: Any, y: Any, name: str | None = None) -> Any:
    """x + y: sparse when both are, kept where either is; dense with a dense y.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([0.0, 1.0]).to_sparse_coo()
        >>> paddle.sparse.add(x, x).values().tolist()
        [2.0]
    """
    return OPS["add"](require_sparse("add", "x", x).to_dense(), y) if isinstance(y, Tensor) else _joined("add", x, y, "add")


def subtract(x: Any, y: Any, name: str | None = None) -> Any:
    """x - y: sparse when both are, kept where either is; dense with a dense y."""
    return (
        OPS["subtract"](require_sparse("subtract", "x", x).to_dense(), y)
        if isinstance(y, Tensor)
        else _joined("subtract", x, y, "subtract")
    )


def _scaled(name: str, x: Any, y: Any, combine: str) -> SparseTensor:
    """x's values combined with y's at the same places: what x does not keep is zero either way."""
    require_sparse(name, "x", x)
    if isinstance(y, (int, float, complex, np.number)) or (isinstance(y, Tensor) and y.size == 1):
        return x.with_values(OPS[combine](x.values(), OPS["reshape"](y, []) if isinstance(y, Tensor) else y))
    if isinstance(y, Tensor):
        if list(y.shape) != list(x.shape):
            raise ShapeError(message(f"{name}(): x is {list(x.shape)} and y {list(y.shape)}", "they must have the same shape"))
        return x.with_values(OPS[combine](x.values(), values_at(y, x.places)))
    a, b = _matched(name, x, y)
    keys, others = a.keys(), b.keys()
    at = np.searchsorted(others, keys)
    found = np.flatnonzero(np.append(others, -1)[at] == keys)
    if combine == "multiply":
        both = OPS["multiply"](_chosen(a.values(), found), _chosen(b.values(), at[found]))
        return SparseTensor(a.places[:, found], both, x.shape, x.is_sparse_csr())
    return a.with_values(OPS[combine](a.values(), _added(len(keys), found, _chosen(b.values(), at[found]))))


def multiply(x: Any, y: Any, name: str | None = None) -> SparseTensor:
    """x * y, kept where both are; y may be a number or dense."""
    return _scaled("multiply", x, y, "multiply")


def divide(x: Any, y: Any, name: str | None = None) -> SparseTensor:
    """x / y at x's places: infinite where y keeps nothing there; y may be a number or dense."""
    return _scaled("divide", x, y, "divide")


def mask_as(x: Tensor, mask: SparseTensor, name: str | None = None) -> SparseTensor:
    """The elements of a dense x at the places of the mask, in its form.

    Example:
        >>> import sampan as paddle
        >>> mask = paddle.to_tensor([[0.0, 1.0], [1.0, 0.0]]).to_sparse_coo()
        >>> paddle.sparse.mask_as(paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]]), mask).values().tolist()
        [2.0, 3.0]
    """
    require_sparse("mask_as", "mask", mask)
    if not isinstance(x, Tensor) or list(x.shape) != list(mask.shape):
        raise ShapeError(
            message(f"mask_as(): x is {describe(x)}", f"it must be a dense tensor of the mask's shape {list(mask.shape)}")
        )
    mask = ordered(mask)
    return mask.with_values(values_at(x, mask.places))


# ---------------------------------------------------------------------- products


def _as_matrices(name: str, parameter: str, x: SparseTensor) -> tuple[Array, Array]:
    """The rows and columns of its elements, counted over the batch."""
    if x.ndim not in (2, 3) or x.dense_dim():
        raise ShapeError(
            message(
                f"{name}(): {parameter} is {list(x.shape)}",
                "it must be a sparse matrix, or a batch of them, without dense axes",
            )
        )
    if x.ndim == 2:
        return x.places[0], x.places[1]
    return x.places[0] * x.shape[1] + x.places[1], x.places[0] * x.shape[2] + x.places[2]


def matmul(x: Any, y: Any, name: str | None = None) -> Any:
    """The matrix product of a sparse x [..., M, K] and a y [..., K, N]: dense when y is, sparse (kept where some product is) when both are sparse.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr()
        >>> paddle.sparse.matmul(x, paddle.to_tensor([[1.0], [10.0]])).tolist()
        [[20.0], [3.0]]
    """
    require_sparse("matmul", "x", x)
    if not isinstance(y, (Tensor, SparseTensor)):
        raise ArgumentTypeError(message(f"matmul(): y is {describe(y)}", "it must be a sparse or dense tensor"))
    rows, columns = _as_matrices("matmul", "x", x)
    if len(y.shape) != x.ndim or y.shape[-2] != x.shape[-1] or list(y.shape[:-2]) != list(x.shape[:-2]):
        raise ShapeError(
            message(
                f"matmul(): x is {list(x.shape)} and y {list(y.shape)}",
                "the last axis of x must equal the second-last of y, and the batch y's",
            )
        )
    width = int(y.shape[-1])
    if isinstance(y, SparseTensor):
        left, right = _equal_pairs(columns, _as_matrices("matmul", "y", y)[0])
        terms = OPS["multiply"](_chosen(x.values(), left), _chosen(y.values(), right))
        places = np.concatenate([x.places[:-1, left], y.places[-1:, right]])
        return _formed(x, ordered(SparseTensor(places, terms, [*x.shape[:-1], width])))
    flat = OPS["reshape"](y, [math.prod(y.shape[:-1]), width])
    terms = OPS["multiply"](_chosen(flat, columns), OPS["unsqueeze"](x.values(), -1))
    return OPS["reshape"](_added(math.prod(x.shape[:-1]), rows, terms), [*x.shape[:-1], width])


def _equal_pairs(left: Array, right: Array) -> tuple[Array, Array]:
    """Where they hold equal numbers: the positions in left and in right of each pair."""
    order = np.argsort(right, kind="stable")
    first, last = (np.searchsorted(right[order], left, side) for side in ("left", "right"))
    counts = last - first
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(np.arange(left.size), counts), order[np.repeat(first, counts) + within]


def mv(x: SparseTensor, vec: Tensor, name: str | None = None) -> Tensor:
    """A sparse matrix [M, N] times a dense vector [N]: [M]."""
    if not isinstance(vec, Tensor):
        raise ArgumentTypeError(message(f"mv(): vec is {describe(vec)}", "it must be a dense vector"))
    if require_sparse("mv", "x", x).ndim != 2 or list(vec.shape) != [x.shape[-1]]:
        raise ShapeError(
            message(
                f"mv(): x is {list(x.shape)} and vec {list(vec.shape)}", "x must be a matrix [M, N], and vec [N] of its columns"
            )
        )
    return OPS["squeeze"](matmul(x, OPS["unsqueeze"](vec, -1)), -1)


def masked_matmul(x: Tensor, y: Tensor, mask: SparseTensor, name: str | None = None) -> SparseTensor:
    """The elements of the product of dense x [..., M, K] and y [..., K, N] at the mask's places; no other is computed."""
    mask = ordered(require_sparse("masked_matmul", "mask", mask))
    rows, columns = _as_matrices("masked_matmul", "mask", mask)
    if (
        list(x.shape[:-1]) != list(mask.shape[:-1])
        or [*y.shape[:-2], y.shape[-1]] != [*mask.shape[:-2], mask.shape[-1]]
        or x.shape[-1] != y.shape[-2]
    ):
        raise ShapeError(
            message(
                f"masked_matmul(): x is {list(x.shape)}, y {list(y.shape)} and the mask {list(mask.shape)}",
                "they do not fit",
            )
        )
    inner = int(x.shape[-1])
    left = OPS["reshape"](x, [math.prod(x.shape[:-1]), inner])
    order = [*range(len(y.shape) - 2), len(y.shape) - 1, len(y.shape) - 2]
    right = OPS["reshape"](OPS["transpose"](y, order), [math.prod(y.shape[:-2]) * int(y.shape[-1]), inner])
    return mask.with_values(OPS["sum"](OPS["multiply"](_chosen(left, rows), _chosen(right, columns)), -1))


def addmm(input: Any, x: Any, y: Any, beta: float = 1.0, alpha: float = 1.0, name: str | None = None) -> Any:
    """beta * input + alpha * (x @ y), for a sparse x; input and y are both dense or both sparse."""
    product = matmul(x, y)
    if isinstance(product, Tensor):
        if not isinstance(input, Tensor):
            raise ArgumentTypeError(message(f"addmm(): input is {describe(input)}", "with a dense y it must be dense"))
        return OPS["add"](OPS["scale"](input, beta), OPS["scale"](product, alpha))
    return add(multiply(require_sparse("addmm", "input", input), beta), multiply(product, alpha))


# ---------------------------------------------------------------------- other orders


def transpose(x: SparseTensor, perm: Sequence[int], name: str | None = None) -> SparseTensor:
    """x with its axes in the order of ``perm``; sparse axes stay before dense ones."""
    rank, lead = require_sparse("transpose", "x", x).ndim, x.sparse_dim()
    order = [int(a) % rank if -rank <= a < rank else rank for a in perm]
    if sorted(order) != list(range(rank)) or any(a >= lead for a in order[:lead]):
        raise ArgumentError(
            message(
                f"transpose(): perm is {list(perm)}",
                f"it must name each of the {rank} axes once, the {lead} sparse ones first",
            )
        )
    values = x.values() if not x.dense_dim() else OPS["transpose"](x.values(), [0, *(a - lead + 1 for a in order[lead:])])
    return _formed(x, SparseTensor(x.places[order[:lead]], values, [x.shape[a] for a in order]))


def reshape(x: SparseTensor, shape: Any, name: str | None = None) -> SparseTensor:
    """x in another shape of as many elements; one size may be -1, and 0 keeps x's own. x has no dense axes."""
    if require_sparse("reshape", "x", x).dense_dim():
        raise ShapeError(
            message(f"reshape(): x has {x.dense_dim()} dense axes", "", "convert it with to_sparse_coo(x.ndim) first")
        )
    sizes = [x.shape[k] if n == 0 and k < x.ndim else n for k, n in enumerate(known_shape("reshape", shape))]
    known = math.prod(n for n in sizes if n != -1)
    if sizes.count(-1) == 1 and known and x.size % known == 0:
        sizes[sizes.index(-1)] = x.size // known
    if any(n < 0 for n in sizes) or math.prod(sizes) != x.size:
        raise ShapeError(
            message(f"reshape(): x of shape {list(x.shape)} cannot become {list(shape)}", f"it has {x.size} elements")
        )
    places = np.stack(np.unravel_index(x.keys(), tuple(sizes))).astype(np.int64)
    return _formed(x, SparseTensor(places, x.values(), sizes))


def slice(x: SparseTensor, axes: Any, starts: Any, ends: Any, name: str | None = None) -> SparseTensor:
    """x from ``starts`` to ``ends`` along the axes, which are sparse ones; negative numbers count from the end."""
    first, last = [0] * require_sparse("slice", "x", x).ndim, list(x.shape)
    bounds_of = [[int(v) for v in given] for given in (axes, starts, ends)]
    if len({len(given) for given in bounds_of}) > 1:
        told = f"there are {' and '.join(str(len(given)) for given in bounds_of)} axes, starts and ends"
        raise ArgumentError(message(f"slice(): {told}", "there must be one of each for an axis"))
    for axis, start, end in zip(*bounds_of, strict=True):
        if not -x.ndim <= axis < x.ndim or axis % x.ndim >= x.sparse_dim():
            raise ArgumentError(message(f"slice(): axes hold {axis}", f"x has {x.sparse_dim()} sparse axes"))
        length = x.shape[axis]
        bounds = [min(max(v + length if v < 0 else v, 0), length) for v in (start, end)]
        first[axis % x.ndim], last[axis % x.ndim] = bounds[0], max(bounds)
    lead = x.sparse_dim()
    low, high = np.asarray(first[:lead])[:, None], np.asarray(last[:lead])[:, None]
    kept = np.flatnonzero(((x.places >= low) & (x.places < high)).all(0))
    sizes = [b - a for a, b in zip(first, last, strict=True)]
    return _formed(x, SparseTensor(x.places[:, kept] - low, _chosen(x.values(), kept), sizes))


def sum(x: SparseTensor, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None) -> SparseTensor:
    """The sums over the axes (all of them by default), kept where some element was; of integers and bools in int64, as of a dense tensor."""
    require_sparse("sum", "x", x)
    x = x.astype(dtype or (x.dtype if dtypes.is_differentiable(x.dtype.name) else "int64"))
    rank, lead = x.ndim, x.sparse_dim()
    given = axis if axis is None or isinstance(axis, (list, tuple)) else [axis]
    over = normalized_axes("sum", given and [operator.index(a) for a in given], rank)
    inner = [a - lead + 1 for a in over if a >= lead]
    values = OPS["sum"](x.values(), inner, keepdim=keepdim) if inner else x.values()
    if all(a in over for a in range(lead)):
        total = OPS["sum"](values, 0)
        places = np.zeros((lead if keepdim else 1, 1), np.int64)
        return SparseTensor(places, OPS["unsqueeze"](total, 0), [1] * len(places) + list(total.shape))
    kept = [a for a in range(lead) if a not in over or keepdim]
    sizes = [1 if a in over else n for a, n in enumerate(x.shape) if a not in over or keepdim]
    places = np.stack([x.places[a] * (a not in over) for a in kept])
    made = ordered(SparseTensor(places, values, sizes))
    return _formed(x, made) if x.is_sparse_csr() and made.ndim in (2, 3) else made


def pca_lowrank(x: SparseTensor, q: int | None = None, center: bool = True, niter: int = 2, name: str | None = None) -> Any:
    """(U, S, V) of the leading q principal components of a sparse matrix, as ``linalg.pca_lowrank`` of its dense form."""
    return OPS["pca_lowrank"](require_sparse("pca_lowrank", "x", x).to_dense(), q, center, niter)


FUNCTIONS.update(
    {
        f.__name__: f
        for f in (
            pow, cast, coalesce, is_same_shape, add, subtract, multiply, divide, mask_as, matmul, mv, masked_matmul, addmm, transpose, reshape, slice,
            sum, pca_lowrank,
        )
    }
)  # fmt: skip
FUNCTIONS.update({name: explained(f) for name, f in FUNCTIONS.items()})


def _install_operators() -> None:
    plain: Any = SparseTensor
    for name, function in {"add": add, "sub": subtract, "mul": multiply, "truediv": divide, "matmul": matmul}.items():
        setattr(plain, f"__{name}__", (lambda f: lambda self, other: f(self, other))(function))
    plain.__rmul__ = lambda self, other: multiply(self, other)
    plain.__neg__ = lambda self: FUNCTIONS["neg"](self)
    for name in (
        "sin",
        "tan",
        "tanh",
        "sqrt",
        "square",
        "abs",
        "neg",
        "expm1",
        "log1p",
        "pow",
        "transpose",
        "reshape",
        "sum",
        "matmul",
        "add",
        "subtract",
        "multiply",
        "divide",
    ):
        setattr(plain, name, FUNCTIONS[name])


_install_operators()
