"""Lowering: a Program of primitives becomes the instructions of a Plan."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base import dtypes, flags
from ..base.errors import IRError
from ..ir.program import Op, Program, Value
from ..ops.catalog import TABLE
from ..ops.primitives.core import PRIMITIVES
from .epilogues import BIAS_AXIS, Epilogue, Work, fuse_epilogues
from .form_groups import Grouping, Unit
from .host import copy_elements, host_function
from .index_maps import Axis, base_of, memory_of, operands_of
from .lower_kernels import DirectTarget, lower_trace
from .lower_moves import MOVES
from .natives import IN_PLACE_NATIVES, OPTIONAL_LAST_RESULT, native_of, output_strides
from .packing import has_own_weight, packed_weight
from .places import Place, axis_order, row_major, same_elements, view_of
from .plan_writer import PlanWriter
from .trace import Trace, can_fuse, trace_copy, trace_group, trace_value


def lower(
    program: Program,
    input_layouts: Sequence[Any],
    view_outputs: Mapping[int, int],
    inplace: Mapping[int, int],
    output_layouts: Mapping[int, Any],
    is_interpreted: bool,
    shared_from: int | None = None,
) -> Any:
    """The Plan; see ``compile_program`` for the arguments. ``is_interpreted``: by host instructions only."""
    lowering = Lowering(program, input_layouts, is_interpreted)
    lowering.lower_units(inplace, output_layouts)
    lowering.finish_outputs(view_outputs, inplace, output_layouts, shared_from)
    should_print = flags.dumps("plans")
    plan = lowering.writer.finish(should_print)
    if should_print:
        print(f"# plan {program.name}\n{plan.text}", file=sys.stderr)
    return plan


class Lowering:
    """Where each Value of the Program lies, and the Plan written so far."""

    def __init__(self, program: Program, input_layouts: Sequence[Any], is_interpreted: bool) -> None:
        if len(input_layouts) != len(program.inputs):
            raise IRError(f"{program.name} takes {len(program.inputs)} inputs and was given {len(input_layouts)} layouts")
        self.program = program
        self.is_interpreted = is_interpreted
        self.writer = PlanWriter(input_layouts)
        self.places: dict[int, Place] = {}
        self._needed: frozenset[int] = frozenset()  # by id, the values that are read or returned; known once work is planned
        for k, value in enumerate(program.inputs):
            place = self.writer.input_place(k)
            if place.dtype != value.dtype or place.shape != value.shape:
                raise IRError(f"{program.name}: input {k} is {value!r}, its layout says {place.dtype}{list(place.shape)}")
            self.places[id(value)] = place

    # ------------------------------------------------------------------ units

    def plan_work(self) -> list[Work]:
        """What everything that the outputs depend on comes to, in order."""
        fast = [_fast_axis(self.places[id(v)]) for v in self.program.inputs]
        grouping = Grouping(self.program, lambda op: not self.is_interpreted and can_fuse(op), fast)
        units = grouping.ordered()
        needed: dict[int, Value] = {}
        for v in self.program.outputs:
            self._need(needed, v)
        # what natives read is in memory for kernels too, those of later units included, which are walked first
        in_memory = {id(base_of(v)) for unit in units if unit.op is not None for v in operands_of(unit.op)} | needed.keys()
        work: list[Work] = []
        for unit in reversed(units):
            traces = self._needs_of(unit, needed, in_memory)
            if traces is not None:
                work.append(Work(unit.op, traces))
        work.reverse()
        self._needed = frozenset(needed)
        return work if self.is_interpreted else fuse_epilogues(work, self._count_uses(work))

    def lower_units(self, inplace: Mapping[int, int], output_layouts: Mapping[int, Any]) -> None:
        """Append the instructions of everything that the outputs depend on."""
        wanted = {id(self.program.outputs[j]): tuple(layout.strides) for j, layout in output_layouts.items()}
        work = self.plan_work()
        targets = {} if self.is_interpreted else self._direct_targets(work, inplace)
        for item in work:
            if item.op is not None:
                self._lower_single(item.op, item.epilogue, targets)
            for trace in item.traces:
                lower_trace(self, trace, preferred=targets, strides=wanted)

    @staticmethod
    def _need(needed: dict[int, Value], value: Value) -> None:
        value = base_of(value)
        needed[id(value)] = value

    def _needs_of(self, unit: Unit, needed: dict[int, Value], in_memory: set[int]) -> list[Trace] | None:
        """The unit's traces, with what they read added to ``needed``; None when nothing needs the unit.

        in_memory: the ids of values that are stored whatever this unit does; what it reads is added.
        """
        if unit.op is not None:
            if not any(id(v) in needed for v in unit.op.outputs):
                return None
            for v in operands_of(unit.op):
                self._need(needed, v)
            return []
        group = unit.group
        if group is None:
            return None
        results = [v for op in group.ops for v in op.outputs if id(v) in needed]
        if not results:
            return None
        traces = [trace_group(group, results, in_memory)]
        if not any(s.op == "reduce" for s in traces[0].steps):
            by_axes: dict[frozenset[Axis | None], list[Value]] = {}
            for v in results:
                by_axes.setdefault(frozenset(group.dims[id(v)]) - {None}, []).append(v)
            if len(by_axes) > 1:
                traces = [trace_group(group, values, in_memory) for values in by_axes.values()]
        for trace in traces:
            for leaf in trace.leaves:
                self._need(needed, leaf.value)
                in_memory.add(id(base_of(leaf.value)))
        return traces

    def _count_uses(self, work: Sequence[Work]) -> dict[int, int]:
        uses: dict[int, int] = {}
        for value in (*(v for item in work for v in item.reads), *self.program.outputs):
            key = id(base_of(value))
            uses[key] = uses.get(key, 0) + 1
        return uses

    def _direct_targets(self, work: Sequence[Work], inplace: Mapping[int, int]) -> dict[int, DirectTarget]:
        """In-place outputs that may be written where they end, because nothing reads what was there after that."""
        found: dict[int, DirectTarget] = {}
        if not inplace:
            return found
        last_reads: dict[int, int] = {}
        writes: dict[int, int] = {}
        for n, item in enumerate(work):
            for v in item.reads:
                last_reads[id(memory_of(v))] = n
            for trace in item.traces:
                for v, _, _ in trace.stores:
                    writes.setdefault(id(v), n)
            if item.op is not None and item.op.name in IN_PLACE_NATIVES:
                writes.setdefault(id(item.op.outputs[0]), n)
        returned: dict[int, list[int]] = {}
        for k, v in enumerate(self.program.outputs):
            returned.setdefault(id(memory_of(v)), []).append(k)
        counts = Counter(map(id, self.program.outputs))
        for j, i in inplace.items():
            value, target = self.program.outputs[j], self.writer.input_place(i)
            same = [self.program.inputs[i]]
            if (
                len(inplace) == 1
            ):  # an input of the same layout may be the very same tensor, as in x.add_(x); not so in lists of them
                layout = self.writer.input_layouts[i]
                same += [v for v, known in zip(self.program.inputs, self.writer.input_layouts, strict=True) if known == layout]
            last_read = max(last_reads.get(id(v), -1) for v in same)
            written = writes.get(id(value), -1)
            is_returned = any(k != j for v in same for k in returned.get(id(v), ()))
            is_alone = written >= 0 and self._is_alone(work[written], target, same) and counts[id(value)] == 1
            if written >= last_read and is_alone and not is_returned:
                found[id(value)] = DirectTarget(target, frozenset(id(self.places[id(v)].buffer) for v in same))
        return found

    def _is_alone(self, item: Work, target: Place, same: Sequence[Value]) -> bool:
        """Whether one kernel does the work, or a native that writes into its first operand: the target, which no other operand shows."""
        op = item.op
        if op is None:
            return len(item.traces) == 1
        shown = {id(v) for v in same}
        if native_of(op) is None or any(id(base_of(v)) in shown for v in op.inputs[1:]) or id(base_of(op.inputs[0])) not in shown:
            return False
        return same_elements(self.place(op.inputs[0]), target) and target.strides == row_major(target.shape)

    def _lower_single(self, op: Op, epilogue: Epilogue | None, targets: Mapping[int, DirectTarget]) -> None:
        results = op.outputs if epilogue is None else (epilogue.value,)
        self.writer.origin = op.location
        if not op.inputs:  # numbers that are known now
            for v, array in zip(op.outputs, TABLE.evaluate(op, []), strict=True):
                self.places[id(v)] = self.writer.constant(array)
            return
        if op.name == "after" and not self.is_interpreted:
            self.places[id(op.outputs[0])] = self.place(op.inputs[0])
            return
        if op.name in MOVES and not self.is_interpreted:
            outputs = [self.writer.allocate(v.dtype, v.shape) for v in op.outputs]
            MOVES[op.name](self, op, outputs[0])
        else:
            native = None if self.is_interpreted else native_of(op)
            may_pack = native is not None and has_own_weight(op, native)
            inputs = [self.place(v) for v in op.inputs if not (may_pack and v is op.inputs[1])]
            if native is None:
                outputs = [self.writer.allocate(v.dtype, v.shape) for v in op.outputs]
                self.writer.host(host_function(op), inputs, outputs)
            else:
                direct = targets.get(id(op.outputs[0])) if op.name in IN_PLACE_NATIVES else None
                more, attributes = self._epilogue_operands(op, epilogue) if epilogue is not None else ([], {})
                attributes = native.attributes | attributes
                if op.name in OPTIONAL_LAST_RESULT and id(results[-1]) not in self._needed:
                    attributes[OPTIONAL_LAST_RESULT[op.name]] = 0
                    results = results[:-1]
                outputs = (
                    [direct.place]
                    if direct is not None
                    else [
                        self.writer.allocate(v.dtype, v.shape, output_strides(op, k, inputs))
                        for k, v in enumerate(op.outputs[: len(results)])
                    ]
                )
                if may_pack:
                    packed = packed_weight(op, native, inputs[0], outputs[0], attributes)
                    attributes |= {} if packed is None else packed[1]
                    inputs.insert(1, self.place(op.inputs[1]) if packed is None else self.writer.constant_tensor(packed[0]))
                self.writer.native(native.name, [*inputs, *more], outputs, attributes)
        for v, place in zip(results, outputs, strict=True):
            self.places[id(v)] = place

    def _epilogue_operands(self, op: Op, epilogue: Epilogue) -> tuple[list[Place], dict[str, Any]]:
        """The operands and attributes of a native's epilogue; the first addition of one number for every channel is its bias."""
        places = [self.place(leaf.value) for leaf in epilogue.operands]
        steps, attributes = list(epilogue.steps), {}
        if steps and steps[0] == "add":
            first = places[0]
            axis = BIAS_AXIS[op.name] % len(first.shape)
            if all(k == axis or n == 1 or s == 0 for k, (n, s) in enumerate(zip(first.shape, first.strides, strict=True))):
                places[0] = Place(first.buffer, first.dtype, (first.shape[axis],), (first.strides[axis],), first.offset)
                attributes["has_bias"] = 1
                del steps[0]
        return places, attributes | {"epilogue": ";".join(steps)}

    # ------------------------------------------------------------------ places

    def place(self, value: Value) -> Place:
        """Where the value lies. Views follow their operand;
        sources, and reshapes that strides cannot express, are computed when asked for.
        """
        found = self.places.get(id(value))
        if found is not None:
            return found
        op = value.op
        if op is None:
            raise IRError(f"{self.program.name}: {value!r} belongs to another Program")
        if op.name == "literal":
            found = self.writer.constant(op.attributes["value"].array)
        elif op.name == "constant":
            found = self.writer.constant(np.asarray(op.attributes["value"]).astype(dtypes.numpy_dtype(value.dtype)))
        elif PRIMITIVES[op.name].family == "view":
            source = self.place(op.inputs[0])
            found = view_of(source, op.name, op.attributes, value.shape)
            if found is None:
                moved = self.writer.allocate(source.dtype, source.shape)
                self.copy(op.inputs[0], source, moved)
                found = view_of(moved, op.name, op.attributes, value.shape)
        elif op.name == "iota":
            if self.is_interpreted:
                found = self.writer.allocate(value.dtype, value.shape)
                self.writer.host(host_function(op), [], [found])
            else:
                lower_trace(self, trace_value(value))
                found = self.places[id(value)]
        if found is None:
            raise IRError(f"{self.program.name}: {value!r} is used before it is computed")
        self.places[id(value)] = found
        return found

    def copy(self, value: Value, source: Place, target: Place) -> None:
        """Append a copy of the value's elements from one place to another."""
        if self.is_interpreted:
            self.writer.host(copy_elements, [source], [target])
        else:
            lower_trace(self, trace_copy(value), {id(value): source}, {id(value): target})

    # ------------------------------------------------------------------ outputs

    def finish_outputs(
        self,
        view_outputs: Mapping[int, int],
        inplace: Mapping[int, int],
        output_layouts: Mapping[int, Any],
        shared_from: int | None,
    ) -> None:
        """Give every output its own storage, the input it is a view of, or the input it is written into.

        shared_from: any output may be a view of the inputs from this one on, or repeat a smaller result.
        """
        results: list[Place] = []
        claimed: set[int] = set()
        for j, value in enumerate(self.program.outputs):
            place = self.place(value)
            if j in inplace:
                results.append(place)
                continue
            is_view = j in view_outputs and place.buffer is self.writer.inputs[view_outputs[j]]
            is_view |= shared_from is not None and j not in output_layouts and _is_light_view(place, shared_from)
            strides = tuple(output_layouts[j].strides) if j in output_layouts else place.strides
            is_own = place.buffer.kind == "temporary" and id(place.buffer) not in claimed and _fills_buffer(place)
            is_wanted = same_elements(place, Place(place.buffer, place.dtype, place.shape, strides, place.offset))
            if not is_view and not (is_own and is_wanted):
                target = self.writer.allocate(value.dtype, value.shape, strides if j in output_layouts else None)
                self.copy(value, place, target)
                place = target
            claimed.add(id(place.buffer))
            results.append(place)
        self._write_inplace(results, inplace)
        for place in results:
            self.writer.output(place)

    def _write_inplace(self, results: list[Place], inplace: Mapping[int, int]) -> None:
        written = {id(self.writer.inputs[i]) for i in inplace.values()}
        for j, i in inplace.items():  # what the writes below would change is read first
            place, target = results[j], self.writer.input_place(i)
            if id(place.buffer) in written and not same_elements(place, target):
                saved = self.writer.allocate(place.dtype, place.shape)
                self.copy(self.program.outputs[j], place, saved)
                results[j] = saved
        for j, i in inplace.items():
            target = self.writer.input_place(i)
            if not same_elements(results[j], target):
                self.copy(self.program.outputs[j], results[j], target)
            results[j] = target


def _fast_axis(place: Place) -> int | None:
    wide = [k for k, n in enumerate(place.shape) if n != 1]
    return min(wide, key=lambda k: (abs(place.strides[k]) or 1 << 60, -k)) if wide else None


def _is_light_view(place: Place, first_input: int) -> bool:
    """Whether the place shows an input that may be shown, or a temporary that is no larger than what is shown."""
    if place.buffer.kind == "input":
        return place.buffer.number >= first_input
    return place.buffer.kind == "temporary" and place.buffer.size_bytes <= math.prod(place.shape) * dtypes.itemsize(place.dtype)


def _fills_buffer(place: Place) -> bool:
    size = dtypes.itemsize(place.dtype)
    for n in place.shape:
        size *= n
    return place.offset == 0 and size == place.buffer.size_bytes and axis_order(place.shape, place.strides) is not None
