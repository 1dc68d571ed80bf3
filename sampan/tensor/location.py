"""The user's own line, for error messages."""

from __future__ import annotations

import os.path
import re
import sys

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def user_location() -> str:
    """``at train.py:41, in forward``: the innermost frame outside of sampan; empty when there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE) and not code.co_filename.startswith("<frozen"):
            return f"at {os.path.basename(code.co_filename)}:{frame.f_lineno}, in {code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def is_called_by_sampan() -> bool:
    """Whether the function that calls the one that asks is sampan's own."""
    return sys._getframe(2).f_code.co_filename.startswith(_PACKAGE)


def add_user_location(error: Exception) -> None:
    """Append the user's line to the error's text, once."""
    where = user_location()
    if where and error.args and isinstance(error.args[0], str) and "\n  at " not in error.args[0]:
        error.args = (f"{error.args[0]}\n  {where}", *error.args[1:])


def name_operator(error: Exception, *names: str) -> None:
    """Put the operator's first name before an error's text that begins with none of its names (or with that of its form without an underscore)."""
    text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    if text and not any(re.match(rf"{re.escape(name.rstrip('_'))}(_?\(|:)", text) for name in names):
        called = f"{names[0]}()" if names[0].isidentifier() else names[0]
        error.args = (f"{called}: {text}", *error.args[1:])


def user_layer() -> str:
    """``in Linear (linear_0)``: the innermost layer whose forward is running; empty outside of layers."""
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self") if frame.f_code.co_name == "forward" else None
        if owner is not None and hasattr(owner, "full_name") and hasattr(owner, "sublayers"):
            return f"in {type(owner).__name__} ({owner.full_name()})"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
