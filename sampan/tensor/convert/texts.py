"""Text with values that only a run knows, and what prints, checks and raises when a Program runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ...base import nest
from ..replay import DYNAMIC, EFFECT, Operand, recordable
from . import numbers
from .merging import is_symbolic
from .numbers import KINDS, Number

_TOKEN = re.compile("\0(\\d+)\0")
CONVERSIONS: dict[str, Callable[[Any], Any]] = {"": lambda v: v, "s": str, "r": repr, "a": ascii}


class Texts:
    """The values of a recording that texts were made of: each stands in a text as a token."""

    def __init__(self) -> None:
        self.parts: list[tuple[Any, str, str]] = []

    def token(self, value: Any, conversion: str = "", spec: str = "") -> str:
        """What stands for the value in a text."""
        self.parts.append((value, conversion, spec))
        return f"\0{len(self.parts) - 1}\0"

    def text(self, value: Any) -> str:
        """``str(value)``, with tokens for symbolic values, in containers too."""
        if is_symbolic(value):
            return self.token(value)
        if isinstance(value, (list, tuple, dict)):
            return str(nest.map_structure(lambda v: _Shown(self.token(v, "r")) if is_symbolic(v) else v, value))
        return str(value)

    def resolved(self, text: str) -> tuple[list[Any], tuple[Any, ...]]:
        """The tensors that the text's tokens stand for, and the text as an attribute: pieces of text and of (operand, number type, conversion, spec)."""
        operands: list[Any] = []
        pieces: list[Any] = []
        for k, piece in enumerate(_TOKEN.split(text)):
            if k % 2 == 0:
                pieces.append(piece)
                continue
            value, conversion, spec = self.parts[int(piece)]
            is_number = isinstance(value, Number)
            operands.append(value.strong if is_number else value)
            pieces.append((Operand(len(operands) - 1), numbers.DTYPES[value.kind] if is_number else "", conversion, spec))
        return operands, tuple(pieces)


class _Shown:
    """Prints as a token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __repr__(self) -> str:
        return self._token


def has_token(text: Any) -> bool:
    """Whether the text holds a value that only a run knows."""
    return isinstance(text, str) and bool(_TOKEN.search(text))


def _joined(pieces: Sequence[Any]) -> str:
    """The text of one run."""
    return "".join(p if isinstance(p, str) else _shown(*p) for p in pieces)


def _shown(tensor: Any, number: str, conversion: str, spec: str) -> str:
    value = KINDS[number](tensor.item()) if number else tensor
    return format(CONVERSIONS[conversion](value), spec)


def _no_types(*args: Any, **kwargs: Any) -> list[Any]:
    return []


@recordable("print", _no_types)
def print_text(pieces: Any, end: str = "\n", file: Any = None, flush: bool = False) -> list[Any]:
    """Print a text when the Program runs."""
    print(_joined(pieces), end=end, file=file, flush=flush)
    return []


@recordable("assert", _no_types)
def check(condition: Any, pieces: Any = None) -> list[Any]:
    """Raise AssertionError when the Program runs and the condition does not hold."""
    if not bool(condition):
        raise AssertionError(*(() if pieces is None else (_joined(pieces),)))
    return []


@recordable("raise", _no_types)
def fail(kind: Any, pieces: Any) -> list[Any]:
    """Raise an exception when the Program runs and comes to this place. ``kind``: the exception; ``pieces``: its text, where it has tokens."""
    raise kind if pieces is None else type(kind)(_joined(pieces))


def attributes(**own: Any) -> dict[str, Any]:
    """The attributes of an Op that acts outside of the Program."""
    return {**own, DYNAMIC: 0, EFFECT: True}
