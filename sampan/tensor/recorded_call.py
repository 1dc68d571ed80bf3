"""A call of a Python function as a recorded Program: its tensor arguments are inputs, the eager tensors it uses are captured, its results outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes, flags, nest
from ..base.errors import SampanError, UnsupportedError, message
from ..ir.program import Block
from .convert import converted
from .convert.recorded import tracing
from .expander import current_rule
from .recording import Recorder
from .runner import Runner, live_ops
from .variable import Variable

#: What a recorded Program of a call depends on: see ``signature_of``.
CallSignature = tuple[Any, ...]


def signature_of(args: tuple[Any, ...], kwargs: dict[str, Any], function: Any) -> tuple[CallSignature, list[Any]]:
    """What the Program of a call depends on, as a key, and the call's tensors in order.

    Tensors count by dtype, shape and stop_gradient, other arguments by value; then the layer's training modes, precision, default dtype and gradient mode.
    """
    tensors: list[Any] = []
    parts = [_part(a, tensors) for a in args] + [(k, _part(v, tensors)) for k, v in kwargs.items()]
    return (tuple(parts), _modes(function), current_rule(), dtypes.default_float(), _rt.grad_enabled(), flags.key()), tensors


def _modes(function: Any) -> Any:
    """The training modes of the layers that the function is, belongs to, or closes over."""
    owners = [function, getattr(function, "__self__", None)]
    owners += [c.cell_contents for c in getattr(function, "__closure__", None) or () if _is_filled(c)]
    return tuple(
        tuple(layer.training for layer in owner.sublayers(include_self=True)) for owner in owners if hasattr(owner, "sublayers")
    )


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _part(value: Any, tensors: list[Any]) -> Any:
    if isinstance(value, _rt.Tensor):
        tensors.append(value)
        return ("tensor", value.layout.dtype.name, tuple(value.layout.shape), value.stop_gradient)
    if isinstance(value, np.ndarray):
        return _part(_rt.from_numpy(np.array(value), True), tensors)
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(_part(v, tensors) for v in value))
    if isinstance(value, dict):
        return (dict, tuple((k, _part(v, tensors)) for k, v in value.items()))
    try:
        hash(value)
    except TypeError:
        return ("object", id(value))
    return (type(value), value)


@dataclass(frozen=True)
class RecordedCall:
    """A recorded call, ready to run on other tensors of the same signature."""

    runner: Runner
    captured: tuple[Any, ...]
    structure: Any

    def run(self, tensors: Sequence[Any], numbers: Sequence[float] = ()) -> Any:
        """The function's result for these tensors; ``numbers`` are the Program's run-time scalars."""
        found = iter(self.runner([*tensors, *self.captured, *numbers]))
        return nest.map_structure(lambda leaf: next(found) if leaf is _TENSOR else leaf, self.structure)


class _Marker:
    """Stands for a tensor in a structure of results."""


_TENSOR = _Marker()


def record_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    recorder: Recorder,
    name: str,
    finish: Callable[[Any], Any] = lambda result: result,
    is_frozen: bool = False,
) -> RecordedCall:
    """Call the function on Variables like its tensors, and record what it does.

    ``finish(result)`` may record more and change the result. ``is_frozen``: captured tensors keep the elements that they have now.
    """
    inputs: list[Variable] = []

    def variable(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value = _rt.from_numpy(np.array(value), True)
        if not isinstance(value, _rt.Tensor):
            return value
        made = recorder.input(f"input_{len(inputs)}", value.dtype.name, tuple(value.shape), stop_gradient=value.stop_gradient)
        inputs.append(made)
        return made

    with tracing(recorder):
        result = finish(
            converted(function)(
                *[nest.map_structure(variable, a) for a in args],
                **{k: nest.map_structure(variable, v) for k, v in kwargs.items()},
            )
        )
        results = [recorder.operand(v) for v in nest.flatten(result) if isinstance(v, (Variable, _rt.Tensor))]
    structure = nest.map_structure(lambda v: _TENSOR if isinstance(v, (Variable, _rt.Tensor)) else v, result)
    held = list(recorder.tensors.values())
    updated = [(v, recorder.versions[id(v)]) for t, v in held if id(v) in recorder.versions and id(t) not in recorder.temporaries]
    written_inputs = [v for v in inputs if id(v) in recorder.versions]
    updated += [(v, recorder.versions[id(v)]) for v in written_inputs]
    for old, new in updated:
        if new.sizes != old.sizes or new.dtype != old.dtype:
            raise _changed(old, new)
    numbers = [v for v in recorder.block.arguments if getattr(v, "weak", False)]
    arguments = [*inputs, *(v for _, v in held), *numbers]
    places = {id(v): k for k, v in enumerate(arguments)}
    ops = live_ops(recorder.block.ops, [*results, *(new for _, new in updated)])
    frozen = {places[id(v)]: t for t, v in held if id(v) not in recorder.versions} if is_frozen else {}
    runner = Runner(Block(arguments, ops, tuple(results)), [(places[id(old)], new) for old, new in updated], name, frozen)
    return RecordedCall(runner, tuple(t for t, _ in held), structure)


def _changed(old: Variable, new: Variable) -> SampanError:
    return UnsupportedError(
        message(
            f"the tensor {old.name} ({old.dtype}{list(old.sizes)}) becomes {new.dtype}{list(new.sizes)} in place",
            "a compiled Program keeps the dtype and shape of the tensors it writes",
            "make a new tensor",
        )
    )
