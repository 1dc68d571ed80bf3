"""``paddle.sparse.nn.functional``: activations, attention, convolutions and pooling over sparse tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base import dtypes
from ...base.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError, message
from ...base.kinds import Counts, Padding, is_integer
from ...tensor import OPS, Tensor, share_array
from ...tensor.explained import explain
from ...tensor.sparse_functions import masked_matmul, matmul, of_values
from ...tensor.sparse_tensor import SparseTensor, ordered, require_sparse


def relu(x: SparseTensor, name: str | None = None) -> SparseTensor:
    """max(x, 0) of the kept values."""
    return of_values("relu", x)


def relu6(x: SparseTensor, name: str | None = None) -> SparseTensor:
    """min(max(x, 0), 6) of the kept values."""
    return of_values("relu6", x)


def leaky_relu(x: SparseTensor, negative_slope: float = 0.01, name: str | None = None) -> SparseTensor:
    """The kept values, the negative ones times ``negative_slope``."""
    return of_values("leaky_relu", x, negative_slope)


def softmax(x: SparseTensor, axis: int = -1, name: str | None = None) -> SparseTensor:
    """exp of the kept values over their sum in each row: what is not kept counts as minus infinity.

    Args:
        x: a sparse tensor without dense axes.
        axis: the last one.
        name: accepted for compatibility.

    Raises:
        UnsupportedError: another axis.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([[1.0, 0.0, 1.0], [0.0, 3.0, 0.0]]).to_sparse_csr()
        >>> paddle.sparse.nn.functional.softmax(x).values().tolist()
        [0.5, 0.5, 1.0]
    """
    x = ordered(require_sparse("softmax", "x", x))
    if dtypes.kind(x.dtype.name) == "c":
        raise DTypeError(message(f"softmax(): x is {x.dtype.name}", "it must be real"))
    if axis not in (-1, x.ndim - 1) or x.dense_dim():
        raise UnsupportedError(
            message(f"softmax(): axis is {axis} and x has {x.dense_dim()} dense axes", "it takes the last axis, a sparse one")
        )
    lead = x.places[:-1]
    rows = np.ravel_multi_index(tuple(lead), tuple(x.shape)[:-1]) if lead.size else np.zeros(x.nnz(), np.int64)
    _, group = np.unique(rows, return_inverse=True)
    group = group.reshape(-1).astype(np.int64)
    count, values = int(group.max(initial=-1)) + 1, x.values()
    highest = np.full(count, -np.inf)
    np.maximum.at(highest, group, values.numpy_view().astype(np.float64))
    at = share_array(group)
    grown = OPS["exp"](OPS["subtract"](values, OPS["cast"](share_array(highest[group]), values.dtype)))
    total = OPS["index_add"](OPS["zeros"]([count], grown.dtype.name), at, 0, grown)
    return x.with_values(OPS["divide"](grown, OPS["index_select"](total, at, 0)))


def attention(
    query: Tensor, key: Tensor, value: Tensor, sparse_mask: SparseTensor, key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """softmax(query @ key^T / sqrt(width)) @ value, of the scores at the mask's places only.

    Args:
        query, key, value: [N, heads, T, width].
        sparse_mask: [N * heads, T, T], whose places are computed; in row form.
        key_padding_mask: [N, T], added to the scores of each key.
        attn_mask: [T, T], added to the scores.
        name: accepted for compatibility.

    Returns:
        [N, heads, T, width].
    """
    if len(query.shape) != 4:
        raise ShapeError(message(f"attention(): query is {list(query.shape)}", "it must be [N, heads, T, width]"))
    batch, heads, length, width = (int(n) for n in query.shape)
    for what, added, wanted in (
        ("key_padding_mask", key_padding_mask, [batch, length]),
        ("attn_mask", attn_mask, [length, length]),
    ):
        if added is not None and list(added.shape) != wanted:
            raise ShapeError(message(f"attention(): {what} is {list(added.shape)}", f"it must be {wanted}"))
    flat = [OPS["reshape"](t, [batch * heads, t.shape[2], t.shape[3]]) for t in (query, key, value)]
    scores = masked_matmul(OPS["scale"](flat[0], 1 / math.sqrt(width)), OPS["transpose"](flat[1], [0, 2, 1]), sparse_mask)
    samples, rows, columns = scores.places
    found = scores.values()
    if key_padding_mask is not None:
        place = share_array((samples // heads) * length + columns)
        found = OPS["add"](found, OPS["index_select"](OPS["reshape"](key_padding_mask, [-1]), place, 0))
    if attn_mask is not None:
        found = OPS["add"](found, OPS["index_select"](OPS["reshape"](attn_mask, [-1]), share_array(rows * length + columns), 0))
    return OPS["reshape"](matmul(softmax(scores.with_values(found)), flat[2]), [batch, heads, length, width])


# ---------------------------------------------------------------------- windows


def each_axis(name: str, parameter: str, given: Any, rank: int) -> tuple[int, ...]:
    """One integer for each of the axes."""
    sizes = [int(given)] * rank if is_integer(given) else [int(v) for v in given]
    if len(sizes) != rank:
        raise ArgumentError(message(f"{name}(): {parameter} is {given!r}", f"it must be an integer or {rank} of them"))
    return tuple(sizes)


def _padding_of(
    name: str, padding: Any, kernel: Sequence[int], dilation: Sequence[int], sizes: Sequence[int], stride: Sequence[int]
) -> list[int]:
    """The padding before each axis; behind it, what the size of the result needs."""
    rank = len(kernel)
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return [0] * (2 * rank)
        found = []
        for n, k, d, s in zip(sizes, kernel, dilation, stride, strict=True):
            total = max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
            found += [total // 2, total - total // 2]
        return found
    if isinstance(padding, (list, tuple)) and any(isinstance(v, (list, tuple)) for v in padding):
        pairs = padding[1:-1] if len(padding) == rank + 2 else padding  # pairs of the batch and the channels are zeros
        padding = [int(v) for pair in pairs for v in pair]
        if len(padding) != 2 * rank:
            raise ArgumentError(message(f"{name}(): padding holds {len(pairs)} pairs", f"it must hold {rank}"))
    if isinstance(padding, (list, tuple)) and len(padding) == 2 * rank:
        return [int(v) for v in padding]
    return [v for n in each_axis(name, "padding", padding, rank) for v in (n, n)]


def _pairs(
    x: SparseTensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    is_submanifold: bool,
) -> Any:
    """The places of the result, its spatial sizes, and for each offset in the kernel which values of x go to which places.

    is_submanifold: the result keeps x's places, and no other.
    """
    sizes = [int(n) for n in x.shape[1:-1]]
    if is_submanifold:
        left = sizes
    else:
        left = [
            (n + padding[2 * k] + padding[2 * k + 1] - dilation[k] * (kernel[k] - 1) - 1) // stride[k] + 1
            for k, n in enumerate(sizes)
        ]
    lead = (int(x.shape[0]), *left)
    if min(lead) < 1:
        raise ShapeError(
            message(f"the result of a window of {list(kernel)} over {sizes} would have the sizes {left}", "they must be positive")
        )
    reached = []
    for offset in itertools.product(*map(range, kernel)):
        moved = x.places.copy()
        inside = np.ones(x.nnz(), bool)
        for k, o in enumerate(offset):
            at = moved[k + 1] + padding[2 * k] - o * dilation[k]
            inside &= (at >= 0) & (at % stride[k] == 0) & (at // stride[k] < left[k])
            moved[k + 1] = at // stride[k]
        source = np.flatnonzero(inside)
        keys = np.ravel_multi_index(tuple(moved[:, source]), lead) if source.size else np.zeros(0, np.int64)
        reached.append((source, keys))
    keys = np.sort(x.keys()) if is_submanifold else np.unique(np.concatenate([k for _, k in reached]))
    rules = []
    for source, found in reached:
        at = np.searchsorted(keys, found)
        kept = np.flatnonzero(np.append(keys, -1)[at] == found)
        rules.append((source[kept].astype(np.int64), at[kept].astype(np.int64)))
    return np.stack(np.unravel_index(keys, lead)).astype(np.int64), left, rules


def _require_images(name: str, x: SparseTensor, rank: int) -> SparseTensor:
    require_sparse(f"nn.functional.{name}", "x", x)
    if x.ndim != rank + 2 or x.dense_dim() != 1 or x.is_sparse_csr():
        told = f"x is {list(x.shape)} with {x.sparse_dim()} sparse axes"
        raise ShapeError(
            message(
                f"{name}(): {told}",
                f"it must be by coordinates, with {rank + 1} sparse axes and dense channels last",
            )
        )
    return ordered(x)


def _convolved(
    name: str, rank: int, x: SparseTensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int,
    data_format: str, is_submanifold: bool,
) -> SparseTensor:  # fmt: skip
    x = _require_images(name, x, rank)
    channels_last = "NDHWC" if rank == 3 else "NHWC"
    if groups != 1 or data_format != channels_last:
        raise UnsupportedError(
            message(
                f"{name}(): groups={groups}, data_format={data_format!r}",
                f"it takes groups=1 and {channels_last!r}",
            )
        )
    if len(weight.shape) != rank + 2 or weight.shape[-2] != x.shape[-1]:
        raise ShapeError(
            message(
                f"{name}(): weight is {list(weight.shape)} and x {list(x.shape)}",
                "weight must be [kernel sizes, channels of x, channels of the result]",
            )
        )
    kernel = [int(n) for n in weight.shape[:rank]]
    steps, spread = each_axis(name, "stride", stride, rank), each_axis(name, "dilation", dilation, rank)
    if is_submanifold:
        if any(s != 1 for s in steps):
            raise ArgumentError(f"{name}(): stride is {stride!r}; it must be 1, as the result keeps x's places")
        around = [v for k, d in zip(kernel, spread, strict=True) for v in (d * (k - 1) // 2, d * (k - 1) - d * (k - 1) // 2)]
    else:
        around = _padding_of(name, padding, kernel, spread, [int(n) for n in x.shape[1:-1]], steps)
    places, left, rules = _pairs(x, kernel, steps, around, spread, is_submanifold)
    width = int(weight.shape[-1])
    if bias is not None and list(bias.shape) != [width]:
        raise ShapeError(message(f"{name}(): bias is {list(bias.shape)}", f"it must be [{width}]"))
    parts = OPS["reshape"](weight, [math.prod(kernel), *weight.shape[rank:]])
    values = OPS["zeros"]([places.shape[1], width], x.dtype.name)
    for k, (source, target) in enumerate(rules):
        if source.size:
            taken = OPS["index_select"](x.values(), share_array(source), 0)
            values = OPS["index_add"](values, share_array(target), 0, OPS["matmul"](taken, parts[k]))
    if bias is not None:
        values = OPS["add"](values, bias)
    return SparseTensor(places, values, [int(x.shape[0]), *left, width])


def conv2d(
    x: SparseTensor, weight: Tensor, bias: Tensor | None = None, stride: Counts = 1, padding: Padding = 0, dilation: Counts = 1, groups: int = 1,
    data_format: str = "NHWC", name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """The convolution of sparse images [N, H, W, C] with a weight [kernel, kernel, C, channels]: kept where some element of x is in the window."""
    return _convolved("conv2d", 2, x, weight, bias, stride, padding, dilation, groups, data_format, False)


def conv3d(
    x: SparseTensor, weight: Tensor, bias: Tensor | None = None, stride: Counts = 1, padding: Padding = 0, dilation: Counts = 1, groups: int = 1,
    data_format: str = "NDHWC", name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """The convolution of sparse volumes [N, D, H, W, C] with a weight [three kernel sizes, C, channels]: kept where some element of x is in the window."""
    return _convolved("conv3d", 3, x, weight, bias, stride, padding, dilation, groups, data_format, False)


def subm_conv2d(
    x: SparseTensor, weight: Tensor, bias: Tensor | None = None, stride: Counts = 1, padding: Padding = 0, dilation: Counts = 1, groups: int = 1,
    data_format: str = "NHWC", key: str | None = None, name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """conv2d whose result is kept at x's own places. https://arxiv.org/abs/1706.01307"""
    return _convolved("subm_conv2d", 2, x, weight, bias, stride, padding, dilation, groups, data_format, True)


def subm_conv3d(
    x: SparseTensor, weight: Tensor, bias: Tensor | None = None, stride: Counts = 1, padding: Padding = 0, dilation: Counts = 1, groups: int = 1,
    data_format: str = "NDHWC", key: str | None = None, name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """conv3d whose result is kept at x's own places. https://arxiv.org/abs/1706.01307"""
    return _convolved("subm_conv3d", 3, x, weight, bias, stride, padding, dilation, groups, data_format, True)


subm_conv2d_igemm, subm_conv3d_igemm = subm_conv2d, subm_conv3d  # the same function, by another method on GPUs


def max_pool3d(
    x: SparseTensor, kernel_size: Counts, stride: Counts | None = None, padding: Padding = 0, ceil_mode: bool = False, data_format: str = "NDHWC", name: str | None = None
) -> SparseTensor:  # fmt: skip
    """The largest kept value of each channel in each window of sparse volumes [N, D, H, W, C]; kept where a window holds any."""
    x = _require_images("max_pool3d", x, 3)
    if ceil_mode or data_format != "NDHWC":
        raise UnsupportedError(
            message(f"max_pool3d(): ceil_mode={ceil_mode}, data_format={data_format!r}", "it takes False and 'NDHWC'")
        )
    kernel = each_axis("max_pool3d", "kernel_size", kernel_size, 3)
    steps = kernel if stride is None else each_axis("max_pool3d", "stride", stride, 3)
    around = _padding_of("max_pool3d", padding, kernel, (1, 1, 1), [int(n) for n in x.shape[1:-1]], steps)
    places, left, rules = _pairs(x, kernel, steps, around, (1, 1, 1), False)
    channels = int(x.shape[-1])
    data = x.values().numpy_view()
    best = np.zeros((places.shape[1], channels), data.dtype)
    source_of = np.full(best.shape, -1)
    for source, target in rules:  # a place occurs once for an offset
        found, held = data[source], best[target]
        with np.errstate(invalid="ignore"):  # ml_dtypes warns where NaN is compared
            larger = (source_of[target] < 0) | (found > held) | (found != found)  # NaN is kept, whatever follows
        best[target] = np.where(larger, found, held)
        source_of[target] = np.where(larger, source[:, None] * channels + np.arange(channels), source_of[target])
    values = OPS["gather"](OPS["reshape"](x.values(), [-1]), share_array(source_of.reshape(-1)))
    return SparseTensor(places, OPS["reshape"](values, [-1, channels]), [int(x.shape[0]), *left, channels])


__all__ = [
    "attention", "conv2d", "conv3d", "leaky_relu", "max_pool3d", "relu", "relu6", "softmax", "subm_conv2d", "subm_conv2d_igemm", "subm_conv3d",
    "subm_conv3d_igemm",
]  # fmt: skip
explain(globals(), __all__)
