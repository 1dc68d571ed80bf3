"""Recording: the runtime's calls and instructions, and the spans of Python's side, from start to stop."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from .. import _rt
from ..tensor.runtime import memory_stats
from .events import Event, ProfilerResult, TracerEventType

_INSTRUCTIONS = ("kernel ", "native ", "host ")
_KINDS = {kind.name: kind for kind in TracerEventType}

#: The recording that goes on; the runtime has one recorder.
_current: Recording | None = None


def current() -> Recording | None:
    """The recording that goes on; None when there is none."""
    return _current


class _Span:
    __slots__ = ("begin_ns", "kind", "name", "recording")

    def __init__(self, recording: Recording, kind: TracerEventType, name: str) -> None:
        self.recording, self.kind, self.name = recording, kind, name

    def __enter__(self) -> None:
        self.begin_ns = time.perf_counter_ns()

    def __exit__(self, *error: object) -> None:
        self.recording.add(self.name, self.kind, self.begin_ns)


class Recording:
    """One recording of this process.

    Args:
        instructions: record what Plans are made of, beside the operators.
        memory: note the bytes allocated before and after each operator and instruction.
        shapes: note the operands of each operator's call.
    """

    def __init__(self, instructions: bool = True, memory: bool = False, shapes: bool = False) -> None:
        self._options = (instructions, memory, shapes)
        self._spans: list[tuple[str, TracerEventType, int, int, int]] = []
        self.is_running = False

    def start(self) -> None:
        """Begin; another recording that goes on ends without a result."""
        global _current
        self._cpu = _cpu_times()
        self.is_running = True
        self._started_ns = time.perf_counter_ns()
        _current = self
        _rt.start_profile(*self._options)

    def span(self, kind: str, name: str) -> _Span:
        """A span of the framework's own parts; see ``base.spans``."""
        return _Span(self, _KINDS[kind], name)

    def add(self, name: str, kind: TracerEventType, begin_ns: int) -> None:
        """An event of this thread that began then and ends now; one that began before the recording is not of it."""
        if begin_ns >= self._started_ns:
            self._spans.append((name, kind, begin_ns, time.perf_counter_ns(), threading.get_ident()))

    def stop(self, span_index: int = 0) -> ProfilerResult:
        """End, and give what was recorded."""
        global _current
        calls = _rt.stop_profile() if _current is self else []
        if _current is self:
            _current = None
        self.is_running = False
        before, after = self._cpu, _cpu_times()
        events = [Event(*span) for span in self._spans] + [_event(*call) for call in calls]
        events.sort(key=lambda e: (e.begin_ns, -e.end_ns))
        names = {t.ident: t.name for t in threading.enumerate()}
        threads = {t: names.get(t, f"thread {t}") for t in dict.fromkeys(e.thread for e in events)}
        memory = {k: v for k, v in memory_stats().items() if k.endswith("_bytes")}
        # the allocator tells of small blocks late
        memory["peak_allocated_bytes"] = max([memory["peak_allocated_bytes"], *(max(e.begin_bytes, e.end_bytes) for e in events)])
        return ProfilerResult(events, threads, memory, _cpu_shares(before, after), span_index, self._options[1])


def _event(
    name: str, begin_ns: int, end_ns: int, thread: int, begin_bytes: int = 0, end_bytes: int = 0, shapes: str = ""
) -> Event:
    is_instruction = name.startswith(_INSTRUCTIONS)
    kind = TracerEventType.Kernel if is_instruction else TracerEventType.Operator
    return Event(name, kind, begin_ns, end_ns, thread, shapes, begin_bytes, end_bytes)


def _cpu_times() -> dict[str, float]:
    """Seconds: elapsed, of this process on all processors, and the system's busy and whole ones."""
    used = os.times()
    found = {"elapsed": time.perf_counter(), "process": used.user + used.system}
    try:
        with open("/proc/stat", encoding="ascii") as file:
            numbers = [float(n) for n in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return found
    return {**found, "whole": sum(numbers), "idle": numbers[3] + numbers[4]}


def _cpu_shares(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    spent: dict[str, Any] = {k: after[k] - before[k] for k in before if k in after}
    shares = {}
    if spent["elapsed"] > 0:
        shares["CPU(Process)"] = 100 * spent["process"] / spent["elapsed"] / (os.cpu_count() or 1)
    if spent.get("whole"):
        shares["CPU(System)"] = 100 * (1 - spent["idle"] / spent["whole"])
    return shares
