"""Kernels' times out of a recording, for pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..events import ProfilerResult, TracerEventType, nested


def kernel_times(result: ProfilerResult, labels: Sequence[str]) -> list[float | None]:
    """The mean time of each kernel. Where one operator's call ran just these, in this order, each by its place; else by its name."""
    wanted = [_name(label) for label in labels]
    calls: dict[int, list[tuple[str, int]]] = {}
    by_name: dict[str, list[int]] = {}
    for event, outer in nested(result.of_kind(TracerEventType.Operator, TracerEventType.Kernel)):
        if event.kind is TracerEventType.Kernel:
            calls.setdefault(id(outer), []).append((_name(event.name), event.duration_ns))
            by_name.setdefault(_name(event.name), []).append(event.duration_ns)
    same = [[ns for _, ns in call] for call in calls.values() if [name for name, _ in call] == wanted]
    if same:
        return [sum(column) / len(column) for column in zip(*same, strict=True)]
    return [sum(found) / len(found) if (found := by_name.get(name)) else None for name in wanted]


def _name(label: str) -> str:
    """The label without its size: a picture's sizes may be others than a run's."""
    return re.sub(r"\[\d+\]$", "", label)
