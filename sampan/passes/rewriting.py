"""What the passes share: a walk that replaces Ops and shares with the old Program what stays, and constants seen through
views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.errors import IRError
from ..ir.builder import Builder, current_builder
from ..ir.program import Block, Op, Program, Value
from ..ir.rewrite import copy_op
from ..ops.catalog import TABLE

Handler = Callable[[Op, tuple[Value, ...]], Sequence[Value] | None]

_REPEATING = ("broadcast_to", "reshape", "transpose", "slice")


def replace_ops(program: Program, handle: Handler) -> Program:
    """The Program with ``handle(op, inputs)``'s Values in place of an Op's outputs; None keeps the Op.

    The handler may append Ops. The same Program when nothing was replaced; a new one shares the Ops that stay as they are,
    which nobody changes.
    """
    builder = Builder(TABLE, program.name)
    builder.block.arguments = list(program.inputs)
    values: dict[int, Value] = {}
    ops = builder.block.ops
    with builder.active():
        for op in program.ops:
            inputs = op.inputs
            if values and any(id(v) in values for v in inputs):
                inputs = tuple(values.get(id(v), v) for v in inputs)
            builder.location = op.location
            outputs = handle(op, inputs)
            if outputs is None:
                if inputs is op.inputs:
                    ops.append(op)
                    continue
                outputs = append_op(op, inputs)
            for old, new in zip(op.outputs, outputs, strict=True):
                values[id(old)] = new
    if not values:
        return program
    return Program(program.name, Block(builder.block.arguments, ops, tuple(values.get(id(v), v) for v in program.outputs)))


def append_op(op: Op, inputs: tuple[Value, ...]) -> tuple[Value, ...]:
    """The same Op on other inputs, appended to the current builder; its outputs."""
    builder = current_builder()
    if builder is None:
        raise IRError(f"{op.name} is appended outside of a Program being rewritten")
    return copy_op(builder, op, inputs)


def number_of(value: Value) -> Any:
    """The number that every element of the value is, or None when it is not known."""
    op = value.op
    while op is not None and op.name in _REPEATING:
        op = op.inputs[0].op
    return op.attributes["value"] if op is not None and op.name == "constant" else None
