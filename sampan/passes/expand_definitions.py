"""expand_definitions: composites as the primitives they are defined by."""

from __future__ import annotations

from ..base.errors import IRError
from ..ir.builder import current_builder
from ..ir.program import Op, Program, Value
from ..ir.rewrite import copy_op, inline, rebuild
from ..ops.catalog import TABLE, expand_op
from ..ops.primitives.core import PRIMITIVES


def expand_definitions(program: Program) -> Program:
    """The Program with composites replaced by their definitions, all the way down; the same Program when it has none."""
    if all(op.name in PRIMITIVES for op in program.ops):
        return program
    return rebuild(program, TABLE, _expand)


def _expand(op: Op, inputs: tuple[Value, ...]) -> tuple[Value, ...]:
    builder = current_builder()
    if builder is None:
        raise IRError("expand_definitions runs inside rebuild(), whose builder is the current one")
    if op.name in PRIMITIVES:
        return copy_op(builder, op, inputs)
    body = expand_op(Op(op.name, inputs, op.attributes, op.outputs, op.blocks, op.location))
    values = {id(a): v for a, v in zip(body.inputs, inputs, strict=True)}
    inline(builder, body.body, values, _expand)
    return tuple(values[id(v)] for v in body.outputs)
