"""A worker process: takes tasks, makes batches in shared memory, reports errors with its own traceback."""

from __future__ import annotations

import itertools
import pickle
import random
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import flags
from ..tensor.random import seed as seed_tensors
from .channel import Channel, close_main_ends
from .collate import Batches, default_convert_fn, map_leaves
from .segments import Arena


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker may want to know about itself.

    Attributes:
        id: its number, from 0.
        num_workers: how many there are.
        seed: the number that its random generators were seeded with for this epoch.
        dataset: its own copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a ``DataLoader`` worker, what it is; elsewhere None.

    Example:
        >>> from sampan.io import get_worker_info
        >>> get_worker_info() is None
        True
    """
    return _info


@dataclass
class Recipe:
    """How batches are made from a dataset; the same in the main process and in workers."""

    dataset: Any
    is_stream: bool
    collate: Callable[[Any], Any] | None  # None: samples are not batched
    batch_size: int | None
    drop_last: bool

    def fetch(self, indices: Any) -> Any:
        """The batch of these indices (of the one index, when samples are not batched)."""
        if self.collate is None:
            return default_convert_fn(self.dataset[indices])
        return self.collate([self.dataset[index] for index in indices])

    def ordered(self, order: Iterator[Any]) -> Iterator[Callable[[], Any]]:
        """Functions that make the batches of these indices, in order."""
        for indices in order:
            yield lambda indices=indices: self.fetch(indices)  # type: ignore[misc]

    def stream(self) -> Iterator[Callable[[], Any]]:
        """Functions that make the stream's batches, in order; samples are taken when the iterator moves."""
        samples = iter(self.dataset)
        if self.collate is None:
            for sample in samples:
                yield lambda sample=sample: default_convert_fn(sample)  # type: ignore[misc]
            return
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield lambda batch=batch: self.collate(batch)  # type: ignore[misc]


@dataclass
class Task:
    """What the main process asks for: the batch with this number. ``is_skipped``: only go past it in the stream."""

    epoch: int
    number: int
    indices: Any
    is_skipped: bool
    returned: list[int]


@dataclass
class Epoch:
    """A new pass over the data begins."""

    epoch: int
    seed: int


@dataclass
class Result:
    """What a worker answers to a task. ``kind``: ``batch``, ``end`` (of the stream), ``skipped`` or ``error``."""

    epoch: int
    number: int
    kind: str
    body: bytes = b""
    places: tuple[tuple[int, int, int], ...] = ()
    segments: tuple[tuple[int, int], ...] = ()


@dataclass
class Failure:
    """An error in a worker: its traceback as text, and its class as pickled bytes where it can be pickled."""

    text: str
    pickled_class: bytes


def failure_of(error: BaseException) -> Failure:
    """The error as the main process will see it."""
    try:
        pickled = pickle.dumps(type(error))
    except Exception:  # a class that only this process knows
        pickled = b""
    return Failure("".join(traceback.format_exception(error)), pickled)


def seed_generators(*numbers: int) -> None:
    """Seed NumPy's, Python's and sampan's global generators from these numbers."""
    state = np.random.SeedSequence(numbers).generate_state(4)
    np.random.seed(state)
    random.seed(state.tobytes())
    seed_tensors(int.from_bytes(state.tobytes()[:7], "little"))


@dataclass
class Worker:
    """The state of one worker."""

    recipe: Recipe
    number: int
    count: int
    init: Callable[[int], None] | None
    shares_memory: bool
    current_epoch: Any  # an array of one number in memory that the main process writes to

    def run(self, channel: Channel, seed: int) -> None:
        """Serve tasks until the main process closes the connection."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal; the main process decides
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        close_main_ends()
        flags.set_flags({"num_threads": 1})
        self.arena = Arena()
        if self.shares_memory:
            Batches.allocate = self.arena.allocate
        self.stream: Iterator[Callable[[], Any]] | None = None
        try:
            self._begin(seed)
            self._serve(channel)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return  # the main process is gone, or done
        except BaseException as error:
            channel.send(Result(-1, -1, "error", pickle.dumps(failure_of(error))))

    def _begin(self, seed: int) -> None:
        global _info
        _info = WorkerInfo(self.number, self.count, seed + self.number, self.recipe.dataset)
        seed_generators(seed, self.number)
        if self.init is not None:
            self.init(self.number)

    def _serve(self, channel: Channel) -> None:
        global _info
        while True:
            message, _ = channel.receive()
            if isinstance(message, Epoch):
                self.seed = message.seed
                _info = WorkerInfo(self.number, self.count, message.seed + self.number, self.recipe.dataset)
                self.stream = None
                continue
            self.arena.give_back(message.returned)
            if message.epoch != self.current_epoch[0]:
                continue  # asked for by a pass that was broken off
            try:
                result, descriptors = self._answer(message)
            except Exception as error:
                self.arena.abandon_batch()
                result, descriptors = Result(message.epoch, message.number, "error", pickle.dumps(failure_of(error))), []
            channel.send(result, descriptors)

    def _answer(self, task: Task) -> tuple[Result, list[int]]:
        if self.init is None:
            # By the batch's number, not by the worker: the same batches come out for any number of workers, and after a resume.
            seed_generators(self.seed, task.number)
        if self.recipe.is_stream:
            self.stream = self.recipe.stream() if self.stream is None else self.stream
            make = next(self.stream, None)
            if make is None:
                return Result(task.epoch, task.number, "end"), []
            if task.is_skipped:
                return Result(task.epoch, task.number, "skipped"), []
            batch = make()
        else:
            batch = self.recipe.fetch(task.indices)
        return self._pack(task, batch)

    def _pack(self, task: Task, batch: Any) -> tuple[Result, list[int]]:
        """The batch with its arrays in shared memory and everything else pickled."""
        batch = map_leaves(_portable, batch)
        if not self.shares_memory:
            return Result(task.epoch, task.number, "batch", pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)), []
        buffers: list[pickle.PickleBuffer] = []
        body = pickle.dumps(batch, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
        places = tuple(self.arena.place(buffer.raw()) for buffer in buffers)
        segments, descriptors = self.arena.close_batch()
        return Result(task.epoch, task.number, "batch", body, places, tuple(segments)), descriptors


def _portable(leaf: Any) -> Any:
    leaf = default_convert_fn(leaf)
    return np.ascontiguousarray(leaf) if isinstance(leaf, np.ndarray) and not leaf.flags.c_contiguous else leaf
