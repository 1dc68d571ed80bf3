"""From a trace to a kernel call: which axes are outer, inner and lane, how they collapse, and the parameters that say it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..base import flags
from .dtypes import DTYPES
from .index_maps import Axis
from .jit import CompiledKernel, compile, last_level_cache_bytes
from .loop_nodes import can_stream
from .loops import Kernel, KernelBuilder
from .places import Place
from .trace import Step, Trace

#: Lanes of one part of a map kernel, and of a column kernel. Chosen from nothing but shapes, so that results never depend on
#: threads.
_MAP_BLOCK, _COLUMN_BLOCK = 8192, 128
#: Elements of one part of a split reduction, and the most parts.
_SPLIT_BLOCK, _MOST_PARTS = 16384, 256
_SCRATCH_ROUNDING = 64
#: A row of fewer lanes than this is walked step by step, for many rows at once, when there are so many rows.
_SHORT_LANE, _LONG_LANE = 8, 64
#: A column reduction of fewer lanes that fill no vectors is folded, where rows lie behind one another: its lane is several rows then.
_NARROW_LANE = 32


@dataclass(eq=False, slots=True)
class Access:
    """Elements that a kernel reads or writes: a place, and the stride along each of the domain's axes."""

    place: Place
    strides: dict[Axis, int]
    is_full: bool = True  # of a store: one element for every point of the domain, not for every row


@dataclass(eq=False, slots=True)
class Nest:
    """The loops, slowest first; every entry is a run of domain axes that one stride walks."""

    outer: list[list[Axis]]
    inner: list[list[Axis]]
    lane: list[Axis]
    form: str


@dataclass(frozen=True, slots=True)
class KernelCall:
    """What a Plan's kernel instruction holds."""

    kernel: Kernel
    compiled: CompiledKernel
    operands: list[Place]
    params: list[int]
    parallel_size: int
    cost_ns: float
    scratch_bytes: int


def axis_preference(axes: Sequence[Axis], accesses: Sequence[Access]) -> list[Axis]:
    """The axes, slowest first, as most accesses that have all of them walk memory; as given when none does."""
    votes: dict[tuple[int, ...], int] = {}
    wide = [k for k, a in enumerate(axes) if a.size != 1]
    for access in accesses:
        strides = [access.strides.get(a, 0) for a in axes]
        if len(wide) > 1 and all(strides[k] for k in wide):
            order = tuple(sorted(range(len(axes)), key=lambda k: -abs(strides[k])))
            votes[order] = votes.get(order, 0) + math.prod(a.size for a in axes)
    if not votes:
        partial = [a for a in accesses if a.strides]
        if not partial or any(1 in (abs(s) for s in [access.strides.get(axes[-1], 0)]) for access in partial):
            return list(axes)
        fastest = next((a for access in partial for a in axes if access.strides.get(a) == 1), None)
        return list(axes) if fastest is None else [a for a in axes if a is not fastest] + [fastest]
    best = max(votes, key=lambda order: votes[order])
    return [axes[k] for k in best]


def make_nest(trace: Trace, order: Sequence[Axis], accesses: Sequence[Access]) -> Nest:
    """The loops for the axes in this order, slowest first."""
    reduced = trace.group.reduced if any(s.op == "reduce" for s in trace.steps) else None
    indexed = {s.attr for s in trace.steps if s.op == "index"}
    if not reduced:
        runs = _collapse(order, accesses, indexed)
        return _with_long_lane(Nest(runs[:-1], [], runs[-1] if runs else [], "map"))
    kept = [a for a in order if a not in reduced]
    inside = [a for a in order if a in reduced]
    if any(s.op == "reduce" and str(s.attr).startswith("arg") for s in trace.steps):
        inside = [a for a in trace.group.axes if a in reduced]  # positions count in the axes' own order
        is_row = not kept or order[-1] is inside[-1]
    else:
        is_row = order[-1] in reduced
    if is_row:
        runs = _collapse(inside, accesses, indexed)
        return _with_long_lane(Nest(_collapse(kept, accesses, indexed), runs[:-1], runs[-1], "row"))
    runs = _collapse(kept, accesses, indexed)
    return Nest(runs[:-1], _collapse(inside, accesses, indexed), runs[-1], "column")


def _with_long_lane(nest: Nest) -> Nest:
    """The nest with a long outer axis as its lane where the lane is so short that starting each row would take most of the time."""
    if size_of(nest.lane) >= _SHORT_LANE or not nest.outer:
        return nest
    long = max(range(len(nest.outer)), key=lambda k: size_of(nest.outer[k]))
    if size_of(nest.outer[long]) < _LONG_LANE:
        return nest
    outer = [run for k, run in enumerate(nest.outer) if k != long]
    return Nest(outer, [*nest.inner, nest.lane], nest.outer[long], "column")


def fold_of(trace: Trace, nest: Nest, accesses: Sequence[Access]) -> int:
    """How many rows of a split column reduction make one row of whole vectors; 1 where the lane is wide enough or rows do not lie behind one another."""
    lane = size_of(nest.lane)
    if nest.form != "column" or len(nest.inner) != 1 or not 1 < lane < _NARROW_LANE or lane % _SHORT_LANE == 0:
        return 1
    if any(s.op == "index" or (s.op == "reduce" and str(s.attr).startswith("arg")) for s in trace.steps):
        return 1
    row, rows = nest.inner[0][-1], size_of(nest.inner[0])
    for access in accesses:
        steps, step = access.strides.get(row, 0), access.strides.get(nest.lane[-1], 0)
        if access.is_full and (steps, step) not in ((lane, 1), (0, 0)):
            return 1
    fold = math.lcm(lane, _SHORT_LANE) // lane
    while fold * lane < _NARROW_LANE:
        fold *= 2
    return fold if rows % fold == 0 else 1


def folded(nest: Nest, fold: int, accesses: Sequence[Access]) -> tuple[Nest, list[Access]]:
    """The nest whose lane is ``fold`` rows, and what it reads and writes."""
    row, lane = nest.inner[0][-1], nest.lane[-1]
    rows, lanes = Axis(size_of(nest.inner[0]) // fold), Axis(size_of(nest.lane) * fold)
    moved = []
    for access in accesses:
        strides = {a: s for a, s in access.strides.items() if a not in (*nest.inner[0], *nest.lane)}
        if access.is_full and access.strides.get(lane, 0):
            strides |= {rows: access.strides[row] * fold, lanes: 1}
        moved.append(Access(access.place, strides, access.is_full))
    return Nest(nest.outer, [[rows]], [lanes], nest.form), moved


def _collapse(axes: Sequence[Axis], accesses: Sequence[Access], indexed: set[Axis]) -> list[list[Axis]]:
    runs: list[list[Axis]] = []
    for axis in axes:
        if runs and axis not in indexed and runs[-1][-1] not in indexed:
            last = runs[-1][-1]
            if all(a.strides.get(last, 0) == a.strides.get(axis, 0) * axis.size for a in accesses):
                runs[-1].append(axis)
                continue
        runs.append([axis])
    return runs


def size_of(run: Sequence[Axis]) -> int:
    """How many positions a run of axes has."""
    return math.prod(a.size for a in run)


@dataclass(frozen=True, slots=True)
class Blocking:
    """How the parallel space is cut along one axis of the nest."""

    axis: str  # lane, inner0 or none
    length: int
    count: int


def choose_blocks(nest: Nest, is_split: bool) -> Blocking:
    """The blocks of a kernel, from sizes alone."""
    lane = size_of(nest.lane)
    rows = math.prod(map(size_of, nest.outer))
    steps = math.prod(map(size_of, nest.inner))
    if is_split:
        total = rows * steps * lane
        parts = -(-total // _SPLIT_BLOCK)
        if nest.form == "column":
            rows *= -(-lane // 4096)
        parts = max(1, min(parts, _MOST_PARTS) // max(rows, 1))
        first = size_of(nest.inner[0]) if nest.inner else 0
        if nest.form == "column" or first >= min(parts, lane):
            return _blocks("inner0", first, -(-first // parts))
        length = -(-lane // parts)
        return _blocks("lane", lane, -(-length // 64) * 64)
    if nest.form == "row":
        return Blocking("none", 0, 1)
    if nest.form == "column":
        return _blocks("lane", lane, _COLUMN_BLOCK)
    return _blocks("lane", lane, _MAP_BLOCK)


def _blocks(axis: str, size: int, length: int) -> Blocking:
    length = max(1, min(length, max(size, 1)))
    return Blocking(axis, length, max(1, -(-size // length)))


def make_call(
    trace: Trace,
    nest: Nest,
    loads: Sequence[Access],
    stores: Sequence[Access],
    blocking: Blocking,
    block_strides: Sequence[int] = (),
) -> KernelCall:
    """The kernel and its parameters.

    Args:
        block_strides: of a split reduction, for every store the elements from one block's result to the next.
    """
    outer_sizes, inner_sizes = [size_of(r) for r in nest.outer], [size_of(r) for r in nest.inner]
    lane_size = size_of(nest.lane)
    is_split = blocking.axis == "inner0" or (nest.form == "row" and blocking.axis == "lane")
    params = [*outer_sizes, *inner_sizes, lane_size, blocking.length]
    streams = _passes_caches(math.prod(outer_sizes) * lane_size, loads, stores)
    buffers: list[tuple[str, str, str, str, bool]] = []
    for k, access in enumerate((*loads, *stores)):
        is_store = k >= len(loads)
        inner = [access.strides.get(r[-1], 0) for r in nest.inner]
        lane = access.strides.get(nest.lane[-1], 0) if nest.lane else 0
        params += [access.strides.get(r[-1], 0) for r in nest.outer]
        if is_store and is_split:
            params.append(block_strides[k - len(loads)])
        params += inner
        params.append(lane)
        kind = "0" if lane == 0 else "1" if lane == 1 else "n"
        if kind == "1" and is_store and streams and can_stream(nest.form, "out", access.place.dtype):
            kind = "s"
        steps_inner = bool(inner) and (access.is_full if is_store else any(inner))
        name, direction = (f"out{k - len(loads)}", "out") if is_store else (f"in{k}", "in")
        buffers.append((name, access.place.dtype, direction, kind, steps_inner))
    names = {run[0]: f"{kind}{k}" for kind, runs in (("outer", nest.outer), ("inner", nest.inner)) for k, run in enumerate(runs)}
    if nest.lane:
        names[nest.lane[0]] = "lane"
    compiled, kernel = _compiled(trace, (len(nest.outer), len(nest.inner), nest.form == "row", blocking.axis), buffers, names)
    rows, steps = math.prod(outer_sizes), math.prod(inner_sizes)
    lanes = blocking.length if blocking.axis == "lane" else lane_size
    if blocking.axis == "inner0":
        steps = -(-steps // blocking.count)
    scratch = -(-lanes // _SCRATCH_ROUNDING) * _SCRATCH_ROUNDING * 8 * compiled.scratch_rows
    cost = compiled.cost_ns * max(lanes, 1) * max(steps, 1)
    return KernelCall(kernel, compiled, [a.place for a in (*loads, *stores)], params, rows * blocking.count, cost, scratch)


def _passes_caches(elements: int, loads: Sequence[Access], stores: Sequence[Access]) -> bool:
    """Whether the results go past the caches: they are too large for them, and what memory had there is not read."""
    written = sum(elements * DTYPES[a.place.dtype].size_bytes for a in stores)
    return written >= 2 * last_level_cache_bytes() and not {a.place for a in loads} & {a.place for a in stores}


_known: dict[tuple[Any, ...], tuple[CompiledKernel, Kernel]] = {}
_MOST_KNOWN = 16384


def _compiled(
    trace: Trace, shape: tuple[int, int, bool, str], buffers: list[tuple[str, str, str, str, bool]], names: dict[Axis, str]
) -> tuple[CompiledKernel, Kernel]:
    """The kernel for these expressions over these buffers.

    Building one, only to find it known by its text, takes longer than this key.
    """
    steps = tuple((s.op, s.dtype, s.args, _spelled(s, names)) for s in trace.steps)
    key = (flags.MAX_ISA.value, shape, tuple(buffers), steps, tuple(number for _, number, _ in trace.stores))
    found = _known.get(key)
    if found is None:
        kernel = _build(trace, shape, buffers, names)
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        found = _known[key] = (compile(kernel), kernel)
    return found


def _spelled(step: Step, names: dict[Axis, str]) -> Any:
    return names[step.attr] if step.op == "index" else repr(step.attr) if step.op == "const" else step.attr


def _build(
    trace: Trace, shape: tuple[int, int, bool, str], buffers: list[tuple[str, str, str, str, bool]], names: dict[Axis, str]
) -> Kernel:
    builder = KernelBuilder(*shape)
    numbers = [builder.buffer(*b) for b in buffers]
    nodes: list[int] = []
    for step in trace.steps:
        nodes.append(_add_step(builder, step, nodes, numbers, names))
    first = len(buffers) - len(trace.stores)
    for k, (_, number, _) in enumerate(trace.stores):
        builder.store(numbers[first + k], builder.cast(buffers[first + k][1], nodes[number]))
    return builder.build()


def _add_step(builder: KernelBuilder, step: Step, nodes: list[int], reads: Sequence[int], names: dict[Axis, str]) -> int:
    args = [nodes[a] for a in step.args]
    if step.op == "load":
        return builder.load(reads[step.attr])
    if step.op == "const":
        return builder.const(step.attr, step.dtype)
    if step.op == "index":
        return builder.index(names[step.attr])
    if step.op == "map":
        return builder.map(step.attr, *args)
    if step.op == "cast":
        return builder.cast(step.dtype, args[0])
    if step.op == "select":
        return builder.select(*args)
    return builder.reduce(step.attr, args[0])
