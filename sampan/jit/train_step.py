"""TrainStep: forward, backward, clipping and update of a model as one compiled Program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..base import nest
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from ..base.locks import new_lock
from ..optimizer import Optimizer
from ..optimizer.recorded import append_update, form_of
from ..tensor import Tensor
from ..tensor.functions import set_grad_enabled
from ..tensor.program import Program
from ..tensor.program_gradients import append_gradients
from ..tensor.recorded_call import CallSignature, RecordedCall, record_call, signature_of


@dataclass(frozen=True)
class _Compiled:
    call: RecordedCall
    program: Program
    form: Any


class TrainStep:
    """A training step as one compiled Program: ``step(*inputs)`` computes the loss, its gradients and the optimizer's update, and gives the loss.

    The function is traced for each new signature of its inputs (dtypes, shapes, Python values); after that no Python of it runs. What it prints or
    appends to lists happens while tracing only. Gradients are not kept: ``parameter.grad`` stays as it was.

    Args:
        function: computes the loss from the inputs, or a tuple of the loss and further results. It may use layers, buffers, random operators and
            ``amp.auto_cast``.
        optimizer: updates the parameters that the loss depends on, with its clipping, regularisation and learning-rate schedule. Stepping a scheduler
            stays with the caller.

    Raises:
        ShapeError: the loss has more than one element.
        ArgumentError: the loss depends on no parameter of the optimizer.

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

    def __init__(self, function: Callable[..., Any], optimizer: Optimizer) -> None:
        if not callable(function):
            raise ArgumentTypeError(message(f"TrainStep(): function is a {type(function).__name__}", "it must be callable"))
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(message(f"TrainStep(): optimizer is a {type(optimizer).__name__}", "it must be an Optimizer"))
        self.function, self.optimizer = function, optimizer
        self._compiled: dict[CallSignature, _Compiled] = {}
        self._lock = new_lock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """One step on these inputs; the loss, and what else the function returns."""
        found, tensors = self._find(args, kwargs)
        numbers = [v for schedule in found.program.schedules for v in schedule.advance()]
        with set_grad_enabled(False):
            return found.call.run(tensors, numbers)

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The Program for these inputs, for looking at: ``print(step.program(x, y))``."""
        return self._find(args, kwargs)[0].program

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Compiled, list[Any]]:
        """The compiled step for these inputs, recorded when it is new or the optimizer updates in another form by now; and the tensors among them."""
        signature, tensors = signature_of(args, kwargs, self.function)
        found, form = self._compiled.get(signature), form_of(self.optimizer)
        if found is None or found.form != form:
            with self._lock:
                found = self._compiled.get(signature)
                if found is None or found.form != form:
                    call, program = self._record(args, kwargs)
                    found = self._compiled[signature] = _Compiled(call, program, form_of(self.optimizer))
        return found, tensors

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[RecordedCall, Program]:
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
            gradients = append_gradients(recorder, [loss], [None], wanted)
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
            append_update(self.optimizer, pairs, None)
            return result

        return record_call(self.function, args, kwargs, program.recorder, "train_step", finish), program
