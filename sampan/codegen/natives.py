"""Which primitives the runtime's natives compute, and how their attributes are spelled there. docs/design/003-natives.md is the contract."""

from __future__ import annotations

import functools
from typing import Any

from .. import _rt
from ..ir.program import Op

#: Families of primitives that natives serve under the primitive's own name and attributes.
_FAMILIES = ("native", "move")


@functools.cache
def _names() -> frozenset[str]:
    return frozenset(_rt.native_names())


def native_attributes(op: Op, family: str) -> dict[str, Any] | None:
    """The attributes of the native call that computes the Op, or None when no native does."""
    if family not in _FAMILIES or op.name not in _names() or not _takes(op):
        return None
    return {name: _plain(value) for name, value in op.attributes.items()}


def _takes(op: Op) -> bool:
    if op.outputs[0].dtype != "bool":
        return True
    return op.name.startswith("gather") or op.attributes.get("mode") == "set"


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else list(value) if isinstance(value, tuple) else value
