"""Replicas of a Program in one process: a pass that gives every place its part of the batch, and puts aggregation where what they found meets.

What depends on the batch is there once for each place. Updates, and what does not depend on the batch, are there once; what they use of the replicas is
aggregated: gradients and running statistics as means over all rows, counts by their increments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base import dtypes
from ..ir.program import Block, Op, Value
from .build import OPS
from .program_gradients import copy_recorded
from .replay import FUNCTIONS, Operand, RecordedFunction
from .variable import UNKNOWN, Variable


def aggregate_mean(values: Sequence[Any], shares: Sequence[Any]) -> Any:
    """The mean of the replicas' values, each by its share of the rows."""
    total = values[0] * shares[0]
    for value, share in zip(values[1:], shares[1:], strict=True):
        total = total + value * share
    return total


def aggregate_counts(values: Sequence[Any], old: Any) -> Any:
    """A count, with what each replica added to it."""
    total = old
    for value in values:
        total = total + (value - old)
    return total


def aggregate_rows(values: Sequence[Any]) -> Any:
    """The replicas' rows, one after the other."""
    return OPS["stack" if values[0].ndim == 0 else "concat"](list(values), 0)


for _function in (aggregate_mean, aggregate_counts, aggregate_rows):
    FUNCTIONS[_function.__name__] = RecordedFunction(_function.__name__, _function, inspect.signature(_function))


@dataclass
class Replicas:
    """The graph of all replicas.

    Attributes:
        block: its Ops, in an order that they can run in.
        updates: as ``Runner`` takes them.
        owners: the replica of each Op, by id; ``aggregate`` for aggregation, ``shared`` for others.
        origins: the Op of the Program that a replica's Op is a copy of, by id.
        parts: for each argument of the Program its arguments here: one, or one for each replica where the batch is fed.
        shares: the arguments for the replicas' shares of the rows.
    """

    block: Block
    updates: list[tuple[int, Value]]
    owners: dict[int, Any] = field(default_factory=dict)
    origins: dict[int, Op] = field(default_factory=dict)
    parts: list[list[Value]] = field(default_factory=list)
    shares: list[Value] = field(default_factory=list)


def replicate(block: Block, updates: Sequence[tuple[int, Value]], batches: Collection[int], count: int) -> Replicas:
    """The graph of ``count`` replicas of a block of recorded Ops. ``batches``: ids of the arguments whose rows are divided."""
    return _Pass(block, updates, batches, count).run()


class _Pass:
    def __init__(self, block: Block, updates: Sequence[tuple[int, Value]], batches: Collection[int], count: int) -> None:
        self.block, self.updates, self.batches, self.count = block, updates, batches, count
        self.made = Replicas(Block([], [], ()), [])
        #: What stands for a Variable in each replica, by id.
        self.copies: dict[int, list[Any]] = {}
        self.twins: dict[int, list[Op]] = {}
        #: What stands for an Op that is there once, where it takes what was aggregated.
        self.shared: dict[int, Op] = {}
        self.aggregates: dict[Any, Any] = {}

    def run(self) -> Replicas:
        made = self.made
        for v in self.block.arguments:
            is_batch = id(v) in self.batches
            parts: list[Any] = [v.like(f"{v.name}@{k}") for k in range(self.count)] if is_batch else [v]  # type: ignore[attr-defined]
            if is_batch:
                self.copies[id(v)] = parts
            made.parts.append(parts)
            made.block.arguments += parts
        made.shares = [Variable("float64", (), f"share@{k}", weak=True) for k in range(self.count)]
        replicated = self._replicated()
        for op in self.block.ops:
            if id(op) in replicated:
                self._copy(op)
            else:
                self._share(op)
        numbers = {id(v): k for k, v in enumerate(made.block.arguments)}
        for k, new in self.updates:
            target = self.block.arguments[k]
            made.updates.append((numbers[id(target)], self._aggregated(new, target)))
        made.block.results = tuple(self._fetched(v) for v in self.block.results)
        made.block.arguments += made.shares
        return made

    def _replicated(self) -> set[int]:
        """The Ops that depend on the batch, up to updates; and the keys that they draw with."""
        found: set[int] = set()
        values = set(self.batches)
        for op in self.block.ops:
            if op.role != "optimize" and any(id(v) in values for v in op.inputs):
                found.add(id(op))
                values.update(id(v) for v in op.outputs)
        drawn = {id(v) for op in self.block.ops if id(op) in found for v in op.inputs}
        return found | {id(op) for op in self.block.ops if op.name == "random_key" and id(op.outputs[0]) in drawn}

    def _copy(self, op: Op) -> None:
        self.twins[id(op)] = []
        for k in range(self.count):
            inputs = tuple(self.copies[id(v)][k] if id(v) in self.copies else v for v in op.inputs)
            twin = copy_recorded(op, inputs)
            if op.of is not None:
                twin.of = self.twins[id(op.of)][k] if id(op.of) in self.twins else op.of
            for old, new in zip(op.outputs, twin.outputs, strict=True):
                new.name = f"{old.name}@{k}"
                self.copies.setdefault(id(old), []).append(new)
            self.twins[id(op)].append(twin)
            self.made.owners[id(twin)], self.made.origins[id(twin)] = k, op
            self.made.block.ops.append(twin)

    def _share(self, op: Op) -> None:
        if any(id(v) in self.copies for v in op.inputs) or (op.of is not None and id(op.of) in self.shared):
            inputs = tuple(self._aggregated(v) for v in op.inputs)
            of = self.shared.get(id(op.of), op.of)
            twin = Op(op.name, inputs, op.attributes, op.outputs, op.blocks, op.location, op.role, of)
            self.shared[id(op)] = twin
            op = twin
        self.made.owners[id(op)] = "shared"
        self.made.block.ops.append(op)

    def _aggregated(self, value: Any, old: Any = None) -> Any:
        """What stands for a replicated Variable outside of the replicas."""
        copies = self.copies.get(id(value))
        if copies is None:
            return value
        if dtypes.is_differentiable(value.dtype):
            return self._append(aggregate_mean, value, {"values": copies, "shares": self.made.shares})
        if old is not None and value.dtype != "bool":
            return self._append(aggregate_counts, value, {"values": copies, "old": [old]})
        return copies[0]

    def _fetched(self, value: Any) -> Any:
        copies = self.copies.get(id(value))
        if copies is None:
            return value
        if dtypes.is_differentiable(value.dtype) and (not value.sizes or value.sizes[0] != UNKNOWN):
            return self._aggregated(value)
        return self._append(aggregate_rows, value, {"values": copies})

    def _append(self, function: Callable[..., Any], like: Any, operands: dict[str, list[Any]]) -> Any:
        key = (function.__name__, id(like))
        if key not in self.aggregates:
            inputs = [v for group in operands.values() for v in group]
            places = iter(range(len(inputs)))
            attributes: dict[str, Any] = {name: tuple(Operand(next(places)) for _ in group) for name, group in operands.items()}
            if "old" in attributes:
                (attributes["old"],) = attributes["old"]
            op = Op(function.__name__, tuple(inputs), attributes)
            sizes = (UNKNOWN, *like.sizes[1:]) if function is aggregate_rows else like.sizes
            made = Variable(like.dtype, sizes, like.name)
            made.op = op
            op.outputs = (made,)
            self.made.owners[id(op)] = "aggregate"
            self.made.block.ops.append(op)
            self.aggregates[key] = made
        return self.aggregates[key]
