"""Epilogues: the bias, activation and residual after a matmul or convolution, done by the native while the result is in
registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..base import dtypes
from ..ir.program import Op, Value
from .index_maps import operands_of
from .natives import native_of
from .trace import Leaf, Step, Trace

#: The axis of the result that a bias has.
BIAS_AXIS = {"matmul": -1, "conv": 1, "conv_backward_data": 1}
#: Steps of one name. Functions stay in kernels, whose polynomials are accurate and have the same bits wherever they are fused.
_SAME_NAME = ("sqrt", "abs")
#: What natives do to float64 results.
_OF_WIDE = ("relu", "linear", "add", "mul")


@dataclass(frozen=True)
class Epilogue:
    """What a native does to its own result.

    ``value``: what it then writes; ``operands``: the tensors that ``add`` and ``mul`` take, in order.
    """

    value: Value
    steps: tuple[str, ...]
    operands: tuple[Leaf, ...]


@dataclass(eq=False)
class Work:
    """What one unit of a Program comes to: an Op by itself, or kernels. ``epilogue``: what the Op's native does besides."""

    op: Op | None
    traces: list[Trace] = field(default_factory=list)
    epilogue: Epilogue | None = None

    @property
    def reads(self) -> list[Value]:
        """The values it is computed from."""
        values = list(operands_of(self.op)) if self.op is not None else []
        values += [leaf.value for t in self.traces for leaf in t.leaves]
        return values + [leaf.value for leaf in (self.epilogue.operands if self.epilogue is not None else ())]


def fuse_epilogues(work: Sequence[Work], uses: dict[int, int]) -> list[Work]:
    """The work with kernels that only finish a native's result done by that native.

    ``uses``: how often each value, by id, is read.
    """
    made_by = {
        id(w.op.outputs[0]): w for w in work if w.op is not None and w.op.name in BIAS_AXIS and native_of(w.op) is not None
    }
    dropped: set[int] = set()
    replaced: dict[int, Work] = {}
    for item in work if made_by else ():
        for leaf in item.traces[0].leaves if len(item.traces) == 1 else ():
            native = made_by.get(id(leaf.value))
            if native is None or native.op is None or uses.get(id(leaf.value)) != 1:
                continue
            epilogue = _match(native.op, item.traces[0])
            if epilogue is not None:
                dropped.add(id(native))
                replaced[id(item)] = Work(native.op, [], epilogue)
                break
    return [replaced.get(id(item), item) for item in work if id(item) not in dropped]


def _match(op: Op, trace: Trace) -> Epilogue | None:
    """The trace as an epilogue of the Op, or None when it is more than that."""
    out = op.outputs[0]
    if len(trace.stores) != 1 or not dtypes.is_floating(out.dtype) or any(s.op in ("reduce", "index") for s in trace.steps):
        return None
    value, last, dims = trace.stores[0]
    mine = [k for k, leaf in enumerate(trace.leaves) if leaf.value is out]
    if len(mine) != 1 or value.dtype != out.dtype or value.shape != out.shape:
        return None
    if any(leaf.indices != tuple((a, 0, 1) for a in dims) for leaf in trace.leaves):
        return None
    start = next(k for k, s in enumerate(trace.steps) if s.op == "load" and s.attr == mine[0])
    chain = _Chain(trace.steps, start)
    at, steps, operands = start, [], []
    while at != last:
        found = chain.after(at)
        if found is None:
            return None
        at, text, leaf = found
        if leaf is not None:
            value_of = trace.leaves[leaf].value
            if value_of.dtype != out.dtype or (text == "mul" and _is_repeated(value_of)):
                return None
            operands.append(trace.leaves[leaf])
        steps.append(text)
    if out.dtype == "float64" and any(s.split(":")[0] not in _OF_WIDE for s in steps):
        return None
    return Epilogue(value, tuple(steps), tuple(operands))


def _is_repeated(value: Value) -> bool:
    """Whether the value repeats a smaller one: a product with such costs a native more than a kernel after it."""
    while value.op is not None and value.op.name in ("reshape", "transpose"):
        value = value.op.inputs[0]
    return value.op is not None and value.op.name == "broadcast_to"


class _Chain:
    """Follows the steps that a native's result goes through."""

    def __init__(self, steps: Sequence[Step], start: int) -> None:
        self.steps = steps
        self.users: dict[int, list[int]] = {}
        depends = {start}
        for k, step in enumerate(steps):
            through = depends.intersection(step.args)
            if through:
                depends.add(k)
                for a in through:
                    self.users.setdefault(a, []).append(k)

    def after(self, at: int) -> tuple[int, str, int | None] | None:
        """The step after this one, its name as an epilogue, and the leaf that it takes."""
        users = self.users.get(at, [])
        if len(users) != 1 or self.steps[users[0]].op != "map":
            return None
        user, name = self.steps[users[0]], str(self.steps[users[0]].attr)
        if name in _SAME_NAME:
            return users[0], name, None
        if name == "neg":
            return users[0], "linear:-1.0:0.0", None
        if user.args == (at, at):
            return (users[0], "square", None) if name == "mul" else None
        other = self.steps[sum(user.args) - at] if len(user.args) == 2 else None
        if other is None:
            return None
        if name in ("add", "mul") and other.op == "load":
            return users[0], name, other.attr
        if other.op != "const":
            return None
        number = float(other.attr)
        if name == "maximum" and number == 0.0:
            return users[0], "relu", None
        text = {"mul": f"linear:{number!r}:0.0", "add": f"linear:1.0:{number!r}"}.get(name)
        return None if text is None or not math.isfinite(number) else (users[0], text, None)
