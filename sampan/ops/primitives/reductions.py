"""Reductions. Reduced axes stay, with length 1, so that a result broadcasts back; public operators drop them by a reshape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base import dtypes
from ...base.errors import ShapeError, message
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Primitive, append, gradient_of, register, require_kind
from .maps import NUMBER, REAL, cast, conj, div, eq, mul, select


def _kept(op: Op) -> tuple[int, ...]:
    axes = op.attributes["axes"]
    shape = op.inputs[0].shape
    for axis in axes:
        if not 0 <= axis < len(shape):
            raise ShapeError(f"{op.name}: axis {axis} is outside of a tensor of rank {len(shape)}")
    return tuple(1 if k in axes else size for k, size in enumerate(shape))


def _reduction(
    name: str, kinds: str, function: Callable[..., Any], result: str = "", needs_one: bool = False
) -> Callable[..., Value]:
    def infer(op: Op) -> list[Type]:
        shape = op.inputs[0].shape
        if needs_one and any(shape[a] == 0 for a in op.attributes["axes"]) and math.prod(_kept(op)):
            raise ShapeError(
                message(
                    f"{name.removeprefix('reduce_')}(): a tensor of shape {list(shape)} has nothing to reduce along axes {list(op.attributes['axes'])}",
                    "",
                )
            )
        dtype = require_kind(op, kinds, op.inputs[0].dtype)
        return [(result or dtype, _kept(op))]

    def evaluate(x: Array, axes: tuple[int, ...]) -> Array:
        wide = x.astype(np.float32) if dtypes.itemsize(x.dtype.name) == 2 and dtypes.kind(x.dtype.name) == "f" else x
        if not x.size and needs_one:
            return np.empty([1 if k in axes else n for k, n in enumerate(x.shape)], result or x.dtype)
        with np.errstate(all="ignore"):
            return np.asarray(function(wide, axis=axes, keepdims=True)).astype(result or x.dtype, copy=False)

    register(Primitive(name, "reduce", infer, evaluate))

    def call(x: Value, axes: tuple[int, ...]) -> Value:
        return append(name, x, axes=tuple(axes))

    return call


reduce_sum = _reduction("reduce_sum", NUMBER, lambda x, **k: np.sum(x, dtype=x.dtype, **k))
reduce_prod = _reduction("reduce_prod", NUMBER, lambda x, **k: np.prod(x, dtype=x.dtype, **k))
reduce_max = _reduction("reduce_max", REAL, np.max, needs_one=True)
reduce_min = _reduction("reduce_min", REAL, np.min, needs_one=True)
reduce_any = _reduction("reduce_any", "b", np.any)
reduce_all = _reduction("reduce_all", "b", np.all)


def _flat_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """argmax over several axes: the position in them flattened in order."""

    def evaluate(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
        others = [k for k in range(x.ndim) if k not in axis]
        flat = x.transpose(others + list(axis)).reshape([x.shape[k] for k in others] + [-1])
        return np.asarray(function(flat, axis=-1)).reshape([1 if k in axis else n for k, n in enumerate(x.shape)])

    return evaluate


reduce_argmax = _reduction("reduce_argmax", REAL, _flat_argument(np.argmax), "int64", needs_one=True)
reduce_argmin = _reduction("reduce_argmin", REAL, _flat_argument(np.argmin), "int64", needs_one=True)


def _like(g: Value, x: Value) -> Value:
    return append("broadcast_to", g, shape=x.shape) if g.shape != x.shape else g


@gradient_of("reduce_sum")
def _sum_gradient(op: Op, g: Value) -> tuple[Value]:
    return (_like(g, op.inputs[0]),)


@gradient_of("reduce_prod")
def _prod_gradient(op: Op, g: Value) -> tuple[Value]:
    """Right with zeros too: with one zero only that element has a gradient, the product of the others."""
    x, axes = op.inputs[0], op.attributes["axes"]
    is_zero = eq(x, 0)
    zeros = reduce_sum(cast(is_zero, "int32"), axes)
    nonzero = reduce_prod(select(is_zero, 1, x), axes)
    y = _like(op.outputs[0], x)
    by_division = select(is_zero, 0, div(y, select(is_zero, 1, x)))
    one_zero = select(_like(eq(zeros, 1), x), select(is_zero, _like(nonzero, x), 0), by_division)
    factor = conj(one_zero) if dtypes.is_complex(x.dtype) else one_zero
    return (mul(_like(g, x), factor),)


def _winner_gradient(op: Op, g: Value) -> tuple[Value]:
    """Shared equally among equal winners; a NaN result gives its gradient to nobody."""
    x, y, axes = op.inputs[0], op.outputs[0], op.attributes["axes"]
    is_winner = eq(x, _like(y, x))
    count = reduce_sum(cast(is_winner, x.dtype), axes)
    return (select(is_winner, _like(div(g, count), x), 0),)


gradient_of("reduce_max")(_winner_gradient)
gradient_of("reduce_min")(_winner_gradient)
