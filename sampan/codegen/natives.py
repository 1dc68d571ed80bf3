"""Which primitives the runtime's natives compute, and how they are spelled there. docs/design/003-natives.md is the contract."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import _rt
from ..ir.program import Op
from ..ops.primitives.core import PRIMITIVES
from .places import Place, axis_order, row_major, strides_in_order


@dataclass(frozen=True, slots=True)
class Native:
    """A native's name and the attributes of one call."""

    name: str
    attributes: dict[str, Any]


Spelling = Callable[[Op], Native]


@functools.cache
def _names() -> frozenset[str]:
    return frozenset(_rt.native_names())


#: Primitives whose native may write into the memory of its first operand.
IN_PLACE_NATIVES = frozenset({"scatter", "scatter_elements", "scatter_nd"})


def native_of(op: Op) -> Native | None:
    """The native call that computes the Op, or None when no native does."""
    if PRIMITIVES[op.name].family not in ("native", "move") or not _takes(op):
        return None
    spell = _SPELLINGS.get(op.name)
    native = spell(op) if spell is not None else Native(op.name, dict(op.attributes))
    if native.name not in _names():
        return None
    return Native(native.name, {name: _plain(value) for name, value in native.attributes.items() if value is not None})


def output_strides(op: Op, number: int, inputs: list[Place]) -> tuple[int, ...]:
    """The strides of a native's output: channels-last for convolutions, which run fastest so;
    for pooling when an operand is so, else as the first operand; row-major otherwise.
    """
    shape = op.outputs[number].shape
    if op.name in CHANNELS_LAST:
        return strides_in_order(shape, (0, *range(2, len(shape)), 1))
    if op.name in AS_OPERAND:
        orders = [axis_order(place.shape, place.strides) for place in inputs]
        last = (0, *range(2, len(shape)), 1)
        if orders[0] is not None:
            return strides_in_order(shape, last if last in orders else orders[0])
    return row_major(shape)


def _takes(op: Op) -> bool:
    if op.outputs[0].dtype != "bool":
        return True
    return op.name.startswith("gather") or op.attributes.get("mode") == "set"


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else list(value) if isinstance(value, tuple) else value


def _without(attributes: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if name not in names}


def _pool(direction: str, kind: str, **more: Any) -> Spelling:
    def spell(op: Op) -> Native:
        prefix = "" if "kernel" in op.attributes else "adaptive_"
        attributes = _without(op.attributes, "sizes", "input_shape") | {"kind": kind} | more
        if prefix:
            attributes = {"kind": kind} | more
        return Native(f"{prefix}pool_{direction}", attributes)

    return spell


#: Operators whose results lie channels-last, and those whose results lie as their first operand does.
CHANNELS_LAST = ("conv", "conv_backward_data")
AS_OPERAND = ("max_pool", "avg_pool", "avg_pool_backward", "max_unpool", "after")
#: Operators whose last result natives leave out where nothing reads it, and the attribute that says so.
OPTIONAL_LAST_RESULT = {"max_pool": "with_indices"}
_SPELLINGS: dict[str, Spelling] = {
    "conv": lambda op: Native("conv_forward", dict(op.attributes)),
    "conv_backward_data": lambda op: Native(op.name, _without(op.attributes, "input_shape")),
    "conv_backward_weights": lambda op: Native(op.name, _without(op.attributes, "weight_shape")),
    "max_pool": _pool("forward", "max", with_indices=1),
    "avg_pool": _pool("forward", "avg"),
    "avg_pool_backward": _pool("backward", "avg"),
    # positions say where each gradient goes, so the windows do not matter: the adaptive form takes none
    "max_unpool": lambda op: Native("adaptive_pool_backward", {"kind": "max", "with_indices": 1}),
}
