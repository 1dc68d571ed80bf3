"""``paddle.static.amp``: Programs in mixed precision."""

from __future__ import annotations

from ...amp.program_casts import cast_model_to_fp16, cast_parameters_to_fp16
from ...amp.program_lists import AutoMixedPrecisionLists, CustomOpLists
from ...amp.program_optimizer import decorate
from ...tensor.lower_precision import guarded as fp16_guard
from . import bf16, debugging

__all__ = [
    "AutoMixedPrecisionLists",
    "CustomOpLists",
    "bf16",
    "cast_model_to_fp16",
    "cast_parameters_to_fp16",
    "debugging",
    "decorate",
    "fp16_guard",
]
