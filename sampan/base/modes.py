"""Whether public functions run at once or append to the default Program."""

from __future__ import annotations

_is_dynamic = True


def in_dynamic_mode() -> bool:
    """Whether operators run at once, as they do unless ``enable_static`` was called."""
    return _is_dynamic


def set_dynamic_mode(is_dynamic: bool) -> None:
    """Run at once, or build Programs."""
    global _is_dynamic
    _is_dynamic = is_dynamic
