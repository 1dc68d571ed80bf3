"""Runs compiled kernels on NumPy arrays, in this thread: what the C++ runtime does, in a few lines."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from sampan.codegen import jit
from sampan.codegen.loops import Kernel

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


class Call:
    """A kernel bound to arrays. strides[buffer] lists element strides: outer, (block), inner, lane, then load_at's."""

    def __init__(
        self,
        kernel: Kernel,
        arrays: Sequence[np.ndarray],
        strides: Sequence[Sequence[int]],
        outer: Sequence[int] = (),
        inner: Sequence[int] = (),
        lane: int = 1,
        block: int = 0,
        without: Sequence[str] = (),
        offsets: Sequence[int] | None = None,
    ) -> None:
        self.compiled = jit.compile(kernel, without)
        self.arrays = list(arrays)
        params = [*outer, *inner, lane, block or max(lane, 1)]
        for s in strides:
            params += s
        assert len(params) == kernel.param_count, (len(params), kernel.param_count)
        self.params = np.array(params, np.int64)
        offsets = offsets or [0] * len(arrays)
        self.pointers = np.array([a.ctypes.data + o * a.itemsize for a, o in zip(arrays, offsets)], np.uintp)
        sizes = {"none": None, "lane": lane, "inner0": inner[0] if inner else None}[kernel.block]
        self.blocks = 1 if sizes is None else max(1, -(-sizes // params[len(outer) + len(inner) + 1]))
        self.total = int(np.prod(outer, dtype=np.int64)) * self.blocks
        length = (block or lane) if kernel.block == "lane" else lane
        self.scratch = np.zeros(max(1, self.compiled.scratch_rows * -(-length // 64) * 64), np.float64)
        self.function = _FUNCTION(self.compiled.address)

    def run(self, begin: int = 0, end: int | None = None) -> None:
        end = self.total if end is None else end
        self.function(self.pointers.ctypes.data, self.params.ctypes.data, begin, end, self.scratch.ctypes.data)
