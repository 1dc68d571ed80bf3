"""What a variable is after a recorded branch, from what it is after either side."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ... import _rt
from ...base import nest
from ...ir.program import Value
from ..arrays import ArrayVariable, array_with, new_array
from ..build import OPS
from ..recording import current_recorder
from ..variable import Variable
from . import numbers
from .blocks import current
from .journal import UNBOUND, Grown, OpenList
from .optionals import Optional, content_of, present_of

#: A value that is never read: of a variable on a path that left before it was set.
NOTHING: Any = type("Nothing", (), {"__repr__": lambda self: "nothing"})()
#: Stands in texts for a value that only a run knows.
TOKEN = re.compile("\0(\\d+)\0")
#: Plain values that are alike when they are equal.
_COMPARABLE = (str, bytes, int, float, complex, bool, type(None), range, frozenset, _rt.DType)


class Differs(Exception):
    """Two sides cannot be one; args: what is wrong, how to fix it."""


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor, eager or symbolic, and not a number."""
    return isinstance(value, (_rt.Tensor, Value)) and not isinstance(value, numbers.Number)


@dataclass(frozen=True)
class Kind:
    """The type of a merged leaf. ``number``: the Python type where it is a number; else a tensor's dtype, shape (-1 for unknown sizes), and whether
    gradients flow through it. ``is_column``: of elements of a list of unknown length; their dtype is empty while there are none."""

    dtype: str
    shape: tuple[int, ...] = ()
    number: type | None = None
    is_tracked: bool = False
    is_column: bool = False

    def variable(self) -> Variable:
        """A Variable of this type."""
        made = Variable(self.dtype, self.shape, stop_gradient=not self.is_tracked)
        if self.is_column:
            return ArrayVariable(self.dtype, "", made if self.dtype else None, not self.is_tracked)
        return made

    def __str__(self) -> str:
        return self.number.__name__ if self.number else f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class Column:
    """One leaf of every element of a list of unknown length: an array of tensors, or these values, which become one."""

    kind: Kind
    array: Any = None
    values: tuple[Any, ...] = ()

    def as_array(self) -> Any:
        """The array, in the block that is open."""
        if self.array is not None:
            return self.array
        recorder: Any = current_recorder()
        made = new_array(recorder, self.kind.dtype, self.kind.variable().element if self.kind.dtype else None)  # type: ignore[attr-defined]
        element = replace(self.kind, is_column=False)
        for k, value in enumerate(self.values):
            made = array_with(recorder, made, k, convert(value, element))
        return made


def kind_of(value: Any) -> Kind | None:
    """The kind of a tensor or number; None for anything else."""
    if isinstance(value, Column):
        return value.kind
    if numbers.is_number(value):
        kind = numbers.kind_of(value)
        return Kind(numbers.DTYPES[kind], (), kind)
    if is_tensor(value):
        return Kind(
            str(getattr(value.dtype, "name", value.dtype)), tuple(value.shape), None, not getattr(value, "stop_gradient", True)
        )
    return None


def common_kind(a: Any, b: Any) -> Kind:
    """The kind that holds both; raises Differs."""
    first, second = (v if isinstance(v, Kind) else kind_of(v) for v in (a, b))
    if first is None or second is None:
        raise Differs(
            f"it is {described(a)} on one side and {described(b)} on the other", "give it a value of the same type on both sides"
        )
    if first.is_column or second.is_column:
        return _common_column(first, second)
    if first.number and second.number:
        if first.number is not second.number:
            raise Differs(f"it is {described(a)} on one side and {described(b)} on the other", "make both the same Python type")
        return first
    if first.number or second.number:
        tensor, number = (second, first) if first.number else (first, second)
        _require_holds(tensor, number)
        return tensor
    if first.dtype != second.dtype:
        raise Differs(f"it is {first} on one side and {second} on the other", "cast one of them with .astype()")
    if len(first.shape) != len(second.shape):
        raise Differs(
            f"its shape is {list(first.shape)} on one side and {list(second.shape)} on the other",
            "give it as many axes on both sides",
        )
    shape = tuple(n if n == m else -1 for n, m in zip(first.shape, second.shape, strict=True))
    return Kind(first.dtype, shape, None, first.is_tracked or second.is_tracked)


def _common_column(first: Kind, second: Kind) -> Kind:
    if not (first.is_column and second.is_column):
        raise Differs("it is a list of unknown length on one side only", "append the same things on both sides")
    if not first.dtype or not second.dtype:
        return first if first.dtype else second
    return replace(common_kind(replace(first, is_column=False), replace(second, is_column=False)), is_column=True)


def column_kind(kind: Kind, value: Any) -> Kind:
    """The kind of a column that also holds this value; raises Differs."""
    found = kind_of(value)
    if found is None:
        raise Differs(f"it holds a {type(value).__name__}", "append tensors and numbers only")
    return common_kind(kind, replace(found, is_column=True))


def form_of(tree: Any) -> Any:
    """The structure of nested containers."""
    if isinstance(tree, dict):
        return dict, tuple((k, form_of(v)) for k, v in tree.items())
    if isinstance(tree, (list, tuple)):
        return list if isinstance(tree, OpenList) else type(tree), tuple(map(form_of, tree))
    return None


def grown_from(content: Any, other: Any) -> Grown:
    """A list's content in the form of one of unknown length. ``other``: another content, where its own shows no element.

    Raises:
        Differs: its items are no tensors and numbers of one structure.
    """
    if isinstance(content, Grown):
        return content
    sample = content[0] if content else other.elements if isinstance(other, Grown) else other[0]
    for value in content:
        if form_of(value) != form_of(sample):
            raise Differs("its items differ in structure", "append items of one structure")
    columns = [nest.flatten(value) for value in content]
    made = []
    for k in range(len(nest.flatten(sample))):
        kind = Kind("", is_column=True)
        values = tuple(leaves[k] for leaves in columns)
        for value in values:
            kind = column_kind(kind, value)
        made.append(Column(kind, None, values))
    return Grown(nest.pack_like(sample, made) if isinstance(sample, (list, tuple, dict)) else made[0])


def alike(first: Any, second: Any) -> tuple[Any, Any]:
    """Two contents of one list in one form: as they are where both are lists of equal length; raises Differs."""
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return first, second
    return grown_from(first, second), grown_from(second, first)


def _require_holds(tensor: Kind, number: Kind) -> None:
    order = (bool, int, float)
    held = numbers.python_kind(tensor.dtype)
    if (
        any(n != 1 for n in tensor.shape)
        or order.index(number.number) > order.index(held)
        or (number.number is bool) != (held is bool)
    ):  # type: ignore[arg-type]
        raise Differs(
            f"it is a tensor {tensor} on one side and a Python {number} on the other",
            f"make the {number} a tensor of that shape and dtype",
        )


def convert(value: Any, kind: Kind) -> Value:
    """The leaf as a Value of the kind, recorded into the block that is open."""
    if kind.is_column:
        return (Column(kind) if value is NOTHING else replace(value, kind=kind)).as_array()  # type: ignore[no-any-return]
    if kind.number:
        return numbers.as_kind(False if value is NOTHING else value, kind.number)
    if value is NOTHING:
        sizes = [1 if n == -1 else n for n in kind.shape]
        return OPS["full"](sizes, 0, kind.dtype)  # type: ignore[no-any-return]
    if numbers.is_number(value):
        number = numbers.as_kind(value, numbers.kind_of(value))
        cast = number if str(number.dtype) == kind.dtype else OPS["cast"](number, kind.dtype)
        return OPS["reshape"](cast, list(kind.shape)) if kind.shape else cast
    blocks = current()
    return value if blocks is None else blocks.value(value)


def received(value: Value, kind: Kind) -> Any:
    """What converted code sees of a merged leaf: the Value, a Number, or a column."""
    if kind.is_column:
        return Column(kind, value)
    return numbers.of(value) if kind.number else value


@dataclass
class Plan:
    """The leaves that a branch has to hand on, from both sides, and how to rebuild variables from what comes back."""

    first: list[Any] = field(default_factory=list)
    second: list[Any] = field(default_factory=list)
    kinds: list[Kind] = field(default_factory=list)

    def leaf(self, a: Any, b: Any, kind: Kind) -> Callable[[Sequence[Any]], Any]:
        """Hand the pair on; gives what takes it from the results."""
        number = len(self.kinds)
        self.first.append(a)
        self.second.append(b)
        self.kinds.append(kind)
        return lambda results: results[number]

    def join(self, a: Any, b: Any) -> Callable[[Sequence[Any]], Any]:
        """How to make one of both from the results; raises Differs."""
        if a is b:
            return lambda results: a
        if a is NOTHING or b is NOTHING:
            known = b if a is NOTHING else a
            return self._with_nothing(known, a is NOTHING)
        if isinstance(a, _COMPARABLE) and type(a) is type(b) and not isinstance(a, numbers.Number) and same(a, b):
            return lambda results: a
        if a is None or b is None or isinstance(a, Optional) or isinstance(b, Optional):
            return self._optional(a, b)
        if isinstance(a, list) and isinstance(b, list) and (isinstance(a, OpenList) or isinstance(b, OpenList)):
            maker = a if isinstance(a, OpenList) else b
            part = self.join(*alike(*(v.content() if isinstance(v, OpenList) else v for v in (a, b))))
            return lambda results: maker.another(part(results))  # type: ignore[attr-defined]
        if type(a) is type(b) and isinstance(a, (list, tuple, dict)):
            return self._container(a, b)
        return self.leaf(a, b, common_kind(a, b))

    def _optional(self, a: Any, b: Any) -> Callable[[Sequence[Any]], Any]:
        """None or a value, which of them the run knows; raises Differs for values that cannot be handed on."""
        values = [content_of(v, NOTHING) for v in (a, b)]
        for leaf in nest.flatten(values):
            if isinstance(leaf, (OpenList, Optional)) or not (kind_of(leaf) or leaf is NOTHING or isinstance(leaf, _COMPARABLE)):
                raise Differs(
                    f"it is {described(a)} on one side and {described(b)} on the other",
                    "give it a value of the same type on both sides",
                )
        present, value = self.join(present_of(a), present_of(b)), self.join(*values)
        return lambda results: Optional(present(results), value(results))

    def _container(self, a: Any, b: Any) -> Callable[[Sequence[Any]], Any]:
        keys: Any
        if isinstance(a, dict):
            if list(a) != list(b):
                raise Differs(
                    f"the dict has the keys {list(a)} on one side and {list(b)} on the other", "set the same keys on both sides"
                )
            parts = [self.join(a[k], b[k]) for k in a]
            keys = list(a)
            return lambda results: type(a)((k, p(results)) for k, p in zip(keys, parts, strict=True))
        if len(a) != len(b):
            raise Differs(
                f"the {type(a).__name__} has {len(a)} items on one side and {len(b)} on the other",
                "give it the same length on both sides",
            )
        parts = [self.join(x, y) for x, y in zip(a, b, strict=True)]
        if hasattr(a, "_fields"):
            return lambda results: type(a)(*(p(results) for p in parts))
        return lambda results: type(a)(p(results) for p in parts)

    def _with_nothing(self, known: Any, is_first: bool) -> Callable[[Sequence[Any]], Any]:
        """The known side's value: nobody reads it on the other."""
        if isinstance(known, dict):
            held = {k: self._with_nothing(v, is_first) for k, v in known.items()}
            return lambda results: type(known)((k, p(results)) for k, p in held.items())
        if isinstance(known, OpenList):
            part = self._with_nothing(known.content(), is_first)
            return lambda results: known.another(part(results))
        if isinstance(known, (list, tuple)):
            parts = [self._with_nothing(v, is_first) for v in known]
            if hasattr(known, "_fields"):
                return lambda results: type(known)(*(p(results) for p in parts))
            return lambda results: type(known)(p(results) for p in parts)
        if not is_symbolic(known):
            return lambda results: known
        kind = common_kind(known, known)
        return self.leaf(NOTHING, known, kind) if is_first else self.leaf(known, NOTHING, kind)


def is_symbolic(value: Any) -> bool:
    """Whether only a run knows the value."""
    return isinstance(value, (Value, Column))


def has_token(text: Any) -> bool:
    """Whether it is a text that holds a value that only a run knows."""
    return isinstance(text, str) and bool(TOKEN.search(text))


def same(a: Any, b: Any) -> bool:
    """Whether plain values are equal and print alike: -0.0 is not 0.0, NaN is NaN; texts of values that only a run knows are not."""
    return not has_token(a) and not has_token(b) and type(a) is type(b) and (a == b or a != a) and repr(a) == repr(b)


def described(value: Any) -> str:
    """A few words for an error."""
    if value is UNBOUND or value is NOTHING:
        return "unset"
    if isinstance(value, Kind):
        return f"a number ({value})" if value.number else f"a tensor {value}"
    kind = kind_of(value)
    if kind is not None:
        return (
            f"the {kind} {value!r}"
            if kind.number and not is_symbolic(value)
            else f"a number ({kind})"
            if kind.number
            else f"a tensor {kind}"
        )
    if isinstance(value, OpenList):
        return "a list"
    if isinstance(value, Optional):
        return "None or a value"
    if has_token(value):
        return "a text of a tensor"
    text = repr(value)
    return text if isinstance(value, _COMPARABLE) and len(text) < 40 else f"a {type(value).__name__}"
