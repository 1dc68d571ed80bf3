"""Throughput: what the reader and whole steps cost, and samples per second, between calls and over a whole run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class _Step:
    reader_s: float
    batch_s: float
    samples: int | None


@dataclass
class Event:
    """The steps of a run that was timed."""

    steps: list[_Step] = field(default_factory=list)
    has_reader: bool = False
    since: int = 0  #: the first step that ``step_info`` has not told of

    def recent(self) -> list[_Step]:
        """The steps since the last ``reset``."""
        return self.steps[self.since :]

    def reset(self) -> None:
        """Count averages from here on."""
        self.since = len(self.steps)

    def reader_average(self) -> float:
        """Seconds that reading took, of a step since the last ``reset``."""
        return _mean([s.reader_s for s in self.recent()])

    def batch_average(self) -> float:
        """Seconds of a step since the last ``reset``."""
        return _mean([s.batch_s for s in self.recent()])

    def speed_average(self) -> float:
        """Samples, or steps when their number is not told, of a second since the last ``reset``."""
        return _speed(self.recent())

    def get_summary(self) -> dict[str, dict[str, float]]:
        """The average, maximum and minimum of ``reader``, ``batch`` and ``ips`` over all steps."""
        speeds = [_speed([s]) for s in self.steps]
        columns = {"batch": [s.batch_s for s in self.steps], "ips": speeds}
        if self.has_reader:
            columns = {"reader": [s.reader_s for s in self.steps], **columns}
        found = {k: {"avg": _mean(v), "max": max(v, default=0.0), "min": min(v, default=0.0)} for k, v in columns.items()}
        found["ips"]["avg"] = _speed(self.steps)
        return found

    @property
    def unit(self) -> str:
        """What is counted: samples, when every step told how many it had."""
        return "samples" if self.steps and all(s.samples is not None for s in self.steps) else "steps"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _speed(steps: Sequence[_Step]) -> float:
    seconds = sum(s.batch_s for s in steps)
    count = sum(s.samples for s in steps) if all(s.samples is not None for s in steps) else len(steps)  # type: ignore[misc]
    return count / seconds if seconds > 0 else 0.0


class Benchmark:
    """Times steps and the reading of their data.

    Example:
        >>> from sampan.profiler.timer import Benchmark
        >>> timer = Benchmark()
        >>> timer.begin()
        >>> timer.step(num_samples=4)
        >>> timer.step_info("images").split()[-1]
        'images/s'
    """

    def __init__(self) -> None:
        self.current_event: Event | None = None
        self._unit = ""
        self._step_began = self._reader_began = self._reader_s = 0.0

    def begin(self) -> None:
        """Time steps from now on."""
        self.current_event = Event()
        self._unit, self._reader_s = "", 0.0
        self._step_began = time.perf_counter()

    def before_reader(self) -> None:
        """Data are read from now on."""
        self._reader_began = time.perf_counter()

    def after_reader(self) -> None:
        """They are read."""
        self._reader_s += time.perf_counter() - self._reader_began
        if self.current_event is not None:
            self.current_event.has_reader = True

    def step(self, num_samples: int | None = None) -> None:
        """A step ends, and the next begins."""
        now = time.perf_counter()
        if self.current_event is not None:
            self.current_event.steps.append(_Step(self._reader_s, now - self._step_began, num_samples))
        self._step_began, self._reader_s = now, 0.0

    def step_info(self, unit: str | None = None) -> str:
        """The averages over the steps since it was asked before; "" when there are none."""
        event = self.current_event
        if event is None or not event.recent():
            return ""
        reader = f" reader_cost: {event.reader_average():.5f} s" if event.has_reader else ""
        self._unit = self._name(event, unit)
        text = f"{reader} batch_cost: {event.batch_average():.5f} s ips: {event.speed_average():.3f} {self._unit}/s"
        event.reset()
        return text

    @staticmethod
    def _name(event: Event, unit: str | None) -> str:
        return unit if unit is not None and event.unit == "samples" else event.unit

    def end(self) -> None:
        """Stop timing."""
        self.current_event = None

    def summary(self) -> str:
        """The table of all steps; "" without any."""
        event = self.current_event
        if event is None or not event.steps:
            return ""
        found = event.get_summary()
        lines = ["Perf Summary".center(100, "=")]
        if event.has_reader:
            share = sum(s.reader_s for s in event.steps) / max(sum(s.batch_s for s in event.steps), 1e-12)
            lines.append(f"Reader Ratio: {100 * share:.3f}%")
        lines.append(f"Time Unit: s, IPS Unit: {self._unit or event.unit}/s")
        lines.append(_row("", *found["batch"]))
        for key, name in (("reader", "reader_cost"), ("batch", "batch_cost"), ("ips", "ips")):
            if key in found:
                lines.append(_row(name, *(f"{v:.5f}" for v in found[key].values())))
        return "\n".join(lines)


def _row(*cells: str) -> str:
    return f"|{'|'.join(cell.center(17) for cell in cells)}|"


_BENCHMARK = Benchmark()


def benchmark() -> Benchmark:
    """The timer that profilers share."""
    return _BENCHMARK
