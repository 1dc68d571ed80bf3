"""Ids and sequences: one-hot rows, masks of lengths, beams traced back, class centres drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import ArgumentError, ArgumentTypeError, DTypeError, IndexRangeError, ShapeError, message
from ...tensor import OPS, Tensor, share_array
from ...tensor.functions import dtype_name
from ...tensor.random import default_generator
from ...tensor.replay import decided_by_data, takes_numbers


@takes_numbers("num_classes")
@decided_by_data(
    lambda x, num_classes=-1, name=None: (
        ("float32", (*x.shape, -1)) if isinstance(num_classes, int) and num_classes == -1 else None
    )
)
def one_hot(x: Tensor, num_classes: int = -1, name: str | None = None) -> Tensor:
    """float32 [..., num_classes]: 1 at each id, 0 elsewhere.

    Args:
        x: integer ids.
        num_classes: the length of the new last axis; -1: the largest id plus one.

    Raises:
        ArgumentError: an id is negative or not below ``num_classes``.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.functional.one_hot(paddle.to_tensor([1, 0]), 3).tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    if isinstance(num_classes, Tensor):
        num_classes = int(num_classes)
    if isinstance(num_classes, bool) or not isinstance(num_classes, int):
        raise ArgumentTypeError(message(f"one_hot(): num_classes={num_classes!r}", "it must be an integer"))
    if num_classes == -1:
        num_classes = int(OPS["max"](x)) + 1 if x.size else 0
    if num_classes < 0:
        raise ArgumentError(message(f"one_hot(): num_classes={num_classes}", "it must be -1 or positive"))
    return OPS["one_hot"](x, num_classes)


@takes_numbers("maxlen")
@decided_by_data(
    lambda x, maxlen=None, dtype="int64", name=None: (
        (dtype_name("sequence_mask", dtype), (*x.shape, -1)) if maxlen is None else None
    )
)
def sequence_mask(x: Tensor, maxlen: int | None = None, dtype: Any = "int64", name: str | None = None) -> Tensor:
    """[..., maxlen]: 1 at positions below each length, 0 from there on.

    Args:
        x: integer lengths.
        maxlen: the length of the new last axis; by default the largest length.
        dtype: of the result.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.functional.sequence_mask(paddle.to_tensor([1, 3])).tolist()
        [[1, 0, 0], [1, 1, 1]]
    """
    width = int(maxlen) if maxlen is not None else int(OPS["max"](x))
    if width < 1:
        raise ArgumentError(message(f"sequence_mask(): maxlen={width}", "it must be positive"))
    return OPS["length_mask"](x, width, dtype_name("sequence_mask", dtype))


@decided_by_data(lambda ids, parents: (ids.dtype, tuple(ids.shape)))
def gather_tree(ids: Tensor, parents: Tensor) -> Tensor:
    """The sequences of a beam search, traced back from their ends.

    Args:
        ids: [T, N, beams], the token that each beam took at each step.
        parents: [T, N, beams], the beam of the step before that it continued.

    Returns:
        [T, N, beams]: the tokens of each final beam, from its first step on.
    """
    if len(ids.shape) != 3 or list(ids.shape) != list(parents.shape):
        raise ShapeError(
            message(f"gather_tree(): ids is {list(ids.shape)} and parents {list(parents.shape)}", "both must be [T, N, beams]")
        )
    tokens, before = ids.numpy(), parents.numpy()
    if tokens.dtype.kind != "i" or before.dtype.kind != "i":
        raise DTypeError(
            message(f"gather_tree(): ids is {tokens.dtype} and parents {before.dtype}", "both must be int32 or int64")
        )
    beams = tokens.shape[2]
    if before.size and not (0 <= before.min() and before.max() < beams):
        at = tuple(int(k) for k in np.argwhere((before < 0) | (before >= beams))[0])
        raise IndexRangeError(
            message(
                f"gather_tree(): parents{list(at)} is {before[at]}", f"there are {beams} beams, so 0 to {beams - 1} are valid"
            )
        )
    result = np.empty_like(tokens)
    beam = np.broadcast_to(np.arange(tokens.shape[2]), tokens.shape[1:])
    for t in range(tokens.shape[0] - 1, -1, -1):
        result[t] = np.take_along_axis(tokens[t], beam, axis=1)
        beam = np.take_along_axis(before[t], beam, axis=1)
    return share_array(result)


@decided_by_data(lambda label, *_, **__: ((label.dtype, tuple(label.shape)), (label.dtype, (-1,))))
def class_center_sample(label: Tensor, num_classes: int, num_samples: int, group: Any = None) -> tuple[Tensor, Tensor]:
    """The classes that occur, filled up with others at random, and the labels counted among them.

    Args:
        label: integer ids [N].
        num_classes: how many classes there are.
        num_samples: how many to keep; more when more occur.
        group: one process: None or False.

    Returns:
        (labels as positions in the second result, the kept classes: those that occur in rising order first).

    Source: X. An et al., "Partial FC", https://arxiv.org/abs/2010.05222
    """
    if num_samples > num_classes:
        raise ArgumentError(
            message(f"class_center_sample(): num_samples={num_samples} of num_classes={num_classes}", "it must not be more")
        )
    ids = label.numpy()
    if ids.size and not (0 <= ids.min() and ids.max() < num_classes):
        raise ArgumentError(
            message("class_center_sample(): label holds ids outside of the classes", f"they must be in [0, {num_classes - 1}]")
        )
    present = np.unique(ids)
    others = np.setdiff1d(np.arange(num_classes), present)
    generator = np.random.Generator(np.random.Philox(key=default_generator.next_key() & ((1 << 64) - 1)))
    extra = generator.permutation(others)[: max(num_samples - len(present), 0)]
    kept = np.concatenate([present, extra]).astype(ids.dtype)
    return share_array(np.searchsorted(present, ids).astype(ids.dtype)), share_array(kept)


__all__ = ["class_center_sample", "gather_tree", "one_hot", "sequence_mask"]
