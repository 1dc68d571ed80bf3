"""What a recording holds: events with a kind, a thread and a time, and samples of memory."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class TracerEventType(Enum):
    """What an event is. Several kinds have no part on a CPU and are there for programs that name them."""

    Operator = 0
    Dataloader = 1
    ProfileStep = 2
    CudaRuntime = 3
    Kernel = 4
    Memcpy = 5
    Memset = 6
    UserDefined = 7
    OperatorInner = 8
    Forward = 9
    Backward = 10
    Optimization = 11
    Communication = 12
    PythonOp = 13
    PythonUserDefined = 14
    DygraphKernelLaunch = 15
    StaticKernelLaunch = 16


class Event(NamedTuple):
    """A stretch of time on a thread. ``shapes``: the operands of an operator's call; bytes: what was allocated before and after, 0 unless memory was asked for."""

    name: str
    kind: TracerEventType
    begin_ns: int
    end_ns: int
    thread: int
    shapes: str = ""
    begin_bytes: int = 0
    end_bytes: int = 0

    @property
    def duration_ns(self) -> int:
        """How long it took."""
        return self.end_ns - self.begin_ns


@dataclass
class ProfilerResult:
    """A finished recording. Times are of the machine's steady clock, in nanoseconds.

    ``threads``: names by number. ``memory``: allocated and reserved bytes, and their peaks, when it ended. ``cpu``: the process's and the system's share
    of the processors, in percent.
    """

    events: list[Event] = field(default_factory=list)
    threads: dict[int, str] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    span_index: int = 0
    has_memory: bool = False

    def get_data(self) -> list[Event]:
        """The events."""
        return self.events

    def get_span_index(self) -> int:
        """Which recording of its profiler this is, from 0."""
        return self.span_index

    def get_extra_info(self) -> dict[str, str]:
        """The threads' names and the use of the processors."""
        return {str(k): v for k, v in self.threads.items()} | {k: f"{v:.2f}" for k, v in self.cpu.items()}

    def get_version(self) -> str:
        """The version of the exported form."""
        return "1.0"

    def of_kind(self, *kinds: TracerEventType) -> list[Event]:
        """The events of these kinds, in order."""
        return [e for e in self.events if e.kind in kinds]


def nested(events: Iterable[Event]) -> Iterator[tuple[Event, Event | None]]:
    """Each event with the innermost one that contains it on its thread; in the order of beginning."""
    stacks: dict[int, list[Event]] = {}
    for event in sorted(events, key=lambda e: (e.begin_ns, -e.end_ns)):
        stack = stacks.setdefault(event.thread, [])
        while stack and stack[-1].end_ns < event.end_ns:
            stack.pop()
        yield event, stack[-1] if stack else None
        stack.append(event)


def links(events: Iterable[Event]) -> list[tuple[Event, Event]]:
    """Operators' calls with the backward of each, told by their names: the last call that has none yet is gone backward through first."""
    open_calls: dict[str, list[Event]] = {}
    found = []
    for event in sorted((e for e in events if e.kind is TracerEventType.Operator), key=lambda e: e.begin_ns):
        forward = open_calls.get(event.name.removesuffix("_grad")) if event.name.endswith("_grad") else None
        if forward:
            found.append((forward.pop(), event))
        elif not event.name.endswith("_grad"):
            open_calls.setdefault(event.name, []).append(event)
    return found


def merged_ns(events: Iterable[Event]) -> int:
    """How much time the events cover, overlaps counted once."""
    total, until = 0, -1
    for e in sorted(events, key=lambda e: e.begin_ns):
        total += max(e.end_ns - max(e.begin_ns, until), 0)
        until = max(until, e.end_ns)
    return total


class Spans:
    """Spans that do not overlap, by time: which one contains a moment."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = sorted(events, key=lambda e: e.begin_ns)
        self._begins = [e.begin_ns for e in self.events]

    def at(self, moment_ns: int) -> Event | None:
        """The span that contains the moment."""
        k = bisect.bisect_right(self._begins, moment_ns) - 1
        return self.events[k] if k >= 0 and self.events[k].end_ns >= moment_ns else None
