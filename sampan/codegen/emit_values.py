"""Evaluating nodes: the values known at a point of the kernel, and how each node's value comes from its arguments."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import TypeVar

from sampan.codegen.dtypes import DTYPES
from sampan.codegen.emit_cast import cast
from sampan.codegen.emit_memory import Register, Tail, decode, element_text, gather_raw, load_raw, load_scalar, register_type
from sampan.codegen.emit_plan import Place, Plan
from sampan.codegen.llvm_text import I64, Value, Writer
from sampan.codegen.loop_nodes import Kernel, param_offsets
from sampan.codegen.mathlib_complex import Complex, single
from sampan.codegen.scalar_ops import find_op

_LINE_BYTES = 64

_Emitted = TypeVar("_Emitted", Value, Register)


@dataclasses.dataclass
class Scope:
    """What is known where code is being emitted. Values of LANE and CHUNK nodes are lists, a vector for each unrolled copy."""

    values: dict[int, list[Register]]
    splats: dict[int, Register]
    pointers: dict[int, Value]  # of each buffer, at lane 0 of the current row and inner step
    axes: dict[str, Value]
    lane: Value  # the position of copy 0's lane 0, where vectors are evaluated
    lanes: int = 0  # of a vector; 0 where only scalars are evaluated
    copies: int = 1
    tail: Tail | None = None
    is_full: Value | None = None  # whether every lane is live; None where that is known

    def position(self, copy: int) -> Value:
        """Where lane 0 of a copy stands."""
        return self.lane + copy * self.lanes if copy else self.lane

    def child(self, **changes: object) -> Scope:
        """A scope inside this one: it sees what is known here, and what it learns stays with it."""
        made = dataclasses.replace(self, **changes)  # type: ignore[arg-type]
        made.values, made.splats, made.pointers, made.axes = (
            dict(self.values),
            dict(self.splats),
            dict(self.pointers),
            dict(self.axes),
        )
        return made


class Parameters:
    """Entries of the params array, each loaded once at the function's entry."""

    def __init__(self, writer: Writer, kernel: Kernel) -> None:
        self.writer, self.kernel = writer, kernel
        self.prologue: list[str] = []
        self._offsets = param_offsets(kernel)
        self._loaded: dict[int, Value] = {}

    def at(self, position: int) -> Value:
        if position not in self._loaded:
            self._loaded[position] = self._in_prologue(
                f"load i64, ptr %params_{position}, align 8",
                f"%params_{position} = getelementptr i64, ptr %params, i64 {position}",
            )
        return self._loaded[position]

    def _in_prologue(self, text: str, before: str) -> Value:
        name = "%" + self.writer.fresh("p")
        self.prologue += [f"  {before}", f"  {name} = {text}"]
        return Value(self.writer, I64, name)

    def outer_size(self, axis: int) -> Value:
        return self.at(axis)

    def inner_size(self, axis: int) -> Value:
        return self.at(self.kernel.outer + axis)

    def lane_size(self) -> Value:
        return self.at(self.kernel.outer + self.kernel.inner)

    def block_length(self) -> Value:
        return self.at(self.kernel.outer + self.kernel.inner + 1)

    def _has_block(self, buffer: int) -> bool:
        return self.kernel.is_split and self.kernel.buffers[buffer].direction == "out"

    def outer_stride(self, buffer: int, axis: int) -> Value:
        return self.at(self._offsets[buffer] + axis)

    def block_stride(self, buffer: int) -> Value | None:
        return self.at(self._offsets[buffer] + self.kernel.outer) if self._has_block(buffer) else None

    def inner_stride(self, buffer: int, axis: int) -> Value:
        return self.at(self._offsets[buffer] + self.kernel.outer + self._has_block(buffer) + axis)

    def lane_stride(self, buffer: int) -> Value:
        return self.inner_stride(buffer, self.kernel.inner)

    def gather_stride(self, buffer: int, axis: int) -> Value:
        return self.inner_stride(buffer, self.kernel.inner + 1 + axis)


class Evaluator:
    """Emits nodes of one kernel into its writer."""

    def __init__(self, kernel: Kernel, plan: Plan, writer: Writer, parameters: Parameters) -> None:
        self.kernel, self.plan, self.writer, self.parameters = kernel, plan, writer, parameters

    def is_scalar(self, k: int) -> bool:
        return self.plan.place[k] in (Place.ROW, Place.STEP)

    def argument(self, scope: Scope, k: int, lanes: int, copy: int) -> Register:
        """A node's value as a vector of lanes (a scalar when lanes is 0)."""
        node = self.kernel.nodes[k]
        if node.op == "const":
            return self._constant(node.attr, node.dtype, lanes)
        values = scope.values[k]
        value = values[copy] if len(values) > 1 else values[0]
        if not lanes or value.type.lanes:
            return value
        if k not in scope.splats:
            scope.splats[k] = (
                Complex(value.re.splat(lanes), value.im.splat(lanes)) if isinstance(value, Complex) else value.splat(lanes)
            )
        return scope.splats[k]

    def prepare_splats(self, scope: Scope, nodes: Sequence[int], lanes: int) -> None:
        """Splats the scalars that nodes use, here rather than inside the loop that evaluates them."""
        for k in nodes:
            for a in self.kernel.nodes[k].args:
                if a in scope.values and self.is_scalar(a):
                    self.argument(scope, a, lanes, 0)

    def _constant(self, value: object, dtype: str, lanes: int) -> Register:
        type_ = register_type(dtype, lanes)
        if isinstance(value, complex):
            return Complex(self.writer.constant(value.real, type_), self.writer.constant(value.imag, type_))
        return self.writer.constant(value, type_)  # type: ignore[arg-type]

    def evaluate(self, scope: Scope, nodes: Sequence[int]) -> None:
        """Adds the values of nodes, given in order, to the scope; loads of consecutive lanes come first, together."""
        vector_loads = [k for k in nodes if not self.is_scalar(k) and self._is_row_load(k)]
        self._load_vectors(scope, vector_loads)
        for k in nodes:
            if k in scope.values or self.kernel.nodes[k].op == "const":
                continue
            lanes = 0 if self.is_scalar(k) else scope.lanes
            scope.values[k] = self._values(scope, k, lanes)

    def _is_row_load(self, k: int) -> bool:
        node = self.kernel.nodes[k]
        return node.op == "load" and self.kernel.buffers[int(node.attr)].lane != "0"  # type: ignore[arg-type]

    def _load_vectors(self, scope: Scope, loads: Sequence[int]) -> None:
        if not loads:
            return

        def read(tail: Tail | None) -> list[Value]:
            return [self._load_vector(scope, k, copy, tail) for k in loads for copy in range(scope.copies)]

        if self.kernel.form == "column" and scope.copies > 1:
            self._prefetch_next_chunk(scope, loads)
        if scope.is_full is None:
            raws = read(scope.tail)
        else:
            raws = self.writer.choose(scope.is_full, lambda: read(None), lambda: read(scope.tail))
        for position, k in enumerate(loads):
            mine = raws[position * scope.copies : (position + 1) * scope.copies]
            scope.values[k] = [decode(raw, self.kernel.nodes[k].dtype) for raw in mine]

    def _prefetch_next_chunk(self, scope: Scope, loads: Sequence[int]) -> None:
        """Asks for the lines that the next chunk of lanes reads at this inner step: a row is touched for a line or two only,
        and then another one pages away, which is more than the processor's own prefetching follows.
        """
        for k in loads:
            buffer = self.kernel.buffers[int(self.kernel.nodes[k].attr)]  # type: ignore[arg-type]
            if buffer.lane != "1" or not buffer.inner:
                continue
            size = DTYPES[buffer.dtype].size_bytes
            lines = range(0, scope.copies * scope.lanes, max(1, _LINE_BYTES // size))
            for first in lines:
                position = scope.lane + (scope.copies * scope.lanes + first)
                self.writer.prefetch(
                    self.writer.address(scope.pointers[int(self.kernel.nodes[k].attr)], position, element_text(buffer.dtype))  # type: ignore[arg-type]
                )

    def _load_vector(self, scope: Scope, k: int, copy: int, tail: Tail | None) -> Value:
        buffer = int(self.kernel.nodes[k].attr)  # type: ignore[arg-type]
        dtype = self.kernel.buffers[buffer].dtype
        position = scope.position(copy)
        if self.kernel.buffers[buffer].lane == "1":
            return load_raw(
                self.writer, self.writer.address(scope.pointers[buffer], position, element_text(dtype)), dtype, scope.lanes, tail
            )
        stride = self.parameters.lane_stride(buffer)
        offsets = (position.splat(scope.lanes) + self.writer.iota(I64.with_lanes(scope.lanes))) * stride.splat(scope.lanes)
        return gather_raw(self.writer, scope.pointers[buffer], offsets, dtype, tail)

    def _values(self, scope: Scope, k: int, lanes: int) -> list[Register]:
        """A node's value for every copy."""
        node, copies = self.kernel.nodes[k], range(scope.copies if lanes else 1)
        op = find_op(str(node.attr), [self.kernel.nodes[a].dtype for a in node.args]) if node.op == "map" else None
        if op is None or op.usual is None or not lanes:
            return self._side_by_side([functools.partial(self._value, scope, k, lanes, copy) for copy in copies])
        is_usual, quick = op.usual
        arguments = [[single(self.argument(scope, a, lanes, copy)) for a in node.args] for copy in copies]
        masks: list[Value] = [is_usual(*args) for args in arguments]
        chosen = self.writer.choose(
            self.writer.all_lanes(functools.reduce(operator.and_, masks)),
            lambda: self._side_by_side([functools.partial(quick, *args) for args in arguments]),
            lambda: [self.writer.out_of_line(f"any_{op.name}", op.emit, args) for args in arguments],
        )
        return [*chosen]

    def _side_by_side(self, emissions: Sequence[Callable[[], _Emitted]]) -> list[_Emitted]:
        """What each emission gives, with their instructions taken in turn where they match: a processor looks only some tens of
        instructions ahead, and finds the copies' independent ones next to each other.
        """
        lines = self.writer.lines
        first = len(lines)
        results, runs = [], []
        for emit in emissions:
            start = len(lines)
            results.append(emit())
            runs.append(lines[start:])
        if len({len(run) for run in runs}) == 1 and not any(line.endswith(":") for line in runs[0]):
            lines[first:] = [line for together in zip(*runs) for line in together]
        return results

    def _value(self, scope: Scope, k: int, lanes: int, copy: int) -> Register:
        node, writer = self.kernel.nodes[k], self.writer
        if node.op == "load":
            buffer = int(node.attr)  # type: ignore[arg-type]
            return load_scalar(writer, scope.pointers[buffer], node.dtype)
        if node.op == "index":
            if node.attr != "lane":
                return scope.axes[str(node.attr)]
            return scope.position(copy).splat(lanes) + writer.iota(I64.with_lanes(lanes))
        args = [self.argument(scope, a, lanes, copy) for a in node.args]
        if node.op == "map":
            return find_op(str(node.attr), [self.kernel.nodes[a].dtype for a in node.args]).emit(*args)
        if node.op == "cast":
            return cast(args[0], self.kernel.nodes[node.args[0]].dtype, node.dtype)
        if node.op == "select":
            condition, yes, no = args
            if isinstance(yes, Complex):
                return Complex(condition.where(yes.re, no.re), condition.where(yes.im, no.im))  # type: ignore[union-attr]
            return condition.where(yes, no)  # type: ignore[union-attr, arg-type]
        return self._load_at(scope, k, args, lanes, copy)

    def _load_at(self, scope: Scope, k: int, indices: Sequence[Register], lanes: int, copy: int) -> Register:
        node, writer = self.kernel.nodes[k], self.writer
        buffer = int(node.attr)  # type: ignore[arg-type]
        offset = writer.constant(0, I64.with_lanes(lanes))
        for axis, index in enumerate(indices):
            offset = single(index) * self.parameters.gather_stride(buffer, axis).splat(lanes) + offset
        if not lanes:
            return load_scalar(writer, writer.address(scope.pointers[buffer], offset, element_text(node.dtype)), node.dtype)
        if self.kernel.buffers[buffer].lane != "0":
            position = scope.position(copy).splat(lanes) + writer.iota(I64.with_lanes(lanes))
            offset = offset + (
                position
                if self.kernel.buffers[buffer].lane == "1"
                else position * self.parameters.lane_stride(buffer).splat(lanes)
            )
        return decode(gather_raw(writer, scope.pointers[buffer], offset, node.dtype, scope.tail), node.dtype)
