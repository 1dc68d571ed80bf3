"""Renumbering the nodes of a sampled part of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, describe, message
from ..tensor import Tensor, to_tensor
from ..tensor.replay import recordable


@recordable("geometric.reindex_graph", lambda x, *_: ((x.dtype, (-1,)),) * 3)
def reindex_graph(
    x: Tensor,
    neighbors: Tensor,
    count: Tensor,
    value_buffer: Tensor | None = None,
    index_buffer: Tensor | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The nodes of a part of a graph numbered from 0: first those of x, then their neighbours as they come.

    Args:
        x: the nodes, each once.
        neighbors: the neighbours of x's first node, of its second ...
        count: how many neighbours each node of x has.
        value_buffer: accepted for compatibility.
        index_buffer: accepted for compatibility.

    Returns:
        The new numbers of the edges' sources (the neighbours), those of their destinations (the nodes of x), and the old number of each new one.

    Raises:
        ArgumentError: a node is twice in x, or the counts do not fit.

    Example:
        >>> import sampan as paddle
        >>> x, neighbors, count = paddle.to_tensor([5, 9]), paddle.to_tensor([9, 7, 5]), paddle.to_tensor([2, 1])
        >>> [t.tolist() for t in paddle.geometric.reindex_graph(x, neighbors, count)]
        [[1, 2, 0], [0, 0, 1], [5, 9, 7]]
    """
    return reindex_heter_graph(x, [neighbors], [count])


@recordable("geometric.reindex_heter_graph", lambda x, *_: ((x.dtype, (-1,)),) * 3)
def reindex_heter_graph(
    x: Tensor,
    neighbors: Sequence[Tensor],
    count: Sequence[Tensor],
    value_buffer: Tensor | None = None,
    index_buffer: Tensor | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """``reindex_graph`` for several kinds of edges over the same nodes: their edges one kind after the other.

    Args:
        x: the nodes, each once.
        neighbors: for each kind of edges, the neighbours of x's first node, of its second ...
        count: for each kind, how many neighbours each node of x has.
        value_buffer: accepted for compatibility.
        index_buffer: accepted for compatibility.

    Returns:
        The new numbers of the edges' sources, those of their destinations, and the old number of each new one.

    Raises:
        ArgumentError: a node is twice in x, or the counts do not fit.
    """
    lists = {"neighbors": neighbors, "count": count}
    for parameter, tensors in ({"x": [x]} | lists).items():
        if not isinstance(tensors, (list, tuple)) or any(not isinstance(t, Tensor) for t in tensors):
            raise ArgumentTypeError(message(f"reindex_graph(): {parameter} is {describe(tensors)}", "it must hold Tensors"))
    if len(neighbors) != len(count):
        raise ArgumentError(
            message(f"reindex_graph(): there are {len(neighbors)} neighbors and {len(count)} counts", "each kind has both")
        )
    nodes = x.numpy_view().reshape(-1)
    if len(np.unique(nodes)) != len(nodes):
        raise ArgumentError(message("reindex_graph(): x holds a node twice", "", "pass unique(x)"))
    sources, targets = [], []
    for near, counts in zip(*lists.values(), strict=True):
        found, numbers = near.numpy_view().reshape(-1), counts.numpy_view().reshape(-1)
        if len(numbers) != len(nodes) or numbers.sum() != len(found):
            raise ArgumentError(
                message(
                    f"reindex_graph(): count holds {len(numbers)} numbers that sum to {numbers.sum()}",
                    f"there are {len(nodes)} nodes and {len(found)} neighbours",
                )
            )
        sources.append(found)
        targets.append(np.repeat(np.arange(len(nodes)), numbers))
    known, first, inverse = np.unique(np.concatenate([nodes, *sources]), return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty(len(known), np.int64)
    number[order] = np.arange(len(known))
    renumbered: Any = number[inverse.reshape(-1)][len(nodes) :]
    return to_tensor(renumbered, x.dtype), to_tensor(np.concatenate(targets), x.dtype), to_tensor(known[order], x.dtype)
