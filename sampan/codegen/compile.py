"""The compiler's one entry: a Program and the layouts of its inputs become a Plan."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..base import flags
from ..ir.program import Program
from ..passes.expand_definitions import expand_definitions
from ..passes.pipeline import run_passes
from ..passes.recompute import memory_target, within_memory
from .lower import lower

#: Plans that are made before the smallest one is taken, where none fits a budget of memory.
_MOST_TRIES = 6


def compile_program(
    program: Program,
    input_layouts: Sequence[Any],
    *,
    view_outputs: Mapping[int, int] | None = None,
    inplace: Mapping[int, int] | None = None,
    output_layouts: Mapping[int, Any] | None = None,
    shared_from: int | None = None,
) -> Any:
    """The Plan of a Program over inputs of these layouts (``_rt.Layout``).

    Args:
        program: over primitives and composites; its shapes are concrete.
        input_layouts: one for each input, with the input's dtype and shape; any strides.
        view_outputs: output -> the input it shares memory with, when its value is a view of that input that strides can express.
            Every other output is a fresh storage.
        inplace: output -> the input it is written into; dtype and shape are equal. The caller sees to it that such an input
            overlaps no other input. (A single one may be another input too, the very same elements in the same layout.)
        output_layouts: output -> the layout it must have.
        shared_from: outputs may be views, with repeated elements, of the inputs from this one on and of each other: gradients while they flow.
    """
    if flags.dumps("program"):
        print(f"# program\n{program}", file=sys.stderr)
    is_interpreted = bool(flags.INTERPRET.value)

    def plan_within(target_bytes: int | None) -> Any:
        with within_memory(target_bytes):
            ready = expand_definitions(program) if is_interpreted else run_passes(program)
        return lower(ready, input_layouts, view_outputs or {}, inplace or {}, output_layouts or {}, is_interpreted, shared_from)

    plan, budget = plan_within(None), memory_target()
    return (
        plan if budget is None or is_interpreted or plan.arena_bytes <= budget else _least_recomputed(plan, budget, plan_within)
    )


def _least_recomputed(plan: Any, budget_bytes: int, plan_within: Callable[[int], Any]) -> Any:
    """A Plan whose temporaries fit the budget, or the smallest that was found.

    What waits in a Program is less than what its Plan allocates, so the target of the pass goes down until the Plan fits.
    """
    best, target = plan, max(budget_bytes, plan.arena_bytes * 0.6)
    for _ in range(_MOST_TRIES):
        found = plan_within(int(target))
        if found.arena_bytes < best.arena_bytes:
            best = found
        if best.arena_bytes <= budget_bytes:
            break
        target *= max(0.5, min(0.8, budget_bytes / found.arena_bytes))
    return best
