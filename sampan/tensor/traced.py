"""Traced: a function recorded as a Program for arguments of certain types, and run by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _rt
from ..base import nest
from ..ir.program import Block
from .convert import Number, converted, current
from .convert.effects import Effect, effects_of
from .convert.guards import Uses
from .convert.journal import Journal
from .convert.lists import ListContent, opened
from .convert.merging import Column, has_token
from .convert.optionals import Optional, content_of, present_of
from .convert.recorded import RecordedBlocks, tracing
from .convert.texts import joined
from .program import Program
from .runner import Runner, live_ops
from .variable import Variable


@dataclass(frozen=True)
class Typed:
    """The type of a tensor argument; -1 for sizes that may differ from call to call."""

    dtype: str
    shape: tuple[int, ...]
    stop_gradient: bool = True
    name: str = ""


def typed(value: Any, name: str = "") -> Any:
    """A ``Typed`` of this name for a tensor or array; anything else as it is."""
    if isinstance(value, np.ndarray):
        value = _rt.from_numpy(np.array(value), True)
    return Typed(value.dtype.name, tuple(value.shape), value.stop_gradient, name) if isinstance(value, _rt.Tensor) else value


@dataclass(frozen=True)
class Result:
    """A leaf of what the function returns that a run computes. ``number``: the Python type that it becomes."""

    index: int
    number: type | None = None

    def of(self, results: Sequence[Any]) -> Any:
        """The leaf of one run."""
        found = results[self.index]
        return found if self.number is None else self.number(found.item())


@dataclass(frozen=True)
class Items:
    """A list of unknown length in what the function returns: the structure of an item, with a ``Result`` for each leaf's array."""

    item: Any

    def of(self, results: Sequence[Any]) -> Any:
        """The list of one run."""
        leaves = nest.flatten(self.item)
        columns = [[v if r.number is None else r.number(v.item()) for v in results[r.index]] for r in leaves]
        rows = [list(row) for row in zip(*columns, strict=True)]
        return [nest.pack_like([self.item], row)[0] for row in rows]


@dataclass(frozen=True)
class TextResult:
    """A text among what the function returns that holds values of the run. ``pieces``: texts, and (number of a result, number type, conversion, spec)."""

    pieces: tuple[Any, ...]

    def of(self, results: Sequence[Any]) -> str:
        """The text of one run."""
        return joined([p if isinstance(p, str) else (results[p[0]], *p[1:]) for p in self.pieces])


@dataclass(frozen=True)
class OptionalResult:
    """None, or a value among what the function returns: where ``present``, a ``Result``, holds."""

    present: Result
    value: Any

    def of(self, results: Sequence[Any]) -> Any:
        """What it is in one run."""
        return filled(self.value, results) if self.present.of(results) else None


def filled(structure: Any, results: Sequence[Any]) -> Any:
    """What the function returns, by the results of one run."""
    kinds = (Result, Items, TextResult, OptionalResult)
    return nest.map_structure(lambda v: v.of(results) if isinstance(v, kinds) else v, structure)


def _result_of(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What the function gives. An exception whose text holds values of the run is raised by the run."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        if not any(map(has_token, error.args)):
            raise
        blocks: Any = current()
        blocks.fail(error)
        return None


def recording_here() -> RecordedBlocks:
    """Blocks for converted code inside the Program that is being built."""
    return RecordedBlocks()


class Traced:
    """A function recorded for arguments of certain types.

    Args:
        function: what is recorded, converted.
        args, kwargs: its arguments, a ``Typed`` in the place of each tensor.
        program: what it is recorded into; by default a new one.
        finish: is called with what the function returns, may record more, and gives what is returned instead. Programs that hold gradients draw
            the random numbers of their nested blocks beforehand.
        is_frozen: tensors of outside that it does not write keep the elements that they have now.
        name: goes into profiles.

    Attributes:
        program: the Program.
        inputs, outputs: the Variables of tensor arguments and of what it returns, in order.
        structure: what it returns, a ``Result`` in the place of each leaf that a run computes.
        effects: what it changes outside of itself.
        functions, layers: what it ran.
        tensors: the tensors of outside that it reads or writes: parameters, buffers, and others.
        replaced: the effects that put new tensors in the place of some of those.
        block: what runs: the inputs, then the tensors, are its arguments.
        updates: (number of an argument, what it becomes).
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        *,
        program: Program | None = None,
        finish: Callable[[Any], Any] | None = None,
        is_frozen: bool = False,
        name: str = "to_static",
    ) -> None:
        self.program = Program() if program is None else program
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self._by_argument: dict[int, Variable] = {}
        recorder = self.program.recorder
        recorder.draws_inside = finish is None
        given_args, given_kwargs = nest.map_structure(self._placed, (list(args), dict(kwargs)))
        with Uses() as uses, Journal() as journal:
            try:
                with tracing(recorder):
                    result = _result_of(converted(function), given_args, given_kwargs)
                    if finish is not None:
                        result = finish(result)
                    self.structure = nest.map_structure(self._leaf, opened(result))
            except BaseException:
                journal.undo()
                raise
        self.effects: list[Effect] = effects_of(journal, (result, given_args, given_kwargs))
        self._effect_results = [[self._leaf(v) for v in effect.symbolic] for effect in self.effects]
        self.functions, self.layers = list(uses.functions.values()), list(uses.layers.values())
        self._prepare(is_frozen, name)

    def _placed(self, leaf: Any) -> Any:
        if not isinstance(leaf, Typed):
            return leaf
        if id(leaf) in self._by_argument:  # one tensor, given twice
            return self._by_argument[id(leaf)]
        name = (
            leaf.name
            if leaf.name and leaf.name not in self.program.variables
            else self.program.recorder.fresh_name(leaf.name or "input")
        )
        made = Variable(leaf.dtype, leaf.shape, name, stop_gradient=leaf.stop_gradient)
        self.inputs.append(self.program.add(made))
        self._by_argument[id(leaf)] = made
        return made

    def _leaf(self, value: Any) -> Any:
        """What stands for a leaf of the function's result."""
        if isinstance(value, Optional):
            present = present_of(value)
            content = None if present is False else nest.map_structure(self._leaf, content_of(value, None))
            return content if isinstance(present, bool) else OptionalResult(self._leaf(present), content)
        if isinstance(value, ListContent):
            return Items(nest.map_structure(self._leaf, value.item))
        if has_token(value):
            blocks: Any = current()
            operands, pieces = blocks.text(value)
            first = len(self.outputs)
            self.outputs += operands
            return TextResult(tuple(p if isinstance(p, str) else (first + p[0].index, *p[1:]) for p in pieces))
        if isinstance(value, Column):
            self.outputs.append(self.program.recorder.operand(value.as_array()))
            return Result(len(self.outputs) - 1, value.kind.number)
        if not isinstance(value, (Variable, _rt.Tensor)):
            return value
        strong, kind = (value.strong, value.kind) if isinstance(value, Number) else (value, None)
        self.outputs.append(self.program.recorder.operand(strong))
        return Result(len(self.outputs) - 1, kind)

    def _prepare(self, is_frozen: bool, name: str) -> None:
        program = self.program
        held = {id(v): t for t, v in program.recorder.tensors.values()}
        updates = [(v, new) for v, new in program.updates() if id(v) in held]
        updates += [(v, program.current(v)) for v in self.inputs if program.current(v) is not v]
        wanted = [*self.outputs, *(new for _, new in updates)]
        ops = live_ops(program.recorder.block.ops, wanted)
        used = {id(v) for op in ops for v in op.inputs} | {id(v) for v in wanted} | {id(v) for v, _ in updates}
        captured = [v for v in program.recorder.block.arguments if id(v) in held and id(v) in used]
        numbers = [v for schedule in program.schedules for v in schedule.variables]
        arguments = [*self.inputs, *captured, *numbers]
        self.tensors = [held[id(v)] for v in captured]
        self.replaced = [e for e in self.effects if any(e.old is t for t in self.tensors)]
        self._reread = [(k, e) for k, t in enumerate(self.tensors) for e in self.replaced if e.old is t]
        places = {id(v): k for k, v in enumerate(arguments)}
        self.block = Block(arguments, ops, tuple(self.outputs))
        self._is_single = self.structure == Result(0) and not self.effects
        self.updates = [(places[id(v)], new) for v, new in updates]
        written = {id(v) for v, _ in updates}
        frozen = {places[id(v)]: held[id(v)] for v in captured if id(v) not in written} if is_frozen else {}
        self._runner = Runner(self.block, self.updates, name, frozen)

    @property
    def main_program(self) -> Program:
        """The Program."""
        return self.program

    @property
    def parameters(self) -> list[Any]:
        """The trained tensors that it uses."""
        return [t for t in self.tensors if hasattr(t, "trainable")]

    def run(self, tensors: Sequence[Any], numbers: Sequence[float] = ()) -> Any:
        """What the function returns for these tensor arguments; ``numbers`` are those that the Program's schedules give."""
        held = self.tensors
        if self._reread:  # attributes that the function gives new tensors: the next call reads those
            held = list(held)
            for k, effect in self._reread:
                held[k] = effect.place.read()
        results = self._runner([*tensors, *held, *numbers])
        if self._is_single:
            return results[0]
        for effect, leaves in zip(self.effects, self._effect_results, strict=True):
            effect.apply(leaf.of(results) for leaf in leaves)
        return filled(self.structure, results)
