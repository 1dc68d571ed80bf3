"""Host primitives of general use: checks of values at run time, constant arrays, and scalar functions of SciPy's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base import dtypes
from ...base.errors import ArgumentError, DTypeError, ShapeError
from ...base.lazy import scipy_special as special
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import (
    Array,
    Gradients,
    Primitive,
    append,
    gradient_of,
    map_call,
    primitive,
    register,
    require_kind,
    same_dtype,
    same_shape,
)
from .maps import INTEGER, div, eq, exp, lgamma, log, mul, neg, select, sign, sub


def _infer_require(op: Op) -> list[Type]:
    x, condition = op.inputs
    if condition.dtype != "bool":
        raise DTypeError(f"require: the condition is {condition.dtype}; it must be bool")
    return [(x.dtype, x.shape)]


@primitive("host", _infer_require, name="require")
def _require(x: Array, condition: Array, text: str) -> Array:
    if not np.all(condition):
        raise ArgumentError(text)
    return x


def require(x: Value, condition: Value, text: str) -> Value:
    """x itself; running it raises ArgumentError(text) unless the condition holds everywhere."""
    return append("require", x, condition, text=text)


@gradient_of("require")
def _require_gradient(op: Op, g: Value) -> Gradients:
    return g, None


@primitive("host", lambda op: [(op.attributes["dtype"], op.attributes["shape"])], name="array")
def _array(items: tuple[Any, ...], shape: tuple[int, ...], dtype: str) -> Array:
    return np.array(items).astype(dtypes.numpy_dtype(dtype)).reshape(shape)


def array(items: Any, dtype: str) -> Value:
    """A constant tensor of these numbers (a nested list or an array)."""
    data = np.asarray(items)
    return append("array", items=tuple(data.ravel().tolist()), shape=data.shape, dtype=dtype)


def _infer_choices(op: Op) -> list[Type]:
    n, r = op.attributes["n"], op.attributes["r"]
    more = r - 1 if op.attributes["with_replacement"] else 0
    return [("int64", (math.comb(n + more, r) if n + more >= 0 else 0, r))]


@primitive("host", _infer_choices, name="choices")
def _choices(n: int, r: int, with_replacement: bool) -> Array:
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.fromiter(itertools.chain.from_iterable(choose(range(n), r)), np.int64).reshape(-1, r)


def choices(n: int, r: int, with_replacement: bool) -> Value:
    """[count, r]: every choice of r numbers below n, in order; with_replacement lets a number be chosen again."""
    return append("choices", n=n, r=r, with_replacement=with_replacement)


#: What ``watch`` shows its values to, by key: observer(operator, result, operands).
OBSERVERS: dict[str, Callable[[str, Array, tuple[Array, ...]], None]] = {}


@primitive("host", lambda op: [(op.inputs[0].dtype, op.inputs[0].shape)], name="watch")
def _watch(x: Array, *operands: Array, key: str, operator: str) -> Array:
    OBSERVERS[key](operator, x, operands)
    return x


def watch(x: Value, operands: Sequence[Value], key: str, operator: str) -> Value:
    """x itself; running it shows x and the operands it was made from to the observer of this key, which may raise."""
    return append("watch", x, *operands, key=key, operator=operator)


@gradient_of("watch")
def _watch_gradient(op: Op, g: Value) -> Gradients:
    return g, *(None for _ in op.inputs[1:])


# ------------------------------------------------------------------ scalar functions without a kernel


def _host_map(name: str, kinds: str, function: Callable[..., Any]) -> Callable[..., Value]:
    def infer(op: Op) -> list[Type]:
        return [(require_kind(op, kinds, same_dtype(op)), same_shape(op))]

    def evaluate(*arrays: Array, **attributes: Any) -> Array:
        dtype = arrays[0].dtype
        if kinds == "f":
            arrays = tuple(a.astype(np.float64) for a in arrays)
        with np.errstate(all="ignore"):
            return np.asarray(function(*arrays, **attributes)).astype(dtype)

    register(Primitive(name, "host", infer, evaluate))

    def call(*operands: Any, **attributes: Any) -> Value:
        return map_call(name, *operands, **attributes)

    return call


i0 = _host_map("i0", "f", special.i0)
i0e = _host_map("i0e", "f", special.i0e)
i1 = _host_map("i1", "f", special.i1)
i1e = _host_map("i1e", "f", special.i1e)
gammainc = _host_map("gammainc", "f", special.gammainc)
gammaincc = _host_map("gammaincc", "f", special.gammaincc)
gcd = _host_map("gcd", INTEGER, np.gcd)


def _polygamma(x: Array, order: int) -> Array:
    return special.digamma(x) if order == 0 else special.polygamma(order, x)


polygamma = _host_map("polygamma", "f", _polygamma)


@gradient_of("digamma")
def _digamma_gradient(op: Op, g: Value) -> Gradients:
    return (mul(g, polygamma(op.inputs[0], order=1)),)


@gradient_of("polygamma")
def _polygamma_gradient(op: Op, g: Value) -> Gradients:
    return (mul(g, polygamma(op.inputs[0], order=op.attributes["order"] + 1)),)


@gradient_of("i0")
def _i0_gradient(op: Op, g: Value) -> Gradients:
    return (mul(g, i1(op.inputs[0])),)


@gradient_of("i0e")
def _i0e_gradient(op: Op, g: Value) -> Gradients:
    x = op.inputs[0]
    return (mul(g, sub(i1e(x), mul(sign(x), op.outputs[0]))),)


def _over(y: Value, x: Value) -> Value:
    """y / x for a y that is x / 2 near zero."""
    return select(eq(x, 0), 0.5, div(y, select(eq(x, 0), 1, x)))


@gradient_of("i1")
def _i1_gradient(op: Op, g: Value) -> Gradients:
    x = op.inputs[0]
    return (mul(g, sub(i0(x), _over(op.outputs[0], x))),)


@gradient_of("i1e")
def _i1e_gradient(op: Op, g: Value) -> Gradients:
    x, y = op.inputs[0], op.outputs[0]
    return (mul(g, sub(sub(i0e(x), _over(y, x)), mul(sign(x), y))),)


def _gamma_density(a: Value, x: Value) -> Value:
    """d gammainc(a, x) / dx."""
    return exp(sub(sub(mul(sub(a, 1), log(x)), x), lgamma(a)))


def _by_shape(a: Array, x: Array) -> Array:
    """d gammainc(a, x) / da, by a central difference of fourth order: there is no closed form."""
    h = np.maximum(1e-3 * np.abs(a), 1e-4)

    def f(k: float) -> Array:
        return special.gammainc(a + k * h, x)

    return (8 * (f(1) - f(-1)) - (f(2) - f(-2))) / (12 * h)


gammainc_by_shape = _host_map("gammainc_by_shape", "f", _by_shape)


@gradient_of("gammainc")
def _gammainc_gradient(op: Op, g: Value) -> Gradients:
    a, x = op.inputs
    return mul(g, gammainc_by_shape(a, x)), mul(g, _gamma_density(a, x))


@gradient_of("gammaincc")
def _gammaincc_gradient(op: Op, g: Value) -> Gradients:
    a, x = op.inputs
    return neg(mul(g, gammainc_by_shape(a, x))), neg(mul(g, _gamma_density(a, x)))


# ------------------------------------------------------------------ the bytes of the last axis read as another type


def _infer_view_dtype(op: Op) -> list[Type]:
    x, dtype = op.inputs[0], op.attributes["dtype"]
    old, new = dtypes.itemsize(x.dtype), dtypes.itemsize(dtype)
    if old == new:
        return [(dtype, x.shape)]
    if not x.ndim or (x.shape[-1] * old) % new:
        raise ShapeError(
            f"view(): the last axis of a {x.dtype}{list(x.shape)} does not divide into elements of {dtype} ({new} bytes each)"
        )
    return [(dtype, (*x.shape[:-1], x.shape[-1] * old // new))]


@primitive("host", _infer_view_dtype, name="view_dtype")
def _view_dtype(x: Array, dtype: str) -> Array:
    return np.ascontiguousarray(x).reshape(x.shape).view(dtypes.numpy_dtype(dtype))


def view_dtype(x: Value, dtype: str) -> Value:
    """x's bytes as elements of another dtype; the last axis shrinks or grows."""
    return append("view_dtype", x, dtype=dtype)


@gradient_of("view_dtype")
def _view_dtype_gradient(op: Op, g: Value) -> Gradients:
    return (None,)


__all__ = [
    "array",
    "choices",
    "gammainc",
    "gammaincc",
    "gcd",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "polygamma",
    "require",
    "view_dtype",
]
