"""``paddle.static.amp.bf16``: Programs in bfloat16, which has float32's range and needs no scaling of the loss."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ...amp.program_casts import cast_parameters_to_fp16, lower, lower_first_values
from ...amp.program_lists import AutoMixedPrecisionListsBF16
from ...amp.program_optimizer import OptimizerWithMixedPrecision, decorate
from ...framework.arrays import bits
from ...tensor import to_tensor
from ...tensor.lower_precision import guarded as bf16_guard
from ...tensor.program import Program, running_at_once
from ...tensor.scope import Scope

__all__ = [
    "AutoMixedPrecisionListsBF16",
    "bf16_guard",
    "cast_model_to_bf16",
    "cast_parameters_to_bf16",
    "convert_float_to_uint16",
    "decorate_bf16",
    "rewrite_program_bf16",
]


def decorate_bf16(
    optimizer: Any, amp_lists: Any = None, use_pure_bf16: bool = False, use_bf16_guard: bool | None = None
) -> OptimizerWithMixedPrecision:
    """The optimizer for Programs in bfloat16, without scaling of the loss.

    Args:
        optimizer: an Optimizer.
        amp_lists: an AutoMixedPrecisionListsBF16.
        use_pure_bf16: O2: parameters are bfloat16 too.
        use_bf16_guard: only what was built inside ``bf16_guard()``; by default where ``use_pure_bf16`` holds.
    """
    return decorate(optimizer, amp_lists, use_pure_fp16=use_pure_bf16, use_fp16_guard=use_bf16_guard, use_bf16=True)


def rewrite_program_bf16(main_prog: Program, amp_lists: Any = None) -> None:
    """Let a Program without gradients compute what the lists say in bfloat16; parameters stay float32.

    Args:
        main_prog: a Program.
        amp_lists: an AutoMixedPrecisionListsBF16.
    """
    lower("rewrite_program_bf16", main_prog, amp_lists, "O1", "bfloat16", False)


def cast_model_to_bf16(
    program: Program, startup_prog: Program | None = None, amp_lists: Any = None, use_bf16_guard: bool = True
) -> set[str]:
    """Let a Program without gradients compute in bfloat16, parameters too; the names of the parameters that became bfloat16 Variables.

    Args:
        program: a Program.
        startup_prog: gives these parameters bfloat16 values from now on; without it ``cast_parameters_to_bf16`` does.
        amp_lists: an AutoMixedPrecisionListsBF16.
        use_bf16_guard: only what was built inside ``bf16_guard()``.
    """
    lowered = lower("cast_model_to_bf16", program, amp_lists, "O2", "bfloat16", use_bf16_guard)
    if startup_prog is not None:
        lower_first_values(startup_prog, lowered)
    return {v.name for v in lowered}


def cast_parameters_to_bf16(
    place: Any, program: Program, scope: Scope | None = None, to_bf16_var_names: Collection[str] | None = None
) -> None:
    """Give the Program's bfloat16 parameters bfloat16 values in the scope.

    Args:
        place: accepted for compatibility.
        program: a Program.
        scope: where the parameters are; the global scope by default.
        to_bf16_var_names: what ``cast_model_to_bf16`` gave; by default all parameters that are bfloat16 Variables.
    """
    cast_parameters_to_fp16(place, program, scope, to_bf16_var_names, "bfloat16")


def convert_float_to_uint16(in_list: Any) -> np.ndarray:
    """The numbers rounded to bfloat16, as the array of their bits.

    Example:
        >>> import sampan as paddle
        >>> paddle.static.amp.bf16.convert_float_to_uint16([1.0, 2.5])
        array([16256, 16416], dtype=uint16)
    """
    with running_at_once():
        return bits(to_tensor(np.asarray(in_list, "float32"), dtype="bfloat16").numpy_view())
