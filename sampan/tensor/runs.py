"""Operators over lists of tensors, a few at a time: a call's checks for overlapping memory grow with the square of its operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .build import OPS
from .creation import Tensor

#: The most tensors of one kind that a call takes; longer lists cost no less for each tensor.
LONGEST_RUN = 16


def runs_of(tensors: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The tensors in order, ``LONGEST_RUN`` at a time."""
    for at in range(0, len(tensors), LONGEST_RUN):
        yield tensors[at : at + LONGEST_RUN]


def squared_norm(tensors: Sequence[Tensor]) -> Tensor:
    """The sum of squares over all elements of all tensors, in float32 at least."""
    total = None
    for run in runs_of(tensors):
        part = OPS["squared_norm"](run)
        total = part if total is None else OPS["add"](total, part)
    if total is None:
        return OPS["zeros"]([], "float32")
    return total


def scaled_to_norm(tensors: Sequence[Tensor], total: Tensor, largest_norm: float) -> list[Tensor]:
    """The tensors, whose squared norm is ``total``, scaled by one factor so that their norm is at most ``largest_norm``."""
    return [t for run in runs_of(tensors) for t in OPS["scaled_to_norm"](run, total, largest_norm)]


def unscale(tensors: Sequence[Any], inverse: Any) -> Tensor:
    """Multiply the tensors in place by a number; whether all of their elements are finite."""
    total = None
    for run in runs_of(tensors):
        part = OPS["unscale_step"](run, inverse)[1]
        total = part if total is None else OPS["logical_and"](total, part)
    if total is None:
        return OPS["ones"]([], "bool")
    return total
