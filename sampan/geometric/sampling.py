"""Sampling neighbours from a graph in compressed columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, describe, message
from ..tensor import Tensor, to_tensor
from ..tensor.random_functions import host_generator
from ..tensor.replay import recordable


def _types(row: Any, input_nodes: Any, eids: Any, return_eids: bool) -> Any:
    """The types of what is sampled, whose sizes only a run knows."""
    found = ((row.dtype, (-1,)), ("int32", tuple(input_nodes.shape)))
    return (*found, (eids.dtype, (-1,))) if return_eids else found


@recordable(
    "geometric.sample_neighbors",
    lambda row, colptr, nodes, size, eids, return_eids, buffer, name: _types(row, nodes, eids, return_eids),
)
def sample_neighbors(
    row: Tensor,
    colptr: Tensor,
    input_nodes: Tensor,
    sample_size: int = -1,
    eids: Tensor | None = None,
    return_eids: bool = False,
    perm_buffer: Tensor | None = None,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Up to ``sample_size`` neighbours of each node, drawn without replacement.

    Args:
        row: the neighbours of node 0, of node 1 ...
        colptr: where in ``row`` each node's neighbours begin, and the end.
        input_nodes: the nodes to sample for.
        sample_size: the most neighbours of a node; -1: all.
        eids: the numbers of the edges in ``row``.
        return_eids: also give the numbers of the drawn edges.
        perm_buffer: accepted for compatibility.

    Returns:
        The neighbours, how many each node has (int32), and the edges' numbers where they are asked for.

    Raises:
        ArgumentError: ``return_eids`` without ``eids``, or a node outside of the graph.

    Example:
        >>> import sampan as paddle
        >>> row, colptr = paddle.to_tensor([3, 7, 0, 9]), paddle.to_tensor([0, 2, 3, 4])
        >>> near, count = paddle.geometric.sample_neighbors(row, colptr, paddle.to_tensor([0, 2]))
        >>> near.tolist(), count.tolist()
        ([3, 7, 9], [2, 1])
    """
    return _sampled("sample_neighbors", row, colptr, None, input_nodes, sample_size, eids, return_eids)


@recordable(
    "geometric.weighted_sample_neighbors",
    lambda row, colptr, weight, nodes, size, eids, return_eids, name: _types(row, nodes, eids, return_eids),
)
def weighted_sample_neighbors(
    row: Tensor,
    colptr: Tensor,
    edge_weight: Tensor,
    input_nodes: Tensor,
    sample_size: int = -1,
    eids: Tensor | None = None,
    return_eids: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Up to ``sample_size`` neighbours of each node, drawn without replacement by the weights of the edges.

    The method is that of https://doi.org/10.1016/j.ipl.2005.11.003: the largest of u ** (1 / weight).

    Args:
        row: the neighbours of node 0, of node 1 ...
        colptr: where in ``row`` each node's neighbours begin, and the end.
        edge_weight: the weight of each edge in ``row``, at least 0.
        input_nodes: the nodes to sample for.
        sample_size: the most neighbours of a node; -1: all.
        eids: the numbers of the edges in ``row``.
        return_eids: also give the numbers of the drawn edges.

    Returns:
        The neighbours, how many each node has (int32), and the edges' numbers where they are asked for.

    Raises:
        ArgumentError: ``return_eids`` without ``eids``, or a node outside of the graph.
    """
    if not isinstance(edge_weight, Tensor):
        raise ArgumentTypeError(
            message(f"weighted_sample_neighbors(): edge_weight is {describe(edge_weight)}", "it must be a Tensor")
        )
    weights = edge_weight.numpy_view().reshape(-1)
    return _sampled("weighted_sample_neighbors", row, colptr, weights, input_nodes, sample_size, eids, return_eids)


def _sampled(
    name: str,
    row: Tensor,
    colptr: Tensor,
    weights: Any,
    input_nodes: Tensor,
    sample_size: int,
    eids: Tensor | None,
    return_eids: bool,
) -> tuple[Tensor, ...]:
    if return_eids and eids is None:
        raise ArgumentError(message(f"{name}(): return_eids needs eids", "", "pass the numbers of the edges"))
    given = {"row": row, "colptr": colptr, "input_nodes": input_nodes}
    for parameter, t in given.items():
        if not isinstance(t, Tensor) or t.dtype.name not in ("int32", "int64"):
            raise ArgumentTypeError(message(f"{name}(): {parameter} is {describe(t)}", "it must be an int32 or int64 Tensor"))
    rows, ends, nodes = (t.numpy_view().reshape(-1) for t in given.values())
    if not ends.size or ends[0] != 0 or ends[-1] != rows.size or (np.diff(ends) < 0).any():
        raise ArgumentError(
            message(
                f"{name}(): colptr does not divide row",
                f"it must rise from 0 to the {rows.size} edges",
                "pass the graph in CSC form",
            )
        )
    if weights is not None and len(weights) < rows.size:
        raise ShapeError(message(f"{name}(): edge_weight has {len(weights)} elements", f"there are {rows.size} edges"))
    if nodes.size and (nodes.min() < 0 or nodes.max() >= len(ends) - 1):
        raise ArgumentError(
            message(f"{name}(): input_nodes holds a node outside of the graph", f"there are {len(ends) - 1} nodes")
        )
    generator = host_generator()
    picked = [_drawn(generator, int(ends[n]), int(ends[n + 1]), weights, sample_size) for n in nodes]
    chosen = np.concatenate(picked) if picked else np.zeros(0, np.int64)
    found = (to_tensor(rows[chosen], row.dtype), to_tensor([len(p) for p in picked], "int32"))
    if eids is None or not return_eids:
        return found
    return (*found, to_tensor(eids.numpy_view().reshape(-1)[chosen], eids.dtype))


def _drawn(generator: Any, begin: int, end: int, weights: Any, size: int) -> Any:
    if size < 0 or end - begin <= size:
        return np.arange(begin, end)
    if weights is None:
        return np.sort(begin + generator.permutation(end - begin)[:size])
    with np.errstate(divide="ignore"):
        keys = np.log(generator.random(end - begin)) / weights[begin:end]
    return np.sort(begin + np.argsort(-keys, kind="stable")[:size])
