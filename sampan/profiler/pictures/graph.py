"""What a picture shows: nodes in nested boxes, and edges from what gives a value to what uses it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(eq=False)
class Node:
    """One thing that computes, or a tensor that comes in or goes out.

    Attributes:
        title: its first line.
        lines: more lines.
        role: ``op``, ``input``, ``output``, ``control``, ``backward`` or ``optimize``.
        tip: a longer text, shown when pointed at.
        kernels: the numbers of the kernels that it runs in.
        time_ns: what it took.
    """

    title: str
    lines: list[str] = field(default_factory=list)
    role: str = "op"
    tip: str = ""
    kernels: list[int] = field(default_factory=list)
    time_ns: float | None = None
    box: Box | None = None


@dataclass(eq=False)
class Box:
    """A frame around nodes and other boxes: a layer, a block of control flow, a kernel. ``kind``: ``layer``, ``block`` or ``kernel``."""

    title: str = ""
    kind: str = "layer"
    items: list[Node | Box] = field(default_factory=list)
    box: Box | None = None
    time_ns: float | None = None

    def add(self, item: Node | Box) -> None:
        """Put the item into the box, after what is there."""
        item.box = self
        self.items.append(item)

    def nodes(self) -> Iterator[Node]:
        """Every node inside, in order."""
        for item in self.items:
            if isinstance(item, Box):
                yield from item.nodes()
            else:
                yield item

    def boxes(self) -> Iterator[Box]:
        """Every box inside, outer ones first."""
        for item in self.items:
            if isinstance(item, Box):
                yield item
                yield from item.boxes()

    def simplify(self) -> None:
        """Drop empty boxes, and frames around a single node, whose title the node then tells."""
        items = list(self.items)
        self.items = []
        for item in items:
            if isinstance(item, Box):
                item.simplify()
                if not item.items:
                    continue
                only = item.items[0]
                if item.kind == "layer" and len(item.items) == 1 and isinstance(only, Node):
                    only.lines.insert(0, item.title)
                    only.time_ns = item.time_ns if item.time_ns is not None else only.time_ns
                    item = only
            self.add(item)


@dataclass(frozen=True)
class Edge:
    """A value that ``source`` gives and ``target`` uses. ``value`` tells values apart; ``label``: its type."""

    source: Node
    target: Node
    value: int
    label: str = ""


@dataclass
class Graph:
    """A whole picture. ``kernels``: the label and time of every kernel, by number; only those that several nodes run in are marked."""

    title: str
    root: Box = field(default_factory=Box)
    edges: list[Edge] = field(default_factory=list)
    kernels: dict[int, tuple[str, float | None]] = field(default_factory=dict)

    def connect(self, source: Node, target: Node, value: int, label: str = "") -> None:
        """Add an edge, once."""
        edge = Edge(source, target, value, label)
        if source is not target and edge not in self.edges[-64:]:
            self.edges.append(edge)

    def fused(self) -> dict[int, list[Node]]:
        """The kernels that several nodes run in, with the nodes."""
        found: dict[int, list[Node]] = {}
        for node in self.root.nodes():
            for k in node.kernels:
                found.setdefault(k, []).append(node)
        return {k: nodes for k, nodes in sorted(found.items()) if len(nodes) > 1}
