"""Expanding calls on Values into one Program: operators by their definitions, writes in place as new versions, eager tensors as literals."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes, nest
from ..ir.builder import Builder
from ..ir.program import Value
from ..ops import primitives as p
from ..ops.catalog import TABLE
from ..ops.define import OpDef

#: Changes a call's operands (AMP casts them).
OperandRule = Callable[[OpDef, list[Value]], Sequence[Value]]

#: The rules by what stands for them in signatures and in recorded Programs.
RULES: dict[Any, OperandRule] = {}
_thread = threading.local()


def current_rule() -> Any:
    """The key of the rule that this thread's calls are traced with; None: without one."""
    return getattr(_thread, "rule", None)


def set_rule(key: Any, rule: OperandRule | None) -> None:
    """Trace this thread's calls with the rule from now on; None: without."""
    _thread.rule = key if rule is not None else None
    if rule is not None:
        RULES[key] = rule


class Expander(Builder):
    """Appends what operators are defined by. ``keys`` gives the keys of random operators; without it each is a new argument of the block."""

    def __init__(self, name: str) -> None:
        super().__init__(TABLE, name)
        self.keep = lambda definition: definition.gradient is not None
        self.rule: OperandRule | None = None
        self.keys: Iterator[Value] | None = None
        #: What Values written in place are now, by the id of the Value that was written first; it is kept alive beside.
        self.versions: dict[int, tuple[Value, Value]] = {}
        #: Elements of arguments that follow from sizes alone, by the argument's id.
        self.known: dict[int, Any] = {}

    def latest(self, value: Value) -> Value:
        """What the value is now, after writes in place."""
        found = self.versions.get(id(value))
        return value if found is None else found[1]

    def write(self, target: Value, new: Value) -> None:
        """From now on, the target is the new value."""
        self.versions[id(target)] = (target, new)

    def random_key(self) -> Value:
        """The key of the next random operator."""
        return self.argument("int64", (), weak=True) if self.keys is None else next(self.keys)

    @contextmanager
    def ruled(self, rule: OperandRule | None) -> Iterator[None]:
        """Change operands by the rule inside the ``with`` block."""
        old, self.rule = self.rule, rule
        try:
            yield
        finally:
            self.rule = old

    def call(self, definition: OpDef, args: Sequence[Any], is_inplace: bool = False) -> Any:
        """The operator's result; its operands that it updates are written."""
        values = [self._operand(kind, a) for kind, a in zip((q.kind for q in definition.parameters), args, strict=True)]
        if self.rule is not None:
            changed = iter(self.rule(definition, [v for v in nest.flatten(values) if isinstance(v, Value)]))
            values = nest.map_structure(lambda v: next(changed) if isinstance(v, Value) else v, values)
        result = definition.expand(values)
        if not _rt.grad_enabled():
            result = nest.map_structure(
                lambda v: p.detach(v) if isinstance(v, Value) and dtypes.is_differentiable(v.dtype) else v, result
            )
        if is_inplace:
            self.write(args[0], result)
            return args[0]
        for target, new in zip(definition.updated(args), nest.flatten(result), strict=False):
            self.write(target, new)
        return result

    def _operand(self, kind: str, value: Any) -> Any:
        if kind == "attr" or value is None:
            return value
        if kind == "tensors":
            return [self._operand("tensor", v) for v in value]
        if isinstance(value, Value):
            return self.latest(value)
        if isinstance(value, _rt.Tensor):
            return p.literal(value.numpy_view())
        return p.literal(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value
