"""What converted code calls: functions that are converted themselves, Python's own functions where they meet tensors, and changes of containers."""

from __future__ import annotations

import builtins
import functools
import math
import threading
from collections import defaultdict
from collections.abc import Callable
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any

import numpy as np

from ... import _rt
from ...base.errors import ConversionError, ShapeError, message
from ...ir.program import Value
from ..autograd import PyLayer, PyLayerContext
from ..build import OPS
from ..python_layers import record_python_layer
from ..variable import Variable
from . import journal, numbers
from .blocks import around, current
from .branches import RAISED, choose, located
from .functions import converted
from .guards import note_layer
from .iteration import Symbolic, convert_enumerate, convert_map, convert_range, convert_reversed, convert_zip, items, size_of
from .lists import RecordedList, convert_add_n, convert_list, convert_sum, is_grown, joining
from .merging import is_symbolic, is_tensor
from .numbers import Number
from .optionals import Optional, content_of, present_of
from .outside import acts_outside
from .texts import Format, marked


def as_symbolic(value: Any) -> Any:
    """While a Program is recorded, a Value for an eager tensor, whose elements may differ in the next run; anything else as it is."""
    blocks = current()
    return blocks.value(value) if blocks is not None and isinstance(value, _rt.Tensor) else value


def truth(value: Any) -> Any:
    """``bool(value)``: a Number where only a run knows."""
    value = as_symbolic(value)
    if is_grown(value):
        return value.length > 0
    if isinstance(value, Number):
        return value if value.kind is bool else value != 0
    if not is_symbolic(value):
        return bool(value)
    _require_one_element(value, "has no single truth value", "use .any() or .all()")
    return numbers.cast(value, bool)


class LoopTest:
    """While it is entered, the test of a loop is evaluated: what holds in its first round says nothing of the others."""

    _thread = threading.local()

    def __enter__(self) -> None:
        self._thread.depth = getattr(self._thread, "depth", 0) + 1

    def __exit__(self, *error: object) -> None:
        self._thread.depth -= 1

    @classmethod
    def is_entered(cls) -> bool:
        """Whether this thread evaluates one."""
        return getattr(cls._thread, "depth", 0) > 0


def decided(value: Any) -> Any:
    """``truth(value)``, as a bool where known sizes decide it."""
    holds = truth(value)
    if isinstance(holds, Variable) and holds.is_fixed and holds.known is not None and not LoopTest.is_entered():
        return bool(holds.known[0].item())
    return holds


def _require_one_element(value: Any, what: str, fix: str) -> None:
    if any(n not in (1, -1) for n in value.shape):
        raise ShapeError(message(f"a tensor of shape {list(value.shape)} {what}", "only a tensor of one element has one", fix))


def _number_caster(kind: type) -> Callable[..., Any]:
    def convert(*args: Any, **kwargs: Any) -> Any:
        value: Any = as_symbolic(args[0]) if len(args) == 1 and not kwargs else None
        if isinstance(value, Number):
            return numbers.of(numbers.as_kind(value, kind))
        if is_symbolic(value):
            if kind is bool:
                return truth(value)
            _require_one_element(value, f"cannot become {'an int' if kind is int else 'a float'}", "index it first")
            return numbers.cast(value, kind)
        return kind(*args, **kwargs)

    return convert


def convert_len(value: Any) -> Any:
    """``len``, also of tensors with an unknown first size."""
    if is_symbolic(value) and value.ndim and value.shape[0] == -1:
        return size_of(value, 0)
    if isinstance(value, (Symbolic, RecordedList)):
        return value.length
    return len(value)


def convert_isinstance(value: Any, classes: Any) -> bool:
    """``isinstance``: a symbolic value is what it will be in eager mode."""
    if isinstance(value, Number):
        return issubclass(value.kind, classes)
    if is_symbolic(value):
        return issubclass(_rt.Tensor, classes) or isinstance(value, classes)
    return isinstance(value, classes)


def convert_type(*args: Any) -> Any:
    """``type``: a symbolic value is what it will be in eager mode."""
    if len(args) != 1:
        return type(*args)
    value = args[0]
    return (
        value.kind
        if isinstance(value, Number)
        else _rt.Tensor
        if is_symbolic(value)
        else list
        if isinstance(value, RecordedList)
        else type(value)
    )


def convert_any(iterable: Any) -> Any:
    """``any``, also of symbolic truths."""
    return _chain(iter(items(iterable)), True)


def convert_all(iterable: Any) -> Any:
    """``all``, also of symbolic truths."""
    return _chain(iter(items(iterable)), False)


def _chain(remaining: Any, ends: bool) -> Any:
    for value in remaining:
        found = truth(value)
        if is_symbolic(found):
            rest = functools.partial(_chain, remaining, ends)
            here = functools.partial(bool, ends)
            return choose(found, here if ends else rest, rest if ends else here, "any()" if ends else "all()")
        if found is ends:
            return ends
    return not ends


def _extreme(name: str, original: Callable[..., Any], operator: str) -> Callable[..., Any]:
    def convert(*args: Any, **kwargs: Any) -> Any:
        found = list(items(args[0])) if len(args) == 1 and not isinstance(args[0], Symbolic) else list(args)
        if not any(is_symbolic(as_symbolic(v)) for v in found):
            return original(found, **kwargs) if len(args) == 1 else original(*args, **kwargs)
        if kwargs:
            raise located(
                f"{name}() with key= or default= has tensors among its arguments",
                "only a run knows which of them wins",
                f"use paddle.{name}imum() or .{name}()",
            )
        best = found[0]
        for value in found[1:]:
            is_better = value < best if operator == "<" else value > best
            kept, other = best, value
            best = _choice(truth(is_better), other, kept, f"{name}()")
        return best

    return convert


def _choice(condition: Any, when_true: Any, when_false: Any, what: str) -> Any:
    if not is_symbolic(condition):
        return when_true if condition else when_false
    return choose(condition, lambda: when_true, lambda: when_false, what)


def convert_print(*args: Any, **kwargs: Any) -> None:
    """``print``: while a Program is recorded, at every run of it."""
    blocks = current()
    if blocks is None:
        print(*args, **kwargs)
    else:
        blocks.print(args, kwargs)


def convert_str(*args: Any, **kwargs: Any) -> str:
    """``str``: of a symbolic value a token, which the run replaces."""
    blocks = current()
    if blocks is None or len(args) != 1 or kwargs:
        return str(*args, **kwargs)
    return blocks.texts.text(args[0])  # type: ignore[no-any-return]


def _text_of(conversion: str, original: Callable[[Any], str]) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        blocks = current()
        return original(value) if blocks is None else blocks.texts.text(value, conversion)

    return convert


def convert_format(value: Any, spec: str = "") -> str:
    """``format``, also of symbolic values."""
    blocks = current()
    return format(value, spec) if blocks is None else blocks.texts.formatted(value, "", spec)


def _text_method(template: str, name: str) -> Callable[..., str]:
    """``format`` or ``join`` of a text, with symbolic values among the arguments."""
    blocks: Any = current()
    if name == "format":
        return lambda *args, **kwargs: marked(Format(blocks.texts).vformat(template, args, kwargs))
    return lambda parts: marked(str.join(template, parts))


def convert_round(value: Any, *digits: Any) -> Any:
    """``round``, also of symbolic numbers without digits."""
    if isinstance(value, Number) and not digits:
        return value if value.kind is int else numbers.of(OPS["cast"](OPS["round"](numbers.as_kind(value, float)), "int64"))
    return round(value, *digits)


def convert_partial(function: Any, *args: Any, **kwargs: Any) -> Any:
    """``functools.partial`` of the converted function."""
    return functools.partial(call(function), *args, **kwargs)


def convert_defaultdict(*args: Any, **kwargs: Any) -> Any:
    """``collections.defaultdict``, whose values are made by converted code."""
    if args and args[0] is not None:
        args = (call(args[0]), *args[1:])
    return journal.born(defaultdict(*args, **kwargs))


def convert_default_rng(*args: Any, **kwargs: Any) -> Any:
    """``numpy.random.default_rng``: with a seed its numbers are the same in every call."""
    made = np.random.default_rng(*args, **kwargs)
    return journal.born(made) if args or kwargs else made


_REPLACED: dict[Any, Callable[..., Any]] = {
    builtins.int: _number_caster(int), builtins.float: _number_caster(float), builtins.bool: _number_caster(bool), builtins.len: convert_len,
    builtins.range: convert_range, builtins.enumerate: convert_enumerate, builtins.zip: convert_zip, builtins.reversed: convert_reversed,
    builtins.isinstance: convert_isinstance, builtins.any: convert_any, builtins.all: convert_all, builtins.print: convert_print, builtins.str: convert_str,
    builtins.max: _extreme("max", max, ">"), builtins.min: _extreme("min", min, "<"), builtins.round: convert_round,
    functools.partial: convert_partial, defaultdict: convert_defaultdict,
    np.random.default_rng: convert_default_rng, builtins.list: convert_list, builtins.repr: _text_of("r", repr),
    builtins.ascii: _text_of("a", ascii), builtins.format: convert_format, builtins.type: convert_type, builtins.sum: convert_sum, OPS["add_n"]: convert_add_n,
    OPS["stack"]: joining("stack", True),
    OPS["concat"]: joining("concat", False),
}  # fmt: skip
#: Python's functions that take functions or many items.
_REPLACED[builtins.map] = convert_map(lambda function: call(function))
#: Methods of tensors that need the elements, which a recorded Program does not have.
_READERS = frozenset({"numpy", "numpy_view", "__array__"})


def _require_repeatable(function: Any) -> None:
    """Refuse what eager mode does anew in every call and a run of the Program does not repeat: random numbers, files, clocks, logs."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, journal.GENERATORS) and not journal.is_fresh(owner):
        raise located(
            f"{function.__name__}() of {type(owner).__module__.partition('.')[0]}'s random numbers inside a function that is being converted",
            "it is drawn once, while the Program is recorded, and every run would use the same number",
            "use paddle.rand() and the like, or draw before the call and pass the number on",
        )
    if acts_outside(function) and not journal.is_fresh(owner):
        raise located(
            f"{getattr(function, '__qualname__', function)}() inside a function that is being converted reaches past the program",
            "it would happen once, while the Program is recorded, and not in every run",
            "call it before or after the function, or leave this function eager with jit.not_to_static",
        )


def call(function: Any) -> Any:
    """What to call in the place of the function. What is None or a value goes into functions and layers that are converted as it is."""
    found = _called(function)
    blocks = current()
    if blocks is None or not blocks.has_optionals or _takes_optionals(function, found):
        return found
    return _WithOptionals(found)


def _takes_optionals(function: Any, found: Any) -> bool:
    if isinstance(function, type):
        return function.__module__ != "builtins"
    forward = getattr(type(function), "forward", None)
    if forward is not None:
        return converted(forward) is not forward
    is_tensors = isinstance(getattr(function, "__self__", None), (_rt.Tensor, Value))
    return found is not function and isinstance(function, (FunctionType, MethodType)) and not is_tensors


class _WithOptionals:
    """A call of a function that knows no Optional: what is None or a value is a branch with a call on either side. Where the function refuses None, the Program
    raises its error when it comes there."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = next((v for v in (*args, *kwargs.values()) if isinstance(v, Optional)), None)
        if found is None:
            return self._function(*args, **kwargs)

        def call_with(value: Any) -> Any:
            return self(*[value if v is found else v for v in args], **{k: value if v is found else v for k, v in kwargs.items()})

        return choose(
            present_of(found),
            lambda: call_with(content_of(found, None)),
            lambda: _or_failing(call_with),
            "a call with None or a value",
        )


def _or_failing(call_with: Callable[[Any], Any]) -> Any:
    try:
        return call_with(None)
    except ConversionError:
        raise
    except Exception as error:
        refusal = TypeError(str(error)) if isinstance(error, TypeError) else error
        setattr(refusal, RAISED, True)
        raise refusal from None


def _called(function: Any) -> Any:
    if current() is not None:
        _require_repeatable(function)
    elif isinstance(function, (FunctionType, MethodType)) and around() is not None:
        return around()(function)
    if isinstance(function, (FunctionType, MethodType)):
        owner = getattr(function, "__self__", None)
        if isinstance(owner, (_rt.Tensor, Value)) and current() is not None:
            return _tensor_method(function, owner)
        _watch_change(function, owner)
        if isinstance(owner, type) and issubclass(owner, PyLayer) and function.__name__ == "apply" and current() is not None:
            return lambda *args, **kwargs: record_python_layer(owner, args, kwargs, call, journal.born(PyLayerContext()))
        return converted(function)
    if isinstance(function, BuiltinMethodType):
        owner = function.__self__
        if isinstance(owner, _rt.Tensor) and current() is not None:
            return _tensor_method(function, owner)
        if isinstance(owner, str) and function.__name__ in ("format", "join") and current() is not None:
            return _text_method(owner, function.__name__)
        if _watch_change(function, owner):
            return function
    try:
        replaced = _REPLACED.get(function)
    except TypeError:  # not hashable
        replaced = None
    if replaced is not None:
        return replaced
    if isinstance(function, functools.partial):
        return functools.partial(call(function.func), *function.args, **function.keywords)
    if isinstance(function, type):
        return _maker(function) if journal.is_noting() else function
    return converted(function)


def _watch_change(method: Any, owner: Any) -> bool:
    """Whether the method changes a container, which is noted."""
    kind: Any = type(owner)
    changing = journal.CHANGING.get(kind)
    if changing is None or method.__name__ not in changing:
        return False
    journal.watch(owner, "")
    return True


def _maker(kind: type) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        made = kind(*args, **kwargs)
        is_seeded = bool(args or kwargs) or not isinstance(made, journal.GENERATORS)
        return journal.born(made) if is_seeded else made

    return make


def running_layer(layer: Any) -> Any:
    """What to call in the place of the layer's ``forward`` while a Program is recorded, or where parts of a function are."""
    if current() is None:
        return around()(layer)
    note_layer(layer)
    return call(layer.forward)


def _item(tensor: Any, *place: int) -> Any:
    """``tensor.item(...)``: a number that only a run knows."""
    if is_symbolic(tensor) and str(tensor.dtype).startswith("complex"):
        return tensor.item(*place)  # refused
    found = tensor if not place else OPS["reshape"](tensor, [-1])[place[0]] if len(place) == 1 else tensor[place]
    _require_one_element(found, "is no single number", "give item() the place of one")
    return numbers.cast(found, numbers.python_kind(str(found.dtype)))


def _listed(tensor: Any) -> Any:
    """``tensor.tolist()`` of a few elements: numbers that only a run knows."""
    if tensor.ndim == 0:
        return _item(tensor)
    if -1 in tensor.shape or math.prod(tensor.shape) > _MOST_LISTED:
        return tensor.tolist()  # refused
    return RecordedList([_listed(tensor[k]) for k in range(tensor.shape[0])])


#: Methods of tensors that give Python numbers.
_NUMBER_READERS: dict[str, Callable[..., Any]] = {"item": _item, "tolist": _listed}
#: The most elements that a list of numbers of them is made for.
_MOST_LISTED = 64


def _tensor_method(function: Any, owner: Any) -> Any:
    if function.__name__ in _NUMBER_READERS:
        return functools.partial(_NUMBER_READERS[function.__name__], as_symbolic(owner))
    if isinstance(owner, Value):
        return converted(function)
    if function.__name__ in _READERS:
        raise located(
            f".{function.__name__}() of a tensor inside a function that is being converted",
            "its elements are those of this moment; a later run of the Program would still use them",
            "use the tensor itself, or leave this function eager with jit.not_to_static",
        )
    return function


def readable_shape(value: Any) -> Any:
    """``value.shape``: with Numbers for sizes that only a run knows."""
    shape = value.shape
    if is_symbolic(value) and is_tensor(value) and -1 in shape and current() is not None:
        return type(shape)(size_of(value, k) if n == -1 else n for k, n in enumerate(shape))
    return shape


def readable_dtype(value: Any) -> Any:
    """``value.dtype``: of symbolic values what tensors have."""
    dtype = value.dtype
    return _rt.dtypes[dtype] if is_symbolic(value) and isinstance(dtype, str) else dtype
