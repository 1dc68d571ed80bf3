"""recompute: where memory is limited, values that would wait long for their last readers are computed again for these.

In a training step those are activations that wait from forward to backward. Where most bytes wait at once is the peak; values that live across it are
candidates. They are taken by what computing them again costs for each byte, until the rest fits. Each is computed from what stays, right before the first
late reader: ``after`` ties it to what that reader needs besides.
"""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..base import dtypes
from ..ir.builder import Builder
from ..ir.program import Block, Op, Program, Value
from ..ops.catalog import TABLE
from ..ops.primitives.core import PRIMITIVES, append
from .rewriting import append_op

#: Nanoseconds, about: of a byte that passes through memory, a multiplication in a product, a function of one number.
_BYTE_NS, _PRODUCT_NS, _FUNCTION_NS = 0.1, 0.014, 0.5
#: What natives that are no products take for each number they give, beside their bytes.
_NATIVE_NS = 2.0
#: A value is no reason to compute again what has so few bytes.
_LEAST_BYTES = 1024
_MASKS = ("eq", "ne", "lt", "le", "gt", "ge")
#: Families whose Ops act outside, or are data.
_FIXED = ("host", "source", "literal")

_thread = threading.local()


@contextmanager
def within_memory(size_bytes: int | None) -> Iterator[None]:
    """What this thread compiles inside the ``with`` block lets temporaries take this many bytes, where recomputing can reach that; None: any number."""
    old = memory_target()
    _thread.target = size_bytes
    try:
        yield
    finally:
        _thread.target = old


def memory_target() -> int | None:
    """The bytes that temporaries of what this thread compiles may take; None: any number."""
    return getattr(_thread, "target", None)


def recompute(program: Program) -> Program:
    """The Program in which values are computed again for late readers, so that about ``memory_target()`` bytes wait at a time; the same one without a target."""
    target = memory_target()
    if target is None:
        return program
    lives = _Lives(program)
    again = _choose(lives, target)
    return _rewrite(program, lives, again) if again else program


class _Lives:
    """From where to where each value of a Program waits, and what waits across the peak."""

    def __init__(self, program: Program) -> None:
        self.made: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.values: dict[int, Value] = {}
        read_whole: dict[int, int] = {}  # the last reader that is no kernel's expression
        for at, op in enumerate(program.ops):
            family = PRIMITIVES[op.name].family
            for v in op.inputs if family != "view" else ():
                self.last[id(base_of(v))] = at
                if family not in ("map", "reduce"):
                    read_whole[id(base_of(v))] = at
            for v in op.outputs:
                self.made[id(v)] = at
                self.values[id(v)] = v
        for v in program.outputs:  # results lie in storages of their own, whatever is computed again
            self.made.pop(id(base_of(v)), None)
        self.peak = self._find_peak(len(program.ops))
        self.waiting = [v for v in self.values.values() if self.crosses(v) and not self._is_fused(v, read_whole)]

    def crosses(self, value: Value) -> bool:
        """Whether the value is made before the peak and read after it."""
        key = id(value)
        return key in self.made and self.made[key] <= self.peak < self.last.get(key, -1) and _is_stored(value)

    def _find_peak(self, count: int) -> int:
        change = [0] * (count + 1)
        for key, at in self.made.items():
            if _is_stored(self.values[key]) and key in self.last:
                change[at] += size_of(self.values[key])
                change[self.last[key]] -= size_of(self.values[key])
        total, best, peak = 0, 0, 0
        for at, delta in enumerate(change):
            total += delta
            if total > best:
                best, peak = total, at
        return peak

    def _is_fused(self, value: Value, read_whole: Mapping[int, int]) -> bool:
        """Whether kernels rather compute the value again where they read it: a comparison of one tensor that waits anyway."""
        op = value.op
        if op is None or op.name not in _MASKS or read_whole.get(id(value), -1) > self.peak:
            return False
        large = {id(base_of(v)): base_of(v) for v in op.inputs if base_of(v).numel * 8 > value.numel}
        return len(large) == 1 and all(self.crosses(v) for v in large.values())


def base_of(value: Value) -> Value:
    """The value whose elements this one shows."""
    while value.op is not None and PRIMITIVES[value.op.name].family == "view":
        value = value.op.inputs[0]
    return value


def size_of(value: Value) -> int:
    """Its bytes."""
    return value.numel * dtypes.itemsize(value.dtype)


def _is_stored(value: Value) -> bool:
    return value.op is not None and PRIMITIVES[value.op.name].family not in ("view", *_FIXED)


def cost_of(op: Op) -> float:
    """Nanoseconds, about, to compute the Op."""
    family = PRIMITIVES[op.name].family
    if family in ("view", "source", "literal"):
        return 0.0
    size = float(sum(map(size_of, (*op.inputs, *op.outputs)))) * _BYTE_NS
    out = op.outputs[0]
    if op.name == "matmul":
        return size + out.numel * op.inputs[0].shape[-1] * _PRODUCT_NS
    if op.name == "conv":
        return size + out.numel * math.prod(op.inputs[1].shape[1:]) * _PRODUCT_NS
    if op.name == "rnn":  # a product with the square of the state for each step
        return size + out.numel * op.inputs[-1].numel / max(out.shape[-1], 1) * _PRODUCT_NS
    if family == "native":
        return size + out.numel * _NATIVE_NS
    return size + (out.numel * _FUNCTION_NS if family == "map" else 0.0)


def _closure(value: Value, lives: _Lives, again: set[int]) -> dict[int, Op] | None:
    """The Ops that give the value from what stays; None when one of them must not run twice."""
    found: dict[int, Op] = {}
    stack = [value]
    while stack:
        v = stack.pop()
        op = v.op
        if op is None or id(op) in found:
            continue
        family = PRIMITIVES[op.name].family
        if family in ("source", "literal") or (v is not value and family != "view" and lives.crosses(v) and id(v) not in again):
            continue
        if family == "host" or op.blocks:
            return None
        found[id(op)] = op
        stack.extend(op.inputs)
    return found


def _choose(lives: _Lives, target: int) -> set[int]:
    """The ids of values that are computed again: cheapest for each byte first, until what waits fits the target."""
    again: set[int] = set()
    total = sum(map(size_of, lives.waiting))

    def price(value: Value) -> float | None:
        ops = _closure(value, lives, again)
        return None if ops is None else sum(map(cost_of, ops.values())) / size_of(value)

    waiting = [v for v in lives.waiting if size_of(v) >= _LEAST_BYTES]
    priced = ((price(v), k) for k, v in enumerate(waiting))
    queue = [(p, k) for p, k in priced if p is not None]
    heapq.heapify(queue)
    while queue and total > target:
        _, k = heapq.heappop(queue)
        now = price(waiting[k])
        if now is None:
            continue
        if queue and now > queue[0][0]:  # dearer since what it is made of does not wait either
            heapq.heappush(queue, (now, k))
            continue
        again.add(id(waiting[k]))
        total -= size_of(waiting[k])
    return again


def _rewrite(program: Program, lives: _Lives, again: set[int]) -> Program:
    builder = Builder(TABLE, program.name)
    builder.block.arguments = list(program.inputs)
    rewriter = _Rewriter(lives, again)
    with builder.active():
        for at, op in enumerate(program.ops):
            builder.location = op.location
            rewriter.append(at, op, builder)
    outputs = tuple(rewriter.moved.get(id(v), v) for v in program.outputs)
    return Program(program.name, Block(builder.block.arguments, builder.block.ops, outputs))


class _Rewriter:
    """Appends a Program's Ops to another, and before late readers what they read of the values that are computed again."""

    def __init__(self, lives: _Lives, again: set[int]) -> None:
        self.lives, self.again = lives, again
        self.moved: dict[int, Value] = {}  # results of Ops that were written anew for other operands
        self.copies: dict[int, Value] = {}  # what late readers see of early values
        self._tied: set[int] = set()
        self._newest: Value | None = None
        self._position: dict[int, int] = {}

    def append(self, at: int, op: Op, builder: Builder) -> None:
        """The Op number ``at``."""
        inputs = op.inputs if not self.moved else tuple(self.moved.get(id(v), v) for v in op.inputs)
        is_late, is_free = at > self.lives.peak, PRIMITIVES[op.name].family in ("view", "source", "literal")
        if is_late and not is_free and any(id(base_of(v)) in self.again for v in inputs):
            late = max((v for v in inputs if id(v) in self._position), key=lambda v: self._position[id(v)], default=self._newest)
            if late is not None:
                inputs = tuple(self._copy(v, late) if id(base_of(v)) in self.again else v for v in inputs)
        outputs = op.outputs
        if all(a is b for a, b in zip(inputs, op.inputs, strict=True)):
            builder.block.ops.append(op)
        else:
            outputs = append_op(op, inputs)
            self.moved.update((id(old), new) for old, new in zip(op.outputs, outputs, strict=True))
        if is_late and not is_free:
            self._newest = outputs[0]
            self._position.update((id(v), at) for v in outputs)

    def _copy(self, value: Value, late: Value) -> Value:
        """The value computed again, once ``late`` is known."""
        found = self.copies.get(id(value))
        if found is not None:
            return found
        op = value.op
        if op is None or PRIMITIVES[op.name].family in ("source", "literal"):
            return value
        is_view = PRIMITIVES[op.name].family == "view"
        if not is_view and self.lives.crosses(value) and id(value) not in self.again:
            return self._tie(value, late)
        inputs = tuple(self._copy(v, late) for v in op.inputs)
        if is_view and inputs[0] is op.inputs[0]:
            return value
        if not any(id(v) in self._tied for v in inputs):
            inputs = (self._tie(inputs[0], late), *inputs[1:])
        for old, new in zip(op.outputs, append_op(op, inputs), strict=True):
            self.copies[id(old)] = new
            self._tied.add(id(new))
        return self.copies[id(value)]

    def _tie(self, value: Value, late: Value) -> Value:
        """The value itself, for readers that wait until ``late`` is known."""
        tied: Value = append("after", value, late)
        if value.op is not None:
            self.copies[id(value)] = tied
        self._tied.add(id(tied))
        return tied
