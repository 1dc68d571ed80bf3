"""Converted functions: which are, and the new function objects, which share globals, closure and defaults with the user's own."""

from __future__ import annotations

import ast
import functools
import sys
import sysconfig
import types
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from ...base.errors import ArgumentTypeError, ConversionError, message
from .guards import note_function
from .source import source_of
from .statements import Site, rewritten
from .syntax import HELPERS, LATER, Mangler, assign, at, constant, function

_PACKAGE = str(Path(__file__).resolve().parents[2])
_PLACES = {name: str(Path(path).resolve()) for name, path in sysconfig.get_paths().items()}
_LEFT_ALONE = "_sampan_left_alone"

_ignored: set[str] = set()
_codes: dict[CodeType, tuple[CodeType, Any] | ConversionError] = {}
_made: weakref.WeakKeyDictionary[FunctionType, Any] = weakref.WeakKeyDictionary()
#: Code objects of converted functions, which are not converted again.
_results: set[CodeType] = set()
#: The code of functions that blocks became, and the names that are free in the user's function around.
block_owners: dict[CodeType, frozenset[str]] = {}
_helpers_of: list[Callable[[tuple[Site, ...], str], Any]] = []


def set_helpers(factory: Callable[[tuple[Site, ...], str], Any]) -> None:
    """What gives converted code its helpers: called with the function's sites and its name."""
    _helpers_of[:] = [factory]


def leave_alone(target: Any) -> Any:
    """Mark a function or class, whose code is not converted; gives it."""
    setattr(target, _LEFT_ALONE, True)
    return target


def ignore_modules(modules: Iterable[types.ModuleType]) -> None:
    """Do not convert functions of these modules and what is inside them."""
    for module in modules:
        if not isinstance(module, types.ModuleType):
            raise ArgumentTypeError(message(f"ignore_module(): got a {type(module).__name__}", "it takes a list of modules"))
        _ignored.add(module.__name__)


def converted(target: Any) -> Any:
    """The target with conversion: a new function for a user's function or method, the target itself for anything else.

    A function whose source cannot be found stays as it is: conditions on symbolic values are refused in it.
    """
    if isinstance(target, MethodType):
        made = converted(target.__func__)
        return target if made is target.__func__ else MethodType(made, target.__self__)
    if isinstance(target, FunctionType):
        return _converted_function(target)
    if isinstance(target, functools.partial):
        return functools.partial(converted(target.func), *target.args, **target.keywords)
    method = next((vars(kind)["__call__"] for kind in type(target).__mro__ if "__call__" in vars(kind)), None)
    if isinstance(method, FunctionType) and wants_conversion(method):
        return MethodType(converted(method), target)
    return target


def _converted_function(target: FunctionType) -> Any:
    note_function(target)
    found = _made.get(target)
    if found is None:
        found = target
        if wants_conversion(target):
            try:
                found = convert(target)
            except ConversionError:
                found = target
        _made[target] = found
    return found


def wants_conversion(target: FunctionType) -> bool:
    """Whether the function is the user's own code."""
    code = target.__code__
    if code in _results or getattr(target, _LEFT_ALONE, False) or hasattr(target, "__wrapped_eager__"):
        return False
    module = target.__module__ or ""
    if any(module == name or module.startswith(f"{name}.") for name in _ignored):
        return False
    filename = code.co_filename
    if filename.startswith((_PACKAGE, "<frozen")):
        return False
    if filename.startswith((_PLACES["purelib"], _PLACES["platlib"])):
        return _knows_sampan(target.__globals__)
    return not (
        filename.startswith((_PLACES["stdlib"], _PLACES["platstdlib"])) or module.partition(".")[0] in sys.stdlib_module_names
    )


def _knows_sampan(names: dict[str, Any]) -> bool:
    """Whether the module of an installed library uses sampan: others have nothing to convert."""
    package = __name__.partition(".")[0]
    return any(
        str(getattr(value, "__name__" if isinstance(value, types.ModuleType) else "__module__", "")).partition(".")[0] == package
        for value in list(names.values())
    )


def convert(target: FunctionType) -> FunctionType:
    """A new function that does what the target does, and records branches and loops whose conditions are symbolic.

    Raises:
        ConversionError: its source cannot be found.
    """
    code = target.__code__
    found = _codes.get(code)
    if found is None:
        try:
            found = _compiled(target)
        except ConversionError as error:
            found = error
        _codes[code] = found
    if isinstance(found, ConversionError):
        raise found
    made_code, helpers = found
    cells = dict(zip(code.co_freevars, target.__closure__ or (), strict=True))
    cells[HELPERS] = CellType(helpers)
    closure = tuple(cells[n] for n in made_code.co_freevars)
    made = FunctionType(made_code, target.__globals__, target.__name__, target.__defaults__, closure)
    made.__kwdefaults__ = target.__kwdefaults__
    made.__dict__.update(target.__dict__)
    for attribute in ("__doc__", "__module__", "__qualname__", "__annotations__"):
        setattr(made, attribute, getattr(target, attribute))
    return made


def converted_source(target: FunctionType) -> str:
    """The converted function's code, as Python text."""
    return ast.unparse(_rewritten(target, []))


def _rewritten(target: FunctionType, sites: list[Site]) -> ast.FunctionDef:
    source = source_of(target)
    node: Any = rewritten(source.definition, sites)
    if source.class_name:
        node = Mangler(source.class_name).visit(node)
    if isinstance(node, ast.Lambda):
        made = function("_lambda", [at(ast.Return(node.body), node.body)])
        made.args = node.args
        node = at(made, node)
    node.decorator_list = []
    node.returns = None
    arguments = node.args
    arguments.defaults = []
    arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None
    return node  # type: ignore[no-any-return]


def _compiled(target: FunctionType) -> tuple[CodeType, Any]:
    code = target.__code__
    sites: list[Site] = []
    node = _rewritten(target, sites)
    node.name = f"{HELPERS}_function"  # not the user's name, which it must find where that finds it
    # a function around it whose variables are the closure's, so that they are free in it
    outer = function("_outer", [*(assign(n, constant(None)) for n in (*code.co_freevars, HELPERS)), node])
    module = ast.Module([ast.fix_missing_locations(at(outer, node))], [])
    future = code.co_flags & _FUTURES
    compiled = compile(module, code.co_filename, "exec", flags=future, dont_inherit=True)
    found = _inner(_inner(compiled, "_outer"), node.name)
    found = _finished(found, (code.co_name, getattr(code, "co_qualname", "")))
    return found, _helpers_of[0](tuple(sites), code.co_name)


_FUTURES = 0x1FF0000  # the flags of `from __future__ import ...`


def _inner(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def _finished(code: CodeType, names: tuple[str, str], is_block: bool = False, free: frozenset[str] = frozenset()) -> CodeType:
    """The code with the functions that its blocks became under the user's function's name, so that tracebacks read as usual; all are known from now on.

    names: those of the user's function. free: the names that are free in it.
    """
    if not is_block:
        free = frozenset(code.co_freevars)
    constants = []
    for c in code.co_consts:
        if isinstance(c, CodeType):
            is_made = c.co_name.startswith(HELPERS) or LATER in c.co_varnames[: c.co_argcount + c.co_kwonlyargcount]
            inner = names if is_made else (c.co_name, getattr(c, "co_qualname", ""))
            c = _finished(c, inner, is_made, free)
        constants.append(c)
    changes: dict[str, Any] = {"co_name": names[0], "co_consts": tuple(constants)}
    if names[1]:
        changes["co_qualname"] = names[1]
    found = code.replace(**changes)
    _results.add(found)
    if is_block:
        block_owners[found] = free
    return found
