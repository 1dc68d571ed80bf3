"""erase_detach: what ``detach`` is for is over once gradients are taken."""

from __future__ import annotations

from ..ir.program import Program
from ..ir.rewrite import rebuild
from ..ops.catalog import TABLE


def erase_detach(program: Program) -> Program:
    """The Program with every detach replaced by its operand; the same Program when it has none."""
    if not any(op.name == "detach" for op in program.ops):
        return program
    return rebuild(program, TABLE, lambda op, inputs: inputs if op.name == "detach" else None)
