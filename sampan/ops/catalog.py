"""Every operator: the table that builders, the interpreter and passes ask, and the operators' numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base import nest
from ..base.errors import IRError
from ..ir import interpreter
from ..ir.builder import Builder, Type
from ..ir.program import Op, Program, Value
from .define import OPERATORS, OpDef, operator_named
from .primitives.core import PRIMITIVES, Array, Primitive


class Table:
    """Types, NumPy meaning and gradient of every Op, primitive or composite."""

    def primitive(self, op: Op) -> Primitive | None:
        """The Op's primitive, or None for a composite."""
        return PRIMITIVES.get(op.name)

    def definition(self, op: Op) -> OpDef:
        """The composite's definition."""
        found = operator_named(op.name)
        if found is None:
            raise IRError(f"no operator is called {op.name!r}")
        return found

    def infer(self, op: Op) -> list[Type]:
        """The dtype and shape of each output."""
        primitive = PRIMITIVES.get(op.name)
        if primitive is not None:
            return primitive.infer(op)
        return [(v.dtype, v.shape) for v in nest.flatten(self.definition(op).structure(op, self)) if v is not None]

    def evaluate(self, op: Op, arrays: list[Array]) -> list[Array]:
        """The outputs by NumPy; a composite's definition is expanded and interpreted."""
        primitive = PRIMITIVES.get(op.name)
        if primitive is None:
            return interpreter.run(expand_op(op), arrays, self)
        results = primitive.evaluate(*arrays, **op.attributes)
        return list(results) if isinstance(results, tuple) else [results]

    def gradient(self, op: Op, gradients: Sequence[Value | None]) -> Sequence[Value | None] | None:
        """The gradients of the inputs by the Op's own rule; None when a composite has none and is to be expanded."""
        primitive = PRIMITIVES.get(op.name)
        rule = primitive.gradient if primitive is not None else self.definition(op).gradient
        if rule is not None:
            return rule(op, *gradients)
        return (None,) * len(op.inputs) if primitive is not None else None


TABLE = Table()


def expand_op(op: Op) -> Program:
    """The composite's definition as a Program over the Op's inputs."""
    builder = Builder(TABLE, op.name)
    builder.location = op.location
    definition = TABLE.definition(op)
    with builder.active():
        inputs = [builder.argument(v.dtype, v.shape, weak=v.weak) for v in op.inputs]
        results = definition.body(*definition.arguments(op, inputs))
    return builder.finish(*(v for v in nest.flatten(results) if v is not None))


def numbers() -> dict[str, int]:
    """A number for every operator, primitives first, in the order of definition."""
    names: list[Any] = [*PRIMITIVES, *OPERATORS]
    return {name: k for k, name in enumerate(names)}
