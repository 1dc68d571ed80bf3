"""Messages along the edges of a graph, and reductions over segments of rows."""

from __future__ import annotations

import numpy as np

from . import primitives as p
from .arguments import promoted
from .define import op
from .samples import integer, real


def _reference(x, index, count, how="sum"):
    rows = [x[index == k] for k in range(count)]
    reduce = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}[how]
    return np.stack([reduce(r, axis=0) if len(r) else np.zeros(x.shape[1:]) for r in rows])


@op(
    operands=("x", "index"),
    reference=_reference,
    samples=[
        (real(4, 3), integer(4, low=0, high=3), 5),
        (real(4, 3), integer(4, low=0, high=3), 3, "mean"),
        (real(4, 3), integer(4, low=0, high=3), 5, "max"),
        (real(4), integer(4, low=0, high=3), 3, "min"),
    ],
    tests="noempty",
)
def rows_by_index(x, index, count, how="sum"):
    """[count, ...]: row k reduces the rows of x whose index is k, to zeros where there are none. how: sum, mean, max, min."""
    shape = (count, *x.shape[1:])
    if how in ("sum", "mean"):
        total = p.scatter(p.full(shape, 0, x.dtype), index, x, 0, "add")
        if how == "sum":
            return total
        return p.div(total, _broadcast(p.maximum(_members(index, count, x.dtype), 1), shape))
    worst = _extreme(x.dtype, how == "max")
    found = p.scatter(p.full(shape, worst, x.dtype), index, x, 0, how)
    return p.select(_broadcast(p.gt(_members(index, count, "int64"), 0), shape), found, 0)


def _members(index, count, dtype):
    return p.scatter(p.full((count,), 0, dtype), index, p.full(index.shape, 1, dtype), 0, "add")


def _broadcast(x, shape):
    return p.broadcast_to(p.reshape(x, (shape[0], *(1 for _ in shape[1:]))), shape)


def _extreme(dtype, is_lowest):
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(dtype)
        return int(limits.min if is_lowest else limits.max)
    return float("-inf") if is_lowest else float("inf")


_MESSAGES = {"add": p.add, "sub": p.sub, "mul": p.mul, "div": p.div}


@op(
    operands=("x", "y"),
    reference=lambda x, y, how: {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[how](x, y),
    samples=[(real(4, 3), real(4, 1), "mul"), (real(4, 3), real(4, 3), "sub")],
    tests="noempty",
)
def edge_messages(x, y, how="add"):
    """x and y of each edge combined, broadcast. how: add, sub, mul, div."""
    x, y = promoted(x, y)
    shape = p.broadcast_shapes(x.shape, y.shape)
    return _MESSAGES[how](p.broadcast_to(x, shape), p.broadcast_to(y, shape))
