"""Which kernels recorded Ops end in: each straight piece is expanded and grouped as it would be compiled, and every Op is followed through it."""

from __future__ import annotations

from collections.abc import Sequence

from ...codegen.kernels import kernels_of
from ...ir.program import Block, Op, Program, Value
from ...ops.primitives.core import PRIMITIVES
from ...passes.pipeline import run_passes
from ...tensor.expander import Expander
from ...tensor.replay import Replay
from ...tensor.runner import is_compiled, straight_pieces

#: What costs nothing by itself does not make an Op a part of a kernel.
_FREE = ("view", "source")


def kernels_of_block(block: Block) -> list[tuple[str, list[int]]]:
    """(label, numbers of the recorded Ops that it computes) of each kernel of the block, in order. Nested blocks are not entered."""
    kernels = [k for piece in expanded_pieces(block) for k in kernels_of(run_passes(piece))]
    return [(kernel.label, _numbers(kernel.ops)) for kernel in kernels]


def expanded_pieces(block: Block) -> list[Program]:
    """The compiled pieces of the block, as Programs; an Op's ``location`` is the number of the recorded Op that it stems from."""
    numbers = {id(op): k for k, op in enumerate(block.ops)}
    return [_expanded(block, piece, numbers) for piece in straight_pieces(block.ops) if is_compiled(piece)]


def _expanded(block: Block, piece: Sequence[Op], numbers: dict[int, int]) -> Program:
    inside = {id(op) for op in piece}
    builder = Expander("piece")
    values: dict[int, Value] = {}
    made = {id(v) for op in piece for v in op.outputs}
    for op in piece:
        for v in op.inputs:
            if id(v) not in values and id(v) not in made:
                values[id(v)] = builder.argument(v.dtype, _sizes(v), v.name, v.weak)
    replay = Replay(builder, values)
    with builder.active():
        for op in piece:
            start = len(builder.block.ops)
            replay.run([op])
            for new in builder.block.ops[start:]:  # the compiler carries an Op's location along
                new.location = str(numbers[id(op)])
    used = {id(v) for op in block.ops if id(op) not in inside for v in op.inputs} | {id(v) for v in block.results}
    read = {id(v) for op in piece for v in op.inputs}
    results = [v for op in piece for v in op.outputs if id(v) in used or id(v) not in read]
    return builder.finish(*(values[id(v)] for v in results))


def _sizes(v: Value) -> tuple[int, ...]:
    probe = getattr(v, "probe", None)
    return tuple(v.shape) if probe is None else tuple(probe(0))


def _numbers(ops: Sequence[Op]) -> list[int]:
    computing = [op for op in ops if PRIMITIVES[op.name].family not in _FREE] or list(ops)
    return sorted({int(op.location) for op in computing if op.location})
