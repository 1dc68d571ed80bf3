"""The progress of a loop: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

import numpy as np

_BAR_CELLS = 30


def format_value(value: Any) -> str:
    """A number with four digits; very small ones in powers of ten. Lists are their items with spaces."""
    if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value):
        return " ".join(format_value(item) for item in value)
    if isinstance(value, (float, np.floating)) or (
        np.ndim(value) == 0 and hasattr(value, "item") and isinstance(value.item(), float)
    ):
        number = float(value)
        return f"{number:.4f}" if number == 0 or abs(number) > 1e-3 else f"{number:.4e}"
    return str(value)


def format_seconds(seconds: float) -> str:
    """45s, 3:07 or 2:03:07."""
    whole = int(seconds + 0.5)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours}:{minutes:02d}:{whole % 60:02d}"
    return f"{minutes}:{whole % 60:02d}" if minutes else f"{whole}s"


class Progress:
    """Shows one loop.

    Args:
        steps: how many steps it has; None when that is not known.
        is_live: draw one line again and again; otherwise each ``show`` prints a line. On what is no terminal, lines are printed.
        stream: where to write; the standard output when it is None.
    """

    def __init__(self, steps: int | None, is_live: bool, stream: TextIO | None = None) -> None:
        self.steps = steps
        self.stream = sys.stdout if stream is None else stream
        self.is_live = is_live and getattr(self.stream, "isatty", lambda: False)()
        self.begin = time.perf_counter()
        self.samples = 0
        self._drawn = 0

    def show(self, step: int, values: Mapping[str, Any], is_last: bool = False) -> None:
        """Show that ``step`` steps are done, with these values."""
        passed = time.perf_counter() - self.begin
        parts = [f"step {step}/{self.steps}" if self.steps else f"step {step}"]
        if self.is_live and self.steps:
            parts[0] += f" [{self._bar(step)}]"
        parts += [f"{name}: {format_value(value)}" for name, value in values.items()]
        parts.append(self._per_step(passed / max(step, 1)))
        if self.samples and passed > 0:
            parts.append(f"{self.samples / passed:,.0f} samples/s")
        if self.steps and step < self.steps and not is_last:
            parts.append(f"ETA: {format_seconds(passed / max(step, 1) * (self.steps - step))}")
        self._write(" - ".join(parts), is_last)

    def _bar(self, step: int) -> str:
        done = min(_BAR_CELLS, _BAR_CELLS * step // max(self.steps or 1, 1))
        return "=" * _BAR_CELLS if done >= _BAR_CELLS else "=" * max(done - 1, 0) + ">" + "." * (_BAR_CELLS - max(done, 1))

    @staticmethod
    def _per_step(seconds: float) -> str:
        if seconds >= 1:
            return f"{seconds:.0f}s/step"
        return f"{seconds * 1e3:.0f}ms/step" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us/step"

    def _write(self, line: str, is_last: bool) -> None:
        if not self.is_live:
            print(line, file=self.stream, flush=True)
            return
        width = shutil.get_terminal_size().columns
        line = line if len(line) < width else line[: width - 4] + "..."  # a line that wraps could not be drawn again
        self.stream.write("\r" + line.ljust(self._drawn) + ("\n" if is_last else ""))
        self.stream.flush()
        self._drawn = 0 if is_last else len(line)
