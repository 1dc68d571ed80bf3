"""fold_scales: a factor for each channel of a convolution's result goes into its weight, where that is the smaller of the two."""

from __future__ import annotations

from ..base import dtypes
from ..ir.program import Op, Program, Value
from ..ops import primitives as p
from .rewriting import append_op, replace_ops

#: The weight is scaled when it has at most this part of the result's elements.
_SMALLER = 2


def fold_scales(program: Program) -> Program:
    """The Program with ``conv(x, w) * s``, s one number for each channel, as ``conv(x, w * s)``: batch norm in evaluation becomes a bias."""
    uses: dict[int, int] = {}
    for v in (*(v for op in program.ops for v in op.inputs), *program.outputs):
        uses[id(v)] = uses.get(id(v), 0) + 1

    def fold(op: Op, inputs: tuple[Value, ...]) -> tuple[Value, ...] | None:
        if op.name != "mul":
            return None
        for old, result, factor in zip(op.inputs, inputs, inputs[::-1], strict=True):
            if result.op is not None and result.op.name == "conv" and uses[id(old)] == 1:
                found = _folded(result.op, result, factor)
                if found is not None:
                    return (found,)
        return None

    return replace_ops(program, fold)


def _folded(conv: Op, result: Value, factor: Value) -> Value | None:
    source = factor.op.inputs[0] if factor.op is not None and factor.op.name == "broadcast_to" else None
    x, weight = conv.inputs[:2]
    if source is None or len(conv.inputs) != 2 or not dtypes.is_floating(result.dtype):
        return None
    is_known = weight.op is not None and weight.op.name == "literal"  # then it is scaled once and for all
    if not is_known and weight.numel * _SMALLER > result.numel:
        return None
    channels = result.shape[1]
    if source.numel != channels or source.ndim != result.ndim or source.shape[1] != channels:
        return None
    scale = p.broadcast_to(p.reshape(source, (channels, *(1,) * (weight.ndim - 1))), weight.shape)
    return append_op(conv, (x, p.mul(weight, scale)))[0]
