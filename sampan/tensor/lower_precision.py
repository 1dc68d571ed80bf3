"""Mixed precision for a Program that was built in full precision: its statements are marked with the rule that ``auto_cast`` records them under."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from ..ir.program import Block, Op, type_name
from ..ops.define import OPERATORS
from .autocast import Precision, computing_dtype, current_precision, register_precision, set_precision
from .program import ParameterVariable, Program
from .program_gradients import copy_recorded
from .recording import Recorder
from .replay import BACKWARD, DYNAMIC, PRECISION
from .variable import Variable

#: Computes in float32 whatever the operands are.
FULL = register_precision(Precision("OD", "float32", frozenset(), frozenset()))
#: Changes nothing; marks the statements that are recorded under it.
GUARD = register_precision(Precision("O0", "float32", frozenset(), frozenset()))


@contextmanager
def guarded() -> Iterator[None]:
    """Mark what is recorded inside the ``with`` block: it is what a Program with a guard computes in 16 bits."""
    outer = current_precision()
    set_precision(GUARD)
    try:
        yield
    finally:
        set_precision(outer)


def lower_program(
    program: Program,
    precision: Precision,
    *,
    full_names: Collection[str] = (),
    only_guarded: bool = False,
    lowers_parameters: bool = False,
) -> list[Variable]:
    """Let the Program's forward statements compute under the precision; their Variables get the dtypes that this gives.

    Statements that were recorded under ``auto_cast`` keep their own rule. What outlives a run keeps its dtype, and so do the operands and results of
    control flow, of what runs at once and of statements that have gradients already.

    Args:
        full_names: statements that take or make a Variable of these names compute in float32.
        only_guarded: statements outside of ``guarded()`` compute in float32.
        lowers_parameters: float32 parameters that only statements in 16 bits use become 16-bit Variables, those of norms excepted.

    Returns:
        The parameters that became 16-bit Variables.
    """
    lowering = _Lowering(program, register_precision(precision), frozenset(full_names), only_guarded)
    outer = current_precision()
    set_precision(None)
    try:
        lowered = lowering.parameters() if lowers_parameters else []
        lowering.block(program.recorder, program.recorder.block)
    finally:
        set_precision(outer)
    program.runners.clear()
    return lowered


class _Lowering:
    def __init__(self, program: Program, precision: Precision, full_names: frozenset[str], only_guarded: bool) -> None:
        self.program, self.precision, self.full_names, self.only_guarded = program, precision, full_names, only_guarded
        #: The dtypes that Variables had, by id.
        self.declared: dict[int, str] = {}
        self.kept = {id(new) for _, new in program.updates()}
        self.differentiated = {id(op.of) for op in program.recorder.block.ops if op.of is not None}

    def parameters(self) -> list[Variable]:
        """The parameters that only statements in 16 bits use, made 16-bit Variables."""
        users: dict[int, list[Op]] = {}
        for op in self.program.recorder.block.ops:
            for v in op.inputs:
                users.setdefault(id(v), []).append(op)
        found = [
            v
            for v in self.program.all_parameters()
            if v.dtype == "float32"
            and id(v) not in self.program.recorder.versions
            and id(v) in users
            and all(self._computes_low(op) for op in users[id(v)])
        ]
        held = {id(v): t for t, v in self.program.recorder.tensors.values()}
        for v in found:
            v.dtype = type_name(self.precision.dtype)
            if not isinstance(v, ParameterVariable):
                held[id(v)].convert_(self.precision.dtype)
        return found

    def _computes_low(self, op: Op) -> bool:
        name = op.name.rpartition(".")[2]
        if op.role or self._stays(op) or "norm" in name:
            return False
        rule = self._rule(op)
        return computing_dtype(rule, name, ["float32"]) == self.precision.dtype

    def _stays(self, op: Op) -> bool:
        """Whether the statement keeps the types that it was recorded with."""
        return bool(
            op.role
            or op.blocks
            or id(op) in self.differentiated
            or DYNAMIC in op.attributes
            or BACKWARD in op.attributes
            or any(getattr(v, "is_array", False) for v in (*op.inputs, *op.outputs))
        )

    def _rule(self, op: Op) -> Precision:
        own = op.attributes.get(PRECISION)
        if own is not None and own is not GUARD:
            return own  # type: ignore[no-any-return]
        if self.only_guarded and own is None:
            return FULL
        return FULL if any(v.name in self.full_names for v in (*op.inputs, *op.outputs)) else self.precision

    def block(self, recorder: Recorder, block: Block) -> None:
        """Lower the statements of a block of the recorder's."""
        ops, recorder.block.ops = list(block.ops), []
        for op in ops:
            if self._stays(op):
                op.inputs = tuple(self._as(recorder, v, self.declared.get(id(v), v.dtype)) for v in op.inputs)
                if op.name in ("cond", "while"):
                    op.blocks = tuple(self._nested(recorder, inner) for inner in op.blocks)
            elif op.outputs and op.inputs:
                self._retype(recorder, op)
            recorder.block.ops.append(op)

    def _as(self, recorder: Recorder, variable: Any, dtype: str) -> Any:
        """The Variable in this dtype."""
        if variable.dtype == dtype:
            return variable
        return recorder._append(OPERATORS["cast"].ir_name, (variable,), {"dtype": str(dtype)})[0].outputs[0]

    def _retype(self, recorder: Recorder, op: Op) -> None:
        inputs: Any = op.inputs
        for rule in (self._rule(op), FULL):
            op.attributes = op.attributes | {PRECISION: rule}
            types = [dtype for dtype, _, _ in recorder._types(op.name, inputs, op.attributes)[0]]
            if all(dtype == v.dtype for dtype, v in zip(types, op.outputs, strict=True) if id(v) in self.kept):
                break
        for dtype, v in zip(types, op.outputs, strict=True):
            if dtype != v.dtype:
                self.declared[id(v)] = v.dtype
                v.dtype = type_name(dtype)

    def _nested(self, recorder: Recorder, block: Block) -> Block:
        """A lowered copy of a closed block, whose arguments and results keep their types."""
        inner = Recorder("lowered", recorder)
        known: dict[int, Any] = {}
        for v in block.arguments:
            known[id(v)] = inner.adopt(v.like())  # type: ignore[attr-defined]
            inner.block.arguments.append(known[id(v)])
        for op in block.ops:
            copied = copy_recorded(op, tuple(known[id(v)] for v in op.inputs))
            for old, new in zip(op.outputs, copied.outputs, strict=True):
                known[id(old)] = inner.adopt(new)  # type: ignore[arg-type]
            inner.block.ops.append(copied)
        self.block(inner, inner.block)
        inner.block.results = tuple(self._as(inner, known[id(v)], v.dtype) for v in block.results)
        return inner.block
