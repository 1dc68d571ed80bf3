"""Samplers: the order in which samples are taken. Random orders come from NumPy's global generator (``numpy.random.seed``)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sized
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, describe, message
from ..framework.arrays import to_array
from ..tensor.explained import Explained


class Sampler(Explained):
    """The base of samplers: define ``__iter__``, which gives indices, and ``__len__``.

    Args:
        data_source: the dataset whose indices are given.

    Example:
        >>> from sampan.io import Sampler
        >>> class Backwards(Sampler):
        ...     def __iter__(self):
        ...         return iter(range(len(self.data_source) - 1, -1, -1))
        ...     def __len__(self):
        ...         return len(self.data_source)
        >>> list(Backwards("abc"))
        [2, 1, 0]
    """

    def __init__(self, data_source: Sized | None = None) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        """The indices, in order."""
        raise NotImplementedError(
            message(f"{type(self).__name__} has no __iter__()", "a sampler gives indices", "define __iter__ and yield them")
        )


class SequenceSampler(Sampler):
    """The indices from 0 to the end.

    Args:
        data_source: the dataset whose indices are given.

    Example:
        >>> from sampan.io import SequenceSampler
        >>> list(SequenceSampler("abc"))
        [0, 1, 2]
    """

    data_source: Sized

    def __iter__(self) -> Iterator[int]:
        """0, 1, 2 ..."""
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        """The dataset's length."""
        return len(self.data_source)


class RandomSampler(Sampler):
    """The indices in a new random order each time.

    Args:
        data_source: the dataset whose indices are given.
        replacement: draw each index anew, so that some come more than once.
        num_samples: how many to draw; the dataset's length when it is None.
        generator: an iterator (or a function that returns one) that gives the indices itself; it ends the sampling when it ends.

    Raises:
        ArgumentTypeError: ``replacement`` is no bool.
        ArgumentError: ``num_samples`` is not positive, or more than the dataset holds without replacement.

    Example:
        >>> from sampan.io import RandomSampler
        >>> sorted(RandomSampler("abc"))
        [0, 1, 2]
    """

    data_source: Sized

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        super().__init__(data_source)
        if not isinstance(replacement, bool):
            raise ArgumentTypeError(message(f"RandomSampler: replacement is {describe(replacement)}", "it must be a bool"))
        self.replacement = replacement
        self.generator = generator
        self._num_samples = num_samples
        if len(data_source) == 0 and num_samples is None:
            raise ArgumentError(
                message(
                    f"RandomSampler: the dataset ({type(data_source).__name__}) is empty",
                    "there is no index to draw",
                    "check what fills it, or pass shuffle=False",
                )
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ArgumentError(message(f"RandomSampler: num_samples is {describe(num_samples)}", "it must be a positive int"))
        if not replacement and self.num_samples > len(data_source):
            raise ArgumentError(
                message(
                    f"RandomSampler: num_samples is {num_samples}",
                    f"without replacement there are only {len(data_source)}",
                    "pass replacement=True to draw more",
                )
            )

    @property
    def num_samples(self) -> int:
        """How many indices are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        """The indices; all are drawn at once."""
        if self.generator is not None:
            drawn = self.generator() if callable(self.generator) else self.generator
            return (int(index) for index in itertools.islice(drawn, self.num_samples))
        return iter(np.random.choice(len(self.data_source), self.num_samples, self.replacement).tolist())

    def __len__(self) -> int:
        """How many indices are drawn."""
        return self.num_samples


class WeightedRandomSampler(Sampler):
    """Indices drawn with the given weights.

    Args:
        weights: a weight for each index, at least 0, not all 0; or a matrix, each of whose rows is drawn from by itself.
        num_samples: how many to draw (from each row).
        replacement: draw each index anew; otherwise none comes twice.

    Raises:
        ArgumentTypeError: ``replacement`` is no bool.
        ArgumentError: a weight is negative, too few are positive, or ``num_samples`` is not positive.

    Example:
        >>> from sampan.io import WeightedRandomSampler
        >>> set(WeightedRandomSampler([0.0, 0.9, 0.1], num_samples=50)) <= {1, 2}
        True
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True) -> None:
        super().__init__()
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ArgumentError(
                message(f"WeightedRandomSampler: num_samples is {describe(num_samples)}", "it must be a positive int")
            )
        if not isinstance(replacement, bool):
            raise _BoolError(message(f"WeightedRandomSampler: replacement is {describe(replacement)}", "it must be a bool"))
        self.weights = to_array(weights).astype(np.float64)
        if self.weights.ndim not in (1, 2) or not np.all(self.weights >= 0) or not np.all(np.isfinite(self.weights)):
            raise ArgumentError(
                message(
                    f"WeightedRandomSampler: weights is {describe(weights)}",
                    "it must be a list (or matrix) of finite numbers of at least 0",
                )
            )
        fewest = int(np.count_nonzero(self.weights, axis=-1).min(initial=self.weights.size))
        if fewest < (1 if replacement else num_samples):
            raise ArgumentError(
                message(
                    f"WeightedRandomSampler: {fewest} weights are positive",
                    f"{num_samples} indices are to be drawn",
                    "raise the weights, or pass replacement=True",
                )
            )
        self.num_samples = num_samples
        self.replacement = replacement

    def __iter__(self) -> Iterator[int]:
        """The indices; all are drawn at once. Rows of a matrix follow one another."""
        rows = np.atleast_2d(self.weights)
        drawn = [np.random.choice(rows.shape[1], self.num_samples, self.replacement, row / row.sum()) for row in rows]
        return iter(np.concatenate(drawn).tolist())

    def __len__(self) -> int:
        """How many indices are drawn."""
        return self.num_samples * (1 if self.weights.ndim == 1 else len(self.weights))


class _BoolError(ArgumentTypeError, ValueError):
    """A value that should be a bool; also a ValueError, as in Paddle."""


class SubsetRandomSampler(Sampler):
    """The given indices in a new random order each time.

    Args:
        indices: the indices; at least one.

    Raises:
        ArgumentError: ``indices`` is empty.

    Example:
        >>> from sampan.io import SubsetRandomSampler
        >>> sorted(SubsetRandomSampler([5, 3, 9]))
        [3, 5, 9]
    """

    def __init__(self, indices: Any) -> None:
        super().__init__()
        if len(indices) == 0:
            raise ArgumentError(message("SubsetRandomSampler: indices is empty", "there is no index to draw"))
        self.indices = indices

    def __iter__(self) -> Iterator[int]:
        """The indices."""
        return (self.indices[i] for i in np.random.permutation(len(self.indices)).tolist())

    def __len__(self) -> int:
        """The number of indices."""
        return len(self.indices)


def checked_size(owner: str, name: str, value: Any) -> int:
    """``value``, when it is a positive int."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value <= 0:
        raise ArgumentError(message(f"{owner}: {name} is {describe(value)}", "it must be a positive int"))
    return int(value)


def checked_bool(owner: str, name: str, value: Any) -> bool:
    """``value``, when it is a bool."""
    if not isinstance(value, bool):
        raise ArgumentTypeError(message(f"{owner}: {name} is {describe(value)}", "it must be a bool"))
    return value


class BatchSampler(Sampler):
    """Lists of indices, one list a batch.

    Args:
        dataset: the dataset whose indices are given, in order or shuffled; or else
        sampler: a sampler, or any iterable of indices, whose order is kept.
        shuffle: take the dataset's indices in random order.
        batch_size: indices of a batch; at least 1.
        drop_last: leave out a last batch that is not full.

    Raises:
        ArgumentError: neither or both of ``dataset`` and ``sampler``, or ``shuffle`` with a sampler, or a bad ``batch_size``.
        ArgumentTypeError: an argument of the wrong type.

    Example:
        >>> from sampan.io import BatchSampler
        >>> list(BatchSampler("abcde", batch_size=2))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any = None,
        sampler: Iterable[int] | None = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        super().__init__(dataset)
        owner = type(self).__name__
        if (dataset is None) == (sampler is None):
            received = "neither was given" if dataset is None else "both were given"
            raise ArgumentError(
                message(f"{owner}: {received}", "it takes a dataset, or a sampler, which decides the order itself")
            )
        self.shuffle = checked_bool(owner, "shuffle", shuffle)
        self.drop_last = checked_bool(owner, "drop_last", drop_last)
        self.batch_size = checked_size(owner, "batch_size", batch_size)
        if sampler is not None:
            if not isinstance(sampler, Iterable):
                raise ArgumentTypeError(
                    message(f"{owner}: sampler is {describe(sampler)}", "it must be a Sampler or an iterable of indices")
                )
            if shuffle:
                raise ArgumentError(
                    message(
                        f"{owner}: shuffle=True with a sampler",
                        "the sampler decides the order",
                        "pass RandomSampler(dataset) as the sampler",
                    )
                )
            self.sampler = sampler
        elif not hasattr(dataset, "__len__"):
            raise ArgumentTypeError(message(f"{owner}: dataset is {describe(dataset)}", "it must have a length"))
        else:
            self.sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)

    def __iter__(self) -> Iterator[list[int]]:  # type: ignore[override]
        """The batches of indices."""
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        """The number of batches."""
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class Replicas:
    """Which of how many processes this one is, as samplers see it; ``distributed`` sets it when it starts."""

    rank = 0
    count = 1


class DistributedBatchSampler(BatchSampler):
    """The batches that fall to one of several processes, so that together they see the whole dataset.

    The indices are filled up from the front so that every process gets equally many; each takes every ``num_replicas``-th batch.

    Args:
        dataset: the dataset whose indices are given.
        batch_size: indices of a batch; at least 1.
        num_replicas: the number of processes; that of the running group when it is None.
        rank: this process's number; that in the running group when it is None.
        shuffle: take the indices in an order that depends on the epoch alone, so it is the same in every process.
        drop_last: leave out a last batch that is not full.

    Raises:
        ArgumentError: a size or the rank is out of range.

    Example:
        >>> from sampan.io import DistributedBatchSampler
        >>> list(DistributedBatchSampler(range(7), batch_size=2, num_replicas=2, rank=1))
        [[2, 3], [6, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:
        super().__init__(dataset, batch_size=batch_size, drop_last=drop_last)
        self.dataset = dataset
        self.shuffle = checked_bool("DistributedBatchSampler", "shuffle", shuffle)
        self.nranks = (
            Replicas.count if num_replicas is None else checked_size("DistributedBatchSampler", "num_replicas", num_replicas)
        )
        self.local_rank = Replicas.rank if rank is None else rank
        if not isinstance(self.local_rank, int) or not 0 <= self.local_rank < self.nranks:
            raise ArgumentError(
                message(f"DistributedBatchSampler: rank is {describe(rank)}", f"it must be an int from 0 to {self.nranks - 1}")
            )
        self.epoch = 0
        self.num_samples = -(-len(dataset) // self.nranks)
        self.total_size = self.num_samples * self.nranks

    def __iter__(self) -> Iterator[list[int]]:  # type: ignore[override]
        """The batches of this process; each pass over them goes to the next epoch's order."""
        order = np.resize(np.arange(len(self.dataset)), self.total_size)
        if self.shuffle:
            np.random.RandomState(self.epoch).shuffle(order)
            self.epoch += 1
        round_size = self.batch_size * self.nranks
        whole = len(order) // round_size * round_size
        mine = order[:whole].reshape(-1, self.nranks, self.batch_size)[:, self.local_rank].tolist()
        rest = order[whole:].reshape(self.nranks, -1)[self.local_rank].tolist()
        yield from mine
        if rest and not self.drop_last:
            yield rest

    def __len__(self) -> int:
        """The number of this process's batches."""
        return self.num_samples // self.batch_size if self.drop_last else -(-self.num_samples // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next pass; without it each pass goes one further.

        Args:
            epoch: the number that the order depends on.
        """
        self.epoch = epoch
