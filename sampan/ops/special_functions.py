"""Gamma functions of two arguments and their kin."""

from __future__ import annotations

import math

from ..base.errors import ArgumentError
from ..base.lazy import scipy_special as special
from . import primitives as p
from .arguments import floating
from .define import op
from .elementwise import matched_floating
from .primitives import add, lgamma, sub
from .samples import positive


@op(
    "polygamma",
    operands=("x",),
    method=True,
    inplace=True,
    reference=lambda x, n: special.polygamma(n, x) if n else special.digamma(x),
    samples=[(positive(3, 4), 1), (positive(3), 3), (positive(3), 0)],
    tolerance=5,
)
def polygamma(x, n):
    """The derivative of order n of digamma, n >= 0."""
    if n < 0:
        raise ArgumentError(f"polygamma(): n is {n}; it must not be negative")
    x = floating(x)
    return p.digamma(x) if n == 0 else p.polygamma(x, order=int(n))


@op(
    "multigammaln",
    operands=("x",),
    method=True,
    inplace=True,
    reference=lambda x, p: special.multigammaln(x, p),
    samples=[(positive(3, 4, low=2.5, high=4), 3)],
    tolerance=5,
    tests="noshape noempty",
)
def multigammaln(x, p):
    """The logarithm of the multivariate gamma function of dimension p; x > (p - 1) / 2."""
    if not isinstance(p, int) or not 1 <= p <= 1000:
        raise ArgumentError(f"multigammaln(): p is {p!r}; it must be an integer in [1, 1000]")
    x = floating(x)
    total = add(lgamma(x), p * (p - 1) / 4 * math.log(math.pi))
    for j in range(1, p):
        total = add(total, lgamma(sub(x, j / 2)))
    return total


@op(
    "gammainc",
    method=True,
    inplace=True,
    reference=special.gammainc,
    samples=[(positive(3, 4), positive(3, 4)), (positive(3, 1), 1.5)],
    tolerance=20,
)
def gammainc(x, y):
    """The regularized lower incomplete gamma function of shape x at y."""
    return p.gammainc(*matched_floating(x, y))


@op(
    "gammaincc",
    method=True,
    inplace=True,
    reference=special.gammaincc,
    samples=[(positive(3, 4), positive(3, 4)), (positive(3, 1), 1.5)],
    tolerance=20,
)
def gammaincc(x, y):
    """The regularized upper incomplete gamma function of shape x at y: 1 - gammainc(x, y)."""
    return p.gammaincc(*matched_floating(x, y))
