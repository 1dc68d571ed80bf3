"""None or a value: which of them a variable is where only one side of a recorded branch gives it one.

Converted code may return it, store it, merge it again and ask ``y is None``. Where it is used as a value, the Program checks when it comes there, and raises the
TypeError that None raises in eager mode.
"""

from __future__ import annotations

import operator
from typing import Any

from ...base import nest
from ...base.errors import ConversionError, message
from ..build import OPS
from ..location import user_location
from . import numbers
from .blocks import current


class Optional:
    """A value that is only there where ``present``, a Number, holds; a tree of tensors, numbers and plain values."""

    __slots__ = ("_present", "_value")

    def __init__(self, present: Any, value: Any) -> None:
        self._present, self._value = present, value
        blocks = current()
        if blocks is not None:
            blocks.has_optionals = True

    def as_operand(self) -> Any:
        """The value for an operator."""
        return needed(self)

    def _refused(self, what: str) -> ConversionError:
        where = user_location()
        text = message(
            f"{what} is None or a value, and which of them depends on a tensor",
            "it was set on one side of a branch only",
            "test it with `is None` first, or give it a tensor on both sides",
        )
        return ConversionError(f"{text}\n  {where}" if where else text)

    def __bool__(self) -> bool:
        raise self._refused("a condition")

    def __eq__(self, other: object) -> bool:
        raise self._refused("an operand of a comparison")

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __str__(self) -> str:
        raise self._refused("a text's value")

    def __format__(self, spec: str) -> str:
        raise self._refused("a text's value")

    def __getattr__(self, name: str) -> Any:
        return getattr(needed(self), name)

    def __iter__(self) -> Any:
        return iter(needed(self))

    def __len__(self) -> int:
        return len(needed(self))

    def __getitem__(self, index: Any) -> Any:
        return needed(self)[index]


def _install(name: str) -> None:
    function = getattr(operator, name)

    def method(self: Optional, *others: Any) -> Any:
        return function(needed(self), *map(needed, others))

    def swapped(self: Optional, other: Any) -> Any:
        return function(other, needed(self))

    setattr(Optional, f"__{name.strip('_')}__", method)
    if name not in _ONE_SIDED:
        setattr(Optional, f"__r{name.strip('_')}__", swapped)


_ONE_SIDED = frozenset({"lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"})
for _name in (
    *_ONE_SIDED,
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
):
    _install(_name)


def present_of(value: Any) -> Any:
    """Whether there is a value: a bool, or a Number where only a run knows."""
    return value._present if isinstance(value, Optional) else value is not None


def content_of(value: Any, missing: Any) -> Any:
    """The value where there is one; ``missing`` for None."""
    return value._value if isinstance(value, Optional) else missing if value is None else value


def different(a: Any, b: Any) -> Any:
    """``a is not b``: a Number where only a run knows."""
    if a is b or not (isinstance(a, Optional) or isinstance(b, Optional)):
        return a is not b
    optional, other = (a, b) if isinstance(a, Optional) else (b, a)
    if other is not None:
        raise optional._refused("an operand of `is`")
    return optional._present


def identical(a: Any, b: Any) -> Any:
    """``a is b``: a Number where only a run knows."""
    found = different(a, b)
    return not found if isinstance(found, bool) else numbers.of(OPS["logical_not"](found.strong))


def matched(value: Any) -> Any:
    """The subject of ``match``, which is decided while recording."""
    if isinstance(value, Optional):
        raise value._refused("the subject of `match`")
    return value


def needed(value: Any) -> Any:
    """The value for a use that None does not serve: where it is None, the Program raises TypeError here. Anything else is as it is."""
    if not isinstance(value, Optional):
        return value
    blocks = current()
    if blocks is None:
        raise value._refused("what is used outside of the recording")
    branches = blocks.branches(value._present)
    symbolic = [v for v in nest.flatten(value._value) if hasattr(v, "dtype")]
    with branches.side(True):
        held = [_strong(v) for v in symbolic]
    with branches.side(False):
        where = user_location()
        blocks.fail(TypeError(f"None is used as a value{f', {where.strip()}' if where else ''}"))
        absent = [OPS["full"]([1 if n == -1 else n for n in v.shape], 0, str(v.dtype)) for v in held]
    found = iter(branches.finish(held, absent))
    return nest.map_structure(lambda v: _like(v, next(found)) if hasattr(v, "dtype") else v, value._value)


def _strong(value: Any) -> Any:
    blocks: Any = current()
    return value.strong if isinstance(value, numbers.Number) else blocks.value(value)


def _like(value: Any, found: Any) -> Any:
    return numbers.of(found) if isinstance(value, numbers.Number) else found
