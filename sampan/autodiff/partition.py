"""What backward keeps: a forward Program with the extra results its gradient needs, and the backward Programs over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base import dtypes
from ..ir.builder import Builder
from ..ir.program import Block, Op, Program, Value
from ..ir.rewrite import drop_dead, inline, live_ops
from ..ops.catalog import TABLE
from .differentiate import accumulate_gradients, append_forward

#: Families whose Ops a backward Program computes again in place of keeping their results: they fuse into the kernels that use them.
_RECOMPUTED = ("map", "view", "source", "literal")

Key = tuple[str, int]


@dataclass(frozen=True)
class Partition:
    """``forward`` gives the results and then the extra results; ``saved`` says what backward is given, in order: ("input", k) or ("output", k) of it."""

    forward: Program
    result_count: int
    saved: tuple[Key, ...]
    wanted: tuple[int, ...]

    def backward(self, present: Sequence[bool]) -> tuple[Program, tuple[int, ...]]:
        """The backward Program for these outputs' gradients (extra results counted), and the inputs that its outputs are the gradients of.

        Its inputs are the saved values in order, then the present gradients.
        """
        joint = _Joint(self.forward, present, self.wanted)
        builder = Builder(TABLE, f"{self.forward.name}_grad")
        values: dict[int, Value] = {}
        for key in self.saved:
            v = joint.by_key(key)
            values[id(v)] = builder.argument(v.dtype, v.shape, weak=v.weak)
        for v in joint.given:
            values[id(v)] = builder.argument(v.dtype, v.shape)
        ops = _reachable(joint, values)
        with builder.active():
            inline(builder, Block([], ops), values)
        return drop_dead(builder.finish(*(values[id(v)] for v in joint.gradients))), joint.targets


class _Joint:
    """Forward and backward in one Program: inputs, then the gradients of the present outputs."""

    def __init__(self, program: Program, present: Sequence[bool], wanted: Sequence[int]) -> None:
        builder = Builder(TABLE, program.name)
        self.arguments = [builder.argument(v.dtype, v.shape, v.name, v.weak) for v in program.inputs]
        with builder.active():
            self.results, forward = append_forward(builder, program.body, self.arguments)
            given = [builder.argument(v.dtype, v.shape) if p else None for v, p in zip(self.results, present, strict=True)]
            found = accumulate_gradients(builder, forward, self.results, given, [self.arguments[k] for k in wanted])
        self.given = [v for v in given if v is not None]
        self.targets = tuple(k for k, g in zip(wanted, found, strict=True) if g is not None)
        self.gradients = [g for g in found if g is not None]
        self.ops = builder.block.ops
        self.forward_ops = {id(op) for op in forward.ops}
        self.keys: dict[int, Key] = {id(v): ("input", k) for k, v in enumerate(self.arguments)}
        for k, v in enumerate(self.results):
            self.keys.setdefault(id(v), ("output", k))

    def by_key(self, key: Key) -> Value:
        """The Value that the key names."""
        return self.arguments[key[1]] if key[0] == "input" else self.results[key[1]]


def _reachable(joint: _Joint, given: dict[int, Value]) -> list[Op]:
    """The Ops that the gradients need, in order, when the given Values need none."""
    needed = {id(v) for v in joint.gradients if id(v) not in given}
    kept = []
    for op in reversed(joint.ops):
        if any(id(v) in needed for v in op.outputs):
            kept.append(op)
            needed.update(id(v) for v in op.inputs if id(v) not in given)
    return kept[::-1]


def _needs(joint: _Joint) -> dict[int, Value]:
    """The inputs and forward results that the gradients need, where what is cheap is computed again."""
    saved: dict[int, Value] = {}
    again: set[int] = set()
    backward_ops = live_ops([op for op in joint.ops if id(op) not in joint.forward_ops], joint.gradients)
    stack = [v for op in backward_ops for v in op.inputs] + joint.gradients
    while stack:
        v = stack.pop()
        if id(v) in saved:
            continue
        if id(v) in joint.keys:
            saved[id(v)] = v
        elif v.op is not None and id(v.op) in joint.forward_ops and id(v.op) not in again:
            primitive = TABLE.primitive(v.op)
            if primitive is not None and primitive.family in _RECOMPUTED:
                again.add(id(v.op))
                stack.extend(v.op.inputs)
            else:
                saved[id(v)] = v
    return saved


def partition(program: Program, wanted: Sequence[int]) -> Partition:
    """Cut where the least is kept: inputs, outputs, and what is dear to compute again.

    Gradients of the extra results are provided for too (double backward asks for them), so cutting is repeated until nothing new is needed.
    """
    count = len(program.outputs)
    saved: dict[Key, None] = {}
    forward = program
    while True:
        joint = _Joint(forward, [dtypes.is_differentiable(v.dtype) for v in forward.outputs], wanted)
        needs = _needs(joint)
        new = [v for v in needs.values() if id(v) not in joint.keys]
        if not new:
            saved.update((joint.keys[k], None) for k in needs)
            return Partition(forward, count, tuple(saved), tuple(wanted))
        builder = Builder(TABLE, program.name)
        builder.block.arguments = joint.arguments
        builder.block.ops = [op for op in joint.ops if id(op) in joint.forward_ops]
        forward = builder.finish(*joint.results, *new)
