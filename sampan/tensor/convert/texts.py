"""Text with values that only a run knows, and what prints, checks and raises when a Program runs."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from typing import Any

from ...base import nest
from ..location import is_called_by_sampan
from ..replay import DYNAMIC, EFFECT, Operand, recordable
from ..variable import Variable
from . import numbers
from .blocks import current
from .branches import located
from .merging import TOKEN, has_token, is_symbolic
from .numbers import KINDS, Number

CONVERSIONS: dict[str, Callable[[Any], Any]] = {"": lambda v: v, "s": str, "r": repr, "a": ascii}


class Text(str):
    """A text with tokens for values that only a run knows: it can be joined to others, printed, raised and returned, and not be looked into."""

    def __add__(self, other: str) -> Text:
        return Text(str.__add__(self, other))

    def __radd__(self, other: str) -> Text:
        return Text(str.__add__(other, self))

    def __str__(self) -> Text:
        return self

    def __bool__(self) -> bool:
        return True

    def __format__(self, spec: str) -> str:
        if spec:
            raise _unreadable("the format of one")
        return self


def _unreadable(what: str) -> Exception:
    return located(
        f"{what} text that was made of a tensor",
        "the tensor has its elements only when the Program runs",
        "print it, raise it or return it; or leave this function eager with jit.not_to_static",
    )


def _looking(name: str) -> Callable[..., Any]:
    def method(self: Text, *args: Any, **kwargs: Any) -> Any:
        raise _unreadable(f"{name}() of a")

    method.__name__ = name
    return method


for _name in [n for n in dir(str) if n not in dir(object) and n not in vars(Text) and n not in ("__getnewargs__", "format", "join", "__rmod__")] + [
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__",
]:  # fmt: skip
    setattr(Text, _name, _looking(_name))

#: A conversion of the % operator: its key, what is before its kind, and its kind.
_PERCENT = re.compile(r"%(?:\((?P<key>[^)]*)\))?(?P<how>[#0 +-]*(?:\*|\d+)?(?:\.(?:\*|\d+))?)[hlL]?(?P<kind>[a-zA-Z%])")


class Texts:
    """The values of a recording that texts were made of: each stands in a text as a token."""

    def __init__(self) -> None:
        self.parts: list[tuple[Any, str, str]] = []

    def token(self, value: Any, conversion: str = "", spec: str = "") -> str:
        """What stands for the value in a text."""
        if has_token(spec):
            raise _unreadable("the width or precision of a")
        self.parts.append((value, conversion, spec))
        return Text(f"\0{len(self.parts) - 1}\0")

    def text(self, value: Any, conversion: str = "s") -> str:
        """``str(value)`` (of conversion "r": ``repr``, "a": ``ascii``), with tokens for symbolic values, in containers too."""
        if is_symbolic(value):
            return self.token(value, conversion)
        if has_token(value):
            return value if conversion == "s" else Text(CONVERSIONS[conversion](str.__getitem__(value, slice(None))))
        if isinstance(value, (list, tuple, dict)) and _is_symbolic_inside(value):
            return Text(CONVERSIONS[conversion](nest.map_structure(self._shown, value)))
        return str(CONVERSIONS[conversion](value))

    def _shown(self, value: Any) -> Any:
        return _Shown(self.token(value, "r")) if is_symbolic(value) else value

    def formatted(self, value: Any, conversion: str, spec: str) -> str:
        """A part of an f-string."""
        if is_symbolic(value):
            return self.token(value, conversion, spec)
        if has_token(value) or (isinstance(value, (list, tuple, dict)) and _is_symbolic_inside(value)):
            if spec:
                raise _unreadable("the format of a")
            return self.text(value, conversion or "s")
        return format(CONVERSIONS[conversion](value), spec)

    def percent(self, template: str, values: Any) -> str:
        """``template % values``."""
        if not has_token(template) and not _is_symbolic_inside(values):
            return template % values
        remaining = iter(values if isinstance(values, tuple) else (values,))

        def replaced(found: re.Match[str]) -> str:
            kind, how, key = found["kind"], found["how"], found["key"]
            if kind == "%":
                return "%"
            if "*" in how:
                raise _unreadable("a width of * in a")
            value = values[key] if key is not None else next(remaining)
            if is_symbolic(value):
                return self.token(value, "%", f"%{how}{kind}")
            if kind in "sra" and not how:
                return self.text(value, kind)
            return f"%{how}{kind}" % (value,)

        return Text(_PERCENT.sub(replaced, str.__getitem__(template, slice(None))))

    def resolved(self, text: str) -> tuple[list[Any], tuple[Any, ...]]:
        """The tensors that the text's tokens stand for, and the text as an attribute: pieces of text and of (operand, number type, conversion, spec)."""
        operands: list[Any] = []
        pieces: list[Any] = []
        for k, piece in enumerate(TOKEN.split(text)):
            if k % 2 == 0:
                pieces.append(piece)
                continue
            value, conversion, spec = self.parts[int(piece)]
            is_number = isinstance(value, Number)
            operands.append(value.strong if is_number else value)
            pieces.append((Operand(len(operands) - 1), numbers.DTYPES[value.kind] if is_number else "", conversion, spec))
        return operands, tuple(pieces)


_Format = object()  # marks a field that is to be converted


class Format(string.Formatter):
    """``str.format`` with tokens for symbolic values."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        """The value of a field."""
        found, first = super().get_field(field_name, args, kwargs)
        if found is not self.get_value(first, args, kwargs) and is_symbolic(self.get_value(first, args, kwargs)):
            raise _unreadable("an attribute in a")
        return found, first

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """The value after a conversion, as a text."""
        return value if conversion is None else (_Format, value, conversion)

    def format_field(self, value: Any, format_spec: str) -> Any:
        """The value as a text."""
        if isinstance(value, tuple) and len(value) == 3 and value[0] is _Format:
            return self._texts.formatted(value[1], value[2], format_spec)
        return self._texts.formatted(value, "", format_spec)


def marked(text: str) -> str:
    """The text; as one that must not be looked into where it holds tokens."""
    return Text(text) if has_token(text) else text


def _is_symbolic_inside(tree: Any) -> bool:
    return any(is_symbolic(v) or has_token(v) for v in nest.flatten(tree))


class _Shown:
    """Prints as a token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __repr__(self) -> str:
        return self._token


def joined(pieces: Sequence[Any]) -> str:
    """The text of one run."""
    return "".join(p if isinstance(p, str) else _shown(*p) for p in pieces)


def _shown(tensor: Any, number: str, conversion: str, spec: str) -> str:
    value = KINDS[number](tensor.item()) if number else tensor
    if conversion == "%":
        return spec % (value,)
    return format(CONVERSIONS[conversion](value), spec)


def _no_types(*args: Any, **kwargs: Any) -> list[Any]:
    return []


def _text_of_variable(self: Variable) -> str:
    if current() is not None and not is_called_by_sampan():
        raise self.unknown(
            "is made into text where that is not recorded", "use print(), str() or an f-string in the function that is converted"
        )
    return repr(self)


def _format_of_variable(self: Variable, spec: str) -> str:
    if current() is not None and not is_called_by_sampan():
        raise _unreadable("the format in a")
    return format(repr(self), spec)


Variable.__str__ = _text_of_variable  # type: ignore[method-assign, assignment]
Variable.__format__ = _format_of_variable  # type: ignore[method-assign, assignment]


@recordable("print", _no_types)
def print_text(pieces: Any, end: str = "\n", file: Any = None, flush: bool = False) -> list[Any]:
    """Print a text when the Program runs."""
    print(joined(pieces), end=end, file=file, flush=flush)
    return []


@recordable("assert", _no_types)
def check(condition: Any, pieces: Any = None) -> list[Any]:
    """Raise AssertionError when the Program runs and the condition does not hold."""
    if not bool(condition):
        raise AssertionError(*(() if pieces is None else (joined(pieces),)))
    return []


@recordable("raise", _no_types)
def fail(kind: Any, pieces: Any) -> list[Any]:
    """Raise an exception when the Program runs and comes to this place. ``kind``: the exception; ``pieces``: its text, where it has tokens."""
    raise kind if pieces is None else type(kind)(joined(pieces))


def attributes(**own: Any) -> dict[str, Any]:
    """The attributes of an Op that acts outside of the Program."""
    return {**own, DYNAMIC: 0, EFFECT: True}
