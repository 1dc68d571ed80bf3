"""The pipeline: THE list of passes that every Program takes on its way to a Plan, in order, each with why it stands there."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from ..base import flags
from ..ir.program import Program
from ..ir.verify import verify
from ..ops.catalog import TABLE
from .drop_dead import drop_dead
from .expand_definitions import expand_definitions
from .expand_picks import expand_picks
from .fold_constants import fold_constants
from .fold_literals import fold_literals
from .fold_scales import fold_scales
from .merge_common import merge_common
from .narrow_broadcasts import narrow_broadcasts
from .recompute import recompute
from .simplify_algebra import simplify_algebra

Pass = Callable[[Program], Program]

PIPELINE: tuple[tuple[Pass, str], ...] = (
    (expand_definitions, "everything below knows primitives only"),
    (fold_constants, "numbers that definitions compute from their attributes become constants"),
    (simplify_algebra, "constants show which arithmetic changes nothing; chains of views become one"),
    (narrow_broadcasts, "what is the same for many elements is computed once; after chains of broadcasts became one"),
    (fold_scales, "batch norm in evaluation becomes the bias of the convolution before it; after factors of channels became one"),
    (fold_literals, "what frozen weights give is known; after factors went into them"),
    (expand_picks, "one element of every row, in the row's own kernel; once constants show what is zero"),
    (merge_common, "forward and backward compute the same things; after simplifying, which makes Ops equal"),
    (drop_dead, "what the passes before have replaced, and gradients that nobody asked for"),
    (recompute, "values that memory does not hold until their gradients; last, since equal Ops would be merged again"),
)


_thread = threading.local()


@contextmanager
def skipping(names: Collection[str]) -> Iterator[None]:
    """What this thread compiles inside the ``with`` block leaves these passes out; expanding definitions cannot be."""
    old: frozenset[str] = getattr(_thread, "skipped", frozenset())
    _thread.skipped = old | frozenset(names) - {expand_definitions.__name__}
    try:
        yield
    finally:
        _thread.skipped = old


def run_passes(program: Program, skip: Collection[str] = ()) -> Program:
    """The Program after every pass that is not named in ``skip``; the given one is not changed."""
    should_verify, should_print = bool(flags.VERIFY.value), flags.dumps("passes")
    left_out = frozenset(skip) | getattr(_thread, "skipped", frozenset())
    for function, _ in PIPELINE:
        if function.__name__ in left_out:
            continue
        after = function(program)
        if should_verify and after is not program:
            verify(after, TABLE)
        if should_print and after is not program:
            print(f"# after {function.__name__}\n{after}", file=sys.stderr)
        program = after
    return program
