"""What definitions share: type promotion, broadcasting, and reading axes and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, message
from ..ir.program import Value
from . import primitives as p


def promoted(*values: Value) -> tuple[Value, ...]:
    """The values in one dtype: the tensors' common one; Python scalars only lift its kind."""
    strong = [v.dtype for v in values if not v.weak]
    if not strong:
        kinds = "buifc"
        top = max((dtypes.kind(v.dtype) for v in values), key=kinds.index)
        dtype = {"b": "bool", "i": "int64", "f": dtypes.default_float(), "c": "complex64"}[top]
    else:
        dtype = strong[0]
        for other in strong[1:]:
            dtype = dtypes.promote(dtype, other)
        for v in values:
            if v.weak:
                dtype = dtypes.promote_scalar(dtype, dtypes.kind(v.dtype))
    return tuple(p.cast(v, dtype) for v in values)


def broadcast(*values: Value) -> tuple[Value, ...]:
    """The values expanded to one shape."""
    shape = p.broadcast_shapes(*(v.shape for v in values))
    return tuple(p.broadcast_to(v, shape) for v in values)


def matched(*values: Value) -> tuple[Value, ...]:
    """The values in one dtype and one shape."""
    return broadcast(*promoted(*values))


def floating(x: Value) -> Value:
    """x, an integer or bool tensor in the default floating dtype."""
    return x if dtypes.is_differentiable(x.dtype) else p.cast(x, dtypes.default_float())


def normalized_axis(name: str, axis: Any, rank: int) -> int:
    """The axis counted from 0; it may stand in a list (a tensor of one element). Raises for one outside of the rank, or that is no integer."""
    if isinstance(axis, (list, tuple)) and len(axis) == 1:
        (axis,) = axis
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise ArgumentTypeError(f"{name}(): axis must be an integer, got {axis!r}")
    limit = max(rank, 1)
    if not -limit <= axis < limit:
        raise ShapeError(
            message(f"{name}(): axis {axis} is outside of a tensor of rank {rank}", f"it must be in [{-limit}, {limit - 1}]")
        )
    return axis + limit if axis < 0 else axis


def normalized_axes(name: str, axis: Any, rank: int) -> tuple[int, ...]:
    """The axes counted from 0, sorted: all of them for None or an empty list. Raises for repeated ones."""
    if axis is None or (isinstance(axis, (list, tuple)) and not axis):
        return tuple(range(rank))
    given = axis if isinstance(axis, (list, tuple)) else (axis,)
    axes = [normalized_axis(name, a, rank) for a in given]
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}(): axis {list(given)} names an axis twice")
    return tuple(sorted(axes)) if rank else ()


def ranked(name: str, parameter: str, x: Value, axes: str, more: bool = False) -> tuple[int, ...]:
    """The sizes of x's axes, which are these (``"N C H W"``), or these and more; raises ShapeError for another rank."""
    rank = len(axes.split())
    if x.ndim == rank or (more and x.ndim > rank):
        return x.shape
    wanted = f"[{', '.join(axes.split())}{', ...' if more else ''}]"
    raise ShapeError(message(f"{name}(): {parameter} has shape {list(x.shape)}", f"it must be {wanted}"))


def shifted(x: Value, axis: int) -> Value:
    """x less its largest element along the axis, so that exp does not overflow; through that no gradient flows. An empty axis has none."""
    return p.sub(x, p.detach(p.reduce_max(x, (axis,)))) if x.shape[axis] else x


def dropped(x: Value, axes: Sequence[int], keepdim: bool) -> Value:
    """x without the reduced axes, unless they are kept."""
    return x if keepdim else p.reshape(x, tuple(n for k, n in enumerate(x.shape) if k not in axes))


def dtype_name(name: str, dtype: Any) -> str:
    """The name of a dtype given as a DType, a string, or a NumPy dtype or scalar type."""
    found = dtypes.name_of(dtype)
    if not found:
        raise DTypeError(message(f"{name}(): {dtype!r} is no dtype", "", "pass a string such as 'float32', or a paddle dtype"))
    return found


def known_shape(name: str, shape: Any) -> tuple[int, ...]:
    """A shape argument as a tuple of sizes; -1 stays."""
    sizes = shape if isinstance(shape, (list, tuple)) else (shape,)
    for n in sizes:
        if isinstance(n, bool) or not isinstance(n, int):
            raise ArgumentTypeError(f"{name}(): shape must hold integers, got {n!r}")
        if n < -1:
            raise ArgumentError(f"{name}(): shape {list(sizes)} has a negative size")
    return tuple(sizes)
