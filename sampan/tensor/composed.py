"""Functions whose result's shape depends on data: computed when called, outside of any Program, and differentiable through gathers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, message
from ..ir.program import Value
from ..ops.arguments import dtype_name, normalized_axis
from .build import OPS, composed
from .replay import recordable

Tensor = _rt.Tensor

#: Types of results for Programs, (dtype, shape) with -1 for what data decides.
_POSITIONS = ("int64", (-1,))


def _nonzero_types(x: Any, as_tuple: bool = False) -> Any:
    return tuple([_POSITIONS] * max(x.ndim, 1)) if as_tuple else ("int64", (-1, x.ndim))


def _bincount_types(x: Any, weights: Any = None, minlength: int = 0, name: Any = None) -> Any:
    return "int64" if weights is None else weights.dtype, (-1,)


def _unique_types(
    x: Any,
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    axis: int | None,
    dtype: Any,
    sorted: bool = True,
    name: Any = None,
) -> Any:
    whole = (-1,) if axis is None else tuple(-1 if k == axis % x.ndim else n for k, n in enumerate(x.shape))
    along = math.prod(x.shape) if axis is None else x.shape[axis]
    positions = [(is_wanted, size) for is_wanted, size in ((return_index, -1), (return_inverse, along), (return_counts, -1))]
    more = [(dtype_name("unique", dtype), (size,)) for is_wanted, size in positions if is_wanted]
    return ((x.dtype, whole), *more) if more else (x.dtype, whole)


def nonzero_positions(x: Tensor) -> Tensor:
    """int64 [count, rank]: where x is not zero; the compiler is loaded by the first call."""
    from ..codegen.selection import nonzero_positions as find

    return find(x)  # type: ignore[no-any-return]


def require_tensor(name: str, parameter: str, value: Any) -> Tensor:
    """The value, if it is a Tensor; an error that says what to do otherwise."""
    if not isinstance(value, (Tensor, Value)):
        raise ArgumentTypeError(
            message(
                f"{name}(): {parameter} is a {type(value).__name__}", "it must be a Tensor", "convert it with to_tensor() first"
            )
        )
    return value  # type: ignore[return-value]


def from_array(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor over the array's memory."""
    return _rt.from_numpy(np.ascontiguousarray(array), False)


@recordable("mask_indices", lambda mask: [_POSITIONS] * mask.ndim)
def mask_indices(mask: Tensor) -> list[Tensor]:
    """For each axis of a bool mask, the int64 positions along it where the mask holds."""
    return _columns(nonzero_positions(mask)) if mask.ndim else []


def _columns(positions: Tensor) -> list[Tensor]:
    return [from_array(column) for column in positions.numpy_view().T]


@composed("nonzero", method=True, rule=_nonzero_types, takes_out=True)
def nonzero(x: Tensor, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not zero, in row-major order.

    Args:
        x: any tensor.
        as_tuple: give one tensor for each axis in place of one tensor of rows.
        out: receives the tensor of rows; by name only.

    Returns:
        int64 [count, rank], or a tuple of ``rank`` int64 tensors [count].

    Example:
        >>> import sampan as paddle
        >>> paddle.nonzero(paddle.to_tensor([0.0, 3.0, 0.0, 4.0])).tolist()
        [[1], [3]]
    """
    require_tensor("nonzero", "x", x)
    positions = nonzero_positions(x)
    return tuple(_columns(positions)) if as_tuple else positions


@composed("argwhere", method=True)
def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not zero, int64 [count, rank]: see nonzero."""
    return nonzero(input)


@composed("bincount", method=True, rule=_bincount_types)
def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0, name: str | None = None) -> Tensor:
    """How often each of 0, 1, ... max(x) occurs in the vector x of integers, at least ``minlength`` of them; with weights, their sums.

    Example:
        >>> import sampan as paddle
        >>> paddle.bincount(paddle.to_tensor([1, 3, 1])).tolist()
        [0, 2, 0, 1]
    """
    require_tensor("bincount", "x", x)
    if not dtypes.is_integer(x.dtype.name):
        raise DTypeError(message(f"bincount(): x is {x.dtype.name}", "it must be an integer type"))
    require_rank("bincount", "x", x, 1)
    if minlength < 0 or (x.size and int(OPS["min"](x)) < 0):
        raise ArgumentError("bincount(): x and minlength must not be negative")
    if weights is not None and list(weights.shape) != list(x.shape):
        raise ShapeError(message(f"bincount(): weights have shape {list(weights.shape)}", f"x has {list(x.shape)}"))
    bins = max(int(OPS["max"](x)) + 1 if x.size else 0, minlength)
    return OPS["bincount_into"](x, weights, bins)


@composed("masked_select", method=True, rule=lambda x, mask, name: (x.dtype, (-1,)), takes_out=True)
def masked_select(x: Tensor, mask: Tensor, name: str | None = None) -> Tensor:
    """The elements of x where the mask holds, in row-major order, as a 1-D tensor; x and mask are broadcast to one shape.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([1.0, 2.0, 3.0])
        >>> paddle.masked_select(x, x > 1.5).tolist()
        [2.0, 3.0]
    """
    require_tensor("masked_select", "x", x)
    if require_tensor("masked_select", "mask", mask).dtype.name != "bool":
        raise DTypeError(message(f"masked_select(): mask is {mask.dtype.name}", "it must be bool"))
    if list(x.shape) != list(mask.shape):
        x, mask = OPS["broadcast_tensors"]([x, mask])
    flat = OPS["reshape"](x, [-1]) if x.ndim != 1 else x
    positions = from_array(nonzero_positions(OPS["reshape"](mask, [-1])).numpy_view().reshape(-1))
    return OPS["gather"](flat, positions)


def _unique_keys(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


@composed("unique", method=True, rule=_unique_types)
def unique(
    x: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    dtype: Any = "int64",
    sorted: bool = True,
    name: str | None = None,
) -> Any:
    """The distinct elements (or slices along ``axis``) in ascending order; NaNs count as one value.

    Args:
        x: any tensor.
        return_index: also give where each first occurs.
        return_inverse: also give each element's position among the distinct ones.
        return_counts: also give how often each occurs.
        axis: compare slices along it; None: compare elements of the flattened tensor.
        dtype: of the index results: int32 or int64.
        sorted: accepted for compatibility; the result is always sorted.

    Example:
        >>> import sampan as paddle
        >>> paddle.unique(paddle.to_tensor([2, 3, 3, 1, 5, 3])).tolist()
        [1, 2, 3, 5]
    """
    require_tensor("unique", "x", x)
    index_dtype = _index_dtype("unique", dtype)
    array = _unique_keys(x.numpy_view())
    along = None if axis is None else normalized_axis("unique", axis, x.ndim)
    _, first, inverse, counts = np.unique(array, True, True, True, axis=along)
    picked = np.take(x.numpy_view(), first, axis=along) if along is not None else x.numpy_view().reshape(-1)[first]
    results = [from_array(picked)]
    for wanted, part in ((return_index, first), (return_inverse, inverse.reshape(-1)), (return_counts, counts)):
        if wanted:
            results.append(from_array(part.astype(index_dtype)))
    return results[0] if len(results) == 1 else tuple(results)


def _index_dtype(name: str, dtype: Any) -> str:
    found = dtype_name(name, dtype)
    if found not in ("int32", "int64"):
        raise DTypeError(message(f"{name}(): dtype={found}", "index results are int32 or int64"))
    return found


@composed(
    "unique_consecutive",
    method=True,
    rule=lambda x, return_inverse, return_counts, axis, dtype, name: _unique_types(
        x, False, return_inverse, return_counts, axis, dtype
    ),
)
def unique_consecutive(
    x: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    dtype: Any = "int64",
    name: str | None = None,
) -> Any:
    """x without the elements (or slices along ``axis``) that equal the one before.

    Example:
        >>> import sampan as paddle
        >>> paddle.unique_consecutive(paddle.to_tensor([1, 1, 2, 2, 3, 1])).tolist()
        [1, 2, 3, 1]
    """
    require_tensor("unique_consecutive", "x", x)
    index_dtype = _index_dtype("unique_consecutive", dtype)
    array = x.numpy_view()
    if axis is None:
        rows, along = array.reshape(-1, 1), 0
        array = array.reshape(-1)
    else:
        along = normalized_axis("unique_consecutive", axis, x.ndim)
        rows = np.moveaxis(array, along, 0).reshape(array.shape[along], -1)
    starts = np.ones(len(rows), bool)
    starts[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    where = np.flatnonzero(starts)
    results = [from_array(np.take(array, where, axis=along))]
    if return_inverse:
        results.append(from_array((np.cumsum(starts) - 1).astype(index_dtype)))
    if return_counts:
        results.append(from_array(np.diff(np.append(where, len(rows))).astype(index_dtype)))
    return results[0] if len(results) == 1 else tuple(results)


def require_rank(name: str, parameter: str, x: Tensor, rank: int) -> None:
    """Raise ShapeError when x is not of this rank."""
    if x.ndim != rank:
        raise ShapeError(message(f"{name}(): {parameter} has shape {list(x.shape)}", f"it must have {rank} axes"))
