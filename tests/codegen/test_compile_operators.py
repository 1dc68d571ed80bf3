"""Every operator's samples: its compiled Program, and its gradient's, equal the interpreter's."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from codegen.compiling import assert_same, run_compiled

from sampan.autodiff.partition import partition
from sampan.base import dtypes, nest
from sampan.base.errors import DTypeError
from sampan.ir import Builder, Program, Value, interpreter
from sampan.ops import OPERATORS
from sampan.ops.catalog import TABLE
from sampan.ops.samples import Made, Random

#: SciPy says -inf at -inf, the C library and the kernels +inf.
EXCEPTIONS = {("lgamma", 2), ("gammaln", 2)}
CASES = [
    (name, k) for name, definition in OPERATORS.items() for k in range(len(definition.samples)) if (name, k) not in EXCEPTIONS
]


def traced(name: str, number: int, dtype: str = "float32") -> tuple[Program, list[np.ndarray]]:
    """The operator's Program for a sample, and its inputs; of integers where it takes no floats."""
    definition = OPERATORS[name]
    sample = definition.samples[number]
    args, keywords = (sample[:-1], sample[-1]) if sample and isinstance(sample[-1], dict) else (sample, {})
    builder = Builder(TABLE, name)
    arrays: list[np.ndarray] = []

    def value_of(item):
        if not isinstance(item, (Random, Made)):
            return item
        arrays.append(item.make(dtype, zlib.crc32(f"{name}{number}{len(arrays)}".encode())))
        return builder.argument(arrays[-1].dtype.name, arrays[-1].shape)

    with builder.active():
        values = [nest.map_structure(value_of, a) for a in args]
        named = {key: nest.map_structure(value_of, a) for key, a in keywords.items()}
        try:
            result = definition(*values, **named)
        except DTypeError:
            if dtype == "int64":
                raise
            return traced(name, number, "int64")
    return builder.finish(*(v for v in nest.flatten(result) if isinstance(v, Value))), arrays


def assert_compiles(program: Program, arrays: list[np.ndarray], scale: float) -> list[np.ndarray]:
    wanted = interpreter.run(program, arrays, TABLE)
    got, _, _ = run_compiled(program, arrays)
    for g, w in zip(got, wanted, strict=True):
        assert_same(g, np.asarray(w), scale)
    return wanted


@pytest.mark.parametrize(("name", "number"), CASES)
def test_compiled_operators_and_gradients_are_the_interpreters(name, number):
    program, arrays = traced(name, number)
    scale = 10 * OPERATORS[name].tolerance
    assert_compiles(program, arrays, scale)
    wanted = [k for k, a in enumerate(arrays) if dtypes.is_differentiable(a.dtype.name)]
    floating = [k for k, v in enumerate(program.outputs) if dtypes.is_differentiable(v.dtype)]
    if not wanted or not floating or "nograd" in OPERATORS[name].tests:
        return
    cut = partition(program, wanted)
    outputs = assert_compiles(cut.forward, arrays, scale)
    present = [k in floating for k in range(len(program.outputs))]
    backward, _ = cut.backward(present + [False] * (len(outputs) - len(present)))
    if not backward.outputs:
        return
    saved = [arrays[k] if where == "input" else np.asarray(outputs[k]) for where, k in cut.saved]
    rng = np.random.default_rng(0)
    gradients = [rng.uniform(0.5, 1, outputs[k].shape).astype(outputs[k].dtype) for k in floating]
    assert_compiles(backward, [*saved, *gradients], scale)
