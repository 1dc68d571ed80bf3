"""expand_picks: reading or writing one element of every row becomes a mask over the row, which fuses with what computes and uses it.

Cross entropy reads one log-probability of every row, and its gradient writes one element of every row: apart from each other,
both
pass the whole matrix through memory once more.
"""

from __future__ import annotations

import math
from typing import Any

from ..base import dtypes
from ..ir.program import Op, Program, Value
from ..ops import primitives as p
from ..ops.primitives.core import PRIMITIVES
from .rewriting import number_of, replace_ops

#: A row is worth walking for one element when it is walked for its own sake, and not when it is very long.
_LONGEST_ROW = 1 << 16


def expand_picks(program: Program) -> Program:
    """The Program with such gathers and scatters as comparisons with the position; indices are still checked."""
    return replace_ops(program, _expand)


def _expand(op: Op, inputs: tuple[Value, ...]) -> tuple[Value, ...] | None:
    if op.name == "gather_elements":
        return _expand_gather(op, *inputs)
    return _expand_scatter(op, *inputs) if op.name == "scatter_elements" else None


def _takes_one(x: Value, index: Value, axis: int) -> bool:
    if index.shape[axis] != 1 or x.ndim != index.ndim or not 1 < x.shape[axis] <= _LONGEST_ROW:
        return False
    return all(n == m for k, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)) if k != axis)


def _is_computed(value: Value) -> bool:
    op = value.op
    while op is not None and PRIMITIVES[op.name].family == "view":
        op = op.inputs[0].op
    return op is not None and PRIMITIVES[op.name].family in ("map", "reduce")


def _is_picked(op: Op, x: Value, index: Value) -> Value:
    axis = op.attributes["axis"]
    checked = p.checked_index(index, x.shape[axis], op.attributes.get("allow_negative", True))
    return p.eq(p.iota(x.shape, axis), p.broadcast_to(checked, x.shape))


def _expand_gather(op: Op, x: Value, index: Value) -> tuple[Value, ...] | None:
    axis = op.attributes["axis"]
    if not dtypes.is_floating(x.dtype) or not _takes_one(x, index, axis) or not _is_computed(x):
        return None
    lowest: Any = -math.inf
    return (p.reduce_max(p.select(_is_picked(op, x, index), x, lowest), (axis,)),)


def _expand_scatter(op: Op, x: Value, index: Value, updates: Value) -> tuple[Value, ...] | None:
    axis = op.attributes["axis"]
    if op.attributes["mode"] != "add" or number_of(x) != 0 or not _takes_one(x, index, axis):
        return None
    return (p.select(_is_picked(op, x, index), p.broadcast_to(updates, x.shape), 0),)
