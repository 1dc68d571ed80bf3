"""Switches of conversion: on or off, and what it tells about itself."""

from __future__ import annotations

import sys
from typing import Any

from ..base.errors import ArgumentTypeError, message


class _Settings:
    enabled = True
    verbosity = 0
    code_level = -1
    to_stdout = False


def is_enabled() -> bool:
    """Whether functions under ``to_static`` run as Programs."""
    return _Settings.enabled


def enable_to_static(enable_to_static_bool: bool) -> None:
    """Run functions under ``to_static`` as Programs, or (False) as the Python that they are.

    Example:
        >>> import sampan as paddle
        >>> paddle.jit.enable_to_static(False)
        >>> paddle.jit.enable_to_static(True)
    """
    if not isinstance(enable_to_static_bool, bool):
        raise ArgumentTypeError(message(f"enable_to_static(): got {enable_to_static_bool!r}", "it takes True or False"))
    _Settings.enabled = enable_to_static_bool


def set_verbosity(level: int = 0, also_to_stdout: bool = False) -> None:
    """Tell on the standard error, from level 1 on, when a function is recorded, and when and why it runs eagerly.

    Args:
        level: 0 tells nothing.
        also_to_stdout: on the standard output as well.
    """
    _Settings.verbosity = _level("set_verbosity", level)
    _Settings.to_stdout = bool(also_to_stdout)


def set_code_level(level: int = 100, also_to_stdout: bool = False) -> None:
    """Show the converted code of functions when they are first recorded.

    Args:
        level: -1 shows none, any other level the code.
        also_to_stdout: on the standard output as well.
    """
    _Settings.code_level = _level("set_code_level", level)
    _Settings.to_stdout = bool(also_to_stdout)


def _level(name: str, level: Any) -> int:
    if isinstance(level, bool) or not isinstance(level, int):
        raise ArgumentTypeError(message(f"{name}(): level={level!r}", "it must be an integer"))
    return level


def tell(text: str) -> None:
    """Say what happens, where verbosity asks for it."""
    if _Settings.verbosity > 0:
        _write(text)


def shows_code() -> bool:
    """Whether converted code is to be shown."""
    return _Settings.code_level >= 0


def show_code(text: str) -> None:
    """Show converted code."""
    _write(text)


def _write(text: str) -> None:
    print(text, file=sys.stderr)
    if _Settings.to_stdout:
        print(text)
