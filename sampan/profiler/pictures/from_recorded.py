"""Pictures of recorded Programs: statements as nodes, control flow as boxes, parameters as lines of the nodes that use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.program import Block, Op, Value
from ...tensor.program_text import statement_text
from .graph import Box, Graph, Node

_WORDS = {"cond": ("if true", "else"), "while": ("while", "do"), "while_grad": ("while", "do", "gradient")}
#: The most parameters that a node shows; the rest stands in its tip.
_MOST_LINES = 2


def graph_of_block(
    block: Block,
    title: str,
    boxes: Sequence[tuple[int, int, str]] = (),
    finish: Callable[[Sequence[Box]], None] = lambda frames: None,
) -> tuple[Graph, dict[int, Node]]:
    """The picture of a recorded block, and its outermost Ops' nodes by number.

    Args:
        boxes: (first Op, Op after the last, title) of what is framed, in the order of beginning: calls of layers.
        finish: is given the frames, in this order, before those around a single node are taken away.
    """
    maker = _Maker(Graph(title))
    for v in block.arguments:
        if not _is_held(v):
            maker.source(v, Node(v.name or "input", [type_text(v)], "input"))
    nodes = maker.statements(block, maker.graph.root, boxes)
    for k, v in enumerate(block.results):
        if maker.givers.get(id(v)):
            node = Node(f"output {k}" if len(block.results) > 1 else "output", [type_text(v)], "output")
            maker.graph.root.add(node)
            maker.use(v, node)
    finish(maker.frames)
    maker.graph.root.simplify()
    return maker.graph, nodes


def type_text(v: Value) -> str:
    """The Value's dtype and sizes."""
    return f"{v.dtype}[{', '.join('?' if n == -1 else str(n) for n in getattr(v, 'sizes', v.shape))}]"


def _is_held(v: Value) -> bool:
    """Whether the Value is a parameter or another tensor that outlives runs."""
    return hasattr(v, "trainable") or bool(getattr(v, "persistable", False))


class _Maker:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.givers: dict[int, list[Node]] = {}  # by value: the nodes that give it
        self.frames: list[Box] = []

    def source(self, value: Value, node: Node) -> None:
        """A node that gives the value, outermost."""
        self.graph.root.add(node)
        self.givers[id(value)] = [node]

    def use(self, value: Value, node: Node) -> None:
        """Edges from what gives the value."""
        for giver in self.givers.get(id(value), ()):
            self.graph.connect(giver, node, id(value), type_text(value))

    def statements(self, block: Block, box: Box, boxes: Sequence[tuple[int, int, str]] = ()) -> dict[int, Node]:
        """The block's Ops as nodes of the box, or of the frames inside it."""
        nodes: dict[int, Node] = {}
        opening, open_boxes, role = list(boxes), [(len(block.ops), box)], ""
        phase: Box | None = None
        for k, op in enumerate(block.ops):
            while len(open_boxes) > 1 and open_boxes[-1][0] <= k:
                open_boxes.pop()
            if op.role != role:
                role = op.role
                phase = Box(role, "block") if role else None
                if phase is not None:
                    open_boxes = open_boxes[:1]
                    box.add(phase)
            while opening and opening[0][0] <= k:
                _, end, title = opening.pop(0)
                inner = Box(title)
                self.frames.append(inner)
                (phase or open_boxes[-1][1]).add(inner)
                open_boxes.append((end, inner))
            where = open_boxes[-1][1] if len(open_boxes) > 1 else phase or box
            if op.blocks:
                self._control(op, where)
            else:
                nodes[k] = self._plain(op, where)
        return nodes

    def _plain(self, op: Op, box: Box) -> Node:
        held = [v for v in op.inputs if _is_held(v) and id(v) not in self.givers]
        held = [v for v in held if not getattr(v, "stop_gradient", True)] or held
        lines = [f"{v.name} {type_text(v)}" for v in held[:_MOST_LINES]]
        lines += [f"→ {type_text(v)}" for v in op.outputs[:1]]
        node = Node(op.name.rpartition(".")[2], lines, op.role or "op", statement_text(op))
        box.add(node)
        for v in op.inputs:
            self.use(v, node)
        for v in op.outputs:
            self.givers[id(v)] = [node]
        return node

    def _control(self, op: Op, box: Box) -> None:
        outer = Box(op.name, "block")
        box.add(outer)
        inputs: Sequence[Value] = op.inputs
        if op.name == "cond":
            test = Node(f"if {op.inputs[0].name}", [], "control")
            outer.add(test)
            self.use(op.inputs[0], test)
            inputs = op.inputs[1:]
        words = _WORDS.get(op.name, ())
        for k, inner in enumerate(op.blocks):
            frame = Box(words[k] if k < len(words) else f"block {k}", "block")
            outer.add(frame)
            for argument, given in zip(inner.arguments, inputs, strict=False):
                self.givers[id(argument)] = list(self.givers.get(id(given), ()))
                if not self.givers[id(argument)] and _is_held(given):
                    self.givers.pop(id(argument))
            self.statements(inner, frame)
            if not frame.items:
                frame.add(Node("nothing", [", ".join(v.name for v in inner.results)], "control"))
        result_blocks = op.blocks[1:2] if op.name == "while" else op.blocks[-1:] if op.name == "while_grad" else op.blocks
        first = next(outer.nodes())
        for k, v in enumerate(op.outputs):
            givers = [g for b in result_blocks if k < len(b.results) for g in self.givers.get(id(b.results[k]), ())]
            self.givers[id(v)] = list(dict.fromkeys(givers)) or [first]
