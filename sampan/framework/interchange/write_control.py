"""Control flow as the ProgramDesc format has it: blocks that write variables of their parents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...tensor.program_gradients import CARRIED
from .emit import Emit, Handle, Writer
from .model import Block, Variable


def scopes(writer: Writer) -> str:
    """A variable that holds the scopes of a block's runs."""
    name = writer.fresh("scopes")
    writer.block.variables[name] = Variable(name, "scopes")
    return name


def _assign(emit: Emit, source: Any, target: Handle) -> None:
    """Write a value over a variable."""
    emit.writer.operation("assign", {"X": [emit.of(source).name]}, {"Out": [target.name]}, {})


def inner_block(writer: Writer) -> tuple[int, Writer]:
    """A new block inside the writer's: its number, and what writes it."""
    blocks = writer.root.blocks
    blocks.append(Block(next(k for k, block in enumerate(blocks) if block is writer.block)))
    return len(blocks) - 1, Writer(blocks[-1], writer)


def _run(program: Any, block: Any, arguments: Sequence[Handle], writer: Writer) -> list[Handle] | None:
    """Write a recorded block over these arguments; its results, None where an operator could not be written."""
    for value, handle in zip(block.arguments, arguments, strict=True):
        program.handles[id(value)] = handle
    program.run(block.ops, writer)
    if any(id(v) not in program.handles for v in block.results):
        return None
    return [program.handles[id(v)] for v in block.results]


def write_cond(program: Any, op: Any, inputs: list[Handle], writer: Writer) -> list[Handle]:
    """Two conditional blocks, and for each result the choice of one's."""
    emit = Emit(writer, op.name, op.outputs)
    condition, captured = emit.of(inputs[0]), [emit.of(v) for v in inputs[1:]]
    negated = emit("logical_not", {"X": condition}, {}, dtype="bool")
    sides = []
    for test, block in ((condition, op.blocks[0]), (negated, op.blocks[1])):
        number, inner = inner_block(writer)
        outer = [writer.declare(writer.fresh("branch"), str(v.dtype), v.shape) for v in op.outputs]
        results = _run(program, block, captured, inner)
        if results is None:
            return []
        for source, target in zip(results, outer, strict=True):
            _assign(Emit(inner, op.name, (source,)), source, target)
        writer.operation(
            "conditional_block",
            {"Cond": [test.name], "Input": [h.name for h in captured]},
            {"Out": [h.name for h in outer], "Scope": [scopes(writer)]},
            {"sub_block:block": number, "is_scalar_condition:b": True},
        )
        sides.append(outer)
    mask = emit.cast(condition, "int32")
    return [
        emit("select_input", {"X": [other, first], "Mask": mask}, {}, dtype=first.dtype, shape=first.shape)
        for first, other in zip(*sides, strict=True)
    ]


def write_while(program: Any, op: Any, inputs: list[Handle], writer: Writer) -> list[Handle]:
    """A loop over variables that its block writes; the condition is computed before it and at the end of each pass."""
    emit = Emit(writer, op.name, op.outputs)
    count = op.attributes[CARRIED]
    carried = []
    for start, value in zip(inputs[:count], op.outputs, strict=True):
        made = writer.declare(writer.fresh("carried"), str(value.dtype), value.shape)
        _assign(emit, start, made)
        carried.append(made)
    captured = [emit.of(v) for v in inputs[count:]]
    test, body = op.blocks
    first = _run(program, test, [*carried, *captured], writer)
    if first is None:
        return []
    condition = writer.declare(writer.fresh("condition"), "bool", ())
    _assign(emit, first[0], condition)
    number, inner = inner_block(writer)
    ends = _run(program, body, [*carried, *captured], inner)
    if ends is None:
        return []
    inside = Emit(inner, op.name, op.outputs)
    held = [
        inside("assign", {"X": inside.of(v)}, {}, dtype=v.dtype, shape=v.shape) for v in ends
    ]  # before any of them is written over
    for source, target in zip(held, carried, strict=True):
        _assign(inside, source, target)
    again = _run(program, test, [*carried, *captured], inner)
    if again is None:
        return []
    _assign(inside, again[0], condition)
    writer.operation(
        "while",
        {"X": [h.name for h in (*carried, *captured)], "Condition": [condition.name]},
        {"Out": [*(h.name for h in carried), condition.name], "StepScopes": [scopes(writer)]},
        {"sub_block:block": number, "is_test:b": True},
    )
    return [emit("assign", {"X": h}, {}, dtype=h.dtype, shape=h.shape) for h in carried]


def write_python_layer(program: Any, op: Any, inputs: list[Handle], writer: Writer) -> list[Handle]:
    """The results of a function with a backward of its own, which were computed already: a file holds no gradients."""
    first = op.attributes["inputs"][0].index
    return inputs[first : first + len(op.outputs)]


#: Recorded control flow -> what writes it.
CONTROL: dict[str, Callable[..., list[Handle]]] = {
    "cond": write_cond, "while": write_while, "python_layer": write_python_layer, "static_pylayer": write_python_layer,
}  # fmt: skip
