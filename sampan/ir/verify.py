"""The verifier: definition before use, one definition each, and types that the operator table agrees with."""

from __future__ import annotations

from ..base.errors import IRError
from .builder import OperatorTable
from .program import Block, Op, Program, Value
from .text import name_values, print_op


def verify(program: Program, table: OperatorTable | None = None) -> None:
    """Raise IRError, with the ten Ops either side, when the Program breaks a rule."""
    names = name_values(program)
    _check_block(program.body, set(), table, names)


def _check_block(block: Block, outer: set[int], table: OperatorTable | None, names: dict[int, str]) -> None:
    defined = set(outer)

    def define(value: Value, op: Op | None, at: int) -> None:
        if id(value) in defined:
            raise _error(block, at, f"%{names.get(id(value), '?')} is defined twice", names)
        if value.op is not op:
            raise _error(block, at, f"%{names.get(id(value), '?')} names another Op as its producer", names)
        defined.add(id(value))

    for value in block.arguments:
        define(value, None, 0)
    for at, op in enumerate(block.ops):
        for value in op.inputs:
            if id(value) not in defined:
                raise _error(block, at, f"an input of {op.name} ({value!r}) is used before it is defined", names)
        for inner in op.blocks:
            _check_block(inner, defined, table, names)
        if table is not None:
            inferred = table.infer(op)
            have = [(v.dtype, v.shape) for v in op.outputs]
            if inferred != have:
                raise _error(block, at, f"{op.name} gives {inferred}, but its outputs say {have}", names)
        for value in op.outputs:
            define(value, op, at)
    for value in block.results:
        if id(value) not in defined:
            raise _error(block, len(block.ops), f"the result {value!r} is not defined in this block", names)


def _error(block: Block, at: int, what: str, names: dict[int, str]) -> IRError:
    lines = []
    for k in range(max(0, at - 10), min(len(block.ops), at + 11)):
        lines.append(("-> " if k == at else "   ") + print_op(block.ops[k], names))
    return IRError(what + "\n" + "\n".join(lines))
