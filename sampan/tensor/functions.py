"""Public functions about tensors and their settings that are no operators."""

from __future__ import annotations

from typing import Any

from .. import _rt
from ..base import dtypes
from ..base.places import CPU, Place, parse_place
from ..ir.program import Value
from ..ops.arguments import dtype_name as _dtype_name
from .autograd import enable_grad, grad, is_grad_enabled, no_grad, set_grad_enabled
from .dispatch import refresh_context

__all__ = [
    "dtype_name", "enable_grad", "get_default_dtype", "get_device", "grad", "is_complex", "is_floating_point", "is_grad_enabled", "is_integer",
    "is_tensor", "no_grad", "set_default_dtype", "set_device", "set_grad_enabled",
]  # fmt: skip

Tensor = _rt.Tensor


def dtype_name(name: str, dtype: Any) -> str:
    """The name of a dtype argument of the function ``name``."""
    return _dtype_name(name, dtype)


def set_default_dtype(d: Any) -> None:
    """Set the floating dtype of new tensors: float16, bfloat16, float32 or float64."""
    dtypes.set_default_float(_dtype_name("set_default_dtype", d))
    refresh_context()


def get_default_dtype() -> str:
    """The floating dtype of new tensors, as a string."""
    return dtypes.default_float()


def is_tensor(x: Any) -> bool:
    """Whether x is a Tensor, or a symbolic Value of a Program."""
    return isinstance(x, (Tensor, Value))


def _name_of(x: Any) -> str:
    return getattr(x.dtype, "name", x.dtype)


def is_floating_point(x: Tensor) -> bool:
    """Whether the tensor's dtype is floating."""
    return dtypes.is_floating(_name_of(x))


def is_complex(x: Tensor) -> bool:
    """Whether the tensor's dtype is complex."""
    return dtypes.is_complex(_name_of(x))


def is_integer(x: Tensor) -> bool:
    """Whether the tensor's dtype is an integer type."""
    return dtypes.is_integer(_name_of(x))


def set_device(device: Any) -> Place:
    """Set where new tensors live; this build has the CPU."""
    return parse_place("set_device", device)


def get_device() -> str:
    """The device of new tensors."""
    return CPU.kind
