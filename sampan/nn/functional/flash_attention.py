"""Attention in the interfaces of Paddle's flash-attention kernels. On the CPU all of them compute the same fused formula."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ...base.errors import ArgumentError, ShapeError, message
from ...tensor import OPS, Tensor, share_array
from ...tensor.replay import decided_by_data
from .inputs import dropout as drop


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    rate: float,
    is_causal: bool,
    training: bool,
    scale: float | None = None,
) -> Tensor:
    if rate == 0 or not training:
        return OPS["attention"](query, key, value, mask, is_causal, scale)
    weights = OPS["attention_weights"](query, key, mask, is_causal, scale)
    return OPS["attention_values"](drop(weights, rate), value)


def _heads_mask(mask: Tensor | None) -> Tensor | None:
    """A mask [S, T] or [N, S, T] as one that broadcasts to [N, H, S, T]."""
    return OPS["unsqueeze"](mask, 1) if mask is not None and len(mask.shape) == 3 else mask


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    training: bool = True,
    backend: str | None = None,
    scale: float | None = None,
    enable_gqa: bool = True,
    name: str | None = None,
) -> Tensor:
    """softmax(query key' * scale + mask) value.

    Args:
        query: [N, S, heads, width].
        key: [N, T, heads, width]; fewer heads, of which the query's are a multiple, are each used by several of them.
        value: likewise.
        attn_mask: added to the scores [N, heads, S, T]; or bool: True where a query sees a key.
        dropout_p: the probability of dropping a weight in training.
        is_causal: the last query sees all keys, each earlier one a key less.
        training: whether dropout is on.
        backend: accepted for compatibility.
        scale: by default 1 / sqrt(width).
        enable_gqa: False: the numbers of heads must be equal.

    Returns:
        [N, S, heads, width]. A query that sees no key gets zeros.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.ones([1, 4, 2, 8])
        >>> paddle.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True).shape
        paddle.Size([1, 4, 2, 8])
    """
    if is_causal and attn_mask is not None:
        raise ArgumentError(
            "scaled_dot_product_attention(): attn_mask and is_causal=True cannot both be given; put the causal part into the mask"
        )
    if not enable_gqa and query.shape[2] != key.shape[2]:
        raise ShapeError(
            message(
                f"scaled_dot_product_attention(): {query.shape[2]} and {key.shape[2]} heads",
                "enable_gqa=False needs equal numbers",
            )
        )
    return _attend(query, key, value, _heads_mask(attn_mask), dropout_p, is_causal, training, scale)


def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    *,
    fixed_seed_offset: Any = None,
    rng_name: str = "",
    training: bool = True,
    name: str | None = None,
    softmax_scale: float | None = None,
) -> tuple[Tensor, Tensor | None]:
    """(attention of [N, length, heads, width] tensors, its weights when ``return_softmax``, else None)."""
    out = _attend(query, key, value, None, dropout, causal, training, softmax_scale)
    return out, OPS["attention_weights"](query, key, None, causal, softmax_scale) if return_softmax else None


def _unpacked(qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """query, key and value of [..., heads / key heads + 2, key heads, width]."""
    shape = list(qkv.shape)
    groups = shape[-3] - 2
    if groups < 1:
        raise ShapeError(
            message(f"qkv has shape {shape}", "its third-last axis must hold the query groups, the key and the value")
        )
    query = OPS["reshape"](qkv[..., :groups, :, :], [*shape[:-3], groups * shape[-2], shape[-1]])
    return query, qkv[..., groups, :, :], qkv[..., groups + 1, :, :]


def flash_attn_qkvpacked(
    qkv: Tensor,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    *,
    fixed_seed_offset: Any = None,
    rng_name: str = "",
    training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor | None]:
    """As ``flash_attention``, of qkv [N, length, heads / key heads + 2, key heads, width]."""
    return flash_attention(*_unpacked(qkv), dropout, causal, return_softmax, training=training)


def _pieces(x: Tensor, edges: Tensor) -> list[Tensor]:
    """The sequences of a packed [total, ...] between the edges, each with a batch axis of 1."""
    at = [int(e) for e in edges.tolist()]
    if not at or at[0] != 0 or at != sorted(at) or at[-1] > x.shape[0]:
        raise ArgumentError(message(f"cumulative lengths are {at}", f"they must rise from 0 to at most {x.shape[0]}"))
    return [OPS["unsqueeze"](x[a:b], 0) for a, b in itertools.pairwise(at)]


def flash_attn_unpadded(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: float | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    fixed_seed_offset: Any = None,
    rng_name: str = "",
    training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, None]:
    """(attention inside each of the sequences that are packed into [total, heads, width] tensors, None).

    Args:
        cu_seqlens_q: where each query sequence begins, and the total.
        cu_seqlens_k: where each key sequence begins, and the total.
    """
    parts = [
        _attend(q, k, v, None, dropout, causal, training, scale)
        for q, k, v in zip(_pieces(query, cu_seqlens_q), _pieces(key, cu_seqlens_k), _pieces(value, cu_seqlens_k), strict=True)
    ]
    return OPS["squeeze"](OPS["concat"](parts, 1), 0), None


def flash_attn_varlen_qkvpacked(
    qkv: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: float,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    fixed_seed_offset: Any = None,
    rng_name: str = "",
    varlen_padded: bool = True,
    training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, None]:
    """As ``flash_attn_unpadded``, of qkv [total, heads / key heads + 2, key heads, width]."""
    query, key, value = _unpacked(qkv)
    return flash_attn_unpadded(
        query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, scale, dropout, causal, training=training
    )


def flash_attention_v3_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    seqused_q: Any = None,
    seqused_k: Any = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    qv: Any = None,
    q_descale: Any = None,
    k_descale: Any = None,
    v_descale: Any = None,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: Any = None,
    sm_margin: int = 0,
) -> tuple[Tensor, Tensor]:
    """(attention as by ``flash_attn_unpadded``, the logarithms of the softmax's sums [heads, total]).

    Raises:
        ArgumentError: an option is given that only the CUDA kernel has (descaling, windows, soft caps, used lengths).
    """
    given = {
        "seqused_q": seqused_q,
        "seqused_k": seqused_k,
        "qv": qv,
        "q_descale": q_descale,
        "k_descale": k_descale,
        "v_descale": v_descale,
    }
    extra = (
        [k for k, v in given.items() if v is not None]
        + ["window_size"] * (tuple(window_size) != (-1, -1))
        + ["softcap"] * bool(softcap)
    )
    if extra:
        raise ArgumentError(
            message(f"flash_attention_v3_varlen(): {', '.join(extra)}", "this build's attention does not have it", "leave it out")
        )
    out, _ = flash_attn_unpadded(
        query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale, 0.0, causal
    )
    sums = [
        OPS["attention_log_sums"](q, k, None, causal, softmax_scale)
        for q, k in zip(_pieces(query, cu_seqlens_q), _pieces(key, cu_seqlens_k), strict=True)
    ]
    return out, OPS["squeeze"](OPS["concat"](sums, 2), 0)


def flashmask_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    startend_row_indices: Tensor | None = None,
    *,
    dropout: float = 0.0,
    causal: bool = False,
    window_size: int | tuple[int, int] | None = None,
    return_softmax_lse: bool = False,
    return_seed_offset: bool = False,
    fixed_seed_offset: Any = None,
    rng_name: str = "",
    training: bool = True,
    name: str | None = None,
    softmax_scale: float | None = None,
    block_mask: Tensor | None = None,
) -> Any:
    """Attention whose mask is given by columns: for each key, which rows of queries do not see it.

    Args:
        query: [N, S, heads, width].
        key: [N, T, heads, width].
        value: likewise.
        startend_row_indices: [N, 1 or heads, T, kinds]. Causal: the hidden rows below the diagonal, [start] or [start, end). Not causal: [start, end) of
            rows hidden from start on and up to end, or both as pairs. None: no column is masked.
        causal: the last query sees all keys, each earlier one a key less.
        window_size: a query sees this many keys before it, and after it; in place of the row indices.
        return_softmax_lse: also give the logarithms of the softmax's sums.
        return_seed_offset: also give a seed; None here.

    Source: G. Wang et al., "FlashMask", https://arxiv.org/abs/2410.01359
    """
    if block_mask is not None:
        raise ArgumentError(
            message("flashmask_attention(): block_mask", "this build's attention does not have it", "leave it out")
        )
    mask = None
    if window_size is not None:
        if startend_row_indices is not None:
            raise ArgumentError("flashmask_attention(): window_size and startend_row_indices cannot both be given")
        mask = _window_mask(query.shape[1], key.shape[1], window_size, causal)
    elif startend_row_indices is not None:
        kinds = startend_row_indices.shape[-1]
        if kinds not in ((1, 2) if causal else (2, 4)):
            raise ShapeError(
                message(
                    f"flashmask_attention(): startend_row_indices is {list(startend_row_indices.shape)} and causal is {causal}",
                    f"its last axis must be {'1 or 2' if causal else '2 or 4'}",
                )
            )
        mask = OPS["row_range_mask"](startend_row_indices, query.shape[1], causal)
        if mask.shape[1] not in (1, query.shape[2]):
            mask = OPS["repeat_interleave"](mask, query.shape[2] // mask.shape[1], 1)
    is_causal = causal and mask is None
    out = _attend(query, key, value, mask, dropout, is_causal, training, softmax_scale)
    results = [out]
    if return_softmax_lse:
        results.append(OPS["attention_log_sums"](query, key, mask, is_causal, softmax_scale))
    if return_seed_offset:
        results.append(None)
    return results[0] if len(results) == 1 else tuple(results)


def _window_mask(rows: int, columns: int, window_size: int | tuple[int, int], causal: bool) -> Tensor:
    before, after = (window_size, window_size) if isinstance(window_size, int) else window_size
    gap = np.arange(columns)[None, :] - np.arange(rows)[:, None] - (columns - rows)
    return share_array((gap >= -before) & (gap <= (0 if causal else after)))


@decided_by_data(lambda query, *_, **__: (query.dtype, tuple(query.shape)))
def sparse_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sparse_csr_offset: Tensor,
    sparse_csr_columns: Tensor,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """Attention where each query sees the keys that a sparse matrix in CSR form lists.

    Args:
        query: [N, heads, S, width].
        key: likewise.
        value: likewise.
        sparse_csr_offset: int32 [N, heads, S + 1]: where each row's columns begin.
        sparse_csr_columns: int32 [N, heads, count]: the keys that are seen.
        key_padding_mask: [N, S]; 0 hides a key.
        attn_mask: [S, S]; 0 hides a pair.
    """
    n, heads, length, _ = query.shape
    offsets, columns = sparse_csr_offset.numpy(), sparse_csr_columns.numpy()
    if list(offsets.shape) != [n, heads, length + 1] or list(columns.shape[:2]) != [n, heads]:
        raise ShapeError(
            message(
                f"sparse_attention(): query is {list(query.shape)}, offsets {list(offsets.shape)}, columns {list(columns.shape)}",
                "offsets must be [N, heads, S + 1] and columns [N, heads, count]",
            )
        )
    mask = np.zeros((n, heads, length, length), bool)
    for i, h in np.ndindex(n, heads):
        rows = np.repeat(np.arange(length), np.diff(offsets[i, h]))
        mask[i, h, rows, columns[i, h, : len(rows)]] = True
    if key_padding_mask is not None:
        mask &= key_padding_mask.numpy()[:, None, None, :] != 0
    if attn_mask is not None:
        mask &= attn_mask.numpy() != 0
    order = [0, 2, 1, 3]
    out = OPS["attention"](*(OPS["transpose"](v, order) for v in (query, key, value)), share_array(mask))
    return OPS["transpose"](out, order)


__all__ = [
    "flash_attention_v3_varlen",
    "flash_attn_qkvpacked",
    "flash_attn_varlen_qkvpacked",
    "flashmask_attention",
    "scaled_dot_product_attention",
    "sparse_attention",
]
