"""What in-place forms of operators may not change of their tensor."""

from __future__ import annotations

from typing import Any

from ..base.errors import DTypeError, ShapeError, message
from ..ops.define import OpDef

#: In-place forms that change the dtype: they give their tensor new memory.
_REBINDING = frozenset({"cast"})


def rebinds(definition: OpDef) -> bool:
    """Whether the operator's in-place form gives its tensor another layout or memory, in place of writing into it."""
    return definition.is_view or definition.name in _REBINDING


def check_inplace(name: str, definition: OpDef, target: Any, result: Any) -> None:
    """Raise where the result of the in-place form ``name`` does not fit its tensor; sizes of -1 fit any."""
    shapes = list(result.shape), list(target.shape)
    if len(shapes[0]) != len(shapes[1]) or any(a != b and -1 not in (a, b) for a, b in zip(*shapes, strict=True)):
        raise ShapeError(
            message(
                f"{name}(): the result has shape {shapes[0]} and x {shapes[1]}",
                "an in-place operator cannot change the shape of its tensor",
                f"use {definition.name}() without the underscore",
            )
        )
    if result.dtype != target.dtype:
        raise DTypeError(
            message(
                f"{name}(): the result is {result.dtype} and x {target.dtype}",
                "an in-place operator cannot change the dtype of its tensor",
                f"use {definition.name}() without the underscore, or cast x first",
            )
        )
