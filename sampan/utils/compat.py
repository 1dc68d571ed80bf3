"""enable_compat and disable_compat: Paddle's switch that gives itself out as PyTorch."""

from __future__ import annotations

from typing import Any

from ..base.errors import UnsupportedError, message


def enable_compat(*, scope: Any = None, blocked_modules: Any = None, backend: str = "torch", silent: bool = False) -> None:
    """Refused: ``import torch`` is never answered by another framework here.

    Raises:
        UnsupportedError: always.
    """
    raise UnsupportedError(
        message(
            "enable_compat(): this framework does not give itself out as torch",
            "programs would get the wrong one unnoticed",
            "import sampan",
        )
    )


def disable_compat() -> None:
    """Nothing: ``enable_compat`` never succeeds."""
