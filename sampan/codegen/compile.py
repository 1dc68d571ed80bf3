"""The compiler's one entry: a Program and the layouts of its inputs become a Plan."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ..base import flags
from ..ir.program import Program
from ..passes.expand_definitions import expand_definitions
from ..passes.pipeline import run_passes
from .lower import lower


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
    ready = expand_definitions(program) if is_interpreted else run_passes(program)
    return lower(ready, input_layouts, view_outputs or {}, inplace or {}, output_layouts or {}, is_interpreted, shared_from)
