"""The interpreter: runs a Program op by op through each operator's own NumPy meaning. The oracle of the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .program import Block, Op, Program

Array = np.ndarray[Any, Any]


class Evaluator(Protocol):
    """What the interpreter asks of a set of operators."""

    def evaluate(self, op: Op, arrays: list[Array]) -> list[Array]:
        """The outputs of one Op."""


def run(program: Program, inputs: Sequence[Array], table: Evaluator) -> list[Array]:
    """The Program's outputs for these inputs."""
    if len(inputs) != len(program.inputs):
        raise ValueError(f"{program.name} takes {len(program.inputs)} inputs, got {len(inputs)}")
    return _run_block(program.body, list(inputs), {}, table)


def _run_block(block: Block, arguments: list[Array], outer: dict[int, Array], table: Evaluator) -> list[Array]:
    values = dict(outer)
    values.update((id(v), a) for v, a in zip(block.arguments, arguments, strict=True))
    for op in block.ops:
        results = table.evaluate(op, [values[id(v)] for v in op.inputs])
        values.update((id(v), a) for v, a in zip(op.outputs, results, strict=True))
    return [values[id(v)] for v in block.results]
