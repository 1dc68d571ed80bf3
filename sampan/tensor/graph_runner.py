"""Running the graph of replicas: every node as soon as what it needs is there, on worker threads, by counts of what is still missing."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from ..ir.program import Op, Value
from ..passes.pipeline import PIPELINE, skipping
from ..passes.recompute import within_memory
from .replicate import Replicas
from .runner import Environment, NoGradient, Runner, Step, calling_step, has_effect, straight_pieces

#: The passes that can be turned off, by name.
PASSES = tuple(function.__name__ for function, _ in PIPELINE[1:])


@contextmanager
def compiling(skipped: Collection[str] = (), memory_budget: int | None = None) -> Iterator[None]:
    """What this thread compiles inside the ``with`` block leaves these passes out, and lets temporaries take this many bytes, where recomputing allows."""
    with skipping(skipped), within_memory(memory_budget):
        yield


class GraphRunner(Runner):
    """Runs the nodes of a graph: straight lines of Ops of one replica, aggregations, and what is there once.

    Args:
        graph: of ``replicate``.
        threads: how many nodes run at a time.
        skipped: passes that compiling leaves out.
        is_fused: aggregate everything that is ready together in one node, else each value in its own.
        memory_budget: bytes that temporaries of a node may take; see ``compiling``.
    """

    def __init__(
        self, graph: Replicas, threads: int, skipped: Sequence[str] = (), is_fused: bool = True, memory_budget: int | None = None
    ) -> None:
        super().__init__(graph.block, graph.updates, "replica")
        self.graph, self.threads, self.is_fused = graph, threads, is_fused
        self.settings = tuple(skipped), memory_budget
        self.nodes: list[list[Op]] = []
        self.after: list[list[int]] = []
        self._missing: list[int] = []
        self._templates: dict[tuple[int, ...], tuple[list[Op], Any, list[Value], list[Value]]] = {}
        self._pool = ThreadPoolExecutor(threads, "replica")

    def _pieces(self) -> list[list[Op]]:
        """Nodes, in an order that they could run in: by how often data goes between replicas and what is shared before them."""
        level: dict[int, int] = {}
        groups: dict[Any, list[Op]] = {}
        makers = {id(v): op for op in self.block.ops for v in op.outputs}
        for number, op in enumerate(self.block.ops):
            owner = self.graph.owners[id(op)]
            depth = 0
            for v in op.inputs:
                maker = makers.get(id(v))
                if maker is not None:
                    depth = max(depth, level[id(maker)] + (self.graph.owners[id(maker)] != owner))
            level[id(op)] = depth
            place = number if owner == "aggregate" and not self.is_fused else -1
            groups.setdefault((depth, str(owner), place), []).append(op)
        self.nodes = [piece for key in sorted(groups) for piece in straight_pieces(groups[key])]
        return self.nodes

    def _build(self) -> list[Step]:
        with compiling(*self.settings):
            steps = super()._build()
        makers = {id(v): n for n, node in enumerate(self.nodes) for op in node for v in op.outputs}
        readers: dict[int, set[int]] = {}
        for n, node in enumerate(self.nodes):
            for op in node:
                for v in op.inputs:
                    readers.setdefault(id(v), set()).add(n)
        before: list[set[int]] = []
        last_effect: set[int] = set()
        for n, node in enumerate(self.nodes):
            found = {makers[id(v)] for op in node for v in op.inputs if id(v) in makers} - {n}
            if any(map(has_effect, node)):  # what acts outside does so in the Program's order
                found |= last_effect
                last_effect = {n}
            before.append(found)
        for k, new in self.updates:
            if k in self._written:  # in place: after everything that reads the old elements
                n = makers[id(new)]
                before[n] |= readers.get(id(self.block.arguments[k]), set()) - {n}
        self._missing = [len(found) for found in before]
        self.after = [[m for m, found in enumerate(before) if n in found] for n in range(len(before))]
        return steps

    def _compiled_step(self, ops: list[Op], needed: set[int], updates: list[tuple[int, Value]], name: str) -> Step:
        """Replicas share what they compile."""
        key = tuple(id(self.graph.origins.get(id(op), op)) for op in ops)
        template = self._templates.get(key)
        if template is None or updates:
            call, operands, results = self._compiled(ops, needed, updates, name)
            if not updates:
                self._templates[key] = ops, call, operands, results
            return calling_step(call, len(updates), [id(v) for v in operands], [id(v) for v in results])
        first, call, operands, results = template
        names = {
            id(a): id(b)
            for x, y in zip(first, ops, strict=True)
            for a, b in zip((*x.inputs, *x.outputs), (*y.inputs, *y.outputs), strict=True)
        }
        return calling_step(call, 0, [names[id(v)] for v in operands], [names[id(v)] for v in results])

    def _run(self, steps: Sequence[Step], environment: Environment, inputs: Sequence[Any]) -> list[Any]:
        keys = [n for n, node in enumerate(self.nodes) if node[0].name == "random_key"]
        for n in keys:  # on this thread: which number is drawn must not depend on who comes first
            steps[n](environment)
        _Run(self, steps, environment, keys).wait()
        return super()._run((), environment, inputs)

    def to_dot(self) -> str:
        """The graph in Graphviz' language."""
        lines = ["digraph program {"]
        for n, node in enumerate(self.nodes):
            owner = self.graph.owners[id(node[0])]
            label = f"{owner if isinstance(owner, str) else f'replica {owner}'}: {node[0].name}" + (
                f" +{len(node) - 1}" if len(node) > 1 else ""
            )
            lines.append(f'  n{n} [shape=box, label="{label}"];')
            lines += [f"  n{n} -> n{m};" for m in self.after[n]]
        return "\n".join([*lines, "}"]) + "\n"


class _Run:
    """One run of a graph."""

    def __init__(self, runner: GraphRunner, steps: Sequence[Step], environment: Environment, done: Sequence[int]) -> None:
        self.runner, self.steps, self.environment = runner, steps, environment
        self.missing = list(runner._missing)
        self.running = 0  # nodes that were given to workers and did not end yet
        self.condition = threading.Condition()
        self.error: BaseException | None = None
        ready = [n for n, count in enumerate(self.missing) if not count and n not in set(done)]
        for n in done:
            ready += self._complete(n)
        self._start(ready)

    def wait(self) -> None:
        """Until every node ran; after an error until those that run have ended, so that nothing is written behind the caller's back. Raises what a node raised."""
        with self.condition:
            self.condition.wait_for(lambda: not self.running)
        if self.error is not None:
            raise self.error

    def _complete(self, n: int) -> list[int]:
        """The nodes that were waiting for this one alone."""
        with self.condition:
            ready = []
            for m in self.runner.after[n]:
                self.missing[m] -= 1
                if not self.missing[m]:
                    ready.append(m)
        return ready

    def _start(self, nodes: Sequence[int]) -> None:
        """Give nodes to the workers, unless one failed."""
        with self.condition:
            if self.error is not None:
                return
            self.running += len(nodes)
        for n in nodes:
            self.runner._pool.submit(self._work, n)

    def _work(self, n: int) -> None:
        try:
            if self.error is None:
                with ExitStack() as stack:
                    stack.enter_context(NoGradient())
                    stack.enter_context(compiling(*self.runner.settings))
                    self.steps[n](self.environment)
                self._start(self._complete(n))
        except BaseException as error:
            with self.condition:
                self.error = self.error or error
        with self.condition:
            self.running -= 1
            if not self.running:
                self.condition.notify_all()
