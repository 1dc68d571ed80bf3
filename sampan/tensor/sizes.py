"""Numbers that follow from the sizes of tensors alone: known under either probe while a Program is recorded, and where a piece is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.program import Op, Value
from ..ops.catalog import TABLE

Array = np.ndarray[Any, Any]

#: Attributes of recorded Ops: which inputs stand for numbers that follow from sizes alone, and are known where a piece is compiled;
SIZES = "@sizes"
#: and that the results follow from sizes alone: these inputs are numbers that do, of the others only the sizes count.
DERIVED = "@derived"
#: More elements than shapes and what is computed of them have.
_MOST_ELEMENTS = 64
#: More steps than such a number takes.
_MOST_STEPS = 200


def constant_of(value: Value, known: Mapping[int, Array]) -> Array | None:
    """The elements of a Value of expanded code that depends on no operand's elements; None where it does. ``known``: of Values, by their ids."""
    found: dict[int, Array | None] = dict(known)
    steps = 0

    def find(v: Value) -> Array | None:
        nonlocal steps
        if id(v) in found:
            return found[id(v)]
        op = v.op
        steps += 1
        result: Array | None = None
        if op is not None and not op.blocks and steps < _MOST_STEPS and v.numel <= _MOST_ELEMENTS:
            arrays = []
            for operand in op.inputs:
                array = find(operand)
                if array is None:
                    break
                arrays.append(array)
            if len(arrays) == len(op.inputs):
                for output, array in zip(op.outputs, TABLE.evaluate(op, arrays), strict=True):
                    found[id(output)] = array
                return found[id(v)]
        found[id(v)] = result
        return result

    return find(value)


def as_number(array: Array) -> Any:
    """The elements as an attribute holds them: a number, or a tuple of numbers."""
    return array.item() if array.size == 1 else tuple(array.reshape(-1).tolist())


def with_sizes(ops: Sequence[Op]) -> list[Op]:
    """The Ops after those of earlier pieces that their sizes are computed by, so that a piece knows them while it is compiled."""
    own = {id(v) for op in ops for v in op.outputs}
    seen: set[int] = set()
    before: list[Op] = []

    def add(v: Value) -> None:
        if id(v) in seen or v.op is None:
            return
        seen.update(id(output) for output in v.op.outputs)
        for k in v.op.attributes.get(DERIVED, ()):
            add(v.op.inputs[k])
        if id(v) not in own:
            before.append(v.op)

    for op in ops:
        for k in op.attributes.get(SIZES, ()):
            add(op.inputs[k])
    return [*before, *ops]
