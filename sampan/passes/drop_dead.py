"""drop_dead: without the Ops that no result depends on."""

from __future__ import annotations

from ..ir.program import Block, Program
from ..ir.rewrite import live_ops


def drop_dead(program: Program) -> Program:
    """The Program without Ops that nothing depends on; the same Program when there are none."""
    alive = live_ops(program.ops, program.outputs)
    if len(alive) == len(program.ops):
        return program
    return Program(program.name, Block(program.inputs, alive, program.outputs))
