"""form_groups: which Ops of a Program run in one kernel.

A group walks one domain: axes that its full values have in common. With reductions, all of them reduce the same axes of the
domain, and every value of the group either has all axes (full level) or those that are not reduced (row level). Groups are
formed front to back: an Op joins the groups of its operands where axes agree, no unit would come to depend on itself, and the
reduction needs no second stage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..base.errors import IRError
from ..ir.program import Op, Program, Value
from ..ops.primitives.core import PRIMITIVES
from .index_maps import Axis, Dims, base_of, plain_indices, view_base
from .natives import AS_OPERAND, CHANNELS_LAST

#: More Ops than this in one kernel cost registers and compile time, and gain nothing.
_MOST_OPS = 128
#: A reduction with fewer independent parts than this, each over this many elements or more, takes two stages.
_FEW_PARTS, _LONG_PART = 16, 1 << 16
#: What has fewer elements than the domain by this factor is no reason to join it: reading it costs nothing.
_SMALL_FACTOR = 8
#: Lanes that a part of a column reduction takes.
_COLUMN_LANES = 64


@dataclass(eq=False)
class Group:
    """Ops of one kernel.

    ``dims``: the domain's axis for every axis of every value, by the value's id; ``operand_dims``: for every axis of what a reduction reads, by the id of
    its result. The domain itself says nothing of those: a merged group has reductions whose operands have its axes in another order or rank.
    ``reduced``: what its reductions reduce.
    """

    ops: list[Op] = field(default_factory=list)
    dims: dict[int, Dims] = field(default_factory=dict)
    operand_dims: dict[int, Dims] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    domain: Dims = ()
    reduced: frozenset[Axis] | None = None
    is_split: bool = False

    @property
    def axes(self) -> list[Axis]:
        """The domain's axes, in the order of its shape."""
        return [a for a in self.domain if a is not None]

    @property
    def kept(self) -> set[Axis]:
        """The axes that row-level values have."""
        return set(self.axes) - (self.reduced or frozenset())

    def fits(self, dims: Dims) -> bool:
        """Whether a value with these axes may belong to the group."""
        axes = {a for a in dims if a is not None}
        return axes == set(self.axes) or (bool(self.reduced) and not self.is_split and axes == self.kept)


@dataclass(eq=False)
class Unit:
    """What is ordered as a whole: a group, or a single Op that is no kernel.

    ``ancestors``: a bit for every unit it depends on.
    """

    number: int
    group: Group | None = None
    op: Op | None = None
    ancestors: int = 0
    is_alive: bool = True


class Grouping:
    """The units of a Program. ``can_fuse`` says which maps and reductions kernels can compute;
    ``fast_axis`` which axis of a value has stride 1.
    """

    def __init__(self, program: Program, can_fuse: Callable[[Op], bool], fast_axes: Sequence[int | None]) -> None:
        self.units: list[Unit] = []
        self.unit_of: dict[int, Unit] = {}
        self._can_fuse = can_fuse
        self._closed: set[int] = set()  # values that only other units may use
        self._readers: dict[int, list[Unit]] = {}  # by value read: the groups that do
        self._fast: dict[int, int | None] = {id(v): k for v, k in zip(program.inputs, fast_axes, strict=True)}
        for op in program.ops:
            self._place(op)

    def ordered(self) -> list[Unit]:
        """The units, each after those it depends on."""
        return sorted((u for u in self.units if u.is_alive), key=lambda u: (u.ancestors.bit_count(), u.number))

    # ------------------------------------------------------------------ one Op

    def _place(self, op: Op) -> None:
        family = PRIMITIVES[op.name].family
        self._note_fast_axis(op, family)
        if family in ("source", "literal"):
            return
        if family == "view":
            self._place_view(op)
        elif family in ("map", "reduce") and self._can_fuse(op):
            self._place_fused(op)
        else:
            self._new_unit(op=op, reads=op.inputs, writes=op.outputs)

    def _note_fast_axis(self, op: Op, family: str) -> None:
        out = op.outputs[0]
        fast: int | None = None
        if family in ("map", "reduce"):
            fast = next((self._fast[id(v)] for v in op.inputs if self._fast.get(id(v)) is not None), None)
            if fast is not None and family == "reduce" and fast in op.attributes["axes"]:
                fast = None
        elif op.name == "transpose":
            source = self._fast.get(id(op.inputs[0]))
            fast = None if source is None else op.attributes["order"].index(source)
        elif op.name in CHANNELS_LAST and out.shape[1] != 1:
            fast = 1
        elif op.name in AS_OPERAND and self._fast.get(id(op.inputs[0])) is not None:
            fast = self._fast[id(op.inputs[0])]
        elif op.name not in ("broadcast_to", "constant", "iota"):
            fast = next((k for k in reversed(range(out.ndim)) if out.shape[k] != 1), None)
        for v in op.outputs:
            self._fast[id(v)] = fast

    def _group_of(self, value: Value) -> Group | None:
        unit = self.unit_of.get(id(value))
        return (
            unit.group
            if unit is not None and id(value) not in self._closed and unit.group and id(value) in unit.group.dims
            else None
        )

    def _place_view(self, op: Op) -> None:
        source, out = op.inputs[0], op.outputs[0]
        unit = self.unit_of.get(id(source))
        if unit is None:
            return
        self.unit_of[id(out)] = unit
        group = self._group_of(source)
        if group is not None:
            dims = view_dims(op, group.dims[id(source)], group)
            if dims is not None and group.fits(dims):
                group.ops.append(op)
                group.dims[id(out)] = dims

    def _place_fused(self, op: Op) -> None:
        unit: Unit | None = None
        for value in op.inputs:
            if self._group_of(value) is None:
                continue
            other = self.unit_of[id(value)]
            if unit is None:
                unit = other if self._can_join(other, op, value) else None
            elif other is not unit:
                unit = self._merged(unit, other, op) or unit
        unit = unit or self._sibling(op)
        if unit is None:
            shape = op.inputs[0].shape
            dims: Dims = tuple(Axis(n) if n != 1 else None for n in shape)
            unit = self._new_unit(group=Group(shape=shape, domain=dims))
        self._join(unit, op)

    # ------------------------------------------------------------------ joining

    def _input_dims(self, group: Group, op: Op) -> Dims | None:
        """The axes of the Op's operands, which are alike for maps; None when they do not agree."""
        found = {group.dims[id(v)] for v in op.inputs if self._is_inside(group, v)}
        if not found:
            return group.domain if op.inputs[0].shape == group.shape else None
        return found.pop() if len(found) == 1 else None

    def _is_inside(self, group: Group, value: Value) -> bool:
        return self._group_of(value) is group

    def _can_join(self, unit: Unit, op: Op, through: Value | None) -> bool:
        group = unit.group
        if group is None or len(group.ops) >= _MOST_OPS:
            return False
        dims = self._input_dims(group, op)
        if dims is None or not group.fits(dims) or self._would_cycle(unit, op):
            return False
        if PRIMITIVES[op.name].family == "reduce":
            reduced = _reduced_axes(op, dims)
            if not reduced:
                return True
            is_full = {a for a in dims if a is not None} == set(group.axes)
            has_place = not (group.is_split and op.name.startswith("reduce_arg"))
            return is_full and has_place and group.reduced in (None, reduced)
        return True

    def _would_cycle(self, unit: Unit, op: Op) -> bool:
        bit = 1 << unit.number
        for v in op.inputs:
            other = self.unit_of.get(id(v))
            if other is unit:
                if unit.group is None or not self._is_inside(unit.group, v):
                    return True
            elif other is not None and other.ancestors & bit:
                return True
        return False

    def _join(self, unit: Unit, op: Op) -> None:
        group, dims = unit.group, None
        if group is not None:
            dims = self._input_dims(group, op)
        if group is None or dims is None:
            raise IRError(f"{op.name} joins a kernel whose axes it does not have")
        for v in op.inputs:
            if not self._is_inside(group, v):
                self._readers.setdefault(id(v), []).append(unit)
        self._depend(unit, op.inputs)
        group.ops.append(op)
        out = op.outputs[0]
        if PRIMITIVES[op.name].family == "reduce":
            group.operand_dims[id(out)] = dims
            reduced = _reduced_axes(op, dims)
            axes = op.attributes["axes"]
            if reduced:
                group.reduced = reduced
                if self._needs_split(op, group):
                    group.is_split = True
                    self._closed.add(id(out))
            dims = tuple(None if k in axes else a for k, a in enumerate(dims))
        group.dims[id(out)] = dims
        self.unit_of[id(out)] = unit

    def _needs_split(self, op: Op, group: Group) -> bool:
        if op.name in ("reduce_argmax", "reduce_argmin"):
            return False
        if group.is_split:
            return True
        if any(PRIMITIVES[o.name].family == "reduce" for o in group.ops[:-1] if o.attributes.get("axes")):
            return False
        kept = math.prod(a.size for a in group.kept)
        total = math.prod(a.size for a in group.axes)
        fast = self._fast.get(id(op.inputs[0]))
        if fast is None:
            fast = max((k for k, n in enumerate(op.inputs[0].shape) if n != 1), default=0)
        parts = kept if fast in op.attributes["axes"] else -(-kept // _COLUMN_LANES)
        return parts < _FEW_PARTS and total >= max(parts, 1) * _LONG_PART

    # ------------------------------------------------------------------ merging

    def _merged(self, unit: Unit, other: Unit, op: Op) -> Unit | None:
        """The two units as one, when the Op's operands in both can be computed together."""
        a, b = unit.group, other.group
        if (
            a is None
            or b is None
            or len(a.ops) + len(b.ops) > _MOST_OPS
            or self._path_between(unit, other)
            or self._path_between(other, unit)
        ):
            return None
        mine = next((a.dims[id(v)] for v in op.inputs if self._is_inside(a, v)), None)
        if mine is None:
            return None
        theirs = [b.dims[id(v)] for v in op.inputs if self._is_inside(b, v)]
        if len(set(theirs)) != 1:
            return None
        if (a.reduced is None and b.reduced is not None) or (
            (a.reduced is None) == (b.reduced is None) and len(b.axes) > len(a.axes)
        ):
            a, b, unit, other, mine, theirs = b, a, other, unit, theirs[0], [mine]
        renamed: dict[Axis, Axis] = {}
        for to, source in zip(mine, theirs[0], strict=True):
            if source is not None and to is not None:
                renamed[source] = to
        # what else b has must be found in a too: its axes beyond those of the operand, by position
        for to, source in zip(a.domain, b.domain, strict=False):
            if source is not None and source not in renamed and to is not None and to.size == source.size and a.shape == b.shape:
                renamed[source] = to
        if len(set(renamed.values())) != len(renamed) or any(x not in renamed for x in b.axes):
            return None
        image = {renamed[x] for x in b.axes}
        if b.reduced is not None:
            if image != set(a.axes) or frozenset(renamed[x] for x in b.reduced) != a.reduced or a.is_split != b.is_split:
                return None
        elif image != set(a.axes) and (a.is_split or image != a.kept):
            return None
        if self._would_cycle_merged(unit, other, op):
            return None
        moved, moved_operands = (
            {key: tuple(None if x is None else renamed[x] for x in dims) for key, dims in known.items()}
            for known in (b.dims, b.operand_dims)
        )
        joined, operands = a.dims | moved, a.operand_dims | moved_operands
        if not all(self._reads_agree(group, joined, operands, unit, other) for group in (a, b)):
            return None
        a.dims, a.operand_dims = joined, operands
        a.ops += b.ops
        self._replace(other, unit)
        return unit

    def _reads_agree(
        self, group: Group, joined: Mapping[int, Dims], operands: Mapping[int, Dims], unit: Unit, other: Unit
    ) -> bool:
        """Whether all that the group read of the two units, when they were apart, is where the joined group has it."""
        for op in group.ops:
            if PRIMITIVES[op.name].family == "view":
                continue
            for v in op.inputs:
                if self.unit_of.get(id(v)) not in (unit, other):
                    continue
                dims = (operands if PRIMITIVES[op.name].family == "reduce" else joined)[id(op.outputs[0])]
                base = view_base(v, plain_indices(dims))
                if base is None or id(base[0]) in self._closed or base[1] != plain_indices(joined.get(id(base[0]), ())):
                    return False
        return True

    def _would_cycle_merged(self, unit: Unit, other: Unit, op: Op) -> bool:
        bits = 1 << unit.number | 1 << other.number
        found = (self.unit_of.get(id(v)) for v in op.inputs)
        return any(u is not None and u is not unit and u is not other and u.ancestors & bits for u in found)

    def _path_between(self, first: Unit, last: Unit) -> bool:
        """Whether last depends on first through a third unit."""
        bit = 1 << first.number
        if not last.ancestors & bit:
            return False
        return any(u.ancestors & bit for u in self._units_in(last.ancestors & ~bit))

    def _units_in(self, bits: int) -> Iterator[Unit]:
        while bits:
            low = bits & -bits
            yield self.units[low.bit_length() - 1]
            bits ^= low

    def _replace(self, old: Unit, new: Unit) -> None:
        old.is_alive = False
        new.ancestors = (new.ancestors | old.ancestors) & ~(1 << old.number | 1 << new.number)
        for key, unit in self.unit_of.items():
            if unit is old:
                self.unit_of[key] = new
        for readers in self._readers.values():
            if old in readers:
                readers[readers.index(old)] = new
        for unit in self.units:
            if unit.ancestors >> old.number & 1:
                unit.ancestors = unit.ancestors & ~(1 << old.number) | 1 << new.number
            if unit.ancestors >> new.number & 1:
                unit.ancestors |= new.ancestors

    def _sibling(self, op: Op) -> Unit | None:
        """A group that reads one of the Op's large operands over the same shape, so that it is read once."""
        for v in op.inputs:
            if v.numel < 2 or base_of(v).numel * _SMALL_FACTOR <= v.numel:
                continue
            for unit in self._readers.get(id(v), ()):
                group = unit.group
                if unit.is_alive and group is not None and group.shape == op.inputs[0].shape and self._can_join(unit, op, None):
                    return unit
        return None

    # ------------------------------------------------------------------ units

    def _new_unit(
        self, group: Group | None = None, op: Op | None = None, reads: Sequence[Value] = (), writes: Sequence[Value] = ()
    ) -> Unit:
        unit = Unit(len(self.units), group, op)
        self.units.append(unit)
        self._depend(unit, reads)
        for v in writes:
            self.unit_of[id(v)] = unit
        return unit

    def _depend(self, unit: Unit, values: Sequence[Value]) -> None:
        added = 0
        for v in values:
            other = self.unit_of.get(id(v))
            if other is not None and other is not unit:
                added |= other.ancestors | 1 << other.number
        added &= ~unit.ancestors
        if added:
            unit.ancestors |= added
            bit = 1 << unit.number
            for later in self.units:
                if later.ancestors & bit:
                    later.ancestors |= added


def _reduced_axes(op: Op, dims: Dims) -> frozenset[Axis]:
    return frozenset(a for k in op.attributes["axes"] if (a := dims[k]) is not None)


def view_dims(op: Op, dims: Dims, group: Group) -> Dims | None:
    """The axes of a view's result, when the view only moves axes, adds or drops ones of length 1, or repeats a row-level
    value.
    """
    source, out = op.inputs[0], op.outputs[0]
    if op.name == "transpose":
        return tuple(dims[k] for k in op.attributes["order"])
    if op.name == "detach":
        return dims
    if op.name == "reshape":
        axes = [a for a in dims if a is not None]
        if [n for n in out.shape if n != 1] != [a.size for a in axes]:
            return None
        remaining = iter(axes)
        return tuple(next(remaining) if n != 1 else None for n in out.shape)
    if op.name == "broadcast_to":
        lead = out.ndim - source.ndim
        padded: Dims = (*(None,) * lead, *dims)
        spare = [a for a in group.axes if a in (group.reduced or ()) and a not in dims]
        result: list[Axis | None] = []
        for axis, n in zip(padded, out.shape, strict=True):
            if axis is None and n != 1:
                axis = next((a for a in spare if a.size == n), None)
                if axis is None:
                    return None
                spare.remove(axis)
            result.append(axis)
        return tuple(result)
    return None
