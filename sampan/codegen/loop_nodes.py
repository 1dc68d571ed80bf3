"""A kernel of the loop IR as immutable data, and its printed form. docs/design/002-loop-ir.md is the contract."""

from __future__ import annotations

import dataclasses

from sampan.base.locks import lazy
from sampan.codegen.dtypes import DTYPES

BLOCKS = ("none", "lane", "inner0")
REDUCE_KINDS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
Constant = bool | int | float | complex
Attribute = Constant | str


@dataclasses.dataclass(frozen=True)
class Buffer:
    """An array argument. lane is '0' (one element for all lanes), '1' (contiguous), 'n' (a run-time stride), or, of what a map
    kernel writes, 's': contiguous and past the caches, for more than they hold.

    A buffer with inner=False has the same address for every step of the inner axes, whatever its inner strides say.
    """

    name: str
    dtype: str
    direction: str = "in"
    lane: str = "1"
    inner: bool = True


def can_stream(form: str, direction: str, dtype: str) -> bool:
    """Whether such a kernel may give such a buffer the lane class 's'."""
    d = DTYPES[dtype]
    return form == "map" and direction == "out" and d.kind in "iuf" and d.bits in (32, 64)


@dataclasses.dataclass(frozen=True)
class Node:
    """One value (or a store). args are positions of earlier nodes; attr is what op needs besides them:

    const: the number; load, store, load_at: the buffer's position; index: the axis ('outer0', 'inner0', 'lane'); map: the
    primitive's name; reduce: the kind; cast, select: an empty string. A store's dtype is its buffer's.
    """

    op: str
    dtype: str
    args: tuple[int, ...] = ()
    attr: Attribute = ""

    def __eq__(self, other: object) -> bool:
        """Equal in every bit: 0.0 and -0.0 differ, and so do 1 and True."""
        return isinstance(other, Node) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel of `outer` parallel axes, `inner` sequential axes and the lane axis; see the module's design note."""

    outer: int
    inner: int
    reduce_lane: bool
    block: str
    buffers: tuple[Buffer, ...]
    nodes: tuple[Node, ...]

    @property
    def form(self) -> str:
        """'map', 'row' or 'column'."""
        if self.reduce_lane:
            return "row"
        return "column" if self.inner else "map"

    @property
    def is_split(self) -> bool:
        """Whether this is the first stage of a split reduction, whose outs carry the block number as their last outer axis."""
        return (self.reduce_lane and self.block == "lane") or self.block == "inner0"

    @lazy
    def text(self) -> str:
        """The printed kernel, from which parse_kernel gives an equal one; the key of every cache."""
        return print_kernel(self)

    def gather_axes(self, buffer: int) -> int:
        """How many indices load_at takes on a buffer."""
        return max((len(n.args) for n in self.nodes if n.op == "load_at" and n.attr == buffer), default=0)

    @lazy
    def param_count(self) -> int:
        """The length of the params array that the compiled kernel reads."""
        return param_offsets(self)[-1]


def param_offsets(kernel: Kernel) -> tuple[int, ...]:
    """Where each buffer's strides start in params, and the total length as the last entry."""
    offset = kernel.outer + kernel.inner + 2
    offsets = []
    for position, buffer in enumerate(kernel.buffers):
        offsets.append(offset)
        has_block = kernel.is_split and buffer.direction == "out"
        offset += kernel.outer + has_block + kernel.inner + 1 + kernel.gather_axes(position)
    return (*offsets, offset)


def constant_of(value: Constant, dtype: str) -> Constant:
    kind = DTYPES[dtype].kind
    if kind == "b":
        return bool(value)
    if kind in "iu":
        return int(value)  # type: ignore[arg-type]
    return complex(value) if kind == "c" else float(value)  # type: ignore[arg-type]


def reduce_dtype(kind: str, dtype: str) -> str:
    if kind in ("argmax", "argmin"):
        return "int64"
    return "bool" if kind in ("any", "all") else dtype


def varies(kernel: Kernel) -> list[tuple[bool, bool]]:
    """For each node, whether its value differs along the inner axes and along the lane; for a store, where it writes."""
    result: list[tuple[bool, bool]] = []
    for node in kernel.nodes:
        inner = any(result[a][0] for a in node.args)
        lane = any(result[a][1] for a in node.args)
        if node.op in ("load", "load_at", "store"):
            buffer = kernel.buffers[int(node.attr)]  # type: ignore[arg-type]
            own = (buffer.inner and kernel.inner > 0, buffer.lane != "0")
            inner, lane = own if node.op == "store" else (inner or own[0], lane or own[1])
        elif node.op == "index":
            inner, lane = str(node.attr).startswith("inner"), node.attr == "lane"
        elif node.op == "reduce":
            inner, lane = False, not kernel.reduce_lane
        result.append((inner, lane))
    return result


def print_kernel(kernel: Kernel) -> str:
    """The kernel's text, one line for each buffer and node."""
    head = f"kernel outer={kernel.outer} inner={kernel.inner} reduce_lane={int(kernel.reduce_lane)} block={kernel.block}"
    lines = [head]
    lines += [f"  buffer {b.name} {b.dtype} {b.direction} lane={b.lane} inner={int(b.inner)}" for b in kernel.buffers]
    lines += [f"  {print_node(kernel, k)}" for k in range(len(kernel.nodes))]
    return "\n".join(lines) + "\n"


def print_node(kernel: Kernel, position: int) -> str:
    """One node's line, such as `%2 = map add %0 %1 : float32`."""
    node = kernel.nodes[position]
    words = [node.op]
    if node.op in ("load", "load_at", "store"):
        known = isinstance(node.attr, int) and 0 <= node.attr < len(kernel.buffers)
        words.append(kernel.buffers[int(node.attr)].name if known else f"?{node.attr}")  # type: ignore[arg-type]
    elif node.op == "const":
        words.append(_print_constant(node.attr))
    elif node.attr != "":
        words.append(str(node.attr))
    words += [f"%{a}" for a in node.args]
    return f"%{position} = {' '.join(words)} : {node.dtype}"


def _print_constant(value: object) -> str:
    if isinstance(value, complex):
        return f"{value.real.hex()},{value.imag.hex()}"
    return value.hex() if isinstance(value, float) else str(value)
