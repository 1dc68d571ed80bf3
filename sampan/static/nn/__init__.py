"""``paddle.static.nn``: control flow, and functions that make their own parameters."""

from __future__ import annotations

from ...tensor.control_flow import case, cond, switch_case, while_loop

__all__ = ["case", "cond", "switch_case", "while_loop"]
