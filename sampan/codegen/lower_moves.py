"""Lowering of pad, concat and insert_slice: every part is written where it belongs in the result."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.program import Op, Value
from .lower_kernels import Lowered, lower_trace
from .places import Place, view_of
from .trace import trace_fill, trace_value


def _slice(place: Place, starts: tuple[int, ...], sizes: tuple[int, ...], steps: tuple[int, ...]) -> Place:
    part = view_of(place, "slice", {"starts": starts, "steps": steps}, sizes)
    return place if part is None else part


def _write(lowering: Lowered, value: Value, target: Place) -> None:
    if 0 not in value.shape:
        lower_trace(lowering, trace_value(value), targets={id(value): target})


def _fill(lowering: Lowered, number: object, target: Place) -> None:
    if 0 not in target.shape:
        trace = trace_fill(number, target.dtype, target.shape)
        lower_trace(lowering, trace, targets={id(trace.stores[0][0]): target})


def _concat(lowering: Lowered, op: Op, result: Place) -> None:
    axis, at = op.attributes["axis"], 0
    ones = (1,) * len(result.shape)
    for value in op.inputs:
        starts = tuple(at if k == axis else 0 for k in range(value.ndim))
        _write(lowering, value, _slice(result, starts, value.shape, ones))
        at += value.shape[axis]


def _insert_slice(lowering: Lowered, op: Op, result: Place) -> None:
    x, part = op.inputs
    if part.shape != x.shape:
        _write(lowering, x, result)
    _write(lowering, part, _slice(result, op.attributes["starts"], part.shape, op.attributes["steps"]))


def _pad(lowering: Lowered, op: Op, result: Place) -> None:
    x, low, high = op.inputs[0], op.attributes["low"], op.attributes["high"]
    ones = (1,) * x.ndim
    starts, sizes = [0] * x.ndim, list(result.shape)
    for k, n in enumerate(x.shape):  # what is left of the result after the axes before k were cut to x's extent
        for start, size in ((0, low[k]), (low[k] + n, high[k])):
            border = _slice(result, (*starts[:k], start, *starts[k + 1 :]), (*sizes[:k], size, *sizes[k + 1 :]), ones)
            _fill(lowering, op.attributes["value"], border)
        starts[k], sizes[k] = low[k], n
    _write(lowering, x, _slice(result, low, x.shape, ones))


MOVES: dict[str, Callable[[Lowered, Op, Place], None]] = {"concat": _concat, "insert_slice": _insert_slice, "pad": _pad}
