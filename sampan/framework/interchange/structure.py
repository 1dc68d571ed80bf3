"""Operations that are about the running of a model: feeding and fetching, control flow, arrays of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tensor import OPS
from .model import Operation
from .values import Known, to_plain

#: The kind of an operation -> what runs it, given the scope and the operation.
STRUCTURE: dict[str, Callable[[Any, Operation], None]] = {}


def structure(*names: str) -> Callable[..., Any]:
    """The decorated function runs operations of these kinds."""

    def decorate(function: Callable[[Any, Operation], None]) -> Callable[[Any, Operation], None]:
        for name in names:
            STRUCTURE[name] = function
        return function

    return decorate


@structure("feed", "data", "fetch", "builtin.shadow_output", "print", "assert", "nop", "control.yield", "memcpy")
def nothing(scope: Any, op: Operation) -> None:
    """Values are put in before the run and taken out after it; what is printed or asserted is no part of the result."""
    if op.kind == "print":
        for slot in op.outputs.values():
            for target, source in zip(slot, next(iter(op.inputs.values())), strict=False):
                scope.set(target, scope[source])


@structure("builtin.combine")
def combine(scope: Any, op: Operation) -> None:
    scope.set(op.outputs["0"][0], [scope[name] for names in op.inputs.values() for name in names])


@structure("builtin.split", "builtin.slice")
def take_apart(scope: Any, op: Operation) -> None:
    values = scope[op.inputs["0"][0]]
    if op.kind == "builtin.slice":
        scope.set(op.outputs["0"][0], values[op.value("index", 0)])
        return
    for (name,), value in zip(op.outputs.values(), values, strict=True):
        scope.set(name, value)


def truth(value: Any) -> bool:
    """Whether a condition holds; it is one element."""
    flat = to_plain(value)
    while isinstance(flat, list):
        flat = flat[0]
    return bool(flat)


def _inner(scope: Any, number: int) -> Any:
    return type(scope)(scope.runner, number, scope)


@structure("if")
def pir_if(scope: Any, op: Operation) -> None:
    regions = op.sub_blocks()
    chosen = _inner(scope, regions[0 if truth(scope[op.inputs["0"][0]]) else 1])
    chosen.run()
    for (name,), value in zip(op.outputs.values(), _yielded(chosen), strict=True):
        scope.set(name, value)


def _yielded(inner: Any) -> list[Any]:
    last = inner.block.operations[-1]
    return [inner[name] for names in last.inputs.values() for name in names] if last.kind == "control.yield" else []


@structure("while")
def loop(scope: Any, op: Operation) -> None:
    if "regions" in op.attributes:
        _pir_while(scope, op)
        return
    condition = op.inputs["Condition"][0]
    (body,) = op.sub_blocks()
    while truth(scope[condition]):
        _inner(scope, body).run()


def _pir_while(scope: Any, op: Operation) -> None:
    first, *names = [name for slot in op.inputs.values() for name in slot]
    condition, values = scope[first], [scope[name] for name in names]
    (body,) = op.sub_blocks()
    while truth(condition):
        inner = _inner(scope, body)
        inner.values.update(zip(inner.block.arguments, values, strict=True))
        inner.run()
        condition, *values = _yielded(inner)
    for (name,), value in zip(op.outputs.values(), values, strict=True):
        scope.set(name, value)


@structure("conditional_block", "conditional_block_infer")
def conditional_block(scope: Any, op: Operation) -> None:
    if all(truth(scope[name]) for name in op.inputs["Cond"]):
        (body,) = op.sub_blocks()
        _inner(scope, body).run()


@structure("select_input")
def select_input(scope: Any, op: Operation) -> None:
    mask = to_plain(scope[op.inputs["Mask"][0]])
    while isinstance(mask, list):
        mask = mask[0]
    scope.set(op.outputs["Out"][0], scope[op.inputs["X"][int(mask)]])


@structure("select_output")
def select_output(scope: Any, op: Operation) -> None:
    mask = to_plain(scope[op.inputs["Mask"][0]])
    while isinstance(mask, list):
        mask = mask[0]
    scope.set(op.outputs["Out"][int(mask)], scope[op.inputs["X"][0]])


def _index(scope: Any, name: str) -> int:
    index = to_plain(scope[name])
    while isinstance(index, list):
        index = index[0]
    return int(index)


@structure("write_to_array", "array_write_")
def write_to_array(scope: Any, op: Operation) -> None:
    if op.kind == "array_write_":
        array, value = scope[op.inputs["0"][0]], scope[op.inputs["1"][0]]
        name = op.outputs["0"][0]
        place = _index(scope, op.inputs["2"][0])
    else:
        name = op.outputs["Out"][0]
        array, value, place = scope.get(name, []), scope[op.inputs["X"][0]], _index(scope, op.inputs["I"][0])
    written = list(array) + [None] * (place + 1 - len(array))
    written[place] = value
    scope.set(name, written)
    if op.kind == "array_write_":
        scope.set(op.inputs["0"][0], written)


@structure("read_from_array", "array_read")
def read_from_array(scope: Any, op: Operation) -> None:
    array, index = (op.inputs["0"], op.inputs["1"]) if "0" in op.inputs else (op.inputs["X"], op.inputs["I"])
    scope.set(next(iter(op.outputs.values()))[0], scope[array[0]][_index(scope, index[0])])


@structure("lod_array_length", "array_length")
def array_length(scope: Any, op: Operation) -> None:
    array = scope[next(iter(op.inputs.values()))[0]]
    scope.set(next(iter(op.outputs.values()))[0], Known(np.asarray([len(array)], np.int64)))


@structure("create_array")
def create_array(scope: Any, op: Operation) -> None:
    scope.set(op.outputs["0"][0], [])


@structure("tensor_array_to_tensor", "array_to_tensor")
def array_to_tensor(scope: Any, op: Operation) -> None:
    array = scope[next(iter(op.inputs.values()))[0]]
    joined = OPS["stack" if op.value("use_stack", False) else "concat"](list(array), op.value("axis", 0))
    names = [names[0] for names in op.outputs.values() if names]
    scope.set(names[0], joined)
