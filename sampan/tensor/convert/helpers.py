"""What converted code calls: plain Python for plain values, recorded blocks for symbolic ones."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from ...base.errors import ConversionError
from . import branches, exits, iteration, journal, loops
from .blocks import current
from .branches import State, located
from .calls import LoopTest, as_symbolic, call, decided, readable_dtype, readable_shape, truth
from .exits import CODES, Exit
from .functions import block_owners, set_helpers
from .iteration import Symbolic
from .lists import collected, listed
from .merging import is_symbolic
from .names import BREAK, CONTINUE, RETURN
from .numbers import NumberUseError
from .optionals import different, identical, matched
from .statements import Site
from .texts import CONVERSIONS, marked
from .unset import unset

Block = Callable[[], Exit | None]

#: Plain loops with a symbolic way out are unrolled up to this many rounds; longer ones are recorded as loops, with Numbers for their counters.
UNROLLED = 16
#: The most rounds that are unrolled where a loop cannot be recorded as one.
MOST_UNROLLED = 256

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge,
    "Is": identical, "IsNot": different, "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b,
}  # fmt: skip


def own_name(error: NameError) -> NameError:
    """A variable without a value is an UnboundLocalError, though the block that reads it became a function of its own."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = None if trace is None else trace.tb_frame.f_code
    free = block_owners.get(code) if code is not None else None
    name = error.name
    if free is None or name is None or name not in code.co_freevars or name in free:  # type: ignore[union-attr]
        return error
    return unset(name).with_traceback(error.__traceback__)


def run(function: Callable[[], Any] | None) -> Any:
    """What the function gives; None without one."""
    if function is None:
        return None
    try:
        return function()
    except NameError as error:
        if type(error) is not NameError:
            raise
        found = own_name(error)
        if found is error:
            raise
        raise found from None


class Helpers:
    """The helpers of one converted function."""

    BREAK = exits.LEAVE_BREAK
    CONTINUE = exits.LEAVE_CONTINUE
    returned = staticmethod(exits.returned)
    call = staticmethod(call)
    listed = staticmethod(listed)
    born = staticmethod(journal.born)
    begin_try = staticmethod(branches.begin_try)
    end_try = staticmethod(branches.end_try)
    caught = staticmethod(branches.caught)
    watch = staticmethod(journal.watch)
    watch_cells = staticmethod(journal.watch_cells)
    watch_globals = staticmethod(journal.watch_globals)
    shape = staticmethod(readable_shape)
    dtype = staticmethod(readable_dtype)

    def __init__(self, sites: tuple[Site, ...], name: str) -> None:
        self.sites = sites
        self.name = name

    # ------------------------------------------------------------------ statements

    def branch(self, number: int, test: Any, body: Block | None, orelse: Block | None, cells: Callable[[], Any]) -> Exit | None:
        """``if test: body`` ``else: orelse``."""
        holds = decided(test)
        if not is_symbolic(holds):
            return run(body if holds else orelse)  # type: ignore[no-any-return]
        return branches.record(self.sites[number], holds, lambda: run(body), lambda: run(orelse), State(cells))

    def then(self, number: int, exit: Exit | None, rest: Block, cells: Callable[[], Any]) -> Exit | None:
        """The rest of a block where what came before completed."""
        return _following(self.sites[number], exit, rest, State(cells))

    @staticmethod
    def leaves(exit: Exit | None) -> bool:
        """Whether to leave at once."""
        return exit is not None and exit.is_plain

    def value(self, exit: Exit | None) -> Any:
        """What the function returns."""
        if exit is None:
            return None
        if exit.ways != {RETURN} and exit.value is not None:
            returns = exit.code == CODES[RETURN]  # else it reaches its end, which returns None
            return branches.choose(returns, lambda: exit.value, lambda: None, f"what {self.name}() returns")
        return exit.value

    def repeat(
        self, number: int, test: Callable[[], Any], body: Block, orelse: Block | None, cells: Callable[[], Any]
    ) -> Exit | None:
        """``while test: body`` ``else: orelse``."""
        while True:
            holds = _loop_test(test)
            if is_symbolic(holds):
                return self._recorded(number, holds, body, orelse, State(cells), test=lambda: _loop_test(test))
            if not holds:
                return run(orelse)  # type: ignore[no-any-return]
            exit = run(body)
            if exit is None:
                continue
            if exit.is_plain:
                if exit.ways == {CONTINUE}:
                    continue
                return None if exit.ways == {BREAK} else exit
            return self._after_symbolic_exit(number, exit, test, body, orelse, cells)

    def each(
        self,
        number: int,
        iterable: Any,
        target: Callable[[Any], None],
        body: Block,
        orelse: Block | None,
        cells: Callable[[], Any],
    ) -> Exit | None:
        """``for target in iterable: body`` ``else: orelse``."""
        items = iteration.items(iterable)
        if isinstance(items, Symbolic):
            return self._recorded(number, items.length > 0, body, orelse, State(cells), items=items, target=target)
        remaining = iter(items)
        for item in remaining:
            target(item)
            exit = run(body)
            if exit is None:
                continue
            if exit.is_plain:
                if exit.ways == {CONTINUE}:
                    continue
                return None if exit.ways == {BREAK} else exit
            return self._unrolled(number, exit, remaining, target, body, orelse, cells)
        return run(orelse)  # type: ignore[no-any-return]

    def _recorded(
        self, number: int, runs: Any, body: Block, orelse: Block | None, state: State, exit: Exit | None = None, **options: Any
    ) -> Exit | None:
        site = self.sites[number]
        found = loops.Recording(site, state, lambda: run(body), exit=exit, **options).record(runs)
        return loops.finish(site, found, None if orelse is None else lambda: run(orelse), state)

    def _after_symbolic_exit(
        self, number: int, exit: Exit, test: Callable[[], Any], body: Block, orelse: Block | None, cells: Callable[[], Any]
    ) -> Exit | None:
        """The rounds of a plain ``while`` after one that may have left the loop."""
        left = branches.leave_only(exit, CONTINUE)
        if left is None or exits.NORMAL not in left.ways:
            return loops.finish(self.sites[number], left, None, State(cells))
        state = State(cells)
        before = state.read()
        check = lambda: _loop_test(test)  # noqa: E731
        try:
            runs = branches.choose(left.code == 0, check, lambda: False, "the condition of a loop")
            return self._recorded(number, runs, body, orelse, state, exit=left, test=check)
        except NumberUseError:
            state.write(before)
            return self._rounds(number, left, _Rounds(check), lambda _: None, body, orelse, cells)

    def _unrolled(
        self, number: int, exit: Exit, remaining: Any, target: Callable[[Any], None], body: Block, orelse: Block | None,
        cells: Callable[[], Any],
    ) -> Exit | None:  # fmt: skip
        """The rounds of a plain ``for`` after one that may have left the loop."""
        left = branches.leave_only(exit, CONTINUE)
        if left is None or exits.NORMAL not in left.ways:
            return loops.finish(self.sites[number], left, None, State(cells))
        return self._rounds(number, left, remaining, target, body, orelse, cells)

    def _rounds(
        self, number: int, left: Exit, remaining: Any, target: Callable[[Any], None], body: Block, orelse: Block | None,
        cells: Callable[[], Any],
    ) -> Exit | None:  # fmt: skip
        exit: Exit | None = left
        for count, item in enumerate(remaining):
            if count >= MOST_UNROLLED:
                raise located(
                    f"a loop that a tensor may end runs for more than {MOST_UNROLLED} rounds",
                    "its counter is used as a Python number, so that every round is recorded",
                    "run over paddle.arange(), or use the counter in arithmetic only",
                )

            def round(item: Any = item) -> Exit | None:
                target(item)
                return run(body)  # type: ignore[no-any-return]

            exit = _following(loops.round_site(self.sites[number]), exit, round, State(cells))
            exit = None if exit is None else branches.leave_only(exit, CONTINUE)
            if exit is not None and exits.NORMAL not in exit.ways:
                break
        return loops.finish(self.sites[number], exit, None if orelse is None else lambda: run(orelse), State(cells))

    @staticmethod
    def check(test: Any, told: Callable[[], Any] | None) -> None:
        """``assert test, told()``."""
        holds = decided(test)
        if is_symbolic(holds):
            if branches.is_trying():
                raise located(
                    "an assert on a tensor stands inside `try`",
                    "the Program would raise when it runs, where no `except` is around it",
                    "move the assert out of the `try`",
                )
            blocks = current()
            if blocks is not None:
                blocks.check(holds, None if told is None else run(told))
        elif not holds:
            raise AssertionError(*(() if told is None else (run(told),)))

    @staticmethod
    def raised(error: Any) -> Any:
        """The exception of a ``raise`` statement."""
        if current() is None or isinstance(error, ConversionError):
            return error
        made = error() if isinstance(error, type) and issubclass(error, Exception) else error
        if isinstance(made, Exception) and not branches.is_trying():
            setattr(made, branches.RAISED, True)
        return made

    # ------------------------------------------------------------------ expressions

    @staticmethod
    def text(value: Any, conversion: str, spec: str) -> str:
        """A part of an f-string: a token for a symbolic value, which the run replaces."""
        blocks = current()
        if blocks is not None:
            return blocks.texts.formatted(value, conversion, spec)  # type: ignore[no-any-return]
        return format(CONVERSIONS[conversion](value), spec)

    @staticmethod
    def texted(text: str) -> str:
        """An f-string of such parts."""
        return text if current() is None else marked(text)

    @staticmethod
    def percent(left: Any, right: Any) -> Any:
        """``left % right``, which may format a text."""
        blocks = current()
        return left % right if blocks is None or not isinstance(left, str) else blocks.texts.percent(left, right)

    @staticmethod
    def plain(test: Any, reason: str) -> Any:
        """A condition that stays Python's."""
        if is_symbolic(as_symbolic(test)):
            raise located(
                "a condition depends on a tensor and cannot be recorded", reason, "move the condition into a function of its own"
            )
        return test

    @staticmethod
    def items(iterable: Any) -> Any:
        """What a comprehension runs over."""
        return iteration.items(iterable)

    @staticmethod
    def collect(values: Any, keep: Callable[[Any], Any], make: Callable[[Any], Any], is_nested: bool) -> list[Any]:
        """``[make(v) for v in values if keep(v)]``."""
        return collected(values, keep, make, is_nested)  # type: ignore[no-any-return]

    @staticmethod
    def drawn(function: Any, as_list: Callable[[], Any], as_items: Callable[[], Any]) -> Any:
        """``function(... for ... in ...)``: of a list where that means the same."""
        return call(function)(as_list() if function is sum or function is list else as_items())

    identical, different, matched = staticmethod(identical), staticmethod(different), staticmethod(matched)

    @staticmethod
    def negate(value: Any) -> Any:
        """``not value``."""
        holds = decided(value)
        return branches.choose(holds, lambda: False, lambda: True, "`not`") if is_symbolic(holds) else not holds

    @staticmethod
    def choose(test: Any, body: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
        """``body() if test else orelse()``."""
        holds = decided(test)
        if is_symbolic(holds):
            return branches.choose(holds, lambda: run(body), lambda: run(orelse), "`a if test else b`")
        return run(body if holds else orelse)

    @staticmethod
    def both(is_test: bool, value: Any, *others: Callable[[], Any]) -> Any:
        """``value and others[0]() and ...``; only its truth counts when ``is_test``."""
        return _connected(True, is_test, value, others)

    @staticmethod
    def either(is_test: bool, value: Any, *others: Callable[[], Any]) -> Any:
        """``value or others[0]() or ...``; only its truth counts when ``is_test``."""
        return _connected(False, is_test, value, others)

    @staticmethod
    def compare(signs: str, left: Any, *others: Callable[[], Any]) -> Any:
        """``left < others[0]() < ...``: each evaluated once, and only as far as needed."""
        return _compared(signs.split(), left, others)


def _following(site: Site, exit: Exit | None, rest: Block, state: State) -> Exit | None:
    """The rest where the exit was none."""
    if exit is None:
        return run(rest)  # type: ignore[no-any-return]
    if exit.is_plain or exits.NORMAL not in exit.ways:
        return exit
    others = exits.known(exit.ways - {exits.NORMAL}, exit.code, exit.value)
    is_normal = exit.code == exits.CODES[exits.NORMAL]
    return branches.record(site, is_normal, lambda: run(rest), lambda: others, state)


class _Rounds:
    """Runs as long as the condition, which must be plain, holds."""

    def __init__(self, check: Callable[[], Any]) -> None:
        self.check = check

    def __iter__(self) -> Iterator[None]:
        while True:
            holds = self.check()
            if is_symbolic(holds):
                raise ConversionError("the condition of a loop became symbolic while the loop was unrolled")
            if not holds:
                return
            yield None


def _loop_test(test: Callable[[], Any] | None) -> Any:
    with LoopTest():
        return truth(run(test))


def _connected(goes_on: bool, is_test: bool, value: Any, others: tuple[Callable[[], Any], ...]) -> Any:
    for k, other in enumerate(others):
        holds = decided(value)
        if is_symbolic(holds):
            rest = others[k:]

            def more(rest: tuple[Callable[[], Any], ...] = rest) -> Any:
                found = _connected(goes_on, is_test, run(rest[0]), rest[1:])
                return truth(found) if is_test else found

            return _choice(goes_on, holds, more, (not goes_on) if is_test else value)
        if bool(holds) is not goes_on:
            return value
        value = run(other)
    return value


def _choice(goes_on: bool, holds: Any, more: Callable[[], Any], here: Any) -> Any:
    sides = (more, lambda: here) if goes_on else (lambda: here, more)
    return branches.choose(holds, *sides, "`and`" if goes_on else "`or`")


def _compared(signs: list[str], left: Any, others: tuple[Callable[[], Any], ...]) -> Any:
    middle = run(others[0])
    found = _COMPARISONS[signs[0]](left, middle)
    if len(signs) == 1:
        return found
    holds = decided(found)
    if is_symbolic(holds):
        return branches.choose(holds, lambda: _compared(signs[1:], middle, others[1:]), lambda: found, "a chain of comparisons")
    return _compared(signs[1:], middle, others[1:]) if holds else found


set_helpers(Helpers)
