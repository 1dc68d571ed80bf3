"""Recording loops: what they carry from round to round is found by recording the body until nothing new turns up."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...base import nest
from . import journal, numbers
from .blocks import Loop
from .branches import State, _blocks, choose, guarded, is_trying, is_unchanged, leave_only, located, raising, record
from .exits import CODES, LEAVE_BREAK, NORMAL, RAISES, Exit, known
from .iteration import Symbolic
from .journal import UNBOUND, Grown, Journal, OpenList, Place
from .merging import (
    NOTHING,
    Column,
    Differs,
    Kind,
    alike,
    common_kind,
    convert,
    described,
    form_of,
    is_symbolic,
    is_tensor,
    kind_of,
    received,
    same,
)
from .names import BREAK, CONTINUE, RETURN
from .numbers import Number
from .optionals import Optional, content_of, present_of
from .statements import Site
from .unset import unset

#: How often a body is recorded again for what turned out to be carried.
MOST_TRIES = 12


class Again(Exception):
    """The body has to be recorded again: what the loop carries changed."""


@dataclass(frozen=True)
class Held:
    """A list or dict that a variable holds in every round: what is changed in it is carried as a place."""

    container: Any
    content: Any  # before the loop


@dataclass
class Carried:
    """One variable or place that may change from round to round, and its leaves' kinds; None for leaves that stay as they are."""

    label: str
    start: Any
    kinds: list[Kind | None]
    is_needed: bool = True
    #: Makes the list that a variable is set to, of its content.
    maker: OpenList | None = None
    #: It is None or a value: ``start`` is whether there is one, and the value.
    is_optional: bool = False

    @staticmethod
    def of(label: str, start: Any, is_needed: bool = True) -> Carried:
        """Tensors and symbolic numbers are carried; Python numbers only once they are found to change."""
        return Carried(label, start, _kinds(start), is_needed)

    @staticmethod
    def variable(name: str, value: Any, is_needed: bool) -> Carried:
        """What a variable holds: containers as long as they are not replaced by others."""
        return Carried.of(f"the variable '{name}'", _held(value), is_needed)

    def open(self) -> None:
        """Carry what the container holds: another is in its place after a round."""
        container = self.start.container
        self.maker = container if isinstance(container, OpenList) else None
        self.start = self.start.content
        self.kinds = _kinds(self.start)

    def become_optional(self, end: Any) -> bool:
        """Whether it is carried as None or a value from now on, since it is None before a round or after it, and not at the other place."""
        if self.is_optional or not any(v is None or isinstance(v, Optional) for v in (self.start, end)) or self.start is end:
            return False
        like = content_of(end, None) if self.start is None else content_of(self.start, None)
        if isinstance(like, (list, dict)):
            return False
        empty = nest.map_structure(lambda v: v if kind_of(v) is None else NOTHING, like)
        self.start, self.is_optional = (present_of(self.start), content_of(self.start, empty)), True
        self.kinds = [None if v is NOTHING else k for v, k in zip(nest.flatten(self.start), _kinds(self.start), strict=True)]
        for k, leaf in enumerate(nest.flatten(like), 1):
            if self.kinds[k] is None:
                self.kinds[k] = kind_of(leaf)
        return True

    def leaves_of(self, end: Any) -> Any:
        """What stands for the value that it has after a round, in the form of ``start``."""
        if self.is_optional:
            return present_of(end), content_of(end, nest.map_structure(lambda v: NOTHING, self.start[1]))
        return _content(end)

    def grow(self, end: Any) -> bool:
        """Whether the list that begins as ``start`` and is ``end`` after a round is carried as one of unknown length from now on; raises Differs."""
        if not (isinstance(self.start, list) and isinstance(end, (list, Grown))) or (
            isinstance(end, list) and len(end) == len(self.start)
        ):
            return False
        self.start, other = alike(self.start, end)
        self.kinds = [common_kind(a, b) for a, b in zip(nest.flatten(self.start), nest.flatten(other), strict=True)]
        return True


def _kinds(start: Any) -> list[Kind | None]:
    return [kind_of(v) if is_tensor(v) or isinstance(v, (Number, Column)) else None for v in nest.flatten(start)]


def _held(value: Any) -> Any:
    return Held(value, copy.copy(_content(value))) if isinstance(value, (list, dict)) else value


def _content(value: Any) -> Any:
    return value.content() if isinstance(value, OpenList) else value


def _watch_all(tree: Any) -> None:
    """Note what containers hold, whoever changes them."""
    if isinstance(tree, (list, dict)):
        journal.watch(tree, "")
    if isinstance(tree, (list, tuple, dict)) and not (isinstance(tree, OpenList) and tree.grown is not None):
        for value in tree.values() if isinstance(tree, dict) else tree:
            _watch_all(value)


@dataclass
class Recording:
    """A loop over tensors. ``advance`` binds the next item of a ``for`` loop, and gives whether there is another after it."""

    site: Site
    state: State
    body: Callable[[], Exit | None]
    test: Callable[[], Any] | None = None
    items: Symbolic | None = None
    target: Callable[[Any], Any] | None = None
    exit: Exit | None = None  # that a round before the loop may have left by
    variables: dict[str, Carried] = field(default_factory=dict)
    places: dict[tuple[int, str], tuple[Place, Carried]] = field(default_factory=dict)
    ways: frozenset[str] = frozenset()
    value: Carried | None = None
    #: Variables that the first round sets, and what follows reads in any case.
    first_set: dict[str, Carried] = field(default_factory=dict)

    def record(self, runs: Any) -> Exit | None:
        """Record the loop, which begins where ``runs`` holds; sets the variables, and gives how it ends."""
        if self.site.refused:
            raise located(
                f"this loop depends on a tensor and cannot be recorded: {self.site.refused}",
                "",
                "return the value in place of writing it",
            )
        before = self.state.read()
        live = self.site.live
        around = live.next_round | live.after
        for name, start in before.items():
            if start is not UNBOUND:
                self.variables[name] = Carried.variable(name, start, name in around)
        is_checkable = self.exit is None and not is_trying()
        self._certain = [n for n in self.site.certain if n not in live.in_round] if is_checkable else []
        #: What ``else`` sets where no round ran, so that it needs no value of the rounds.
        self._replaced = [n for n in self.site.replaced if n not in live.in_round] if self.exit is None else []
        if self.exit is not None:
            self.ways = self.exit.ways
            if RETURN in self.ways:
                self.value = Carried.of("what the function returns", self.exit.value)
        for _ in range(MOST_TRIES):
            self.state.write(before)
            try:
                return self._attempt(runs, before)
            except Again:
                continue
        raise located(
            "what this loop carries changes in every round",
            "a recorded loop needs values of one type",
            "keep the types of its variables",
        )

    # ------------------------------------------------------------------ one recording of the body

    def _all(self) -> list[Carried]:
        found = [c for c in self.variables.values() if c.is_needed] + [c for _, c in self.places.values()]
        found += self.first_set.values()
        return found if self.value is None else [*found, self.value]

    def _attempt(self, runs: Any, before: dict[str, Any]) -> Exit | None:
        carried = self._all()
        has_code = bool(self.ways)
        counter = [numbers.as_kind(0, int)] if self.items is not None else []
        code = [numbers.as_kind(0 if self.exit is None else self.exit.code, int)] if has_code else []
        starts = [convert(v, k) for c in carried for v, k in zip(nest.flatten(c.start), c.kinds, strict=True) if k is not None]
        extra = len(counter) + len(code)
        kinds = [Kind("bool"), *[Kind("int64")] * extra, *(k for c in carried for k in c.kinds if k is not None)]
        loop: Loop = _blocks().loop([numbers.as_kind(runs, bool), *counter, *code, *starts], kinds)
        with loop.body(), Journal() as changes:
            try:
                results = self._round(loop.arguments[1:], carried, before, changes)
            finally:
                changes.undo()
        found = loop.finish(results)[1:]
        self.state.write(dict.fromkeys(before, UNBOUND))
        self._put(carried, found[extra:])
        if any(n in self.first_set for n in self._certain):
            self._require_round(runs)
        if not has_code:
            return None
        ways = self.ways | {NORMAL}
        return known(ways, numbers.of(found[len(counter)]), self._value_after(carried, found[extra:]))

    def _round(
        self, arguments: Sequence[Any], carried: list[Carried], before: dict[str, Any], changes: Journal
    ) -> list[Any]:  # fmt: skip
        """Record one round; gives the next one's arguments."""
        has_counter, has_code = self.items is not None, bool(self.ways)
        position = numbers.of(arguments[0]) if has_counter else None
        self._enter(carried, arguments[has_counter + has_code :])
        for start in before.values():
            _watch_all(start)
        with guarded("a loop"):
            if self.items is not None and self.target is not None:
                self.target(self.items.item(position))
            exit = raising(self.body)
        if exit is RAISES:
            exit = LEAVE_BREAK  # nothing follows
        exit = None if exit is None else leave_only(exit, CONTINUE)
        ends = self._ends(before, changes, exit)
        following = position + 1 if position is not None else None
        with guarded("the condition of a loop"):
            goes_on = self._goes_on(exit, following)
        results = [numbers.as_kind(goes_on, bool)]
        results += [numbers.as_kind(following, int)] if has_counter else []
        results += [numbers.as_kind(0 if exit is None else exit.code, int)] if has_code else []
        results += [convert(v, k) for end in ends for v, k in end]
        self._require_nothing_new(before, changes)
        return results

    def _enter(self, carried: Sequence[Carried], arguments: Sequence[Any]) -> None:
        """Give the variables and places this round's values."""
        self.state.write({name: UNBOUND for name, c in self.variables.items() if not c.is_needed})
        self._put(carried, arguments)

    def _put(self, carried: Sequence[Carried], values: Sequence[Any]) -> None:
        remaining = iter(values)
        made = {id(c): _filled(c, remaining) for c in carried}
        self.state.write({name: made[id(c)] for name, c in self.variables.items() if c.is_needed})
        self.state.write({name: made[id(c)] for name, c in self.first_set.items()})
        for place, c in self.places.values():
            journal.change(place, made[id(c)])

    def _value_after(self, carried: Sequence[Carried], values: Sequence[Any]) -> Any:
        if self.value is None:
            return None
        remaining = iter(values)
        return [_filled(c, remaining) for c in carried][-1]

    def _goes_on(self, exit: Exit | None, following: Any) -> Any:
        def more() -> Any:
            if self.items is not None:
                return following < self.items.length
            return True if self.test is None else self.test()

        if exit is None:
            return more()
        if NORMAL not in exit.ways:
            return False
        return choose(exit.code == CODES[NORMAL], more, lambda: False, "the condition of a loop")

    # ------------------------------------------------------------------ what the loop carries

    def _ends(self, before: dict[str, Any], changes: Journal, exit: Exit | None) -> list[list[tuple[Any, Kind]]]:
        """What each carried thing is after the round, leaf by leaf; raises Again when there is more to carry."""
        again = False
        after = self.state.read()
        for name, end in after.items():
            if before[name] is UNBOUND:
                again |= self._first_set(name, end)
                continue
            carried = self.variables[name]
            if end is UNBOUND and exit is not None and NORMAL not in exit.ways:  # nobody reads it on any way out
                end = after[name] = _never_read(carried)
            if carried.is_needed:
                again |= self._widened(carried, end)
        for key, (place, old) in changes.old.items():
            now = place.read()
            if key not in self.places and not is_unchanged(old, now):
                self.places[key] = (place, Carried.of(str(place), old))
                again = True
            if key in self.places:
                again |= self._widened(self.places[key][1], now)
        ways = frozenset() if exit is None else exit.ways - {NORMAL}
        if not ways <= self.ways:
            self.ways |= ways
            again = True
        value = exit.value if exit is not None and RETURN in exit.ways else NOTHING
        if value is not NOTHING and self.value is None:
            self.value = _set_inside("what the function returns", value)
            again = True
        elif value is not NOTHING and self.value is not None:
            again |= self._widened(self.value, value)
        if again:
            raise Again
        found = [_leaves(c, after[name]) for name, c in self.variables.items() if c.is_needed]
        found += [_leaves(c, place.read()) for place, c in self.places.values()]
        found += [_leaves(c, after[name]) for name, c in self.first_set.items()]
        if self.value is not None:
            found.append(_leaves(self.value, self.value.start if value is NOTHING else value))
        return found

    def _first_set(self, name: str, end: Any) -> bool:
        """Whether a variable that has no value before the loop is carried from now on."""
        live = self.site.live
        if end is UNBOUND or name not in live.after | live.next_round:
            return False
        if name in self._certain or name in self._replaced:
            if name in self.first_set:
                return self._widened(self.first_set[name], end)
            self.first_set[name] = _set_inside(f"the variable '{name}'", end)
            return True
        raise located(
            f"the variable '{name}' is first set inside the loop of line {self.site.line}, and read after it or in the next round",
            "how often the loop runs depends on a tensor; it may not run at all, and the variable would have no value",
            f"set '{name}' before the loop",
        )

    def _require_round(self, runs: Any) -> None:
        """Raise when the Program runs and no round does: what follows reads variables that the rounds set."""
        branches = _blocks().branches(numbers.as_kind(runs, bool))
        with branches.side(False):
            name = next(n for n in self._certain if n in self.first_set)
            _blocks().fail(unset(name))
        branches.finish([], [])

    def _widened(self, carried: Carried, end: Any) -> bool:
        """Whether the kinds of what is carried changed, so that it holds the round's end too."""
        if isinstance(carried.start, Held):
            if end is carried.start.container:
                return False
            carried.open()
            self._widened(carried, end)
            return True
        if carried.become_optional(end):
            return True
        end = carried.leaves_of(end)
        if form_of(end) != form_of(carried.start):
            try:
                if carried.grow(end):
                    return True
            except Differs as error:
                raise self._differs(carried, error.args[0], error.args[1]) from None
            raise self._differs(
                carried,
                f"it is {_words(carried.start)} before the loop and {_words(end)} after a round",
                "keep its length and structure",
            )
        leaves, starts = nest.flatten(end), nest.flatten(carried.start)
        changed = False
        for k, (start, leaf, kind) in enumerate(zip(starts, leaves, carried.kinds, strict=True)):
            if leaf is NOTHING or (kind is None and (start is leaf or (not is_symbolic(leaf) and same(start, leaf)))):
                continue
            try:
                new = common_kind(start if kind is None else kind, leaf)
            except Differs as error:
                text = str(error.args[0]).replace("on one side", "before the loop").replace("on the other", "after a round")
                raise self._differs(carried, text, error.args[1]) from None
            if new != kind:
                carried.kinds[k] = new
                changed = True
        return changed

    def _differs(self, carried: Carried, why: str, fix: str) -> Exception:
        return located(f"{carried.label} changes in the loop of line {self.site.line}, which depends on a tensor: {why}", "", fix)

    def _require_nothing_new(self, before: dict[str, Any], changes: Journal) -> None:
        """The condition may have changed things too, after the round's ends were taken."""
        if any(key not in self.places and not is_unchanged(old, place.read()) for key, (place, old) in changes.old.items()):
            raise located(
                "the condition of this loop changes a Python object",
                "a recorded loop cannot carry that",
                "change it in the loop's body",
            )


def _set_inside(label: str, end: Any) -> Carried:
    """What only rounds set, by what it is after one: nothing reads what it is before."""
    content = _content(end)
    start = nest.map_structure(lambda v: NOTHING if is_symbolic(v) else v, content)
    kinds = [kind_of(v) if is_symbolic(v) else None for v in nest.flatten(content)]
    return Carried(label, start, kinds, maker=end if isinstance(end, OpenList) else None)


def _never_read(carried: Carried) -> Any:
    """The value of a variable that nothing reads any more."""
    if isinstance(carried.start, Held):
        return carried.start.container
    if carried.is_optional:
        return None
    if not isinstance(carried.start, (list, tuple, dict)):
        return carried.start if carried.kinds[0] is None else NOTHING
    leaves = zip(nest.flatten(carried.start), carried.kinds, strict=True)
    return nest.pack_like(carried.start, [v if k is None else NOTHING for v, k in leaves])


def _words(tree: Any) -> str:
    return f"a {type(tree).__name__} of {len(tree)}" if isinstance(tree, (list, tuple, dict)) else described(tree)


def _leaves(carried: Carried, end: Any) -> list[tuple[Any, Kind]]:
    if isinstance(carried.start, Held):
        return []
    return [(v, k) for v, k in zip(nest.flatten(carried.leaves_of(end)), carried.kinds, strict=True) if k is not None]


def _filled(carried: Carried, values: Any) -> Any:
    """What is carried with its leaves taken from the values."""
    if isinstance(carried.start, Held):
        return carried.start.container
    leaves = [
        received(next(values), k) if k is not None else v for v, k in zip(nest.flatten(carried.start), carried.kinds, strict=True)
    ]
    if carried.is_optional:
        return Optional(*nest.pack_like(carried.start, leaves))
    made = nest.pack_like(carried.start, leaves) if isinstance(carried.start, (list, tuple, dict)) else leaves[0]
    return made if carried.maker is None else carried.maker.another(made)


def finish(site: Site, exit: Exit | None, orelse: Callable[[], Exit | None] | None, state: State) -> Exit | None:
    """After a loop: its ``else`` where it was not left early; leaving by ``break`` counts as completing from here on."""
    if exit is None:
        return orelse() if orelse is not None else None
    if orelse is None or NORMAL not in exit.ways:
        return leave_only(exit, BREAK)
    other = known(exit.ways - {NORMAL}, exit.code, exit.value)
    return record(site, exit.code == CODES[NORMAL], orelse, lambda: other and leave_only(other, BREAK), state)


def round_site(site: Site) -> Site:
    """The site of one round of a loop, after which another may come."""
    live = site.live
    around = live.next_round | live.after
    return replace(site, live=replace(live, after=around, on_continue=around, on_break=live.after))
