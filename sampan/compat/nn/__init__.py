"""``paddle.compat.nn``: layers with PyTorch's arguments and parameters, where Paddle's of the same name differ."""

from __future__ import annotations

import math
from typing import Any

from ... import nn
from ...base.errors import ArgumentError, message
from ...base.kinds import Count, Counts, Padding, Probability, Size, Sizes
from ...nn.initializer import Constant, Uniform, XavierNormal, XavierUniform
from ...nn.layer.configured import Configured
from ...tensor import OPS, Tensor
from . import functional
from . import functional as F


class AvgPool1D(nn.AvgPool1D):
    """The mean of every window of [N, C, L]; padding counts unless ``count_include_pad`` is False."""

    def __init__(
        self,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, not count_include_pad, ceil_mode)


class AvgPool2D(nn.AvgPool2D):
    """The mean of every window of [N, C, H, W]; padding counts unless ``count_include_pad`` is False."""

    def __init__(
        self,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Count | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, not count_include_pad, divisor_override)


class AvgPool3D(nn.AvgPool3D):
    """The mean of every window of [N, C, D, H, W]; padding counts unless ``count_include_pad`` is False."""

    def __init__(
        self,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Count | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, not count_include_pad, divisor_override)


class Unfold(nn.Unfold):
    """The windows of [N, C, H, W] as columns: [N, C * KH * KW, windows]."""

    def __init__(self, kernel_size: Counts, dilation: Counts = 1, padding: Sizes = 0, stride: Counts = 1) -> None:
        super().__init__(kernel_size, dilation, padding, stride)


class Softmax(Configured):
    """exp(x) over its sum along ``dim``; without it along the first axis of tensors of 0, 1 and 3 axes, else the second."""

    _shown = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__(dim=dim)

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class Linear(nn.Layer):
    """input @ weight' + bias, for a weight of [out_features, in_features].

    Args:
        in_features: the last axis of the input.
        out_features: the last axis of the result.
        bias: whether there is one, of [out_features].
        device: the only one there is, the CPU.
        dtype: of the parameters.

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.nn.Linear(4, 2).weight.shape
        paddle.Size([2, 4])
    """

    def __init__(self, in_features: Size, out_features: Size, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        reach = 1 / math.sqrt(in_features) if in_features else 0.0
        drawn: dict[str, Any] = {"dtype": dtype, "device": device, "default_initializer": Uniform(-reach, reach)}
        self.weight: Any = self.create_parameter([out_features, in_features], **drawn)
        self.bias: Any = self.create_parameter([out_features], is_bias=True, **drawn) if bias else None

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class MultiheadAttention(nn.Layer):
    """Attention in several heads, over queries [length, N, embed_dim] or [length, embed_dim].

    Args:
        embed_dim: the width of queries and of the result.
        num_heads: heads, each of embed_dim / num_heads.
        dropout: on the attention's weights, in training.
        bias: whether the projections have one.
        add_bias_kv: a trained key and value more at the end of each sequence.
        add_zero_attn: a key and value of zeros more at the end of each sequence.
        kdim: the width of keys; by default embed_dim.
        vdim: the width of values; by default embed_dim.
        batch_first: sequences are [N, length, width].
        device: the only one there is, the CPU.
        dtype: of the parameters.

    Example:
        >>> import sampan as paddle
        >>> attention, x = paddle.compat.nn.MultiheadAttention(8, 2), paddle.ones([5, 3, 8])
        >>> [part.shape for part in attention(x, x, x)]
        [paddle.Size([5, 3, 8]), paddle.Size([3, 5, 5])]
    """

    def __init__(
        self,
        embed_dim: Count,
        num_heads: Count,
        dropout: Probability = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: Count | None = None,
        vdim: Count | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ArgumentError(
                message(
                    f"MultiheadAttention: embed_dim={embed_dim}, num_heads={num_heads}",
                    "embed_dim must be a multiple of num_heads",
                )
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self._is_joint = self.kdim == self.vdim == embed_dim

        def weight(*shape: int, draw: Any) -> Any:
            return self.create_parameter(list(shape), dtype=dtype, default_initializer=draw, device=device)

        if self._is_joint:
            self.in_proj_weight = weight(3 * embed_dim, embed_dim, draw=XavierUniform())
        else:
            self.q_proj_weight = weight(embed_dim, embed_dim, draw=XavierUniform())
            self.k_proj_weight = weight(embed_dim, self.kdim, draw=XavierUniform())
            self.v_proj_weight = weight(embed_dim, self.vdim, draw=XavierUniform())
        for name in () if not bias else ("in_proj_bias",) if self._is_joint else ("q_proj_bias", "k_proj_bias", "v_proj_bias"):
            setattr(self, name, weight(3 * embed_dim if self._is_joint else embed_dim, draw=Constant(0.0)))
        self._has_bias, self._has_bias_kv = bias, add_bias_kv
        if add_bias_kv:
            self.bias_k = weight(1, 1, embed_dim, draw=XavierNormal())
            self.bias_v = weight(1, 1, embed_dim, draw=XavierNormal())
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        if bias:
            Constant(0.0)(self.out_proj.bias)

    def _projected(self, operands: list[Tensor]) -> list[Tensor]:
        """Queries, keys and values [N, length, embed_dim]."""
        biases: list[Any] = [None] * 3
        if self._is_joint:
            weights = OPS["split"](self.in_proj_weight, 3, 0)
            biases = OPS["split"](self.in_proj_bias, 3, 0) if self._has_bias else biases
        else:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
            biases = [self.q_proj_bias, self.k_proj_bias, self.v_proj_bias] if self._has_bias else biases
        return [F.linear(x, w, b) for x, w, b in zip(operands, weights, biases, strict=True)]

    def _added(self, mask: Tensor | None, like: Tensor) -> Tensor | None:
        """A mask as what is added to the scores: bool ones say which keys are not seen."""
        if mask is None or mask.dtype.name != "bool":
            return mask
        return OPS["where"](mask, OPS["full"]([], -math.inf, like.dtype), OPS["zeros"]([], like.dtype))

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(the result, shaped like the query, and the weights).

        Args:
            query: [length, N, embed_dim], or [length, embed_dim].
            key: [keys, N, kdim], or [keys, kdim].
            value: [keys, N, vdim], or [keys, vdim].
            key_padding_mask: [N, keys]: True where a key counts for nothing; numbers are added to its scores.
            need_weights: also give the weights, else None.
            attn_mask: [length, keys] or [N * num_heads, length, keys]: True where a query does not see a key; numbers are added to the scores.
            average_attn_weights: weights [N, length, keys], means over the heads; else [N, num_heads, length, keys].
            is_causal: without an ``attn_mask``: query k sees the first k + 1 keys.
        """
        operands, is_single = [query, key, value], len(query.shape) == 2
        if is_single:
            operands = [OPS["unsqueeze"](x, 0) for x in operands]
        elif not self.batch_first:
            operands = [OPS["transpose"](x, [1, 0, 2]) for x in operands]
        q, k, v = self._projected(operands)
        count, length, keys = q.shape[0], q.shape[1], k.shape[1]
        if is_causal and attn_mask is None:
            attn_mask = OPS["logical_not"](OPS["tril"](OPS["ones"]([length, keys], "bool")))
        mask = self._added(attn_mask, q)
        if mask is not None and len(mask.shape) == 3:
            mask = OPS["reshape"](mask, [count, self.num_heads, length, keys])
        padding = self._added(key_padding_mask, q)
        if padding is not None:
            padding = OPS["reshape"](padding, [count, 1, 1, keys])
            mask = padding if mask is None else OPS["add"](mask, padding)
        more = []
        if self._has_bias_kv:
            more.append([OPS["expand"](b, [count, 1, self.embed_dim]) for b in (self.bias_k, self.bias_v)])
        if self.add_zero_attn:
            more.append([OPS["zeros"]([count, 1, self.embed_dim], q.dtype)] * 2)
        if more:
            k, v = (OPS["concat"]([x, *(pair[i] for pair in more)], 1) for i, x in enumerate((k, v)))
            if mask is not None:
                mask = functional.pad(mask, [0, len(more)])
        q, k, v = (OPS["transpose"](OPS["unflatten"](x, 2, [self.num_heads, self.head_dim]), [0, 2, 1, 3]) for x in (q, k, v))
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = OPS["matmul"](OPS["scale"](q, self.head_dim**-0.5), k, transpose_y=True)
            weights = OPS["softmax"](scores if mask is None else OPS["add"](scores, mask), -1)
            weights = nn.functional.dropout(weights, dropout)
            out = OPS["matmul"](weights, v)
            weights = OPS["mean"](weights, 1) if average_attn_weights else weights
        else:
            out = F.scaled_dot_product_attention(q, k, v, mask, dropout)
        out = self.out_proj(OPS["flatten"](OPS["transpose"](out, [0, 2, 1, 3]), 2))
        if is_single:
            return OPS["squeeze"](out, 0), None if weights is None else OPS["squeeze"](weights, 0)
        return out if self.batch_first else OPS["transpose"](out, [1, 0, 2]), weights


AvgPool1d, AvgPool2d, AvgPool3d = AvgPool1D, AvgPool2D, AvgPool3D

__all__ = [
    "AvgPool1D",
    "AvgPool1d",
    "AvgPool2D",
    "AvgPool2d",
    "AvgPool3D",
    "AvgPool3d",
    "Linear",
    "MultiheadAttention",
    "Softmax",
    "Unfold",
]
