"""Tables of a recording: processors, kinds of work, phases of steps, operators, kernels, memory, events of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..base.errors import ArgumentError, ArgumentTypeError, describe, message
from .events import Event, ProfilerResult, Spans, TracerEventType, merged_ns, nested
from .flops import flops_of


class SortedKeys(Enum):
    """The column that a table's rows are sorted by. The GPU's stand for the CPU's: this build has no other device."""

    CPUTotal = 0
    CPUAvg = 1
    CPUMax = 2
    CPUMin = 3
    GPUTotal = 4
    GPUAvg = 5
    GPUMax = 6
    GPUMin = 7


class SummaryView(Enum):
    """The tables of a summary."""

    DeviceView = 0
    OverView = 1
    ModelView = 2
    DistributedView = 3
    KernelView = 4
    OperatorView = 5
    MemoryView = 6
    MemoryManipulationView = 7
    UDFView = 8


_UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
_PHASES = (TracerEventType.Dataloader, TracerEventType.Forward, TracerEventType.Backward, TracerEventType.Optimization)
_OWN = (TracerEventType.PythonUserDefined, TracerEventType.UserDefined, TracerEventType.PythonOp)
_MOVES = ("native copy", "kernel copy")
_ALL_THREADS = -1


@dataclass
class Row:
    """The events of one name. ``inner``: rows of the instructions inside them."""

    name: str
    events: list[Event] = field(default_factory=list)
    inner: dict[str, Row] = field(default_factory=dict)

    @property
    def total_ns(self) -> int:
        """The time of all of them."""
        return sum(e.duration_ns for e in self.events)

    @property
    def grown_bytes(self) -> int:
        """How much more memory was in use after them than before."""
        return sum(e.end_bytes - e.begin_bytes for e in self.events)

    def key(self, by: SortedKeys) -> float:
        """What it is sorted by; the largest comes first."""
        times = [e.duration_ns for e in self.events] or [0]
        values: Sequence[float] = (self.total_ns, self.total_ns / len(times), max(times), min(times))
        return values[by.value % len(values)]


def rows_of(events: Iterable[Event]) -> dict[str, Row]:
    """The events by their names."""
    rows: dict[str, Row] = {}
    for event in events:
        rows.setdefault(event.name, Row(event.name)).events.append(event)
    return rows


def operator_rows(events: Iterable[Event]) -> dict[str, Row]:
    """Operators and backward nodes by name, each with the instructions that ran inside."""
    rows: dict[str, Row] = {}
    chosen = [e for e in events if e.kind in (TracerEventType.Operator, TracerEventType.Kernel)]
    for event, outer in nested(chosen):
        if event.kind is TracerEventType.Operator:
            rows.setdefault(event.name, Row(event.name)).events.append(event)
        elif outer is not None and outer.kind is TracerEventType.Operator:
            inner = rows[outer.name].inner
            inner.setdefault(event.name, Row(event.name)).events.append(event)
    return rows


def tables(
    result: ProfilerResult,
    sorted_by: SortedKeys = SortedKeys.CPUTotal,
    op_detail: bool = True,
    thread_sep: bool = False,
    time_unit: str = "ms",
    views: SummaryView | Sequence[SummaryView] | None = None,
    with_flops: bool = False,
) -> str:
    """The tables of the recording as text; see ``Profiler.summary``."""
    if time_unit not in _UNITS:
        raise ArgumentError(message(f"summary(): time_unit is {time_unit!r}", f"it must be one of {', '.join(_UNITS)}"))
    if not isinstance(sorted_by, SortedKeys):
        raise ArgumentTypeError(message(f"summary(): sorted_by is {describe(sorted_by)}", "it must be one of SortedKeys"))
    wanted = list(SummaryView) if views is None else [views] if isinstance(views, SummaryView) else list(views)
    for view in wanted:
        if not isinstance(view, SummaryView):
            raise ArgumentTypeError(message(f"summary(): views holds {describe(view)}", "it must hold members of SummaryView"))
    made = _Tables(result, sorted_by, op_detail, thread_sep, time_unit, with_flops)
    parts = (made.table_of(view) for view in SummaryView if view in wanted)
    return "\n".join(part for part in parts if part)


class _Tables:
    def __init__(
        self, result: ProfilerResult, sorted_by: SortedKeys, op_detail: bool, thread_sep: bool, unit: str, with_flops: bool
    ) -> None:
        self.result, self.sorted_by, self.op_detail, self.thread_sep = result, sorted_by, op_detail, thread_sep
        self.unit, self.with_flops = unit, with_flops
        steps = result.of_kind(TracerEventType.ProfileStep)
        self.whole_ns = sum(e.duration_ns for e in steps) or merged_ns(result.events)

    def table_of(self, view: SummaryView) -> str:
        """The table; "" when it would be empty."""
        makers: dict[SummaryView, Callable[[], str]] = {
            SummaryView.DeviceView: self._devices,
            SummaryView.OverView: self._overview,
            SummaryView.ModelView: self._model,
            SummaryView.DistributedView: lambda: self._plain("Distribution", self.result.of_kind(TracerEventType.Communication)),
            SummaryView.KernelView: lambda: self._plain("Kernel", self.result.of_kind(TracerEventType.Kernel)),
            SummaryView.OperatorView: self._operators,
            SummaryView.MemoryView: self._memory,
            SummaryView.MemoryManipulationView: lambda: self._plain("Memory Manipulation", self._moves()),
            SummaryView.UDFView: lambda: self._plain("UserDefined", self.result.of_kind(*_OWN)),
        }
        return makers[view]()

    # ------------------------------------------------------------------ cells

    def _time(self, ns: float) -> str:
        return f"{ns / _UNITS[self.unit]:.3f}"

    def _times(self, row: Row, whole_ns: float) -> str:
        times = [e.duration_ns for e in row.events]
        total = sum(times)
        cells = [self._time(v) for v in (total, total / len(times), max(times), min(times))]
        return " / ".join([*cells, _percent(total, whole_ns)])

    def _sorted(self, rows: Iterable[Row]) -> list[Row]:
        return sorted(rows, key=lambda r: -r.key(self.sorted_by))

    def _by_thread(self, events: Sequence[Event]) -> list[tuple[str, list[Event]]]:
        if not self.thread_sep:
            return [("Thread: All threads merged", list(events))]
        threads = dict.fromkeys(e.thread for e in events)
        names = {t: f"Thread: {t} ({self.result.threads.get(t, '?')})" for t in threads}
        return [(names[t], [e for e in events if e.thread == t]) for t in threads]

    # ------------------------------------------------------------------ tables

    def _devices(self) -> str:
        rows = [(name, f"{share:.2f}") for name, share in self.result.cpu.items()]
        return _table("Device Summary", ("Device", "Utilization (%)"), rows, "")

    def _overview(self) -> str:
        found = [(kind, self.result.of_kind(kind)) for kind in TracerEventType]
        timed = [(kind.name, len(events), merged_ns(events)) for kind, events in found if events]
        timed.sort(key=lambda r: (r[0] != "ProfileStep", -r[2]))
        rows = [
            (name if name == "ProfileStep" else f"  {name}", str(count), self._time(ns), _percent(ns, self.whole_ns))
            for name, count, ns in timed
        ]
        return _table("Overview Summary", ("Event Type", "Calls", "CPU Time", "Ratio (%)"), rows, f"Time unit: {self.unit}")

    def _model(self) -> str:
        steps = Row("ProfileStep", self.result.of_kind(TracerEventType.ProfileStep))
        if not steps.events:
            return ""
        rows = [(steps.name, str(len(steps.events)), self._times(steps, self.whole_ns))]
        covered, spans = 0, Spans(steps.events)
        for kind in _PHASES:
            outermost = [e for e, outer in nested(self.result.of_kind(kind)) if outer is None and spans.at(e.begin_ns)]
            if outermost:
                row = Row(kind.name, outermost)
                rows.append((f"  {kind.name}", str(len(outermost)), self._times(row, self.whole_ns)))
                covered += row.total_ns
        rest = max(self.whole_ns - covered, 0)
        rows.append(("  Others", "-", f"{self._time(rest)} / - / - / - / {_percent(rest, self.whole_ns)}"))
        return _table("Model Summary", ("Name", "Calls", _TIMES), rows, f"Time unit: {self.unit}")

    def _operators(self) -> str:
        chosen = self.result.of_kind(TracerEventType.Operator, TracerEventType.Kernel)
        parts: list[Any] = []
        for title, events in self._by_thread(chosen):
            rows = operator_rows(events)
            whole = sum(r.total_ns for r in rows.values())
            if not rows:
                continue
            parts.append(title)
            for row in self._sorted(rows.values()):
                parts.append(self._operator_cells(row, "", whole))
                for inner in self._sorted(row.inner.values()) if self.op_detail else ():
                    parts.append(self._operator_cells(inner, "  ", row.total_ns))
        head = ("Name", "Calls", _TIMES, *(("FLOPs",) if self.with_flops else ()))
        return _table("Operator Summary", head, parts, f"Time unit: {self.unit}")

    def _operator_cells(self, row: Row, indent: str, whole_ns: float) -> tuple[str, ...]:
        cells = (f"{indent}{row.name}", str(len(row.events)), self._times(row, whole_ns))
        if not self.with_flops:
            return cells
        return (*cells, "-" if indent else str(sum(flops_of(e.name, e.shapes) for e in row.events)))

    def _plain(self, title: str, events: Sequence[Event]) -> str:
        parts: list[Any] = []
        for thread, own in self._by_thread(events):
            if own:
                parts.append(thread)
                parts += [
                    (r.name, str(len(r.events)), self._times(r, self.whole_ns)) for r in self._sorted(rows_of(own).values())
                ]
        return _table(f"{title} Summary", ("Name", "Calls", _TIMES), parts, f"Time unit: {self.unit}")

    def _moves(self) -> list[Event]:
        return [e for e in self.result.of_kind(TracerEventType.Kernel) if e.name.startswith(_MOVES)]

    def _memory(self) -> str:
        if not self.result.has_memory:
            return ""
        rows = sorted(rows_of(self.result.of_kind(TracerEventType.Operator)).values(), key=lambda r: -r.grown_bytes)
        cells = [
            (r.name, str(len(r.events)), str(r.grown_bytes), str(max(e.end_bytes - e.begin_bytes for e in r.events)))
            for r in rows
        ]
        peaks = self.result.memory
        told = (
            f"Peak Allocated Memory: {peaks['peak_allocated_bytes']}\nPeak Reserved Memory: {peaks['peak_reserved_bytes']}\n"
            "Unit: bytes"
        )
        return _table("Memory Summary - Place(cpu)", ("Name", "Calls", "Increased Size", "Largest Increase"), cells, told)


_TIMES = "CPU Total / Avg / Max / Min / Ratio(%)"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}" if whole else "0.00"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str] | str], told: str) -> str:
    """A table with a title, a line above it, and rows; a string among the rows is a heading across."""
    cells = [row for row in rows if not isinstance(row, str)]
    if not cells:
        return ""
    widths = [max(len(row[k]) for row in (head, *cells)) for k in range(len(head))]
    across = sum(widths) + 2 * (len(widths) - 1)
    rule = "  ".join("-" * w for w in widths)
    lines = [title.center(across, "-"), *([told] if told else []), rule, _line(head, widths), rule]
    for row in rows:
        lines.append(row.center(across, "-") if isinstance(row, str) else _line(row, widths))
    return "\n".join([*lines, rule, ""])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(w) for cell, w in zip(cells, widths, strict=True)).rstrip()
