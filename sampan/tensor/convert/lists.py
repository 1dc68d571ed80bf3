"""Lists that recorded code makes: lists like others, until a loop or branch that depends on a tensor gives them a length that only a run knows.

What such a list holds is then a column, an array of tensors, for each leaf of its elements, which are all of one structure.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...base import nest
from ...base.errors import ArgumentTypeError
from .. import arrays
from ..array_lists import array_chain, array_number_total, array_slice, array_total
from ..build import OPS
from ..recording import current_recorder
from . import journal, numbers
from .blocks import current
from .branches import RAISED, choose, is_trying, located
from .functions import convert
from .iteration import ListItems, Symbolic, as_integer, items
from .journal import Grown, OpenList
from .merging import Column, Differs, Kind, alike, column_kind, common_kind, form_of, grown_from, is_symbolic, received
from .merging import convert as as_value
from .numbers import Number


class RecordedList(OpenList):
    """A list that recorded code made."""

    # ------------------------------------------------------------------ columns

    def _columns(self) -> list[Column]:
        return nest.flatten(self.grown.elements)  # type: ignore[union-attr]

    def _set(self, arrays_: Sequence[Any], kinds: Sequence[Kind]) -> None:
        made = [Column(k, a) for k, a in zip(kinds, arrays_, strict=True)]
        self.grown = Grown(_packed(self.grown.elements, made))  # type: ignore[union-attr]

    @property
    def length(self) -> Any:
        """How many items it has: a Number where only a run knows."""
        return len(self) if self.grown is None else numbers.of(arrays.array_length(self._columns()[0].as_array()))

    def item(self, k: Any, is_required: bool = False) -> Any:
        """The item at this place, a number from 0 on. ``is_required``: it must be there also where nothing depends on it."""
        index = numbers.as_kind(k, int)
        if is_required:
            arrays.require_element(self._columns()[0].as_array(), index)
        found = []
        for column in self._columns():
            element = Kind(column.kind.dtype, column.kind.shape, column.kind.number, column.kind.is_tracked)
            found.append(received(arrays.array_read(column.as_array(), index), element))
        return _packed(self.grown.elements, found)  # type: ignore[union-attr]

    def _write(self, k: Any, value: Any) -> None:
        recorder: Any = current_recorder()
        columns = self._columns()
        leaves = _leaves_like(self.grown.elements, value)  # type: ignore[union-attr]
        try:
            kinds = [column_kind(c.kind, v) for c, v in zip(columns, leaves, strict=True)]
        except Differs as error:
            raise located(
                f"an item is put into a list whose length depends on a tensor: {error.args[0]}", "", error.args[1]
            ) from None
        index = numbers.as_kind(k, int)
        elements = [as_value(v, _element(kind)) for v, kind in zip(leaves, kinds, strict=True)]
        made = [arrays.array_with(recorder, c.as_array(), index, v) for c, v in zip(columns, elements, strict=True)]
        self._set(made, kinds)

    def _open(self) -> None:
        """Hold columns, also where the length is known: an index or slice is a number that only a run knows."""
        if self.grown is not None:
            return
        content = self.content()
        if not content:
            return
        try:
            self.grown = grown_from(content, content)
        except Differs as error:
            raise located(
                f"a list is indexed by a number that only a run knows: {error.args[0]}",
                "",
                f"{error.args[1]}, or index it by Python numbers: loops over those are unrolled",
            ) from None

    def _opened(self) -> RecordedList:
        """The same items as columns, in a list of its own."""
        made = self.copy()
        made._open()
        return made

    def _sliced(self, index: slice, is_dropped: bool = False) -> RecordedList:
        """A new list of a slice's items, or of all others."""
        recorder: Any = current_recorder()
        made = self._opened()
        if made.grown is None:  # nothing is in it
            return made
        bounds = slice(*(_bound(v) for v in (index.start, index.stop, index.step)))
        columns = made._columns()
        made._set([array_slice(recorder, c.as_array(), bounds, is_dropped) for c in columns], [c.kind for c in columns])
        return made

    def _take(self, other: RecordedList) -> None:
        """Hold what the other list holds."""
        journal.watch(self, "")
        self.put(other.content())

    def _chain(self, other: RecordedList) -> None:
        """Put the items of another list, of which one of both has an unknown length, behind the own."""
        recorder: Any = current_recorder()
        try:
            first, second = alike(self.content(), other.content())
            pairs = list(zip(nest.flatten(first.elements), nest.flatten(second.elements), strict=True))
            kinds = [common_kind(a.kind, b.kind) for a, b in pairs]
        except Differs as error:
            raise located(
                f"a list is put behind another whose length depends on a tensor: {error.args[0]}", "", error.args[1]
            ) from None
        if form_of(first.elements) != form_of(second.elements):
            raise located(
                "lists of items of other structures are joined", "their lengths depend on a tensor", "use items of one structure"
            )
        made = [
            array_chain(recorder, replace(a, kind=k).as_array(), replace(b, kind=k).as_array())
            for (a, b), k in zip(pairs, kinds, strict=True)
        ]
        self.grown = Grown(_packed(first.elements, [Column(k, v) for k, v in zip(kinds, made, strict=True)]))
        self.put(self.grown)

    def _place(self, index: Any) -> Any:
        """The place from the front."""
        index = as_integer(index)
        if isinstance(index, Number):
            length = self.length
            return choose(
                index < 0,  # type: ignore[operator]
                lambda: index + length,
                lambda: index,
                "an index of a list",
            )
        number = index.__index__()
        return number if number >= 0 else self.length + number

    def _refuse(self, what: str) -> Exception:
        return located(
            f"{what} of a list whose length depends on a tensor",
            "the list grows in a loop or branch that only a run knows the course of",
            "use append(), extend(), insert(), pop(), lst[i], lst[i:j], len(lst), `for v in lst`, sum(lst), paddle.stack(lst) or paddle.concat(lst)",
        )

    # ------------------------------------------------------------------ what lists do

    def append(self, value: Any) -> None:
        journal.watch(self, "")
        if self.grown is None:
            super().append(value)
        else:
            self._write(self.length, value)

    def extend(self, values: Iterable[Any]) -> None:
        journal.watch(self, "")
        if self.grown is None and not isinstance(values, (RecordedList, Symbolic)):
            super().extend(values)
            return
        found = items(values)
        if isinstance(found, Symbolic):
            other = collected(found)
            if is_grown(other):
                self._chain(other)
                return
            found = other
        for value in list(found):
            self.append(value)

    def __iadd__(self, values: Any) -> Any:
        self.extend(values)
        return self

    def __add__(self, values: Any) -> Any:
        if not isinstance(values, list):
            return super().__add__(values)
        made = self.copy()
        made.extend(values)
        return made

    def __radd__(self, values: Any) -> Any:
        return RecordedList(values).__add__(self) if isinstance(values, list) else NotImplemented

    def __mul__(self, count: Any) -> Any:
        if self.grown is not None:
            raise self._refuse("a multiple")
        made = super().__mul__(count)
        return RecordedList(made) if isinstance(made, list) else made

    __rmul__ = __mul__

    def copy(self) -> RecordedList:
        return self.another(self.content())  # type: ignore[no-any-return]

    def clear(self) -> None:
        journal.watch(self, "")
        if self.grown is None:
            super().clear()
        else:
            self._shorten(0)

    def _shorten(self, length: Any) -> None:
        recorder: Any = current_recorder()
        cut = numbers.as_kind(length, int)
        columns = self._columns()
        self._set([arrays.array_cut(recorder, c.as_array(), cut) for c in columns], [c.kind for c in columns])

    def pop(self, index: Any = -1) -> Any:
        journal.watch(self, "")
        if self.grown is None and not is_symbolic(index):
            return super().pop(index)
        source = self._opened()
        if source.grown is None:
            return super().pop()
        place = source._place(index)
        found = source.item(place, is_required=True)
        self.put(source._sliced(slice(place, place + 1), is_dropped=True).content())
        return found

    def insert(self, index: Any, value: Any) -> None:
        journal.watch(self, "")
        if self.grown is None and not (is_symbolic(index) and self.content()):
            super().insert(0 if is_symbolic(index) else index, value)
            return
        tail = self._sliced(slice(index, None))
        self.put(self._sliced(slice(None, index)).content())
        self.append(value)
        self._chain(tail)

    def reverse(self) -> None:
        journal.watch(self, "")
        if self.grown is None:
            super().reverse()
        else:
            self.put(self._sliced(slice(None, None, -1)).content())

    def __delitem__(self, index: Any) -> None:
        journal.watch(self, "")
        if self.grown is None and not _is_symbolic_index(index):
            super().__delitem__(index)
        elif isinstance(index, slice):
            self.put(self._sliced(index, is_dropped=True).content())
        else:
            self.pop(index)

    def total(self, start: Any) -> Any:
        """``sum(self, start)``; without a start where that is None."""
        recorder: Any = current_recorder()
        column = self._single("sum()")
        if column.kind.number is None:
            try:
                return array_total(recorder, column.as_array(), start)
            except ArgumentTypeError as error:
                raise located(str(error), "only a run knows how many items there are", "") from None
        if not numbers.is_number(start):
            raise self._refuse("a sum of numbers that starts with something else")
        kind = (
            max(int, column.kind.number, numbers.kind_of(start), key=(int, float).index)
            if column.kind.number is not bool
            else int
        )
        first = start.strong if isinstance(start, Number) else start
        return numbers.of(array_number_total(recorder, column.as_array(), first, numbers.DTYPES[kind]))

    def _single(self, what: str) -> Column:
        """The column of items that are tensors or numbers themselves."""
        columns = self._columns()
        if len(columns) != 1 or isinstance(self.grown.elements, (list, tuple, dict)):  # type: ignore[union-attr]
            raise self._refuse(f"{what} of containers")
        return columns[0]

    def __getitem__(self, index: Any) -> Any:
        if self.grown is not None or _is_symbolic_index(index):
            source = self._opened()
            if not source.grown:
                return super().__getitem__(slice(0, 0) if isinstance(index, slice) else 0)
            return source._sliced(index) if isinstance(index, slice) else source.item(source._place(index))
        if isinstance(index, slice):
            return RecordedList(super().__getitem__(index))
        try:
            return super().__getitem__(index)
        except IndexError as error:
            if current() is not None and not is_trying():
                setattr(error, RAISED, True)
            raise

    def __setitem__(self, index: Any, value: Any) -> None:
        journal.watch(self, "")
        if self.grown is None and not _is_symbolic_index(index):
            super().__setitem__(index, value)
        elif isinstance(index, slice):
            raise self._refuse("an assignment to a slice")
        else:
            if self.grown is None:
                self.put(self._opened().content())
            place = self._place(index)
            self.item(place, is_required=True)
            self._write(place, value)

    def __iter__(self) -> Any:
        if self.grown is not None:
            raise self._refuse("something that runs over the items")
        return super().__iter__()

    __hash__ = None  # type: ignore[assignment]


def _whole(name: str) -> Callable[..., Any]:
    """A method of lists that needs all items."""
    original = getattr(list, name)
    is_changing = name in journal.CHANGING[list]

    def method(self: RecordedList, *args: Any, **kwargs: Any) -> Any:
        if self.grown is not None:
            raise self._refuse(f"{name}()")
        if is_changing:
            journal.watch(self, "")
        return original(self, *args, **kwargs)

    method.__name__ = name
    return method


for _name in (
    "index", "count", "remove", "sort", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__reversed__", "__repr__",
    "__len__",
):  # fmt: skip
    setattr(RecordedList, _name, _whole(_name))
journal.CHANGING[RecordedList] = journal.CHANGING[list]


def is_grown(value: Any) -> bool:
    """Whether it is a list of unknown length."""
    return isinstance(value, RecordedList) and value.grown is not None


def listed(values: list[Any]) -> list[Any]:
    """The list that converted code made."""
    return values if current() is None else RecordedList(values)


@dataclass(frozen=True)
class ListContent:
    """A list of unknown length among what a function returns. ``item``: the structure of an item, a ``Column`` for each leaf."""

    item: Any


def opened(tree: Any) -> Any:
    """What leaves recorded code: plain lists for recorded ones, and a leaf for each of unknown length."""
    if isinstance(tree, OpenList) and tree.grown is not None:
        return ListContent(tree.grown.elements)
    if not isinstance(tree, (dict, list, tuple)):
        return tree
    old = list(tree.values() if isinstance(tree, dict) else tree)
    new = [opened(v) for v in old]
    if not isinstance(tree, OpenList) and all(a is b for a, b in zip(old, new, strict=True)):
        return tree
    if isinstance(tree, dict):
        made = copy.copy(tree)
        made.update(zip(tree, new, strict=True))
        return made
    if isinstance(tree, OpenList):
        return new
    return type(tree)(*new) if hasattr(tree, "_fields") else type(tree)(new)


def convert_list(*args: Any) -> Any:
    """``list``, also of lists of unknown length."""
    if len(args) == 1:
        if is_grown(args[0]):
            return args[0].copy()
        found = items(args[0])
        return collected(found) if isinstance(found, Symbolic) else listed(list(found))
    return listed(list(*args))


def _collected(values: Any, keep: Any, make: Any) -> list[Any]:
    made = []
    for value in values:
        if keep(value):
            made.append(make(value))
    return made


def _flattened(values: Any, keep: Any, make: Any) -> list[Any]:
    made = []
    for value in values:
        if keep(value):
            made.extend(make(value))
    return made


def _always(value: Any) -> bool:
    return True


def _itself(value: Any) -> Any:
    return value


def collected(
    values: Any, keep: Callable[[Any], Any] = _always, make: Callable[[Any], Any] = _itself, is_nested: bool = False
) -> Any:
    """``[make(v) for v in values if keep(v)]``, also where only a run knows how many items there are, or which of them are kept.

    is_nested: what ``make`` gives are lists, whose items are put together.
    """
    function: Any = _flattened if is_nested else _collected
    return convert(function)(values, keep, make)


def convert_sum(*args: Any, **kwargs: Any) -> Any:
    """``sum``, also of lists of unknown length and rows of tensors."""
    found: Any = items(args[0]) if args else None
    if isinstance(found, ListItems):
        found = found.values
    elif isinstance(found, Symbolic):
        found = collected(found)
    if not is_grown(found):
        return sum(*((found, *args[1:]) if args else ()), **kwargs)
    (start,) = (*args[1:], *kwargs.values()) or (0,)
    return found.total(start)


def convert_add_n(inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """``paddle.add_n``, also of lists of unknown length."""
    if not is_grown(inputs):
        return OPS["add_n"](inputs, *args, **kwargs)
    return inputs.total(None)


def joining(name: str, is_stacked: bool) -> Callable[..., Any]:
    """``paddle.stack`` or ``paddle.concat``, also of lists of unknown length."""
    original: Any = OPS[name]

    def join(x: Any, axis: Any = 0, *args: Any, **kwargs: Any) -> Any:
        if not is_grown(x):
            return original(x, axis, *args, **kwargs)
        column = x._single(f"{name}()")
        if column.kind.number:
            raise x._refuse(f"{name}() of numbers")
        return arrays.tensor_array_to_tensor(column.as_array(), axis, is_stacked)[0]

    return join


def _is_symbolic_index(index: Any) -> bool:
    """Whether an index or a slice's bound is a number that only a run knows."""
    return is_symbolic(index) or (isinstance(index, slice) and any(map(is_symbolic, (index.start, index.stop, index.step))))


def _bound(value: Any) -> Any:
    """A slice's bound as an integer Value or a plain integer."""
    found = as_integer(value)
    return numbers.as_kind(found, int) if isinstance(found, Number) else found


def _element(kind: Kind) -> Kind:
    return Kind(kind.dtype, kind.shape, kind.number, kind.is_tracked)


def _packed(tree: Any, leaves: list[Any]) -> Any:
    return nest.pack_like(tree, leaves) if isinstance(tree, (list, tuple, dict)) else leaves[0]


def _leaves_like(elements: Any, value: Any) -> list[Any]:
    if form_of(elements) != form_of(value):
        raise located(
            "an item of another structure is put into a list whose length depends on a tensor",
            "",
            "append items of one structure",
        )
    return nest.flatten(value)
