"""Updates as statements of a Program: the optimizer's operators on Variables, with step sizes that each run is given afresh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import tensor
from ..base.errors import ArgumentTypeError, UnsupportedError, message
from ..nn.initializer import Constant
from ..static.backward import append_backward
from ..tensor import OPS
from ..tensor.program import Program, Schedule, declare_start, default_main_program, default_startup_program, running_at_once
from ..tensor.recording import Recorder
from ..tensor.variable import Variable


class EagerStates:
    """States as tensors."""

    @staticmethod
    def full(name: str, shape: Sequence[int], value: float, dtype: str) -> Any:
        """A state of one value."""
        with running_at_once():
            return tensor.full(shape, value, dtype)

    @staticmethod
    def master(param: Any, name: str) -> Any:
        """The float32 copy of a 16-bit parameter."""
        with running_at_once():
            return param.detach().astype("float32").clone()


class RecordedStates:
    """States as persistable Variables, which the startup Program gives their first values."""

    def __init__(self, startup: Program) -> None:
        self.startup = startup

    def full(self, name: str, shape: Sequence[int], value: float, dtype: str) -> Any:
        """A state of one value."""
        made = Variable(dtype, shape, name, persistable=True)
        default_main_program().add(made)
        declare_start(self.startup, made, Constant(value))
        return made

    def master(self, param: Any, name: str) -> Any:
        """The float32 copy of a 16-bit parameter."""
        raise UnsupportedError(
            message(
                f"multi_precision for {param.name!r} in a Program",
                "master weights are made in eager mode only",
                "train float32 parameters under amp",
            )
        )


def minimize_recorded(optimizer: Any, loss: Variable, startup: Any, parameters: Any, no_grad_set: Any) -> list[tuple[Any, Any]]:
    """Append the gradients of the loss and the update; the (parameter, gradient) pairs."""
    chosen = parameters if parameters is not None else optimizer._parameter_list or None
    pairs = append_backward(loss, chosen, no_grad_set)
    append_update(optimizer, pairs, startup or default_startup_program())
    return pairs


def append_update(optimizer: Any, pairs: Sequence[tuple[Any, Any]], startup: Program | None) -> None:
    """Append the update of the pairs' parameters. ``startup``: where Variables for states get their first values; None: states are tensors."""
    if not pairs:
        raise ArgumentTypeError(
            message(f"{type(optimizer).__name__}: the loss depends on no trained parameter", "there is nothing to update")
        )
    if not optimizer._operator or type(optimizer)._update is not _plain_update(optimizer):
        raise UnsupportedError(
            message(
                f"{type(optimizer).__name__} in a Program", "its step depends on data that Python reads", "use it in eager mode"
            )
        )
    if startup is not None and optimizer._changes_form:
        raise UnsupportedError(
            message(
                f"{type(optimizer).__name__} in a Program", "its update has two forms, and which one a step takes is known when it runs only",
                "use it in eager mode or with jit.TrainStep",
            )
        )  # fmt: skip
    params, grads = [p for p, _ in pairs], [g for _, g in pairs]
    recorder: Recorder = grads[0].recorder
    if not optimizer._parameter_list:
        optimizer._add_param_group({"params": params})
    known = {id(p): g for p, g in zip(params, grads, strict=True)}
    everything = optimizer._parameter_list
    aligned = [known.get(id(p)) for p in everything]
    role, recorder.role = recorder.role, "optimize"
    old_states = optimizer._states_made_by
    if startup is not None:
        optimizer._states_made_by = RecordedStates(startup)
    was_recording = tensor.functions.set_grad_enabled(False)
    try:
        with recorder.active(), was_recording:
            aligned = optimizer._clipped(everything, aligned)
            optimizer._arrange(everything, aligned)
            _append_buckets(optimizer, recorder, aligned)
    finally:
        optimizer._states_made_by = old_states
        recorder.role = role


def _plain_update(optimizer: Any) -> Any:
    return next(c for c in type(optimizer).__mro__ if c.__name__ == "Optimizer")._update


def _next_rates(optimizer: Any, bucket: Any) -> list[Any]:
    """The rates of the step to come; nothing moves on."""
    numbers = dict(bucket.numbers)
    try:
        optimizer._advance(bucket)
        return list(optimizer._rates(bucket, optimizer.get_lr()))
    finally:
        bucket.numbers.clear()
        bucket.numbers.update(numbers)


def form_of(optimizer: Any) -> Any:
    """What a recorded update depends on beside its run-time numbers: with another form, it is to be recorded again."""
    params = optimizer._parameter_list
    form = None
    if optimizer._changes_form:
        form = [[rate for rate in _next_rates(optimizer, b) if isinstance(rate, bool)] for b in optimizer._buckets]
    frozen = [p.stop_gradient for p in params]
    return optimizer._settings(params, [None if f else p for p, f in zip(params, frozen, strict=True)]), form


def _append_buckets(optimizer: Any, recorder: Recorder, grads: Sequence[Any]) -> None:
    operator = OPS[optimizer._operator]
    kinds = [p.kind for p in operator.definition.parameters]  # type: ignore[attr-defined]
    buckets = list(optimizer._buckets)
    variables: list[Variable] = []
    varying: list[list[int]] = []
    for bucket in buckets:
        rates = _next_rates(optimizer, bucket)
        first = len(kinds) - len(rates)
        places = [k for k, rate in enumerate(rates) if kinds[first + k] == "tensor" and isinstance(rate, (int, float))]
        varying.append(places)
        for k in places:
            name = recorder.fresh_name(f"{operator.definition.parameters[first + k].name}")  # type: ignore[attr-defined]
            rates[k] = recorder.root.input(name, "float64", (), weak=True)
            variables.append(rates[k])
        for run in bucket.runs:
            operator(run.params, run.pick(grads), *run.states, run.masters, *rates)

    def advance() -> list[float]:
        found: list[float] = []
        rate = optimizer.get_lr()
        for bucket, places in zip(buckets, varying, strict=True):
            optimizer._advance(bucket)
            rates = optimizer._rates(bucket, rate * optimizer._group_factor(bucket))
            found += [float(rates[k]) for k in places]
            optimizer._finish(bucket)
        return found

    program = recorder.root.program
    if program is not None:
        program.schedules.append(Schedule(variables, advance, optimizer))
