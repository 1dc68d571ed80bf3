"""Pictures of IR Programs, their kernels framed, and of Plans."""

from __future__ import annotations

from typing import Any

from ...codegen.kernels import kernels_of
from ...ir.program import Block, Op, Program, Value
from ...passes.pipeline import run_passes
from .graph import Box, Graph, Node

_SHOWN_TEXT = 48


def graph_of_program(program: Program, with_kernels: bool) -> Graph:
    """The Ops of a Program. ``with_kernels``: after the passes, with what runs in one kernel framed."""
    graph = Graph(program.name)
    frames: dict[int, tuple[Box, int]] = {}
    if with_kernels:
        program = run_passes(program)
        for number, kernel in enumerate(kernels_of(program)):
            graph.kernels[number] = (kernel.label, None)
            if len(kernel.ops) > 1:
                frame = Box(f"{number}: {kernel.label}", "kernel")
                frames |= {id(op): (frame, number) for op in kernel.ops if id(op) not in frames}
    givers: dict[int, Node] = {}
    for v in program.inputs:
        givers[id(v)] = node = Node(v.name or "input", [_type(v)], "input")
        graph.root.add(node)
    _add_ops(graph, program.body, graph.root, givers, frames)
    for k, v in enumerate(program.outputs):
        node = Node(f"output {k}" if len(program.outputs) > 1 else "output", [_type(v)], "output")
        graph.root.add(node)
        if id(v) in givers:
            graph.connect(givers[id(v)], node, id(v), _type(v))
    graph.root.simplify()
    return graph


def _type(v: Value) -> str:
    return f"{v.dtype}[{', '.join(map(str, v.shape))}]"


def _add_ops(graph: Graph, block: Block, box: Box, givers: dict[int, Node], frames: dict[int, tuple[Box, int]]) -> None:
    for op in block.ops:
        if op.name == "constant":
            continue
        where = box
        node = Node(op.name, _lines(op), "op", _text(op))
        if id(op) in frames:
            where, number = frames[id(op)]
            node.kernels.append(number)
            if where.box is None:
                box.add(where)
        where.add(node)
        for v in op.inputs:
            if id(v) in givers:
                graph.connect(givers[id(v)], node, id(v), _type(v))
        for k, inner in enumerate(op.blocks):
            frame = Box(f"{op.name} {k}", "block")
            box.add(frame)
            for argument, given in zip(inner.arguments, op.inputs[len(op.inputs) - len(inner.arguments) :], strict=True):
                if id(given) in givers:
                    givers[id(argument)] = givers[id(given)]
            _add_ops(graph, inner, frame, givers, frames)
        givers |= {id(v): node for v in op.outputs}


def _lines(op: Op) -> list[str]:
    constants = [repr(v.op.attributes["value"]) for v in op.inputs if v.op is not None and v.op.name == "constant"]
    return [*([", ".join(constants)[:_SHOWN_TEXT]] if constants else []), *(f"→ {_type(v)}" for v in op.outputs[:1])]


def _text(op: Op) -> str:
    attributes = ", ".join(f"{k}={v!r}"[:_SHOWN_TEXT] for k, v in op.attributes.items())
    return f"{op.name}({', '.join(_type(v) for v in op.inputs)}){f' {{{attributes}}}' if attributes else ''}"


def graph_of_plan(plan: Any, title: str) -> Graph:
    """The instructions of a Plan, with edges over the memory that one writes and later ones use."""
    graph = Graph(title)
    first_buffer = len(plan.input_layouts) + plan.constant_count
    givers: dict[int, Node] = {}
    for k, layout in enumerate(plan.input_layouts):
        givers[k] = node = Node(f"input {k}", [f"{layout.dtype.name}{list(layout.shape)}"], "input")
        graph.root.add(node)
    for number, (label, slots) in enumerate(plan.instructions):
        node = Node(label, [], "op", f"instruction {number}")
        graph.root.add(node)
        graph.kernels[number] = (label, None)
        node.kernels.append(number)
        for slot in dict.fromkeys(slots):
            if slot in givers:
                graph.connect(givers[slot], node, slot)
            elif slot >= first_buffer:  # a buffer is written before it is read
                givers[slot] = node
    for k, (slot, layout) in enumerate(zip(plan.output_slots, plan.output_layouts, strict=True)):
        if slot in givers:
            node = Node(f"output {k}", [f"{layout.dtype.name}{list(layout.shape)}"], "output")
            graph.root.add(node)
            graph.connect(givers[slot], node, slot)
    return graph
