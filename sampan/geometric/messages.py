"""Messages along edges, and reductions over segments of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, IndexRangeError, ShapeError, describe, message
from ..tensor import OPS, Tensor
from ..tensor.replay import recordable


def _indices(name: str, parameter: str, index: Any, limit: int | None = None) -> np.ndarray[Any, Any]:
    if not isinstance(index, Tensor) or index.dtype.name not in ("int32", "int64") or index.ndim != 1:
        raise ArgumentTypeError(
            message(f"{name}(): {parameter} is {describe(index)}", "it must be an int32 or int64 Tensor of rank 1")
        )
    found = index.numpy_view()
    if found.size and found.min() < 0:
        raise ArgumentError(message(f"{name}(): {parameter} holds {found.min()}", "it must not be negative"))
    if limit is not None and found.size and found.max() >= limit:
        raise IndexRangeError(message(f"{name}(): {parameter} holds {found.max()}", f"there are {limit} rows"))
    return found


def _nodes(name: str, parameter: str, x: Any) -> int:
    """How many rows x has."""
    if not isinstance(x, Tensor) or x.ndim == 0:
        raise ArgumentTypeError(
            message(f"{name}(): {parameter} is {describe(x)}", "it must be a Tensor with a row for each node or edge")
        )
    return int(x.shape[0])


def _rows(name: str, given: Any, default: int) -> int:
    if given is None:
        return default
    if isinstance(given, Tensor):
        given = given.item()
    if isinstance(given, bool) or not isinstance(given, int):
        raise ArgumentTypeError(message(f"{name}(): out_size is {describe(given)}", "it must be an integer or None"))
    return given if given > 0 else default


def _choice(name: str, parameter: str, given: Any, known: tuple[str, ...]) -> str:
    if given not in known:
        raise ArgumentError(message(f"{name}(): {parameter}={given!r}", f"it must be one of {', '.join(known)}"))
    return str(given)


def _row(*shapes: Any) -> tuple[int, ...]:
    """The shape of a row made of rows of these shapes, -1 where only a run knows."""
    rank = max(map(len, shapes))
    sizes = [
        {n for n in column if n != 1} or {1} for column in zip(*((1,) * (rank - len(s)) + tuple(s) for s in shapes), strict=True)
    ]
    return tuple(n.pop() if len(n) == 1 else -1 for n in sizes)


def _type_of_received(x: Any, src_index: Any, dst_index: Any, reduce_op: Any, out_size: Any, name: Any) -> Any:
    rows = x.shape[0] if out_size is None else -1 if not isinstance(out_size, int) else out_size if out_size > 0 else x.shape[0]
    return x.dtype, (rows, *x.shape[1:])


def _type_of_combined(
    x: Any, y: Any, src_index: Any, dst_index: Any, message_op: Any, reduce_op: Any, out_size: Any, name: Any
) -> Any:
    dtype, (rows, *row) = _type_of_received(x, src_index, dst_index, reduce_op, out_size, name)
    return dtype, (rows, *_row(row, y.shape[1:]))


def _type_of_segments(data: Any, segment_ids: Any, name: Any) -> Any:
    return data.dtype, (-1, *data.shape[1:])


_REDUCTIONS, _MESSAGES = ("sum", "mean", "max", "min"), ("add", "sub", "mul", "div")


def _received(name: str, rows: Tensor, dst_index: Tensor, out_size: Any, nodes: int, reduce_op: str) -> Tensor:
    """The rows of edges reduced into those of the nodes that they go to."""
    size = _rows(name, out_size, nodes)
    ends = _indices(name, "dst_index", dst_index, size)
    if len(ends) != rows.shape[0]:
        raise ShapeError(message(f"{name}(): dst_index has {len(ends)} elements", f"there are {rows.shape[0]} edges"))
    return OPS["rows_by_index"](rows, dst_index, size, _choice(name, "reduce_op", reduce_op, _REDUCTIONS))


@recordable("geometric.send_u_recv", _type_of_received)
def send_u_recv(
    x: Tensor, src_index: Tensor, dst_index: Tensor, reduce_op: str = "sum", out_size: Any = None, name: str | None = None
) -> Tensor:
    """Each node's row: the rows of x that edges bring to it, reduced.

    Args:
        x: a row for each node, [nodes, ...].
        src_index: where each edge comes from.
        dst_index: where each edge goes to.
        reduce_op: ``sum``, ``mean``, ``max`` or ``min``; a node without edges gets zeros.
        out_size: rows of the result; by default those of x.

    Raises:
        ArgumentError: an unknown reduction.
        IndexError: an index beyond the rows.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([[1.0], [2.0], [3.0]])
        >>> paddle.geometric.send_u_recv(x, paddle.to_tensor([0, 1, 2]), paddle.to_tensor([1, 1, 0])).tolist()
        [[3.0], [3.0], [0.0]]
    """
    nodes = _nodes("send_u_recv", "x", x)
    _indices("send_u_recv", "src_index", src_index, nodes)
    return _received("send_u_recv", OPS["gather"](x, src_index), dst_index, out_size, nodes, reduce_op)


@recordable("geometric.send_ue_recv", _type_of_combined)
def send_ue_recv(
    x: Tensor,
    y: Tensor,
    src_index: Tensor,
    dst_index: Tensor,
    message_op: str = "add",
    reduce_op: str = "sum",
    out_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """Each node's row: the rows of x that edges bring to it, combined with the edges' own, reduced.

    Args:
        x: a row for each node, [nodes, ...].
        y: a row for each edge, [edges, ...], broadcast to x's rows.
        src_index: where each edge comes from.
        dst_index: where each edge goes to.
        message_op: how the two combine: ``add``, ``sub``, ``mul`` or ``div``.
        reduce_op: ``sum``, ``mean``, ``max`` or ``min``; a node without edges gets zeros.
        out_size: rows of the result; by default those of x.

    Raises:
        ArgumentError: an unknown message or reduction.
        ShapeError: y has not a row for each edge.
        IndexError: an index beyond the rows.

    Example:
        >>> import sampan as paddle
        >>> x, y = paddle.to_tensor([[1.0], [2.0]]), paddle.to_tensor([10.0, 20.0])
        >>> paddle.geometric.send_ue_recv(x, y, paddle.to_tensor([0, 1]), paddle.to_tensor([1, 1]), "mul").tolist()
        [[0.0], [50.0]]
    """
    nodes, edges = _nodes("send_ue_recv", "x", x), _nodes("send_ue_recv", "y", y)
    _indices("send_ue_recv", "src_index", src_index, nodes)
    rows = OPS["gather"](x, src_index)
    if y.ndim == 1:
        y = OPS["reshape"](y, [-1, *[1] * (rows.ndim - 1)])
    if rows.shape[0] != edges:
        raise ShapeError(message(f"send_ue_recv(): y has {y.shape[0]} rows", f"there are {rows.shape[0]} edges"))
    combined = OPS["edge_messages"](rows, y, _choice("send_ue_recv", "message_op", message_op, _MESSAGES))
    return _received("send_ue_recv", combined, dst_index, out_size, nodes, reduce_op)


@recordable(
    "geometric.send_uv",
    lambda x, y, src_index, dst_index, message_op, name: (x.dtype, (src_index.shape[0], *_row(x.shape[1:], y.shape[1:]))),
)
def send_uv(
    x: Tensor, y: Tensor, src_index: Tensor, dst_index: Tensor, message_op: str = "add", name: str | None = None
) -> Tensor:
    """Each edge's row: x at its source combined with y at its destination.

    Args:
        x: a row for each node.
        y: a row for each node.
        src_index: where each edge comes from.
        dst_index: where each edge goes to.
        message_op: how the two combine: ``add``, ``sub``, ``mul`` or ``div``.

    Raises:
        ArgumentError: an unknown message.
        IndexError: an index beyond the rows.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([[1.0], [2.0]])
        >>> paddle.geometric.send_uv(x, x, paddle.to_tensor([0, 1]), paddle.to_tensor([1, 1])).tolist()
        [[3.0], [4.0]]
    """
    starts = _indices("send_uv", "src_index", src_index, _nodes("send_uv", "x", x))
    ends = _indices("send_uv", "dst_index", dst_index, _nodes("send_uv", "y", y))
    if len(starts) != len(ends):
        raise ShapeError(
            message(f"send_uv(): src_index has {len(starts)} elements and dst_index {len(ends)}", "each edge has both")
        )
    how = _choice("send_uv", "message_op", message_op, _MESSAGES)
    return OPS["edge_messages"](OPS["gather"](x, src_index), OPS["gather"](y, dst_index), how)


def _segments(name: str, data: Tensor, segment_ids: Tensor, how: str) -> Tensor:
    ids = _indices(name, "segment_ids", segment_ids)
    if len(ids) != _nodes(name, "data", data):
        raise ShapeError(message(f"{name}(): segment_ids has {len(ids)} elements", f"data has {data.shape[0]} rows"))
    return OPS["rows_by_index"](data, segment_ids, int(ids.max()) + 1 if ids.size else 0, how)


@recordable("geometric.segment_sum", _type_of_segments)
def segment_sum(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """Row k: the sum of the rows of data whose id is k.

    Args:
        data: [rows, ...].
        segment_ids: the id of each row.

    Raises:
        ShapeError: not an id for each row.

    Example:
        >>> import sampan as paddle
        >>> data = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> paddle.geometric.segment_sum(data, paddle.to_tensor([0, 0, 1])).tolist()
        [[4.0, 6.0], [5.0, 6.0]]
    """
    return _segments("segment_sum", data, segment_ids, "sum")


@recordable("geometric.segment_mean", _type_of_segments)
def segment_mean(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """Row k: the mean of the rows of data whose id is k; zeros where there is none.

    Args:
        data: [rows, ...].
        segment_ids: the id of each row.

    Raises:
        ShapeError: not an id for each row.
    """
    return _segments("segment_mean", data, segment_ids, "mean")


@recordable("geometric.segment_max", _type_of_segments)
def segment_max(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """Row k: the largest of the rows of data whose id is k, by element; zeros where there is none.

    Args:
        data: [rows, ...].
        segment_ids: the id of each row.

    Raises:
        ShapeError: not an id for each row.
    """
    return _segments("segment_max", data, segment_ids, "max")


@recordable("geometric.segment_min", _type_of_segments)
def segment_min(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """Row k: the smallest of the rows of data whose id is k, by element; zeros where there is none.

    Args:
        data: [rows, ...].
        segment_ids: the id of each row.

    Raises:
        ShapeError: not an id for each row.
    """
    return _segments("segment_min", data, segment_ids, "min")
