"""Handles of the hooks that layers call."""

from __future__ import annotations

from typing import Any


class HookRemoveHelper:
    """Removes the hook that it was given for."""

    _next_id = 0

    def __init__(self, hooks: dict[int, Any]) -> None:
        self._hooks = hooks
        self._hook_id = HookRemoveHelper._next_id
        HookRemoveHelper._next_id += 1

    def remove(self) -> None:
        """Remove the hook; doing it twice is harmless."""
        self._hooks.pop(self._hook_id, None)
