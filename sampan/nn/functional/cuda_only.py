"""Names of Paddle's API that exist for CUDA kernels alone."""

from __future__ import annotations

from typing import Any, NoReturn

from ...base.errors import UnsupportedError, message


def _unsupported(name: str) -> NoReturn:
    raise UnsupportedError(
        message(
            f"{name}(): this build has no such kernel",
            "in Paddle it exists for CUDA alone, for float8 mixtures of experts",
            "sort tokens by expert with argsort() and index_select(), and add them back with index_add()",
        )
    )


def moe_permute(
    hidden_states: Any,
    scale: Any,
    expert_routemap_topk: Any,
    expert_prob_topk: Any,
    num_experts: int,
    tokens_per_expert: list[int],
    padding_alignment: int,
    do_gather: bool = True,
    using_ue8m0_scale: bool = False,
    return_expert_indices: bool = False,
    override_buffer_size: int = -1,
    name: str | None = None,
) -> NoReturn:
    """Raises UnsupportedError: Paddle has it for CUDA alone."""
    _unsupported("moe_permute")


def moe_unpermute(
    hidden_states_unzipped: Any,
    zipped_expertwise_rowmap: Any,
    expert_routemap_topk: Any,
    token_prob_unzipped: Any,
    total_zipped_tokens: int,
    num_experts: int,
    using_mix_precision: bool = True,
    using_weighted_combine: bool = False,
    name: str | None = None,
) -> NoReturn:
    """Raises UnsupportedError: Paddle has it for CUDA alone."""
    _unsupported("moe_unpermute")


__all__ = ["moe_permute", "moe_unpermute"]
