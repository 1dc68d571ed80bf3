"""Sample arguments of operators, for the tests that are generated from definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Random:
    """An array of this shape with values from [low, high); its dtype is the test's unless ``dtype`` fixes it."""

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    dtype: str = ""

    def make(self, dtype: str, seed: int) -> np.ndarray[Any, Any]:
        """The array; the same for the same seed."""
        rng = np.random.default_rng(seed)
        name = self.dtype or dtype
        if name == "bool":
            return rng.random(self.shape) < 0.5
        if np.dtype(name if name != "bfloat16" else "float32").kind in "iu":
            return rng.integers(int(self.low), max(int(self.high), int(self.low) + 1), self.shape).astype(name)
        values = rng.uniform(self.low, self.high, self.shape)
        if name.startswith("complex"):
            values = values + 1j * rng.uniform(self.low, self.high, self.shape)
        from ..base.dtypes import numpy_dtype

        return values.astype(numpy_dtype(name))


def real(*shape: int, low: float = -2.0, high: float = 2.0) -> Random:
    """Values of the tested dtype."""
    return Random(shape, low, high)


def positive(*shape: int, low: float = 0.5, high: float = 2.0) -> Random:
    """Values away from zero."""
    return Random(shape, low, high)


def integer(*shape: int, low: int = 0, high: int = 8, dtype: str = "int64") -> Random:
    """Integers in [low, high), whatever dtype is tested."""
    return Random(shape, low, high, dtype)


def boolean(*shape: int) -> Random:
    """True and False."""
    return Random(shape, 0, 2, "bool")
