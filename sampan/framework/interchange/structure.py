"""Operations that are about the running of a model: feeding and fetching, control flow, arrays of tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.errors import ArgumentError, message
from ...tensor import OPS
from ...tensor.control_flow import cond, while_loop
from ...tensor.variable import Variable
from .model import Operation
from .values import Known, as_tensor, to_plain

_LONGEST_ARRAY = 1 << 20  # a number in a file may not ask for memory of any size
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
    return bool(_first(value))


def _first(value: Any) -> Any:
    found = to_plain(value)
    while isinstance(found, list):
        found = found[0]
    return found


def _inner(scope: Any, number: int) -> Any:
    return type(scope)(scope.runner, number, scope)


def _either(condition: Any, first: Callable[[], list[Any]], other: Callable[[], list[Any]]) -> list[Any]:
    """What the chosen function gives; both are recorded where the condition is known only when a Program runs."""
    if not isinstance(condition, Variable):
        return first() if truth(condition) else other()
    return list(cond(condition, lambda: [as_tensor(v) for v in first()], lambda: [as_tensor(v) for v in other()]))


@structure("if")
def pir_if(scope: Any, op: Operation) -> None:
    def region(number: int) -> list[Any]:
        inner = _inner(scope, number)
        inner.run()
        return _yielded(inner)

    first, other = op.sub_blocks()
    results = _either(scope[op.inputs["0"][0]], lambda: region(first), lambda: region(other))
    for (name,), value in zip(op.outputs.values(), results, strict=True):
        scope.set(name, value)


def _yielded(inner: Any) -> list[Any]:
    last = inner.block.operations[-1]
    return [inner[name] for names in last.inputs.values() for name in names] if last.kind == "control.yield" else []


@structure("while")
def loop(scope: Any, op: Operation) -> None:
    if "regions" in op.attributes:
        _pir_while(scope, op)
        return
    name = op.inputs["Condition"][0]
    (body,) = op.sub_blocks()
    if not isinstance(scope[name], Variable):
        while truth(scope[name]):
            _inner(scope, body).run()
        return
    names = [name, *(n for n in _written(scope, body) if n != name and scope.get(n) is not None)]

    def step(*values: Any) -> list[Any]:
        for key, value in zip(names, values, strict=True):
            scope.set(key, value)
        _inner(scope, body).run()
        return [as_tensor(scope[key]) for key in names]

    results = while_loop(lambda go, *_: go, step, [as_tensor(scope[key]) for key in names])
    for key, value in zip(names, results, strict=True):
        scope.set(key, value)


def _written(scope: Any, number: int) -> list[str]:
    """The variables of outer blocks that a block, or one inside it, writes."""
    block = scope.runner.model.blocks[number]
    found: dict[str, None] = {}
    for op in block.operations:
        found |= dict.fromkeys(n for names in op.outputs.values() for n in names)
        for inner in op.sub_blocks():
            found |= dict.fromkeys(_written(scope, inner))
    return [name for name in found if name not in block.variables]


def _pir_while(scope: Any, op: Operation) -> None:
    names = [name for slot in op.inputs.values() for name in slot]
    values = [scope[name] for name in names]
    (body,) = op.sub_blocks()

    def step(_: Any, *carried: Any) -> list[Any]:
        inner = _inner(scope, body)
        inner.values.update(zip(inner.block.arguments, carried, strict=True))
        inner.run()
        return _yielded(inner)

    if isinstance(values[0], Variable):
        recorded = lambda *carried: [as_tensor(v) for v in step(*carried)]  # noqa: E731
        values = while_loop(lambda go, *_: go, recorded, [as_tensor(v) for v in values])
    else:
        while truth(values[0]):
            values = step(*values)
    for (name,), value in zip(op.outputs.values(), values[1:], strict=True):
        scope.set(name, value)


@dataclass(frozen=True)
class Pending:
    """A result of a conditional block that waits for the choice between it and another's."""

    scope: Any
    block: int
    name: str

    def run(self, names: list[str]) -> list[Any]:
        """The block's results of these names."""
        inner = _inner(self.scope, self.block)
        inner.is_closed = True  # its results are taken from it, not written outside
        inner.run()
        return [inner[name] for name in names]


@structure("conditional_block", "conditional_block_infer")
def conditional_block(scope: Any, op: Operation) -> None:
    conditions = [scope[name] for name in op.inputs["Cond"]]
    (body,) = op.sub_blocks()
    if not any(isinstance(c, Variable) for c in conditions):
        if all(map(truth, conditions)):
            _inner(scope, body).run()
        return
    condition = conditions[0]
    for other in conditions[1:]:
        condition = OPS["logical_and"](condition, other)
    names = _written(scope, body)
    held = [name for name in names if scope.get(name) is not None]
    for name in names:
        if name not in held:
            scope.set(name, Pending(scope, body, name))
    if held:
        before = [scope[name] for name in held]
        results = _either(condition, lambda: Pending(scope, body, "").run(held), lambda: before)
        for name, value in zip(held, results, strict=True):
            scope.set(name, value)


@structure("select_input")
def select_input(scope: Any, op: Operation) -> None:
    """The choices by one mask are made together, so that each branch is there once."""
    name = op.outputs["Out"][0]
    mask = scope[op.inputs["Mask"][0]]
    if not isinstance(mask, Variable):
        scope.set(name, scope[op.inputs["X"][int(_first(mask))]])
        return
    alike = [o for o in scope.block.operations if o.kind == op.kind and o.inputs["Mask"] == op.inputs["Mask"]]
    if op is not alike[0]:
        return
    sides = [[o.inputs["X"][k] for o in alike] for k in (0, 1)]

    def side(k: int) -> Callable[[], list[Any]]:
        first = scope[sides[k][0]]
        return lambda: first.run(sides[k]) if isinstance(first, Pending) else [scope[n] for n in sides[k]]

    results = _either(OPS["cast"](mask, "bool"), side(1), side(0))
    for other, value in zip(alike, results, strict=True):
        scope.set(other.outputs["Out"][0], value)


@structure("select_output")
def select_output(scope: Any, op: Operation) -> None:
    scope.set(op.outputs["Out"][int(_first(scope[op.inputs["Mask"][0]]))], scope[op.inputs["X"][0]])


def _index(scope: Any, name: str) -> int:
    return int(_first(scope[name]))


@structure("write_to_array", "array_write_")
def write_to_array(scope: Any, op: Operation) -> None:
    if op.kind == "array_write_":
        array, value = scope[op.inputs["0"][0]], scope[op.inputs["1"][0]]
        name = op.outputs["0"][0]
        place = _index(scope, op.inputs["2"][0])
    else:
        name = op.outputs["Out"][0]
        array, value, place = scope.get(name, []), scope[op.inputs["X"][0]], _index(scope, op.inputs["I"][0])
    if not 0 <= place < _LONGEST_ARRAY:
        raise ArgumentError(message(f"{op.kind}: the place is {place}", f"it must be from 0 to {_LONGEST_ARRAY - 1}"))
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
