"""Updates as statements of a Program: the optimizer's operators on Variables, with step sizes that each run is given afresh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import tensor
from ..base.errors import ArgumentError, ArgumentTypeError, UnsupportedError, message
from ..nn.initializer import Constant
from ..static.backward import append_backward
from ..tensor import OPS, Parameter
from ..tensor.program import Program, Schedule, declare_start, default_main_program, default_startup_program, running_at_once
from ..tensor.program_block import Operator
from ..tensor.recording import Recorder
from ..tensor.scope import Scope
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
        """The float32 copy of a 16-bit parameter, whose first value the startup Program makes of the parameter's."""
        main, startup = default_main_program(), self.startup
        made = main.add(Variable("float32", list(param.shape), name, persistable=True))
        recorder = startup.recorder
        held = next((t for t, v in main.recorder.tensors.values() if v is param), None)  # a layer's own tensor
        source = startup.find(param.name) if held is None else held
        if source is None:
            raise ArgumentError(
                message(
                    f"multi_precision for {param.name!r}, which the startup Program does not initialise",
                    "its float32 copy is made there",
                    "pass the startup Program that the parameter was made with",
                )
            )
        with recorder.active():
            handle = startup.add(Variable("float32", list(param.shape), name, persistable=True), is_input=False)
            recorder.set_version(handle, OPS["cast"](recorder.operand(source), "float32"))
        return made


def minimize_recorded(
    optimizer: Any, loss: Variable, startup: Any, parameters: Any, no_grad_set: Any
) -> tuple[list[Operator], list[tuple[Any, Any]]]:
    """Append the gradients of the loss and the update; the update's statements, and the (parameter, gradient) pairs."""
    chosen = parameters if parameters is not None else optimizer._parameter_list or None
    pairs = append_backward(loss, chosen, no_grad_set)
    return append_update(optimizer, pairs, startup or default_startup_program()), pairs


def append_update(
    optimizer: Any,
    pairs: Sequence[tuple[Any, Any]],
    startup: Program | None,
    is_finite: Variable | None = None,
    tell: Callable[[bool], None] | None = None,
) -> list[Operator]:
    """Append the update of the pairs' parameters; its statements.

    startup: where Variables for states get their first values; None: states are tensors.
    is_finite: where it does not hold, a run makes no step: parameters and states stay as they are.
    tell: is told after each run whether it held.
    """
    if not pairs:
        raise ArgumentTypeError(
            message(f"{type(optimizer).__name__}: the loss depends on no trained parameter", "there is nothing to update")
        )
    if not optimizer._operator or type(optimizer)._update is not _plain_update(optimizer):
        raise UnsupportedError(
            message(
                f"{type(optimizer).__name__} in a Program",
                "it evaluates the loss as often as it needs, by a function that its step() is given",
                "use it in eager mode",
            )
        )
    params, grads = [p for p, _ in pairs], [g for _, g in pairs]
    recorder: Recorder = grads[0].recorder
    if not optimizer._parameter_list:
        optimizer._add_param_group({"params": params})
    known = {id(p): g for p, g in zip(params, grads, strict=True)}
    everything = optimizer._parameter_list
    aligned = [known.get(id(p)) for p in everything]
    before = len(recorder.block.ops)
    role, recorder.role = recorder.role, "optimize"
    old_states = optimizer._states_made_by
    if startup is not None:
        optimizer._states_made_by = RecordedStates(startup)
    was_recording = tensor.functions.set_grad_enabled(False)
    try:
        with recorder.active(), was_recording:
            aligned = optimizer._clipped(everything, aligned)
            optimizer._arrange(everything, aligned)
            old_versions = dict(recorder.versions)
            numbers = None if startup is None else [KeptNumbers(optimizer, bucket) for bucket in optimizer._buckets]
            schedule = _append_buckets(optimizer, recorder, aligned, numbers)
            if is_finite is not None:
                _append_choice(recorder, is_finite, old_versions)
                _settle_by(recorder, schedule, is_finite, list(optimizer._buckets), numbers, tell)
            if recorder.root.program is not None:
                recorder.root.program.schedules.append(schedule)
    finally:
        optimizer._states_made_by = old_states
        recorder.role = role
    return [Operator(op) for op in recorder.block.ops[before:]]


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


@dataclass(frozen=True)
class Form:
    """What a recorded update depends on beside its run-time numbers, and what tells that this may have changed."""

    settings: Any
    noted: Any


def form_of(optimizer: Any, last: Form | None) -> Form:
    """What a recorded update depends on beside its run-time numbers: with another form, it is to be recorded again. ``last``: what the last call gave."""
    params = optimizer._parameter_list
    factors = [p.optimize_attr["learning_rate"] if isinstance(p, Parameter) else 1.0 for p in params]
    noted = Parameter.changes, factors, [g["weight_decay"] for g in optimizer._param_groups], optimizer._multi_precision
    if last is not None and last.noted == noted:
        return last
    return Form(optimizer._settings(params, [None if p.stop_gradient else p for p in params]), noted)


def _append_choice(recorder: Recorder, is_finite: Variable, old_versions: dict[int, Variable]) -> None:
    """What the update wrote is what it was before where the gradients are not finite."""
    for target in _held(recorder):
        new = recorder.versions.get(id(target))
        old = old_versions.get(id(target))
        if new is not None and new is not old:
            if old is None:
                del recorder.versions[id(target)]
            else:
                recorder.versions[id(target)] = old
            recorder.write(target, OPS["where"](is_finite, new, target))


def _settle_by(
    recorder: Recorder,
    schedule: Schedule,
    is_finite: Variable,
    buckets: Sequence[Any],
    numbers: Sequence[KeptNumbers] | None,
    tell: Callable[[bool], None] | None,
) -> None:
    """Let the schedule take its numbers back after runs that made no step. Whether one did is kept in a tensor, which every run writes."""
    with running_at_once():
        flag = tensor.full([], True, "bool")
    flag.name = recorder.fresh_name("is_finite")
    recorder.write(recorder.capture(flag), is_finite)
    advance, before = schedule.advance, list[dict[str, float]]()

    def advance_noting(scope: Scope | None) -> list[float]:
        for kept in numbers or ():
            kept.read(scope)
        before[:] = [dict(bucket.numbers) for bucket in buckets]
        return advance(scope)

    def settle(scope: Scope | None) -> None:
        was_finite = bool(flag.item())
        if not was_finite:
            for bucket, old in zip(buckets, before, strict=True):
                bucket.numbers.clear()
                bucket.numbers.update(old)
            for kept in numbers or ():
                kept.write(scope)
        if tell is not None:
            tell(was_finite)

    schedule.advance, schedule.settle = advance_noting, settle


def _held(recorder: Recorder) -> list[Variable]:
    """The Variables that may outlive a run."""
    program = recorder.root.program
    own = [] if program is None else list(program.variables.values())
    return [*own, *(v for _, v in recorder.root.tensors.values())]


class KeptNumbers:
    """The numbers that an optimizer keeps for a bucket of parameters, in scopes under the names of their states, so that the startup Program, files and other
    scopes reach them. In their dtype there, exact in the bucket."""

    def __init__(self, optimizer: Any, bucket: Any) -> None:
        self.bucket = bucket
        self.kept: list[tuple[str, Any, float, list[str]]] = []
        for name in bucket.numbers:
            number = optimizer._numbers[name]
            start = optimizer._first(number, bucket.group)
            keys = [optimizer._key(p, name) for _, p, _ in bucket.members]
            for key, (_, p, _) in zip(keys, bucket.members, strict=True):
                optimizer._states_made_by.full(key, list(p.shape) if number.like_parameter else [1], start, number.dtype)
            self.kept.append((name, np.dtype(number.dtype).type, start, keys))

    def read(self, scope: Scope | None) -> None:
        """Take the numbers of the scope where they are others than those of the bucket."""
        for name, kind, start, keys in self.kept:
            held = scope.get(keys[0]) if scope is not None else None
            if held is not None:
                value = held.numpy_view().reshape(-1)[0]
                if value != kind(self.bucket.numbers[name]):
                    self.bucket.numbers[name] = start if value == kind(start) else float(value)

    def write(self, scope: Scope | None) -> None:
        """Give the scope the bucket's numbers."""
        for name, _, _, keys in self.kept:
            for key in keys:
                held = scope.get(key) if scope is not None else None
                if held is not None:
                    held.numpy_view()[...] = self.bucket.numbers[name]


def _append_buckets(optimizer: Any, recorder: Recorder, grads: Sequence[Any], numbers: Sequence[KeptNumbers] | None) -> Schedule:
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
        positions: dict[str, Any] = {}
        for name in optimizer._positions(bucket):
            variables.append(recorder.root.input(recorder.fresh_name(name), "float64", (), weak=True))
            positions[name] = OPS["cast"](OPS["unsqueeze"](variables[-1], 0), "int64")
        for run in bucket.runs:
            optimizer._apply(operator, run, run.pick(grads), rates, positions)

    def advance(scope: Scope | None) -> list[float]:
        found: list[float] = []
        for kept in numbers or ():
            kept.read(scope)
        rate = optimizer.get_lr()
        for bucket, places in zip(buckets, varying, strict=True):
            optimizer._advance(bucket)
            rates = optimizer._rates(bucket, rate * optimizer._group_factor(bucket))
            found += [float(rates[k]) for k in places]
            found += [float(k) for k in optimizer._positions(bucket).values()]
            optimizer._finish(bucket)
        for kept in numbers or ():
            kept.write(scope)
        return found

    return Schedule(variables, advance, optimizer)
