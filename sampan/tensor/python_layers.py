"""Functions with a backward of their own in recorded Programs: ``autograd.PyLayer`` and ``static.nn.static_pylayer``.

The backward is recorded beside the forward, into a closed block. Its Op takes what the block captures, the results of the forward, through which no
gradient flows, and the operands; it hands the results on. A Program that holds its gradients copies the block where they are computed; where the
eager tape differentiates pieces, the Op is a statement between them that puts a node on the tape.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .. import _rt
from ..base import dtypes, nest
from ..base.errors import ArgumentError, ArgumentTypeError, AutogradError, ShapeError, UnsupportedError, message
from ..ir.program import Op
from ..ops.define import OPERATORS
from .autograd import PyLayer, PyLayerContext, made_types, no_grad, zeros_of
from .build import OPS
from .location import user_location
from .program_gradients import copy_block
from .recording import Recorder, current_recorder
from .replay import FUNCTIONS, Operand, RecordedFunction
from .runner import CONTROL_STEPS, Runner, Step
from .variable import UNKNOWN, Variable

#: The Op in Programs that hold their gradients, and the statement where the tape differentiates.
_FUSED, _STATEMENT = "static_pylayer", "python_layer"
#: How many of the Op's inputs are captured, and for which operands the block gives a gradient.
_CAPTURED, _TARGETS = "@captured", "@targets"

_Backward = Callable[..., Sequence[Any]]


def run_static_pylayer(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The results that were computed already."""
    return tuple(inputs)


def _gradients(recorder: Recorder, op: Op, present: list[int], given: list[Any], targets: list[int]) -> list[Any]:
    known = dict(zip(present, given, strict=True))
    flowing = [known[k] if k in known else recorder.call(OPERATORS["zeros_like"], [v, None]) for k, v in enumerate(op.outputs)]
    found = copy_block(recorder, op.blocks[0], [*op.inputs[: op.attributes[_CAPTURED]], *flowing])
    first = op.attributes[_CAPTURED] + len(op.outputs)
    by_input = {id(op.inputs[first + k]): g for k, g in zip(op.attributes[_TARGETS], found, strict=True)}
    return [
        by_input[id(v)] if id(v) in by_input else recorder.call(OPERATORS["zeros_like"], [v, None])
        for v in (op.inputs[k] for k in targets)
    ]


for _name in (_FUSED, _STATEMENT):
    FUNCTIONS[_name] = RecordedFunction(_name, run_static_pylayer, inspect.signature(run_static_pylayer), None, _gradients)


def _statement_step(op: Op) -> Step:
    backward = Runner(op.blocks[0], name="backward")
    count, targets = op.attributes[_CAPTURED], op.attributes[_TARGETS]
    inputs, results = [id(v) for v in op.inputs], [id(v) for v in op.outputs]
    total = len(inputs) - count - len(results)

    def run_backward(types: list[Any], *passed: Any) -> tuple[Any, ...]:
        captured, given = (passed[0], passed[1:]) if count else ((), passed)
        flowing = [
            zeros_of(shape, dtype) if g is None else g if g.dtype.name == dtype else g.astype(dtype)
            for g, (shape, dtype) in zip(given, types, strict=True)
        ]
        found = dict(zip(targets, backward([*captured, *flowing]), strict=True))
        return tuple(found.get(k) for k in range(total))

    def step(environment: dict[int, Any]) -> None:
        values = [environment[k] for k in inputs]
        captured, made, leaves = values[:count], values[count : len(values) - total], values[len(values) - total :]
        made = [v.detach() for v in made]
        if _rt.grad_enabled() and not all(v.stop_gradient for v in leaves):
            _rt.PyNode(_STATEMENT, functools.partial(run_backward, made_types(made)), leaves, made, tuple(captured))
        environment.update(zip(results, made, strict=True))

    return step


CONTROL_STEPS[_STATEMENT] = _statement_step


class _Layer:
    """One call that is being recorded. ``operands``: what gets gradients, one for each place of ``leaves``."""

    def __init__(self, recorder: Recorder, name: str, leaves: Sequence[Any]) -> None:
        self.recorder, self.name = recorder, name
        self.leaves = [recorder.operand(v) for v in leaves]
        self.operands = list({id(v): v for v in self.leaves}.values())

    @property
    def wants_gradient(self) -> bool:
        """Whether a gradient may flow to an operand, also of a copy of this call in another block."""
        return _rt.grad_enabled() and any(not v.stop_gradient or v.was_constant for v in self.operands)

    def results(self, values: Sequence[Any]) -> list[Variable]:
        """The Variables of what the forward gives."""
        found = [self.recorder.operand(v) for v in values]
        return [OPS["assign"](v) if any(v is w for w in self.operands) else v for v in found]

    def finish(self, results: Sequence[Variable], backward: _Backward) -> list[Variable]:
        """The results with this backward, which takes a gradient for each and gives one for each leaf."""
        recorder = self.recorder
        inner = Recorder("backward", recorder)
        with inner.active():
            flowing = [inner.adopt(v.like(recorder.fresh_gradient_name(v.name))) for v in results]
            for v in flowing:
                v.stop_gradient = False
            found = backward(*flowing)
            if len(found) != len(self.leaves):
                raise AutogradError(
                    message(
                        f"{self.name} gives {len(found)} values",
                        f"there are {len(self.leaves)} tensors that a gradient may flow to",
                        "return one gradient (or None) for each of them, in order",
                    )
                )
            targets, gradients = [], []
            for k, operand in enumerate(self.operands):
                own = [g for g, v in zip(found, self.leaves, strict=True) if v is operand and g is not None]
                if own and dtypes.is_differentiable(operand.dtype):
                    targets.append(k)
                    gradients.append(self._gradient(inner, operand, own))
        if inner.written:
            name = next(iter(inner.written.values())).name
            raise UnsupportedError(
                message(
                    f"{self.name} writes {name} in place",
                    "a recorded backward computes gradients, and runs as often as they are asked for",
                    "compute a new tensor",
                )
            )
        captured = list(inner.captured.values())
        inner.block.arguments = [*(v for _, v in captured), *flowing]
        inner.block.results = tuple(gradients)
        inputs = [*(v for v, _ in captured), *results, *self.operands]
        attributes = {
            "inputs": tuple(Operand(len(captured) + k) for k in range(len(results))),
            _CAPTURED: len(captured),
            _TARGETS: tuple(targets),
        }
        name = _STATEMENT if recorder.root.draws_inside else _FUSED
        op = Op(name, tuple(inputs), attributes, (), (inner.block,), user_location(), recorder.role)
        is_constant = all(v.stop_gradient for v in self.operands)
        op.outputs = tuple(self._output(op, v, is_constant) for v in results)
        recorder.block.ops.append(op)
        return list(op.outputs)  # type: ignore[arg-type]

    def _gradient(self, inner: Recorder, operand: Variable, parts: Sequence[Any]) -> Variable:
        total = inner.operand(functools.reduce(OPS["add"], parts))
        if len(total.sizes) != len(operand.sizes) or any(
            m != n and UNKNOWN not in (m, n) for m, n in zip(total.sizes, operand.sizes, strict=True)
        ):
            raise ShapeError(
                message(
                    f"{self.name} gives a gradient of shape {list(total.sizes)}",
                    f"the tensor that it belongs to has shape {list(operand.sizes)}",
                    "return a gradient of the tensor's shape",
                )
            )
        return total if total.dtype == operand.dtype else inner.operand(OPS["cast"](total, operand.dtype))

    def _output(self, op: Op, like: Variable, is_constant: bool) -> Variable:
        made = self.recorder.adopt(like.like(self.recorder.fresh_name(op.name)))
        made.op, made.persistable = op, False
        made.stop_gradient = is_constant or not dtypes.is_differentiable(made.dtype)
        made.was_constant = is_constant and dtypes.is_differentiable(made.dtype)
        return made


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (Variable, _rt.Tensor))


def record_python_layer(
    layer: type[PyLayer],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    convert: Callable[[Any], Any] = lambda function: function,
    context: PyLayerContext | None = None,
) -> Any:
    """``layer.apply(*args, **kwargs)`` as a part of the Program that is being recorded. ``convert``: gives what is called in the place of its methods.

    Raises:
        UnsupportedError: backward wants to know which outputs nothing depends on, or writes in place.
        AutogradError: backward gives another number of gradients than forward took tensors.
    """
    recorder: Any = current_recorder()
    ctx = PyLayerContext() if context is None else context
    call = _Layer(
        recorder, f"{layer.__name__}.backward()", [v for v in nest.flatten([list(args), dict(kwargs)]) if _is_tensor(v)]
    )
    ctx.needs_input_grad = tuple(_is_tensor(v) and not v.stop_gradient for v in args)
    with no_grad():
        outputs = convert(layer.forward)(ctx, *args, **kwargs)
        places = [v for v in nest.flatten(outputs) if _is_tensor(v)]
        results = call.results(places)
    if not call.wants_gradient:
        return outputs
    excluded = {id(v) for v in ctx._not_differentiable}
    carries = [id(v) not in excluded and dtypes.is_differentiable(r.dtype) for v, r in zip(places, results, strict=True)]
    if not ctx._materialize and len(results) > 1:
        raise UnsupportedError(
            message(
                f"{layer.__name__} calls set_materialize_grads(False) and has {len(results)} outputs",
                "a recorded Program does not know which of them a run's gradients come from",
                "leave it out: backward then sees zeros",
            )
        )

    def backward(*given: Any) -> Sequence[Any]:
        present = iter(given)
        flowing = [next(present) if carried else OPS["zeros_like"](r) for carried, r in zip(carries, results, strict=True)]
        found = convert(layer.backward)(ctx, *flowing)
        return found if isinstance(found, (list, tuple)) else [found]

    carried = [r for r, c in zip(results, carries, strict=True) if c]
    made = iter(call.finish(carried, backward) if carried else ())
    new = iter([next(made) if c else r for r, c in zip(results, carries, strict=True)])
    return nest.map_structure(lambda v: next(new) if _is_tensor(v) else v, outputs)


Recorder.call_python_layer = staticmethod(record_python_layer)


def static_pylayer(
    forward_fn: Callable[..., Any], inputs: Any, backward_fn: Callable[..., Any] | None = None, name: str | None = None
) -> Any:
    """``forward_fn(*inputs)``, whose gradients are what ``backward_fn`` gives of the gradients of its results.

    Args:
        forward_fn: takes the inputs; gives a Variable or a list or tuple of them. No gradient flows through what it does.
        inputs: a list of Variables.
        backward_fn: takes a gradient for each result; gives one for each input, None for none. Without it no gradient flows.
        name: accepted for compatibility.

    Raises:
        ArgumentTypeError: forward_fn or backward_fn is no function, or inputs holds something else than Variables.
        ArgumentError: backward_fn gives another number of gradients than there are inputs.

    Example:
        >>> import numpy as np
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main = paddle.static.Program()
        >>> with paddle.static.program_guard(main):
        ...     x = paddle.static.data("x", [1])
        ...     x.stop_gradient = False
        ...     y = paddle.static.nn.static_pylayer(lambda x: x * x, [x], lambda g: g * 100)
        ...     (slope,) = paddle.static.gradients(y, x)
        >>> paddle.static.Executor().run(main, {"x": np.array([3], "float32")}, [y, slope])
        [array([9.], dtype=float32), array([100.], dtype=float32)]
        >>> paddle.disable_static()
    """
    for what, function in (("forward_fn", forward_fn), ("backward_fn", backward_fn)):
        if not callable(function) and not (what == "backward_fn" and function is None):
            raise ArgumentTypeError(message(f"static_pylayer(): {what} is a {type(function).__name__}", "it must be callable"))
    handles = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    for v in handles:
        if not _is_tensor(v):
            raise ArgumentTypeError(message(f"static_pylayer(): inputs holds a {type(v).__name__}", "it must hold Variables"))
    recorder = current_recorder()
    if recorder is None:
        raise UnsupportedError(message("static_pylayer() in eager mode", "", "use paddle.autograd.PyLayer"))
    call = _Layer(recorder, "static_pylayer(): backward_fn", handles)
    with no_grad():
        outputs = forward_fn(*handles)
        results = call.results([v for v in nest.flatten(outputs) if _is_tensor(v)])
    if backward_fn is not None and call.wants_gradient:

        def backward(*given: Any) -> Sequence[Any]:
            found = backward_fn(*given)
            made = list(found) if isinstance(found, (list, tuple)) else [found]
            if len(made) != len(handles):
                raise ArgumentError(
                    message(f"static_pylayer(): backward_fn returns {len(made)} values", f"there are {len(handles)} inputs")
                )
            return made

        results = call.finish(results, backward)
    made = iter(results)
    return nest.map_structure(lambda v: next(made) if _is_tensor(v) else v, outputs)
