"""Showing operators' results to Python while they run: what the checks for NaN and the operator statistics are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..base import nest
from ..ir.builder import Builder
from ..ir.program import Program, Value
from ..ir.rewrite import inline
from ..ops.catalog import TABLE
from ..ops.define import OpDef
from ..ops.primitives.host import OBSERVERS, watch

#: observer(operator, result, operands), on arrays.
Observer = Callable[[str, Any, Sequence[Any]], None]


@dataclass(frozen=True)
class Watch:
    """Which operators' results an observer sees. ``key`` stands for it in signatures: equal keys, equal behaviour.

    operators: the names of those to watch; None: all. skipped: names to leave out.
    Views, which compute nothing, are not watched.
    """

    key: str
    operators: frozenset[str] | None = None
    skipped: frozenset[str] = frozenset()

    def wants(self, definition: OpDef) -> bool:
        """Whether results of this operator are to be seen."""
        name = definition.name
        return not definition.is_view and name not in self.skipped and (self.operators is None or name in self.operators)

    def on_result(self, definition: OpDef, result: Any, operands: Sequence[Value]) -> Any:
        """The traced result, each of its Values watched."""
        if not self.wants(definition):
            return result
        return nest.map_structure(lambda v: watch(v, operands, self.key, definition.name) if isinstance(v, Value) else v, result)

    def on_gradients(self, program: Program, name: str) -> Program:
        """The backward Program of the operator with its gradients watched."""
        if name in self.skipped or (self.operators is not None and name not in self.operators):
            return program
        builder = Builder(TABLE, program.name)
        with builder.active():
            values = {id(v): builder.argument(v.dtype, v.shape, weak=v.weak) for v in program.inputs}
            operands = list(values.values())
            inline(builder, program.body, values)
            shown = [watch(values[id(v)], operands, self.key, f"the gradient of {name}") for v in program.outputs]
        return builder.finish(*shown)


def register(key: str, observer: Observer) -> None:
    """Let the observer see what is watched under this key; the last one registered does."""
    OBSERVERS[key] = observer
