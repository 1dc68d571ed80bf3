"""Sample arguments of operators, for the tests that are generated from definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.dtypes import numpy_dtype


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
            return np.asarray(rng.random(self.shape) < 0.5)
        kind = np.dtype(name if name != "bfloat16" else "float32").kind
        if kind in "iu":
            low = math.ceil(self.low) if kind == "i" else max(math.ceil(self.low), 0)
            return np.asarray(rng.integers(low, max(int(self.high), low + 1), self.shape)).astype(name)
        values = np.asarray(rng.uniform(self.low, self.high, self.shape))
        if name.startswith("complex"):
            values = values + 1j * rng.uniform(self.low, self.high, self.shape)
        return np.asarray(values).astype(numpy_dtype(name))


@dataclass(frozen=True)
class Made:
    """An array that a function makes from a random generator, cast to the test's dtype unless ``dtype`` fixes it."""

    function: Callable[[np.random.Generator], Any]
    dtype: str = ""

    def make(self, dtype: str, seed: int) -> np.ndarray[Any, Any]:
        """The array; the same for the same seed."""
        values = np.asarray(self.function(np.random.default_rng(seed)))
        name = self.dtype or dtype
        kind = np.dtype(name if name != "bfloat16" else "float32").kind
        if kind in "iu" and values.dtype.kind == "f":
            values = np.nan_to_num(values, posinf=9, neginf=-9)
        if kind == "u":
            values = np.abs(values)
        with np.errstate(all="ignore"):
            return np.asarray(values).astype(numpy_dtype(name))


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


def values(*items: Any, dtype: str = "") -> Made:
    """These very values."""
    return Made(lambda rng: np.array(items[0] if len(items) == 1 else items), dtype)


def indices(*items: Any, dtype: str = "int64") -> Made:
    """These very positions."""
    return values(*items, dtype=dtype)


def distinct(*shape: int) -> Made:
    """Values without ties, half a unit apart, in random order."""
    size = math.prod(shape)
    return Made(lambda rng: (rng.permutation(size).reshape(shape) - size // 2) * 0.5)


def matrix(*shape: int, shift: float = 3.0) -> Made:
    """Well-conditioned square matrices, not symmetric."""
    return Made(lambda rng: rng.uniform(-1, 1, shape) + shift * np.eye(shape[-1]))


def definite(*shape: int) -> Made:
    """Symmetric positive definite matrices with separated eigenvalues."""

    def make(rng: np.random.Generator) -> Any:
        a = rng.uniform(-0.5, 0.5, shape)
        return a @ np.swapaxes(a, -1, -2) + np.diag(np.arange(1.0, shape[-1] + 1))

    return Made(make)
