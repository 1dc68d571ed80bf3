"""Mixed precision at tracing: operands of an operator are cast inside its own Program, so that the casts fuse into its kernels and have gradients."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from ..base import dtypes
from ..ir.program import Value
from ..ops import primitives as p
from ..ops.define import OpDef
from .dispatch import set_operand_rule
from .expander import RULES


@dataclass(frozen=True)
class Precision:
    """O1: operators of ``white`` compute in ``dtype``, those of ``black`` in float32, others in the widest type of their operands.

    O2: all but those of ``black`` compute in ``dtype``. OD: those of ``white`` compute in ``dtype``, all others in float32.
    """

    level: str
    dtype: str
    white: frozenset[str]
    black: frozenset[str]


_state = threading.local()


def current_precision() -> Precision | None:
    """What this thread computes under; None: full precision."""
    return getattr(_state, "precision", None)


def set_precision(precision: Precision | None) -> None:
    """Compute under this from now on, in this thread."""
    _state.precision = precision
    set_operand_rule(
        precision, None if precision is None else lambda definition, values: _cast_operands(precision, definition, values)
    )


def register_precision(precision: Precision) -> Precision:
    """Let recorded Programs compute under this; gives it."""
    RULES[precision] = lambda definition, values: _cast_operands(precision, definition, values)
    return precision


def _cast_operands(precision: Precision, definition: OpDef, values: list[Value]) -> Sequence[Value]:
    types = operand_dtypes(precision, definition, values)
    return [v if dtype is None else p.cast(v, dtype) for v, dtype in zip(values, types, strict=True)]


def operand_dtypes(precision: Precision, definition: OpDef, values: Sequence[Value]) -> list[str | None]:
    """What an operator's operands are cast to; None for those that stay as they are."""
    floating = [v for v in values if dtypes.is_floating(v.dtype) and not v.weak]
    target = None
    if floating and definition.name != "cast" and not definition.updates:
        target = computing_dtype(precision, definition.name, [v.dtype for v in floating])
    return [target if dtypes.is_floating(v.dtype) and v.dtype != "float64" and not v.weak else None for v in values]


def computing_dtype(precision: Precision, name: str, types: list[str]) -> str | None:
    """The floating dtype that an operator's operands of these types are cast to; None: they stay as they are."""
    if name in precision.black:
        return "float32"
    if name in precision.white or precision.level == "O2":
        return precision.dtype
    if precision.level == "OD":
        return "float32"
    return "float32" if "float32" in types and any(t in ("float16", "bfloat16") for t in types) else None
