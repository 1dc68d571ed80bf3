"""Recording branches: both sides, from the same state, and one state made of theirs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CellType
from typing import Any

from ...base.errors import ConversionError, SampanError, UnknownValueError, message
from ..location import user_location
from . import journal, numbers
from .blocks import Branches, current
from .exits import CODES, NORMAL, RAISES, Exit, known, ways_of
from .journal import UNBOUND, Journal, OpenList, Place
from .merging import NOTHING, Differs, Plan, alike, convert, received
from .names import RAISE, RETURN
from .statements import Site

#: The mark of exceptions that a ``raise`` statement of converted code raised.
RAISED = "_sampan_raised"
_thread = threading.local()
Changes = dict[tuple[int, str], tuple[Place, Any, Any]]


def begin_try() -> None:
    """A ``try`` with handlers begins: what is raised inside may be handled."""
    _thread.tries = getattr(_thread, "tries", 0) + 1


def end_try() -> None:
    """It ends."""
    _thread.tries -= 1


def caught() -> None:
    """A handler begins: what recording cannot do is none of the user's errors, for eager mode raises nothing there."""
    error = sys.exc_info()[1]
    if current() is not None and isinstance(error, (ConversionError, UnknownValueError)):
        raise error


def is_trying() -> bool:
    """Whether what is raised may be handled."""
    return getattr(_thread, "tries", 0) > 0


class State:
    """The variables that a branch or loop binds, by the cells that its functions share."""

    def __init__(self, cells: Callable[[], Any]) -> None:
        self.cells: dict[str, CellType] = dict(zip(cells.__code__.co_freevars, cells.__closure__ or (), strict=True))

    def read(self) -> dict[str, Any]:
        """The variables' values, UNBOUND where they have none."""
        return {name: _content(cell) for name, cell in self.cells.items()}

    def write(self, values: dict[str, Any]) -> None:
        """Set the variables."""
        for name, value in values.items():
            if value is not UNBOUND:
                self.cells[name].cell_contents = value
            elif _content(self.cells[name]) is not UNBOUND:
                del self.cells[name].cell_contents


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


@dataclass
class Side:
    """What one side of a branch came to."""

    exit: Exit | None
    values: dict[str, Any]
    changes: Changes

    def may_need(self, name: str, site: Site) -> bool:
        """Whether the variable may be read after this side."""
        return any(name in site.live.on(way) for way in ways_of(self.exit))


def located(what: str, why: str, fix: str) -> ConversionError:
    """The error, with the user's line."""
    where = user_location()
    return ConversionError(message(what, why, fix) + (f"\n  {where}" if where else ""))


class guarded:
    """A context manager: an exception that leaves recorded code is none of the run's, since whether that code runs is not known yet."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, SampanError):
            raise located(
                f"{type(error).__name__}: {error}, raised while {self._what} was recorded",
                "whether this happens depends on a tensor, which has its value only when the Program runs",
                "use assert for checks that depend on tensors",
            ) from error


def record(
    site: Site, condition: Any, when_true: Callable[[], Exit | None], when_false: Callable[[], Exit | None], state: State
) -> Exit | None:
    """Record both sides of a branch; sets the variables, and gives how the branch ends."""
    if site.refused:
        raise located(
            f"this branch depends on a tensor and cannot be recorded: {site.refused}",
            "",
            "return the value in place of writing it",
        )
    blocks = _blocks()
    branches = blocks.branches(condition)
    before = state.read()
    sides = []
    for holds, function in ((True, when_true), (False, when_false)):
        state.write(before)
        with branches.side(holds), Journal() as changes, guarded("a branch"):
            exit = raising(function)
            sides.append(Side(exit, state.read(), {}))
        sides[-1].changes = changes.undo()
    state.write(before)
    return _Joining(site, sides[0], sides[1]).finish(branches, state)


def raising(function: Callable[[], Any]) -> Any:
    """How the block ends. What its own ``raise`` statements raise is raised when the Program runs and comes there."""
    try:
        return function()
    except Exception as error:
        if not getattr(error, RAISED, False):
            raise
        _blocks().fail(error)
        return RAISES


def _value_or_raise(function: Callable[[], Any]) -> Any:
    found: list[Any] = []
    return NOTHING if raising(lambda: found.append(function())) is RAISES else found[0]


def choose(condition: Any, when_true: Callable[[], Any], when_false: Callable[[], Any], what: str) -> Any:
    """Record both sides of an expression; gives its value."""
    branches = _blocks().branches(condition)
    values, changed = [], []
    for holds, function in ((True, when_true), (False, when_false)):
        with branches.side(holds), Journal() as changes, guarded(what):
            values.append(_value_or_raise(function))
        changed.append(changes.undo())
    plan = Plan()
    try:
        rebuild = plan.join(*values)
    except Differs as error:
        raise located(f"the sides of {what}, which depends on a tensor, differ: {error.args[0]}", "", error.args[1]) from None
    places = _joined_places(plan, changed[0], changed[1])
    results = _finish(branches, plan)
    for place, part in places:
        journal.change(place, part(results))
    return rebuild(results)


def _blocks() -> Any:
    blocks = current()
    if blocks is None:
        raise ConversionError("a symbolic value is used outside of the recording that it belongs to")
    return blocks


def _finish(branches: Branches, plan: Plan) -> list[Any]:
    with branches.side(True):
        first = [convert(v, k) for v, k in zip(plan.first, plan.kinds, strict=True)]
    with branches.side(False):
        second = [convert(v, k) for v, k in zip(plan.second, plan.kinds, strict=True)]
    return [received(v, k) for v, k in zip(branches.finish(first, second), plan.kinds, strict=True)]


def _joined_places(plan: Plan, first: Changes, second: Changes) -> list[tuple[Place, Callable[[Sequence[Any]], Any]]]:
    found = []
    for key in {**first, **second}:
        place, old, _ = first.get(key) or second[key]
        ends = [changes[key][2] if key in changes else old for changes in (first, second)]
        if all(is_unchanged(old, end) for end in ends):
            continue
        try:
            if isinstance(place.owner, OpenList) and not place.attribute:
                ends = list(alike(*ends))
            found.append((place, plan.join(*ends)))
        except Differs as error:
            raise located(f"a branch that depends on a tensor changes {place}: {error.args[0]}", "", error.args[1]) from None
    return found


def is_unchanged(old: Any, new: Any) -> bool:
    """Whether a place holds the same objects as before."""
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True))
    if isinstance(old, dict) and isinstance(new, dict):
        return list(old) == list(new) and all(old[k] is new[k] for k in old)
    if isinstance(old, set) and isinstance(new, set):
        return old == new
    return old is new


class _Joining:
    """Two sides becoming one."""

    def __init__(self, site: Site, first: Side, second: Side) -> None:
        self.site, self.first, self.second = site, first, second
        self.plan = Plan()

    def finish(self, branches: Branches, state: State) -> Exit | None:
        """End the branch: sets the variables and the changed places, and gives how it ends."""
        parts = {name: self._variable(name) for name in self.first.values}
        places = _joined_places(self.plan, self.first.changes, self.second.changes)
        ways = ways_of(self.first.exit) | ways_of(self.second.exit)
        ways = ways - {RAISE} or ways  # nothing follows where an exception is raised
        code = value = None
        if ways != {NORMAL}:
            if len(ways) > 1:
                code = self.plan.join(*map(_code, (self.first, self.second)))
            if RETURN in ways:
                value = self._returned()
        results = _finish(branches, self.plan)
        state.write({name: part(results) for name, part in parts.items()})
        for place, part in places:
            journal.change(place, part(results))
        return known(ways, code and code(results), value and value(results))

    def _variable(self, name: str) -> Callable[[Sequence[Any]], Any]:
        a, b = self.first.values[name], self.second.values[name]
        needed = self.first.may_need(name, self.site), self.second.may_need(name, self.site)
        if not any(needed) or (a is UNBOUND and b is UNBOUND):
            return (lambda results: a) if a is b else (lambda results: UNBOUND)
        if not needed[0]:
            a = NOTHING
        if not needed[1]:
            b = NOTHING
        for value, other, holds in ((a, b, "holds"), (b, a, "does not hold")):
            if value is UNBOUND and other is not NOTHING:
                raise located(
                    f"the variable '{name}' is not set where the condition of line {self.site.line} {holds}",
                    "the condition depends on a tensor, so that what follows does not know whether the variable has a value",
                    f"set '{name}' before the branch, or on both sides",
                )
        if a is UNBOUND or b is UNBOUND:
            return lambda results: UNBOUND
        try:
            return self.plan.join(a, b)
        except Differs as error:
            raise located(
                f"the variable '{name}' differs between the sides of the condition of line {self.site.line}, which depends on a tensor",
                error.args[0],
                error.args[1],
            ) from None

    def _returned(self) -> Callable[[Sequence[Any]], Any]:
        ends = [s.exit.value if s.exit is not None and RETURN in s.exit.ways else NOTHING for s in (self.first, self.second)]
        try:
            return self.plan.join(*ends)
        except Differs as error:
            raise located(
                f"what the function returns depends on the condition of line {self.site.line}, and that on a tensor: {error.args[0]}",
                "",
                error.args[1],
            ) from None


def _code(side: Side) -> Any:
    if side.exit is None:
        return CODES[NORMAL]
    return NOTHING if side.exit.ways == {RAISE} else side.exit.code


def leave_only(exit: Exit, absorbed: str) -> Exit | None:
    """The exit after the loop that it belonged to: leaving by ``absorbed`` counts as completing."""
    if absorbed not in exit.ways:
        return exit
    ways = (exit.ways - {absorbed}) | {NORMAL}
    code = exit.code
    if len(ways) > 1:
        is_absorbed = numbers.of(code == CODES[absorbed]) if not isinstance(code, numbers.Number) else code == CODES[absorbed]
        code = choose(is_absorbed, lambda: 0, lambda: exit.code, "an early exit")
    return known(ways, code, exit.value)
