"""ExponentialMovingAverage: averages of parameters, to evaluate with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..base import names
from ..base.errors import ArgumentError, ArgumentTypeError, UnsupportedError, message
from ..nn.initializer import Constant
from ..tensor import OPS
from ..tensor.functions import in_dynamic_mode, no_grad
from ..tensor.program import Program, declare, default_main_program, running_at_once
from ..tensor.scope import global_scope
from ..tensor.variable import Variable
from ..tensor.variable_methods import write


class ExponentialMovingAverage:
    """Averages of the trained parameters: average = decay * average + (1 - decay) * parameter, in every run of the Program.

    Args:
        decay: how much of the average stays.
        thres_steps: a Variable of how many steps were made: decay is then at most (1 + steps) / (10 + steps), so that it starts low.
        name: the prefix of the averages' names.

    Example:
        >>> import numpy as np
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        ...     w = paddle.static.create_parameter([1], "float32", name="w", default_initializer=paddle.nn.initializer.Constant(0.0))
        ...     _ = paddle.optimizer.SGD(1.0).minimize(w.sum())
        ...     ema = paddle.static.ExponentialMovingAverage(0.5)
        ...     ema.update()
        ...     exe = paddle.static.Executor()
        ...     _ = exe.run(paddle.static.default_startup_program())
        ...     _ = exe.run(), exe.run()
        ...     with ema.apply(exe):
        ...         averaged = exe.run(fetch_list=[w], program=paddle.static.default_main_program().clone(for_test=True))[0]
        >>> print(averaged)
        [-1.6666666]
        >>> paddle.disable_static()
    """

    def __init__(self, decay: float = 0.999, thres_steps: Any = None, name: str | None = None) -> None:
        if in_dynamic_mode():
            raise UnsupportedError(
                message("ExponentialMovingAverage in eager mode", "it is part of a Program", "use paddle.incubate.ModelAverage")
            )
        if not isinstance(decay, (int, float)) or not 0 <= decay <= 1:
            raise ArgumentError(message(f"ExponentialMovingAverage(): decay={decay!r}", "it must be from 0 to 1"))
        if thres_steps is not None and not isinstance(thres_steps, Variable):
            raise ArgumentTypeError(
                message(f"ExponentialMovingAverage(): thres_steps is a {type(thres_steps).__name__}", "it must be a Variable")
            )
        self._decay, self._steps, self._name = float(decay), thres_steps, name or ""
        self._pairs: list[tuple[Variable, Variable]] = []
        self._left: Variable | None = None
        self._program: Program | None = None
        self._backup: dict[str, Any] = {}

    def update(self) -> None:
        """Append the update of the averages to the main Program: call it once, after ``minimize()``.

        Raises:
            ArgumentError: it was called before, or the Program has no trained parameter.
        """
        if self._left is not None:
            raise ArgumentError(message("ExponentialMovingAverage.update() was called twice", "the Program updates already"))
        program = self._program = default_main_program()
        parameters = [p for p in program.all_parameters() if p.trainable and p.do_model_average is not False]
        if not parameters:
            raise ArgumentError(message("ExponentialMovingAverage.update(): the Program has no trained parameter"))
        recorder = program.recorder
        #: The part of the averages that is still their first value, zero: the product of all decays.
        self._left = self._kept("decay", [1], "float32", 1.0)
        role, recorder.role = recorder.role, "optimize"
        try:
            with no_grad():
                decay: Any = self._decay
                if self._steps is not None:
                    steps = OPS["cast"](self._steps, "float32")
                    decay = OPS["clip"](OPS["reshape"]((steps + 1.0) / (steps + 10.0), [1]), None, self._decay)
                for p in parameters:
                    average = self._kept(f"{p.name}.ema", list(p.shape), p.dtype, 0.0)
                    write(average, average * decay + p * (1.0 - decay), "update")
                    self._pairs.append((p, average))
                write(self._left, self._left * decay, "update")
        finally:
            recorder.role = role

    def _kept(self, key: str, shape: list[int], dtype: str, value: float) -> Variable:
        made = Variable(dtype, shape, names.generate(f"{self._name}{key}"), persistable=True)
        return declare(made, Constant(value))

    @contextmanager
    def apply(self, executor: Any, need_restore: bool = True) -> Iterator[None]:
        """Parameters are their averages inside the ``with`` block, without the part that their first zero still has.

        Args:
            executor: accepted for compatibility; the global scope's tensors are changed.
            need_restore: give parameters their own values back at the end; else ``restore()`` does.
        """
        if self._left is None or self._program is None:
            raise ArgumentError(message("ExponentialMovingAverage.apply() before update()", "there is no average yet"))
        scope, program = global_scope(), self._program
        with running_at_once():
            whole = 1.0 - float(scope.get(self._left.name).item())
            for p, average in self._pairs:
                held = program.tensor_of(p, scope)
                self._backup[p.name] = held.clone().detach()
                held.set_value(scope.get(average.name) / whole if whole > 0 else scope.get(average.name))
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Any) -> None:
        """Give parameters their own values back, after ``apply(need_restore=False)``."""
        scope = global_scope()
        for p, _ in self._pairs:
            if self._program is not None and p.name in self._backup:
                self._program.tensor_of(p, scope).set_value(self._backup[p.name])
        self._backup.clear()
