"""Pictures of models: one call is recorded, and each layer's call is a frame around its operators."""

from __future__ import annotations

import difflib
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ...base import nest, spans
from ...base.errors import ArgumentError, message
from ...tensor.program import Program
from ...tensor.traced import Traced, typed
from ..events import Event, TracerEventType
from ..recording import Recording
from .from_recorded import graph_of_block
from .graph import Box, Graph, Node

_RUNS = 3


class _LayerCalls:
    """Notes which of the recorder's Ops belong to which layer's call."""

    def __init__(self, net: Any, recorder: Any) -> None:
        self.calls: list[list[Any]] = []  # [first Op, Op after the last, title]
        self._block = recorder.block
        self._names = {id(layer): name for name, layer in net.named_sublayers(include_self=True)}

    def span(self, kind: str, name: str, owner: Any) -> AbstractContextManager[Any]:
        """A call of a layer, while it is being recorded."""
        return self._call(kind, name, owner)

    @contextmanager
    def _call(self, kind: str, name: str, owner: Any) -> Any:
        path = self._names.get(id(owner), "")
        entry = [len(self._block.ops), 0, f"{path}: {name}" if path else name]
        if kind == "Forward":
            self.calls.append(entry)
        yield
        entry[1] = len(self._block.ops)


def record_layer(net: Any, inputs: Sequence[Any]) -> tuple[Program, list[tuple[int, int, str]]]:
    """The recorded call of the network, and the calls of its layers as ranges of Ops; the outermost one, the network's, is left out."""
    program = Program()
    calls = _LayerCalls(net, program.recorder)
    old = spans.watch(calls)
    try:
        block = Traced(
            net,
            [nest.map_structure(lambda v, k=k: typed(v, f"input_{k}"), x) for k, x in enumerate(inputs)],
            {},
            program=program,
            name=type(net).__name__,
        ).block
    finally:
        spans.watch(old)
    kept = {id(op): k for k, op in enumerate(block.ops)}
    alive = [k for k, op in enumerate(program.recorder.block.ops) if id(op) in kept]  # others have no part in the results
    ranges = [(sum(k < a for k in alive), sum(k < b for k in alive), title) for a, b, title in calls.calls[1:]]
    program.recorder.block.ops[:] = block.ops
    program.recorder.block.results = block.results
    return program, ranges


def graph_of_layer(net: Any, inputs: Sequence[Any], is_timed: bool) -> tuple[Graph, dict[int, Node], Program]:
    """The picture of the network on these inputs, the nodes of its Ops by number, and the recorded Program; timed by running it, when asked."""
    if not inputs:
        raise ArgumentError(
            message(
                f"draw(): {type(net).__name__} and no inputs",
                "its call is recorded to see what it does",
                "pass inputs=[...] with what its forward takes",
            )
        )
    program, ranges = record_layer(net, inputs)
    block = program.recorder.block
    runs = [_timed_run(net, inputs) for _ in range(_RUNS + 1)][1:] if is_timed else []
    graph, nodes = graph_of_block(block, type(net).__name__, ranges, lambda frames: _time_frames(frames, runs))
    operators = [[e for e in run if e.kind is TracerEventType.Operator] for run in runs]
    for events in operators[-1:]:
        ops = [block.ops[k].name for k in nodes]
        matcher = difflib.SequenceMatcher(a=ops, b=[e.name for e in events], autojunk=False)
        for a, b, size in matcher.get_matching_blocks():
            for k in range(size):
                node = nodes[list(nodes)[a + k]]
                times = [run[b + k].duration_ns for run in operators if len(run) == len(events)]
                node.time_ns = min(times)
    return graph, nodes, program


def _timed_run(net: Any, inputs: Sequence[Any]) -> list[Event]:
    recording = Recording(instructions=False)
    old = spans.watch(_Forwarding(recording))
    recording.start()
    try:
        began = time.perf_counter_ns()
        net(*inputs)
        recording.add("run", TracerEventType.PythonUserDefined, began)
    finally:
        spans.watch(old)
        events = recording.stop().events
    return events


class _Forwarding:
    """Lets a recording watch."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def span(self, kind: str, name: str, owner: Any) -> AbstractContextManager[Any]:
        """A span of the recording."""
        return self._recording.span(kind, name)


def _time_frames(frames: Sequence[Box], runs: Sequence[Sequence[Event]]) -> None:
    """Layers' times: calls are recorded in the order in which they run."""
    timed = [[e for e in run if e.kind is TracerEventType.Forward][1:] for run in runs]
    for k, frame in enumerate(frames):
        times = [run[k].duration_ns for run in timed if len(run) == len(frames)]
        if times:
            frame.time_ns = min(times)
