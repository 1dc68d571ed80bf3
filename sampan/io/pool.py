"""The main process's side of the workers: start them, give tasks, wait with a limit, notice a death, end them all."""

from __future__ import annotations

import contextlib
import mmap
import multiprocessing
import os
import pickle
import selectors
import signal
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.errors import SampanError, message
from .channel import Channel
from .segments import Mappings
from .worker import Epoch, Failure, Recipe, Result, Task, Worker

_JOIN_S = 2.0  # how long a worker that was asked to end may take before it is ended


class WorkerError(SampanError, RuntimeError):
    """A worker raised an error, died, or took too long. An error that the dataset raised is also of the class it had there."""

    def __str__(self) -> str:
        return str(self.args[0])


class Pool:
    """Worker processes with one connection each.

    Args:
        recipe: how batches are made.
        count: how many workers.
        init: called in each worker with its number when it starts.
        seed: what the workers' generators are first seeded with.
        shares_memory: whether arrays travel in shared memory.
        timeout_s: how long a batch may take; 0 for no limit.
    """

    def __init__(
        self, recipe: Recipe, count: int, init: Callable[[int], None] | None, seed: int, shares_memory: bool, timeout_s: float
    ) -> None:
        self.count = count
        self.timeout_s = timeout_s
        self.is_stopped = False
        self._epoch = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.int64)  # shared with the workers by fork
        self._mappings = [Mappings() for _ in range(count)]
        self._channels: list[Channel] = []
        self._processes: list[Any] = []
        self._selector = selectors.DefaultSelector()
        self._waiting: list[set[int]] = [set() for _ in range(count)]
        self._stop = weakref.finalize(self, _stop, os.getpid(), self._epoch, self._processes, self._channels, self._selector)
        context = multiprocessing.get_context("fork")
        for number in range(count):
            mine, other = Channel.pair()
            worker = Worker(recipe, number, count, init, shares_memory, self._epoch)
            process = context.Process(target=worker.run, args=(other, seed), name=f"DataLoader worker {number}", daemon=True)
            with warnings.catch_warnings():
                # The runtime's threads hold no lock across a fork, and a worker starts none before it needs them.
                warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
                process.start()
            other.close()
            self._channels.append(mine)
            self._processes.append(process)
            self._selector.register(mine, selectors.EVENT_READ, number)
            self._selector.register(process.sentinel, selectors.EVENT_READ, -1 - number)

    def begin(self, seed: int) -> int:
        """Begin a pass over the data; what was asked for before is dropped. Returns the pass's number."""
        self._epoch[0] += 1
        epoch = int(self._epoch[0])
        for number in range(self.count):
            self._waiting[number].clear()
            self._send(number, Epoch(epoch, seed))
        return epoch

    def submit(self, worker: int, number: int, indices: Any, is_skipped: bool = False) -> None:
        """Ask a worker for a batch."""
        self._waiting[worker].add(number)
        self._send(worker, Task(int(self._epoch[0]), number, indices, is_skipped, self._mappings[worker].returned()))

    def receive(self) -> tuple[int, int, str, Any]:
        """The next answer of this pass: the worker, the batch's number, its kind, and the batch where there is one.

        Raises:
            WorkerError: a worker raised, died, or none answered within the time limit.
        """
        limit = time.monotonic() + self.timeout_s if self.timeout_s else None
        while True:
            left = None if limit is None else limit - time.monotonic()
            ready = sorted((key.data for key, _ in self._selector.select(left)), reverse=True) if left is None or left > 0 else []
            if not ready:
                self._fail(self._late())
            # Connections come before the processes' ends: a worker's last words are heard before its death is reported.
            if ready[0] < 0:
                self._fail(self._death(-1 - ready[0]))
            worker = ready[0]
            try:
                result, descriptors = self._channels[worker].receive()
            except (EOFError, OSError):
                self._fail(self._death(worker))
            answer = self._unpack(worker, result, descriptors)
            if answer is not None:
                return answer

    def _unpack(self, worker: int, result: Result, descriptors: list[int]) -> tuple[int, int, str, Any] | None:
        mappings = self._mappings[worker]
        for (number, size), descriptor in zip(result.segments, descriptors, strict=True):
            mappings.add(number, size, descriptor)
        lent = mappings.lend(list(result.places))
        if result.kind == "error" and result.epoch in (-1, int(self._epoch[0])):
            self._fail(_error_of(worker, pickle.loads(result.body)))  # noqa: S301 - our own worker's
        if result.epoch != int(self._epoch[0]):
            return None
        self._waiting[worker].discard(result.number)
        batch = pickle.loads(result.body, buffers=lent) if result.kind == "batch" else None  # noqa: S301 - our own worker's
        return worker, result.number, result.kind, batch

    def _send(self, worker: int, value: Epoch | Task) -> None:
        try:
            self._channels[worker].send(value)
        except OSError:
            with contextlib.suppress(EOFError, OSError):  # it may have said why before it ended
                while True:
                    result, descriptors = self._channels[worker].receive()
                    self._unpack(worker, result, descriptors)
            self._fail(self._death(worker))

    def _fail(self, error: WorkerError) -> None:
        self.stop()
        raise error

    def _death(self, number: int) -> WorkerError:
        process = self._processes[number]
        process.join(_JOIN_S)
        code = process.exitcode
        why, fix = f"it ended itself with exit code {code}", "look for os._exit() or sys.exit() in the dataset"
        if code is None:
            why, fix = "it closed its connection", "does the dataset close file descriptors that it did not open?"
        elif code < 0:
            why = f"it was ended by {signal.Signals(-code).name}"
            fix = {
                signal.SIGKILL: "the system does this when memory runs out: use fewer workers, prefetch less, or smaller batches",
                signal.SIGBUS: "shared memory has run out: use fewer workers or smaller batches, or pass use_shared_memory=False",
                signal.SIGSEGV: "native code that the dataset uses has crashed: run with num_workers=0 to find it",
            }.get(-code, "something outside sampan sent that signal")
        return WorkerError(message(f"DataLoader: worker {number} (process {process.pid}) died", why, fix))

    def _late(self) -> WorkerError:
        waiting = "; ".join(f"worker {i} owes batch {min(numbers)}" for i, numbers in enumerate(self._waiting) if numbers)
        return WorkerError(
            message(
                f"DataLoader: no batch within timeout={self.timeout_s:g} s",
                waiting,
                "raise timeout, use more workers, or run with num_workers=0 to see what is slow",
            )
        )

    def stop(self) -> None:
        """End all workers; when it returns, none is left."""
        self.is_stopped = True
        self._stop()


def _stop(owner: int, epoch: np.ndarray, processes: list[Any], channels: list[Channel], selector: selectors.BaseSelector) -> None:
    if os.getpid() != owner:
        return  # a copy of the pool in a forked child
    selector.close()
    epoch[0] += 1  # tasks that were not begun are not begun
    for channel in channels:
        channel.close()  # a worker leaves when it reads the end of the stream, after the batch that it is making
    for end in (None, "terminate", "kill"):
        limit = time.monotonic() + _JOIN_S
        for process in processes:
            if end and process.exitcode is None:
                getattr(process, end)()
        for process in processes:
            process.join(max(0.0, limit - time.monotonic()))
    for process in processes:
        process.close()


def _error_of(worker: int, failure: Failure) -> WorkerError:
    """The error to raise: its class is that of the worker's error and WorkerError at once, where Python allows that."""
    text = message(f"DataLoader: worker {worker} raised an error; its own traceback:\n\n{failure.text.rstrip()}")
    with contextlib.suppress(Exception):  # a class that cannot be found here, or that cannot be combined
        original = pickle.loads(failure.pickled_class)  # noqa: S301 - our own worker's
        # A StopIteration would end the loop over the batches without a word; what is no Exception would end the program.
        if issubclass(original, Exception) and not issubclass(original, StopIteration) and not issubclass(WorkerError, original):
            return type(original.__name__, (WorkerError, original), {"__init__": lambda self, *unused: None})(text)
    return WorkerError(text)
