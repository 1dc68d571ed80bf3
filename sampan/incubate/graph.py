"""Graph functions by their older names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, message
from ..geometric import reindex_graph, sample_neighbors, send_u_recv
from ..tensor import Tensor, to_tensor


def graph_send_recv(
    x: Tensor, src_index: Tensor, dst_index: Tensor, pool_type: str = "sum", out_size: Any = None, name: str | None = None
) -> Tensor:
    """``geometric.send_u_recv`` by its older name."""
    return send_u_recv(x, src_index, dst_index, pool_type, out_size)


def graph_reindex(
    x: Tensor,
    neighbors: Tensor,
    count: Tensor,
    value_buffer: Tensor | None = None,
    index_buffer: Tensor | None = None,
    flag_buffer_hashtable: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """``geometric.reindex_graph`` by its older name."""
    return reindex_graph(x, neighbors, count)


def graph_sample_neighbors(
    row: Tensor,
    colptr: Tensor,
    input_nodes: Tensor,
    eids: Tensor | None = None,
    perm_buffer: Tensor | None = None,
    sample_size: int = -1,
    return_eids: bool = False,
    flag_perm_buffer: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """``geometric.sample_neighbors`` by its older name and order of arguments."""
    return sample_neighbors(row, colptr, input_nodes, sample_size, eids, return_eids)


def graph_khop_sampler(
    row: Tensor,
    colptr: Tensor,
    input_nodes: Tensor,
    sample_sizes: Sequence[int],
    sorted_eids: Tensor | None = None,
    return_eids: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Neighbours of nodes, of those neighbours, and so on, as one renumbered graph.

    Args:
        row: the neighbours of node 0, of node 1 ...
        colptr: where in ``row`` each node's neighbours begin, and the end.
        input_nodes: the nodes to begin with.
        sample_sizes: the most neighbours of a node, of each hop; -1: all.
        sorted_eids: the numbers of the edges in ``row``.
        return_eids: also give the numbers of the drawn edges.

    Returns:
        The new numbers of the edges' sources and destinations, [edges, 1]; the old number of each new one; the new numbers of the input nodes; and the
        edges' numbers where they are asked for.

    Raises:
        ArgumentError: ``return_eids`` without ``sorted_eids``.
    """
    if return_eids and sorted_eids is None:
        raise ArgumentError(message("graph_khop_sampler(): return_eids needs sorted_eids", "", "pass the numbers of the edges"))
    start = np.unique(input_nodes.numpy_view())
    known, frontier = start, start
    neighbors, owners, edges = [], [], []
    for size in sample_sizes:
        found = sample_neighbors(row, colptr, to_tensor(frontier, row.dtype), int(size), sorted_eids, return_eids)
        near, counts = found[0].numpy(), found[1].numpy()
        neighbors.append(near)
        owners.append(np.repeat(frontier, counts))
        edges.append(found[2].numpy() if return_eids else counts[:0])
        frontier = np.setdiff1d(near, known)
        known = np.concatenate([known, frontier])
    near, owner = np.concatenate(neighbors), np.concatenate(owners)
    order = np.argsort(known, kind="stable")

    def renumbered(old: Any) -> Any:
        return order[np.searchsorted(known[order], old)]

    dtype = row.dtype
    result = (
        to_tensor(renumbered(near).reshape(-1, 1), dtype),
        to_tensor(renumbered(owner).reshape(-1, 1), dtype),
        to_tensor(known, dtype),
        to_tensor(renumbered(input_nodes.numpy_view().reshape(-1)), dtype),
    )
    return (*result, to_tensor(np.concatenate(edges), dtype)) if return_eids else result
