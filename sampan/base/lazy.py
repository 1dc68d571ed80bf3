"""Libraries that are slow to import and seldom needed: imported when one of their functions is first called."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


class LazyModule:
    """Stands for a module of functions: ``module.name`` is a function that imports the module when called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(importlib.import_module(self._name), attribute)(*args, **kwargs)

        call.__name__ = attribute
        return call


scipy_special = LazyModule("scipy.special")
scipy_linalg = LazyModule("scipy.linalg")
scipy_fft = LazyModule("scipy.fft")
