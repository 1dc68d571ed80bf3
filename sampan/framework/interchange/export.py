"""A recorded Program as a model file's content: what its results need, as it computes outside of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base import nest
from ...base.errors import ArgumentError, UnsupportedError, message
from ...tensor.program import ParameterVariable, Program
from ...tensor.traced import Result
from ...tensor.variable import Variable
from ..arrays import to_array
from .model import Model
from .write import write_program


def inference_form(program: Program, feeds: Sequence[Variable], fetches: Sequence[Variable]) -> Program:
    """A copy without gradients, updates and training, reduced to what the fetches need when the feeds are given.

    Its ``feed_names`` are the names of the feeds, its ``fetch_variables`` the copy's own Variables.

    Raises:
        ArgumentError: the fetches need a Variable that is neither fed nor persistable.
    """
    copy = program.clone(for_test=True)
    inputs = [copy.var(v.name) for v in feeds]
    fed = set(map(id, inputs))
    results = [copy.current(copy.var(v.name)) for v in fetches]
    needed = {id(v) for v in results}
    kept = []
    for op in reversed(copy.recorder.block.ops):
        if any(id(v) in needed and id(v) not in fed for v in op.outputs):
            kept.append(op)
            needed.update(id(v) for v in op.inputs)
    copy.recorder.block.ops[:] = reversed(kept)
    copy.schedules.clear()
    used = needed | fed
    strays = [v for v in copy.recorder.block.arguments if id(v) in needed and id(v) not in fed and not v.persistable]  # type: ignore[attr-defined]
    if strays:
        raise ArgumentError(
            message(
                f"the fetched Variables need {', '.join(v.name for v in strays)}",
                "which is neither among the fed Variables nor persistable",
                "add it to feed_vars, or fetch something that does not need it",
            )
        )
    copy.recorder.block.arguments[:] = [v for v in copy.recorder.block.arguments if id(v) in used]
    copy.variables = {n: v for n, v in copy.variables.items() if id(v) in used or v.op is not None}
    for variable in inputs:
        if variable.op is not None:  # an inner result that is fed now
            variable.op = None
            copy.variables[variable.name] = variable
            copy.recorder.block.arguments.append(variable)
    copy.feed_names = [v.name for v in feeds]
    copy.fetch_variables = results
    return copy


def export_program(form: Program, scope: Any) -> tuple[Model, dict[str, np.ndarray]]:
    """(the model, the arrays of its parameter file) of a Program in inference form.

    Args:
        form: what ``inference_form`` gives.
        scope: where persistable Variables have their values.

    Raises:
        UnwritableError: operators have no form in the format; all of them are named.
        ArgumentError: a persistable Variable has no value.
    """
    feeds = [form.var(name) for name in form.feed_names]
    parameters = {}
    for variable in persistable_variables(form):
        tensor = form.tensor_of(variable, scope)
        if tensor is None:
            raise ArgumentError(
                message(
                    f"the Variable {variable.name!r} has no value in the scope",
                    "a saved model holds its parameters",
                    "run the startup program, or load a checkpoint, first",
                )
            )
        trained = isinstance(variable, ParameterVariable) or bool(getattr(tensor, "trainable", False))
        parameters[variable.name] = (variable, np.array(to_array(tensor)), trained)
    return write_program(form.recorder.block.ops, feeds, form.fetch_variables, parameters)


def export_traced(traced: Any, tensors: Mapping[str, Any]) -> Model:
    """The model of a recorded function, whose parameter file holds these tensors, sorted by their names.

    Args:
        traced: a ``Traced``.
        tensors: at least those that the function uses, by name.

    Raises:
        UnwritableError: operators have no form in the format; all of them are named.
        UnsupportedError: the function does more than to give tensors of tensors.
    """
    if traced.updates or traced.effects:
        raise UnsupportedError("the function changes tensors or objects, which a model file does not say")
    if not all(isinstance(v, Result) for v in nest.flatten(traced.structure)):
        raise UnsupportedError("the function returns something else than tensors")
    taken = sorted({v.name for v in traced.inputs} & set(tensors))
    if taken:
        raise UnsupportedError(f"an argument and a tensor are both called {taken[0]!r}")
    held = {id(t): v for t, v in zip(traced.tensors, traced.block.arguments[len(traced.inputs) :], strict=True)}
    parameters = {}
    for name in sorted(tensors):
        tensor = tensors[name]
        array = np.array(to_array(tensor))
        used = held.get(id(tensor))
        parameters[name] = (
            Variable(array.dtype.name, array.shape, name) if used is None else used,
            array,
            bool(getattr(tensor, "trainable", False)),
        )
    model, constants = write_program(traced.block.ops, traced.inputs, traced.outputs, parameters)
    if set(constants) - set(parameters):
        raise UnsupportedError("the function holds large constants, which would be parameters of the model file only")
    return model


def persistable_variables(program: Program) -> list[Variable]:
    """The Variables that hold values between runs, captured tensors among them."""
    return [v for v in program.recorder.block.arguments if v.persistable]  # type: ignore[misc, attr-defined]
