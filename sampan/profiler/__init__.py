"""``paddle.profiler``: recordings of what a program's steps are made of, as tables, as traces for Perfetto, and pictures of Programs and models."""

from __future__ import annotations

from . import profiler, statistics, timer, utils
from .events import TracerEventType
from .pictures.draw import draw
from .profiler import Profiler, export_chrome_tracing, export_protobuf, get_profiler
from .states import ProfilerState, ProfilerTarget, make_scheduler
from .statistics import SortedKeys, SummaryView
from .utils import RecordEvent, load_profiler_result

__all__ = [
    "Profiler",
    "ProfilerState",
    "ProfilerTarget",
    "RecordEvent",
    "SortedKeys",
    "SummaryView",
    "TracerEventType",
    "draw",
    "export_chrome_tracing",
    "export_protobuf",
    "get_profiler",
    "load_profiler_result",
    "make_scheduler",
    "profiler",
    "statistics",
    "timer",
    "utils",
]
