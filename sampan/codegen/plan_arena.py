"""The memory plan: temporaries of a Plan share one arena, each for as long as instructions use it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def place_in_arena(spans: Mapping[Key, tuple[int, int, int]]) -> tuple[dict[Key, int], int]:
    """An offset for every span (first instruction, last instruction, bytes), and the arena's size.

    Spans that overlap in time do not in space. Best fit in order of time: the smallest hole that is large enough, else the end.
    """
    offsets: dict[Key, int] = {}
    holes: list[tuple[int, int]] = []  # (offset, bytes), by offset, neighbours joined
    ends: list[tuple[int, int, int]] = []  # (last instruction, offset, bytes) of what is alive
    size = 0
    for key, (first, last, wanted) in sorted(spans.items(), key=lambda item: item[1][0]):
        for end in [e for e in ends if e[0] < first]:
            ends.remove(end)
            holes = _with_hole(holes, end[1], end[2])
        fitting = min((h for h in holes if h[1] >= wanted), key=lambda h: h[1], default=None)
        if fitting is not None:
            holes.remove(fitting)
            if fitting[1] > wanted:
                holes = _with_hole(holes, fitting[0] + wanted, fitting[1] - wanted)
            offsets[key] = fitting[0]
        else:
            start = size
            if holes and sum(holes[-1]) == size:  # the last hole grows
                start = holes.pop()[0]
            offsets[key] = start
            size = start + wanted
        ends.append((last, offsets[key], wanted))
    return offsets, size


def _with_hole(holes: list[tuple[int, int]], offset: int, size: int) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, length in sorted([*holes, (offset, size)]):
        if joined and sum(joined[-1]) == start:
            joined[-1] = (joined[-1][0], joined[-1][1] + length)
        else:
            joined.append((start, length))
    return joined
