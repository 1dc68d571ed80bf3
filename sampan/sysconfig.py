"""``paddle.sysconfig``: where the package's files lie."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def get_include() -> str:
    """The folder of the C++ headers: ``csrc`` beside the package in a source tree."""
    return str(_PACKAGE.parent / "csrc")


def get_lib() -> str:
    """The folder of the compiled runtime."""
    return str(_PACKAGE)


__all__ = ["get_include", "get_lib"]
