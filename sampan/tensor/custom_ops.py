"""Statements whose gradient or effect a user's function gives: Python calls, printing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, UnsupportedError, message
from ..ir.program import Op
from ..ops.define import OPERATORS
from .location import user_location
from .recording import Recorder, current_recorder
from .replay import BACKWARD, DYNAMIC, EFFECT, FUNCTIONS, Operand, RecordedFunction
from .variable import UNKNOWN, Variable


def _define(function: Callable[..., Any]) -> str:
    name = function.__name__.removeprefix("run_")
    FUNCTIONS[name] = RecordedFunction(name, function, inspect.signature(function))
    return name


def _append(
    recorder: Recorder, name: str, inputs: Sequence[Variable], attributes: dict[str, Any], kinds: Sequence[Variable], stop: bool
) -> tuple[Variable, ...]:
    """An Op of a function above, with outputs of these kinds."""
    attributes = {"inputs": tuple(Operand(k) for k in range(len(inputs)))} | attributes
    op = Op(name, tuple(inputs), attributes, (), (), user_location(), recorder.role)
    outputs = []
    for kind in kinds:
        made = recorder.adopt(kind.like(recorder.fresh_name(name)))
        made.op, made.persistable = op, False
        made.stop_gradient = stop or not dtypes.is_differentiable(made.dtype)
        outputs.append(made)
    op.outputs = tuple(outputs)
    recorder.block.ops.append(op)
    return tuple(outputs)


def _variables(function: str, name: str, value: Any) -> list[Any]:
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    for v in found:
        if not isinstance(v, (Variable, _rt.Tensor)):
            raise ArgumentTypeError(message(f"{function}(): {name} holds a {type(v).__name__}", "it must hold Variables"))
    return found


# ---------------------------------------------------------------------- Python calls


def run_py_func(inputs: Sequence[Any], function: Callable[..., Any], types: Sequence[tuple[str, tuple[int, ...]]]) -> list[Any]:
    """What the user's function gives, as tensors of the declared types."""
    found = function(*inputs)
    results = [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]
    name = getattr(function, "__name__", "the function")
    if len(results) != len(types):
        raise ArgumentError(message(f"py_func(): {name} returns {len(results)} values", f"out has {len(types)} Variables"))
    tensors = []
    for value, (dtype, sizes) in zip(results, types, strict=True):
        made = value if isinstance(value, _rt.Tensor) else _rt.from_numpy(np.array(value, order="C"), True)
        if made.dtype.name != dtype:
            raise DTypeError(
                message(f"py_func(): {name} returns {made.dtype.name}", f"out is {dtype}", "convert it, or declare out so")
            )
        if len(sizes) != made.ndim or any(m not in (n, UNKNOWN) for m, n in zip(sizes, made.shape, strict=True)):
            raise ShapeError(message(f"py_func(): {name} returns shape {list(made.shape)}", f"out has {list(sizes)}"))
        tensors.append(made)
    return tensors


_PY_FUNC = _define(run_py_func)


def _summed(gradients: Sequence[Any], places: Sequence[int]) -> Any:
    """The gradient of an input that stands at these places of x."""
    given = [np.asarray(gradients[k]) for k in places if gradients[k] is not None]
    if not given:
        raise ArgumentError(message("py_func(): backward_func gives None for an input that needs a gradient"))
    return given[0] if len(given) == 1 else sum(given[1:], given[0])


def py_func(
    func: Callable[..., Any],
    x: Any,
    out: Any,
    backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Any = None,
) -> Any:
    """A call of a Python function as a statement: ``out`` becomes ``func(*x)`` in every run.

    Args:
        func: takes as many tensors as x holds; gives as many tensors or arrays as out holds (None for none).
        x: a Variable or a list of them.
        out: the Variables, made by ``create_var``, that become the results; their dtypes and shapes are checked in every run.
        backward_func: takes x, out and the gradients of out; gives the gradients of x, None for none. Without it no gradient flows.
        skip_vars_in_backward_input: those of x and out that ``backward_func`` does not take.

    Returns:
        out.

    Raises:
        ArgumentTypeError: what is called is no function, or x or out hold no Variables.

    Example:
        >>> import numpy as np
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main = paddle.static.Program()
        >>> with paddle.static.program_guard(main):
        ...     x = paddle.static.data("x", [2], "float32")
        ...     out = main.global_block().create_var("out", [2], "float32")
        ...     _ = paddle.static.py_func(lambda x: np.sort(np.array(x)), x, out)
        >>> paddle.static.Executor().run(main, {"x": np.array([3, 1], "float32")}, [out])
        [array([1., 3.], dtype=float32)]
        >>> paddle.disable_static()
    """
    for what, function in (("func", func), ("backward_func", backward_func)):
        if not callable(function) and not (what == "backward_func" and function is None):
            raise ArgumentTypeError(message(f"py_func(): {what} is a {type(function).__name__}", "it must be callable"))
    recorder = current_recorder()
    if recorder is None:
        raise UnsupportedError(
            message("py_func() in eager mode", "there every call is a Python call", "call the function itself")
        )
    handles = [] if x is None else _variables("py_func", "x", x)
    outs = [] if out is None else _variables("py_func", "out", out)
    skipped = {v.name for v in _variables("py_func", "skip_vars_in_backward_input", skip_vars_in_backward_input or [])}
    strange = skipped - {v.name for v in (*handles, *outs)}
    if strange:
        raise ArgumentError(message(f"py_func(): {sorted(strange)} are to be skipped", "they are neither in x nor in out"))
    inputs = [recorder.operand(v) for v in handles]
    takes = [v.name not in skipped for v in (*handles, *outs)]

    def backward(inner: Recorder, op: Op, present: list[int], given: list[Variable], targets: list[int]) -> list[Variable]:
        known = dict(zip(present, given, strict=True))
        gradients = [known[k] if k in known else inner.call(OPERATORS["zeros_like"], [v, None]) for k, v in enumerate(op.outputs)]
        operands = [v for v, taken in zip((*op.inputs, *op.outputs), takes, strict=True) if taken]
        count = len(op.inputs)
        places = {k: [j for j, v in enumerate(op.inputs) if v is op.inputs[k]] for k in targets}

        def call(*values: Any) -> list[Any]:
            found = backward_func(*values)  # type: ignore[misc]
            results = list(found) if isinstance(found, (list, tuple)) else [found]
            if len(results) != count:
                raise ArgumentError(
                    message(f"py_func(): backward_func returns {len(results)} values", f"x has {count} Variables")
                )
            return [_summed(results, places[k]) for k in targets]

        kinds: list[Any] = [op.inputs[k] for k in targets]
        types = tuple((v.dtype, v.sizes) for v in kinds)
        return list(
            _append(inner, _PY_FUNC, [*operands, *gradients], {"function": call, "types": types, DYNAMIC: 0}, kinds, True)  # type: ignore[list-item]
        )

    attributes: dict[str, Any] = {"function": func, "types": tuple((v.dtype, v.sizes) for v in outs), DYNAMIC: 0}
    if not outs:
        attributes[EFFECT] = True
    if backward_func is not None:
        attributes[BACKWARD] = backward
    stop = backward_func is None or not _rt.grad_enabled() or all(v.stop_gradient for v in inputs)
    for handle, new in zip(outs, _append(recorder, _PY_FUNC, inputs, attributes, outs, stop), strict=True):
        recorder.write(handle, new)
    return out


# ---------------------------------------------------------------------- printing


class _Counter:
    """How often something was printed."""

    def __init__(self, most: int) -> None:
        self.most, self.count = most, 0

    def next(self) -> bool:
        """Whether it may be printed once more."""
        self.count += 1
        return self.most < 0 or self.count <= self.most


def run_print_variable(inputs: Sequence[Any], shown: dict[str, Any], counter: _Counter) -> list[Any]:
    """The tensor, after it was printed."""
    (tensor,) = inputs
    if counter.next():
        print(_printed(tensor, **shown))
    return [tensor]


_PRINT = _define(run_print_variable)


def _printed(
    tensor: Any,
    name: str,
    text: str | None,
    summarize: int,
    with_name: bool,
    with_type: bool,
    with_shape: bool,
    with_layout: bool,
) -> str:
    lines = [text] if text else []
    if with_name:
        lines.append(f"Variable: {name}")
    lines.append("  - place: Place(cpu)")
    if with_shape:
        lines.append(f"  - shape: {list(tensor.shape)}")
    if with_layout:
        lines.append("  - layout: NCHW")
    if with_type:
        lines.append(f"  - dtype: {tensor.dtype.name}")
    elements = np.asarray(tensor.numpy_view(), dtypes.numpy_dtype(tensor.dtype.name)).ravel()
    chosen = elements if summarize < 0 else elements[:summarize]
    lines.append(f"  - data: [{' '.join(map(str, chosen.tolist()))}]")
    return "\n".join(lines)


def print_variable(
    input: Any,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_layout: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Any:
    """The input, which is printed whenever the statement runs.

    Args:
        first_n: how often it is printed at most; -1: always.
        message: printed before it.
        summarize: how many elements are shown; -1: all.
        print_tensor_name, print_tensor_type, print_tensor_shape, print_tensor_layout: what is shown beside the elements.
        print_tensor_lod: accepted for compatibility.
        print_phase: ``forward``: the input; ``backward``: its gradient; ``both``.

    Example:
        >>> import numpy as np
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main = paddle.static.Program()
        >>> with paddle.static.program_guard(main):
        ...     y = paddle.static.Print(paddle.static.data("x", [2]), message="here")
        >>> _ = paddle.static.Executor().run(main, {"x": np.array([3, 1], "float32")}, [y])
        here
        Variable: x
          - place: Place(cpu)
          - shape: [2]
          - layout: NCHW
          - dtype: float32
          - data: [3.0 1.0]
        >>> paddle.disable_static()
    """
    (value,) = _variables("Print", "input", [input])
    phase = print_phase.lower() if isinstance(print_phase, str) else print_phase
    if phase not in ("forward", "backward", "both"):
        raise ArgumentError(f"Print(): print_phase={print_phase!r}; it must be 'forward', 'backward' or 'both'")
    shown = {
        "name": value.name, "text": message, "summarize": summarize, "with_name": print_tensor_name, "with_type": print_tensor_type,
        "with_shape": print_tensor_shape, "with_layout": print_tensor_layout,
    }  # fmt: skip
    recorder = current_recorder()
    if recorder is None:
        if phase != "backward":
            print(_printed(value, **shown))
        return value

    def backward(inner: Recorder, op: Op, present: list[int], given: list[Variable], targets: list[int]) -> list[Variable]:
        if phase == "forward":
            return given
        counted = {"shown": {**shown, "name": f"{value.name}@GRAD"}, "counter": _Counter(first_n), DYNAMIC: 0, EFFECT: True}
        return list(_append(inner, _PRINT, given, counted, given, True))

    source = recorder.operand(value)
    attributes = {
        "shown": shown,
        "counter": _Counter(first_n if phase != "backward" else 0),
        DYNAMIC: 0,
        EFFECT: True,
        BACKWARD: backward,
    }
    return _append(recorder, _PRINT, [source], attributes, [source], source.stop_gradient)[0]
