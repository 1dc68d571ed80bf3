"""The DataLoader: batches of a dataset, made here or by worker processes."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..base import spans
from ..base.errors import ArgumentError, ArgumentTypeError, describe, message
from . import resume
from .collate import default_collate_fn, to_tensors
from .dataset import IterableDataset
from .pool import Pool
from .sampler import BatchSampler, RandomSampler, SequenceSampler, checked_size
from .worker import Recipe

# More tasks than this in one worker's queue could fill both directions of its connection at once.
_MOST_AHEAD = 32


class DataLoader:
    """Batches of a dataset as tensors, in the sampler's order, made in this process or ahead of time by worker processes.

    With ``num_workers`` > 0 arrays travel through shared memory and become tensors without a copy. Unless ``worker_init_fn`` is
    given, NumPy's, Python's and sampan's global generators are seeded anew for every batch from the epoch's seed and the batch's number,
    so random augmentation differs between samples, workers and epochs, and is the same in a second run after
    ``numpy.random.seed``, with any number of workers. A worker's error is raised here with the worker's own traceback; a worker
    that dies or takes longer than ``timeout`` raises too; no worker outlives the loop, or, when persistent, the loader.

    Args:
        dataset: a ``Dataset`` (anything with ``__getitem__`` and ``__len__``) or an ``IterableDataset``.
        feed_list: names for ``return_list=False``: strings, or objects with a ``name``.
        places: accepted for Paddle's signature; tensors are made on the CPU.
        return_list: give each batch as the list (or other nesting) that ``collate_fn`` made; otherwise as ``[{name: tensor}]``.
        batch_sampler: an iterable of lists of indices, in place of ``batch_size``, ``shuffle`` and ``drop_last``.
        batch_size: samples of a batch; None gives samples one by one, not batched.
        shuffle: take the samples in a new random order each epoch.
        drop_last: leave out a last batch that is not full.
        collate_fn: makes a batch out of a list of samples; ``default_collate_fn`` when it is None.
        num_workers: how many processes make batches; 0 makes them in this one, when they are asked for.
        use_buffer_reader: accepted for Paddle's signature; workers always work ahead.
        reader_buffer_size: accepted for Paddle's signature.
        prefetch_factor: how many batches each worker makes ahead.
        use_shared_memory: let arrays travel in shared memory; otherwise through the connection.
        timeout: seconds that a batch may take to come; 0 for no limit.
        worker_init_fn: called in each worker with its number when it starts; then generators are not seeded for every batch.
        persistent_workers: keep the workers from one epoch to the next.

    Raises:
        ArgumentError: an argument is out of range, or arguments contradict each other.
        ArgumentTypeError: an argument has the wrong type.
        WorkerError: while iterating, when a worker failed.

    Example:
        >>> import numpy as np
        >>> from sampan.io import DataLoader
        >>> loader = DataLoader([(np.ones(3, "float32"), i) for i in range(5)], batch_size=2)
        >>> [labels.tolist() for images, labels in loader]
        [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        feed_list: Sequence[Any] | None = None,
        places: Any = None,
        return_list: bool = True,
        batch_sampler: Any = None,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        reader_buffer_size: int = 2,
        prefetch_factor: int = 2,
        use_shared_memory: bool = True,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        persistent_workers: bool = False,
    ) -> None:
        self.dataset = dataset
        self.return_list = return_list
        self.feed_list = feed_list
        self.places = places
        self.collate_fn = collate_fn
        self.use_buffer_reader = use_buffer_reader
        self.reader_buffer_size = reader_buffer_size
        self.prefetch_factor = checked_size("DataLoader", "prefetch_factor", prefetch_factor)
        self.num_workers = _at_least_zero("num_workers", num_workers, int)
        self.timeout = _at_least_zero("timeout", timeout, (int, float))
        self.use_shared_memory = use_shared_memory and num_workers > 0
        self.worker_init_fn = worker_init_fn
        self.drop_last = drop_last
        self._persistent_workers = persistent_workers
        if not return_list and not feed_list:
            self.return_list = True  # as Paddle does: without names there is nothing else to give
        is_stream = isinstance(dataset, IterableDataset)
        self.batch_sampler, self.batch_size = self._order(is_stream, batch_sampler, batch_size, shuffle, drop_last)
        is_batched = batch_size is not None if is_stream else self.batch_sampler is not None
        collate = (collate_fn or default_collate_fn) if is_batched else None
        self._recipe = Recipe(dataset, is_stream, collate, self.batch_size, drop_last)
        if not is_batched:
            self._unbatched = None if is_stream else RandomSampler(dataset) if shuffle else SequenceSampler(dataset)
        self._pool: Pool | None = None
        self._pool_user: weakref.ref[_WorkerIterator] | None = None
        self._active: weakref.ref[_Iterator] | None = None
        self._epoch = 0
        self._resume: dict[str, Any] | None = None

    def _order(self, is_stream: bool, batch_sampler: Any, batch_size: Any, shuffle: bool, drop_last: bool) -> tuple[Any, Any]:
        if not is_stream and not (hasattr(self.dataset, "__getitem__") and hasattr(self.dataset, "__len__")):
            raise ArgumentTypeError(
                message(
                    f"DataLoader: dataset is {describe(self.dataset)}",
                    "it must have __getitem__ and __len__, or be an IterableDataset",
                )
            )
        if batch_sampler is not None:
            if is_stream:
                raise ArgumentError(
                    message("DataLoader: batch_sampler with an IterableDataset", "a stream has no indices", "pass batch_size")
                )
            if batch_size != 1 or shuffle or drop_last:
                raise ArgumentError(
                    message(
                        "DataLoader: batch_size, shuffle or drop_last with batch_sampler",
                        "the batch_sampler decides all three",
                        "pass them to it",
                    )
                )
            return batch_sampler, None
        if is_stream and shuffle:
            raise ArgumentError(
                message(
                    "DataLoader: shuffle=True with an IterableDataset", "a stream has its own order", "shuffle in its __iter__"
                )
            )
        if batch_size is None:  # nothing is dropped then, as in Paddle
            return None, None
        checked_size("DataLoader", "batch_size", batch_size)
        if is_stream:
            return None, batch_size
        if shuffle and len(self.dataset) == 0:
            raise ArgumentError(
                message(
                    f"DataLoader: the dataset ({type(self.dataset).__name__}) is empty",
                    "there is nothing to shuffle",
                    "check what fills it, or pass shuffle=False",
                )
            )
        return BatchSampler(self.dataset, shuffle=shuffle, batch_size=batch_size, drop_last=drop_last), batch_size

    def __len__(self) -> int:
        """The number of batches of an epoch (of samples, when they are not batched)."""
        if self._recipe.is_stream:
            raise _NoLengthError(message("len() of a DataLoader over an IterableDataset", "its length is known only at the end"))
        return len(self.batch_sampler if self.batch_sampler is not None else self._unbatched)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        """The epoch's batches; after ``set_state_dict``, those that were left of the epoch that was saved."""
        state, self._resume = self._resume, None
        sampler = self._epoch_sampler()
        if state is not None:
            self._epoch = state["epoch"]
            if sampler is not None and state["sampler_epoch"] is not None:
                sampler.set_epoch(state["sampler_epoch"])
            resume.set_generator_states(state["begun"])
        begun = self._position(sampler)
        made = (_WorkerIterator if self.num_workers else _Iterator)(self, begun, 0 if state is None else state["batch"])
        if state is not None:
            resume.set_generator_states(state["now"])
        self._active = weakref.ref(made)
        return made

    def __call__(self) -> Iterator[Any]:
        """The same as ``iter(loader)``."""
        return iter(self)

    def state_dict(self) -> dict[str, Any]:
        """Where the loop stands: the epoch, how many of its batches were given out, and the states of the random generators.

        It holds plain values only. After a resume the loop goes on as it would have without the interruption, when its random
        order comes from NumPy's or Python's global generator, as that of all samplers here does, or from ``set_epoch``.

        Example:
            >>> from sampan.io import DataLoader
            >>> loader = DataLoader(list(range(6)), batch_size=2, shuffle=True)
            >>> first = next(iter_ := iter(loader))
            >>> state = loader.state_dict()
            >>> rest = [batch.tolist() for batch in iter_]
            >>> other = DataLoader(list(range(6)), batch_size=2, shuffle=True)
            >>> other.set_state_dict(state)
            >>> [batch.tolist() for batch in other] == rest
            True
        """
        active = self._active() if self._active is not None else None
        if active is not None and not active.is_over:
            return {**active.begun, "batch": active.given, "now": resume.generator_states()}
        if self._resume is not None:
            return dict(self._resume)
        position = self._position(self._epoch_sampler())
        return {**position, "now": position["begun"]}

    def _position(self, sampler: Any) -> dict[str, Any]:
        """The state at the beginning of an epoch."""
        sampler_epoch = None if sampler is None else int(sampler.epoch)
        return {"epoch": self._epoch, "sampler_epoch": sampler_epoch, "batch": 0, "begun": resume.generator_states()}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next loop go on where ``state_dict`` was taken; it sets NumPy's and Python's global generators too.

        Args:
            state_dict: what ``state_dict`` of a loader over the same dataset returned.

        Raises:
            ArgumentError: it is something else.
        """
        self._resume = resume.checked(state_dict)

    def _epoch_sampler(self) -> Any:
        """The batch sampler, when its order depends on an epoch of its own."""
        return self.batch_sampler if hasattr(self.batch_sampler, "set_epoch") and hasattr(self.batch_sampler, "epoch") else None

    def _indices(self) -> Iterator[Any]:
        if self._recipe.is_stream:
            return itertools.repeat(None)
        return iter(self.batch_sampler if self.batch_sampler is not None else self._unbatched)  # type: ignore[arg-type]

    def _delivered(self, batch: Any) -> Any:
        """The batch as the user gets it."""
        tensors = to_tensors(batch)
        if self.return_list:
            return tensors
        names = [getattr(entry, "name", entry) for entry in self.feed_list or ()]
        return [dict(zip(names, tensors if isinstance(tensors, list) else [tensors], strict=True))]

    def _pool_for(self, user: _WorkerIterator, seed: int) -> Pool:
        """Workers for this iterator: the persistent ones, unless another iterator is still in the middle of using them."""
        other = self._pool_user() if self._pool_user is not None else None
        if not self._persistent_workers or (other is not None and not other.is_over):
            return self._new_pool(seed)
        if self._pool is None or self._pool.is_stopped:
            self._pool = self._new_pool(seed)
        self._pool_user = weakref.ref(user)
        return self._pool

    def _new_pool(self, seed: int) -> Pool:
        return Pool(self._recipe, self.num_workers, self.worker_init_fn, seed, self.use_shared_memory, self.timeout)


class _NoLengthError(ArgumentTypeError, ValueError):
    """Length of a stream's loader; a TypeError, so that ``list()`` does without it, and a ValueError, as in Paddle."""


class _Iterator:
    """One pass over the data, made in this process."""

    def __init__(self, loader: DataLoader, begun: dict[str, Any], skipped: int) -> None:
        self.begun = begun
        self.given = skipped
        self.is_over = False
        self._loader = loader
        self._start(skipped)

    def _start(self, skipped: int) -> None:
        recipe = self._loader._recipe
        self._makers = recipe.stream() if recipe.is_stream else recipe.ordered(self._loader._indices())
        for _ in itertools.islice(self._makers, skipped):
            pass

    def __iter__(self) -> _Iterator:
        return self

    @spans.watched("Dataloader", "DataLoader")
    def __next__(self) -> Any:
        if self.is_over:
            raise StopIteration
        make = next(self._makers, None)
        if make is None:
            self._finish()
            raise StopIteration
        batch = self._loader._delivered(make())
        self.given += 1
        return batch

    def _finish(self) -> None:
        self.is_over = True
        self._loader._epoch += 1


class _WorkerIterator(_Iterator):
    """One pass over the data, made by workers: tasks go round them, answers are given out in the order of the tasks."""

    def _start(self, skipped: int) -> None:
        loader = self._loader
        seed = int(np.random.randint(0, sys.maxsize))
        self._indices = loader._indices()
        self._is_stream = loader._recipe.is_stream
        # In a stream only a worker can pass over batches; else the indices of those batches are not handed to any.
        self._passed_over = skipped if self._is_stream else 0
        self._asked = self._wanted = 0
        if not self._is_stream:
            self._asked = self._wanted = sum(1 for _ in itertools.islice(self._indices, skipped))
        self._arrived: dict[int, tuple[int, str, Any]] = {}
        self._open_workers = list(range(loader.num_workers))
        self._turns: Iterator[int] = itertools.cycle(range(loader.num_workers))
        self._pool = loader._pool_for(self, seed)
        try:
            self._pool.begin(seed)
            for _ in range(min(loader.prefetch_factor, _MOST_AHEAD) * loader.num_workers):
                self._ask()
        except BaseException:
            self._pool.stop()
            raise

    def _ask(self) -> None:
        """Hand out one more task, when there is one."""
        if not self._open_workers:
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        worker = next(turn for turn in self._turns if turn in self._open_workers)
        self._pool.submit(worker, self._asked, indices, self._asked < self._passed_over)
        self._asked += 1

    @spans.watched("Dataloader", "DataLoader")
    def __next__(self) -> Any:
        if self.is_over:
            raise StopIteration
        try:
            while self._wanted < self._asked:
                while self._wanted not in self._arrived:
                    worker, number, kind, batch = self._pool.receive()
                    self._arrived[number] = worker, kind, batch
                worker, kind, batch = self._arrived.pop(self._wanted)
                self._wanted += 1
                # Acted on in the order of the tasks, not of arrival, so that no task's worker depends on time.
                if kind == "end" and worker in self._open_workers:
                    self._open_workers.remove(worker)
                self._ask()
                if kind == "batch":
                    delivered = self._loader._delivered(batch)
                    self.given = self._wanted
                    return delivered
            self._finish()
        except BaseException:  # Ctrl-C too: no worker stays behind
            self.is_over = True
            self._pool.stop()
            raise
        raise StopIteration

    def _finish(self) -> None:
        super()._finish()
        if self._pool is not self._loader._pool:
            self._pool.stop()


def _at_least_zero(name: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ArgumentTypeError(message(f"DataLoader: {name} is {describe(value)}", "it must be a number of at least 0"))
    if value < 0:
        raise ArgumentError(message(f"DataLoader: {name} is {value}", "it must be at least 0"))
    return value
