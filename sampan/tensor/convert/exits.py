"""How a function that was made of a block ends: None when it completes, an Exit when it returns, breaks or continues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .names import BREAK, CONTINUE, RAISE, RETURN

NORMAL = ""
CODES = {NORMAL: 0, BREAK: 1, CONTINUE: 2, RETURN: 3, RAISE: 4}


@dataclass(frozen=True)
class Exit:
    """Leaving a block early.

    ways: the ways that are possible; more than one, which may include completing (an empty text), when only a run knows which.
    code: the number of the way, a symbolic number when there are several.
    value: what ``return`` gives, when that is possible.
    """

    ways: frozenset[str]
    code: Any
    value: Any = None

    @property
    def is_plain(self) -> bool:
        """Whether the way is known."""
        return len(self.ways) == 1


LEAVE_BREAK = Exit(frozenset({BREAK}), CODES[BREAK])
LEAVE_CONTINUE = Exit(frozenset({CONTINUE}), CODES[CONTINUE])


def returned(value: Any) -> Exit:
    """Leaving by ``return value``."""
    return Exit(frozenset({RETURN}), CODES[RETURN], value)


#: The end of a block that raises when the Program runs: nothing follows.
RAISES = Exit(frozenset({RAISE}), CODES[RAISE])


def ways_of(exit: Exit | None) -> frozenset[str]:
    """How a block may have ended."""
    return frozenset({NORMAL}) if exit is None else exit.ways


def known(ways: frozenset[str], code: Any, value: Any) -> Exit | None:
    """The exit of these ways; None when completing is the only one."""
    if ways == {NORMAL}:
        return None
    if len(ways) == 1:
        code = CODES[next(iter(ways))]
    return Exit(ways, code, value)
