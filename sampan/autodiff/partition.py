"""What backward keeps: a forward Program with the extra results its gradient needs, and the backward Program over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.builder import Builder
from ..ir.program import Op, Program, Value
from ..ir.rewrite import drop_dead, inline, live_ops
from ..ops.catalog import TABLE
from .differentiate import accumulate_gradients, append_forward


@dataclass(frozen=True)
class Partition:
    """``saved``: what backward is given, in order: ("input", k) or ("output", k) of the forward Program, its extra results last.

    ``backward``'s inputs are the saved values, then the present output gradients; its outputs are the gradients of the inputs ``targets``.
    """

    forward: Program
    backward: Program
    saved: tuple[tuple[str, int], ...]
    targets: tuple[int, ...]


#: Families whose Ops a backward Program computes again in place of keeping their results: they fuse into the kernels that use them.
_RECOMPUTED = ("map", "view", "source")


def joint_program(program: Program, present: Sequence[bool], wanted: Sequence[int]) -> tuple[Program, list[Value], list[Op], list[int]]:
    """Forward and backward in one Program: inputs, then the gradients of the present outputs; results: the gradients that exist.

    Also gives the forward results, the forward Ops inside it, and the inputs that have a gradient.
    """
    builder = Builder(TABLE, f"{program.name}_backward")
    arguments = [builder.argument(v.dtype, v.shape, v.name, v.weak) for v in program.inputs]
    with builder.active():
        results, forward = append_forward(builder, program.body, arguments)
        given = [builder.argument(v.dtype, v.shape) if is_present else None for v, is_present in zip(results, present, strict=True)]
        gradients = accumulate_gradients(builder, forward, results, given, [arguments[k] for k in wanted])
    targets = [k for k, g in zip(wanted, gradients, strict=True) if g is not None]
    joint = builder.finish(*(g for g in gradients if g is not None))
    return joint, results, forward.ops, targets


def partition(program: Program, present: Sequence[bool], wanted: Sequence[int]) -> Partition:
    """Split the joint Program where the least is kept: inputs, outputs, and what is dear to compute again."""
    joint, results, forward_ops, targets = joint_program(program, present, wanted)
    in_forward = {id(op) for op in forward_ops}
    arguments = joint.inputs[: len(program.inputs)]
    input_number = {id(v): k for k, v in enumerate(arguments)}
    output_number: dict[int, int] = {}
    for k, v in enumerate(results):
        output_number.setdefault(id(v), k)

    backward_ops = live_ops([op for op in joint.ops if id(op) not in in_forward], joint.outputs)
    saved: dict[int, Value] = {}
    again: set[int] = set()

    def need(value: Value) -> None:
        stack = [value]
        while stack:
            v = stack.pop()
            if id(v) in saved:
                continue
            if id(v) in input_number or id(v) in output_number:
                saved[id(v)] = v
            elif v.op is not None and id(v.op) in in_forward and id(v.op) not in again:
                primitive = TABLE.primitive(v.op)
                if primitive is not None and primitive.family in _RECOMPUTED:
                    again.add(id(v.op))
                    stack.extend(v.op.inputs)
                else:
                    saved[id(v)] = v

    for op in backward_ops:
        for v in op.inputs:
            need(v)
    for v in joint.outputs:
        need(v)

    extras = [v for v in saved.values() if id(v) not in input_number and id(v) not in output_number]
    extra_number = {id(v): len(results) + k for k, v in enumerate(extras)}
    where = []
    for v in saved.values():
        if id(v) in input_number:
            where.append(("input", input_number[id(v)]))
        elif id(v) in output_number:
            where.append(("output", output_number[id(v)]))
        else:
            where.append(("output", extra_number[id(v)]))

    forward = Builder(TABLE, program.name)
    forward.block.arguments = list(arguments)
    forward.block.ops = list(forward_ops)
    forward_program = _copy(forward.finish(*results, *extras))

    backward = Builder(TABLE, joint.name)
    values = {id(v): backward.argument(v.dtype, v.shape, weak=v.weak) for v in saved.values()}
    for v in joint.inputs[len(arguments) :]:
        values[id(v)] = backward.argument(v.dtype, v.shape)
    wanted_ops = again | {id(op) for op in backward_ops}
    joint.body.ops = [op for op in joint.ops if id(op) in wanted_ops]
    with backward.active():
        inline(backward, joint.body, values)
    backward_program = drop_dead(backward.finish(*(values[id(v)] for v in joint.outputs)))
    return Partition(drop_dead(forward_program), backward_program, tuple(where), tuple(targets))


def _copy(program: Program) -> Program:
    builder = Builder(TABLE, program.name)
    arguments = [builder.argument(v.dtype, v.shape, v.name, v.weak) for v in program.inputs]
    results, _ = append_forward(builder, program.body, arguments)
    return builder.finish(*results)
