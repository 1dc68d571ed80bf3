"""narrow_broadcasts: a map of repeated values is computed once and then repeated."""

from __future__ import annotations

import math

from ..ir.program import Op, Program, Value
from ..ops import primitives as p
from ..ops.primitives.core import PRIMITIVES
from .rewriting import append_op, replace_ops


def narrow_broadcasts(program: Program) -> Program:
    """The Program with maps whose operands are all broadcast done on what they are broadcast from, at the least common shape."""
    return replace_ops(program, _narrow)


def _narrow(op: Op, inputs: tuple[Value, ...]) -> tuple[Value, ...] | None:
    if not inputs or PRIMITIVES[op.name].family != "map":
        return None
    sources = [v.op.inputs[0] if v.op is not None and v.op.name == "broadcast_to" else v for v in inputs]
    out = op.outputs[0]
    if any(v is s for v, s in zip(inputs, sources, strict=True)) or not out.numel:
        return None
    shape = p.broadcast_shapes(*(s.shape for s in sources))
    if math.prod(shape) >= out.numel:
        return None
    (narrow,) = append_op(
        Op(op.name, (), op.attributes, (Value(out.dtype, shape),)), tuple(p.broadcast_to(s, shape) for s in sources)
    )
    return (p.broadcast_to(narrow, out.shape),)
