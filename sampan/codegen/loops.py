"""The loop IR's public face: Kernel, Buffer, Node, KernelBuilder, parse_kernel, verify.

docs/design/002-loop-ir.md is the contract between those who build kernels and those who emit them.
"""

from __future__ import annotations

import re

from sampan.codegen import mathlib
from sampan.codegen.dtypes import DTYPES, KernelError
from sampan.codegen.loop_nodes import Attribute, Buffer, Constant, Kernel, Node, constant_of, param_offsets, reduce_dtype
from sampan.codegen.loop_verify import verify

__all__ = ["Buffer", "Kernel", "KernelBuilder", "KernelError", "Node", "param_offsets", "parse_kernel", "verify"]


class KernelBuilder:
    """Builds a kernel node by node; methods return a node's position. Equal nodes are shared.

    Example:
        k = KernelBuilder(outer=1, reduce_lane=True)
        x, y = k.buffer("x", "float32"), k.buffer("y", "float32", "out")
        value = k.load(x)
        k.store(y, k.map("sub", value, k.reduce("max", value)))
        kernel = k.build()
    """

    def __init__(self, outer: int = 0, inner: int = 0, reduce_lane: bool = False, block: str = "none") -> None:
        self.outer, self.inner, self.reduce_lane, self.block = outer, inner, reduce_lane, block
        self.buffers: list[Buffer] = []
        self.nodes: list[Node] = []
        self._known: dict[Node, int] = {}

    def buffer(self, name: str, dtype: str, direction: str = "in", lane: str = "1", inner: bool = True) -> int:
        """The position of a new buffer."""
        self.buffers.append(Buffer(name, dtype, direction, lane, inner))
        return len(self.buffers) - 1

    def node(self, op: str, dtype: str, args: tuple[int, ...] = (), attr: Attribute = "") -> int:
        node = Node(op, dtype, args, attr)
        if op != "store" and node in self._known:
            return self._known[node]
        self.nodes.append(node)
        self._known[node] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def dtype(self, value: int) -> str:
        return self.nodes[value].dtype

    def const(self, value: Constant, dtype: str) -> int:
        return self.node("const", dtype, (), constant_of(value, dtype))

    def load(self, buffer: int) -> int:
        return self.node("load", self.buffers[buffer].dtype, (), buffer)

    def load_at(self, buffer: int, *indices: int) -> int:
        return self.node("load_at", self.buffers[buffer].dtype, indices, buffer)

    def store(self, buffer: int, value: int) -> int:
        return self.node("store", self.buffers[buffer].dtype, (value,), buffer)

    def index(self, axis: str) -> int:
        return self.node("index", "int64", (), axis)

    def map(self, name: str, *args: int) -> int:
        return self.node("map", mathlib.result_dtype(name, [self.dtype(a) for a in args]), args, name)

    def cast(self, dtype: str, value: int) -> int:
        return value if self.dtype(value) == dtype else self.node("cast", dtype, (value,))

    def select(self, condition: int, yes: int, no: int) -> int:
        return self.node("select", self.dtype(yes), (condition, yes, no))

    def reduce(self, kind: str, value: int) -> int:
        return self.node("reduce", reduce_dtype(kind, self.dtype(value)), (value,), kind)

    def build(self) -> Kernel:
        """The kernel, verified."""
        kernel = Kernel(self.outer, self.inner, self.reduce_lane, self.block, tuple(self.buffers), tuple(self.nodes))
        verify(kernel)
        return kernel


def _parse_constant(text: str, dtype: str) -> Constant:
    kind = DTYPES[dtype].kind
    if kind == "b":
        return text == "True"
    if kind in "iu":
        return int(text)
    if kind == "c":
        real, imag = text.split(",")
        return complex(float.fromhex(real), float.fromhex(imag))
    return float.fromhex(text)


_HEAD = re.compile(r"kernel outer=(\d+) inner=(\d+) reduce_lane=([01]) block=(\w+)")
_BUFFER = re.compile(r"buffer (\w+) (\w+) (in|out) lane=(\w) inner=([01])")
_NODE = re.compile(r"%(\d+) = (\w+)((?: [^ :]+)*) : (\w+)")


def parse_kernel(text: str) -> Kernel:
    """The verified kernel that prints as text; KernelError names the line that cannot be read."""
    lines = [line.strip() for line in text.strip().splitlines()]
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if not head:
        raise KernelError("a kernel's text starts with: kernel outer=N inner=N reduce_lane=0|1 block=none|lane|inner0")
    buffers: list[Buffer] = []
    nodes: list[Node] = []
    for number, line in enumerate(lines[1:], 2):
        if match := _BUFFER.fullmatch(line):
            buffers.append(Buffer(match[1], match[2], match[3], match[4], match[5] == "1"))
        elif (match := _NODE.fullmatch(line)) and int(match[1]) == len(nodes):
            nodes.append(_parse_node(match[2], match[3].split(), match[4], buffers, number, line))
        else:
            raise KernelError(f"line {number} is neither a buffer nor node %{len(nodes)}: {line}")
    kernel = Kernel(int(head[1]), int(head[2]), head[3] == "1", head[4], tuple(buffers), tuple(nodes))
    verify(kernel)
    return kernel


def _parse_node(op: str, words: list[str], dtype: str, buffers: list[Buffer], number: int, line: str) -> Node:
    try:
        args = tuple(int(w[1:]) for w in words if w.startswith("%"))
        rest = [w for w in words if not w.startswith("%")]
        if op in ("load", "load_at", "store"):
            return Node(op, dtype, args, [b.name for b in buffers].index(rest[0]))
        if op == "const":
            return Node(op, dtype, args, _parse_constant(rest[0], dtype))
        return Node(op, dtype, args, rest[0] if rest else "")
    except (ValueError, IndexError, KeyError) as error:
        raise KernelError(f"line {number} cannot be read ({error}): {line}") from error
