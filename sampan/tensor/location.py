"""The user's own line, for error messages."""

from __future__ import annotations

import linecache
import os.path
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..base.errors import SampanError
from ..ops.primitives.core import PRIMITIVES

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_OWN = (_PACKAGE, os.path.dirname(np.__file__))


class Location(str):
    """``at train.py:41, in forward``, which knows the text of the line too."""

    __slots__ = ("_filename", "_line")
    _filename: str
    _line: int

    @staticmethod
    def of(filename: str, line: int, function: str) -> Location:
        """The place in a file."""
        made = Location(f"at {os.path.basename(filename)}:{line}, in {function}")
        made._filename, made._line = filename, line
        return made

    def with_source(self) -> str:
        """The place, and the line's text on a line of its own where it can be read."""
        source = linecache.getline(self._filename, self._line).strip()
        return f"{self}\n    {source}" if source else str(self)


_local = threading.local()


@contextmanager
def located(place: str) -> Iterator[None]:
    """Inside, this is where statements come from, not the line that runs: ``in the model 'm'``."""
    old, _local.place = getattr(_local, "place", ""), place
    try:
        yield
    finally:
        _local.place = old


def user_location() -> str:
    """``at train.py:41, in forward``: the innermost frame outside of sampan; empty when there is none."""
    if place := getattr(_local, "place", ""):
        return place
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE) and not code.co_filename.startswith("<frozen"):
            return Location.of(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def is_called_by_sampan() -> bool:
    """Whether the function that calls the one that asks is sampan's own."""
    return sys._getframe(2).f_code.co_filename.startswith(_PACKAGE)


def is_inside_sampan(error: Exception) -> bool:
    """Whether an error that was caught here comes from sampan, or from NumPy called by it, not from a function of the user's that it called."""
    trace = error.__traceback__
    while trace is not None and (
        trace.tb_frame.f_code.co_filename.startswith(_OWN) or trace.tb_frame.f_code.co_filename.endswith(".pyx")
    ):
        trace = trace.tb_next
    return trace is None


def begins_with_operator(error: Exception) -> bool:
    """Whether the error's text says which operator it is of."""
    return _HEAD.match(str(error)) is not None


def add_user_location(error: Exception) -> None:
    """Append the user's line to the error's text, once."""
    where = user_location()
    if where and error.args and isinstance(error.args[0], str) and not is_located(error):
        error.args = (f"{error.args[0]}\n  {where}", *error.args[1:])


def is_located(error: Exception) -> bool:
    """Whether the error's text says where it comes from."""
    return re.search(r"\n  (at \S+:\d+, in |in the model )", str(error)) is not None


def origin_of(name: str, where: str) -> str:
    """A statement of a Program as one text: what it calls, and on further lines where it was written."""
    return f"{name.rpartition('.')[2]}\n{where.with_source() if isinstance(where, Location) else where}"


def add_origin(error: Exception, origin: str) -> None:
    """Let an error that a statement of a Program brought about say which one, in the place of the line that runs the Program.

    Exceptions that are not sampan's own keep their text: Python 3.11 and later show a note below it.
    """
    name, _, where = origin.partition("\n")
    text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    if isinstance(error, SampanError) and text:
        error.args = (text.removesuffix(f"\n  {user_location()}"), *error.args[1:])
        if not is_located(error):
            name_operator(error, name)
            error.args = (f"{error.args[0]}\n  {where}" if where else error.args[0], *error.args[1:])
        return
    note = f"{name} {where}".rstrip()
    if hasattr(error, "add_note") and is_inside_sampan(error):  # elsewhere the traceback shows the user's line
        error.add_note(note)


def name_operator(error: Exception, name: str) -> None:
    """Let an error's text begin with the name that the user called, in the place of those of operators inside of it."""
    text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    if not text or re.match(rf"{re.escape(name.rstrip('_'))}(_?\(|:)", text):
        return
    joint = ": "
    while joint == ": " and (head := _HEAD.match(text)):
        text, joint = text[head.end() :], head["joint"]
    called = f"{name}()" if name.isidentifier() else name
    error.args = (f"{called}{joint}{text}", *error.args[1:])


#: How texts of operators begin: ``pool(): x is …``, ``exp() does not take …``, ``full(shape, fill_value): …``, ``reshape: …``, ``conv_forward: …``.
_HEAD = re.compile(
    r"(?:[a-z_][\w.]*\([^()]*\)|[a-z][a-z0-9]*_\w+|{})(?P<joint>: | does not take )".format("|".join(map(re.escape, PRIMITIVES)))
)


def user_layer() -> str:
    """``in Linear (linear_0)``: the innermost layer whose forward is running; empty outside of layers."""
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self") if frame.f_code.co_name == "forward" else None
        if owner is not None and hasattr(owner, "full_name") and hasattr(owner, "sublayers"):
            return f"in {type(owner).__name__} ({owner.full_name()})"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
