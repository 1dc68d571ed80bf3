"""Lists that recorded code makes: lists like others, until a loop or branch that depends on a tensor gives them a length that only a run knows.

What such a list holds is then a column, an array of tensors, for each leaf of its elements, which are all of one structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...base import nest
from .. import arrays
from ..build import OPS
from ..recording import current_recorder
from . import journal, numbers
from .blocks import current
from .branches import RAISED, choose, is_trying, located
from .iteration import Symbolic, as_integer, items
from .journal import Grown, OpenList
from .merging import Column, Differs, Kind, column_kind, convert, form_of, received
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

    def item(self, k: Any) -> Any:
        """The item at this place, a number from 0 on."""
        index = numbers.as_kind(k, int)
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
        elements = [convert(v, _element(kind)) for v, kind in zip(leaves, kinds, strict=True)]
        made = [arrays.array_with(recorder, c.as_array(), index, v) for c, v in zip(columns, elements, strict=True)]
        self._set(made, kinds)

    def _place(self, index: Any) -> Any:
        """The place from the front."""
        if isinstance(index, slice):
            raise self._refuse("a slice")
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
            "use append(), extend(), pop(), lst[i], len(lst), `for v in lst`, paddle.stack(lst) or paddle.concat(lst)",
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
            raise self._refuse("extend() by items whose number depends on a tensor,")
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
        if self.grown is None:
            return super().pop(index)
        if isinstance(index, Number) or index != -1:
            raise self._refuse("pop() of any but the last item")
        last = self.length - 1
        found = self.item(last)
        self._shorten(last)
        return found

    def __getitem__(self, index: Any) -> Any:
        if self.grown is not None:
            return self.item(self._place(index))
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
        if self.grown is None:
            super().__setitem__(index, value)
        else:
            place = self._place(index)
            self.item(place)  # it must be there
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
    "index", "count", "insert", "remove", "sort", "reverse", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
    "__delitem__", "__reversed__", "__repr__", "__len__",
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
        return type(tree)(zip(tree, new, strict=True))
    if isinstance(tree, OpenList):
        return new
    return type(tree)(*new) if hasattr(tree, "_fields") else type(tree)(new)


def convert_list(*args: Any) -> Any:
    """``list``, also of lists of unknown length."""
    if len(args) == 1 and is_grown(args[0]):
        return args[0].copy()
    return listed(list(*map(items, args)))


def joining(name: str, is_stacked: bool) -> Callable[..., Any]:
    """``paddle.stack`` or ``paddle.concat``, also of lists of unknown length."""
    original: Any = OPS[name]

    def convert(x: Any, axis: Any = 0, *args: Any, **kwargs: Any) -> Any:
        if not is_grown(x):
            return original(x, axis, *args, **kwargs)
        columns = x._columns()
        if len(columns) != 1 or columns[0].kind.number:
            raise x._refuse(f"{name}()")
        return arrays.tensor_array_to_tensor(columns[0].as_array(), axis, is_stacked)[0]

    return convert


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
