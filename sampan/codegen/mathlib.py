"""Every scalar primitive of the loop IR, as LLVM instructions over vectors of any width.

OPS is the list. Float primitives work on float32 and float64 registers (float16 and bfloat16 are computed in float32).
"""

from __future__ import annotations

from sampan.codegen import (
    mathlib_basic,
    mathlib_complex,
    mathlib_exponential,
    mathlib_integer,
    mathlib_random,
    mathlib_special,
    mathlib_trigonometric,
)
from sampan.codegen.scalar_ops import OPS, ScalarOp, find_op, result_dtype

FAMILIES = (
    mathlib_basic,
    mathlib_integer,
    mathlib_exponential,
    mathlib_trigonometric,
    mathlib_special,
    mathlib_complex,
    mathlib_random,
)

__all__ = ["FAMILIES", "OPS", "ScalarOp", "find_op", "result_dtype"]
