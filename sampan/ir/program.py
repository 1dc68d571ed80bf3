"""Program, Block, Op and Value: one IR for an operator's definition and for a whole model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Attribute = Any  # None, bool, int, float, complex, str, or tuples of them


class TypeName(str):
    """The dtype of a Value: its name, with the attribute ``name`` of a tensor's dtype, so that functions serve Values as they serve tensors."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name itself."""
        return self


_TYPE_NAMES: dict[str, TypeName] = {}


def type_name(dtype: str) -> TypeName:
    """The one TypeName of this dtype."""
    return _TYPE_NAMES.get(dtype) or _TYPE_NAMES.setdefault(dtype, TypeName(dtype))


class Value:
    """One tensor in a Program: the result of an Op, or an argument of a Block."""

    __slots__ = ("__dict__", "dtype", "name", "op", "shape", "weak")

    #: Set by the tensor layer: ``operators[name](*operands)`` serves ``x + y`` and the methods of a Value.
    operators: dict[str, Callable[..., Any]] = {}

    def __init__(self, dtype: str, shape: tuple[int, ...], op: Op | None = None, name: str = "", weak: bool = False) -> None:
        self.dtype = type_name(dtype)
        self.shape = shape
        self.op = op
        self.name = name
        self.weak = weak  # made from a Python scalar: it lifts the kind of a type, never the width

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"%{self.name or '?'}: {self.dtype}{list(self.shape)}"

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError(
            "a symbolic Value has no truth value while a Program is being built; use cond() or where(), or jit.to_static for `if`"
        )


def _install(name: str, swapped: bool = False, operator: str | None = None) -> None:
    def method(self: Value, *others: Any) -> Any:
        function = Value.operators[operator or name]
        return function(*others, self) if swapped else function(self, *others)

    setattr(Value, name, method)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"):
    _install(f"__{_name}__")
    _install(f"__r{_name}__", swapped=True, operator=f"__{_name}__")
for _name in ("neg", "pos", "abs", "invert", "getitem", "setitem", "eq", "ne", "lt", "le", "gt", "ge"):
    _install(f"__{_name}__")


@dataclass(eq=False, slots=True)
class Op:
    """One statement: ``outputs = name(inputs) {attributes}``, with nested blocks for control flow.

    A nested block uses nothing from outside: what it needs are the Op's inputs, which its arguments stand for.
    """

    name: str
    inputs: tuple[Value, ...]
    attributes: dict[str, Attribute] = field(default_factory=dict)
    outputs: tuple[Value, ...] = ()
    blocks: tuple[Block, ...] = ()
    location: str = ""
    role: str = ""  # of a recorded Program's Ops: "" forward, "backward", "optimize"
    of: Op | None = None  # of a recorded gradient: the Op that it is the gradient of


@dataclass(eq=False, slots=True)
class Block:
    """A list of Ops over arguments, giving results."""

    arguments: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    results: tuple[Value, ...] = ()


@dataclass(eq=False)
class Program:
    """A named Block with no free Values. ``inputs`` and ``outputs`` are its Block's arguments and results."""

    name: str
    body: Block = field(default_factory=Block)

    @property
    def inputs(self) -> list[Value]:
        """The arguments, in order."""
        return self.body.arguments

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The results, in order."""
        return self.body.results

    @property
    def ops(self) -> list[Op]:
        """The outermost Ops, in order."""
        return self.body.ops


def walk(block: Block) -> Iterator[Op]:
    """Every Op of the block and of the blocks inside it, an Op before its blocks' Ops."""
    for op in block.ops:
        yield op
        for inner in op.blocks:
            yield from walk(inner)
