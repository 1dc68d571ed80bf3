"""A kernel as LLVM IR text: its loops in map, row and column form. docs/design/002-loop-ir.md has the function's interface."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence

from sampan.codegen.dtypes import DTYPES
from sampan.codegen.emit_memory import (
    Tail,
    decode,
    element_text,
    encode,
    load_raw,
    pointer_argument,
    scatter_strided,
    store_raw,
    store_scalar,
)
from sampan.codegen.emit_plan import Pass, Plan, make_plan
from sampan.codegen.emit_reduce import Reduction, State
from sampan.codegen.emit_values import Evaluator, Parameters, Scope
from sampan.codegen.llvm_text import I32, I64, PTR, Value, Writer
from sampan.codegen.loop_nodes import Kernel
from sampan.codegen.mathlib_complex import Complex

# Scratch rows are whole numbers of this many elements, so that a last vector may be written in full.
SCRATCH_ROUNDING = 64
# Bytes of the widest vector: what vectors that stream are aligned to.
_WIDEST_VECTOR = 64


def emit_kernel(kernel: Kernel, name: str, writer: Writer, vector_bits: int) -> tuple[str, Plan]:
    """The text of the function `name`, and its plan. Declarations and helpers gather in the writer."""
    plan = make_plan(kernel, vector_bits)
    return _KernelEmitter(kernel, plan, writer, vector_bits).function(name), plan


class _KernelEmitter:
    def __init__(self, kernel: Kernel, plan: Plan, writer: Writer, vector_bits: int) -> None:
        self.kernel, self.plan, self.writer = kernel, plan, writer
        self.parameters = Parameters(writer, kernel)
        self.nodes = Evaluator(kernel, plan, writer, self.parameters)
        self.mask_bits = max(8, min(64, vector_bits // plan.lanes))
        self.zero = writer.constant(0, I64)
        self.scratch = pointer_argument(writer, "%scratch")
        self.scratch_bytes = self.zero  # of one scratch row
        self.lane_start, self.lane_stop = self.zero, self.zero
        self.inner_start, self.inner_stop = self.zero, self.zero
        self.streams = False
        self.is_aligned: Value | None = None  # whether all that streams starts at a vector's address

    # The function and its walk over the parallel index space.

    def function(self, name: str) -> str:
        writer = self.writer
        begin, end = Value(writer, I64, "%begin"), Value(writer, I64, "%end")
        writer.branch_if(begin < end, "work", "done")
        writer.start_block("work")
        if self.plan.scratch_rows:
            length = self.parameters.block_length() if self.kernel.block == "lane" else self.parameters.lane_size()
            self.scratch_bytes = (length + (SCRATCH_ROUNDING - 1) & -SCRATCH_ROUNDING) * 8
        blocks = self._block_count()
        buffers = [self._buffer(k) for k in range(len(self.kernel.buffers))]
        position = begin
        digits: list[Value] = []  # outer axes from the last to the first, after the block
        sizes = [] if blocks is None else [blocks]
        sizes += [self.parameters.outer_size(a) for a in reversed(range(self.kernel.outer))]
        for size in sizes[:-1]:
            quotient = position / size
            digits.append(position - quotient * size)
            position = quotient
        if sizes:
            digits.append(position)

        def one(_: Value, state: list[Value]) -> list[Value]:
            self._row(buffers, state, blocks is not None)
            return self._advance(state, sizes)

        writer.loop(begin, end, 1, digits, one)
        writer.branch("done")
        writer.start_block("done")
        head = f"define void @{name}(ptr %buffers, ptr %params, i64 %begin, i64 %end, ptr %scratch) nounwind {{"
        return "\n".join([head, "entry:", *writer.allocas, *self.parameters.prologue, *writer.lines, "  ret void", "}"])

    def _buffer(self, k: int) -> Value:
        slot = self.writer.address(pointer_argument(self.writer, "%buffers"), self.writer.constant(k, I64), "ptr")
        return self.writer.load(slot, PTR, 8)

    def _block_count(self) -> Value | None:
        if self.kernel.block == "none":
            return None
        size = self.parameters.lane_size() if self.kernel.block == "lane" else self.parameters.inner_size(0)
        length = self.parameters.block_length()
        count = (size + length - 1) / length
        return (count < 1).where(1, count)

    @staticmethod
    def _advance(digits: list[Value], sizes: list[Value]) -> list[Value]:
        """The next position of the parallel space, as an odometer; the last digit never wraps."""
        result: list[Value] = []
        carry: Value | None = None
        for digit, size in zip(digits[:-1], sizes):
            raised = digit + 1 if carry is None else digit + carry.resize(64)
            wraps = raised >= size
            result.append(wraps.where(0, raised))
            carry = wraps
        if digits:
            result.append(digits[-1] + 1 if carry is None else digits[-1] + carry.resize(64))
        return result

    def _row(self, buffers: Sequence[Value], digits: Sequence[Value], has_block: bool) -> None:
        writer, parameters = self.writer, self.parameters
        block = digits[0] if has_block else None
        outer = list(reversed(digits[1:] if has_block else digits))
        axes = {f"outer{a}": index for a, index in enumerate(outer)}
        pointers = {}
        for k, base in enumerate(buffers):
            offset = self.zero
            for a, index in enumerate(outer):
                offset = offset + index * parameters.outer_stride(k, a)
            stride = parameters.block_stride(k)
            if stride is not None and block is not None:
                offset = offset + block * stride
            pointers[k] = (
                writer.address(base, offset, element_text(self.kernel.buffers[k].dtype)) if outer or stride is not None else base
            )
        self.lane_start, self.lane_stop = self._range(parameters.lane_size(), block if self.kernel.block == "lane" else None)
        if self.kernel.inner:
            self.inner_start, self.inner_stop = self._range(
                parameters.inner_size(0), block if self.kernel.block == "inner0" else None
            )
        self.is_aligned = self._find_alignment(pointers)
        scope = Scope({}, {}, pointers, axes, self.zero)
        if self.kernel.reduce_lane:
            self._row_form(scope)
        else:
            self._chunk_form(scope)
        for k in self.plan.row_stores:
            self._store_scalar(scope, k)

    def _find_alignment(self, pointers: dict[int, Value]) -> Value | None:
        addresses = [
            self.writer.address(pointers[k], self.lane_start, element_text(b.dtype))
            for k, b in enumerate(self.kernel.buffers)
            if b.lane == "s"
        ]
        if not addresses:
            return None
        bits = [address.convert("ptrtoint", I64) for address in addresses]
        return (functools.reduce(operator.or_, bits) & (_WIDEST_VECTOR - 1)).equals(0)

    def _range(self, size: Value, block: Value | None) -> tuple[Value, Value]:
        if block is None:
            return self.zero, size
        start = block * self.parameters.block_length()
        stop = start + self.parameters.block_length()
        return start, (stop < size).where(stop, size)

    # Row form: every pass walks the inner axes and the lanes; accumulators are folded after each.

    def _row_form(self, scope: Scope) -> None:
        for p, current in enumerate(self.plan.passes):
            self.nodes.evaluate(scope, self.plan.between[p])
            self._row_pass(scope, current)
        self.nodes.evaluate(scope, self.plan.between[len(self.plan.passes)])

    def _row_pass(self, scope: Scope, current: Pass) -> None:
        self.nodes.prepare_splats(scope, [*current.lane, *current.reduces, *current.lane_stores], self.plan.lanes)
        reductions = [self._reduction(k) for k in current.reduces]
        start = self._linear_start()
        states = [self._start_states(r, current.unroll, start) for r in reductions]

        def lanes(inside: Scope, values: list[Value], linear: Value) -> list[Value]:
            return self._lane_loops(inside, current, reductions, values, linear)

        states = _unflatten(self._inner_nest(scope, current, _flatten(states), lanes), states)
        for k, reduction, copies in zip(current.reduces, reductions, states):
            scope.values[k] = [reduction.fold(_merge_copies(reduction, copies))]

    def _reduction(self, k: int) -> Reduction:
        node = self.kernel.nodes[k]
        return Reduction(self.writer, str(node.attr), self.kernel.nodes[node.args[0]].dtype, self.mask_bits)

    def _start_states(self, reduction: Reduction, copies: int, position: Value) -> list[State]:
        return [reduction.start(self.plan.lanes, position + u * self.plan.lanes if u else position) for u in range(copies)]

    def _linear_start(self) -> Value:
        """The position of this block's first element in the reduced space (inner axes, then the lane of a row kernel)."""
        if self.kernel.block != "inner0":
            return self.lane_start if self.kernel.reduce_lane else self.zero
        start = self.inner_start
        for a in range(1, self.kernel.inner):
            start = start * self.parameters.inner_size(a)
        return start * self.parameters.lane_size() if self.kernel.reduce_lane else start

    def _inner_nest(
        self, scope: Scope, current: Pass, carried: list[Value], body: Callable[[Scope, list[Value], Value], list[Value]]
    ) -> list[Value]:
        """Loops over the inner axes around body, which gets the scope, the carried values and the position along those axes."""
        used = {
            int(self.kernel.nodes[k].attr)  # type: ignore[arg-type]
            for k in (*current.step, *current.lane, *current.lane_stores, *current.step_stores)
            if self.kernel.nodes[k].op in ("load", "load_at", "store")
        }

        def nest(axis: int, outside: Scope, values: list[Value], linear: Value) -> list[Value]:
            if axis == self.kernel.inner:
                self.nodes.evaluate(outside, current.step)
                results = body(outside, values, linear)
                for k in current.step_stores:
                    self._store_scalar(outside, k)
                return results

            def step(index: Value, inside: list[Value]) -> list[Value]:
                child = outside.child()
                child.axes[f"inner{axis}"] = index
                for k in used:
                    if self.kernel.buffers[k].inner:
                        offset = index * self.parameters.inner_stride(k, axis)
                        child.pointers[k] = self.writer.address(
                            outside.pointers[k], offset, element_text(self.kernel.buffers[k].dtype)
                        )
                position = index if axis == 0 else linear * self.parameters.inner_size(axis) + index
                return nest(axis + 1, child, inside, position)

            start, stop = (self.inner_start, self.inner_stop) if axis == 0 else (self.zero, self.parameters.inner_size(axis))
            return self.writer.loop(start, stop, 1, values, step)

        return nest(0, scope, carried, self.zero)

    def _lane_loops(
        self, scope: Scope, current: Pass, reductions: list[Reduction], carried: list[Value], linear: Value
    ) -> list[Value]:
        """The lanes of one inner step: unrolled vectors first, then single ones of which the last may be partial."""
        shape = [self._start_states(r, current.unroll, self.zero) for r in reductions]
        base = linear * self.parameters.lane_size() if self.kernel.inner else None
        self.nodes.prepare_splats(scope, [*current.lane, *current.reduces, *current.lane_stores], self.plan.lanes)

        def vectors(inside: Scope, states: list[list[State]]) -> list[list[State]]:
            self._restore(inside, current)
            self.nodes.evaluate(inside, current.lane)
            self._keep(inside, current)
            joined = self._join(inside, current, reductions, states, inside.lane if base is None else base + inside.lane)
            self._store_lanes(inside, current.lane_stores)
            return joined

        return self._over_lanes(scope, current.unroll, carried, shape, vectors)

    def _join(
        self, scope: Scope, current: Pass, reductions: list[Reduction], states: list[list[State]], position: Value
    ) -> list[list[State]]:
        """Joins each copy's values to its state; `states` may hold more copies than the scope has, which stay as they are."""
        joined = []
        mask = scope.tail.mask if scope.tail else None
        for k, reduction, copies in zip(current.reduces, reductions, states):
            updated = list(copies)
            for u in range(scope.copies):
                value = self.nodes.argument(scope, self.kernel.nodes[k].args[0], scope.lanes, u)
                # A column's lanes have results of their own: all of them sit at the same position along the inner axes.
                where = position + u * scope.lanes if self.kernel.reduce_lane and u else position
                updated[u] = reduction.join(copies[u], value, mask, where, self.kernel.reduce_lane)
            joined.append(updated)
        return joined

    def _over_lanes(
        self,
        scope: Scope,
        unroll: int,
        carried: list[Value],
        shape: list[list[State]],
        body: Callable[[Scope, list[list[State]]], list[list[State]]],
    ) -> list[Value]:
        """Runs body over [lane_start, lane_stop): with `unroll` copies of a vector, then with one, masked where it is partial."""
        writer, lanes = self.writer, self.plan.lanes
        start, stop = self.lane_start, self.lane_stop
        if unroll > 1:
            middle = start + ((stop - start) & -(unroll * lanes))

            def wide(lane: Value, values: list[Value]) -> list[Value]:
                inside = scope.child(lane=lane, lanes=lanes, copies=unroll)
                return _flatten(body(inside, _unflatten(values, shape)))

            carried = writer.loop(start, middle, unroll * lanes, carried, wide)
            start = middle

        def single(lane: Value, values: list[Value]) -> list[Value]:
            return _flatten(body(self._partial(scope, lane, stop), _unflatten(values, shape)))

        return writer.loop(start, stop, lanes, carried, single)

    def _partial(self, scope: Scope, lane: Value, stop: Value) -> Scope:
        """A scope for one vector that may reach beyond stop."""
        writer, lanes = self.writer, self.plan.lanes
        left = stop - lane
        is_full = left >= lanes
        count = is_full.where(lanes, left)
        mask = writer.iota(I32.with_lanes(lanes)) < count.resize(32).splat(lanes)
        return scope.child(lane=lane, lanes=lanes, copies=1, tail=Tail(count, mask), is_full=is_full)

    # Chunk form (map and column): a chunk of lanes goes through the inner axes with its accumulators in registers.

    def _chunk_form(self, scope: Scope) -> None:
        self.nodes.evaluate(scope, [k for k in self.plan.between[0] if self.nodes.is_scalar(k)])
        chunk_nodes = [k for group in self.plan.between for k in group if not self.nodes.is_scalar(k)]
        self.nodes.prepare_splats(scope, [*chunk_nodes, *self.plan.chunk_stores], self.plan.lanes)
        for current in self.plan.passes:
            self.nodes.prepare_splats(scope, [*current.lane, *current.reduces, *current.lane_stores], self.plan.lanes)

        def chunk(inside: Scope, states: list[list[State]]) -> list[list[State]]:
            self._chunk(inside)
            return states

        def run() -> list[Value]:
            return self._over_lanes(scope, self.plan.unroll, [], [], chunk)

        if self.is_aligned is None:
            run()
        else:
            self.writer.choose(self.is_aligned, lambda: self._streaming(run), run)

    def _streaming(self, run: Callable[[], list[Value]]) -> list[Value]:
        """run(), whose full vectors go past the caches where their buffers say so."""
        self.streams = True
        result = run()
        self.streams = False
        # Others read them after a barrier, which orders plain stores only.
        self.writer.lines.append("  fence seq_cst")
        return result

    def _chunk(self, scope: Scope) -> None:
        for p, current in enumerate(self.plan.passes):
            self.nodes.evaluate(scope, [k for k in self.plan.between[p] if not self.nodes.is_scalar(k)])
            self._chunk_pass(scope, current)
        self.nodes.evaluate(scope, [k for k in self.plan.between[len(self.plan.passes)] if not self.nodes.is_scalar(k)])
        self._store_lanes(scope, self.plan.chunk_stores)

    def _chunk_pass(self, scope: Scope, current: Pass) -> None:
        reductions = [self._reduction(k) for k in current.reduces]
        start = self._linear_start()
        states = [[r.start(scope.lanes, start, along_lanes=False) for _ in range(scope.copies)] for r in reductions]

        def lanes(inside: Scope, values: list[Value], linear: Value) -> list[Value]:
            self.nodes.evaluate(inside, current.lane)
            joined = self._join(inside, current, reductions, _unflatten(values, states), linear)
            self._store_lanes(inside, current.lane_stores)
            return _flatten(joined)

        finished = _unflatten(self._inner_nest(scope, current, _flatten(states), lanes), states)
        for k, reduction, copies in zip(current.reduces, reductions, finished):
            scope.values[k] = [reduction.result(state) for state in copies]

    # Stores and scratch.

    def _store_scalar(self, scope: Scope, k: int) -> None:
        node = self.kernel.nodes[k]
        store_scalar(self.writer, self.nodes.argument(scope, node.args[0], 0, 0), scope.pointers[int(node.attr)], node.dtype)  # type: ignore[arg-type]

    def _store_lanes(self, scope: Scope, stores: Sequence[int]) -> None:
        """Stores of full vectors and partial ones; all of a body's stores come together, after its loads."""
        if not stores:
            return
        raws = [
            (k, u, encode(self.nodes.argument(scope, self.kernel.nodes[k].args[0], scope.lanes, u), self.kernel.nodes[k].dtype))
            for k in stores
            for u in range(scope.copies)
        ]

        def write(tail: Tail | None) -> list[Value]:
            for k, u, raw in raws:
                self._store_vector(scope, k, u, raw, tail)
            return []

        if scope.is_full is None:
            write(scope.tail)
        else:
            self.writer.choose(scope.is_full, lambda: write(None), lambda: write(scope.tail))

    def _store_vector(self, scope: Scope, k: int, copy: int, raw: Value, tail: Tail | None) -> None:
        buffer = int(self.kernel.nodes[k].attr)  # type: ignore[arg-type]
        dtype, base = self.kernel.buffers[buffer].dtype, scope.pointers[buffer]
        position = scope.position(copy)
        if self.streams and tail is None and scope.is_full is None and self.kernel.buffers[buffer].lane == "s":
            self.writer.stream(raw, self.writer.address(base, position, element_text(dtype)))
            return
        if self.kernel.buffers[buffer].lane in ("1", "s"):
            store_raw(self.writer, raw, self.writer.address(base, position, element_text(dtype)), dtype, tail)
            return
        stride = self.parameters.lane_stride(buffer)
        pointer = self.writer.address(base, position * stride, element_text(dtype))
        scatter_strided(self.writer, raw, pointer, stride, dtype, scope.lanes, tail)

    def _scratch_pointer(self, scope: Scope, slot: int, copy: int, dtype: str) -> Value:
        row = self.writer.address(self.scratch, self.scratch_bytes * slot, "i8")
        position = scope.position(copy)
        return self.writer.address(
            row, position - self.lane_start if self.kernel.block == "lane" else position, element_text(dtype)
        )

    def _scratch_parts(self, k: int) -> str:
        """The dtype in which scratch holds (each component of) a node: halves stay float32 there."""
        d = DTYPES[self.kernel.nodes[k].dtype]
        return d.name if d.kind in "biu" else f"float{d.compute_bits}"

    def _keep(self, scope: Scope, current: Pass) -> None:
        for k in current.kept:
            dtype = self._scratch_parts(k)
            for u in range(scope.copies):
                value = self.nodes.argument(scope, k, scope.lanes, u)
                for part, register in enumerate((value.re, value.im) if isinstance(value, Complex) else (value,)):
                    pointer = self._scratch_pointer(scope, self.plan.slots[k] + part, u, dtype)
                    store_raw(self.writer, encode(register, dtype), pointer, dtype, None)

    def _restore(self, scope: Scope, current: Pass) -> None:
        for k in current.restored:
            dtype = self._scratch_parts(k)
            copies = []
            for u in range(scope.copies):
                parts = []
                for part in range(2 if DTYPES[self.kernel.nodes[k].dtype].kind == "c" else 1):
                    pointer = self._scratch_pointer(scope, self.plan.slots[k] + part, u, dtype)
                    parts.append(decode(load_raw(self.writer, pointer, dtype, scope.lanes, None), dtype))
                copies.append(Complex(*parts) if len(parts) == 2 else parts[0])  # type: ignore[arg-type]
            scope.values[k] = copies  # type: ignore[assignment]


def _flatten(states: list[list[State]]) -> list[Value]:
    return [value for copies in states for state in copies for value in state]


def _unflatten(values: Sequence[Value], shape: list[list[State]]) -> list[list[State]]:
    """Groups values as shape groups its own."""
    remaining = iter(values)
    return [[[next(remaining) for _ in state] for state in copies] for copies in shape]


def _merge_copies(reduction: Reduction, copies: list[State]) -> State:
    """One state from a power of two of them, as a tree."""
    while len(copies) > 1:
        half = len(copies) // 2
        copies = [reduction.merge(a, b) for a, b in zip(copies[:half], copies[half:])]
    return copies[0]
