"""From samples to batches: arrays in the workers, tensors in the process that trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..framework.arrays import is_tensor, to_array, to_tensor

Allocate = Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray]


class Batches:
    """Where the arrays of new batches come from: in a worker, the memory that it shares with the main process."""

    allocate: Allocate = staticmethod(np.empty)  # type: ignore[assignment]


def default_collate_fn(batch: Sequence[Any]) -> Any:
    """One batch out of samples of the same form.

    Arrays, tensors and numbers are stacked to arrays with a new first axis (Python's ints become int64, its floats float64);
    text stays a list; dicts become dicts and tuples or lists become lists of batched fields.

    Args:
        batch: the samples; at least one.

    Raises:
        ArgumentError: arrays of different shapes, or samples with different numbers of fields.
        ArgumentTypeError: a field of another kind.

    Example:
        >>> import numpy as np
        >>> from sampan.io import default_collate_fn
        >>> images, labels = default_collate_fn([(np.zeros(3), 5), (np.ones(3), 7)])
        >>> images.shape, labels.tolist()
        ((2, 3), [5, 7])
    """
    first = batch[0]
    if isinstance(first, np.ndarray):
        return _stack(batch)
    if is_tensor(first):
        return _stack([to_array(sample) for sample in batch])
    if isinstance(first, (int, float, complex, np.generic)) and not isinstance(first, (np.str_, np.bytes_)):
        return np.array(batch)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate_fn([sample[key] for sample in batch]) for key in first}
    if isinstance(first, Sequence):
        sizes = {len(sample) for sample in batch}
        if len(sizes) > 1:
            raise ArgumentError(
                message(
                    f"samples of one batch have {sorted(sizes)} fields",
                    "they are collated field by field",
                    "return the same fields for every index, or pass collate_fn",
                )
            )
        return [default_collate_fn(fields) for fields in zip(*batch, strict=True)]
    raise ArgumentTypeError(
        message(
            f"a sample holds {'None' if first is None else f'a {type(first).__module__}.{type(first).__qualname__}'}",
            "only arrays, tensors, numbers, text, and dicts, tuples and lists of them are collated",
            "return one of these from the dataset, or pass DataLoader a collate_fn",
        )
    )


def _stack(samples: Sequence[np.ndarray]) -> np.ndarray:
    first = samples[0]
    if any(sample.shape != first.shape for sample in samples):
        shapes = ", ".join(str(list(shape)) for shape in sorted({s.shape for s in samples})[:4])
        raise ArgumentError(
            message(
                f"arrays of one batch have the shapes {shapes}",
                "a batch is one array",
                "bring them to one shape in the dataset (pad, crop, resize), or pass collate_fn",
            )
        )
    if first.dtype.hasobject:
        return np.stack(samples)
    dtype = first.dtype if all(sample.dtype == first.dtype for sample in samples) else np.result_type(*samples)
    return np.stack(samples, out=Batches.allocate((len(samples), *first.shape), dtype))


def default_convert_fn(sample: Any) -> Any:
    """A sample that is not batched: its tensors as arrays, everything else as it is."""
    return map_leaves(lambda leaf: to_array(leaf) if is_tensor(leaf) else leaf, sample)


def to_tensors(batch: Any) -> Any:
    """The batch with tensors in place of arrays, and lists in place of tuples."""
    return map_leaves(
        lambda leaf: to_tensor(leaf) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufcV" else leaf, batch
    )


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same nesting with ``function`` applied to each leaf; tuples of any kind become lists."""
    if isinstance(tree, Mapping):
        return {key: map_leaves(function, value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [map_leaves(function, value) for value in tree]
    return function(tree)
