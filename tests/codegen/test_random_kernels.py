"""Random kernels of every form against the oracle: what a row, a step, a lane and a chunk hold may meet in any way."""

from __future__ import annotations

import random

import numpy as np
import pytest
from codegen.kernel_checks import check_kernel, random_array
from codegen.kernel_reference import numpy_dtype

from sampan.codegen.loop_nodes import varies
from sampan.codegen.loops import Kernel, KernelBuilder, parse_kernel

_DTYPES = ("float32", "float64", "int32", "int64", "bfloat16", "complex64", "uint8")


def _build(rng: random.Random) -> Kernel:
    outer, inner, reduce_lane = rng.randint(0, 2), rng.choice((0, 0, 1, 2)), rng.random() < 0.5
    block = rng.choice(("none", "lane", *(["inner0"] if inner else [])))
    k = KernelBuilder(outer, inner, reduce_lane, block)
    values = [k.const(2, "float32"), k.index("lane")] + [
        k.index(f"{kind}{a}") for kind, n in (("outer", outer), ("inner", inner)) for a in range(n)
    ]
    for i in range(rng.randint(1, 4)):
        values.append(k.load(k.buffer(f"in{i}", rng.choice(_DTYPES), "in", rng.choice("011n"), rng.random() < 0.7)))
    for _ in range(rng.randint(3, 14)):
        values.append(_random_node(k, rng, values))
    stored = 0
    while not stored:
        for _ in range(3):
            stored += _try_store(k, rng, rng.choice(values), stored)
    return k.build()


def _random_node(k: KernelBuilder, rng: random.Random, values: list[int]) -> int:
    a, b = rng.choice(values), rng.choice(values)
    choice = rng.random()
    numbers = [v for v in values if k.dtype(v) not in ("bool", "complex64")]
    if choice < 0.35 and (k.reduce_lane or k.inner):
        kinds = (
            ("sum",) if k.dtype(a) == "complex64" else ("any", "all") if k.dtype(a) == "bool" else ("sum", "max", "min", "argmax")
        )
        return k.reduce(rng.choice(kinds), a)
    if choice < 0.5:
        x = k.cast("float32", rng.choice(numbers))
        return k.map(rng.choice(("tanh", "sigmoid", "abs", "sign", "floor")), x)
    if choice < 0.6:
        x, y = rng.choice(numbers), rng.choice(numbers)
        return k.map(rng.choice(("lt", "ne")), k.cast("float64", x), k.cast("float64", y))
    if choice < 0.7:
        x, y = k.cast("float32", a), k.cast("float32", b)
        return k.select(k.cast("bool", rng.choice(values)), x, y)
    dtype = k.dtype(a) if k.dtype(a) != "bool" else "int32"
    return k.map(rng.choice(("add", "sub")), k.cast(dtype, a), k.cast(dtype, b))


def _try_store(k: KernelBuilder, rng: random.Random, value: int, count: int) -> bool:
    """Adds a store where one of a few random out buffers can take the value."""
    inner, lane = varies(Kernel(k.outer, k.inner, k.reduce_lane, k.block, tuple(k.buffers), tuple(k.nodes)))[value]
    if k.reduce_lane and k.inner:
        full = inner or lane or rng.random() < 0.3
        inner, lane = full, full
    lane = lane or (rng.random() < 0.3 and not (k.reduce_lane and k.inner))
    k.store(k.buffer(f"out{count}", k.dtype(value), "out", rng.choice("11n") if lane else "0", inner), value)
    return True


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(60))
def test_random_kernel(seed: int) -> None:
    rng = random.Random(seed)
    kernel = _build(rng)
    assert parse_kernel(kernel.text) == kernel
    for lane in (rng.randint(1, 9), rng.randint(10, 80)):
        outer, inner = [rng.randint(1, 3) for _ in range(kernel.outer)], [rng.randint(1, 4) for _ in range(kernel.inner)]
        block = rng.choice((1, 2, 3)) if kernel.block == "inner0" else rng.choice((8, 13, 64))
        extent = {"none": 1, "lane": lane, "inner0": inner[0] if inner else 1}[kernel.block]
        blocks = -(-extent // block)
        arrays, strides = [], []
        for position, buffer in enumerate(kernel.buffers):
            axes = [*outer, *([blocks] if kernel.is_split and buffer.direction == "out" else []), *inner, lane]
            scale = {"0": 1, "1": 1, "n": 2}[buffer.lane]
            steps, size = [], 1
            for length in reversed(axes):
                steps.append(size * scale)
                size *= length
            if buffer.lane == "1":
                steps[0] = 1
            array = random_array(buffer.dtype, size * scale + 1, position)
            arrays.append(array if buffer.direction == "in" else np.zeros(array.size, numpy_dtype(buffer.dtype)))
            strides.append(steps[::-1])
        check_kernel(kernel, arrays, strides, outer, inner, lane, block, tolerance=1e-3)
