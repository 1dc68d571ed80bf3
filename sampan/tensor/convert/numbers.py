"""Number: a Python number whose value only a run knows, such as the counter of a recorded loop.

It follows Python's rules with other numbers (``/`` gives a float, a float has 64 bits) and those of a Python number with tensors (it never widens their
dtype). Whatever needs the value while recording, an index or a shape, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base import dtypes
from ...base.errors import ConversionError, message
from ...ir.builder import current_builder
from ...ir.program import Value
from ..build import OPS
from ..location import user_location

#: The Python type of a Number -> the dtype of the Value that holds it.
DTYPES: dict[type, str] = {bool: "bool", int: "int64", float: "float64"}
KINDS = {dtype: kind for kind, dtype in DTYPES.items()}
_ORDER = (bool, int, float)
_RESULTS = {
    "__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__truediv__": "divide", "__floordiv__": "floor_divide", "__mod__": "remainder",
    "__pow__": "pow", "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift", "__eq__": "equal", "__ne__": "not_equal", "__lt__": "less_than", "__le__": "less_equal",
    "__gt__": "greater_than", "__ge__": "greater_equal",
}  # fmt: skip
_COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
_BITS = frozenset({"__and__", "__or__", "__xor__"})
_INTEGER_ONLY = _BITS | {"__lshift__", "__rshift__"}


def python_kind(dtype: str) -> type:
    """The Python type of a tensor's element."""
    return {"b": bool, "i": int, "u": int}.get(dtypes.kind(dtype), float)


class NumberUseError(ConversionError):
    """A number that only a run knows is needed while the Program is recorded."""


class Number:
    """Mixed into the class of symbolic values. ``kind``: bool, int or float; ``strong``: the value as an ordinary tensor."""

    kind: type
    strong: Value

    def _refuse(self, what: str) -> NumberUseError:
        where = user_location()
        text = message(
            f"{what} is a number that only a run knows",
            "it counts a loop over tensors, or comes from a branch or cast of a tensor",
            "use it in arithmetic, or make the loop's bounds Python numbers so that the loop is unrolled",
        )
        return NumberUseError(f"{text}\n  {where}" if where else text)

    def __bool__(self) -> bool:
        raise self._refuse("a condition")

    def __index__(self) -> int:
        raise self._refuse("an index, a size or a count")

    def __int__(self) -> int:
        raise self._refuse("the argument of int()")

    def __float__(self) -> float:
        raise self._refuse("the argument of float()")

    def __round__(self, digits: int | None = None) -> Any:
        raise self._refuse("the argument of round()")

    __hash__ = object.__hash__

    def __divmod__(self, other: Any) -> Any:
        whole: Any = self
        return whole // other, whole % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return of(OPS["neg"](as_kind(self, max(int, self.kind, key=_ORDER.index))))

    def __abs__(self) -> Any:
        return of(OPS["abs"](as_kind(self, max(int, self.kind, key=_ORDER.index))))

    def __pos__(self) -> Any:
        return of(as_kind(self, max(int, self.kind, key=_ORDER.index)))

    def __invert__(self) -> Any:
        return of(OPS["bitwise_not"](as_kind(self, int)))


def is_number(value: Any) -> bool:
    """Whether the value is a Python number or a Number."""
    return isinstance(value, (bool, int, float, Number))


def kind_of(number: Any) -> type:
    """bool, int or float."""
    return number.kind if isinstance(number, Number) else next(k for k in _ORDER if isinstance(number, k))


def as_kind(number: Any, kind: type) -> Value:
    """The number as an ordinary 0-D tensor of this kind's dtype."""
    if isinstance(number, Number):
        return number.strong if number.kind is kind else OPS["cast"](number.strong, DTYPES[kind])
    builder = current_builder()
    if builder is None:
        raise ConversionError("a number became part of a Program outside of its recording")
    return builder.constant(kind(number), DTYPES[kind])


_classes: dict[type, type] = {}


def of(strong: Value) -> Any:
    """The Number that a 0-D bool, int64 or float64 tensor holds."""
    made = OPS["python_number"](strong)
    base = type(made)
    if base not in _classes:
        _classes[base] = type("Number", (Number, base), {"__slots__": ()})
    made.__class__ = _classes[base]
    made.kind = KINDS[str(strong.dtype)]
    made.strong = strong
    return made


def _install(name: str) -> None:
    def method(self: Any, other: Any) -> Any:
        return _apply(name, self, other) if is_number(other) else Value.operators[name](self, other)

    def swapped(self: Any, other: Any) -> Any:
        return _apply(name, other, self) if is_number(other) else Value.operators[name](other, self)

    setattr(Number, name, method)
    if name not in _COMPARISONS:
        setattr(Number, f"__r{name[2:]}", swapped)


for _name in _RESULTS:
    _install(_name)


def _apply(name: str, a: Any, b: Any) -> Any:
    kind = max(kind_of(a), kind_of(b), key=_ORDER.index)
    if name in _INTEGER_ONLY and kind is float:
        raise TypeError(f"unsupported operand types for {name}: '{kind_of(a).__name__}' and '{kind_of(b).__name__}'")
    if name == "__truediv__":
        kind = float
    elif kind is bool and name not in _BITS:
        kind = int
    if name == "__pow__" and kind is int and (isinstance(b, Number) or b < 0):
        if isinstance(b, Number):
            raise b._refuse("the exponent of an integer's power")
        kind = float
    return of(OPS[_RESULTS[name]](as_kind(a, kind), as_kind(b, kind)))


def cast(value: Any, kind: type) -> Any:
    """``int(x)``, ``float(x)`` or ``bool(x)`` of a tensor of one element: a number, through which no gradient flows."""
    strong = OPS["reshape"](value if getattr(value, "stop_gradient", True) else value.detach(), [])
    if str(strong.dtype) != DTYPES[kind]:
        strong = OPS["cast"](strong, DTYPES[kind])
    return of(strong)


Function = Callable[..., Any]
