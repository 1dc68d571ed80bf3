"""Plain public functions whose failures name the argument: their annotations say what each may be."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .. import _rt
from ..base.errors import ArgumentError, ArgumentTypeError, SampanError, describe, message
from ..ir.program import Value
from ..ops.define import SPELLINGS

F = TypeVar("F", bound=Callable[..., Any])

#: Kinds of errors that Python raises where an argument is of a type that the function was not written for.
_BY_TYPE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)

_WORDS = {
    "Tensor": "a Tensor",
    "int": "an integer",
    "float": "a number",
    "bool": "True or False",
    "str": "a string",
    "None": "None",
}
_PLURALS = {"Tensor": "Tensors", "int": "integers", "float": "numbers", "bool": "bools", "str": "strings"}


def explained(function: F) -> F:
    """The function; when it fails, and an argument is not what its annotation says, the error says so.

    Nothing is checked as long as nothing fails: a call costs no more than entering the wrapper.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except _BY_TYPE as error:
            spelled = _spelled(function, args, kwargs)
            if spelled is not None:
                return call(*args, **spelled)
            if isinstance(error, SampanError) and str(error).startswith(f"{function.__name__}("):
                raise
            text = _misfit(function, args, kwargs)
            if not text:
                raise
            raise ArgumentTypeError(text) from error

    return call  # type: ignore[return-value]


class Explained:
    """A base of public classes: when making one fails, and an argument is not what its annotation says, the error says so."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__init__")
        if own is not None and _is_own(cls):
            cls.__init__ = _explained_init(cls, own)  # type: ignore[method-assign]


def _is_own(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _explained_init(kind: type, function: F) -> F:
    @functools.wraps(function)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            function(self, *args, **kwargs)
        except _BY_TYPE as error:
            spelled = _spelled(function, (self, *args), kwargs)
            if spelled is not None:
                return init(self, *args, **spelled)
            is_inner = _is_own(type(self)) and type(self).__init__ is not init  # the subclass explains itself
            if is_inner or isinstance(error, SampanError):
                raise
            name = (type(self) if _is_own(type(self)) else kind).__name__
            text = _misfit(function, (self, *args), kwargs, name)
            if text:
                raise ArgumentTypeError(text) from error
            refused = ArgumentTypeError if isinstance(error, (TypeError, AttributeError)) else ArgumentError
            raise refused(_received(name, function, (self, *args), kwargs, error)) from error

    return init  # type: ignore[return-value]


def _spelled(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The keywords by the function's own names, where other spellings alone keep the call from being one; else None."""
    signature = inspect.signature(function)
    own = signature.parameters
    spelled = {SPELLINGS[k] if k not in own and SPELLINGS.get(k) in own else k: v for k, v in kwargs.items()}
    if spelled.keys() == kwargs.keys() or len(spelled) < len(kwargs):
        return None
    try:
        signature.bind(*args, **spelled)
    except TypeError:
        return None
    return spelled


def _received(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> str:
    given = list(inspect.signature(function).bind(*args, **kwargs).arguments.items())[1:]
    shown = ", ".join(f"{parameter} = {describe(value)}" for parameter, value in given)
    return message(f"{name}(): an argument has a type or value that it does not take", str(error), f"received: {shown}")


def _misfit(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], called: str = "") -> str:
    """What is wrong with the first argument that does not fit its annotation; empty when all do."""
    signature, called = inspect.signature(function), called or function.__name__
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        parameters = [p for p in signature.parameters.values() if p.name != "self"]
        return message(
            f"{called}(): {error}", f"it takes ({', '.join(str(p).split(':')[0].split('=')[0].strip() for p in parameters)})"
        )
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        annotation = inspect.formatannotation(parameter.annotation).strip("'")
        is_plain = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if not is_plain or parameter.annotation is parameter.empty or value is parameter.default:
            continue
        kinds = _alternatives(annotation)
        if not any(_fits(kind, value) for kind in kinds):
            return message(f"{called}(): {name} is {describe(value)}", f"it must be {_wanted(kinds)}")
    return ""


def _alternatives(annotation: str) -> list[str]:
    """The parts of a union, split outside of brackets."""
    return [part.strip() for part in re.split(r"\|(?![^\[]*\])", annotation)]


def _wanted(kinds: list[str]) -> str:
    words = []
    for kind in kinds:
        inside = re.fullmatch(r"(?:Sequence|list|tuple)\[(\w+).*\]", kind)
        words.append(f"a list of {_PLURALS.get(inside[1], inside[1])}" if inside else _WORDS.get(kind, kind))
    return " or ".join(words)


def _fits(kind: str, value: Any) -> bool:
    """Whether the value is of the annotated kind; true for kinds that are not known here."""
    if isinstance(value, _rt.Tensor) and kind in ("int", "float", "bool"):
        return value.size == 1
    sequence = re.fullmatch(r"(?:Sequence|list|tuple)\[(\w+).*\]", kind)
    if sequence:
        return isinstance(value, (list, tuple)) and all(_fits(sequence[1], v) for v in value)
    checks: dict[str, Callable[[Any], bool]] = {
        "Tensor": lambda v: isinstance(v, (_rt.Tensor, Value)),
        "int": lambda v: isinstance(v, (int, np.integer)) and not isinstance(v, bool),
        "float": lambda v: isinstance(v, (int, float, np.number)),
        "bool": lambda v: isinstance(v, (bool, int, np.bool_)),
        "str": lambda v: isinstance(v, str),
        "None": lambda v: v is None,
    }
    return kind not in checks or checks[kind](value)
