"""Rows of random numbers: the same distribution, not the same draws."""

from __future__ import annotations

from typing import Any

from ...tensor import OPS, random_functions
from .rows import row


@row(
    "uniform_random(ShapeTensor=shape:L, ShapeTensorList*=shape:L) {dtype:t, shape:L}",
    "uniform(shape:L, min:f, max:f)",
    tensors=" ",
)
def uniform(shape: Any = (), min: Any = -1.0, max: Any = 1.0, dtype: Any = "float32", seed: int = 0) -> Any:
    return OPS["uniform"](list(shape), dtype, float(min), float(max), seed)


@row(
    "gaussian_random(ShapeTensor=shape:L, ShapeTensorList*=shape:L) {dtype:t, shape:L};truncated_gaussian_random() {dtype:t, shape:L}",
    "gaussian(shape:L);truncated_gaussian_random(shape:L)",
    tensors=" ",
    needs_op=True,
)
def gaussian(
    shape: Any = (),
    mean: float = 0.0,
    std: float = 1.0,
    dtype: Any = "float32",
    seed: int = 0,
    a: float = -2.0,
    b: float = 2.0,
    op: Any = None,
) -> Any:
    draw = OPS["randn"](list(shape), dtype)
    if op.kind == "truncated_gaussian_random":
        draw = OPS["clip"](draw, a, b)
    return OPS["scale"](draw, std, mean)


@row("randint(ShapeTensor=shape:L, ShapeTensorList*=shape:L) {dtype:t, shape:L}", "randint(low:i, high:i, shape:L)", tensors=" ")
def randint(low: int = 0, high: int = 1, shape: Any = (), dtype: Any = "int64", seed: int = 0) -> Any:
    return OPS["randint"](low, high, list(shape), dtype)


@row("randperm() {dtype:t}", "randperm(n:i)", tensors=" ")
def randperm(n: int = 1, dtype: Any = "int64") -> Any:
    return random_functions.randperm(n, dtype)


@row("bernoulli(X)", "bernoulli(x)")
def bernoulli(x: Any) -> Any:
    return random_functions.bernoulli(x)


@row("multinomial(X)", "multinomial(x, num_samples:i)", tensors="x")
def multinomial(x: Any, num_samples: int = 1, replacement: bool = False) -> Any:
    return random_functions.multinomial(x, num_samples, replacement)


@row("gumbel_softmax(X)", "gumbel_softmax(x)")
def gumbel_softmax(x: Any, temperature: float = 1.0, hard: bool = False, axis: int = -1) -> Any:
    return OPS["gumbel_softmax"](x, temperature, hard, axis)
