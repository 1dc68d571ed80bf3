"""Lowering of traces: kernels over strided places, results in memory that is walked in the inputs' order, and the two
stages of split reductions.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..base import dtypes, flags
from ..ir.program import Value
from .form_groups import Group
from .index_maps import Axis, Dims
from .places import Place, axis_order
from .plan_writer import PlanWriter
from .schedule import Access, KernelCall, Nest, axis_preference, choose_blocks, fold_of, folded, make_call, make_nest, size_of
from .trace import Leaf, Step, Trace

#: A column reduction over this many elements and rows is done in parts of neighbouring rows.
_LARGE_COLUMN, _MANY_ROWS = 1 << 17, 64
#: The elements from which a tensor is copied first when its lanes lie so many elements apart.
_LARGE_CROSSING = 1 << 14
_FAR_APART = 16


class Lowered(Protocol):
    """What the lowering of a Program offers to the lowering of its kernels."""

    writer: PlanWriter
    places: dict[int, Place]

    def place(self, value: Value) -> Place:
        """Where the value lies."""


@dataclass(frozen=True)
class DirectTarget:
    """An input that a value may be written into, when what the kernel reads of these buffers are the elements it then writes."""

    place: Place
    buffers: frozenset[int]


#: Steps that compute nothing, and the most names in a kernel's label.
_PLUMBING, _MOST_NAMES = ("const", "index", "load", "cast"), 6


def lower_trace(
    lowering: Lowered,
    trace: Trace,
    sources: Mapping[int, Place] | None = None,
    targets: Mapping[int, Place] | None = None,
    preferred: Mapping[int, DirectTarget] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
) -> None:
    """Append the trace's kernel; its stored values have places afterwards.

    Args:
        sources, targets: where values are read and written instead of their own places.
        preferred: inputs that values are written into when that is safe.
        strides: those that new values must have; others follow the kernel's order.
    """
    sources, targets = sources or {}, dict(targets or {})
    lowering.writer.label = describe_trace(trace)
    loads = [_access(leaf, sources.get(id(leaf.value)) or lowering.place(leaf.value)) for leaf in trace.leaves]
    has_reduce = any(s.op == "reduce" for s in trace.steps)
    stored = {a for _, _, dims in trace.stores for a in dims if a is not None}
    axes = [a for a in trace.group.axes if has_reduce or a in stored]
    _place_where_wanted(lowering, trace, axes, loads, targets, preferred or {}, strides or {})
    given = [_store_access(targets[id(v)], dims, axes) for v, _, dims in trace.stores if id(v) in targets]
    order = axis_preference(axes, [*given, *loads])
    stores = []
    for value, _, dims in trace.stores:
        target = targets.get(id(value))
        if target is None:
            target = lowering.writer.allocate(value.dtype, value.shape, _strides_along(value.shape, dims, order))
            lowering.places[id(value)] = target
        stores.append(_store_access(target, dims, axes))
    nest = make_nest(trace, order, [*loads, *stores])
    crossing = [k for k, load in enumerate(loads) if _crosses(trace.leaves[k], load, nest, axes)]
    if crossing and _is_copy(trace):
        lowering.writer.native("copy", [loads[0].place], [stores[0].place], {})
        return
    if crossing:
        for k in crossing:
            loads[k] = _copied_along(lowering, trace.leaves[k], loads[k].place, order)
        nest = make_nest(trace, order, [*loads, *stores])
    if has_reduce and (trace.group.is_split or _reads_pages_apart(trace, nest)):
        _lower_split(lowering, trace, nest, loads, stores)
    else:
        _append(lowering, make_call(trace, nest, loads, stores, choose_blocks(nest, False)))


def describe_trace(trace: Trace) -> str:
    """What the kernel computes: the names of its steps, in order, each once."""
    names = dict.fromkeys(str(s.attr) if s.op in ("map", "reduce") else s.op for s in trace.steps if s.op not in _PLUMBING)
    shown = list(names)[:_MOST_NAMES]
    size = size_of(trace.group.axes)
    return f"{'+'.join(shown) or 'copy'}{'+...' if len(names) > len(shown) else ''}[{size}]"


def _place_where_wanted(
    lowering: Lowered,
    trace: Trace,
    axes: Sequence[Axis],
    loads: Sequence[Access],
    targets: dict[int, Place],
    preferred: Mapping[int, DirectTarget],
    strides: Mapping[int, tuple[int, ...]],
) -> None:
    """Add to ``targets`` the inputs that values may be written into, and new places of the layouts that they must have."""
    for value, _, dims in trace.stores:
        direct, wanted = preferred.get(id(value)), strides.get(id(value))
        if direct is not None and _is_safe(_store_access(direct.place, dims, axes), loads, direct.buffers):
            targets[id(value)] = lowering.places[id(value)] = direct.place
        elif wanted is not None and axis_order(value.shape, wanted) is not None:
            targets[id(value)] = lowering.places[id(value)] = lowering.writer.allocate(value.dtype, value.shape, wanted)


def _copied_along(lowering: Lowered, leaf: Leaf, source: Place, order: Sequence[Axis]) -> Access:
    """The leaf in memory that is walked in this order."""
    dims = tuple(axis for axis, _, _ in leaf.indices)
    moved = lowering.writer.allocate(source.dtype, source.shape, _strides_along(source.shape, dims, order))
    lowering.writer.native("copy", [source], [moved], {})
    return _access(leaf, moved)


def _crosses(leaf: Leaf, load: Access, nest: Nest, axes: Sequence[Axis]) -> bool:
    """Whether the lanes of a large tensor lie far apart: a blocked copy first is faster than a cache line for every element."""
    if not nest.lane or abs(load.strides.get(nest.lane[-1], 0)) < _FAR_APART or size_of(axes) < _LARGE_CROSSING:
        return False
    is_plain = all((start, step) == (0, 1) for axis, start, step in leaf.indices if axis is not None)
    return is_plain and {axis for axis, _, _ in leaf.indices if axis is not None} == set(axes)


def _is_copy(trace: Trace) -> bool:
    return len(trace.steps) == len(trace.stores) == 1 and trace.steps[0].op == "load"


def _reads_pages_apart(trace: Trace, nest: Nest) -> bool:
    """Whether a column reduction would walk so many rows for every few lanes that caches and pages do not keep up: better in parts."""
    if nest.form != "column" or not nest.inner:
        return False
    lanes, rows = size_of(nest.lane), size_of([a for run in nest.inner for a in run])
    if lanes * rows < _LARGE_COLUMN or rows < _MANY_ROWS:
        return False
    reduces = {k for k, s in enumerate(trace.steps) if s.op == "reduce" and not str(s.attr).startswith("arg")}
    is_last = not any(a in reduces for s in trace.steps for a in s.args)
    return is_last and all(k in reduces or s.op != "reduce" for k, s in enumerate(trace.steps))


def _is_safe(store: Access, loads: Sequence[Access], buffers: frozenset[int]) -> bool:
    """Whether a kernel reads of these buffers nothing but each element where it then writes:
    kernels store a row after they last read it.
    """
    return store.is_full and all(
        load.place.offset == store.place.offset and load.strides == store.strides
        for load in loads
        if id(load.place.buffer) in buffers
    )


def _access(leaf: Leaf, place: Place) -> Access:
    strides: dict[Axis, int] = {}
    offset = place.offset
    for (axis, start, step), stride in zip(leaf.indices, place.strides, strict=True):
        offset += start * stride
        if axis is not None and stride:
            strides[axis] = strides.get(axis, 0) + step * stride
    return Access(Place(place.buffer, place.dtype, place.shape, place.strides, offset), strides)


def _store_access(place: Place, dims: Dims, axes: Sequence[Axis]) -> Access:
    strides = {a: s for a, s in zip(dims, place.strides, strict=True) if a is not None}
    return Access(place, strides, len(strides) == len(axes))


def _strides_along(shape: tuple[int, ...], dims: Dims, order: Sequence[Axis]) -> tuple[int, ...]:
    """Dense strides whose axes are as slow and fast as the domain's are in this order."""
    step, of_axis = 1, {}
    for axis in reversed(order):
        if axis in dims:
            of_axis[axis] = step
            step *= max(axis.size, 1)
    return tuple(1 if a is None else of_axis[a] for a in dims)


def _lower_split(lowering: Lowered, trace: Trace, nest: Nest, loads: list[Access], stores: list[Access]) -> None:
    """A first stage that reduces blocks, and a second that combines their results."""
    blocking = choose_blocks(nest, True)
    if blocking.count == 1:
        plain = choose_blocks(nest, False)
        _append(lowering, make_call(trace, nest, loads, stores, plain))
        return
    narrow, ends, fold = nest, stores, fold_of(trace, nest, [*loads, *stores])
    if fold > 1:
        nest, accesses = folded(nest, fold, [*loads, *stores])
        loads, stores = accesses[: len(loads)], accesses[len(loads) :]
        blocking = choose_blocks(nest, True)
    parts = Axis(blocking.count * fold)
    steps = list(trace.steps)
    first_stores, block_strides, seconds = [], [], []
    values = []
    for (value, number, dims), store, end in zip(trace.stores, stores, ends, strict=True):
        if steps[number].op != "reduce":
            first_stores.append(store)
            block_strides.append(0)
            values.append((value, number, dims))
            continue
        wide = "float32" if dtypes.itemsize(value.dtype) == 2 and dtypes.is_floating(value.dtype) else value.dtype
        number = _widened(steps, number, wide)
        rows = [size_of(r) for r in nest.outer]
        lane = size_of(nest.lane) if nest.form == "column" else 1
        partial = lowering.writer.allocate(wide, (*rows, blocking.count, lane))
        rows_at = {axis: s for run, s in zip(nest.outer, partial.strides, strict=False) for axis, s in _run_strides(run, s)}
        lanes_at = [dict(_run_strides(n.lane, 1)) if n.form == "column" else {} for n in (nest, narrow)]
        first_stores.append(Access(partial, rows_at | lanes_at[0], is_full=False))
        block_strides.append(lane)
        values.append((value, number, dims))
        seconds.append((value, Access(partial, rows_at | lanes_at[1] | {parts: lane // fold}), end, str(steps[number].attr)))
    first = Trace(trace.group, steps, trace.leaves, values)
    _append(lowering, make_call(first, nest, loads, first_stores, blocking, block_strides))
    for value, load, store, kind in seconds:
        axes = [*(a for r in nest.outer for a in r), *(narrow.lane if nest.form == "column" else ())]
        group = Group(domain=(*axes, parts), reduced=frozenset([parts]))
        second = Trace(
            group,
            [Step("load", load.place.dtype, (), 0), Step("reduce", load.place.dtype, (0,), kind)],
            [],
            [(value, 1, tuple(axes))],
        )
        order = [*(a for a in axes if a not in narrow.lane), parts, *(narrow.lane if nest.form == "column" else ())]
        inner = make_nest(second, order, [load, store])
        _append(lowering, make_call(second, inner, [load], [store], choose_blocks(inner, False)))


def _run_strides(run: Sequence[Axis], stride: int) -> list[tuple[Axis, int]]:
    """The stride of every axis of a run whose last one has this stride."""
    result = []
    for axis in reversed(run):
        result.append((axis, stride))
        stride *= axis.size
    return result


def _widened(steps: list[Step], number: int, dtype: str) -> int:
    """The reduce step in a wider dtype."""
    old = steps[number]
    if old.dtype == dtype:
        return number
    steps.append(Step("cast", dtype, old.args))
    steps.append(Step("reduce", dtype, (len(steps) - 1,), old.attr))
    return len(steps) - 1


def _append(lowering: Lowered, call: KernelCall) -> None:
    if flags.dumps("loops"):
        print(f"{call.kernel.text}# params {call.params}, parallel {call.parallel_size}\n", file=sys.stderr)
    lowering.writer.kernel(
        call.compiled.address, call.operands, call.params, call.parallel_size, call.cost_ns, call.scratch_bytes
    )
