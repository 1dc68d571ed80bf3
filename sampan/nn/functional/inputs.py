"""What networks do to their inputs: dropout in every form, embedding of ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from ...tensor import OPS, Tensor
from ...tensor.autograd import PyLayer, PyLayerContext
from ...tensor.functions import no_grad
from ...tensor.selected_rows import selected_rows


def _probability(name: str, p: Any) -> float:
    if isinstance(p, Tensor):
        p = p.item()
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise ArgumentTypeError(message(f"{name}(): p is a {type(p).__name__}", "it must be a number"))
    if not 0 <= p <= 1:
        raise ArgumentError(message(f"{name}(): p={p}", "a probability must be in [0, 1]"))
    return float(p)


def dropout(
    x: Tensor,
    p: float = 0.5,
    axis: int | Sequence[int] | None = None,
    training: bool = True,
    inplace: bool = False,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """x with elements zeroed at random.

    Args:
        x: any floating tensor.
        p: the probability of zeroing.
        axis: the axes along which the mask varies; along others it is the same. None: all.
        training: False: nothing is zeroed.
        inplace: accepted for compatibility; the result is a new tensor.
        mode: ``upscale_in_train``: what stays is divided by 1 - p; ``downscale_in_infer``: in evaluation x is multiplied by 1 - p.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> bool((paddle.nn.functional.dropout(x, 0.5, training=False) == x).all())
        True

    Source: N. Srivastava et al., "Dropout", JMLR 15, 2014.
    """
    rate = _probability("dropout", p)
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise ArgumentError(message(f"dropout(): mode={mode!r}", "it must be 'upscale_in_train' or 'downscale_in_infer'"))
    if not training:
        return x if mode == "upscale_in_train" or rate == 0 else x * (1 - rate)
    if rate == 0:
        return x
    return OPS["dropout"](x, rate, _mask_shape("dropout", x, axis), mode == "upscale_in_train")


def _mask_shape(name: str, x: Tensor, axis: int | Sequence[int] | None) -> tuple[int, ...]:
    if axis is None:
        return tuple(x.shape)
    rank = len(x.shape)
    axes = {axis} if isinstance(axis, int) else set(axis)
    if any(not -rank <= a < rank for a in axes):
        raise ShapeError(message(f"{name}(): axis={axis!r} is outside of a tensor of rank {rank}"))
    kept = {a % rank for a in axes}
    return tuple(n if k in kept else 1 for k, n in enumerate(x.shape))


def _channel_dropout(
    name: str, x: Tensor, p: float, training: bool, rank: int, data_format: str, formats: tuple[str, str]
) -> Tensor:
    if data_format not in formats:
        raise ArgumentError(message(f"{name}(): data_format={data_format!r}", f"it must be {formats[0]!r} or {formats[1]!r}"))
    if len(x.shape) not in (rank, rank - 1):
        raise ShapeError(
            message(
                f"{name}(): x has shape {list(x.shape)}",
                f"it must have {rank} axes, {data_format}, or {rank - 1} without the batch",
            )
        )
    is_batched = len(x.shape) == rank
    channel = len(x.shape) - 1 if data_format[-1] == "C" else int(is_batched)
    return dropout(x, p, [0, channel] if is_batched else [channel], training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """[N, C, L] or [C, L] with whole channels zeroed with probability p, the others divided by 1 - p."""
    return _channel_dropout("dropout1d", input, p, training, 3, "NCL", ("NCL", "NLC"))


def dropout2d(x: Tensor, p: float = 0.5, training: bool = True, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """[N, C, H, W] with whole channels zeroed with probability p, the others divided by 1 - p. https://arxiv.org/abs/1411.4280"""
    return _channel_dropout("dropout2d", x, p, training, 4, data_format, ("NCHW", "NHWC"))


def dropout3d(x: Tensor, p: float = 0.5, training: bool = True, data_format: str = "NCDHW", name: str | None = None) -> Tensor:
    """[N, C, D, H, W] with whole channels zeroed with probability p, the others divided by 1 - p."""
    return _channel_dropout("dropout3d", x, p, training, 5, data_format, ("NCDHW", "NDHWC"))


def alpha_dropout(x: Tensor, p: float = 0.5, training: bool = True, name: str | None = None) -> Tensor:
    """x with elements set to selu's negative limit at random, rescaled so that mean and variance stay. https://arxiv.org/abs/1706.02515"""
    rate = _probability("alpha_dropout", p)
    return x if not training or rate == 0 else OPS["alpha_dropout"](x, rate, tuple(x.shape))


def feature_alpha_dropout(x: Tensor, p: float = 0.5, training: bool = True, name: str | None = None) -> Tensor:
    """As ``alpha_dropout``, whole channels of [N, C, ...] at a time."""
    rate = _probability("feature_alpha_dropout", p)
    if len(x.shape) < 2:
        raise ShapeError(message(f"feature_alpha_dropout(): x has shape {list(x.shape)}", "it must have at least 2 axes"))
    return x if not training or rate == 0 else OPS["alpha_dropout"](x, rate, (*x.shape[:2], *(1 for _ in x.shape[2:])))


def embedding(
    x: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    sparse: bool = False,
    scale_grad_by_freq: bool = False,
    name: str | None = None,
) -> Tensor:
    """The rows of weight at the ids.

    Args:
        x: int32 or int64 ids in [0, rows of weight).
        weight: [num_embeddings, embedding_dim].
        padding_idx: the id whose row reads as zeros and gets no gradient; negative ones count from the end.
        max_norm: rows that are read are first scaled down, in place, to at most this ``norm_type``-norm.
        sparse: the weight's gradient holds only the rows of the ids that occur, so that its size does not depend on the table's.
        scale_grad_by_freq: divide each row's gradient by how often its id occurs in x.

    Raises:
        IndexRangeError: an id is outside of the table.
        DTypeError: ids are no integers.

    Example:
        >>> import sampan as paddle
        >>> table = paddle.to_tensor([[0.0, 1.0], [2.0, 3.0]])
        >>> paddle.nn.functional.embedding(paddle.to_tensor([1, 0]), table).tolist()
        [[2.0, 3.0], [0.0, 1.0]]
    """
    if max_norm is not None:
        _limit_rows(x, weight, float(max_norm), float(norm_type))
    if sparse and isinstance(weight, Tensor):
        return _SparseEmbedding.apply(x, weight, padding_idx, bool(scale_grad_by_freq))
    return OPS["embedding"](x, weight, padding_idx, bool(scale_grad_by_freq))


class _SparseEmbedding(PyLayer):
    """Rows of the weight, whose gradient holds only those rows."""

    @staticmethod
    def forward(ctx: PyLayerContext, x: Tensor, weight: Tensor, padding_idx: int | None, scale_grad_by_freq: bool) -> Tensor:
        ctx.save_for_backward(x)
        ctx.height, ctx.padding_idx, ctx.scale_grad_by_freq = weight.shape[0], padding_idx, scale_grad_by_freq
        return OPS["embedding"](x, weight, padding_idx, scale_grad_by_freq)

    @staticmethod
    def backward(ctx: PyLayerContext, dy: Tensor) -> tuple[None, Tensor]:
        (x,) = ctx.saved_tensor()
        rows = OPS["cast"](OPS["reshape"](x, [-1]), "int64")
        values = OPS["reshape"](dy, [-1, dy.shape[-1]])
        if ctx.scale_grad_by_freq:
            _, inverse, counts = OPS["unique"](rows, return_inverse=True, return_counts=True)
            share = OPS["cast"](OPS["gather"](counts, inverse), values.dtype.name)
            values = OPS["divide"](values, OPS["unsqueeze"](share, -1))
        if ctx.padding_idx is not None:
            is_padding = OPS["unsqueeze"](OPS["equal"](rows, ctx.padding_idx % ctx.height), -1)
            values = OPS["where"](is_padding, OPS["zeros_like"](values), values)
        return None, selected_rows(values, rows, ctx.height)


@no_grad()
def _limit_rows(ids: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    rows = OPS["unique"](ids)
    picked = OPS["take_indices"](weight, [rows], (0,), True)
    OPS["put_indices_"](weight, [rows], OPS["renorm"](picked, norm_type, 0, max_norm), (0,), True)


__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "embedding", "feature_alpha_dropout"]
