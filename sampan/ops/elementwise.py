"""Elementwise operators of two tensors, with broadcasting and type promotion."""

from __future__ import annotations

import numpy as np

from . import primitives as p
from .arguments import floating, matched
from .define import op
from .samples import positive, real

_PAIRS = [(real(3, 4), real(3, 4)), (real(2, 3, 4), real(3, 1)), (real(4), 1.5), (real(), real(2, 2))]


@op("add", method=True, inplace=True, reference=np.add, samples=_PAIRS, aliases={"input": "x", "other": "y"})
def add(x, y):
    """x + y, elementwise, with broadcasting."""
    x, y = matched(x, y)
    return p.add(x, y)


@op("subtract", method=True, inplace=True, reference=np.subtract, samples=_PAIRS, aliases={"input": "x", "other": "y"})
def subtract(x, y):
    """x - y, elementwise, with broadcasting."""
    x, y = matched(x, y)
    return p.sub(x, y)


@op("multiply", method=True, inplace=True, reference=np.multiply, samples=_PAIRS, aliases={"input": "x", "other": "y"})
def multiply(x, y):
    """x * y, elementwise, with broadcasting."""
    x, y = matched(x, y)
    return p.mul(x, y)


@op(
    "divide",
    method=True,
    inplace=True,
    reference=np.divide,
    samples=[(real(3, 4), positive(3, 4)), (real(2, 3), positive(3))],
    aliases={"input": "x", "other": "y"},
)
def divide(x, y):
    """x / y, elementwise, with broadcasting; integers divide to the default floating dtype."""
    x, y = matched(x, y)
    return p.div(floating(x), floating(y))
