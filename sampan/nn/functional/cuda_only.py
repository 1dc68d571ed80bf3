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


def moe_permute(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises UnsupportedError: Paddle has it for CUDA alone."""
    _unsupported("moe_permute")


def moe_unpermute(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises UnsupportedError: Paddle has it for CUDA alone."""
    _unsupported("moe_unpermute")


__all__ = ["moe_permute", "moe_unpermute"]
