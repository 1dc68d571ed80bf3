"""StaticFunction: a function that runs as a recorded Program, with a recording for every kind of arguments and settings."""

from __future__ import annotations

import copy
import functools
import inspect
import weakref
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from ..base import nest
from ..base.errors import ArgumentTypeError, ConversionError, message
from ..nn import Layer
from ..tensor import Tensor
from ..tensor.autocast import current_precision
from ..tensor.convert import converted, converted_source, current, recording, running_parts, wants_conversion
from ..tensor.functions import get_default_dtype, in_dynamic_mode, is_grad_enabled
from ..tensor.traced import Traced, recording_here
from .arguments import Arguments, checked_specs, is_data, typed_spec, with_tensors
from .recordings import Recording, Recordings, recording_of
from .settings import is_enabled, show_code, shows_code, tell

#: A part of fewer operators gains less by its Program than the call of it costs.
_SMALLEST_PART = 4
_HELD = "_static_functions"


class StaticFunction:
    """A function that runs as a Program.

    Calls are recorded once for every kind of arguments: their structure, dtypes and sizes (those of ``input_spec`` where one is given), whether gradients
    flow to them, and the values of what is no tensor; for every setting of the layers that run and of the plain variables that are read; and for
    the gradient mode, mixed precision and default dtype around the call.

    Attributes:
        fallback_reason: why calls run eagerly; empty when none does. The layers and functions that it calls are then Programs of their own.
    """

    def __init__(
        self, function: Callable[..., Any], input_spec: Any = None, full_graph: bool = False, instance: Any = None, **options: Any
    ) -> None:
        if isinstance(function, MethodType):
            function, instance = function.__func__, function.__self__
        self._function = function
        self._instance = instance
        self._options = options
        self.full_graph = full_graph
        self.input_spec = input_spec
        self._cache = Recordings(lambda: self.__qualname__)
        self._eager: dict[Any, str] = {}
        self._last: Traced | None = None
        #: What runs as Programs of their own where this one runs eagerly: functions, and methods of layers, which are kept with those.
        self.parts: weakref.WeakSet[StaticFunction] = weakref.WeakSet()
        self._function_parts: dict[Any, StaticFunction] = {}
        #: Whether it is a part of another, and then whether it is called as it is.
        self._is_part = self._is_small = False
        functools.update_wrapper(self, function, updated=())
        self._signature = inspect.signature(function)
        self._positional = _positional(self._signature, skip=instance is not None)
        parameters = list(self._signature.parameters.values())
        self._specs = (
            checked_specs(self.__name__, input_spec, parameters[1:] if instance is not None else parameters)
            if self._is_bindable()
            else {}
        )

    def _is_bindable(self) -> bool:
        """Whether the specs can be matched: a method's are when it is bound to its object."""
        return self._instance is not None or next(iter(self._signature.parameters), "") != "self"

    # ------------------------------------------------------------------ methods

    def __get__(self, instance: Any, owner: Any = None) -> StaticFunction:
        if instance is None:
            return self
        held = functions_of(instance, self)
        found = held.get(None)
        if found is None:
            found = held[None] = StaticFunction(self._function, self.input_spec, self.full_graph, instance, **self._options)
        return found

    @property
    def class_instance(self) -> Any:
        """The object that the method belongs to; None for a function."""
        return self._instance

    @property
    def dygraph_function(self) -> Callable[..., Any]:
        """The function as it was."""
        return self._function if self._instance is None else MethodType(self._function, self._instance)

    def __deepcopy__(self, memo: dict[int, Any]) -> StaticFunction:
        """The same function, of the copy of its object, without recordings."""
        instance = copy.deepcopy(self._instance, memo)
        made = memo[id(self)] = StaticFunction(self._function, self.input_spec, self.full_graph, instance, **self._options)
        return made

    def __repr__(self) -> str:
        return f"<StaticFunction {self.__qualname__}>"

    # ------------------------------------------------------------------ calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current() is not None:
            return converted(self.dygraph_function)(*args, **kwargs)
        if not in_dynamic_mode():
            with recording(recording_here()):
                return converted(self.dygraph_function)(*args, **kwargs)
        if not is_enabled():
            return self.dygraph_function(*args, **kwargs)
        arguments = self._arguments(args, kwargs)
        key = (arguments.key, is_grad_enabled(), current_precision(), get_default_dtype())
        if key in self._eager:
            return self._run_in_parts(args, kwargs)
        try:
            recorded = self._recording(key, arguments)
        except Exception as error:
            if self.full_graph:
                raise
            self._eager[key] = str(error)
            tell(f"{self.__qualname__} runs eagerly: {error}")
            return self._run_in_parts(args, kwargs)
        return recorded.traced.run(arguments.tensors)

    def _run_in_parts(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function eagerly, and the layers and functions that it calls as Programs of their own."""
        with running_parts(self._part):
            return converted(self.dygraph_function)(*args, **kwargs)

    def _part(self, target: Any) -> Callable[..., Any]:
        """What to call in the place of a layer's ``forward``, a function or a method."""
        return self._layer_part(target) if isinstance(target, Layer) else self._function_part(target)

    def _function_part(self, target: Any) -> Callable[..., Any]:
        function = target.__func__ if isinstance(target, MethodType) else target
        owner = getattr(target, "__self__", None)
        if (
            not isinstance(function, FunctionType)
            or not wants_conversion(function)
            or function.__closure__  # made anew by every call
            or inspect.isgeneratorfunction(function)
            or inspect.iscoroutinefunction(function)
            or (owner is not None and not isinstance(owner, Layer))
        ):
            return converted(target)  # type: ignore[no-any-return]
        held = self._function_parts if owner is None else functions_of(owner, self)
        found = held.get(function)
        if found is None:
            found = held[function] = StaticFunction(function, instance=owner)
            found._is_part = True
            self.parts.add(found)
        return lambda *args, **kwargs: found._as_part(target, args, kwargs)

    def _as_part(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of this function where another that runs eagerly makes it."""
        values = nest.flatten([list(args), dict(kwargs)])
        if self._is_small or not is_data((args, kwargs)) or not any(isinstance(v, Tensor) for v in values):
            return converted(target)(*args, **kwargs)
        result = self(*args, **kwargs)
        self._is_small = self._last is not None and len(self._last.block.ops) < _SMALLEST_PART
        return result

    def _layer_part(self, layer: Layer) -> Callable[..., Any]:
        forward = layer.forward
        if not isinstance(forward, MethodType) or not (layer._sub_layers or wants_conversion(forward.__func__)):  # type: ignore[arg-type]
            return forward  # a Program of one operator gains nothing
        held = functions_of(layer, self)
        found = held.get("forward")
        if found is None or found._function is not forward.__func__:
            found = held["forward"] = StaticFunction(forward)
            self.parts.add(found)
        return lambda *args, **kwargs: (found if is_data((args, kwargs)) else forward)(*args, **kwargs)

    @property
    def fallback_reason(self) -> str:
        """Why the last kind of call that runs eagerly does."""
        return next(reversed(self._eager.values()), "")

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        names, defaults = self._positional or ([], [])
        if self._positional and not kwargs and len(names) - len(defaults) <= len(args) <= len(names):
            named = list(zip(names, (*args, *defaults[len(defaults) - len(names) + len(args) :]), strict=True))
        else:
            bound = self._signature.bind(*(args if self._instance is None else (self._instance, *args)), **kwargs)
            bound.apply_defaults()
            named = list(bound.arguments.items())[0 if self._instance is None else 1 :]
        named = [(name, value if isinstance(value, Tensor) else with_tensors(value)) for name, value in named]
        return Arguments(self.__name__, named, self._specs)

    def _call(self, typed: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as a call gives them."""
        bound = inspect.BoundArguments(self._signature, dict(typed))  # type: ignore[arg-type]
        if self._instance is not None:
            first = next(iter(self._signature.parameters))
            bound.arguments = {first: self._instance, **typed}  # type: ignore[assignment]
            return list(bound.args[1:]), bound.kwargs
        return list(bound.args), bound.kwargs

    def _recording(self, key: Any, arguments: Arguments) -> Recording:
        made = self._cache.find(key, None, lambda: self._record(arguments.typed()))
        self._last = made.traced
        return made

    def _record(self, typed: dict[str, Any]) -> Recording:
        if shows_code() and isinstance(self._function, FunctionType):
            show_code(converted_source(self._function))
        own = self._instance.sublayers(include_self=True) if isinstance(self._instance, Layer) else []
        args, kwargs = self._call(typed)
        found = recording_of(self.__qualname__, own, lambda: Traced(self.dygraph_function, args, kwargs))
        if self._is_part and any(k < len(found.traced.inputs) for k, _ in found.traced.updates):
            raise ConversionError(
                message(
                    f"{self.__qualname__}() writes its arguments",
                    "other tensors of the function around it may share their memory",
                )
            )
        tell(f"{self.__qualname__} was recorded: {len(found.traced.program.recorder.block.ops)} operators")
        return found

    # ------------------------------------------------------------------ what was recorded

    def get_traced_count(self) -> int:
        """How many recordings there are."""
        return sum(map(len, self._cache.by_key.values()))

    @property
    def program_cache(self) -> dict[Any, list[Recording]]:
        """The recordings by kind of arguments."""
        return self._cache.by_key

    @property
    def concrete_program(self) -> Traced:
        """The last recording; made from ``input_spec`` when there is none yet.

        Raises:
            ConversionError: there is neither a recording nor an input_spec.
        """
        if self._last is None:
            self._last = self.concrete_program_specify_input_spec(None)
        return self._last

    def concrete_program_specify_input_spec(self, input_spec: Any = None, **_: Any) -> Traced:
        """A recording for arguments that this spec describes; by default the function's own."""
        parameters = list(self._signature.parameters.values())[0 if self._instance is None else 1 :]
        specs = self._specs if input_spec is None else checked_specs(self.__name__, input_spec, parameters)
        if not specs and parameters:
            if self._last is not None:
                return self._last
            raise ConversionError(
                message(
                    f"{self.__qualname__}() was not called yet",
                    "its Program depends on its arguments",
                    "give to_static() an input_spec, or call the function first",
                )
            )
        typed = {name: typed_spec(name, spec) for name, spec in specs.items()}
        return self._record(typed).traced

    @property
    def main_program(self) -> Any:
        """The Program of the last recording."""
        return self.concrete_program.program

    @property
    def inputs(self) -> list[Any]:
        """The Variables of its tensor arguments."""
        return self.concrete_program.inputs

    @property
    def outputs(self) -> list[Any]:
        """The Variables that it returns."""
        return self.concrete_program.outputs

    @property
    def code(self) -> str:
        """The converted code."""
        return converted_source(self._function)  # type: ignore[arg-type]

    def rollback(self) -> Callable[..., Any]:
        """The function as it was; a layer's ``forward`` becomes that again."""
        if self._instance is not None and vars(self._instance).get(self.__name__) is self:
            del vars(self._instance)[self.__name__]
        return self.dygraph_function


class _Held:
    """The StaticFunctions of one object's methods. They hold the object, so they are kept with it: one ends with the other."""

    def __init__(self, owner: Any = None) -> None:
        self.owner = owner
        self.functions: weakref.WeakKeyDictionary[StaticFunction, dict[Any, StaticFunction]] = weakref.WeakKeyDictionary()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Held:
        return _Held()

    def __reduce__(self) -> Any:
        return _Held, ()


def functions_of(instance: Any, asker: StaticFunction) -> dict[Any, StaticFunction]:
    """The StaticFunctions of an object's methods that another one made.

    Raises:
        ArgumentTypeError: the object has no place to keep them.
    """
    try:
        attributes = vars(instance)
    except TypeError:
        told = f"to_static(): {type(instance).__name__} has __slots__"
        why = "what is recorded of a method is kept with its object"
        raise ArgumentTypeError(message(told, why, "add '__dict__' to the slots, or convert a function")) from None
    held = attributes.get(_HELD)
    if held is None or held.owner is not instance:  # of another object, that this one is a shallow copy of
        held = attributes[_HELD] = _Held(instance)
    return held.functions.setdefault(asker, {})  # type: ignore[no-any-return]


def _positional(signature: inspect.Signature, skip: bool) -> tuple[list[str], list[Any]] | None:
    """The names of a function's parameters and the defaults of the last of them; None where some cannot be given by position."""
    parameters = list(signature.parameters.values())[1 if skip else 0 :]
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        return None
    return [p.name for p in parameters], [p.default for p in parameters if p.default is not p.empty]


def require_callable(function: Any) -> None:
    """Raise for what is no function, method or layer."""
    if not callable(function):
        raise ArgumentTypeError(
            message(f"to_static(): got a {type(function).__name__}", "it takes a function, a method or a Layer")
        )
