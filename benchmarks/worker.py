"""One framework in one process: it prepares and runs cases as the harness commands over its standard input.

A command and its answer are one line of JSON each. ``prepare`` gives digests of the first results, ``run`` the seconds of one
call, ``once`` the times of a fresh process (import, first call) and its memory. Whatever a framework prints goes to stderr.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cases
import numpy as np
import peers

_LEAST_BATCH_S = 0.05
_FIRST_RESULTS = 3


def load(peer: str, threads: int) -> Any:
    """The module of the peer's framework (oneDNN: the loaded library), set to this number of threads on the CPU."""
    framework = peers.framework_of(peer)
    if framework == "onednn":
        return importlib.import_module("cases.direct").Library()
    module = importlib.import_module(framework)
    if framework == "torch":
        module.set_num_threads(threads)
    elif framework in ("paddle", "sampan"):
        module.set_device("cpu")
    return module


def arrays_of(result: Any) -> list[np.ndarray]:
    """The NumPy arrays in a result of any framework."""
    if result is None:
        return []
    if isinstance(result, (list, tuple)):
        return [array for item in result for array in arrays_of(item)]
    if hasattr(result, "detach"):
        result = result.detach()
    return [np.asarray(result.numpy() if hasattr(result, "numpy") else result)]


def digest(result: Any) -> list[float]:
    """Two numbers for each array: its sum and the sum of its magnitudes, which hardly depend on how it was computed."""
    return [float(f(a.astype("float64"))) for a in arrays_of(result) for f in (np.sum, lambda v: np.abs(v).sum())]


def status_kib(field: str) -> int:
    """A field of this process's memory status, in KiB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return 0


class Worker:
    """The framework, the case in hand, and how many calls make one measurement of it."""

    def __init__(self, peer: str, threads: int) -> None:
        self.peer, self.threads = peer, threads
        self.module: Any = None
        self.work: Callable[[], Any] | None = None
        self.calls = 1

    def prepare(self, name: str) -> dict[str, Any]:
        """Build the case, run it a few times, and find out how many calls fill a measurement."""
        if self.module is None:
            self.module = load(self.peer, self.threads)
        self.work = None
        gc.collect()
        body = cases.BY_NAME[name].body(self.peer)
        if body is None:
            return {"absent": True}
        self.work = body(self.module)
        digests = [digest(self.work()) for _ in range(_FIRST_RESULTS)]
        self.calls = 1
        while (took := self.time_calls()) < _LEAST_BATCH_S:
            self.calls = max(self.calls * 2, int(self.calls * _LEAST_BATCH_S / max(took, 1e-7)))
        return {"digests": digests}

    def time_calls(self) -> float:
        """Seconds of ``self.calls`` calls."""
        work, calls = self.work, range(self.calls)
        begin = time.perf_counter()
        for _ in calls:
            work()
        return time.perf_counter() - begin

    def run(self) -> dict[str, Any]:
        """The seconds of one call, over one measurement."""
        gc.collect()
        gc.disable()
        try:
            return {"seconds": self.time_calls() / self.calls}
        finally:
            gc.enable()

    def once(self, name: str, calls: int) -> dict[str, Any]:
        """What a fresh process needs: seconds to import and to the end of the first call, what of that call was more than a later
        one, memory after import and at its peak.
        """
        begin = time.perf_counter()
        self.module = load(self.peer, self.threads)
        imported = time.perf_counter()
        after_import_kib = status_kib("VmRSS")
        body = cases.BY_NAME[name].body(self.peer)
        if body is None:
            return {"absent": True}
        work = body(self.module)
        built = time.perf_counter()
        arrays_of(work())
        first = time.perf_counter()
        self.work, self.calls = work, calls
        later = self.time_calls() / calls
        peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {
            "import_s": imported - begin,
            "first_s": first - imported,
            "compile_s": first - built - later,
            "peak_mib": peak_kib / 1024,
            "above_import_mib": (peak_kib - after_import_kib) / 1024,
        }

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out one command; a failure is an answer too."""
        kind = command.pop("command")
        try:
            return getattr(self, kind)(**command)
        except Exception as error:
            traceback.print_exc()
            return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}


def main() -> None:
    """Answer commands until the pipe closes."""
    peer, threads = sys.argv[1], int(sys.argv[2])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    worker = Worker(peer, threads)
    for line in sys.stdin:
        out.write(json.dumps(worker.answer(json.loads(line))) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
