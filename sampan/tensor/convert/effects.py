"""What a recorded function does to objects that outlive it: attributes, containers and variables that every run has to change as well."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...base import nest
from .branches import is_unchanged
from .guards import is_plain
from .journal import GlobalVariable, Journal, OuterVariable, Place
from .lists import opened
from .merging import has_token, is_symbolic


@dataclass(frozen=True)
class Effect:
    """A place outside of the function, and what every run puts there; leaves that are symbolic are outputs of the Program."""

    place: Place
    value: Any
    old: Any

    @property
    def symbolic(self) -> list[Any]:
        """The leaves that a run computes, in order."""
        return [v for v in nest.flatten(self.value) if is_symbolic(v)]

    def apply(self, results: Iterable[Any]) -> None:
        """Put the value there, its symbolic leaves replaced by results."""
        remaining = iter(results)
        self.place.write(nest.map_structure(lambda v: next(remaining) if is_symbolic(v) else v, self.value))

    def is_repeatable(self, guarded: Mapping[int, Any]) -> bool:
        """Whether every run may put this there: values that it computes, or plain ones that follow from what is guarded.

        guarded: the objects, by id, of which a recording is only used while their plain attributes are as they were.
        """
        if not self.place.attribute:
            return False
        leaves = nest.flatten(self.value)
        if any(map(has_token, leaves)):
            return False
        if all(map(is_symbolic, leaves)):
            return True
        return is_plain(self.value) and (
            isinstance(self.place.owner, (GlobalVariable, OuterVariable)) or id(self.place.owner) in guarded
        )


def effects_of(journal: Journal, returned: Sequence[Any]) -> list[Effect]:
    """Undo what the journal noted; gives what of it outlives the function.

    Objects that were made while it was recorded, and that nothing but the journal and the returned containers holds, are its own.
    """
    changes = journal.undo()
    own = {id(v) for v in _containers(returned)}
    held = _references(changes.values())
    found = []
    journal.old.clear()
    for key in list(changes):
        place, old, new = changes.pop(key)
        owner = place.owner
        if is_unchanged(old, new) or id(owner) in own or is_local(place, held.get(id(owner), 0)):
            continue
        found.append(Effect(place, opened(new), old))
    return found


#: How many references an owner has when only its Place and the code that asks hold it.
_ALONE = 4


def is_local(place: Place, held: int) -> bool:
    """Whether nothing outside of the journal holds the place's owner: ``held`` is how often the journal's values do."""
    if isinstance(place.owner, GlobalVariable):
        return False
    if isinstance(place.owner, OuterVariable):
        return sys.getrefcount(place.owner.cell) - held < _ALONE
    owner = place.owner
    return sys.getrefcount(owner) - held <= _ALONE


def _references(changes: Iterable[tuple[Place, Any, Any]]) -> dict[int, int]:
    """How often the values in the journal, old and new, hold each object."""
    counts: dict[int, int] = {}
    for _, old, new in changes:
        for value in (old, new):
            items: Iterable[Any] = (
                value if isinstance(value, (list, set)) else value.values() if isinstance(value, dict) else (value,)
            )
            for item in items:
                counts[id(item)] = counts.get(id(item), 0) + 1
    return counts


def _containers(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield value
            yield from _containers(list.copy(value) if isinstance(value, list) else value)
        elif isinstance(value, dict):
            yield value
            yield from _containers(value.values())
