"""Public callables of all operators, built from their definitions."""

from __future__ import annotations

import copyreg
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .. import _rt
from ..base.places import parse_place
from ..ir.program import Value
from ..ops.define import OPERATORS, OpDef
from .dispatch import Dispatcher
from .explained import explained
from .random import next_key
from .replay import TypeRule, recordable

#: Every operator's callable by its internal name, in-place forms under theirs (``add``, ``add_``).
OPS: dict[str, Callable[..., Any]] = {}
_OWN = frozenset(vars(Value)) | {"dtype", "name", "op", "shape", "weak"}
_modules: dict[str, dict[str, Callable[..., Any]]] = {}


def _keyed(definition: OpDef, op: Any, name: str) -> Callable[..., Any]:
    """The callable of a random operator: each call draws the next key."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs, key=next_key())

    functools.update_wrapper(call, op, assigned=("__doc__",), updated=())
    call.__name__ = call.__qualname__ = name
    call.__signature__ = op.__signature__.replace(  # type: ignore[attr-defined]
        parameters=[p for p in op.__signature__.parameters.values() if p.name != "key"]
    )
    return call


def _creating(function: Callable[..., Any], has_shape: bool) -> Callable[..., Any]:
    """The callable of an operator that makes tensors: with ``device``, ``requires_grad`` and ``pin_memory``, and ``zeros(2, 3)`` for ``zeros([2, 3])``."""

    def call(
        *args: Any,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> Any:
        if device is not None:
            parse_place(call.__name__, device)
        if has_shape and len(args) > 1 and all(type(a) is int for a in args):
            args = (list(args),)
        made = function(*args, **kwargs)
        if requires_grad:
            made.stop_gradient = False
        return made

    signature = function.__signature__  # type: ignore[attr-defined]
    keywords = [
        inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d)
        for n, d in (("device", None), ("requires_grad", False), ("pin_memory", False))
    ]
    call.__doc__ = function.__doc__
    call.__name__ = call.__qualname__ = function.__name__
    call.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *keywords])  # type: ignore[attr-defined]
    return call


def _callable(definition: OpDef, inplace_name: str = "") -> Callable[..., Any]:
    name = inplace_name or definition.name
    function = Dispatcher(definition, inplace_name).op
    if any(p.name == "key" for p in definition.parameters):
        function = _keyed(definition, function, name)
    return _creating(function, definition.parameters[0].name == "shape") if definition.creates else function


def named(name: str) -> Callable[..., Any]:
    """The operator of this name, for what was pickled."""
    return OPS[name]


def _reduced(op: Any) -> Any:
    """An operator pickles by its name; one that a user made like a function, by where it stands."""
    name: str = op.__name__
    return (named, (name,)) if OPS.get(name) is op else op.__reduce__()


copyreg.pickle(_rt.Op, _reduced)


def publish(module: str, name: str, function: Callable[..., Any]) -> None:
    """Make the function public as ``sampan.<module>.<name>`` (an empty module: ``sampan.<name>``)."""
    if inspect.isfunction(function) and function.__qualname__ == name:  # it pickles by where it is public
        function.__module__ = f"{__name__.partition('.')[0]}.{module}".rstrip(".")
    _modules.setdefault(module, {})[name] = function


def public_names(module: str) -> dict[str, Callable[..., Any]]:
    """What operators contribute to the public module: names to callables."""
    return dict(_modules.get(module, {}))


def _with_out(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result if out is None else OPS["clone"](result, out=out)

    signature = inspect.signature(function)
    keyword = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    call.__signature__ = signature.replace(parameters=[*signature.parameters.values(), keyword])  # type: ignore[attr-defined]
    return call


def composed(
    api: str | Sequence[str] = "",
    method: bool | str | Sequence[str] = False,
    rule: TypeRule | None = None,
    takes_out: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Publish a plain function over operators, such as one whose result's shape depends on data; also as methods of Tensor.

    rule: the types of its results in a Program, where it reads data: see ``replay.recordable``.
    takes_out: with the keyword ``out``, a tensor that receives the result.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function = explained(function)
        if rule is not None:
            function = recordable(function.__name__, rule)(function)
        if takes_out:
            function = _with_out(function)
        for path in (api,) if isinstance(api, str) else api:
            if path:
                module, _, name = path.rpartition(".")
                publish(module, name, function)
        attached = (
            ()
            if method is False
            else (function.__name__,)
            if method is True
            else (method,)
            if isinstance(method, str)
            else tuple(method)
        )
        for name in attached:
            attach(name, function)
        OPS[function.__name__] = function
        return function

    return decorate


def attach(name: str, function: Any) -> None:
    """Add a method or property to Tensor and to symbolic Values, whose own attributes (``numel``) stay."""
    setattr(_rt.Tensor, name, function)
    if name not in _OWN:
        setattr(Value, name, function)


def build() -> None:
    """Build and publish every definition's callables."""
    for definition in OPERATORS.values():
        forms = [(definition.name, _callable(definition))] + [(n, _callable(definition, n)) for n in definition.inplace]
        for name, function in forms:
            OPS[name] = function
        for path in definition.api:
            module, _, name = path.rpartition(".")
            publish(module, name, forms[0][1])
            for inplace_name, function in forms[1:]:
                publish(module, inplace_name, function)
        for name in definition.methods:
            attach(name, forms[0][1])
        for name, function in forms[1:]:
            if definition.api or definition.methods:
                attach(name, function)
