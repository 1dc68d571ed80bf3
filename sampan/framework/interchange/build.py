"""A model file as a Program of ours: its operations recorded by their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.modes import in_dynamic_mode
from ...tensor import functions
from ...tensor.location import located
from ...tensor.program import ParameterVariable, Program, program_guard
from ...tensor.variable import Variable
from .model import Model
from .run import Runner


def build_program(model: Model, what: str = "the model") -> tuple[Program, list[str], list[Variable]]:
    """(the Program, the names that it is fed by, the Variables that it gives) of a model.

    Persistable variables of the model are the Program's, under their names; a scope gives them values.

    Raises:
        UnknownOperatorsError: operators are not known here; all of them are named.
    """
    program = Program()
    was_dynamic = in_dynamic_mode()
    functions.enable_static()
    try:
        with program_guard(program, Program()):
            held: dict[str, Any] = {}
            for name, variable in model.parameters().items():
                kind = ParameterVariable if variable.is_parameter and not variable.stops_gradient else _Persistable
                held[name] = program.add(kind(variable.dtype, variable.shape, name))
            runner = Runner(model, held, what)
            fed = []
            for name in model.feeds():
                found = next(block.variables[name] for block in model.blocks if name in block.variables)
                fed.append(program.add(Variable(found.dtype, found.shape, name)))
            with located(f"in the model {what}"):
                fetched = runner(*fed)
    finally:
        if was_dynamic:
            functions.disable_static()
    return program, model.feeds(), fetched


class _Persistable(Variable):
    """A persistable Variable that is not trained: running statistics, constants."""

    def __init__(self, dtype: str, shape: Any, name: str) -> None:
        super().__init__(dtype, shape, name, persistable=True)

    def like(self, name: str = "") -> Variable:
        """A new plain Variable of its type."""
        return Variable(self.dtype, self.sizes, name or self.name, stop_gradient=self.stop_gradient)


def fill_scope(scope: Any, arrays: dict[str, np.ndarray]) -> None:
    """Give the scope's variables the arrays' content, by name."""
    for name, array in arrays.items():
        scope.var(name).set(array)
