"""What a kernel computes, as a list of scalar expressions over the axes of its domain, before anything is known about strides."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir.program import Op, Value
from ..ops.primitives.core import PRIMITIVES
from .dtypes import KernelError
from .form_groups import Group
from .index_maps import Axis, Dims, Indices, keeps_axes, plain_indices, through_view, view_base
from .random_steps import random_steps
from .scalar_ops import find_op

#: More instructions than this are not computed again for the sake of not storing a value: a number, a small value, one as
#: large as the domain.
_CHEAP_SCALAR, _CHEAP_SMALL, _CHEAP_FULL = 80.0, 8.0, 12.0
#: Reading this many tensors costs no more than writing one and reading it back.
_MOST_OPERANDS = 2
#: A number is computed again once for every row, so rows must be longer than this.
_LONG_ROW = 64
#: Maps that are no map of the loop IR, and what they cost.
_OWN_STEPS = {"cast": 1.0, "select": 1.0, "random_bits": 200.0}
#: A value is small for a kernel over at least this many times its elements.
_SMALL_FACTOR = 8


@dataclass(frozen=True, slots=True)
class Step:
    """One expression. op: const, index, load, map, cast, select, reduce; args: earlier steps; attr:
    number, axis, leaf, name or kind.
    """

    op: str
    dtype: str
    args: tuple[int, ...] = ()
    attr: Any = ""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value read from memory at these indices."""

    value: Value
    indices: Indices


@dataclass(eq=False)
class Trace:
    """A kernel's expressions. ``stores``: the values to write, the step that gives each, and its axes."""

    group: Group
    steps: list[Step] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    stores: list[tuple[Value, int, Dims]] = field(default_factory=list)


def can_fuse(op: Op) -> bool:
    """Whether kernels can compute this map or reduction."""
    if op.name in _OWN_STEPS:
        return True
    if op.name.startswith("reduce_"):
        return True
    try:
        found = find_op(op.name, [v.dtype for v in op.inputs])
    except KernelError:
        return False
    result = {"same": op.inputs[0].dtype, "component": op.outputs[0].dtype, "complex": op.outputs[0].dtype}.get(
        found.result, found.result
    )
    return result == op.outputs[0].dtype


def trace_group(group: Group, stored: Sequence[Value], in_memory: Container[int] = ()) -> Trace:
    """The expressions of the values that are to be stored. ``in_memory``: values (by id) that are stored for others anyway."""
    tracer = _Tracer(group, in_memory)
    for value in stored:
        dims = group.dims[id(value)]
        step = tracer.computed(value, plain_indices(dims))
        tracer.trace.stores.append((value, step, dims))
    return tracer.trace


def trace_value(value: Value) -> Trace:
    """The expression of a value as it is, to be stored elsewhere:
    read from memory, or computed when no tensor's data gives it.
    """
    tracer, dims = _whole(value.shape)
    tracer.trace.stores.append((value, tracer.emit(value, plain_indices(dims)), dims))
    return tracer.trace


def trace_copy(value: Value) -> Trace:
    """The expression of a value read from memory, to be stored elsewhere."""
    tracer, dims = _whole(value.shape)
    tracer.trace.stores.append((value, tracer.load(value, plain_indices(dims)), dims))
    return tracer.trace


def trace_fill(number: Any, dtype: str, shape: tuple[int, ...]) -> Trace:
    """The expression of one number, to be stored at every element of a new value."""
    tracer, dims = _whole(shape)
    tracer.trace.stores.append((Value(dtype, shape), tracer.step("const", dtype, (), number), dims))
    return tracer.trace


def _whole(shape: tuple[int, ...]) -> tuple[_Tracer, Dims]:
    dims: Dims = tuple(Axis(n) if n != 1 else None for n in shape)
    return _Tracer(Group(shape=shape, domain=dims), None), dims


class _Tracer:
    def __init__(self, group: Group, in_memory: Container[int] | None) -> None:
        self.group = group
        self._in_memory = in_memory
        self.trace = Trace(group)
        self._domain_size = 1
        for axis in group.axes:
            self._domain_size *= max(axis.size, 1)
        self._known: dict[Any, int] = {}
        self._leaves: dict[Any, int] = {}

    def step(self, op: str, dtype: str, args: tuple[int, ...] = (), attr: Any = "") -> int:
        key = (op, dtype, args, repr(attr) if op == "const" else attr)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.trace.steps)
            self.trace.steps.append(Step(op, dtype, args, attr))
        return found

    def load(self, value: Value, indices: Indices) -> int:
        key = (id(value), indices)
        leaf = self._leaves.get(key)
        if leaf is None:
            leaf = self._leaves[key] = len(self.trace.leaves)
            self.trace.leaves.append(Leaf(value, indices))
        return self.step("load", value.dtype, (), leaf)

    def emit(self, value: Value, indices: Indices) -> int:
        """The step that gives the value at these indices."""
        key = (id(value), indices)
        found = self._known.get(key)
        if found is None:
            op = value.op
            if op is not None and (id(value) in self.group.dims or self._is_inside(value, indices) or self._is_recomputed(value)):
                found = self.computed(value, indices)
            else:
                found = self.load(value, indices)
            self._known[key] = found
        return found

    def computed(self, value: Value, indices: Indices) -> int:
        """The step that computes the value by its Op."""
        op = value.op
        if op is None:
            return self.load(value, indices)
        family = PRIMITIVES[op.name].family
        if family == "view":
            return self.emit(op.inputs[0], through_view(op, indices))
        if op.name == "constant":
            return self.step("const", value.dtype, (), op.attributes["value"])
        if op.name == "iota":
            return self._iota(op, indices)
        if family == "reduce":
            return self._reduce(op, indices)
        args = tuple(self.emit(v, indices) for v in op.inputs)
        if op.name == "cast":
            return args[0] if op.inputs[0].dtype == value.dtype else self.step("cast", value.dtype, args)
        if op.name == "select":
            return self.step("select", value.dtype, args)
        if op.name == "random_bits":
            return random_steps(self.step, *args)
        return self.step("map", value.dtype, args, op.name)

    def _iota(self, op: Op, indices: Indices) -> int:
        axis, start, step = indices[op.attributes["axis"]]
        dtype = op.attributes["dtype"]
        if axis is None:
            return self.step("const", dtype, (), start)
        position = self.step("index", "int64", (), axis)
        if step != 1:
            position = self.step("map", "int64", (position, self.step("const", "int64", (), step)), "mul")
        if start:
            position = self.step("map", "int64", (position, self.step("const", "int64", (), start)), "add")
        return position if dtype == "int64" else self.step("cast", dtype, (position,))

    def _reduce(self, op: Op, indices: Indices) -> int:
        source, kind = op.inputs[0], op.name.removeprefix("reduce_")
        axes = op.attributes["axes"]
        dims = self.group.operand_dims[id(op.outputs[0])]
        inner = tuple((dims[k], 0, 1) if k in axes else i for k, i in enumerate(indices))
        value = self.emit(source, inner)
        if all(dims[k] is None for k in axes):
            return self.step("const", "int64", (), 0) if kind.startswith("arg") else value
        return self.step("reduce", op.outputs[0].dtype, (value,), kind)

    def _is_inside(self, value: Value, indices: Indices) -> bool:
        """Whether the value is a view of one of the group's, at the very elements where the group has it."""
        base = view_base(value, indices)
        return base is not None and id(base[0]) in self.group.dims and base[1] == plain_indices(self.group.dims[id(base[0])])

    def _is_recomputed(self, value: Value) -> bool:
        """Whether a value of another unit is computed here again:
        sources always, cheap ones to save a kernel or a pass through memory.
        """
        op = value.op
        base = value
        while op is not None and PRIMITIVES[op.name].family == "view":
            if op.name == "reshape" and not keeps_axes(op):
                return False
            base = op.inputs[0]
            op = base.op
        if op is None:
            return False
        if PRIMITIVES[op.name].family == "source":
            return True
        if self._in_memory is None:
            return False
        if base.numel == 1:
            limit = _CHEAP_SCALAR if self._domain_size >= _LONG_ROW else _CHEAP_FULL
        elif base.numel * _SMALL_FACTOR <= self._domain_size:
            limit = _CHEAP_SMALL
        elif id(base) in self._in_memory or base.numel > self._domain_size:
            return False
        else:
            return _cost(base, _CHEAP_FULL) <= _CHEAP_FULL and len(_large_operands(base, base.numel)) <= _MOST_OPERANDS
        return _cost(base, limit) <= limit


def _cost(value: Value, limit: float, size: int = 0) -> float:
    """Instructions to compute the value from what is in memory or small; more than the limit when kernels cannot.

    Args:
        size: the elements of the value that is asked about, for its operands.
    """
    op = value.op
    family = "" if op is None else PRIMITIVES[op.name].family
    if op is None or family == "source" or 1 < value.numel * _SMALL_FACTOR <= size:
        return 0.0
    if family == "view":
        return _cost(op.inputs[0], limit, size) if op.name != "reshape" or keeps_axes(op) else 0.0
    if family != "map" or not can_fuse(op):
        return 0.0 if size else limit + 1
    cost = _OWN_STEPS.get(op.name) or find_op(op.name, [v.dtype for v in op.inputs]).cost
    for v in op.inputs:
        if cost > limit:
            break
        cost += _cost(v, limit, size or value.numel)
    return cost


def _large_operands(value: Value, size: int) -> set[int]:
    """The tensors, by id, nearly as large as ``size`` elements that are read to compute the value."""
    op = value.op
    family = "" if op is None else PRIMITIVES[op.name].family
    if value.numel * _SMALL_FACTOR <= size or family == "source":
        return set()
    if op is None or family not in ("map", "view"):
        return {id(value)}
    return set().union(*(_large_operands(v, size) for v in op.inputs))
