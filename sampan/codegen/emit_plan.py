"""Decides how a kernel runs: the passes of a row, what each computes, keeps or recomputes, and how far it is unrolled."""

from __future__ import annotations

import dataclasses
import enum

from sampan.codegen.dtypes import DTYPES
from sampan.codegen.loop_nodes import Kernel, Node, varies
from sampan.codegen.scalar_ops import find_op

# A value that takes more than this many vector instructions to compute again is kept in scratch for later passes.
_KEEP_ABOVE = 9.0
#: Accumulators of a sum along the lanes, a vector each.
_ROW_ACCUMULATORS = 2


class Place(enum.Enum):
    """Where a node is evaluated: once a row, once a chunk of lanes (map and column), once an inner step, or for every lane."""

    ROW = 0
    CHUNK = 1
    STEP = 2
    LANE = 3


@dataclasses.dataclass(frozen=True)
class Pass:
    """One walk over the inner axes (and, in row form, the lanes)."""

    step: tuple[int, ...]  # nodes evaluated once an inner step
    lane: tuple[int, ...]  # nodes evaluated for every vector of lanes
    restored: tuple[int, ...]  # nodes read from scratch instead
    kept: tuple[int, ...]  # nodes of `lane` written to scratch for a later pass
    reduces: tuple[int, ...]
    step_stores: tuple[int, ...]
    lane_stores: tuple[int, ...]
    unroll: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """between[p] are the row and chunk nodes to evaluate before pass p; the last entry, after the last pass."""

    place: tuple[Place, ...]
    lanes: int
    unroll: int  # of the chunk loop (map and column)
    passes: tuple[Pass, ...]
    between: tuple[tuple[int, ...], ...]
    row_stores: tuple[int, ...]
    chunk_stores: tuple[int, ...]
    slots: dict[int, int]  # a kept node's first scratch row
    scratch_rows: int
    cost: float  # vector instructions for one vector of lanes


def node_cost(kernel: Kernel, node: Node, lanes: int) -> float:
    """Vector instructions for one vector of lanes, roughly."""
    if node.op in ("load", "store"):
        buffer = kernel.buffers[int(node.attr)]  # type: ignore[arg-type]
        half = DTYPES[buffer.dtype].kind == "f" and DTYPES[buffer.dtype].bits == 16
        return {"0": 0.5, "1": 1.0, "s": 1.0, "n": 1.5 * lanes}[buffer.lane] + (2.0 if half else 0.0)
    if node.op == "load_at":
        return 3.0 * lanes
    if node.op == "map":
        scale = 2.0 if DTYPES[node.dtype].compute_bits == 64 else 1.0
        return scale * find_op(str(node.attr), [kernel.nodes[a].dtype for a in node.args]).cost
    if node.op == "cast":
        return 3.0 if DTYPES[node.dtype].bits == 16 else 1.0
    if node.op == "reduce":
        return {"sum": 1.0, "max": 3.0, "min": 3.0, "argmax": 8.0, "argmin": 8.0}.get(str(node.attr), 1.0)
    return 1.0 if node.op == "select" else 0.0


def choose_lanes(kernel: Kernel, place: tuple[Place, ...], live: set[int], vector_bits: int) -> int:
    """How many lanes a vector has: those of the widest type computed with; 64-bit types count only where nothing is 32-bit."""
    sizes = {
        DTYPES[kernel.nodes[n].dtype].compute_bits
        for n in live
        if DTYPES[kernel.nodes[n].dtype].kind != "b" and place[n] in (Place.CHUNK, Place.LANE)
    }
    if 64 in sizes and 32 in sizes:
        sizes.discard(64)
    return vector_bits // max(sizes, default=8)


def make_plan(kernel: Kernel, vector_bits: int) -> Plan:
    """The kernel's plan for registers of this size."""
    return _Planner(kernel, vector_bits).plan()


class _Planner:
    def __init__(self, kernel: Kernel, vector_bits: int) -> None:
        self.kernel = kernel
        nodes = kernel.nodes
        self.variation = varies(kernel)
        self.live = self._find_live()
        # available[n]: the number of passes that must have finished before n can be evaluated
        self.available = [0] * len(nodes)
        for k, node in enumerate(nodes):
            self.available[k] = max((self.available[a] for a in node.args), default=0) + (node.op == "reduce")
        self.place = tuple(self._place(k) for k in range(len(nodes)))
        self.lanes = choose_lanes(kernel, self.place, self.live, vector_bits)
        self.costs = [node_cost(kernel, n, self.lanes) for n in nodes]
        self.slots: dict[int, int] = {}
        self.scratch_rows = 0

    def _find_live(self) -> set[int]:
        live: set[int] = set()
        for k in reversed(range(len(self.kernel.nodes))):
            if k in live or self.kernel.nodes[k].op == "store":
                live.update((k, *self.kernel.nodes[k].args))
        return live

    def _place(self, k: int) -> Place:
        inner, lane = self.variation[k]
        if self.kernel.reduce_lane:
            return Place.LANE if lane else Place.STEP if inner else Place.ROW
        if inner:
            return Place.LANE if lane else Place.STEP
        return Place.CHUNK if lane or self.available[k] else Place.ROW

    def plan(self) -> Plan:
        nodes, live = self.kernel.nodes, sorted(self.live)
        stores = [k for k in live if nodes[k].op == "store"]
        inside = [k for k in stores if self.place[k] in (Place.STEP, Place.LANE)]
        reduces = [k for k in live if nodes[k].op == "reduce"]
        # Stores come in the last pass, after every read of the row: an out may then share its memory with an in.
        last = max([self.available[k] - 1 for k in reduces] + [self.available[k] for k in inside], default=-1)
        passes: list[Pass] = []
        computed: set[int] = set()
        for p in range(last + 1):
            done = [k for k in reduces if self.available[k] == p + 1]
            stored = inside if p == last else []
            passes.append(self._make_pass(done, stored, computed))
            computed.update(passes[-1].lane)
        kept_later = set(self.slots)
        passes = [dataclasses.replace(q, kept=tuple(n for n in q.lane if n in kept_later)) for q in passes]
        between: list[list[int]] = [[] for _ in range(last + 2)]
        for k in live:
            if self.place[k] in (Place.ROW, Place.CHUNK) and nodes[k].op not in ("reduce", "store"):
                between[self.available[k]].append(k)
        chunk_stores = tuple(k for k in stores if self.place[k] is Place.CHUNK)
        return Plan(
            self.place,
            self.lanes,
            self._chunk_unroll(passes, between),
            tuple(passes),
            tuple(map(tuple, between)),
            tuple(k for k in stores if self.place[k] is Place.ROW),
            chunk_stores,
            self.slots,
            self.scratch_rows,
            sum(self._pass_cost(q) for q in passes) + sum(self.costs[k] for k in live if self.place[k] is Place.CHUNK),
        )

    def _make_pass(self, reduces: list[int], stores: list[int], computed: set[int]) -> Pass:
        step: set[int] = set()
        lane: set[int] = set()
        restored: set[int] = set()

        def visit(k: int) -> None:
            if k in step or k in lane or k in restored or self.place[k] in (Place.ROW, Place.CHUNK):
                return
            if self.place[k] is Place.LANE and k in computed and self._worth_keeping(k):
                restored.add(k)
                self._give_slot(k)
                return
            (lane if self.place[k] is Place.LANE else step).add(k)
            for a in self.kernel.nodes[k].args:
                visit(a)

        for k in (*reduces, *stores):
            visit(self.kernel.nodes[k].args[0])
        lane_stores = tuple(k for k in stores if self.place[k] is Place.LANE)
        step_stores = tuple(k for k in stores if self.place[k] is Place.STEP)
        made = Pass(
            tuple(sorted(step)), tuple(sorted(lane)), tuple(sorted(restored)), (), tuple(reduces), step_stores, lane_stores, 1
        )
        # Along the lanes every copy is an accumulator: their number decides how a sum rounds, which must not depend on what else the pass computes.
        fixed = _ROW_ACCUMULATORS if reduces and self.kernel.reduce_lane else 0
        return dataclasses.replace(made, unroll=fixed or _unroll(self._pass_cost(made), len(reduces), 4))

    def _pass_cost(self, p: Pass) -> float:
        return sum(self.costs[k] for k in (*p.lane, *p.reduces, *p.lane_stores)) + len(p.restored)

    def _worth_keeping(self, k: int) -> bool:
        if not self.kernel.reduce_lane or self.kernel.inner:
            return False
        seen: set[int] = set()

        def gather(n: int) -> None:
            if n not in seen and self.place[n] is Place.LANE and n not in self.slots:
                seen.add(n)
                for a in self.kernel.nodes[n].args:
                    gather(a)

        gather(k)
        return k in self.slots or sum(self.costs[n] for n in seen) > _KEEP_ABOVE

    def _give_slot(self, k: int) -> None:
        if k not in self.slots:
            self.slots[k] = self.scratch_rows
            self.scratch_rows += 2 if DTYPES[self.kernel.nodes[k].dtype].kind == "c" else 1

    def _chunk_unroll(self, passes: list[Pass], between: list[list[int]]) -> int:
        if self.kernel.reduce_lane:
            return 1
        cost = max([self._pass_cost(q) for q in passes] + [sum(self.costs[k] for k in group) for group in between])
        return _unroll(cost, max((len(q.reduces) for q in passes), default=0), 8)


def _unroll(cost: float, accumulators: int, most: int) -> int:
    """Copies of a vector side by side, so that the steps of one wait behind those of others: several accumulators hide their
    latency, and so do several chains of a polynomial's steps; what is cheap only spreads the loop's overhead.
    """
    if not accumulators:
        return 2 if cost <= 10 else 4 if cost <= 48 else 2 if cost <= 120 else 1
    if cost > 24 or accumulators > 4:
        return 1
    if cost > 10 or accumulators > 2:
        return 2
    return most if accumulators == 1 and cost <= 6 else 4
