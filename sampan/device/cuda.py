"""``paddle.device.cuda``: there is no GPU in this build; what counts them gives 0, the rest says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.errors import UnsupportedError, message


def device_count() -> int:
    """How many GPUs there are: 0."""
    return 0


def _unsupported(name: str) -> Callable[..., Any]:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(
            message(
                f"paddle.device.cuda.{name}() needs an NVIDIA GPU",
                "this build of sampan computes on the CPU",
                f"use paddle.device.{name}()",
            )
        )

    fail.__name__ = fail.__qualname__ = name
    fail.__doc__ = "Raises UnsupportedError: there is no GPU in this build."
    return fail


_NAMES = """Event Stream current_stream empty_cache get_device_capability get_device_name get_device_properties max_memory_allocated
max_memory_reserved memory_allocated memory_reserved memory_summary reset_max_memory_allocated reset_max_memory_reserved stream_guard
synchronize vmm_compact""".split()
globals().update({name: _unsupported(name) for name in _NAMES})
