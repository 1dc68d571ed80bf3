"""Events of one's own, and reading what was exported."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from ..base.errors import ArgumentTypeError, describe, message
from .events import ProfilerResult, TracerEventType
from .export import read_result
from .recording import current


class RecordEvent:
    """A stretch of a program under a name of its own, in recordings: a ``with`` block, ``begin()`` and ``end()``, or a decorated function.

    Outside of a recording it costs next to nothing.

    Args:
        name: what the tables and traces call it.
        event_type: what it is.

    Raises:
        ArgumentTypeError: the name is no string, or the type no ``TracerEventType``.

    Example:
        >>> import sampan as paddle
        >>> with paddle.profiler.Profiler(on_trace_ready=lambda p: None) as prof:
        ...     with paddle.profiler.RecordEvent("sum of squares"):
        ...         total = (paddle.ones([3]) ** 2).sum()
        >>> [e.name for e in prof.profiler_result.events if e.kind.name == "PythonUserDefined"]
        ['sum of squares']
    """

    def __init__(self, name: str, event_type: TracerEventType = TracerEventType.PythonUserDefined) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError(message(f"RecordEvent(): name is {describe(name)}", "it must be a string"))
        if not isinstance(event_type, TracerEventType):
            raise ArgumentTypeError(
                message(f"RecordEvent(): event_type is {describe(event_type)}", "it must be a TracerEventType")
            )
        self.name = name
        self.event_type = event_type
        self._begun: list[int] = []

    def begin(self) -> None:
        """The event begins now; a second begin before the end is an event inside."""
        self._begun.append(time.perf_counter_ns())

    def end(self) -> None:
        """The event that began last ends now; without one nothing happens."""
        if not self._begun:
            return
        begin_ns = self._begun.pop()
        recording = current()
        if recording is not None:
            recording.add(self.name, self.event_type, begin_ns)

    def __enter__(self) -> RecordEvent:
        self.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, each call of it an event."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with RecordEvent(self.name, self.event_type):
                return function(*args, **kwargs)

        return call


def in_profiler_mode() -> bool:
    """Whether a recording goes on."""
    return current() is not None


def load_profiler_result(filename: str) -> ProfilerResult:
    """The recording in a file that ``Profiler.export`` or one of the export handlers wrote, as JSON or protobuf.

    Raises:
        ArgumentError: the file holds something else.
        OSError: it cannot be read.

    Example:
        >>> import os, tempfile
        >>> import sampan as paddle
        >>> with paddle.profiler.Profiler(on_trace_ready=lambda p: None) as prof:
        ...     y = paddle.ones([2]) + 1
        >>> path = os.path.join(tempfile.mkdtemp(), "trace.json")
        >>> prof.export(path)
        >>> paddle.profiler.load_profiler_result(path).events == prof.profiler_result.events
        True
    """
    return read_result(filename)
