"""``paddle.jit``: eager code as Programs."""

from __future__ import annotations

from .api import ignore_module, not_to_static, to_static
from .settings import enable_to_static, set_code_level, set_verbosity
from .static_function import StaticFunction
from .train_step import TrainStep

__all__ = [
    "StaticFunction",
    "TrainStep",
    "enable_to_static",
    "ignore_module",
    "not_to_static",
    "set_code_level",
    "set_verbosity",
    "to_static",
]
