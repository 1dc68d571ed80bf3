"""Where values live: strided views of buffers, and what the view primitives do to them without moving data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(eq=False, slots=True)
class Buffer:
    """A block of memory that a Plan's instructions name.

    kind: ``input``, ``constant``, ``temporary`` or ``result``; number: which of its kind.
    """

    kind: str
    number: int
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """A value's elements: those of a buffer from ``offset`` on, by ``strides``; both count elements."""

    buffer: Buffer
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor without gaps, last axis fastest."""
    return strides_in_order(shape, range(len(shape)))


def strides_in_order(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor without gaps whose slowest axis is order[0] and fastest order[-1]."""
    strides, step = [0] * len(shape), 1
    for k in reversed(order):
        strides[k] = step
        step *= max(shape[k], 1)
    return tuple(strides)


def is_row_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements lie without gaps, last axis fastest; axes of length 1 may have any stride."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


def axis_order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """The axes, slowest first, when the elements lie without gaps in that order; None when they do not.

    Axes of length 1 keep their position.
    """
    step = 1
    wide = sorted((k for k, n in enumerate(shape) if n != 1), key=lambda k: strides[k])
    for k in wide:
        if strides[k] != step:
            return None
        step *= shape[k]
    slowest_first = reversed(wide)
    return tuple(next(slowest_first) if n != 1 else k for k, n in enumerate(shape))


def same_elements(a: Place, b: Place) -> bool:
    """Whether two places show the same elements in the same order."""
    if a.buffer is not b.buffer or a.dtype != b.dtype or a.shape != b.shape:
        return False
    if 0 in a.shape:
        return True
    return a.offset == b.offset and all(n == 1 or s == t for n, s, t in zip(a.shape, a.strides, b.strides, strict=True))


def reshaped_strides(shape: Sequence[int], strides: Sequence[int], new_shape: Sequence[int]) -> tuple[int, ...] | None:
    """The strides that show the same elements in another shape, or None when no strides can."""
    if 0 in shape:
        return row_major(new_shape)
    runs: list[tuple[int, int]] = []  # (length, stride) of neighbouring axes that one stride walks, slowest first
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == stride * size:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    result: list[int] = []
    length, stride = 1, 1
    for size in reversed(new_shape):
        if size != 1 and length == 1:
            length, stride = runs.pop()
        if length % size:
            return None
        result.append(stride)
        length //= size
        stride *= size
    return tuple(reversed(result))


def view_of(place: Place, name: str, attributes: dict[str, Any], shape: tuple[int, ...]) -> Place | None:
    """The place of a view primitive's result over its operand's; None when strides cannot express it."""
    strides, offset = place.strides, place.offset
    if name == "reshape":
        found = reshaped_strides(place.shape, strides, shape)
        if found is None:
            return None
        strides = found
    elif name == "transpose":
        strides = tuple(strides[k] for k in attributes["order"])
    elif name == "broadcast_to":
        lead = len(shape) - len(place.shape)
        strides = (0,) * lead + tuple(0 if n == 1 else s for n, s in zip(place.shape, strides, strict=True))
    elif name == "slice":
        starts, steps = attributes["starts"], attributes["steps"]
        if 0 not in shape:
            offset += sum(a * s for a, s in zip(starts, strides, strict=True))
        strides = tuple(a * s for a, s in zip(steps, strides, strict=True))
    elif name != "detach":
        return None
    return Place(place.buffer, place.dtype, shape, strides, offset)
