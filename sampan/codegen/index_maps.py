"""Index maps: how a value's axes are walked by the axes of a kernel's domain, and what views do to that."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.program import Op, Value
from ..ops.primitives.core import PRIMITIVES


@dataclass(eq=False, slots=True)
class Axis:
    """One axis of a kernel's domain; axes of length 1 are none."""

    size: int


#: The domain's axis for every axis of a value; None where it has length 1.
Dims = tuple[Axis | None, ...]
#: How one axis of a value is walked: ``start + step * position`` along an axis of the domain, or at ``start`` (no axis).
Index = tuple[Axis | None, int, int]
Indices = tuple[Index, ...]


def plain_indices(dims: Dims) -> Indices:
    """The indices of a value whose axes are the domain's own."""
    return tuple((a, 0, 1) for a in dims)


def base_of(value: Value) -> Value:
    """The value whose elements this one shows."""
    while value.op is not None and PRIMITIVES[value.op.name].family == "view":
        value = value.op.inputs[0]
    return value


def memory_of(value: Value) -> Value:
    """The value whose memory this one shows: its base, whatever it waits for besides."""
    value = base_of(value)
    while value.op is not None and value.op.name == "after":
        value = base_of(value.op.inputs[0])
    return value


def operands_of(op: Op) -> tuple[Value, ...]:
    """The values whose elements the Op reads."""
    return op.inputs[:1] if op.name == "after" else op.inputs


def view_base(value: Value, indices: Indices) -> tuple[Value, Indices] | None:
    """The value that a view at these indices shows, and where; None when a reshape joins or splits axes."""
    op = value.op
    while op is not None and PRIMITIVES[op.name].family == "view":
        if op.name == "reshape" and not keeps_axes(op):
            return None
        value, indices = op.inputs[0], through_view(op, indices)
        op = value.op
    return value, indices


def keeps_axes(op: Op) -> bool:
    """Whether a reshape only adds and drops axes of length 1."""
    return [n for n in op.inputs[0].shape if n != 1] == [n for n in op.outputs[0].shape if n != 1]


def through_view(op: Op, indices: Indices) -> Indices:
    """The indices of a view's operand for those of its result."""
    source = op.inputs[0]
    if op.name == "transpose":
        result: list[Index] = [(None, 0, 1)] * source.ndim
        for k, axis in enumerate(op.attributes["order"]):
            result[axis] = indices[k]
        return tuple(result)
    if op.name == "broadcast_to":
        own = indices[len(indices) - source.ndim :] if source.ndim else ()
        return tuple((None, 0, 1) if n == 1 else i for n, i in zip(source.shape, own, strict=True))
    if op.name == "slice":
        starts, steps = op.attributes["starts"], op.attributes["steps"]
        return tuple((a, s + t * i, t * j) for (a, i, j), s, t in zip(indices, starts, steps, strict=True))
    if op.name == "reshape":
        wide = iter([i for i, n in zip(indices, op.outputs[0].shape, strict=True) if n != 1])
        return tuple(next(wide) if n != 1 else (None, 0, 1) for n in source.shape)
    return indices  # detach
