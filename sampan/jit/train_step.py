"""TrainStep: forward, backward, clipping and update of a model as one compiled Program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..amp import GradScaler
from ..amp.recorded import Scaling
from ..base import flags, nest
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from ..optimizer import Optimizer
from ..optimizer.recorded import Form, append_update, form_of
from ..tensor import Tensor
from ..tensor.autocast import current_precision
from ..tensor.functions import get_default_dtype, is_grad_enabled, set_grad_enabled
from ..tensor.graph_runner import compiling
from ..tensor.program import Program
from ..tensor.program_gradients import append_gradients
from ..tensor.traced import Traced
from .arguments import Arguments, with_tensors
from .recordings import Recording, Recordings, recording_of


class TrainStep:
    """A training step as one compiled Program: ``step(*inputs)`` computes the loss, its gradients and the optimizer's update, and gives the loss.

    The function is recorded as ``to_static`` records it, for each new kind of inputs (dtypes, shapes, Python values) and whenever a setting that it read has
    changed; after that no Python of it runs. What it prints is printed at every step; attributes that it sets to what it computes are set at every step.
    Gradients are not kept: ``parameter.grad`` stays as it was.

    Args:
        function: computes the loss from the inputs, or a tuple of the loss and further results. It may use layers, buffers, random operators and
            ``amp.auto_cast``.
        optimizer: updates the parameters that the loss depends on, with its clipping, regularisation and learning-rate schedule. Stepping a scheduler
            stays with the caller.
        scaler: scales the loss before backward and the gradients back after it, skips updates by gradients that are not finite, and adapts its scale:
            ``amp.GradScaler``, for float16. None: no scaling.
        memory_budget: bytes that the step's temporaries may take (parameters, optimizer state and results are none). Where they would take more, what
            costs least for its size is computed again in backward, not kept from forward; the numbers stay the same, random ones too. What cannot be
            reached is come near to. None: everything is kept.

    Raises:
        ShapeError: the loss has more than one element.
        ArgumentError: the loss depends on no parameter of the optimizer; the memory budget is not positive.
        ArgumentTypeError: the memory budget is no integer.
        ConversionError: the function cannot be recorded, or changes Python objects in ways that later steps could not repeat.

    Example:
        >>> import sampan as paddle
        >>> net = paddle.nn.Linear(4, 2)
        >>> optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())
        >>> step = paddle.jit.TrainStep(lambda x, y: paddle.nn.functional.cross_entropy(net(x), y), optimizer)
        >>> x, y = paddle.rand([8, 4]), paddle.randint(0, 2, [8])
        >>> losses = [step(x, y).item() for _ in range(20)]
        >>> losses[-1] < losses[0]
        True
    """

    def __init__(
        self,
        function: Callable[..., Any],
        optimizer: Optimizer,
        memory_budget: int | None = None,
        scaler: GradScaler | None = None,
    ) -> None:
        if not callable(function):
            raise ArgumentTypeError(message(f"TrainStep(): function is a {type(function).__name__}", "it must be callable"))
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(message(f"TrainStep(): optimizer is a {type(optimizer).__name__}", "it must be an Optimizer"))
        if scaler is not None and not isinstance(scaler, GradScaler):
            raise ArgumentTypeError(message(f"TrainStep(): scaler is a {type(scaler).__name__}", "it must be an amp.GradScaler"))
        if memory_budget is not None and (isinstance(memory_budget, bool) or not isinstance(memory_budget, int)):
            raise ArgumentTypeError(
                message(f"TrainStep(): memory_budget is {memory_budget!r}", "it must be a number of bytes, or None")
            )
        if memory_budget is not None and memory_budget < 1:
            raise ArgumentError(
                message(f"TrainStep(): memory_budget is {memory_budget}", "it must be at least 1 byte", "None keeps everything")
            )
        self.function, self.optimizer, self.memory_budget = function, optimizer, memory_budget
        self.scaler = scaler if scaler is not None and scaler.is_enable() else None
        self._recordings = Recordings(lambda: getattr(function, "__qualname__", type(function).__name__))
        self._form: Form | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """One step on these inputs; the loss, and what else the function returns."""
        traced, tensors = self._find(args, kwargs)
        numbers = [v for schedule in traced.program.schedules for v in schedule.advance(None)]
        with set_grad_enabled(False), compiling(memory_budget=self.memory_budget):
            result = traced.run(tensors, numbers)
        for schedule in traced.program.schedules:
            if schedule.settle is not None:
                schedule.settle(None)
        return result

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The Program for these inputs, for looking at: ``print(step.program(x, y))``."""
        return self._find(args, kwargs)[0].program

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Traced, list[Any]]:
        """The recorded step for these inputs, and the tensors among them. It is recorded when they are of a new kind, when the layers' settings changed,
        or when the optimizer updates in another form by now."""
        named = [(f"input_{k}", with_tensors(a)) for k, a in enumerate(args)]
        named += [(name, with_tensors(a)) for name, a in kwargs.items()]
        arguments = Arguments("TrainStep", named, {})
        key = arguments.key, tuple(kwargs), is_grad_enabled(), current_precision(), get_default_dtype(), flags.key()
        self._form = form_of(self.optimizer, self._form)
        found = self._recordings.find(key, self._form.settings, lambda: self._record(arguments.typed(), len(args)))
        return found.traced, arguments.tensors

    def _record(self, typed: dict[str, Any], count: int) -> Recording:
        given = list(typed.items())
        args, kwargs = [v for _, v in given[:count]], dict(given[count:])
        own = [layer for owner in _layers_of(self.function) for layer in owner.sublayers(include_self=True)]
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return recording_of(name, own, lambda: self._traced(args, kwargs))

    def _traced(self, args: list[Any], kwargs: dict[str, Any]) -> Traced:
        program = Program()

        def finish(result: Any) -> Any:
            recorder = program.recorder
            leaves = [v for v in nest.flatten(result) if v is not None]
            loss = recorder.operand(leaves[0]) if leaves else None
            if loss is None or any(n != 1 for n in loss.sizes):
                raise ShapeError(
                    message(
                        f"TrainStep: the function gives {'nothing' if loss is None else f'a loss of shape {list(loss.sizes)}'}",
                        "the first result must be the loss, one number",
                        "take its mean() or sum()",
                    )
                )
            trained = [p for p in self.optimizer._parameter_list if isinstance(p, Tensor) and not p.stop_gradient]
            wanted = [recorder.tensors[id(p)][1] for p in trained if id(p) in recorder.tensors]
            scaling = None if self.scaler is None else Scaling(program, self.scaler)
            scaled = loss if scaling is None else scaling.scaled(loss)
            gradients = append_gradients(recorder, [scaled], [None], wanted)
            by_variable = {id(v): t for t, v in recorder.tensors.values()}
            pairs = [(by_variable[id(v)], g) for v, g in zip(wanted, gradients, strict=True) if g is not None]
            if not pairs:
                raise ArgumentError(
                    message(
                        "TrainStep: the loss depends on no parameter of the optimizer",
                        "nothing would be trained",
                        "pass the model's parameters()",
                    )
                )
            if scaling is None:
                append_update(self.optimizer, pairs, None)
            else:
                append_update(self.optimizer, pairs, None, scaling.unscaled([g for _, g in pairs]), scaling.tell)
            return result

        return Traced(self.function, args, kwargs, program=program, finish=finish, name="train_step")


def _layers_of(function: Any) -> Iterator[Any]:
    """The layers that the function is, belongs to, or closes over."""
    held = [function, getattr(function, "__self__", None)]
    for cell in getattr(function, "__closure__", None) or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # it has no value yet
            continue
    return (v for v in held if hasattr(v, "sublayers"))
