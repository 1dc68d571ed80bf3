"""Datasets: what has samples by index, what gives samples one after another, and ways to put them together."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, IndexRangeError, describe, message

T = TypeVar("T")


class Dataset(Generic[T]):
    """The base of datasets that give a sample by its index: define ``__getitem__`` and ``__len__``.

    Example:
        >>> from sampan.io import Dataset
        >>> class Squares(Dataset):
        ...     def __getitem__(self, index):
        ...         return index * index
        ...     def __len__(self):
        ...         return 4
        >>> Squares()[3]
        9
    """

    def __getitem__(self, index: int) -> T:
        """The sample with this index."""
        raise NotImplementedError(_undefined(self, "__getitem__", "return the sample with the given index"))

    def __len__(self) -> int:
        """The number of samples."""
        raise NotImplementedError(_undefined(self, "__len__", "return the number of samples"))


class IterableDataset(Dataset[T]):
    """The base of datasets that give samples one after another (a stream, a large file): define ``__iter__``.

    With several workers each runs its own ``__iter__``; use ``get_worker_info()`` there to give each its share.

    Example:
        >>> from sampan.io import IterableDataset
        >>> class Countdown(IterableDataset):
        ...     def __iter__(self):
        ...         return iter([3, 2, 1])
        >>> list(Countdown())
        [3, 2, 1]
    """

    def __iter__(self) -> Iterator[T]:
        """The samples, from the first one on."""
        raise NotImplementedError(_undefined(self, "__iter__", "return an iterator over the samples"))

    def __getitem__(self, index: int) -> T:
        """Refused: this kind of dataset has no indices."""
        raise _NoIndexError(
            message(
                f"{type(self).__name__}[{index!r}]",
                "an IterableDataset has no indices",
                "iterate over it, or derive from Dataset",
            )
        )

    def __len__(self) -> int:
        """Refused: the number of samples is known only at the end."""
        raise _NoLengthError(
            message(f"len({type(self).__name__})", "an IterableDataset has no length", "define __len__ if its length is known")
        )


class _NoIndexError(ArgumentTypeError, RuntimeError):
    """Indexing a stream; also a RuntimeError, as in Paddle."""


class _NoLengthError(ArgumentTypeError, RuntimeError):
    """Length of a stream; a TypeError, so that ``list()`` does without it, and a RuntimeError, as in Paddle."""


class TensorDataset(Dataset[tuple[Any, ...]]):
    """The rows of several tensors (or arrays) of the same length: sample i is the tuple of their rows i.

    Args:
        tensors: the tensors; their first axes must be equally long.

    Raises:
        ArgumentError: no tensor, a tensor without axes, or different lengths.

    Example:
        >>> import numpy as np
        >>> from sampan.io import TensorDataset
        >>> dataset = TensorDataset([np.arange(6).reshape(3, 2), np.array([7, 8, 9])])
        >>> [row.tolist() for row in dataset[1]]
        [[2, 3], 8]
    """

    def __init__(self, tensors: Sequence[Any]) -> None:
        shapes = [tuple(t.shape) for t in tensors]
        if not shapes or not all(shapes) or len({shape[0] for shape in shapes}) > 1:
            raise ArgumentError(
                message(
                    f"TensorDataset: the tensors' shapes are {list(map(list, shapes))}",
                    "at least one tensor, and equal first axes, are needed",
                )
            )
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """The tuple of rows with this index."""
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        """The length of the tensors' first axis."""
        return int(self.tensors[0].shape[0])


class ComposeDataset(Dataset[tuple[Any, ...]]):
    """Datasets of the same length side by side: sample i is all fields of their samples i in one tuple.

    Args:
        datasets: datasets with indices and equal lengths.

    Raises:
        ArgumentError: no dataset, or different lengths.
        ArgumentTypeError: an ``IterableDataset``.

    Example:
        >>> from sampan.io import ComposeDataset
        >>> ComposeDataset([[(1, 2), (3, 4)], ["a", "b"]])[1]
        (3, 4, 'b')
    """

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = _indexed("ComposeDataset", datasets)
        lengths = [len(d) for d in self.datasets]
        if len(set(lengths)) > 1:
            raise ArgumentError(message(f"ComposeDataset: the datasets' lengths are {lengths}", "they must be equal"))

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """All fields of the samples with this index."""
        samples = (dataset[index] for dataset in self.datasets)
        return tuple(itertools.chain.from_iterable(s if isinstance(s, (list, tuple)) else (s,) for s in samples))

    def __len__(self) -> int:
        """The length of each dataset."""
        return len(self.datasets[0])


class ChainDataset(IterableDataset[Any]):
    """Streams one after another.

    Args:
        datasets: the ``IterableDataset``s.

    Raises:
        ArgumentError: no dataset.
        ArgumentTypeError: something that is no ``IterableDataset``.

    Example:
        >>> from sampan.io import ChainDataset, IterableDataset
        >>> class Two(IterableDataset):
        ...     def __iter__(self):
        ...         return iter([1, 2])
        >>> list(ChainDataset([Two(), Two()]))
        [1, 2, 1, 2]
    """

    def __init__(self, datasets: Sequence[IterableDataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError(message("ChainDataset: datasets is empty", "at least one dataset is needed"))
        for i, dataset in enumerate(self.datasets):
            if not isinstance(dataset, IterableDataset):
                raise ArgumentTypeError(
                    message(
                        f"ChainDataset: datasets[{i}] is {describe(dataset)}",
                        "it must be an IterableDataset",
                        "use ConcatDataset for datasets with indices",
                    )
                )

    def __iter__(self) -> Iterator[Any]:
        """The samples of the first dataset, then of the second, and so on."""
        return itertools.chain.from_iterable(self.datasets)


class ConcatDataset(Dataset[Any]):
    """Datasets one after another, with indices.

    Args:
        datasets: datasets with indices.

    Raises:
        ArgumentError: no dataset.
        ArgumentTypeError: an ``IterableDataset``.

    Example:
        >>> from sampan.io import ConcatDataset
        >>> dataset = ConcatDataset([[1, 2], [3, 4, 5]])
        >>> dataset[2], dataset[-1], len(dataset)
        (3, 5, 5)
    """

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The running sums of the lengths: for each dataset, where the next one starts."""
        return list(itertools.accumulate(len(item) for item in sequence))

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = _indexed("ConcatDataset", datasets)
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __getitem__(self, index: int) -> Any:
        """The sample with this index, counted through all datasets; negative ones count from the end."""
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexRangeError(message(f"ConcatDataset[{index}]", f"it holds {len(self)} samples"))
        which = bisect.bisect_right(self.cumulative_sizes, position)
        return self.datasets[which][position - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        """The sum of the lengths."""
        return self.cumulative_sizes[-1]


class Subset(Dataset[T]):
    """The samples of a dataset that have the given indices.

    Args:
        dataset: a dataset with indices.
        indices: the indices, in the order wanted.

    Example:
        >>> from sampan.io import Subset
        >>> Subset("abcde", [3, 1])[0]
        'd'
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: int) -> T:
        """The sample that the index of this index names."""
        return self.dataset[self.indices[index]]  # type: ignore[no-any-return]

    def __len__(self) -> int:
        """The number of indices."""
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset[Any]]:
    """Subsets with no sample in common, drawn at random.

    Args:
        dataset: a dataset with indices.
        lengths: the subsets' sizes, which add up to the dataset's; or parts of 1, where what rounding leaves over goes to the
            first subsets, one sample each.
        generator: accepted for Paddle's signature; the order comes from NumPy's global generator.

    Raises:
        ArgumentError: the lengths do not add up.

    Example:
        >>> from sampan.io import random_split
        >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
        [8, 2]
    """
    total = len(dataset)
    sizes = list(lengths)
    if any(isinstance(n, float) for n in sizes) and math.isclose(sum(sizes), 1.0, abs_tol=1e-9):
        sizes = [math.floor(total * part) for part in sizes]
        for i in range(total - int(sum(sizes))):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != total or any(n < 0 or n != int(n) for n in sizes):
        raise ArgumentError(
            message(f"random_split: lengths is {list(lengths)}", f"it must add up to the dataset's length, {total}, or to 1")
        )
    order = np.random.permutation(total).tolist()
    ends = list(itertools.accumulate(map(int, sizes)))
    return [Subset(dataset, order[end - int(size) : end]) for end, size in zip(ends, sizes, strict=True)]


def _indexed(owner: str, datasets: Iterable[Any]) -> list[Any]:
    found = list(datasets)
    if not found:
        raise ArgumentError(message(f"{owner}: datasets is empty", "at least one dataset is needed"))
    for i, dataset in enumerate(found):
        if isinstance(dataset, IterableDataset):
            raise ArgumentTypeError(
                message(
                    f"{owner}: datasets[{i}] is an IterableDataset ({type(dataset).__name__})",
                    "it has no indices",
                    "use ChainDataset for streams",
                )
            )
    return found


def _undefined(dataset: object, method: str, meaning: str) -> str:
    return message(
        f"{type(dataset).__name__} has no {method}()", "every dataset of this kind needs it", f"define {method} and {meaning}"
    )
