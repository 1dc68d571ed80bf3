"""What Python does to whole lists, as statements on tensor arrays: slices, lists one behind the other, sums of all items."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _rt
from ..base.errors import ArgumentTypeError, IndexRangeError, ShapeError, message
from ..ir.program import Op
from .arrays import ArrayVariable, TensorArray, append_statement, stopped
from .recording import Recorder
from .replay import FUNCTIONS, Operand, RecordedFunction
from .variable import Variable

_BOUNDS = ("start", "stop", "step")


def _places(length: int, start: Any, stop: Any, step: Any, is_dropped: bool) -> list[int]:
    """The places of a slice, or all others."""
    bounds = [None if v is None else int(v) for v in (start, stop, step)]
    chosen = range(length)[slice(*bounds)]
    return [k for k in range(length) if k not in chosen] if is_dropped else list(chosen)


def _slice(array: Sequence[Any], start: Any, stop: Any, step: Any, is_dropped: bool) -> list[Any]:
    return [TensorArray(array[k] for k in _places(len(array), start, stop, step, is_dropped))]


def _spread(gradient: Sequence[Any], like: Sequence[Any], start: Any, stop: Any, step: Any, is_dropped: bool) -> list[Any]:
    made = TensorArray([None] * len(like))
    for k, value in zip(_places(len(like), start, stop, step, is_dropped), gradient, strict=False):
        made[k] = value
    return [made]


def _slice_backward(recorder: Recorder, op: Op, present: list[int], given: list[Any], targets: list[int]) -> list[Any]:
    array = op.inputs[0]
    attributes = {k: op.attributes[k] for k in (*_BOUNDS, "is_dropped")}
    moved = {k: op.inputs[v.index] for k, v in attributes.items() if isinstance(v, Operand)}
    plain = {k: v for k, v in attributes.items() if k not in moved}
    return append_statement(recorder, "array_spread", {"gradient": given[0], "like": array} | moved, [stopped(array)], **plain)


def _chain(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [TensorArray([*first, *second])]


def _chain_part(gradient: Sequence[Any], first: Sequence[Any], is_first: bool) -> list[Any]:
    return [TensorArray(gradient[: len(first)] if is_first else gradient[len(first) :])]


def _chain_backward(recorder: Recorder, op: Op, present: list[int], given: list[Any], targets: list[int]) -> list[Any]:
    operands = {"gradient": given[0], "first": op.inputs[0]}
    return [
        append_statement(recorder, "array_chain_part", operands, [stopped(op.inputs[k])], is_first=k == 0)[0] for k in targets
    ]


def _total(array: Sequence[Any], start: Any) -> list[Any]:
    values = list(array)
    if not values:
        raise IndexRangeError(
            message(
                "sum() of a list that is empty in this run",
                "it would be the number that the sum starts with, and the Program was recorded for a tensor",
                "start from a tensor of the items' shape: sum(items, paddle.zeros(...))",
            )
        )
    if any(tuple(v.shape) != tuple(values[0].shape) for v in values):
        shapes = sorted({tuple(v.shape) for v in values})
        raise ShapeError(
            message(
                f"sum() of a list whose items have shapes {', '.join(str(list(s)) for s in shapes)}",
                "a recorded Program adds up items of one shape",
                "give the items one shape",
            )
        )
    total = values.pop(0) if start is None else start
    for value in values:
        total = total + value
    return [total]


def _total_backward(recorder: Recorder, op: Op, present: list[int], given: list[Any], targets: list[int]) -> list[Any]:
    found = []
    for k in targets:
        if k == 0:
            operands = {"array": op.inputs[0], "gradient": given[0]}
            found += append_statement(recorder, "array_filled", operands, [stopped(op.inputs[0])])
        else:
            found.append(given[0])
    return found


def _filled(array: Sequence[Any], gradient: Any) -> list[Any]:
    return [TensorArray([gradient] * len(array))]


def _number_total(array: Sequence[Any], start: Any, dtype: str) -> list[Any]:
    first = start.item() if isinstance(start, _rt.Tensor) else start
    total = sum((v.item() for v in array), first)
    if dtype == "float64" and not isinstance(total, float):
        raise IndexRangeError(
            message(
                "sum() of a list of floats that is empty in this run",
                "it would be the int that the sum starts with, and the Program was recorded for a float",
                "start from a float: sum(items, 0.0)",
            )
        )
    return [_rt.from_numpy(np.array(total, dtype), False)]


for _name, _function, _backward in (
    ("array_slice", _slice, _slice_backward),
    ("array_spread", _spread, None),
    ("array_chain", _chain, _chain_backward),
    ("array_chain_part", _chain_part, None),
    ("array_total", _total, _total_backward),
    ("array_filled", _filled, None),
    ("array_number_total", _number_total, None),
):
    FUNCTIONS[_name] = RecordedFunction(_name, _function, inspect.signature(_function), None, _backward)


def _split(recorder: Recorder, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Operands and plain attributes among these."""
    operands = {k: recorder.operand(v) for k, v in given.items() if isinstance(v, (Variable, _rt.Tensor))}
    return operands, {k: v for k, v in given.items() if k not in operands}


def array_slice(recorder: Recorder, array: Any, bounds: slice, is_dropped: bool = False) -> Any:
    """A new array: the elements of a slice, whose bounds may be integer Variables; all others with ``is_dropped``."""
    operands, plain = _split(recorder, {k: getattr(bounds, k) for k in _BOUNDS})
    source = recorder.resolve(array)
    return append_statement(recorder, "array_slice", {"array": source} | operands, [source], is_dropped=is_dropped, **plain)[0]


def array_chain(recorder: Recorder, first: Any, second: Any) -> Any:
    """A new array: the elements of one, then those of the other."""
    a, b = recorder.resolve(first), recorder.resolve(second)
    kind: Any = a.merged(b)
    made = ArrayVariable(a.dtype or b.dtype, "", kind.element, kind.stop_gradient)
    return append_statement(recorder, "array_chain", {"first": a, "second": b}, [made])[0]


def array_total(recorder: Recorder, array: Any, start: Any = None) -> Any:
    """``start``, a number or a tensor of the elements' type, plus all elements; None: without a start.

    Raises:
        ArgumentTypeError: the array has no element yet, or start is of another type.
    """
    source: Any = recorder.resolve(array)
    kind = source.element
    if kind is None:
        raise ArgumentTypeError(message("the sum of a list that has no element yet", "write one before"))
    operands, plain = _split(recorder, {"start": start})
    given = operands.get("start")
    if given is not None and (given.dtype != kind.dtype or given.sizes != kind.sizes):
        raise ArgumentTypeError(
            message(
                f"the sum of a list of {kind.dtype}{list(kind.sizes)} starts with {given.dtype}{list(given.sizes)}",
                "start with a tensor of the items' type",
            )
        )
    made = Variable(kind.dtype, kind.sizes, stop_gradient=source.stop_gradient and (given is None or given.stop_gradient))
    return append_statement(recorder, "array_total", {"array": source} | operands, [made], **plain)[0]


def array_number_total(recorder: Recorder, array: Any, start: Any, dtype: str) -> Any:
    """``start`` plus all elements, which are Python numbers: a 0-D tensor of this dtype."""
    operands, plain = _split(recorder, {"start": start})
    source = recorder.resolve(array)
    return append_statement(
        recorder, "array_number_total", {"array": source} | operands, [Variable(dtype, ())], dtype=dtype, **plain
    )[0]
