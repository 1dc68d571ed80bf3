"""The rules of the loop IR, checked with errors that show where a kernel breaks them."""

from __future__ import annotations

from sampan.codegen import mathlib
from sampan.codegen.dtypes import DTYPES, KernelError
from sampan.codegen.loop_nodes import (
    BLOCKS,
    REDUCE_KINDS,
    Kernel,
    Node,
    can_stream,
    constant_of,
    print_node,
    reduce_dtype,
    varies,
)


def verify(kernel: Kernel) -> None:
    """Raises KernelError, showing the neighbourhood, when a kernel breaks a rule of the loop IR."""
    if kernel.block not in BLOCKS:
        raise KernelError(f"block is {kernel.block!r}; it must be one of {', '.join(BLOCKS)}.")
    if kernel.block == "inner0" and not kernel.inner:
        raise KernelError("block is 'inner0' and the kernel has no inner axis; add one, or block the lane.")
    if kernel.outer < 0 or kernel.inner < 0:
        raise KernelError(f"outer is {kernel.outer} and inner {kernel.inner}; they are numbers of axes.")
    names = [b.name for b in kernel.buffers]
    for buffer in kernel.buffers:
        if buffer.dtype not in DTYPES or buffer.direction not in ("in", "out") or buffer.lane not in ("0", "1", "n", "s"):
            raise KernelError(f"buffer {buffer} has an unknown dtype, direction or lane class.")
        if buffer.lane == "s" and not can_stream(kernel.form, buffer.direction, buffer.dtype):
            raise KernelError(f"buffer {buffer.name}: only a map kernel has lane='s', for outs of numbers of 32 or 64 bits.")
        if names.count(buffer.name) > 1 or not buffer.name.isidentifier():
            raise KernelError(f"buffer name {buffer.name!r} is used twice or is no identifier.")
    variation = None
    for position, node in enumerate(kernel.nodes):
        problem = _node_problem(kernel, position, node)
        if not problem and node.op == "store":
            variation = variation or varies(kernel)
            problem = _store_problem(kernel, node, variation)
        if problem:
            raise KernelError(f"{problem}\n{_neighbourhood(kernel, position)}")
    if not any(n.op == "store" for n in kernel.nodes):
        raise KernelError("the kernel stores nothing.")


def _node_problem(kernel: Kernel, position: int, node: Node) -> str:
    if node.dtype not in DTYPES:
        return f"%{position} has the unknown dtype {node.dtype!r}."
    for a in node.args:
        if not 0 <= a < position:
            return f"%{position} uses %{a}, which is not an earlier node."
        if kernel.nodes[a].op == "store":
            return f"%{position} uses %{a}, which is a store and has no value."
    check = _CHECKS.get(node.op)
    if check is None:
        return f"%{position} has the unknown op {node.op!r}."
    return check(kernel, node, [kernel.nodes[a].dtype for a in node.args])


def _check_const(kernel: Kernel, node: Node, dtypes: list[str]) -> str:
    if dtypes or isinstance(node.attr, str):
        return "a const takes a number and no arguments."
    wrong = repr(constant_of(node.attr, node.dtype)) != repr(node.attr)
    return f"const {node.attr!r} is not written as a {node.dtype}." if wrong else ""


def _check_access(kernel: Kernel, node: Node, dtypes: list[str]) -> str:
    if not isinstance(node.attr, int) or not 0 <= node.attr < len(kernel.buffers):
        return f"{node.op} names buffer {node.attr!r}; there are {len(kernel.buffers)}."
    buffer = kernel.buffers[node.attr]
    if node.dtype != buffer.dtype:
        return f"{node.op} of {buffer.name} is {node.dtype}; the buffer holds {buffer.dtype}."
    if (node.op == "store") != (buffer.direction == "out"):
        return f"{node.op} of {buffer.name}, which is an {buffer.direction} buffer."
    if node.op == "store":
        return (
            "" if dtypes == [buffer.dtype] else f"store to {buffer.name} takes one {buffer.dtype}, got {dtypes}; cast it first."
        )
    if node.op == "load":
        return "load takes no arguments." if dtypes else ""
    if not dtypes or any(d != "int64" for d in dtypes):
        return f"load_at takes int64 indices, got {dtypes}."
    counts = {len(n.args) for n in kernel.nodes if n.op == "load_at" and n.attr == node.attr}
    return f"load_at of {buffer.name} is used with {sorted(counts)} indices; they must agree." if len(counts) > 1 else ""


def _check_index(kernel: Kernel, node: Node, dtypes: list[str]) -> str:
    axes = [f"outer{k}" for k in range(kernel.outer)] + [f"inner{k}" for k in range(kernel.inner)] + ["lane"]
    if node.attr not in axes or dtypes or node.dtype != "int64":
        return f"index takes one axis of {', '.join(axes)} and is int64, got {node.attr!r}, {node.dtype}."
    return ""


def _check_map(kernel: Kernel, node: Node, dtypes: list[str]) -> str:
    try:
        expected = mathlib.result_dtype(str(node.attr), dtypes)
    except KernelError as error:
        return str(error)
    return "" if expected == node.dtype else f"map {node.attr} of {dtypes} gives {expected}, the node says {node.dtype}."


def _check_cast(kernel: Kernel, node: Node, dtypes: list[str]) -> str:
    return "" if len(dtypes) == 1 else "cast takes one argument."


def _check_select(kernel: Kernel, node: Node, dtypes: list[str]) -> str:
    return "" if dtypes == ["bool", node.dtype, node.dtype] else f"select takes a bool and two {node.dtype}, got {dtypes}."


def _check_reduce(kernel: Kernel, node: Node, dtypes: list[str]) -> str:
    if node.attr not in REDUCE_KINDS or len(dtypes) != 1:
        return f"reduce takes one argument and a kind of {', '.join(REDUCE_KINDS)}, got {node.attr!r}."
    kind = DTYPES[dtypes[0]].kind
    if (kind == "c" and node.attr not in ("sum", "prod")) or (kind == "b") != (node.attr in ("any", "all")):
        return f"reduce {node.attr} is not defined for {dtypes[0]}."
    if node.dtype != reduce_dtype(str(node.attr), dtypes[0]):
        return f"reduce {node.attr} of {dtypes[0]} gives {reduce_dtype(str(node.attr), dtypes[0])}, the node says {node.dtype}."
    return "" if kernel.form != "map" else "a map kernel has no reduce; set reduce_lane or add an inner axis."


def _store_problem(kernel: Kernel, node: Node, variation: list[tuple[bool, bool]]) -> str:
    buffer = kernel.buffers[int(node.attr)]  # type: ignore[arg-type]
    target = (buffer.inner and kernel.inner > 0, buffer.lane != "0")
    value = variation[node.args[0]]
    if value[0] and not target[0]:
        return f"store to {buffer.name} writes once for all inner steps (inner=False) a value that differs along the inner axes."
    if value[1] and not target[1]:
        return f"store to {buffer.name} writes once for all lanes (lane='0') a value that differs along the lane."
    if kernel.reduce_lane and target in ((True, False), (False, True)) and kernel.inner:
        per_element = "every lane of every inner step (lane '1' or 'n', inner=True)"
        return f"store to {buffer.name}: a row kernel writes {per_element}, or once (lane='0', inner=False)."
    return ""


_CHECKS = {
    "const": _check_const,
    "load": _check_access,
    "load_at": _check_access,
    "store": _check_access,
    "index": _check_index,
    "map": _check_map,
    "cast": _check_cast,
    "select": _check_select,
    "reduce": _check_reduce,
}


def _neighbourhood(kernel: Kernel, position: int) -> str:
    first, last = max(0, position - 10), min(len(kernel.nodes), position + 11)
    return "\n".join(("> " if k == position else "  ") + print_node(kernel, k) for k in range(first, last))
