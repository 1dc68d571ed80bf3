"""Sparse tensors: coordinates of the elements that are kept, and their values, through which gradients flow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, IndexRangeError, ShapeError, UnsupportedError, describe, message
from ..base.places import CPU, parse_place
from ..ops.arguments import dtype_name, known_shape
from .autograd import no_grad
from .build import OPS
from .creation import share_array, to_tensor
from .explained import explained
from .printing import format_array
from .selected_rows import is_selected_rows
from .selected_rows import to_dense as whole_table
from .size import Size

Tensor = _rt.Tensor
Array = np.ndarray[Any, Any]
_MOST = 2**63 - 1


class SparseTensor:
    """A tensor that keeps some of its elements; made by ``paddle.sparse.sparse_coo_tensor``, ``sparse_csr_tensor`` and ``Tensor.to_sparse_coo``.

    Of its axes the first ``sparse_dim()`` are stored by coordinates, the others densely, in the values [nnz, ...]. In row form (CSR) a matrix, or a
    batch of matrices, is kept by rows. It is no instance of ``Tensor``: functions of dense tensors refuse it, ``to_dense()`` makes one for them.
    """

    def __init__(
        self, places: Array, values: Tensor, shape: Sequence[int], is_rows: bool = False, index_dtype: str = "int64"
    ) -> None:
        if math.prod(shape) > _MOST:
            raise ShapeError(
                message(
                    f"a sparse tensor of shape {list(shape)}", "it has more elements than 64 bits can number", "use smaller sizes"
                )
            )
        self.places = places  # int64 [sparse axes, count]
        self._values = values
        self._shape = tuple(shape)
        self._is_rows = is_rows
        self._index_dtype = index_dtype

    def with_values(self, values: Tensor) -> SparseTensor:
        """Other values at the same places."""
        return SparseTensor(
            self.places, values, self._shape[: self.sparse_dim()] + tuple(values.shape[1:]), self._is_rows, self._index_dtype
        )

    # ------------------------------------------------------------------ what it is

    shape = property(lambda self: Size(self._shape), doc="The sizes of its axes.")
    dtype = property(lambda self: self._values.dtype, doc="The dtype of its values.")
    place = property(lambda self: CPU, doc="Where it lives.")
    ndim = property(lambda self: len(self._shape), doc="The number of its axes.")
    size = property(lambda self: math.prod(self._shape), doc="How many elements the dense tensor has.")
    is_leaf = property(lambda self: self._values.is_leaf, doc="Whether its values are a leaf.")

    @property
    def stop_gradient(self) -> bool:
        """Whether no gradient flows to its values."""
        return bool(self._values.stop_gradient)

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self._values.stop_gradient = bool(value)

    @property
    def grad(self) -> SparseTensor | None:
        """The gradient, at the same places; None before ``backward``."""
        return None if self._values.grad is None else self.with_values(self._values.grad)

    def dim(self) -> int:
        """The number of its axes."""
        return len(self._shape)

    def nnz(self) -> int:
        """How many elements (or slices, where some axes are dense) it keeps."""
        return int(self.places.shape[1])

    def sparse_dim(self) -> int:
        """The number of axes that are stored by coordinates."""
        return len(self.places)

    def dense_dim(self) -> int:
        """The number of axes that the values hold densely."""
        return len(self._shape) - len(self.places)

    def is_sparse(self) -> bool:
        """True."""
        return True

    def is_dense(self) -> bool:
        """False."""
        return False

    def is_sparse_coo(self) -> bool:
        """Whether it is kept by coordinates."""
        return not self._is_rows

    def is_sparse_csr(self) -> bool:
        """Whether it is kept by rows."""
        return self._is_rows

    def is_coalesced(self) -> bool:
        """Whether its places are in ascending order and occur once."""
        keys = self.keys()
        return bool((keys[1:] > keys[:-1]).all())

    def is_same_shape(self, y: Any) -> bool:
        """Whether y, sparse or dense, has the same shape."""
        return list(self._shape) == list(y.shape)

    def keys(self) -> Array:
        """The places as positions in the flattened sparse axes: int64 [count]."""
        if not len(self.places) or not self.places.size:
            return np.zeros(self.places.shape[1], np.int64)
        return np.ravel_multi_index(tuple(self.places), self._shape[: len(self.places)])

    # ------------------------------------------------------------------ its parts

    def _require(self, name: str, is_rows: bool) -> None:
        if self._is_rows != is_rows:
            form, other = ("by rows (CSR)", "coo") if self._is_rows else ("by coordinates (COO)", "csr")
            raise UnsupportedError(message(f"{name}(): the tensor is kept {form}", "", f"convert it with to_sparse_{other}()"))

    def values(self) -> Tensor:
        """The kept elements: [nnz, ...]."""
        return self._values

    def indices(self) -> Tensor:
        """Their coordinates: [sparse_dim, nnz]."""
        self._require("indices", False)
        return share_array(self.places.astype(self._index_dtype))

    def crows(self) -> Tensor:
        """For each row the number of elements in the rows before it: [rows + 1], or [batch * (rows + 1)]."""
        self._require("crows", True)
        return share_array(self.row_starts().reshape(-1).astype(self._index_dtype))

    def cols(self) -> Tensor:
        """The columns of the elements: [nnz]."""
        self._require("cols", True)
        return share_array(self.places[-1].astype(self._index_dtype))

    def row_starts(self) -> Array:
        """crows as a table: int64 [batch, rows + 1]."""
        rows = self._shape[-2]
        batch = math.prod(self._shape[:-2])
        flat = self.places[0] if len(self.places) == 2 else self.places[0] * rows + self.places[1]
        counts = np.bincount(flat, minlength=batch * rows).reshape(batch, rows)
        return np.concatenate([np.zeros((batch, 1), np.int64), np.cumsum(counts, 1)], 1)

    # ------------------------------------------------------------------ other forms

    def to_dense(self) -> Tensor:
        """The dense tensor, zero where nothing is kept; elements at equal places are added. Gradients flow to the values."""
        if self.dtype.name == "bool":
            return to_tensor(self.numpy())
        flat = OPS["zeros"]([math.prod(self._shape[: len(self.places)]), *self._values.shape[1:]], self.dtype.name)
        return OPS["reshape"](OPS["index_add"](flat, share_array(self.keys()), 0, self._values), list(self._shape))

    def numpy(self) -> Array:
        """The dense tensor's elements, as an array."""
        if self.dtype.name == "bool":
            found = np.zeros(self._shape, bool)
            found[tuple(self.places)] = self._values.numpy()
            return found
        with no_grad():
            return self.to_dense().numpy()  # type: ignore[no-any-return]

    def coalesce(self) -> SparseTensor:
        """The same with ascending places, the values of equal ones added."""
        self._require("coalesce", False)
        return ordered(self)

    def to_sparse_coo(self, sparse_dim: int | None = None) -> SparseTensor:
        """The same by coordinates; with fewer ``sparse_dim`` than it has, the axes after those are dense."""
        if sparse_dim is None or sparse_dim == self.sparse_dim():
            return SparseTensor(self.places, self._values, self._shape, False, self._index_dtype)
        return from_dense("to_sparse_coo", self.to_dense(), sparse_dim)

    def to_sparse_csr(self) -> SparseTensor:
        """The same by rows; a matrix, or a batch of matrices, without dense axes."""
        if self._is_rows:
            return self
        if self.dense_dim() or self.ndim not in (2, 3):
            told = f"the tensor has the shape {list(self._shape)} and {self.dense_dim()} dense axes"
            raise ShapeError(message(f"to_sparse_csr(): {told}", "only matrices and batches of them are kept by rows"))
        by_rows = ordered(self)
        return SparseTensor(by_rows.places, by_rows._values, self._shape, True, self._index_dtype)

    def clone(self) -> SparseTensor:
        """A copy; gradients flow through it."""
        return self.with_values(OPS["clone"](self._values))

    def detach(self) -> SparseTensor:
        """The same without its history."""
        return self.with_values(self._values.detach())

    def astype(self, dtype: Any) -> SparseTensor:
        """The same with values of another dtype."""
        return self.with_values(OPS["cast"](self._values, dtype))

    cast = astype

    def with_index_dtype(self, name: str) -> SparseTensor:
        """The same with coordinates of this integer dtype."""
        return SparseTensor(self.places, self._values, self._shape, self._is_rows, name)

    # ------------------------------------------------------------------ gradients

    def backward(self, grad_tensor: Any = None, retain_graph: bool = False) -> None:
        """Add the gradients of the kept values to the leaves that they were computed from; ``grad_tensor``: sparse at the same places, or dense.

        Raises:
            ArgumentError: grad_tensor keeps other places.
        """
        if isinstance(grad_tensor, SparseTensor):
            if grad_tensor.shape != self.shape or not np.array_equal(grad_tensor.places, self.places):
                told = f"backward(): grad_tensor is {list(grad_tensor.shape)} with {grad_tensor.nnz()} places"
                raise ArgumentError(
                    message(told, f"it must keep the same {self.nnz()} places of {list(self._shape)}", "pass a dense gradient")
                )
            grad_tensor = grad_tensor._values
        elif isinstance(grad_tensor, Tensor):
            grad_tensor = values_at(grad_tensor, self.places)
        self._values.backward(grad_tensor, retain_graph)

    def clear_grad(self) -> None:
        """Forget the gradient."""
        self._values.clear_grad()

    # ------------------------------------------------------------------ Python

    def __repr__(self) -> str:
        head = f"Tensor(shape={list(self._shape)}, dtype={self.dtype}, place={CPU}, stop_gradient={self.stop_gradient}, \n"
        parts = {"crows": self.crows(), "cols": self.cols()} if self._is_rows else {"indices": self.indices()}
        parts["values"] = self._values
        return head + ", \n".join(f"       {k}={format_array(v.numpy_view(), 8 + len(k))}" for k, v in parts.items()) + ")"

    def __len__(self) -> int:
        return self._shape[0]

    def __bool__(self) -> bool:
        raise UnsupportedError(message("bool() of a sparse tensor", "it stands for many elements", "use to_dense() or nnz()"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.numpy(), dtype)


def values_at(dense: Tensor, places: Array) -> Tensor:
    """The elements (slices) of a dense tensor at the places: [count, ...]; differentiable."""
    lead = len(places)
    flat = OPS["reshape"](dense, [math.prod(dense.shape[:lead]), *dense.shape[lead:]])
    keys = np.ravel_multi_index(tuple(places), tuple(dense.shape[:lead])) if places.size else np.zeros(places.shape[1], np.int64)
    return OPS["index_select"](flat, share_array(np.asarray(keys, np.int64)), 0)


def ordered(x: SparseTensor) -> SparseTensor:
    """x with ascending places that occur once; in its own form."""
    if x.is_coalesced():
        return x
    keys, inverse = np.unique(x.keys(), return_inverse=True)
    sums = OPS["zeros"]([len(keys), *x.values().shape[1:]], x.dtype.name)
    values = OPS["index_add"](sums, share_array(inverse.reshape(-1).astype(np.int64)), 0, x.values())
    places = np.stack(np.unravel_index(keys, tuple(x.shape)[: x.sparse_dim()])).astype(np.int64)
    return SparseTensor(places, values, x.shape, x.is_sparse_csr(), x._index_dtype)


def from_dense(name: str, x: Tensor, sparse_dim: int) -> SparseTensor:
    """The elements (slices) of a dense tensor that are not zero; gradients flow back to them."""
    if isinstance(sparse_dim, bool) or not isinstance(sparse_dim, int) or not 1 <= sparse_dim <= max(len(x.shape), 1):
        raise ArgumentError(message(f"{name}(): sparse_dim is {sparse_dim!r}", f"x has the shape {list(x.shape)}"))
    if not len(x.shape):
        raise ShapeError(message(f"{name}(): x is 0-D", "a sparse tensor has one axis at least"))
    data = x.numpy_view() != 0
    kept = data.any(tuple(range(sparse_dim, data.ndim)))
    places = np.stack(np.nonzero(kept)).astype(np.int64)
    return SparseTensor(places, values_at(x, places), x.shape)


# ---------------------------------------------------------------------- made from parts


def _indices_of(name: str, parameter: str, given: Any, rank: int) -> tuple[Array, str]:
    array = given.numpy() if isinstance(given, Tensor) else np.asarray(given)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ArgumentTypeError(message(f"{name}(): {parameter} holds {array.dtype}", "it must hold integers"))
    if array.ndim != rank:
        raise ShapeError(message(f"{name}(): {parameter} has the shape {list(array.shape)}", f"it must have {rank} axes"))
    return array.astype(np.int64), "int32" if array.dtype == np.int32 else "int64"


def _values_of(name: str, values: Any, dtype: Any, stop_gradient: bool) -> Tensor:
    if not isinstance(values, Tensor):
        made = to_tensor(values, dtype, stop_gradient=stop_gradient)
    else:
        made = values if dtype is None or dtype_name(name, dtype) == values.dtype.name else OPS["cast"](values, dtype)
        if not stop_gradient and made.stop_gradient and dtypes.is_differentiable(made.dtype.name):
            made = made.detach()
            made.stop_gradient = False
        elif stop_gradient and not made.stop_gradient:
            made = made.detach()
    if not len(made.shape):
        raise ShapeError(message(f"{name}(): values is 0-D", "it must be [nnz, ...]"))
    return made


@explained
def sparse_coo_tensor(
    indices: Any, values: Any, shape: Any = None, dtype: Any = None, place: Any = None, stop_gradient: bool = True
) -> SparseTensor:  # fmt: skip
    """A sparse tensor by coordinates.

    Args:
        indices: [sparse axes, nnz] integers; places may repeat (see ``coalesce``).
        values: [nnz, ...]; their own axes after the first are the tensor's last, dense ones.
        shape: of the tensor; by default the smallest that holds the indices.
        dtype: of the values; by default theirs.
        place: the CPU.
        stop_gradient: False: gradients flow to the values.

    Raises:
        ShapeError, IndexRangeError: the parts do not fit each other, or the shape.

    Example:
        >>> import sampan as paddle
        >>> paddle.sparse.sparse_coo_tensor([[0, 1], [2, 0]], [1.0, 2.0], [2, 3]).to_dense().tolist()
        [[0.0, 0.0, 1.0], [2.0, 0.0, 0.0]]
    """
    name = "sparse_coo_tensor"
    parse_place(name, place)
    places, index_dtype = _indices_of(name, "indices", indices, 2)
    kept = _values_of(name, values, dtype, stop_gradient)
    if places.shape[1] != kept.shape[0]:
        raise ShapeError(
            message(
                f"{name}(): indices name {places.shape[1]} places and there are {kept.shape[0]} values", "they must be as many"
            )
        )
    if shape is None:
        if not places.shape[1]:
            raise ArgumentError(message(f"{name}(): shape is None and indices are empty", "pass the shape"))
        sizes = (*(int(n) + 1 for n in places.max(1)), *kept.shape[1:])
    else:
        sizes = _sizes_of(name, shape)
    if len(sizes) != len(places) + len(kept.shape) - 1 or tuple(sizes[len(places) :]) != tuple(kept.shape[1:]):
        told = f"shape is {list(sizes)}, indices {list(places.shape)} and values {list(kept.shape)}"
        raise ShapeError(
            message(f"{name}(): {told}", "the shape is one size for each row of indices, then the values' after the first")
        )
    _require_inside(name, "indices", places, sizes)
    return SparseTensor(places, kept, sizes, False, index_dtype)


def _sizes_of(name: str, shape: Any) -> tuple[int, ...]:
    sizes = known_shape(name, shape)
    if -1 in sizes:
        raise ArgumentError(message(f"{name}(): shape is {list(sizes)}", "its sizes must be at least 0"))
    return sizes


def _require_inside(name: str, parameter: str, places: Array, sizes: Sequence[int]) -> None:
    for axis, row in enumerate(places):
        if row.size and (row.min() < 0 or row.max() >= sizes[axis]):
            wrong = int(row[(row < 0) | (row >= sizes[axis])][0])
            raise IndexRangeError(message(f"{name}(): {parameter} hold {wrong} for axis {axis}", f"the shape is {list(sizes)}"))


@explained
def sparse_csr_tensor(
    crows: Any, cols: Any, values: Any, shape: Any = None, dtype: Any = None, place: Any = None, stop_gradient: bool = True
) -> SparseTensor:  # fmt: skip
    """A sparse matrix [M, N], or a batch of them [B, M, N], by rows.

    Args:
        crows: how many elements the rows before each one hold, [M + 1], or [B * (M + 1)] with each matrix counted from 0.
        cols: the elements' columns, [nnz].
        values: [nnz].
        shape: of the tensor; by default the smallest matrix.
        dtype: of the values; by default theirs.
        place: the CPU.
        stop_gradient: False: gradients flow to the values.

    Raises:
        ShapeError, IndexRangeError, ArgumentError: the parts do not fit each other, or the shape.

    Example:
        >>> import sampan as paddle
        >>> paddle.sparse.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [1.0, 2.0, 3.0], [2, 3]).to_dense().tolist()
        [[0.0, 0.0, 1.0], [2.0, 3.0, 0.0]]
    """
    name = "sparse_csr_tensor"
    parse_place(name, place)
    starts, index_dtype = _indices_of(name, "crows", crows, 1)
    columns, _ = _indices_of(name, "cols", cols, 1)
    kept = _values_of(name, values, dtype, stop_gradient)
    if list(kept.shape) != [columns.size]:
        raise ShapeError(
            message(f"{name}(): values has the shape {list(kept.shape)} and cols {list(columns.shape)}", "they must be equal")
        )
    if not starts.size and shape is None:
        raise ShapeError(message(f"{name}(): crows is empty", "it has one element more than the matrix has rows"))
    sizes = _sizes_of(name, shape) if shape is not None else (starts.size - 1, int(columns.max(initial=-1)) + 1)
    if len(sizes) not in (2, 3):
        raise ShapeError(message(f"{name}(): shape is {list(sizes)}", "it must be [M, N] or [B, M, N]"))
    batch, rows = math.prod(sizes[:-2]), sizes[-2]
    if starts.size != batch * (rows + 1):
        raise ShapeError(
            message(f"{name}(): crows has {starts.size} elements", f"the shape {list(sizes)} needs {batch * (rows + 1)}")
        )
    table = starts.reshape(batch, rows + 1)
    counts = np.diff(table, axis=1)
    if (table[:, 0] != 0).any() or (counts < 0).any() or int(table[:, -1].sum()) != columns.size:
        raise ArgumentError(
            message(
                f"{name}(): crows does not divide cols", f"it must rise from 0 to the number of elements, {columns.size} in all"
            )
        )
    flat = np.repeat(np.arange(batch * rows), counts.reshape(-1))
    lead = [flat] if len(sizes) == 2 else [flat // max(rows, 1), flat % max(rows, 1)]
    places = np.stack([*lead, columns])
    _require_inside(name, "cols", places, sizes)
    return SparseTensor(places, kept, sizes, True, index_dtype)


# ---------------------------------------------------------------------- methods of dense tensors


def _to_sparse_coo(self: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """The elements that are not zero, by coordinates; the axes after the first ``sparse_dim`` (all by default) stay dense."""
    return from_dense("to_sparse_coo", _to_dense(self), len(self.shape) if sparse_dim is None else sparse_dim)


def _to_sparse_csr(self: Tensor) -> SparseTensor:
    """The elements of a matrix, or of a batch of them, that are not zero, by rows."""
    if len(self.shape) not in (2, 3):
        raise ShapeError(
            message(f"to_sparse_csr(): the tensor has the shape {list(self.shape)}", "it must be [M, N] or [B, M, N]")
        )
    return from_dense("to_sparse_csr", _to_dense(self), len(self.shape)).to_sparse_csr()


def _to_dense(self: Tensor) -> Tensor:
    """The tensor itself where it is dense; the whole table of one that holds only some rows of it, as the gradient of a sparse embedding does."""
    return whole_table(self) if is_selected_rows(self) else self


def require_sparse(name: str, parameter: str, x: Any) -> SparseTensor:
    """x; raises ArgumentTypeError when it is not sparse."""
    if not isinstance(x, SparseTensor):
        raise ArgumentTypeError(
            message(
                f"{name}(): {parameter} is {describe(x)}",
                "it must be a sparse tensor",
                "make one with to_sparse_coo() or to_sparse_csr()",
            )
        )
    return x


def install_sparse() -> None:
    """Attach the methods that make sparse tensors to Tensor."""
    for name, function in {"to_sparse_coo": _to_sparse_coo, "to_sparse_csr": _to_sparse_csr, "to_dense": _to_dense}.items():
        setattr(Tensor, name, function)
