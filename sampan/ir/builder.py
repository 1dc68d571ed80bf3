"""Builder: appends Ops to a Block, with the types given by an operator table."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from ..base.errors import ShapeError
from .program import Attribute, Block, Op, Program, Value

Type = tuple[str, tuple[int, ...]]


class OperatorTable(Protocol):
    """What the IR asks of a set of operators."""

    def infer(self, op: Op) -> list[Type]:
        """The dtype and shape of each output; raises ShapeError or DTypeError on operands that do not fit."""


_state = threading.local()


def _countable(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape, if its elements and their bytes can be counted in 64 bits."""
    sizes = [n for n in shape if isinstance(n, int)]
    if math.prod(sizes) >= 1 << 59 or any(n >= 1 << 59 for n in sizes):
        raise ShapeError(f"the result would have shape {list(shape)}, more elements than memory can hold")
    return shape


def current_builder() -> Builder | None:
    """The innermost active builder of this thread, or None."""
    stack = getattr(_state, "stack", None)
    return stack[-1] if stack else None


@contextmanager
def no_builder() -> Iterator[None]:
    """Inside, no builder of this thread is active."""
    stack = _state.__dict__.setdefault("stack", [])
    stack.append(None)
    try:
        yield
    finally:
        stack.pop()


def set_outermost(builder: Builder | None, old: Builder | None) -> None:
    """Make ``builder`` this thread's outermost one in the place of ``old``; None: none."""
    stack = _state.__dict__.setdefault("stack", [])
    if old is not None:
        stack[:] = [b for b in stack if b is not old]
    if builder is not None:
        stack.insert(0, builder)


class Builder:
    """Appends to a Block of a Program.

    ``keep`` decides which composite operators stay as one Op; the others are expanded where they are called.
    ``constants`` are merged, so that one scalar appears once.
    """

    def __init__(self, table: OperatorTable, name: str = "program", block: Block | None = None) -> None:
        self.table = table
        self.program = Program(name, block or Block())
        self.block = self.program.body
        self.location = ""
        self.keep: Any = None
        self._constants: dict[Any, Value] = {}

    @contextmanager
    def active(self) -> Iterator[Builder]:
        """Make this the builder that operators called on Values append to."""
        stack = _state.__dict__.setdefault("stack", [])
        stack.append(self)
        try:
            yield self
        finally:
            stack.pop()

    def argument(self, dtype: str, shape: tuple[int, ...], name: str = "", weak: bool = False) -> Value:
        """A new argument of the block."""
        value = Value(dtype, tuple(shape), name=name, weak=weak)
        self.block.arguments.append(value)
        return value

    def append(
        self, name: str, inputs: tuple[Value, ...], attributes: dict[str, Attribute], blocks: tuple[Block, ...] = ()
    ) -> Op:
        """The new Op, its outputs typed by the table."""
        op = Op(name, tuple(inputs), attributes, (), blocks, self.location)
        op.outputs = tuple(Value(dtype, _countable(shape), op) for dtype, shape in self.table.infer(op))
        self.block.ops.append(op)
        return op

    def constant(self, value: Any, dtype: str, weak: bool = False) -> Value:
        """A 0-D constant; equal ones are one Value."""
        key = (repr(value), type(value), dtype, weak)
        found = self._constants.get(key)
        if found is None:
            found = self.append("constant", (), {"value": value, "dtype": dtype}).outputs[0]
            found.weak = weak
            self._constants[key] = found
        return found

    def finish(self, *results: Value) -> Program:
        """The Program, with these results."""
        self.block.results = tuple(results)
        return self.program
