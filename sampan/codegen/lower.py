"""Lowering: a Program of primitives becomes the instructions of a Plan."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base import dtypes, flags
from ..base.errors import IRError
from ..ir.program import Op, Program, Value
from ..ops.primitives.core import PRIMITIVES
from .host import copy_elements, host_function
from .places import Place, axis_order, view_of
from .plan_writer import PlanWriter


def lower(
    program: Program,
    input_layouts: Sequence[Any],
    view_outputs: Mapping[int, int],
    inplace: Mapping[int, int],
    output_layouts: Mapping[int, Any],
    is_interpreted: bool,
) -> Any:
    """The Plan; see ``compile_program`` for the arguments. ``is_interpreted``: by host instructions only."""
    lowering = Lowering(program, input_layouts)
    for op in program.ops:
        lowering.lower_op(op)
    lowering.finish_outputs(view_outputs, inplace, output_layouts)
    plan = lowering.writer.finish()
    if flags.dumps("plans"):
        print(f"# plan {program.name}\n{plan.text}", file=sys.stderr)
    return plan


class Lowering:
    """Where each Value of the Program lies, and the Plan written so far."""

    def __init__(self, program: Program, input_layouts: Sequence[Any]) -> None:
        if len(input_layouts) != len(program.inputs):
            raise IRError(f"{program.name} takes {len(program.inputs)} inputs and was given {len(input_layouts)} layouts")
        self.program = program
        self.writer = PlanWriter(input_layouts)
        self.places: dict[int, Place] = {}
        for k, value in enumerate(program.inputs):
            place = self.writer.input_place(k)
            if place.dtype != value.dtype or place.shape != value.shape:
                raise IRError(f"{program.name}: input {k} is {value!r}, its layout says {place.dtype}{list(place.shape)}")
            self.places[id(value)] = place

    def place(self, value: Value) -> Place:
        """Where the value lies; a constant becomes one of the Plan's own when it is asked for."""
        found = self.places.get(id(value))
        if found is None:
            if value.op is None or value.op.name != "constant":
                raise IRError(f"{self.program.name}: {value!r} is used before it is computed")
            found = self.writer.constant(np.asarray(value.op.attributes["value"]).astype(dtypes.numpy_dtype(value.dtype)))
            self.places[id(value)] = found
        return found

    def lower_op(self, op: Op) -> None:
        """Append what computes the Op: nothing for a constant and for a view."""
        family = PRIMITIVES[op.name].family
        if op.name == "constant":
            return
        if family == "view":
            view = view_of(self.place(op.inputs[0]), op.name, op.attributes, op.outputs[0].shape)
            if view is not None:
                self.places[id(op.outputs[0])] = view
                return
        inputs = [self.place(v) for v in op.inputs]
        outputs = [self.writer.allocate(v.dtype, v.shape) for v in op.outputs]
        self.writer.host(host_function(op), inputs, outputs)
        for v, place in zip(op.outputs, outputs, strict=True):
            self.places[id(v)] = place

    def copy(self, source: Place, target: Place) -> None:
        """Append a copy of the elements."""
        self.writer.host(copy_elements, [source], [target])

    def finish_outputs(self, view_outputs: Mapping[int, int], inplace: Mapping[int, int], output_layouts: Mapping[int, Any]) -> None:
        """Give every output its own storage, the input it is a view of, or the input it is written into."""
        results: list[Place] = []
        claimed: set[int] = set()
        for j, value in enumerate(self.program.outputs):
            place = self.place(value)
            if j in inplace:
                results.append(place)
                continue
            is_view = j in view_outputs and place.buffer is self.writer.inputs[view_outputs[j]]
            strides = tuple(output_layouts[j].strides) if j in output_layouts else place.strides
            is_own = place.buffer.kind == "temporary" and id(place.buffer) not in claimed and _fills_buffer(place)
            if not is_view and not (is_own and strides == place.strides):
                target = self.writer.allocate(value.dtype, value.shape, strides if j in output_layouts else None)
                self.copy(place, target)
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
            if id(place.buffer) in written and place != target:
                saved = self.writer.allocate(place.dtype, place.shape)
                self.copy(place, saved)
                results[j] = saved
        for j, i in inplace.items():
            target = self.writer.input_place(i)
            if results[j] != target:
                self.copy(results[j], target)
            results[j] = target


def _fills_buffer(place: Place) -> bool:
    size = dtypes.itemsize(place.dtype)
    for n in place.shape:
        size *= n
    return place.offset == 0 and size == place.buffer.size_bytes and axis_order(place.shape, place.strides) is not None
