"""Reverse mode over a Program: its gradient is again a Program, so every pass and the compiler apply to it too."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import dtypes, nest
from ..base.errors import AutogradError, message
from ..ir.builder import Builder
from ..ir.program import Block, Op, Value
from ..ir.rewrite import inline
from ..ops import primitives as p
from ..ops.catalog import TABLE


def accumulate_gradients(
    builder: Builder, block: Block, roots: Sequence[Value], gradients: Sequence[Value | None], wanted: Sequence[Value]
) -> list[Value | None]:
    """Append the Ops that compute d(roots)/d(wanted) from the roots' gradients; None for a wanted Value nothing depends on.

    ``block`` holds the forward Ops, already appended to the builder, in order.
    """
    active = {id(v) for v in wanted}
    for op in block.ops:
        if any(id(v) in active for v in op.inputs):
            active.update(id(v) for v in op.outputs if dtypes.is_differentiable(v.dtype))
    found: dict[int, Value] = {}

    def add(value: Value, gradient: Value | None) -> None:
        if gradient is None or id(value) not in active:
            return
        if gradient.shape != value.shape or gradient.dtype != value.dtype:
            raise AutogradError(f"the gradient of {value!r} has type {gradient.dtype}{list(gradient.shape)}")
        found[id(value)] = p.add(found[id(value)], gradient) if id(value) in found else gradient

    for root, gradient in zip(roots, gradients, strict=True):
        add(root, gradient)
    for op in reversed(list(block.ops)):
        output_gradients = [found.get(id(v)) for v in op.outputs]
        if all(g is None for g in output_gradients) or not any(id(v) in active for v in op.inputs):
            continue
        builder.location = op.location
        for v, g in zip(op.inputs, _op_gradients(builder, op, output_gradients), strict=True):
            add(v, g)
    return [found.get(id(v)) for v in wanted]


def _op_gradients(builder: Builder, op: Op, gradients: list[Value | None]) -> Sequence[Value | None]:
    """By the Op's rule, with missing output gradients as zeros where a rule of several outputs needs them; else through its expansion."""
    primitive = TABLE.primitive(op)
    if op.blocks:
        raise AutogradError(message(f"{op.name} has no gradient through its blocks"))
    if primitive is not None and primitive.gradient is None:
        if primitive.family == "source" or not any(dtypes.is_differentiable(v.dtype) for v in op.outputs):
            return (None,) * len(op.inputs)
        raise AutogradError(message(f"{op.name}() has no gradient", "", "detach its input, or set stop_gradient=True on it"))
    result = TABLE.gradient(op, gradients)
    if result is not None:
        return result
    # a composite without a rule of its own: differentiate its body in place
    definition = TABLE.definition(op)
    start = len(builder.block.ops)
    outputs = [v for v in nest.flatten(definition.body(*definition.arguments(op, list(op.inputs)))) if v is not None]
    body = Block(list(op.inputs), list(builder.block.ops[start:]), tuple(outputs))
    return accumulate_gradients(builder, body, outputs, gradients, op.inputs)


def append_forward(builder: Builder, block: Block, arguments: Sequence[Value]) -> tuple[list[Value], Block]:
    """Append a copy of the block over ``arguments``: its results, and the appended Ops as a Block."""
    values = {id(v): a for v, a in zip(block.arguments, arguments, strict=True)}
    start = len(builder.block.ops)
    inline(builder, block, values)
    results = [values[id(v)] for v in block.results]
    return results, Block(list(arguments), builder.block.ops[start:], tuple(results))
