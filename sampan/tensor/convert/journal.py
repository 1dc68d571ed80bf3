"""The changes that recorded code makes to Python objects, noted so that each branch starts from the same state and its changes can be merged."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from types import CellType
from typing import Any

from ..._rt import Tensor
from ...ir.program import Value

UNBOUND: Any = type("Unbound", (), {"__repr__": lambda self: "nothing"})()
_CONTAINERS = (list, dict, set, deque)
_thread = threading.local()


@dataclass(frozen=True)
class Place:
    """An attribute of an object, or the content of a list, dict, set or deque (an empty attribute)."""

    owner: Any
    attribute: str

    @property
    def key(self) -> tuple[int, str]:
        """What tells places apart."""
        if isinstance(self.owner, (OuterVariable, GlobalVariable)):
            return self.owner.key
        return id(self.owner), self.attribute

    def read(self) -> Any:
        """What is there now; of containers a copy."""
        if self.attribute:
            return getattr(self.owner, self.attribute, UNBOUND)
        return (
            list(self.owner)
            if isinstance(self.owner, (list, deque))
            else dict(self.owner)
            if isinstance(self.owner, dict)
            else set(self.owner)
        )

    def write(self, value: Any) -> None:
        """Put the value there."""
        if not self.attribute:
            self.owner.clear()
            (self.owner.extend if isinstance(self.owner, (list, deque)) else self.owner.update)(value)
        elif value is not UNBOUND:
            setattr(self.owner, self.attribute, value)
        elif hasattr(self.owner, self.attribute):
            delattr(self.owner, self.attribute)

    def __str__(self) -> str:
        if isinstance(self.owner, (OuterVariable, GlobalVariable)):
            return f"the variable '{self.owner.name}'"
        if self.attribute:
            return f"{type(self.owner).__name__}.{self.attribute}"
        return f"a {type(self.owner).__name__} of {len(self.owner)} items"


class Journal:
    """The places that were changed since it began, with what was there; a context manager, nested with the blocks of the Program."""

    def __init__(self) -> None:
        self.old: dict[tuple[int, str], tuple[Place, Any]] = {}

    def __enter__(self) -> Journal:
        _thread.__dict__.setdefault("journals", []).append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _thread.journals.pop()

    def note(self, place: Place) -> None:
        """Remember what is there, once."""
        if place.key not in self.old:
            self.old[place.key] = (place, place.read())

    def undo(self) -> dict[tuple[int, str], tuple[Place, Any, Any]]:
        """Put everything back; gives each place with what was there before and after."""
        changes = {key: (place, old, place.read()) for key, (place, old) in self.old.items()}
        for place, old in reversed(list(self.old.values())):
            place.write(old)
        return changes


def watch(owner: Any, attribute: str) -> Any:
    """Note that the attribute, or with an empty name the object's content, is about to change; gives the object."""
    journals = getattr(_thread, "journals", None)
    if journals and not isinstance(owner, (Value, Tensor)):  # tensors are changed by recorded operators
        if attribute:
            journals[-1].note(Place(owner, attribute))
            owner_content = getattr(owner, attribute, None)
            if isinstance(owner_content, _CONTAINERS):
                journals[-1].note(Place(owner_content, ""))
        elif isinstance(owner, _CONTAINERS):
            journals[-1].note(Place(owner, ""))
    return owner


def change(place: Place, value: Any) -> None:
    """Write to the place, noted in the journal around."""
    watch(place.owner, place.attribute)
    place.write(value)


def watch_cells(cells: Any) -> None:
    """Note that a function, which was given as ``lambda: (a, b)``, may change the variables a and b of functions around it."""
    journals = getattr(_thread, "journals", None)
    if journals:
        for name, cell in zip(cells.__code__.co_freevars, cells.__closure__ or (), strict=True):
            journals[-1].note(Place(OuterVariable(cell, name), "value"))


def watch_globals(names: dict[str, Any], changed: tuple[str, ...]) -> None:
    """Note that a function may change these variables of its module."""
    journals = getattr(_thread, "journals", None)
    if journals:
        for name in changed:
            journals[-1].note(Place(GlobalVariable(names, name), "value"))


class OuterVariable:
    """A variable of a function around, as an object with one attribute."""

    def __init__(self, cell: CellType, name: str) -> None:
        self.cell, self.name = cell, name

    @property
    def key(self) -> tuple[int, str]:
        """What tells variables apart."""
        return id(self.cell), self.name

    @property
    def value(self) -> Any:
        """Its value; AttributeError while it has none."""
        try:
            return self.cell.cell_contents
        except ValueError:
            raise AttributeError(self.name) from None

    @value.setter
    def value(self, value: Any) -> None:
        self.cell.cell_contents = value

    @value.deleter
    def value(self) -> None:
        del self.cell.cell_contents


class GlobalVariable:
    """A variable of a module, as an object with one attribute."""

    def __init__(self, names: dict[str, Any], name: str) -> None:
        self.names, self.name = names, name

    @property
    def key(self) -> tuple[int, str]:
        """What tells variables apart."""
        return id(self.names), self.name

    @property
    def value(self) -> Any:
        """Its value; AttributeError while it has none."""
        if self.name not in self.names:
            raise AttributeError(self.name)
        return self.names[self.name]

    @value.setter
    def value(self, value: Any) -> None:
        self.names[self.name] = value

    @value.deleter
    def value(self) -> None:
        del self.names[self.name]


#: Methods of containers that change them.
CHANGING = {
    kind: frozenset(n for n in names.split() if hasattr(kind, n))
    for kind, names in {
        list: "append extend insert pop remove clear sort reverse __setitem__ __delitem__ __iadd__",
        dict: "update pop popitem clear setdefault __setitem__ __delitem__ __ior__",
        set: "add update discard remove pop clear intersection_update difference_update symmetric_difference_update",
        deque: "append appendleft extend extendleft pop popleft clear insert remove reverse rotate __setitem__ __delitem__",
    }.items()
}
for _kind in (OrderedDict, defaultdict):
    CHANGING[_kind] = CHANGING[dict] | {"move_to_end", "__missing__"}
