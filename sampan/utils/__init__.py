"""Helpers for programs and libraries: deprecation, requirements, an installation check, unique names, DLPack."""

from __future__ import annotations

import functools
import importlib
import re
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from .. import tensor
from ..base.errors import ArgumentTypeError, SampanError, message
from ..version import full_version
from . import dlpack, unique_name

F = TypeVar("F", bound=Callable[..., Any])


def deprecated(update_to: str = "", since: str = "", reason: str = "", level: int = 0) -> Callable[[F], F]:
    """A decorator that warns when the function is called.

    Args:
        update_to: what to use in its place.
        since: the version from which on it is deprecated.
        reason: why.
        level: 0 or 1 warn; 2 raises RuntimeError.
    """

    def decorate(function: F) -> F:
        text = f"{function.__module__}.{function.__name__} is deprecated"
        text += f" since {since}" if since else ""
        text += f"; use {update_to}" if update_to else ""
        text += f"\n  {reason}" if reason else ""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if level >= 2:
                raise RuntimeError(text)
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def try_import(module_name: str, err_msg: str | None = None) -> ModuleType:
    """The module; an ImportError that says what to install where it is missing."""
    try:
        return importlib.import_module(module_name)
    except ImportError:
        text = message(f"{module_name} could not be imported", "", f"install it, usually with: pip install {module_name}")
        raise ImportError(err_msg or text) from None


def _numbers(name: str, version: str) -> tuple[int, ...]:
    if not isinstance(version, str):
        raise ArgumentTypeError(message(f"require_version(): {name} is a {type(version).__name__}", "it must be a string"))
    if not re.fullmatch(r"\d+(\.\d+){0,3}", version):
        raise ValueError(message(f"require_version(): {name}={version!r}", "it must look like 1.2.3"))
    found = [int(n) for n in version.split(".")]
    return tuple(found + [0] * (4 - len(found)))


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Raise SampanError unless the version lies between the two, both included."""
    lowest = _numbers("min_version", min_version)
    highest = None if max_version is None else _numbers("max_version", max_version)
    own = _numbers("version", full_version)
    if own < lowest or (highest is not None and own > highest):
        wanted = f"at least {min_version}" + (f" and at most {max_version}" if max_version else "")
        raise SampanError(message(f"sampan {full_version} is installed", f"this program needs {wanted}"))


def run_check() -> None:
    """Multiply and differentiate small tensors, compare with NumPy, and print whether sampan works here."""
    x = tensor.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
    y = x * x + x
    y.sum().backward()
    if not np.array_equal(y.numpy(), x.numpy() ** 2 + x.numpy()) or not np.array_equal(x.grad.numpy(), 2 * x.numpy() + 1):
        raise SampanError(
            message("sampan computes wrong results on this machine", "", "run `sampan info` and report what it prints")
        )
    print("sampan is installed and computes rightly on 1 CPU.")


__all__ = ["deprecated", "dlpack", "require_version", "run_check", "try_import", "unique_name"]
