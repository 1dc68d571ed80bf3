"""Runs a kernel compiled and by the oracle, and compares every out array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from codegen.kernel_reference import numpy_dtype, run_reference
from codegen.kernel_runner import Call

from sampan.codegen.loops import Kernel, KernelBuilder

DTYPES = (
    "float32",
    "float64",
    "bfloat16",
    "float16",
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "complex64",
    "complex128",
)
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 1e-2, "float16": 1e-2, "complex64": 2e-5, "complex128": 1e-12}


def random_array(dtype: str, size: int, seed: int = 0) -> np.ndarray:
    """Numbers of either sign; small ones for integers."""
    rng, target = np.random.default_rng(seed + size), numpy_dtype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, size).astype(bool)
    if target.kind in "iu":
        return rng.integers(0 if target.kind == "u" else -60, 60, size).astype(target)
    if target.kind == "c":
        return (rng.standard_normal(size) + 1j * rng.standard_normal(size)).astype(target)
    return rng.standard_normal(size).astype(target)


def check_kernel(
    kernel: Kernel,
    arrays: Sequence[np.ndarray],
    strides: Sequence[Sequence[int]],
    outer: Sequence[int] = (),
    inner: Sequence[int] = (),
    lane: int = 1,
    block: int = 0,
    offsets: Sequence[int] | None = None,
    tolerance: float | None = None,
    without: Sequence[str] = (),
) -> None:
    """Asserts that both give the same, elements outside the kernel's reach included."""
    expected = [a.copy() for a in arrays]
    call = Call(kernel, arrays, strides, outer, inner, lane, block, without, offsets)
    call.run()
    run_reference(kernel, expected, [int(p) for p in call.params], offsets)
    for buffer, got, want in zip(kernel.buffers, arrays, expected):
        allowed = (
            TOLERANCE.get(buffer.dtype)
            if tolerance is None
            else max(tolerance, TOLERANCE.get(buffer.dtype, 0) * (got.itemsize == 2))
        )
        if buffer.direction == "in":
            assert got.tobytes() == want.tobytes()
        elif allowed is None:
            np.testing.assert_array_equal(got, want)
        else:
            wide = np.float32 if buffer.dtype in ("bfloat16", "float16") else got.dtype
            np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=allowed, atol=allowed)


def map_kernel(name: str, dtype: str, arity: int, lane: str = "1", outer: int = 0) -> Kernel:
    """out = name(x0, ...)."""
    k = KernelBuilder(outer=outer)
    value = k.map(name, *(k.load(k.buffer(f"x{i}", dtype, lane=lane)) for i in range(arity)))
    k.store(k.buffer("out", k.dtype(value), "out", lane), value)
    return k.build()


def apply(name: str, *arrays: np.ndarray, dtype: str | None = None, without: Sequence[str] = ()) -> np.ndarray:
    """A primitive over whole arrays."""
    kernel = map_kernel(name, dtype or arrays[0].dtype.name, len(arrays))
    out = np.zeros(arrays[0].size, numpy_dtype(kernel.buffers[-1].dtype))
    Call(kernel, [*arrays, out], [[1]] * (len(arrays) + 1), lane=out.size, without=without).run()
    return out
