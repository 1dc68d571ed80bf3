"""Which Ops of a Program run in one kernel or native call, for pictures: the compiler's decisions without their code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .. import _rt
from ..ir.program import Op, Program, Value
from .epilogues import Epilogue, Work
from .lower import Lowering
from .lower_kernels import describe_trace
from .natives import native_of
from .places import row_major


@dataclass(frozen=True)
class Kernel:
    """What runs as one. ``label``: its name in profiles, as far as it is known before the Plan is written."""

    label: str
    ops: tuple[Op, ...]


def kernels_of(program: Program) -> list[Kernel]:
    """The kernels of a Program of primitives, in the order in which they run, for inputs without gaps."""
    layouts = [_rt.Layout(v.dtype, v.shape, row_major(v.shape)) for v in program.inputs]
    return [kernel for work in Lowering(program, layouts, False).plan_work() for kernel in _kernels(work)]


def _kernels(work: Work) -> Iterator[Kernel]:
    op = work.op
    if op is not None and op.inputs:
        native = native_of(op)
        label = f"native {native.name}" if native is not None else op.name
        yield Kernel(label, (op, *(_finishing(op, work.epilogue) if work.epilogue is not None else ())))
    for trace in work.traces:
        yield Kernel(f"kernel {describe_trace(trace)}", tuple(trace.group.ops))


def _finishing(op: Op, epilogue: Epilogue) -> Sequence[Op]:
    """The Ops between the native's result and the value that its epilogue gives."""
    stops = {id(v) for v in op.outputs} | {id(leaf.value) for leaf in epilogue.operands}
    found: list[Op] = []
    waiting: list[Value] = [epilogue.value]
    while waiting:
        value = waiting.pop()
        if id(value) in stops or value.op is None:
            continue
        stops.add(id(value))
        found.append(value.op)
        waiting += value.op.inputs
    return found[::-1]
