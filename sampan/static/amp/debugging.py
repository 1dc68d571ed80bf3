"""``paddle.static.amp.debugging``: which statements of a Program compute in which precision."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...amp.debugging import print_operator_table
from ...base.errors import ArgumentTypeError, message
from ...tensor.program import Program, default_main_program

__all__ = ["collect_operator_stats"]


def collect_operator_stats(program: Any = None, print_subblocks: bool = False) -> None:
    """Print how many of a Program's statements there are of each kind, by the dtype of their results.

    Args:
        program: a Program or a list of them; the default main Program when None.
        print_subblocks: a table for each block, after that of all together.

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main = paddle.static.Program()
        >>> with paddle.static.program_guard(main):
        ...     y = paddle.static.data("x", [2, 2]) * 2
        >>> paddle.static.amp.debugging.collect_operator_stats(main)  # doctest: +ELLIPSIS
        <--... op list ...
        >>> paddle.disable_static()
    """
    given = [default_main_program()] if program is None else list(program) if isinstance(program, (list, tuple)) else [program]
    for chosen in given:
        if not isinstance(chosen, Program):
            raise ArgumentTypeError(
                message(
                    f"collect_operator_stats(): program is a {type(chosen).__name__}", "it must be a Program or a list of them"
                )
            )
        tables = [
            Counter((op.type.removeprefix("op."), str(op.outputs[0].dtype) if op.outputs else "") for op in block.ops)
            for block in chosen.blocks
        ]
        print_operator_table(sum(tables, Counter()))
        if print_subblocks:
            for table in tables:
                print_operator_table(table)
