"""``draw``: a model, a Program or a Plan as a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ... import _rt
from ...base.errors import ArgumentError, ArgumentTypeError, UnsupportedError, describe, message
from ...framework.atomic import replacing
from ...ir.program import Block
from ...ir.program import Program as OpProgram
from ...jit import TrainStep
from ...nn import Layer
from ...tensor.program import Program
from ..events import ProfilerResult
from ..profiler import Profiler
from .from_ir import graph_of_plan, graph_of_program
from .from_layers import graph_of_layer, record_layer
from .from_recorded import graph_of_block
from .fusion import expanded_pieces, kernels_of_block
from .graph import Graph, Node
from .svg import html_of, svg_of
from .times import kernel_times

_STAGES = ("recorded", "kernels")


def draw(
    thing: Any,
    path: str | os.PathLike[str] | None = None,
    inputs: Any = None,
    *,
    stage: str = "recorded",
    profile: Any = None,
    title: str = "",
) -> str:
    """A picture of a model, a Program or a Plan: statements as nodes, layers and control flow as frames, what is fused into one kernel in one colour.

    Args:
        thing: a Layer, a ``jit.TrainStep``, a ``static.Program``, a Program of the compiler's, or a Plan.
        path: where the picture goes: ``.html`` is a page of one file that can be moved and zoomed, ``.svg`` the picture alone. None: nowhere.
        inputs: for a Layer or a TrainStep: a tensor, or the list of what it is called with.
        stage: ``recorded``: as it was written. ``kernels``: the compiler's own operations, each kernel framed.
        profile: times for the nodes: a Profiler after its recording, or its result; for a Layer also True, which runs it a few times.
        title: the picture's name.

    Returns:
        The file's text; the SVG when there is no path.

    Raises:
        ArgumentError: the path's ending or the stage is another one; inputs are missing.
        ArgumentTypeError: the thing is something else, or the profile is.
        UnsupportedError: ``stage="kernels"`` of a Program that does not compile into one piece.

    Example:
        >>> import sampan as paddle
        >>> net = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU())
        >>> picture = paddle.profiler.draw(net, inputs=paddle.ones([2, 4]))
        >>> picture.startswith("<svg"), "0: Linear" in picture
        (True, True)
    """
    if stage not in _STAGES:
        raise ArgumentError(message(f"draw(): stage is {stage!r}", f"it must be one of {', '.join(_STAGES)}"))
    if path is not None and os.path.splitext(path)[1] not in (".svg", ".html"):
        raise ArgumentError(message(f"draw(): path is {os.fspath(path)!r}", "a picture is an .svg or an .html file"))
    result = profile.profiler_result if isinstance(profile, Profiler) else profile
    if isinstance(profile, Profiler) and result is None:
        raise ArgumentError(message("draw(): the Profiler has no recording", "no recorded step has ended", "draw after stop()"))
    if not isinstance(result, (ProfilerResult, bool, type(None))):
        raise ArgumentTypeError(message(f"draw(): profile is {describe(profile)}", "it must be a Profiler or its result"))
    given = [] if inputs is None else list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    graph = _graph(thing, given, stage, result is True)
    if title:
        graph.title = title
    if isinstance(result, ProfilerResult):
        _add_times(graph, result)
    text = html_of(graph) if path is not None and os.fspath(path).endswith(".html") else svg_of(graph)
    if path is not None:
        with replacing(path) as file:
            file.write(text.encode())
    return text


def _graph(thing: Any, inputs: Sequence[Any], stage: str, is_timed: bool) -> Graph:
    if isinstance(thing, OpProgram):
        return graph_of_program(thing, stage == "kernels")
    if isinstance(thing, _rt.Plan):
        return graph_of_plan(thing, "plan")
    if isinstance(thing, Layer):
        if stage == "kernels":
            return _graph_of_kernels(record_layer(thing, inputs)[0].recorder.block, type(thing).__name__)
        graph, nodes, program = graph_of_layer(thing, inputs, is_timed)
        _mark_kernels(graph, nodes, program.recorder.block)
        return graph
    if isinstance(thing, TrainStep):
        thing = thing.program(*inputs)
    if not isinstance(thing, Program):
        raise ArgumentTypeError(
            message(
                f"draw(): thing is {describe(thing)}",
                "it must be a Layer, a TrainStep, a Program or a Plan",
                "pass the network itself",
            )
        )
    block = thing.recorder.block
    if stage == "kernels":
        return _graph_of_kernels(block, "program")
    graph, nodes = graph_of_block(block, "program")
    _mark_kernels(graph, nodes, block)
    return graph


def _graph_of_kernels(block: Block, title: str) -> Graph:
    pieces = expanded_pieces(block)
    if len(pieces) != 1:
        raise UnsupportedError(
            message(
                f"draw(stage='kernels'): the Program compiles into {len(pieces)} pieces",
                "control flow, or operators whose sizes depend on data, stand between them",
                "draw it with stage='recorded', which marks the kernels",
            )
        )
    graph = graph_of_program(pieces[0], True)
    graph.title = title
    return graph


def _mark_kernels(graph: Graph, nodes: dict[int, Node], block: Block) -> None:
    for number, (label, ops) in enumerate(kernels_of_block(block)):
        graph.kernels[number] = (label, None)
        for k in ops:
            if k in nodes:
                nodes[k].kernels.append(number)


def _add_times(graph: Graph, result: ProfilerResult) -> None:
    """Times of the kernels, and of the nodes that have kernels to themselves."""
    labels = {number: label for number, (label, _) in graph.kernels.items()}
    times = dict(zip(labels, kernel_times(result, list(labels.values())), strict=True))
    graph.kernels = {number: (label, times[number]) for number, label in labels.items()}
    fused = graph.fused()
    for node in graph.root.nodes():
        own = [times[k] for k in node.kernels if k not in fused]
        known = [ns for ns in own if ns is not None]
        if known and len(known) == len(own):
            node.time_ns = sum(known)
    for box in graph.root.boxes():
        if box.kind == "kernel":
            number = int(box.title.partition(":")[0])
            box.time_ns = times.get(number)
