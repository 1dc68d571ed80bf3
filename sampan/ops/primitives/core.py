"""The registry of primitives: what every pass, the interpreter and the compiler ask about an Op that is not a composite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base import dtypes
from ...base.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, describe, message
from ...ir.builder import Type, current_builder
from ...ir.program import Op, Value

Array = np.ndarray[Any, Any]
Gradients = Sequence[Value | None]


@dataclass(frozen=True)
class Primitive:
    """One primitive operator.

    family: ``map`` (elementwise, equal shapes), ``reduce`` (kept axes of length 1), ``view`` (metadata only), ``source`` (no tensor operand's data is read),
    ``move`` (pad, concat, gather, scatter), ``native`` (hand-tuned, ``csrc/kernels``), ``host`` (NumPy or SciPy at run time),
    ``order`` (an operand as it is, once another is known).
    infer: the types of the outputs. evaluate: the outputs by NumPy, the oracle of all else.
    gradient: ``rule(op, *output_gradients)`` gives a gradient, or None, for every input; an output gradient is None when nothing depends on it.
    """

    name: str
    family: str
    infer: Callable[[Op], list[Type]]
    evaluate: Callable[..., Any]
    gradient: Callable[..., Gradients] | None = None


PRIMITIVES: dict[str, Primitive] = {}


def register(primitive: Primitive) -> Primitive:
    """Add to the registry; a second definition of a name is a fault."""
    if primitive.name in PRIMITIVES:
        raise ValueError(f"primitive {primitive.name} is defined twice")
    PRIMITIVES[primitive.name] = primitive
    return primitive


def primitive(
    family: str, infer: Callable[[Op], list[Type]], gradient: Callable[..., Gradients] | None = None, name: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as the NumPy meaning ``evaluate(*arrays, **attributes)`` of a primitive of its name."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        register(Primitive(name or function.__name__.removesuffix("_"), family, infer, function, gradient))
        return function

    return decorate


def gradient_of(name: str) -> Callable[[Callable[..., Gradients]], Callable[..., Gradients]]:
    """Give the primitive its gradient rule, for rules that need primitives defined later."""

    def decorate(rule: Callable[..., Gradients]) -> Callable[..., Gradients]:
        old = PRIMITIVES[name]
        PRIMITIVES[name] = Primitive(old.name, old.family, old.infer, old.evaluate, rule)
        return rule

    return decorate


def append(name: str, *inputs: Value, **attributes: Any) -> Any:
    """Append the primitive to the current builder: its output Value, or a tuple of them when it has several."""
    builder = current_builder()
    if builder is None:
        raise RuntimeError(f"primitive {name} was called outside of a Program being built")
    outputs = builder.append(name, inputs, attributes).outputs
    return outputs[0] if len(outputs) == 1 else outputs


def constant(value: Any, dtype: str, weak: bool = False) -> Value:
    """A 0-D constant of the current builder."""
    builder = current_builder()
    if builder is None:
        raise RuntimeError("constant() was called outside of a Program being built")
    if not isinstance(value, (bool, int, float, complex)):
        raise ArgumentTypeError(message(f"{describe(value)} is no number", f"one of dtype {dtype} is needed"))
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ArgumentError(message(f"{value} does not fit in 64 bits"))
    return builder.constant(value, dtype, weak)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all of these broadcast to, by NumPy's rule. Raises ShapeError naming both."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        rank = max(len(result), len(shape))
        a = (1,) * (rank - len(result)) + result
        b = (1,) * (rank - len(shape)) + shape
        merged = []
        for p, q in zip(a, b, strict=True):
            if p != q and p != 1 and q != 1:
                raise ShapeError(
                    message(
                        f"shapes {list(result)} and {list(shape)} do not broadcast",
                        f"axes of {p} and {q} differ and neither is 1",
                        "reshape or expand one of them first; axes are matched from the last",
                    )
                )
            merged.append(q if p == 1 else p)
        result = tuple(merged)
    return result


def lift(x: Any, dtype: str) -> Value:
    """x itself, or a Python number as a constant of this dtype. Raises DTypeError for a fraction beside integers, which would cut it."""
    if isinstance(x, float) and not x.is_integer() and dtypes.kind(dtype) in "bui":
        raise DTypeError(message(f"the tensor is {dtype}, and is computed with {x}", "", "cast it to a floating dtype first"))
    return x if isinstance(x, Value) else constant(x, dtype)


def expand_to(x: Value, shape: tuple[int, ...]) -> Value:
    """x broadcast to ``shape``; x itself when it already has it."""
    return x if x.shape == tuple(shape) else append("broadcast_to", x, shape=tuple(shape))


def map_call(name: str, *operands: Any, **attributes: Any) -> Value:
    """An elementwise primitive over operands brought to one shape; Python numbers take the dtype of the first Value."""
    dtype = next(v.dtype for v in operands if isinstance(v, Value))
    values = [lift(x, dtype) for x in operands]
    shape = broadcast_shapes(*(v.shape for v in values))
    return append(name, *(expand_to(v, shape) for v in values), **attributes)


def same_shape(op: Op) -> tuple[int, ...]:
    """The one shape of an elementwise Op's inputs."""
    shape = op.inputs[0].shape
    for v in op.inputs[1:]:
        if v.shape != shape:
            raise ShapeError(
                f"{op.name}: operands have shapes {list(shape)} and {list(v.shape)}; elementwise primitives need equal ones"
            )
    return shape


def same_dtype(op: Op) -> str:
    """The one dtype of an Op's inputs."""
    dtype = op.inputs[0].dtype
    for v in op.inputs[1:]:
        if v.dtype != dtype:
            raise DTypeError(f"{op.name}: operands are {dtype} and {v.dtype}; cast one of them first")
    return dtype


def require_kind(op: Op, kinds: str, dtype: str) -> str:
    """dtype, if its kind is among ``kinds``; raises DTypeError otherwise."""
    if dtypes.kind(dtype) not in kinds:
        words = {"b": "bool", "u": "unsigned", "i": "integer", "f": "floating", "c": "complex"}
        raise DTypeError(
            message(
                f"{op.name}() does not take {dtype}",
                f"it takes {', '.join(words[k] for k in kinds)} types",
                "cast the tensor first",
            )
        )
    return dtype
