"""The changes that recorded code makes to Python objects, noted so that each branch starts from the same state and its changes can be merged."""

from __future__ import annotations

import random
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from types import CellType
from typing import Any, NamedTuple

import numpy as np

from ..._rt import Tensor
from ...ir.program import Value

UNBOUND: Any = type("Unbound", (), {"__repr__": lambda self: "nothing"})()
_CONTAINERS = (list, dict, set, deque)
#: Sources of random numbers that a Program does not know.
GENERATORS = (np.random.RandomState, np.random.Generator, random.Random)
_thread = threading.local()


class Grown(NamedTuple):
    """What a list of unknown length holds. ``elements``: the structure of an element, a ``Column`` for each leaf."""

    elements: Any


#: Stands in the memory of a list of unknown length, for code that reads it past its methods.
_CONTENT: Any = type("Content", (), {"__repr__": lambda self: "items of which only a run knows how many"})()


class OpenList(list[Any]):
    """A list whose content may become one of unknown length (``grown``)."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__(values)
        self.grown: Grown | None = None
        born(self)

    def content(self) -> Any:
        """What it holds: a list, or what stands for one of unknown length."""
        return list.copy(self) if self.grown is None else self.grown

    def put(self, content: Any) -> None:
        """Hold this."""
        list.clear(self)
        self.grown = content if isinstance(content, Grown) else None
        list.extend(self, content if self.grown is None else [_CONTENT])

    def another(self, content: Any) -> Any:
        """A new list of this content."""
        made = type(self)()
        made.put(content)
        return made


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
        if isinstance(self.owner, OpenList):
            return self.owner.content()
        return (
            list(self.owner)
            if isinstance(self.owner, (list, deque))
            else dict(self.owner)
            if isinstance(self.owner, dict)
            else set(self.owner)
        )

    def write(self, value: Any) -> None:
        """Put the value there."""
        if isinstance(self.owner, OpenList) and not self.attribute:
            self.owner.put(value)
        elif not self.attribute:
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
            kind = self.owner if isinstance(self.owner, type) else type(self.owner)
            return f"{kind.__name__}.{self.attribute}"
        if isinstance(self.owner, OpenList):
            return "a list"
        return f"a {type(self.owner).__name__} of {len(self.owner)} items"


class Journal:
    """The places that were changed since it began, with what was there; a context manager, nested with the blocks of the Program."""

    def __init__(self) -> None:
        self.old: dict[tuple[int, str], tuple[Place, Any]] = {}
        #: Objects that were made since it began, by id: what they were before does not matter.
        self.fresh: dict[int, Any] = {}

    def __enter__(self) -> Journal:
        _thread.__dict__.setdefault("journals", []).append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _thread.journals.pop()
        if _thread.journals:
            _thread.journals[-1].fresh.update(self.fresh)

    def note(self, place: Place) -> None:
        """Remember what is there, once."""
        if place.key not in self.old and id(place.owner) not in self.fresh:
            self.old[place.key] = (place, place.read())

    def undo(self) -> dict[tuple[int, str], tuple[Place, Any, Any]]:
        """Put everything back; gives each place with what was there before and after."""
        changes = {key: (place, old, place.read()) for key, (place, old) in self.old.items()}
        for place, old in reversed(list(self.old.values())):
            place.write(old)
        return changes


def born(made: Any) -> Any:
    """Note that the object was made just now; gives it."""
    journals = getattr(_thread, "journals", None)
    if journals and (isinstance(made, (*_CONTAINERS, *GENERATORS)) or hasattr(made, "__dict__")):
        journals[-1].fresh[id(made)] = made
    return made


def is_fresh(made: Any) -> bool:
    """Whether the object was made since recording began, and noted."""
    return any(id(made) in journal.fresh for journal in getattr(_thread, "journals", None) or ())


def is_noting() -> bool:
    """Whether changes are noted."""
    return bool(getattr(_thread, "journals", None))


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
for _kind in (OrderedDict, defaultdict, Counter):
    CHANGING[_kind] = CHANGING[dict] | {"move_to_end", "__missing__", "subtract"}
