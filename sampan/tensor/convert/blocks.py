"""What conversion asks of the Program that is being recorded: nested blocks for branches and loops, and Values for what they use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ...ir.program import Value


class Branches(Protocol):
    """A branch that is being recorded: two blocks, which can be entered again to add what they give."""

    def side(self, holds: bool) -> AbstractContextManager[Any]:
        """Record into the block for a condition that holds, or the other."""

    def finish(self, when_true: Sequence[Value], when_false: Sequence[Value]) -> list[Value]:
        """End both blocks with these results, of equal types; gives the branch's results."""


class Loop(Protocol):
    """A loop that is being recorded; without ``finish`` it leaves no trace."""

    arguments: list[Value]

    def body(self) -> AbstractContextManager[Any]:
        """Record into the body."""

    def finish(self, results: Sequence[Value]) -> list[Value]:
        """End the body with the next round's arguments, of which the first says whether there is one; gives what they are after the loop."""


class Blocks(Protocol):
    """The Program that is being recorded."""

    def branches(self, condition: Value) -> Branches:
        """A new branch at this place."""

    def loop(self, initial: Sequence[Value], kinds: Sequence[Any]) -> Loop:
        """A new loop at this place, carrying values of these kinds. The first value says whether it runs at all."""

    def value(self, tensor: Any) -> Value:
        """A Value of the innermost block for a tensor or Value."""

    texts: Any  # what texts were made of
    has_optionals: bool  # some variable is None or a value, which only the run knows

    def print(self, args: Sequence[Any], options: dict[str, Any]) -> None:
        """Print when the Program runs, at this place."""

    def check(self, condition: Value, told: Any) -> None:
        """Raise AssertionError when the Program runs and the condition does not hold."""

    def fail(self, error: BaseException) -> None:
        """Raise the exception when the Program runs and comes to this place."""


class _Thread(threading.local):
    blocks: Blocks | None = None  # of the class: a layer's call must not pay for an attribute that is missing
    #: What layers ask before they run: the blocks, or what gives the function to call in the place of a layer's forward.
    around: Any = None


_thread = _Thread()


def current() -> Blocks | None:
    """What this thread is recording, or None."""
    return _thread.blocks


def around() -> Any:
    """What layers that this thread calls have to ask for their ``forward``; None when they just run."""
    return _thread.around


class _Switch:
    """A context manager: this thread has these blocks, and layers ask this, inside it."""

    def __init__(self, blocks: Blocks | None, asked: Any) -> None:
        self._new = blocks, asked

    def __enter__(self) -> None:
        self._old = _thread.blocks, _thread.around
        _thread.blocks, _thread.around = self._new

    def __exit__(self, *error: Any) -> None:
        _thread.blocks, _thread.around = self._old


class recording(_Switch):
    """A context manager: converted functions record into these blocks inside it."""

    def __init__(self, blocks: Blocks | None) -> None:
        super().__init__(blocks, blocks)


class running_parts(_Switch):
    """A context manager: nothing is recorded inside it, and ``choose(part)`` gives what layers call in the place of their ``forward``, and converted code
    in the place of functions and methods."""

    def __init__(self, choose: Callable[[Any], Any]) -> None:
        super().__init__(None, choose)
