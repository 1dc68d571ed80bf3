"""``paddle.jit``: eager code as Programs."""

from __future__ import annotations

from .api import ignore_module, not_to_static, to_static
from .saving import load, save
from .settings import enable_to_static, set_code_level, set_verbosity
from .static_function import StaticFunction
from .train_step import TrainStep
from .translated_layer import TranslatedLayer

__all__ = [
    "StaticFunction",
    "TrainStep",
    "TranslatedLayer",
    "enable_to_static",
    "ignore_module",
    "load",
    "not_to_static",
    "save",
    "set_code_level",
    "set_verbosity",
    "to_static",
]
