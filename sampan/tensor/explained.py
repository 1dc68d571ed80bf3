"""Plain public functions whose failures name the argument: their annotations say what each may be."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from .. import _rt
from ..base.errors import ArgumentError, ArgumentTypeError, SampanError, describe, message
from ..base.kinds import KINDS, Kind, one_of, refusal
from ..ir.program import Value
from ..ops.define import SPELLINGS
from .location import begins_with_operator, is_inside_sampan, name_operator

F = TypeVar("F", bound=Callable[..., Any])

#: Kinds of errors that Python raises where an argument is of a type that the function was not written for.
_BY_TYPE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)


def explained(function: F) -> F:
    """The function; when it fails, and an argument is not what its annotation says, the error says so.

    Only arguments whose kind has a range are checked before the call.
    """
    checks: list[_Check] | None = None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checks
        if checks is None:
            checks = [c for c in _checks(function) if any(k.is_allowed for k in c.kinds)]
        _require(checks, function.__name__, args, kwargs)
        try:
            return function(*args, **kwargs)
        except _BY_TYPE as error:
            spelled = _spelled(function, args, kwargs)
            if spelled is not None:
                return call(*args, **spelled)
            if isinstance(error, SampanError) and str(error).startswith(f"{function.__name__}("):
                raise
            text = _misfit(function, args, kwargs)
            if text:
                raise ArgumentTypeError(text) from error
            if not is_inside_sampan(error):
                raise
            if isinstance(error, SampanError) or begins_with_operator(error):
                name_operator(error, function.__name__)
                raise
            raise _unexpected(error)(_received(function.__name__, function, args, kwargs, error)) from error

    return call  # type: ignore[return-value]


def explain(module: dict[str, Any], names: Iterable[str]) -> None:
    """Put the explained forms of a module's functions in their place; they pickle as that module's."""
    made: dict[Any, Any] = {}  # a function of two names stays one
    for name in names:
        function = module[name]
        if not inspect.isfunction(function):
            continue
        if function not in made:
            made[function] = explained(function)
            made[function].__module__ = module["__name__"]
        module[name] = made[function]


class Explained:
    """A base of public classes, whose arguments must be what their annotations say: the error names the class and the argument."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__init__")
        if own is not None and _is_own(cls):
            cls.__init__ = _explained_init(own)  # type: ignore[method-assign]


def _is_own(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _explained_init(function: F) -> F:
    checks: list[_Check] | None = None

    @functools.wraps(function)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal checks
        if checks is None:
            checks = _checks(function)
        _require(checks, lambda: _name_of(self), (self, *args), kwargs)
        try:
            function(self, *args, **kwargs)
        except _BY_TYPE as error:
            spelled = _spelled(function, (self, *args), kwargs)
            if spelled is not None:
                return init(self, *args, **spelled)
            is_inner = _is_own(type(self)) and type(self).__init__ is not init  # the subclass explains itself
            if is_inner or isinstance(error, SampanError):
                raise
            name = _name_of(self)
            text = _misfit(function, (self, *args), kwargs, name)
            if text:
                raise ArgumentTypeError(text) from error
            raise _unexpected(error)(_received(name, function, (self, *args), kwargs, error)) from error

    return init  # type: ignore[return-value]


def _unexpected(error: Exception) -> type[SampanError]:
    """The class for an error of Python's or NumPy's that arguments of the right types brought about."""
    return ArgumentTypeError if isinstance(error, (TypeError, AttributeError)) else ArgumentError


def _name_of(made: Any) -> str:
    """The public class that a user knows the object by: its own, or the framework's nearest above it."""
    return next(c.__name__ for c in type(made).__mro__ if _is_own(c) and not c.__name__.startswith("_"))


class _Check(NamedTuple):
    """One parameter, where it stands among the positional arguments, and what it may be."""

    name: str
    position: int
    default: Any
    kinds: tuple[Kind, ...]


def _checks(function: Callable[..., Any]) -> list[_Check]:
    """The parameters whose annotations are made of known kinds."""
    found = []
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        kinds = _kinds(parameter)
        is_label = (
            parameter.name == "name" and parameter.default is None
        )  # nothing depends on it, and ported programs write ReLU(True)
        if kinds and not is_label:
            place = position if parameter.kind is parameter.POSITIONAL_OR_KEYWORD else sys.maxsize
            found.append(_Check(parameter.name, place, parameter.default, kinds))
    return found


def _require(checks: list[_Check], called: str | Callable[[], str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for name, position, default, kinds in checks:
        value = args[position] if position < len(args) else kwargs.get(name, default)
        if value is default or value is inspect.Parameter.empty or _fits(kinds, value):
            continue
        refused = ArgumentError if any(k.is_type(_plain(value)) for k in kinds) else ArgumentTypeError
        raise refused(refusal(called if isinstance(called, str) else called(), name, value, kinds))


def _fits(kinds: tuple[Kind, ...], value: Any) -> bool:
    """Whether the value is of one of the kinds; what is known only when a Program runs is."""
    return any(k.fits(value) for k in kinds) or isinstance(value, Value) or any(k.fits(_plain(value)) for k in kinds)


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
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    shown = ", ".join(f"{parameter} = {describe(value)}" for parameter, value in given.items() if parameter != "self")
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
        kinds = _kinds(signature.parameters[name])
        if kinds and value is not signature.parameters[name].default and not _fits(kinds, value):
            return refusal(called, name, value, kinds)
    return ""


def _kinds(parameter: inspect.Parameter) -> tuple[Kind, ...]:
    """What a parameter may be; empty where the annotation says something that is not known here."""
    if parameter.annotation is parameter.empty or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return ()
    annotation = parameter.annotation
    kinds = [
        _kind(part) for part in _alternatives(annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))
    ]
    return () if None in kinds else tuple(k for k in kinds if k is not None)


def _alternatives(annotation: str) -> list[str]:
    """The parts of a union, split outside of brackets."""
    return [part.strip() for part in re.split(r"\|(?![^\[]*\])", annotation)]


def _kind(annotation: str) -> Kind | None:
    """The kind of one part of an annotation; None for one that is not known here."""
    if annotation in _ALL:
        return _ALL[annotation]
    words = re.fullmatch(r"Literal\[(.*)\]", annotation)
    if words:
        return one_of(ast.literal_eval(f"({words[1]},)"))
    sequence = re.fullmatch(r"(?:Sequence|list|tuple)\[(\w+).*\]", annotation)
    if sequence and sequence[1] in _ALL:
        return _list_of(_ALL[sequence[1]])
    return None


def _list_of(kind: Kind) -> Kind:
    return Kind(
        f"a list of {kind.plural}",
        lambda v: isinstance(v, (list, tuple)) and all(kind.is_type(e) for e in v),
    )


#: The kinds that signatures name, tensors among them.
_ALL = KINDS | {"Tensor": Kind("a Tensor", lambda v: isinstance(v, (_rt.Tensor, Value)), plural="Tensors")}


def _plain(value: Any) -> Any:
    """A tensor of one element as that, in lists too."""
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value.item() if isinstance(value, _rt.Tensor) and value.size == 1 else value
