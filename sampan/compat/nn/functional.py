"""``paddle.compat.nn.functional``: functions with PyTorch's arguments, where Paddle's of the same name differ."""

from __future__ import annotations

from typing import Any

from ...base.errors import ArgumentError, ShapeError, message
from ...base.kinds import Counts, Probability, Sizes
from ...nn import functional as F
from ...tensor import OPS, Tensor
from ...tensor.explained import explained
from ...tensor.optional_forms import softmax


@explained
def pad(input: Tensor, pad: Any, mode: str = "constant", value: float = 0.0) -> Tensor:
    """input made larger at its edges: ``pad`` holds [low, high] of the last axis, then of the one before it, and so on.

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.nn.functional.pad(paddle.ones([2, 3]), [1, 0, 0, 2]).shape
        paddle.Size([4, 4])
    """
    return F.pad(input, pad, mode, value, pad_from_left_axis=False)


@explained
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input [..., in] @ weight' + bias, for a weight of [out, in].

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.nn.functional.linear(paddle.ones([2, 3]), paddle.ones([5, 3])).shape
        paddle.Size([2, 5])
    """
    if len(weight.shape) != 2 or not len(input.shape) or input.shape[-1] != weight.shape[1]:
        raise ShapeError(
            message(
                f"linear(): input is {list(input.shape)} and weight {list(weight.shape)}",
                "weight must be [out_features, in_features], and the last axis of input in_features",
                "paddle.nn.functional.linear() takes weights of [in_features, out_features]",
            )
        )
    product = OPS["matmul"](input, weight, transpose_y=True)
    return product if bias is None else OPS["add"](product, bias)


@explained
def unfold(input: Tensor, kernel_size: Counts, dilation: Counts = 1, padding: Sizes = 0, stride: Counts = 1) -> Tensor:
    """The windows of [N, C, H, W] as columns: [N, C * KH * KW, windows].

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.nn.functional.unfold(paddle.ones([1, 2, 4, 4]), 2, stride=2).shape
        paddle.Size([1, 8, 4])
    """
    return F.unfold(input, kernel_size, stride, padding, dilation)


@explained
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: Probability = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query key' * scale + mask) value of tensors [N, heads, length, width].

    Args:
        query: [N, heads, S, width].
        key: [N, heads, T, width]; with ``enable_gqa`` also fewer heads, of which the query's are a multiple.
        value: likewise.
        attn_mask: added to the scores [N, heads, S, T]; or bool: True where a query sees a key.
        dropout_p: the probability of dropping a weight; 0 is for evaluation.
        is_causal: query k sees the first k + 1 keys, whatever T is.
        scale: by default 1 / sqrt(width).
        enable_gqa: lets keys have fewer heads.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.ones([1, 2, 4, 8])
        >>> paddle.compat.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True).shape
        paddle.Size([1, 2, 4, 8])
    """
    for name, given in (("query", query), ("key", key), ("value", value)):
        if len(given.shape) != 4:
            raise ShapeError(
                message(
                    f"scaled_dot_product_attention(): {name} has shape {list(given.shape)}",
                    "it must be [N, heads, length, width]",
                )
            )
    if is_causal and attn_mask is not None:
        raise ArgumentError(
            message(
                "scaled_dot_product_attention(): attn_mask and is_causal=True are both given",
                "",
                "put the causal part into the mask",
            )
        )
    if is_causal:
        attn_mask = OPS["tril"](OPS["ones"]([query.shape[2], key.shape[2]], "bool"))
    if attn_mask is not None and len(attn_mask.shape) == 3:  # [heads or 1, S, T], where Paddle's own means [N, S, T]
        attn_mask = OPS["unsqueeze"](attn_mask, 0)
    order = [0, 2, 1, 3]
    q, k, v = (OPS["transpose"](x, order) for x in (query, key, value))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, scale=scale, enable_gqa=enable_gqa)
    return OPS["transpose"](out, order)


__all__ = ["linear", "pad", "scaled_dot_product_attention", "softmax", "unfold"]
