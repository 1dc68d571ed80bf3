"""What a recorded function depends on beside its arguments: variables of modules and closures, and the settings of layers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any

from ... import _rt
from ...base.errors import ConversionError, message
from ..location import Location
from .merging import same
from .outside import outer_iterator

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_thread = threading.local()


#: Counts the changes of any layer's settings: as long as it stands still, no layer's have to be looked at.
_changes = 0


def settings_changed() -> None:
    """A layer's attribute, mode or parts changed."""
    global _changes
    _changes += 1


def settings_version() -> int:
    """A number that stays the same as long as no layer's settings change."""
    return _changes


class Uses:
    """A context manager that notes the functions and layers that a recording runs."""

    def __init__(self) -> None:
        self.functions: dict[int, FunctionType] = {}
        self.layers: dict[int, Any] = {}

    def __enter__(self) -> Uses:
        self._outer = getattr(_thread, "uses", None)
        _thread.uses = self
        return self

    def __exit__(self, *error: Any) -> None:
        _thread.uses = self._outer


def note_function(function: FunctionType) -> None:
    """A recording runs the function.

    Raises:
        ConversionError: the function reads an iterator of outside, which a recorded Program could not move on.
    """
    uses = getattr(_thread, "uses", None)
    if uses is None or id(function) in uses.functions:
        return
    name = outer_iterator(function, has_closure=not uses.functions)  # an inner function's belong to the recorded one
    uses.functions[id(function)] = function
    if name:
        code = function.__code__
        raise ConversionError(
            message(
                f"{function.__qualname__}() reads the variable {name!r}, which holds an iterator",
                "every call goes on with it, and all runs of a recorded Program would use the items of one call",
                "take the items before the call and pass them on",
            )
            + f"\n  {Location.of(code.co_filename, code.co_firstlineno, code.co_name)}"
        )


def note_layer(layer: Any) -> None:
    """A recording runs the layer."""
    uses = getattr(_thread, "uses", None)
    if uses is not None:
        uses.layers[id(layer)] = layer


def is_plain(value: Any) -> bool:
    """Whether the value is a number, a text, or a tuple of those: what a recording takes over as it is."""
    return isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(map(is_plain, value)))


@dataclass(frozen=True)
class Variable:
    """A variable of a module or closure, and its value while the function was recorded."""

    read: Callable[[], Any]
    value: Any

    def holds(self) -> bool:
        """Whether it has that value still."""
        try:
            now = self.read()
        except (KeyError, ValueError):
            return False
        return now is self.value or (is_plain(now) and is_plain(self.value) and same(now, self.value))


def variables_of(functions: Iterable[FunctionType]) -> list[Variable]:
    """The plain variables, and those that hold tensors, that the functions can read outside of themselves."""
    found: dict[Any, Variable] = {}
    for function in functions:
        names = function.__globals__
        for name in function.__code__.co_names:
            if name in names and _matters(names[name]):
                found[id(names), name] = Variable(lambda names=names, name=name: names[name], names[name])  # type: ignore[misc]
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if _has_value(cell) and _matters(cell.cell_contents):
                found[id(cell), name] = Variable(lambda cell=cell: cell.cell_contents, cell.cell_contents)  # type: ignore[misc]
    return list(found.values())


def _has_value(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _matters(value: Any) -> bool:
    return is_plain(value) or isinstance(value, _rt.Tensor)
