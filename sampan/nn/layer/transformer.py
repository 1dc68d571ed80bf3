"""Attention layers and the Transformer. https://arxiv.org/abs/1706.03762"""

from __future__ import annotations

import copy
from collections import namedtuple
from typing import Any

import numpy as np

from ...base.errors import ArgumentError, ShapeError, message
from ...base.kinds import Count, NotNegative, Probability, Size
from ...tensor import OPS, Tensor, to_tensor
from .. import functional as F
from .common import Dropout, Linear
from .container import LayerList
from .layers import Layer
from .norm import LayerNorm


def _score_mask(mask: Tensor | None) -> Tensor | None:
    """An integer mask (1: visible) as a bool one; a bool one, and a floating one, which is added to scores, as they are."""
    if mask is None or mask.dtype.name.startswith(("float", "bfloat", "bool")):
        return mask
    return OPS["cast"](mask, "bool")


def _repeated_attributes(attr: Any, count: int) -> list[Any]:
    """One attribute for each of ``count`` parts, of one for all or a list of them."""
    if isinstance(attr, (list, tuple)):
        if len(attr) == count:
            return list(attr)
        if len(attr) == 1:
            return list(attr) * count
        if count == 3 and len(attr) == 2:
            return [attr[0], attr[0], attr[1]]
        raise ArgumentError(message(f"a list of {len(attr)} parameter attributes was given", f"it must hold {count}"))
    return [attr] * count


class MultiHeadAttention(Layer):
    """Attention in several heads over projections of queries, keys and values.

    Args:
        embed_dim: the width of queries and of the result.
        num_heads: heads, each of embed_dim / num_heads.
        dropout: on the attention's weights, in training.
        kdim: the width of keys; by default embed_dim.
        vdim: the width of values; by default embed_dim.
        need_weights: also give the attention's weights.
        weight_attr: the ParamAttr of all weights.
        bias_attr: the ParamAttr of all biases; False: none.

    Example:
        >>> import sampan as paddle
        >>> attention = paddle.nn.MultiHeadAttention(8, 2)
        >>> attention(paddle.ones([3, 5, 8])).shape
        paddle.Size([3, 5, 8])
    """

    #: Keys and values of what was seen so far, [N, heads, length, width]; they grow with every call.
    Cache = namedtuple("Cache", ["k", "v"])
    #: Keys and values of a memory that does not change.
    StaticCache = namedtuple("StaticCache", ["k", "v"])

    def __init__(
        self,
        embed_dim: Count,
        num_heads: Count,
        dropout: Probability = 0.0,
        kdim: Count | None = None,
        vdim: Count | None = None,
        need_weights: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ArgumentError(
                message(
                    f"MultiHeadAttention: embed_dim={embed_dim}, num_heads={num_heads}",
                    "embed_dim must be a multiple of num_heads",
                )
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(self.kdim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(self.vdim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    def _split_heads(self, x: Tensor) -> Tensor:
        """[N, length, heads, head width] of [N, length, width]."""
        return OPS["unflatten"](x, 2, [self.num_heads, self.head_dim])

    def compute_kv(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Projected keys and values, [N, heads, length, head width]."""
        k, v = self._split_heads(self.k_proj(key)), self._split_heads(self.v_proj(value))
        return OPS["transpose"](k, [0, 2, 1, 3]), OPS["transpose"](v, [0, 2, 1, 3])

    def gen_cache(self, key: Tensor, value: Tensor | None = None, type: Any = Cache) -> Any:
        """A cache to call the layer with.

        Args:
            key: with ``StaticCache``: the memory; with ``Cache`` and no value: any tensor of the batch; else the first keys, heads first.
            value: the memory's values, or the first values.
            type: ``MultiHeadAttention.Cache`` or ``MultiHeadAttention.StaticCache``.
        """
        if type is MultiHeadAttention.StaticCache:
            return self.StaticCache(*self.compute_kv(key, key if value is None else value))
        if value is None:
            empty = OPS["full"]([key.shape[0], self.num_heads, 0, self.head_dim], 0.0, key.dtype.name)
            return self.Cache(empty, empty)
        return self.Cache(key, value)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        attn_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Any:
        if len(query.shape) != 3 or query.shape[2] != self.embed_dim:
            raise ShapeError(
                message(f"MultiHeadAttention: query has shape {list(query.shape)}", f"it must be [N, length, {self.embed_dim}]")
            )
        key = query if key is None else key
        value = key if value is None else value
        q = self._split_heads(self.q_proj(query))
        if isinstance(cache, self.StaticCache):
            k, v = cache
        else:
            k, v = self.compute_kv(key, value)
            if isinstance(cache, self.Cache):
                k, v = OPS["concat"]([cache.k, k], 2), OPS["concat"]([cache.v, v], 2)
                cache = self.Cache(k, v)
        k, v = OPS["transpose"](k, [0, 2, 1, 3]), OPS["transpose"](v, [0, 2, 1, 3])
        mask = _score_mask(attn_mask)
        weights = None
        if self.need_weights or (self.dropout and self.training):
            weights = OPS["attention_weights"](q, k, mask)
            weights = F.dropout(weights, self.dropout, training=self.training)
            out = OPS["attention_values"](weights, v)
        else:
            out = OPS["attention"](q, k, v, mask)
        out = self.out_proj(OPS["flatten"](out, 2))
        results = [out] + ([weights] if self.need_weights else []) + ([cache] if cache is not None else [])
        return out if len(results) == 1 else tuple(results)


class _Sublayers(Layer):
    """What encoder and decoder layers share: the feed-forward part, and norms before or after each part."""

    def _set_up(
        self,
        d_model: Count,
        dim_feedforward: Count,
        dropout: Probability,
        activation: str,
        act_dropout: Probability | None,
        normalize_before: bool,
    ) -> None:
        if not hasattr(F, activation):
            raise ArgumentError(
                message(f"{type(self).__name__}: activation={activation!r}", "nn.functional has no such function")
            )
        self._dim_feedforward, self._d_model, self.normalize_before = dim_feedforward, d_model, normalize_before
        self._act_dropout = dropout if act_dropout is None else act_dropout
        self.activation = getattr(F, activation)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


class TransformerEncoderLayer(_Sublayers):
    """Self-attention and a feed-forward part, each with a residual connection and a layer norm.

    Args:
        d_model: the width of inputs and outputs.
        nhead: heads.
        dim_feedforward: the inner width of the feed-forward part.
        dropout: after each part, in training.
        activation: its name in ``nn.functional``.
        attn_dropout: on the attention's weights; by default ``dropout``.
        act_dropout: after the activation; by default ``dropout``.
        normalize_before: norms stand before the parts, not after the sums.
        weight_attr: one ParamAttr, or two: attention, feed-forward.
        bias_attr: likewise.
        layer_norm_eps: of the norms.
    """

    def __init__(
        self,
        d_model: Count,
        nhead: Count,
        dim_feedforward: Count,
        dropout: Probability = 0.1,
        activation: str = "relu",
        attn_dropout: Probability | None = None,
        act_dropout: Probability | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        layer_norm_eps: NotNegative = 1e-5,
    ) -> None:
        super().__init__()
        self._options = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            attn_dropout,
            act_dropout,
            normalize_before,
            weight_attr,
            bias_attr,
            layer_norm_eps,
        )
        self._set_up(d_model, dim_feedforward, dropout, activation, act_dropout, normalize_before)
        weights, biases = _repeated_attributes(weight_attr, 2), _repeated_attributes(bias_attr, 2)
        self.self_attn = MultiHeadAttention(
            d_model, nhead, dropout if attn_dropout is None else attn_dropout, weight_attr=weights[0], bias_attr=biases[0]
        )
        self.linear1 = Linear(d_model, dim_feedforward, weights[1], biases[1])
        self.dropout = Dropout(self._act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[1], biases[1])
        self.norm1 = LayerNorm(d_model, layer_norm_eps)
        self.norm2 = LayerNorm(d_model, layer_norm_eps)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Any = None) -> Any:
        src_mask = _score_mask(src_mask)
        x = self.norm1(src) if self.normalize_before else src
        attended = self.self_attn(x, x, x, src_mask) if cache is None else self.self_attn(x, x, x, src_mask, cache)
        if cache is not None:
            attended, cache = attended
        x = src + self.dropout1(attended)
        if not self.normalize_before:
            x = self.norm1(x)
        y = x + self.dropout2(self._feed_forward(self.norm2(x) if self.normalize_before else x))
        if not self.normalize_before:
            y = self.norm2(y)
        return y if cache is None else (y, cache)

    def gen_cache(self, src: Tensor) -> Any:
        """An empty cache for the batch of ``src``."""
        return self.self_attn.gen_cache(src)


class _LayerStack(Layer):
    """Layers one after another, and a norm at the end."""

    def __init__(self, layer: Layer, num_layers: Size, norm: LayerNorm | None) -> None:
        super().__init__()
        self.layers = LayerList([layer if k == 0 else _renewed(layer) for k in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm


def _renewed(layer: Layer) -> Layer:
    """A layer made like this one; a copy of one of the user's own class."""
    return (
        type(layer)(*layer._options)
        if type(layer) in (TransformerEncoderLayer, TransformerDecoderLayer)
        else copy.deepcopy(layer)
    )


class TransformerEncoder(_LayerStack):
    """``num_layers`` copies of an encoder layer, the first being the layer itself, and a norm at the end."""

    def __init__(self, encoder_layer: TransformerEncoderLayer, num_layers: Size, norm: LayerNorm | None = None) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Any = None) -> Any:
        mask = _score_mask(src_mask)
        out, caches = src, []
        for k, layer in enumerate(self.layers):
            out = layer(out, src_mask=mask) if cache is None else layer(out, src_mask=mask, cache=cache[k])
            if cache is not None:
                out, new = out
                caches.append(new)
        if self.norm is not None:
            out = self.norm(out)
        return out if cache is None else (out, caches)

    def gen_cache(self, src: Tensor) -> list[Any]:
        """An empty cache for each layer, for the batch of ``src``."""
        return [layer.gen_cache(src) for layer in self.layers]


class TransformerDecoderLayer(_Sublayers):
    """Self-attention, attention to a memory, and a feed-forward part, each with a residual connection and a layer norm.

    Args:
        d_model: the width of inputs and outputs.
        nhead: heads.
        dim_feedforward: the inner width of the feed-forward part.
        dropout: after each part, in training.
        activation: its name in ``nn.functional``.
        attn_dropout: on the attention's weights; by default ``dropout``.
        act_dropout: after the activation; by default ``dropout``.
        normalize_before: norms stand before the parts, not after the sums.
        weight_attr: one ParamAttr, or two or three: self-attention, attention to the memory, feed-forward.
        bias_attr: likewise.
        layer_norm_eps: of the norms.
    """

    def __init__(
        self,
        d_model: Count,
        nhead: Count,
        dim_feedforward: Count,
        dropout: Probability = 0.1,
        activation: str = "relu",
        attn_dropout: Probability | None = None,
        act_dropout: Probability | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        layer_norm_eps: NotNegative = 1e-5,
    ) -> None:
        super().__init__()
        self._options = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            attn_dropout,
            act_dropout,
            normalize_before,
            weight_attr,
            bias_attr,
            layer_norm_eps,
        )
        self._set_up(d_model, dim_feedforward, dropout, activation, act_dropout, normalize_before)
        weights, biases = _repeated_attributes(weight_attr, 3), _repeated_attributes(bias_attr, 3)
        attention_dropout = dropout if attn_dropout is None else attn_dropout
        self.self_attn = MultiHeadAttention(d_model, nhead, attention_dropout, weight_attr=weights[0], bias_attr=biases[0])
        self.cross_attn = MultiHeadAttention(d_model, nhead, attention_dropout, weight_attr=weights[1], bias_attr=biases[1])
        self.linear1 = Linear(d_model, dim_feedforward, weights[2], biases[2])
        self.dropout = Dropout(self._act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[2], biases[2])
        self.norm1 = LayerNorm(d_model, layer_norm_eps)
        self.norm2 = LayerNorm(d_model, layer_norm_eps)
        self.norm3 = LayerNorm(d_model, layer_norm_eps)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None, cache: Any = None
    ) -> Any:
        tgt_mask, memory_mask = _score_mask(tgt_mask), _score_mask(memory_mask)
        before = self.normalize_before
        x = self.norm1(tgt) if before else tgt
        attended = self.self_attn(x, x, x, tgt_mask, None if cache is None else cache[0])
        grown = None
        if cache is not None:
            attended, grown = attended
        x = tgt + self.dropout1(attended)
        x = x if before else self.norm1(x)
        query = self.norm2(x) if before else x
        attended = _first(self.cross_attn(query, memory, memory, memory_mask, None if cache is None else cache[1]))
        x = x + self.dropout2(attended)
        x = x if before else self.norm2(x)
        x = x + self.dropout3(self._feed_forward(self.norm3(x) if before else x))
        x = x if before else self.norm3(x)
        return x if cache is None else (x, (grown, cache[1]))

    def gen_cache(self, memory: Tensor) -> tuple[Any, Any]:
        """(an empty cache of the self-attention, the memory's keys and values)."""
        return self.self_attn.gen_cache(memory), self.cross_attn.gen_cache(memory, memory, MultiHeadAttention.StaticCache)


class TransformerDecoder(_LayerStack):
    """``num_layers`` copies of a decoder layer, the first being the layer itself, and a norm at the end."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: Size, norm: LayerNorm | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None, cache: Any = None
    ) -> Any:
        tgt_mask, memory_mask = _score_mask(tgt_mask), _score_mask(memory_mask)
        out, caches = tgt, []
        for k, layer in enumerate(self.layers):
            out = layer(out, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, cache=None if cache is None else cache[k])
            if cache is not None:
                out, new = out
                caches.append(new)
        if self.norm is not None:
            out = self.norm(out)
        return out if cache is None else (out, caches)

    def gen_cache(self, memory: Tensor, do_zip: bool = False) -> list[Any]:
        """A cache for each layer; do_zip: all first parts, then all second parts."""
        caches = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*caches, strict=True)) if do_zip else caches


class Transformer(Layer):
    """An encoder and a decoder that attends to its output.

    Args:
        d_model: the width of inputs and outputs.
        nhead: heads.
        num_encoder_layers: layers of the encoder.
        num_decoder_layers: layers of the decoder.
        dim_feedforward: the inner width of the feed-forward parts.
        dropout: after each part, in training.
        activation: its name in ``nn.functional``.
        attn_dropout: on attention weights; by default ``dropout``.
        act_dropout: after the activation; by default ``dropout``.
        normalize_before: norms stand before the parts, and one more after each stack.
        weight_attr: one ParamAttr, or two or three: self-attention, attention to the memory, feed-forward.
        bias_attr: likewise.
        custom_encoder: in place of the encoder.
        custom_decoder: in place of the decoder.

    Example:
        >>> import sampan as paddle
        >>> model = paddle.nn.Transformer(8, 2, 1, 1, 16)
        >>> model(paddle.ones([2, 4, 8]), paddle.ones([2, 6, 8])).shape
        paddle.Size([2, 6, 8])
    """

    def __init__(
        self,
        d_model: Count = 512,
        nhead: Count = 8,
        num_encoder_layers: Size = 6,
        num_decoder_layers: Size = 6,
        dim_feedforward: Count = 2048,
        dropout: Probability = 0.1,
        activation: str = "relu",
        attn_dropout: Probability | None = None,
        act_dropout: Probability | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        custom_encoder: Layer | None = None,
        custom_decoder: Layer | None = None,
    ) -> None:
        super().__init__()
        weights, biases = _repeated_attributes(weight_attr, 3), _repeated_attributes(bias_attr, 3)
        common = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before)
        if custom_encoder is None:
            layer = TransformerEncoderLayer(*common, [weights[0], weights[2]], [biases[0], biases[2]])
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, LayerNorm(d_model))
        self.encoder = custom_encoder
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(
                TransformerDecoderLayer(*common, weights, biases), num_decoder_layers, LayerNorm(d_model)
            )
        self.decoder = custom_decoder
        self.d_model, self.nhead = d_model, nhead

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        memory = self.encoder(src, src_mask=src_mask)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask)

    def generate_square_subsequent_mask(self, length: int) -> Tensor:
        """float32 [length, length]: 0 where a place may look, minus infinity for later places."""
        return to_tensor(np.triu(np.full((int(length), int(length)), -np.inf, np.float32), 1))


__all__ = [
    "MultiHeadAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]
