"""Arrays of every dtype, for the tests of copies and tensors."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from sampan import _rt

DTYPES = list(_rt.dtypes)
NUMPY = {name: np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name) for name in DTYPES}


def sample(name: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Values that every dtype can hold in part, with both signs where it has them."""
    values = np.random.default_rng(seed).integers(0 if NUMPY[name].kind in "bu" else -100, 100, shape)
    if NUMPY[name].kind == "c":
        return (values + 1j * values[::-1]).astype(name)
    return (values % 2 if name == "bool" else values).astype(NUMPY[name])


def bits(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()
