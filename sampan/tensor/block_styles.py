"""Control flow in ``with`` blocks: While, Switch, IfElse, StaticRNN. What a block writes in place is what it hands on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedError, message
from ..ops.define import OPERATORS
from .arrays import array_write, create_array, tensor_array_to_tensor
from .build import OPS
from .control_flow import carried_arguments, cast_to, checked_condition, draw_anew, finish_loop, join_blocks
from .recording import Recorder, current_recorder
from .variable import UNKNOWN, Variable


def _recorder(name: str, instead: str) -> Recorder:
    recorder = current_recorder()
    if recorder is None:
        raise UnsupportedError(message(f"{name} in eager mode", "its blocks are recorded", f"use {instead}"))
    return recorder


def _variable(name: str, what: str, value: Any) -> Any:
    if not isinstance(value, Variable):
        raise ArgumentTypeError(message(f"{name}: {what} is a {type(value).__name__}", "it must be a Variable"))
    return value


class While:
    """A loop: its block runs as long as the condition holds, which the block must write.

    Args:
        cond: a bool Variable of one element.
        is_test, name: accepted for compatibility.

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program()):
        ...     i, total = paddle.zeros([1], "int64"), paddle.zeros([1])
        ...     test = i < 4
        ...     with paddle.static.nn.While(test).block():
        ...         _ = paddle.assign(total + i, total), paddle.increment(i)
        ...         _ = paddle.assign(i < 4, test)
        ...     paddle.static.Executor().run(paddle.static.default_main_program(), fetch_list=[total])
        [array([6.], dtype=float32)]
        >>> paddle.disable_static()
    """

    def __init__(self, cond: Any, is_test: bool = False, name: str | None = None) -> None:
        self._recorder = _recorder("While", "a Python while")
        self._condition = checked_condition("While", _variable("While", "cond", cond))
        if cond.dtype != "bool":
            raise ArgumentTypeError(message(f"While: cond is {cond.dtype}", "it must be bool"))

    @contextmanager
    def block(self) -> Iterator[None]:
        """The loop's body.

        Raises:
            ArgumentError: it does not write the condition, so that it would run for ever.
        """
        body = Recorder("body", self._recorder)
        with body.active():
            yield
            draw_anew(body)
        if id(self._condition) not in body.written:
            raise ArgumentError(
                message(
                    f"While: the block does not write its condition {self._condition.name}",
                    "it would run for ever",
                    "end it with paddle.assign(the condition anew, cond)",
                )
            )
        test = Recorder("condition", self._recorder)
        with test.active():
            test.block.results = (cast_to(test, test.operand(self._condition), "bool"),)
        finish_loop(self._recorder, test, body, [], [])


class Switch:
    """The first case whose condition holds runs, else the default.

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program()):
        ...     step, rate = paddle.full([1], 7, "int64"), paddle.zeros([1])
        ...     with paddle.static.nn.Switch() as switch:
        ...         with switch.case(step < 5):
        ...             _ = paddle.assign(paddle.full([1], 0.1), rate)
        ...         with switch.default():
        ...             _ = paddle.assign(paddle.full([1], 0.01), rate)
        ...     paddle.static.Executor().run(paddle.static.default_main_program(), fetch_list=[rate])
        [array([0.01], dtype=float32)]
        >>> paddle.disable_static()
    """

    def __init__(self, name: str | None = None) -> None:
        self._recorder = _recorder("Switch", "a Python if")
        self._cases: list[tuple[Any, Recorder]] = []
        #: Where the next case is recorded: what runs when none before it does.
        self._others = [self._recorder]
        self._has_default = False
        self._is_open = False

    def __enter__(self) -> Switch:
        self._is_open = True
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._is_open = False
        if kind is not None:
            return
        if not self._cases:
            raise ArgumentError(message("Switch: there is no case", "a default alone is no choice", "add a case"))
        for number in reversed(range(len(self._cases))):
            condition, inner = self._cases[number]
            outer = self._others[number]
            join_blocks(outer, outer.operand(condition), (inner, self._others[number + 1]), [])

    @contextmanager
    def case(self, condition: Any) -> Iterator[None]:
        """What runs where the condition, a bool Variable of one element, is the first that holds."""
        self._check("case")
        checked = checked_condition("Switch.case", _variable("Switch.case", "condition", condition))
        inner = Recorder("case", self._others[-1])
        with inner.active():
            yield
        self._cases.append((checked, inner))
        self._others.append(Recorder("otherwise", self._others[-1]))

    @contextmanager
    def default(self) -> Iterator[None]:
        """What runs where no condition holds."""
        self._check("default")
        self._has_default = True
        if not self._cases:
            raise ArgumentError(message("Switch.default() before any case", "the default comes last"))
        with self._others[-1].active():
            yield

    def _check(self, what: str) -> None:
        if not self._is_open:
            raise ArgumentError(
                message(f"Switch.{what}() outside of the Switch", "", "write `with Switch() as switch:` around it")
            )
        if self._has_default:
            raise ArgumentError(message(f"Switch.{what}() after the default", "the default comes last"))


class IfElse:
    """Rows where a mask holds go through one block, the others through another; the outputs come back in their rows' order.

    Args:
        cond: a bool Variable [N, 1] or [N].
        name: accepted for compatibility.

    Example:
        >>> import numpy as np
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program()):
        ...     x = paddle.static.data("x", [None, 1])
        ...     split = paddle.static.nn.IfElse(x > 0)
        ...     with split.true_block():
        ...         split.output(split.input(x) * 10)
        ...     with split.false_block():
        ...         split.output(-split.input(x))
        ...     (y,) = split()
        ...     paddle.static.Executor().run(feed={"x": np.array([[1], [-2], [3]], "float32")}, fetch_list=[y])[0].tolist()
        [[10.0], [2.0], [30.0]]
        >>> paddle.disable_static()
    """

    def __init__(self, cond: Any, name: str | None = None) -> None:
        _recorder("IfElse", "paddle.where")
        _variable("IfElse", "cond", cond)
        if cond.dtype != "bool" or cond.ndim not in (1, 2) or (cond.ndim == 2 and cond.shape[1] != 1):
            raise ArgumentTypeError(
                message(f"IfElse: cond is {cond.dtype}{list(cond.shape)}", "it must be a bool for each row, [N, 1]")
            )
        flat = OPS["reshape"](cond, [-1])
        self._rows = {which: OPS["reshape"](OPS["nonzero"](flat == which), [-1]) for which in (True, False)}
        self._outputs: dict[bool, list[Any]] = {}
        self._inside: bool | None = None

    @contextmanager
    def _block(self, which: bool) -> Iterator[None]:
        if which in self._outputs or self._inside is not None:
            raise ArgumentError(message("IfElse: a block is entered twice", "there is one true_block and one false_block"))
        self._inside = which
        self._outputs[which] = []
        try:
            yield
        finally:
            self._inside = None

    def true_block(self) -> Any:
        """The block of the rows where the mask holds."""
        return self._block(True)

    def false_block(self) -> Any:
        """The block of the other rows."""
        return self._block(False)

    def input(self, x: Any) -> Any:
        """The rows of x [N, ...] that this block is for."""
        return OPS["index_select"](x, self._rows[self._current("input")], 0)

    def output(self, *outs: Any) -> None:
        """What this block gives, [rows, ...]; in the other block as many, of equal dtypes and shapes."""
        self._outputs[self._current("output")] += outs

    def _current(self, what: str) -> bool:
        if self._inside is None:
            raise ArgumentError(message(f"IfElse.{what}() outside of a block", "", "call it in true_block() or false_block()"))
        return self._inside

    def __call__(self) -> list[Any]:
        """The outputs of both blocks, in the order of the rows that they came of."""
        yes, no = self._outputs.get(True, []), self._outputs.get(False, [])
        if len(yes) != len(no) or not yes:
            raise ArgumentError(
                message(f"IfElse: the true_block gives {len(yes)} outputs and the false_block {len(no)}", "it must be as many")
            )
        places = OPS["argsort"](OPS["concat"]([self._rows[True], self._rows[False]], 0))
        return [OPS["index_select"](OPS["concat"]([a, b], 0), places, 0) for a, b in zip(yes, no, strict=True)]


class StaticRNN:
    """A recurrent network over the first axis: its block is one step.

    Example:
        >>> import numpy as np
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program()):
        ...     x = paddle.static.data("x", [None, 2, 1])
        ...     rnn = paddle.static.nn.StaticRNN()
        ...     with rnn.step():
        ...         total = rnn.memory(shape=[-1, 1], batch_ref=x)
        ...         new = total + rnn.step_input(x)
        ...         rnn.update_memory(total, new)
        ...         rnn.step_output(new)
        ...     y = rnn()
        ...     paddle.static.Executor().run(feed={"x": np.ones((3, 2, 1), "float32")}, fetch_list=[y])[0][:, 0, 0].tolist()
        [1.0, 2.0, 3.0]
        >>> paddle.disable_static()
    """

    def __init__(self, name: str | None = None) -> None:
        self._outer = _recorder("StaticRNN", "nn.RNN")
        self._body: Recorder | None = None
        self._steps: Any = None
        self._number: Any = None
        self._starts: list[Variable] = []
        self._carried: list[Variable] = []
        self._ends: dict[int, Any] = {}
        self._arrays: list[Any] = []
        self._results: list[Any] | None = None

    @contextmanager
    def step(self) -> Iterator[None]:
        """The block of one step; entered once."""
        if self._body is not None:
            raise ArgumentError(message("StaticRNN.step() is entered twice", "a network has one step"))
        body = self._body = Recorder("body", self._outer)
        self._number = self._carry(OPS["zeros"]([], "int64"))
        with body.active():
            yield
            self._ends[id(self._number)] = self._number + 1
            draw_anew(body)
        self._finish(body)

    def _carry(self, start: Any) -> Variable:
        """The Variable of the block for what starts as ``start``."""
        body: Any = self._body
        with self._outer.active():
            value = self._outer.operand(start)
            value = cast_to(self._outer, value, value.dtype)
        made: Variable = body.adopt(value.like(body.root.fresh_name("carried")))
        body.block.arguments.append(made)
        self._starts.append(value)
        self._carried.append(made)
        return made

    def _inside(self, what: str) -> Recorder:
        if self._body is None or self._results is not None:
            raise ArgumentError(message(f"StaticRNN.{what}() outside of the step", "", "call it in `with rnn.step():`"))
        return self._body

    def step_input(self, x: Any) -> Any:
        """The present step's part of x [steps, ...]."""
        self._inside("step_input")
        _variable("StaticRNN.step_input", "x", x)
        if not x.ndim:
            raise ShapeError(message("StaticRNN.step_input(): x has no axes", "its first axis is the steps"))
        if self._steps is None:
            with self._outer.active():
                size = x.shape[0]
                self._steps = OPS["shape"](x)[0] if size == UNKNOWN else OPS["full"]([], int(size), "int64")
        return OPS["squeeze"](OPS["index_select"](x, OPS["reshape"](self._number, [1]), 0), 0)

    def memory(
        self,
        init: Any = None,
        shape: Any = None,
        batch_ref: Any = None,
        init_value: float = 0.0,
        init_batch_dim_idx: int = 0,
        ref_batch_dim_idx: int = 1,
    ) -> Any:
        """What a step remembers: its value from the step before, which ``update_memory`` gives.

        Args:
            init: its first value; else ``shape`` and ``batch_ref`` say what it is like.
            shape: its sizes; the one at ``init_batch_dim_idx`` is that of ``batch_ref`` at ``ref_batch_dim_idx``.
            batch_ref: a Variable from outside of the step, [steps, N, ...].
            init_value: its first value.
        """
        body = self._inside("memory")
        if init is not None:
            return self._carry(_variable("StaticRNN.memory", "init", init))
        if shape is None or batch_ref is None:
            raise ArgumentError(message("StaticRNN.memory(): init is None", "shape and batch_ref must be given then"))
        _variable("StaticRNN.memory", "batch_ref", batch_ref)
        if batch_ref.recorder is body:
            raise ArgumentError(
                message(
                    "StaticRNN.memory(): batch_ref is made in the step",
                    "the first value is made before it",
                    "pass what step_input() took",
                )
            )
        sizes = list(shape)
        with self._outer.active():
            size = batch_ref.shape[ref_batch_dim_idx]
            sizes[init_batch_dim_idx] = OPS["shape"](batch_ref)[ref_batch_dim_idx] if size == UNKNOWN else int(size)
            dtype = batch_ref.dtype if dtypes.is_floating(batch_ref.dtype) else dtypes.default_float()
            start = OPS["full"](sizes, init_value, dtype)
        return self._carry(start)

    def update_memory(self, mem: Any, var: Any) -> None:
        """Say what a memory is in the next step."""
        self._inside("update_memory")
        if not any(mem is v for v in self._carried[1:]):
            raise ArgumentError(message("StaticRNN.update_memory(): mem is no memory", "it must be what memory() gave"))
        _variable("StaticRNN.update_memory", "var", var)
        if var.dtype != mem.dtype or var.ndim != mem.ndim:
            raise ShapeError(
                message(
                    f"StaticRNN.update_memory(): the memory is {mem.dtype}{list(mem.shape)} and var {var.dtype}{list(var.shape)}",
                    "dtype and rank must stay from step to step",
                )
            )
        self._ends[id(mem)] = var

    def step_output(self, o: Any) -> None:
        """Give o for every step: the network gives [steps, *o.shape]."""
        self._inside("step_output")
        with self._outer.active():
            array = create_array(_variable("StaticRNN.step_output", "o", o).dtype)
        array_write(o, self._number, array)
        self._arrays.append(array)

    def output(self, *outputs: Any) -> None:
        """``step_output`` of each."""
        for o in outputs:
            self.step_output(o)

    def _finish(self, body: Recorder) -> None:
        if self._steps is None:
            raise ArgumentError(message("StaticRNN: the step has no step_input()", "how many steps there are is not known"))
        if not self._arrays:
            raise ArgumentError(message("StaticRNN: the step has no step_output()", "it computes nothing"))
        outer = self._outer
        with body.active():
            body.block.results = tuple(body.resolve(self._ends.get(id(v), v)) for v in self._carried)
        kinds: list[Any] = [v.like() for v in self._starts]
        kinds = [k.merged(end) for k, end in zip(kinds, body.block.results, strict=True)]
        test = Recorder("condition", outer)
        with test.active():
            number = carried_arguments(test, kinds)[0]
            test.block.results = (test.call(OPERATORS["less_than"], [number, test.operand(self._steps)]),)
        finish_loop(outer, test, body, self._starts, kinds)
        with outer.active():
            self._results = [tensor_array_to_tensor(array, 0, True)[0] for array in self._arrays]

    def __call__(self) -> Any:
        """The outputs over all steps: a Variable, or a list where there are several."""
        if self._results is None:
            raise ArgumentError(message("StaticRNN(): the step is not complete", "", "call it after `with rnn.step():`"))
        return self._results[0] if len(self._results) == 1 else self._results
