"""Profiler: records the steps that its schedule picks, hands recordings out, and times every step."""

from __future__ import annotations

import datetime
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..base import spans
from ..base.errors import ArgumentError, ArgumentTypeError, UnsupportedError, describe, message
from .events import ProfilerResult, TracerEventType
from .export import write_result
from .recording import Recording
from .states import ProfilerState, ProfilerTarget, make_scheduler, schedule_of
from .statistics import SortedKeys, SummaryView, tables
from .timer import Benchmark, benchmark

_RECORDED = (ProfilerState.RECORD, ProfilerState.RECORD_AND_RETURN)
_NOTHING: AbstractContextManager[Any] = nullcontext()


class _ReaderTime:
    """A read of data, for the timer and for the recording."""

    def __init__(self, timer: Benchmark, span: AbstractContextManager[Any]) -> None:
        self.timer, self.span = timer, span

    def __enter__(self) -> None:
        self.timer.before_reader()
        self.span.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.span.__exit__(*error)
        self.timer.after_reader()


class Profiler:
    """Records what a program's steps are made of: operators, their backward, the instructions of compiled Plans, layers, data loading, events of one's own.

    ``step()`` at each step's end moves the schedule on. Where a state is RECORD_AND_RETURN, or at ``stop()``, the recording is in ``profiler_result`` and
    ``on_trace_ready`` is called. Every step is timed besides; see ``step_info``.

    Args:
        targets: whose work is recorded; the CPU's is all there is here, others are warned about.
        scheduler: a pair (first step, step after the last), or a function that gives a step's ``ProfilerState``, as ``make_scheduler`` makes; None
            records every step.
        on_trace_ready: called with the profiler for each recording; by default it writes a trace into ``./profiler_log/``.
        record_shapes: note the operands' shapes and dtypes of each operator.
        profile_memory: note the bytes allocated before and after each operator and instruction.
        timer_only: record nothing, only time the steps; ``stop()`` then prints a table.
        emit_nvtx: not supported, there is no GPU.
        custom_device_types: accepted for Paddle's signature.
        with_flops: show the floating-point operations of matrix products and convolutions in the operators' table; implies ``record_shapes``.

    Raises:
        ArgumentError, ArgumentTypeError: an argument is wrong.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(4, 2)
        >>> with paddle.profiler.Profiler(scheduler=(1, 3), on_trace_ready=lambda p: None) as prof:
        ...     for step in range(4):
        ...         y = layer(paddle.ones([3, 4]))
        ...         prof.step()
        >>> [e.name for e in prof.profiler_result.events if e.kind.name in ("ProfileStep", "Operator", "Forward")]
        ['ProfileStep#1', 'ones', 'Linear', 'linear', 'ProfileStep#2', 'ones', 'Linear', 'linear']
    """

    def __init__(
        self,
        *,
        targets: Iterable[ProfilerTarget] | None = None,
        scheduler: Callable[[int], ProfilerState] | tuple[int, int] | None = None,
        on_trace_ready: Callable[[Profiler], None] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        timer_only: bool = False,
        emit_nvtx: bool = False,
        custom_device_types: list[str] = [],  # noqa: B006
        with_flops: bool = False,
    ) -> None:
        self.targets = [ProfilerTarget.CPU] if targets is None else list(targets)
        for target in self.targets:
            if target is not ProfilerTarget.CPU:
                warnings.warn(f"Profiler(): {describe(target)} is not recorded: this build runs on the CPU", stacklevel=2)
        if on_trace_ready is not None and not callable(on_trace_ready):
            raise ArgumentTypeError(message(f"Profiler(): on_trace_ready is {describe(on_trace_ready)}", "it must be callable"))
        if emit_nvtx:
            raise UnsupportedError(
                message("Profiler(): emit_nvtx=True", "it marks the work of NVIDIA's GPUs, which this build has none of")
            )
        self.scheduler = schedule_of(scheduler)
        self.on_trace_ready = export_chrome_tracing("./profiler_log/") if on_trace_ready is None else on_trace_ready
        self.record_shapes = record_shapes or with_flops
        self.profile_memory = profile_memory
        self.timer_only = timer_only
        self.with_flops = with_flops
        self.step_num = 0
        self.current_state = ProfilerState.CLOSED
        self.profiler_result: ProfilerResult | None = None
        self._recording: Recording | None = None
        self._recordings = 0
        self._step_began = 0
        self._is_started = False
        self._watched_before: spans.Watcher | None = None

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    # ------------------------------------------------------------------ steps

    def start(self) -> None:
        """Begin with step 0.

        Raises:
            ArgumentError: it has begun already.
        """
        if self._is_started:
            raise ArgumentError(message("Profiler.start(): it has started already", "", "call stop() first"))
        self.step_num = 0
        state = self._scheduled()
        self._is_started = True
        benchmark().begin()
        self._watched_before = spans.watch(self)
        self._enter_state(state)

    def step(self, num_samples: int | None = None) -> None:
        """A step ends, and the next begins.

        Args:
            num_samples: how many samples the step had, for ``step_info``.
        """
        if not self._is_started:
            return
        benchmark().step(num_samples)
        self._end_step()
        self.step_num += 1
        new = self._scheduled()
        if self._recording is not None and (self.current_state is ProfilerState.RECORD_AND_RETURN or new not in _RECORDED):
            self._hand_out()
        self._enter_state(new)

    def stop(self) -> None:
        """End. A recording that goes on is handed out; the timer's table is printed when there is nothing else."""
        if not self._is_started:
            return
        self._is_started = False
        spans.watch(self._watched_before)
        if self._recording is not None:
            self._end_step()
            self._hand_out()
        self.current_state = ProfilerState.CLOSED
        if self.timer_only:
            text = benchmark().summary()
            if text:
                print(text)
        benchmark().end()

    def _scheduled(self) -> ProfilerState:
        state = self.scheduler(self.step_num)
        if not isinstance(state, ProfilerState):
            raise ArgumentTypeError(
                message(
                    f"Profiler: the scheduler gives {describe(state)} for step {self.step_num}", "it must give a ProfilerState"
                )
            )
        return state

    def _enter_state(self, state: ProfilerState) -> None:
        self.current_state = state
        if state in _RECORDED and self._recording is None and not self.timer_only:
            self._recording = Recording(memory=self.profile_memory, shapes=self.record_shapes)
            self._recording.start()
        self._step_began = time.perf_counter_ns()

    def _end_step(self) -> None:
        if self._recording is not None:
            self._recording.add(f"ProfileStep#{self.step_num}", TracerEventType.ProfileStep, self._step_began)

    def _hand_out(self) -> None:
        recording, self._recording = self._recording, None
        if recording is not None:
            self.profiler_result = recording.stop(self._recordings)
            self._recordings += 1
            self.on_trace_ready(self)

    def span(self, kind: str, name: str, owner: Any) -> AbstractContextManager[Any]:
        """A span of the framework's own parts; see ``base.spans``."""
        recording = self._recording
        span = _NOTHING if recording is None else recording.span(kind, name)
        return _ReaderTime(benchmark(), span) if kind == "Dataloader" else span

    # ------------------------------------------------------------------ results

    def step_info(self, unit: str | None = None) -> str:
        """The cost of reading (when a DataLoader reads) and of a step, and samples per second, as averages since it was asked before.

        Args:
            unit: what the samples are called.

        Example:
            >>> import contextlib, io
            >>> import sampan as paddle
            >>> prof = paddle.profiler.Profiler(timer_only=True)
            >>> prof.start()
            >>> prof.step(num_samples=8)
            >>> prof.step_info("images").endswith(" images/s")
            True
            >>> with contextlib.redirect_stdout(io.StringIO()):  # a summary
            ...     prof.stop()
        """
        return benchmark().step_info(unit)

    def export(self, path: str = "", format: str = "json") -> None:
        """Write the last recording: ``json`` is Chrome's trace format, ``pb`` Perfetto's. Without a recording it warns and writes nothing.

        Raises:
            ArgumentError: the format is another one.
        """
        if format not in ("json", "pb"):
            raise ArgumentError(message(f"export(): format is {format!r}", "a trace is written as 'json' or 'pb'"))
        if self._has_result("export"):
            write_result(self.profiler_result, path, format)  # type: ignore[arg-type]

    def summary(
        self,
        sorted_by: SortedKeys = SortedKeys.CPUTotal,
        op_detail: bool = True,
        thread_sep: bool = False,
        time_unit: str = "ms",
        views: SummaryView | list[SummaryView] | None = None,
    ) -> None:
        """Print tables of the last recording. Without one it warns and prints nothing.

        Args:
            sorted_by: the column that rows are sorted by; those of the GPU mean the CPU's.
            op_detail: show the instructions inside each operator.
            thread_sep: one table for each thread.
            time_unit: ``s``, ``ms``, ``us`` or ``ns``.
            views: which tables; None: all.

        Raises:
            ArgumentError: the unit is another one.
            ArgumentTypeError: a view or key is of another type.
        """
        if self._has_result("summary"):
            print(tables(self.profiler_result, sorted_by, op_detail, thread_sep, time_unit, views, self.with_flops))  # type: ignore[arg-type]

    def _has_result(self, name: str) -> bool:
        if self.profiler_result is None:
            why = "timer_only=True records nothing" if self.timer_only else "no recorded step has ended"
            warnings.warn(f"Profiler.{name}(): there is no recording; {why}", stacklevel=3)
        return self.profiler_result is not None


def _exporter(dir_name: str, worker_name: str | None, format: str) -> Callable[[Profiler], None]:
    if os.path.exists(dir_name) and not os.path.isdir(dir_name):
        raise ArgumentError(message(f"export into {dir_name!r}", "it exists and is no folder", "name a folder"))
    os.makedirs(dir_name, exist_ok=True)

    def export(profiler: Profiler) -> None:
        worker = worker_name or f"host_{socket.gethostname()}pid_{os.getpid()}"
        now = datetime.datetime.now().strftime("%Y_%m_%d_%H_%M_%S_%f")
        profiler.export(os.path.join(dir_name, f"{worker}_time_{now}.paddle_trace.{format}"), format)

    return export


def export_chrome_tracing(dir_name: str, worker_name: str | None = None) -> Callable[[Profiler], None]:
    """What ``on_trace_ready`` takes to write each recording as a Chrome trace into the folder, which is made.

    Args:
        dir_name: the folder.
        worker_name: the beginning of the files' names; by default of the host and the process.

    Raises:
        ArgumentError: a file stands there.

    Example:
        >>> import os, tempfile
        >>> import sampan as paddle
        >>> folder = tempfile.mkdtemp()
        >>> with paddle.profiler.Profiler(on_trace_ready=paddle.profiler.export_chrome_tracing(folder, "worker")):
        ...     y = paddle.ones([2]) + 1
        >>> [name[:11] for name in os.listdir(folder)]
        ['worker_time']
    """
    return _exporter(dir_name, worker_name, "json")


def export_protobuf(dir_name: str, worker_name: str | None = None) -> Callable[[Profiler], None]:
    """The same in Perfetto's protobuf form; see ``export_chrome_tracing``.

    Example:
        >>> import os, tempfile
        >>> import sampan as paddle
        >>> folder = tempfile.mkdtemp()
        >>> with paddle.profiler.Profiler(on_trace_ready=paddle.profiler.export_protobuf(folder)):
        ...     y = paddle.ones([2]) + 1
        >>> [name[-3:] for name in os.listdir(folder)]
        ['.pb']
    """
    return _exporter(dir_name, worker_name, "pb")


def get_profiler(config_path: str | None = None) -> Profiler:
    """A Profiler by a JSON file with its arguments.

    ``targets``: names. ``scheduler``: a pair, or ``{"make_scheduler": {"args": {...}}}``. ``on_trace_ready``:
    ``{"export_chrome_tracing": {"args": [...]}}`` or ``{"export_protobuf": ...}``.

    Raises:
        ArgumentError: the file is no such JSON.
        OSError: it cannot be read.
    """
    if config_path is None:
        return Profiler()
    try:
        with open(config_path, encoding="utf-8") as file:
            given: dict[str, Any] = json.load(file)
        if "targets" in given:
            given["targets"] = [ProfilerTarget[name.upper()] for name in given["targets"]]
        for key in ("scheduler", "on_trace_ready"):
            if isinstance(given.get(key), dict):
                given[key] = _made(given[key])
        if isinstance(given.get("scheduler"), list):
            given["scheduler"] = tuple(given["scheduler"])
        return Profiler(**given)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArgumentError(message(f"get_profiler(): {config_path} does not describe a Profiler", str(error))) from error


_MAKERS: dict[str, Callable[..., Any]] = {
    "make_scheduler": make_scheduler,
    "export_chrome_tracing": export_chrome_tracing,
    "export_protobuf": export_protobuf,
}


def _made(described: dict[str, Any]) -> Any:
    ((name, details),) = described.items()
    function = _MAKERS[name]
    args = details.get("args", {})
    return function(**args) if isinstance(args, dict) else function(*args)
