"""Checks as values: what uses the checked value runs after the check, and never with a bad one."""

from __future__ import annotations

import numpy as np

from ...ir.program import Value
from . import moves
from .core import Array, append, primitive


@primitive("move", lambda op: [("int64", op.inputs[0].shape)], name="check_index")
def _check_index(index: Array, size: int, allow_negative: bool) -> Array:
    return moves.check_index("index", index, size, allow_negative).astype(np.int64)


def checked_index(index: Value, size: int, allow_negative: bool = True) -> Value:
    """The indices as int64, negative ones counted from the end; raises IndexRangeError for one outside an axis of ``size``."""
    return append("check_index", index, size=size, allow_negative=allow_negative)


__all__ = ["checked_index"]
