"""fold_constants: maps over known numbers are numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import dtypes
from ..ir.program import Op, Program, Value
from ..ops import primitives as p
from ..ops.catalog import TABLE
from ..ops.primitives.core import PRIMITIVES
from .rewriting import number_of, replace_ops


def fold_constants(program: Program) -> Program:
    """The Program with every map over repeated numbers replaced by the repeated result;
    computed by the interpreter, so exactly what it gives.
    """
    return replace_ops(program, _fold)


def _fold(op: Op, inputs: tuple[Value, ...]) -> tuple[Value, ...] | None:
    if not inputs or PRIMITIVES[op.name].family != "map" or op.name == "random_bits":
        return None
    numbers = [number_of(v) for v in inputs]
    if any(n is None for n in numbers):
        return None
    arrays = [np.asarray(n).astype(dtypes.numpy_dtype(v.dtype)) for n, v in zip(numbers, inputs, strict=True)]
    (result,) = TABLE.evaluate(op, arrays)
    out = op.outputs[0]
    return (p.broadcast_to(p.constant(_python_number(result), out.dtype), out.shape),)


def _python_number(array: Any) -> Any:
    return array.astype(np.float64).item() if array.dtype.name == "bfloat16" else array.item()
