"""simplify_algebra: identities that hold for every value, NaN, infinities and the sign of zero included."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..base import dtypes
from ..ir.program import Op, Program, Value
from ..ops import primitives as p
from .rewriting import number_of, replace_ops


def simplify_algebra(program: Program) -> Program:
    """The Program without arithmetic by 1 and 0 that changes nothing, and with chains of casts and views as one."""
    return replace_ops(program, _simplify)


def _simplify(op: Op, inputs: tuple[Value, ...]) -> tuple[Value, ...] | None:
    rule = _RULES.get(op.name)
    found = rule(op, *inputs) if rule is not None else None
    return None if found is None else (found,)


def _is_number(value: Value, number: Any) -> bool:
    found = number_of(value)
    return found is not None and found == number and not isinstance(found, complex)


def _is_zero(value: Value, sign: float) -> bool:
    """Whether the value is 0: for floats the zero of this sign, the one that adding leaves everything as it is."""
    found = number_of(value)
    if found is None or isinstance(found, complex) or found != 0:
        return False
    return not dtypes.is_floating(value.dtype) or math.copysign(1.0, float(found)) == sign


def _add(op: Op, a: Value, b: Value) -> Value | None:
    if dtypes.kind(a.dtype) in "bc":
        return None
    return a if _is_zero(b, -1.0) else b if _is_zero(a, -1.0) else None


def _sub(op: Op, a: Value, b: Value) -> Value | None:
    return a if dtypes.kind(a.dtype) != "c" and _is_zero(b, 1.0) else None


def _mul(op: Op, a: Value, b: Value) -> Value | None:
    kind = dtypes.kind(a.dtype)
    if kind in "bc":
        return None
    if kind in "iu" and (_is_number(a, 0) or _is_number(b, 0)):
        return p.full(a.shape, 0, a.dtype)
    return a if _is_number(b, 1) else b if _is_number(a, 1) else None


def _div(op: Op, a: Value, b: Value) -> Value | None:
    return a if dtypes.kind(a.dtype) != "c" and _is_number(b, 1) else None


def _pow(op: Op, a: Value, b: Value) -> Value | None:
    if dtypes.kind(a.dtype) == "c":
        return None
    return a if _is_number(b, 1) else p.mul(a, a) if _is_number(b, 2) else None


def _neg(op: Op, x: Value) -> Value | None:
    return x.op.inputs[0] if x.op is not None and x.op.name == "neg" else None


def _select(op: Op, condition: Value, a: Value, b: Value) -> Value | None:
    if a is b:
        return a
    known = number_of(condition)
    return None if known is None else a if known else b


def _holds(wide: str, narrow: str) -> bool:
    """Whether every number of ``narrow`` is one of ``wide``."""
    a, b = dtypes.kind(narrow), dtypes.kind(wide)
    if a == b:
        half = {"float16", "bfloat16"}
        return dtypes.itemsize(narrow) < dtypes.itemsize(wide) or narrow == wide or (narrow in half and wide not in half)
    return a == "b" or (a == "u" and b == "i" and dtypes.itemsize(narrow) < dtypes.itemsize(wide))


def _cast(op: Op, x: Value) -> Value | None:
    target = op.outputs[0].dtype
    if x.dtype == target:
        return x
    if x.op is not None and x.op.name == "cast" and _holds(x.dtype, x.op.inputs[0].dtype):
        source = x.op.inputs[0]
        return p.cast(source, target)
    return None


def _reshape(op: Op, x: Value) -> Value | None:
    shape = op.attributes["shape"]
    if x.shape == tuple(shape):
        return x
    if x.op is not None and x.op.name == "reshape":
        return p.reshape(x.op.inputs[0], shape)
    return _repeated(op, x)


def _transpose(op: Op, x: Value) -> Value | None:
    order = op.attributes["order"]
    if tuple(order) == tuple(range(x.ndim)):
        return x
    if x.op is not None and x.op.name == "transpose":
        first = x.op.attributes["order"]
        return p.transpose(x.op.inputs[0], tuple(first[k] for k in order))
    return _repeated(op, x)


def _broadcast(op: Op, x: Value) -> Value | None:
    shape = op.attributes["shape"]
    if x.shape == tuple(shape):
        return x
    if x.op is not None and x.op.name == "broadcast_to":
        return p.broadcast_to(x.op.inputs[0], shape)
    return None


def _repeated(op: Op, x: Value) -> Value | None:
    """A view of one repeated number is that number repeated in another shape."""
    if x.op is None or x.op.name != "broadcast_to" or x.op.inputs[0].ndim:
        return None
    return p.broadcast_to(x.op.inputs[0], op.outputs[0].shape)


def _detach(op: Op, x: Value) -> Value:
    return x


def _reduce(op: Op, x: Value) -> Value | None:
    return x if all(x.shape[k] == 1 for k in op.attributes["axes"]) else None


_RULES: dict[str, Callable[..., Value | None]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "neg": _neg,
    "select": _select,
    "cast": _cast,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast_to": _broadcast,
    "slice": _repeated,
    "detach": _detach,
    "reduce_sum": _reduce,
    "reduce_prod": _reduce,
    "reduce_max": _reduce,
    "reduce_min": _reduce,
    "reduce_any": _reduce,
    "reduce_all": _reduce,
}
