"""Replaying: what recorded Ops mean, expanded on plain Values for the sizes of one run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .. import _rt
from ..autodiff.differentiate import accumulate_gradients
from ..base import dtypes, nest
from ..base.errors import IRError, SampanError, describe
from ..ir.builder import current_builder
from ..ir.program import Block, Op, Value
from ..ops import primitives as p
from ..ops.define import operator_named
from ..ops.primitives.core import PRIMITIVES
from .expander import RULES, Expander
from .location import add_origin, is_located, origin_of
from .sizes import SIZES, as_number, constant_of

#: Attributes of recorded Ops beside those of the call itself.
DYNAMIC = "@dynamic"  # runs at once, for its sizes or attributes depend on data: how many of its last inputs stand in attributes
PRECISION = "@precision"  # the key of the operand rule that the call was recorded under
WRITES = "@writes"  # of a Python function: which inputs it writes; its last outputs are what they become
FORWARD = "@forward"  # of a gradient: the name of the forward Op, whose inputs come first
COUNT = "@count"  # of a gradient: how many inputs the forward Op has
PRESENT = "@present"  # of a gradient: which outputs' gradients are given, after the forward Op's inputs
BACKWARD = "@backward"  # appends the Op's gradient: (recorder, op, outputs with gradients, those, inputs that want one) -> theirs
LOWER = "@lower"  # of a gradient of a gradient: COUNT, PRESENT and WANTED of those before it, that of the forward Op first
EFFECT = "@effect"  # the Op acts outside of the Program, so that it runs even where nothing depends on it
WANTED = "@wanted"  # of a gradient: which inputs' gradients are its outputs

#: Gives types where data decides the sizes: a structure of (dtype, shape), -1 for unknown sizes.
TypeRule = Callable[..., Any]


@dataclass(frozen=True)
class Operand:
    """The place of a tensor in an attribute: the number of the Op's input."""

    index: int

    def __repr__(self) -> str:
        return f"operand({self.index})"


@dataclass(frozen=True)
class RecordedFunction:
    """A public Python function that is recorded as one Op.

    rule: its types, when data decides the sizes of its results; None where they do not for these arguments.
    backward: appends its gradient, as the attribute ``BACKWARD`` does for one Op.
    numbers: its parameters that are numbers, or lists of them, though tensors may hold them.
    """

    name: str
    function: Callable[..., Any]
    signature: inspect.Signature
    rule: TypeRule | None = None
    backward: Callable[..., Any] | None = None
    numbers: frozenset[str] = frozenset()

    @staticmethod
    def takes(value: Any) -> bool:
        """Whether the value can be an attribute."""
        if isinstance(value, dict):
            return all(isinstance(k, str) and RecordedFunction.takes(v) for k, v in value.items())
        if isinstance(value, (list, tuple)):
            return all(map(RecordedFunction.takes, value))
        if isinstance(value, slice):
            return all(map(RecordedFunction.takes, (value.start, value.stop, value.step)))
        return value is None or value is Ellipsis or isinstance(value, (bool, int, float, complex, str, Operand, _rt.DType))


#: Every recorded function by the name of its Ops.
FUNCTIONS: dict[str, RecordedFunction] = {}


def map_attribute(value: Any, function: Callable[[Any], Any]) -> Any:
    """The attribute with its leaves changed by the function; lists become tuples, so that attributes compare and hash."""
    if isinstance(value, dict):
        return {k: map_attribute(v, function) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(map_attribute(v, function) for v in value)
    if isinstance(value, slice):
        return slice(*(map_attribute(v, function) for v in (value.start, value.stop, value.step)))
    return function(value)


@contextmanager
def recording_gradients() -> Iterator[None]:
    """Inside, functions see the gradient mode that is usual; those that turn it off mean their own calls."""
    old = _rt.set_grad_enabled(True)
    try:
        yield
    finally:
        _rt.set_grad_enabled(old)


def expand_call(
    expander: Expander, name: str, attributes: dict[str, Any], inputs: Sequence[Value], probe: int | None = None
) -> Any:
    """Append what a recorded call means; gives what the call returns, a structure of Values and other things.

    probe: what stands for numbers that are known at run time only, where only types are asked for.
    """
    own = {k: v for k, v in attributes.items() if not k.startswith("@")}
    function = FUNCTIONS.get(name)
    with recording_gradients(), expander.ruled(RULES.get(attributes.get(PRECISION))):
        if function is not None:
            return _expand_function(expander, function, own, inputs, probe, attributes)
        if name in PRIMITIVES:
            return expander.append(name, tuple(inputs), own).outputs
        definition = operator_named(name)
        if definition is None:
            raise IRError(f"no operator is called {name!r}")
        count = attributes.get(DYNAMIC)
        if count is not None or SIZES in attributes:
            own = map_attribute(
                own, lambda v: _number_of(expander, name, inputs[v.index], probe) if isinstance(v, Operand) else v
            )
            inputs = inputs[: len(inputs) - (len(attributes[SIZES]) if count is None else count)]
        args = definition.arguments(Op(name, tuple(inputs), own), inputs)
        return expander.call(definition, args)


def _number_of(expander: Expander, name: str, value: Value, probe: int | None) -> Any:
    """The number that a Value stands for in an attribute; the probe where only a run knows it."""
    found = constant_of(value, expander.known)
    if found is not None:
        return as_number(found)
    if probe is None:
        raise IRError(f"{name} depends on data and cannot be compiled")
    return probe if value.numel == 1 else (probe,) * value.numel


def _expand_function(
    expander: Expander,
    function: RecordedFunction,
    own: dict[str, Any],
    inputs: Sequence[Value],
    probe: int | None,
    attributes: dict[str, Any],
) -> Any:
    used = 1 + max((v.index for v in nest.flatten(_plain(own)) if isinstance(v, Operand)), default=-1)
    if len(inputs) > used:  # the last inputs are the keys that it draws
        expander.keys = iter(inputs[used:])
    given: list[Any] = list(inputs)
    for k in attributes.get(SIZES, ()):
        given[k] = _number_of(expander, function.name, inputs[k], probe)
    arguments = map_attribute(own, lambda v: given[v.index] if isinstance(v, Operand) else v)
    bound = inspect.BoundArguments(function.signature, dict(arguments))  # type: ignore[arg-type]
    try:
        if DYNAMIC in attributes:
            if probe is None:
                raise IRError(f"{function.name} depends on data and cannot be compiled")
            types = None if function.rule is None else function.rule(*bound.args, **bound.kwargs)
            if types is not None:
                return _of_types(types, probe)
        return function.function(*bound.args, **bound.kwargs)
    finally:
        expander.keys = None


def _plain(value: Any) -> Any:
    """The attribute with slices as lists, for a walk over its leaves."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return [value.start, value.stop, value.step] if isinstance(value, slice) else value


def _of_types(types: Any, probe: int) -> Any:
    if isinstance(types, list):
        return [_of_types(t, probe) for t in types]
    if len(types) and not isinstance(types[0], str):
        return tuple(_of_types(t, probe) for t in types)
    dtype, shape = types
    return Value(dtype, tuple(probe if n == -1 else n for n in shape))


def values_of(expander: Expander, attributes: dict[str, Any], inputs: Sequence[Value], result: Any) -> list[Value]:
    """The Values of a recorded Op's outputs: the results, then what the inputs that it writes became."""
    found = [v for v in nest.flatten(result) if isinstance(v, Value)]
    found += [expander.latest(inputs[k]) for k in attributes.get(WRITES, ())]
    known = {id(v) for v in inputs}
    # a result of its own even where the function gives its operand back: gradients are told apart by Values
    return [p.append("reshape", v, shape=tuple(v.shape)) if id(v) in known else v for v in found]


@dataclass
class _Expansion:
    """Where the Ops of a recorded Op's expansion are."""

    inputs: list[Value]
    ops: list[Op]
    outputs: list[Value]


class Replay:
    """Expands a list of recorded Ops; remembers each expansion, for the gradients that come later."""

    def __init__(self, expander: Expander, values: dict[int, Value]) -> None:
        self.expander = expander
        self.values = values
        self._expansions: dict[int, _Expansion] = {}

    def run(self, ops: Sequence[Op]) -> None:
        """Append the Ops' expansions; ``values`` gets the Values of their outputs."""
        for op in ops:
            inputs = [self.values[id(v)] for v in op.inputs]
            origin = self.expander.location = origin_of(op.name, op.location)
            try:
                outputs = self._meaning(op, inputs)
            except SampanError as error:
                if not is_located(error):
                    _add_operands(error, op, inputs)
                add_origin(error, origin)
                raise
            is_tracked = any(not getattr(v, "stop_gradient", True) for v in op.inputs)
            for variable, value in zip(op.outputs, outputs, strict=True):
                is_stopped = getattr(variable, "stop_gradient", False) or getattr(variable, "is_severed", False)
                if is_tracked and is_stopped and dtypes.is_differentiable(value.dtype):
                    value = p.detach(value)
                value.weak = variable.weak
                self.values[id(variable)] = value

    def _meaning(self, op: Op, inputs: list[Value]) -> list[Value]:
        if FORWARD not in op.attributes:
            return self._expand(op, op.name, op.attributes, inputs).outputs
        outermost = tuple(op.attributes[k] for k in (COUNT, PRESENT, WANTED))
        return self._gradients(op, op.attributes, inputs, (*op.attributes.get(LOWER, ()), outermost)).outputs

    def _expand(self, key: Op, name: str, attributes: dict[str, Any], inputs: list[Value]) -> _Expansion:
        start = len(self.expander.block.ops)
        self.expander.versions = {}  # an Op takes the versions that it was recorded with, whatever is written before it in this piece
        result = expand_call(self.expander, name, attributes, inputs)
        outputs = values_of(self.expander, attributes, inputs, result)
        found = self._expansions[id(key)] = _Expansion(inputs, self.expander.block.ops[start:], outputs)
        return found

    def _gradients(self, op: Op, attributes: dict[str, Any], inputs: list[Value], levels: tuple[Any, ...]) -> _Expansion:
        """The expansion of a gradient, together with those of what it is the gradient of. ``levels``: of each, the forward Op's gradient first, how many
        inputs its forward Op has, which outputs' gradients are given, and which inputs' gradients are wanted."""
        count, present, wanted_places = levels[-1]
        below = self._expansions.get(id(op.of))
        if below is None:
            own = op.of or op
            if len(levels) > 1:
                below = self._gradients(own, attributes, inputs[:count], levels[:-1])
            else:
                forward = {k: v for k, v in attributes.items() if k not in (FORWARD, COUNT, PRESENT, WANTED, LOWER)}
                below = self._expand(own, attributes[FORWARD], forward, inputs[:count])
        given: list[Value | None] = [None] * len(below.outputs)
        for k, g in zip(present, inputs[count:], strict=True):
            given[k] = g
        start = len(self.expander.block.ops)
        block = Block(below.inputs, below.ops, tuple(below.outputs))
        wanted = [below.inputs[k] for k in wanted_places]
        result = accumulate_gradients(self.expander, block, below.outputs, given, wanted)
        outputs = [p.full(tuple(v.shape), 0, v.dtype) if g is None else g for g, v in zip(result, wanted, strict=True)]
        found = self._expansions[id(op)] = _Expansion(
            [*below.inputs, *inputs[count:]], [*below.ops, *self.expander.block.ops[start:]], outputs
        )
        return found


def _add_operands(error: SampanError, op: Op, inputs: Sequence[Value]) -> None:
    """Append what the statement's operands are in this run, by their Variables' names."""
    shown = ", ".join(f"{getattr(v, 'name', '')} = {describe(value)}" for v, value in zip(op.inputs, inputs, strict=True))
    if shown and error.args:
        error.args = (f"{error.args[0]}\n  received: {shown}", *error.args[1:])


def decided_by_data(rule: TypeRule) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function whose results, or what it does, data decides: where it is recorded, it runs at once. ``rule``: see ``recordable``."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        setattr(function, "data_rule", rule)  # noqa: B010
        return function

    return mark


def takes_numbers(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function some of whose parameters are numbers, or lists of them, though tensors may hold them: see ``recordable``."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        setattr(function, "numbers", frozenset(names))  # noqa: B010
        return function

    return mark


def recordable(
    name: str, rule: TypeRule | None = None, numbers: frozenset[str] = frozenset()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Record calls of the function as one Op of this name wherever a Program is being recorded; elsewhere it runs as it is.

    rule: the types of its results, when data decides their sizes: such a function runs at once, between compiled pieces.
    numbers: parameters that are numbers, or lists of them, though tensors may hold them: those that follow from sizes are known where a piece is compiled;
    with others the function runs at once.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        recorded = FUNCTIONS[name] = RecordedFunction(name, function, inspect.signature(function), rule, numbers=numbers)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            record = getattr(current_builder(), "call_function", None)
            return function(*args, **kwargs) if record is None else record(recorded, args, kwargs)

        return call

    return decorate
