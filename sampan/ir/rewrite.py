"""Rewriting: new Programs from old ones. A pass never changes the Program it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .builder import Builder, OperatorTable
from .program import Block, Op, Program, Value

Handler = Callable[[Op, tuple[Value, ...]], Sequence[Value] | None]


def copy_op(builder: Builder, op: Op, inputs: tuple[Value, ...]) -> tuple[Value, ...]:
    """The same Op on other inputs, appended; its outputs."""
    builder.location = op.location
    new = Op(op.name, inputs, op.attributes, (), op.blocks, op.location)
    new.outputs = tuple(Value(v.dtype, v.shape, new, v.name, v.weak) for v in op.outputs)
    builder.block.ops.append(new)
    return new.outputs


def rebuild(program: Program, table: OperatorTable, handle: Handler) -> Program:
    """The Program with every Op passed through ``handle(op, new_inputs)``.

    The handler gives the Values that stand for the Op's outputs (it may append Ops to the current builder), or None to keep the Op as it is.
    """
    builder = Builder(table, program.name)
    values: dict[int, Value] = {}
    for v in program.inputs:
        values[id(v)] = builder.argument(v.dtype, v.shape, v.name, v.weak)
    with builder.active():
        inline(builder, program.body, values, handle)
    return builder.finish(*(values[id(v)] for v in program.outputs))


def inline(builder: Builder, block: Block, values: dict[int, Value], handle: Handler | None = None) -> None:
    """Append the block's Ops to the builder, its Values standing for those in ``values``, which is extended."""
    for op in block.ops:
        inputs = tuple(values[id(v)] for v in op.inputs)
        builder.location = op.location
        outputs = handle(op, inputs) if handle else None
        if outputs is None:
            outputs = copy_op(builder, op, inputs)
        for old, new in zip(op.outputs, outputs, strict=True):
            values[id(old)] = new


def live_ops(ops: Iterable[Op], results: Iterable[Value], keep: Callable[[Op], bool] = lambda op: False) -> list[Op]:
    """The Ops that the results, or an Op to ``keep`` for its effect, depend on; in order."""
    needed = {id(v) for v in results}
    alive = []
    for op in reversed(list(ops)):
        if keep(op) or any(id(v) in needed for v in op.outputs):
            alive.append(op)
            needed.update(id(v) for v in op.inputs)
            for block in op.blocks:
                needed.update(_captured(block))
    return alive[::-1]


def _captured(block: Block) -> set[int]:
    used = {id(v) for v in block.results}
    for op in block.ops:
        used.update(id(v) for v in op.inputs)
        for inner in op.blocks:
            used |= _captured(inner)
    return used


def drop_dead(program: Program) -> Program:
    """The same Program object, without Ops that nothing depends on."""
    program.body.ops[:] = live_ops(program.ops, program.outputs)
    return program
