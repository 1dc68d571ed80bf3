"""fold_literals: what frozen weights and numbers give is computed when the Program is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import dtypes
from ..ir.program import Op, Program, Value
from ..ops import primitives as p
from ..ops.catalog import TABLE
from ..ops.primitives.core import PRIMITIVES
from .rewriting import replace_ops

_FAMILIES = ("map", "reduce", "view", "move")
#: A result has at most this many elements more than its operands.
_MOST_MORE = 1 << 12


def fold_literals(program: Program) -> Program:
    """The Program with Ops over literals done, unless the result is much larger than they are; by the interpreter, as constants are."""
    if not any(op.name == "literal" for op in program.ops):
        return program
    return replace_ops(program, _fold)


def _fold(op: Op, inputs: tuple[Value, ...]) -> tuple[Value, ...] | None:
    if PRIMITIVES[op.name].family not in _FAMILIES or op.name in ("broadcast_to", "random_bits") or len(op.outputs) != 1:
        return None
    arrays = [_known(v) for v in inputs]
    literal_size = sum(map(_literal_size, inputs))
    if not literal_size or any(a is None for a in arrays) or op.outputs[0].numel > literal_size + _MOST_MORE:
        return None
    (result,) = TABLE.evaluate(op, arrays)
    return (p.literal(np.asarray(result)),)


def _literal_size(value: Value) -> int:
    """The elements of the literal that the value is, or repeats; 0 when it is neither."""
    while value.op is not None and value.op.name == "broadcast_to":
        value = value.op.inputs[0]
    return value.numel if value.op is not None and value.op.name == "literal" else 0


def _known(value: Value) -> Any:
    """The value's elements, where they are known."""
    if value.op is None:
        return None
    if value.op.name == "literal":
        return value.op.attributes["value"].array
    if value.op.name == "constant":
        return np.asarray(value.op.attributes["value"]).astype(dtypes.numpy_dtype(value.dtype))
    if value.op.name == "broadcast_to":
        found = _known(value.op.inputs[0])
        return None if found is None else np.broadcast_to(found, value.shape)
    return None
