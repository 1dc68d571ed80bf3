"""merge_common: equal Ops on equal operands are computed once."""

from __future__ import annotations

from typing import Any

from ..ir.program import Op, Program, Value
from ..ops.primitives.core import PRIMITIVES
from .rewriting import append_op, replace_ops


def merge_common(program: Program) -> Program:
    """The Program with one Op for every set of equal ones. Host calls and Ops with blocks may have effects and stay."""
    known: dict[Any, tuple[Value, ...]] = {}

    def merge(op: Op, inputs: tuple[Value, ...]) -> tuple[Value, ...] | None:
        primitive = PRIMITIVES.get(op.name)
        if op.blocks or primitive is None or primitive.family == "host":
            return None
        key = (op.name, tuple(map(id, inputs)), repr(op.attributes))
        found = known.get(key)
        if found is None and inputs is op.inputs:
            known[key] = op.outputs
        elif found is None:  # its operands were merged, so it is written anew
            found = known[key] = append_op(op, inputs)
        return found

    return replace_ops(program, merge)
