"""Tensors in another dtype, on another device, or as Python and NumPy values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes
from ..base.errors import ArgumentTypeError, describe, message
from ..base.places import Place, missing_device, parse_place
from ..ops.arguments import dtype_name
from .build import OPS, attach
from .creation import to_tensor
from .explained import explained

Tensor = _rt.Tensor

#: Public names of dtypes beside their own.
DTYPE_ALIASES = {"half": "float16", "float": "float32", "double": "float64", "cfloat": "complex64", "cdouble": "complex128"}
#: Methods that convert to a dtype: ``x.half()`` and ``x.float16()`` alike.
DTYPE_METHODS = {
    **DTYPE_ALIASES, "short": "int16", "int": "int32", "long": "int64", "char": "int8", "byte": "uint8",
    **{name: name for name in _rt.dtypes},
}  # fmt: skip

_DEVICE_KINDS = ("cpu", "gpu", "cuda", "xpu", "npu", "gpu_pinned")


def numpy(self: Tensor) -> np.ndarray[Any, Any]:
    """The elements as a new NumPy array; bfloat16 as the uint16 bits, as NumPy has no such type."""
    array = self.numpy_view()
    return array.view(np.uint16).copy() if self.dtype.name == "bfloat16" else array.copy()


def cpu(self: Tensor) -> Tensor:
    """The tensor in the CPU's memory: itself, in this build."""
    return self


def cuda(self: Tensor, device_id: int | None = None, blocking: bool = True) -> Tensor:
    """The tensor on a GPU. Raises UnsupportedError in this build."""
    raise missing_device("CUDA")


def pin_memory(self: Tensor, blocking: bool = True) -> Tensor:
    """The tensor in memory pinned for a GPU. Raises UnsupportedError in this build."""
    raise missing_device("CUDA")


def _is_device(value: Any) -> bool:
    return isinstance(value, Place) or (isinstance(value, str) and value.split(":")[0] in _DEVICE_KINDS)


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor on another device or in another dtype: ``to(device)``, ``to(dtype)``, ``to(other)``, ``to(device, dtype)``."""
    device, dtype, other = kwargs.pop("device", None), kwargs.pop("dtype", None), kwargs.pop("other", None)
    for accepted in ("blocking", "non_blocking", "copy"):
        kwargs.pop(accepted, None)
    if kwargs:
        raise ArgumentTypeError(f"to() got unknown arguments {sorted(kwargs)}; it takes device, dtype, blocking and other")
    if len(args) > 3:
        raise ArgumentTypeError(f"to() takes at most 3 positional arguments, got {len(args)}")
    for a in args:
        if isinstance(a, Tensor):
            other = a
        elif _is_device(a):
            device = a
        elif not isinstance(a, bool) and a is not None:
            dtype = a
    if device is not None:
        parse_place("to", device)
    if other is not None:
        if not isinstance(other, Tensor):
            raise ArgumentTypeError(message(f"to(): other is a {type(other).__name__}", "it must be a Tensor"))
        dtype = other.dtype
    return self if dtype is None else _converted(self, dtype_name("to", dtype))


def type_as(self: Any, other: Any) -> Any:
    """The tensor in the dtype of ``other``."""
    if getattr(other, "dtype", None) is None:
        raise ArgumentTypeError(message(f"type_as(): other is a {type(other).__name__}", "it must be a Tensor"))
    return _converted(self, getattr(other.dtype, "name", other.dtype))


def _converted(x: Any, name: str) -> Any:
    return x if getattr(x.dtype, "name", x.dtype) == name else OPS["cast"](x, name)


def _dtype_method(method: str, name: str) -> Callable[[Any], Any]:
    def convert(self: Any) -> Any:
        return _converted(self, name)

    convert.__name__ = convert.__qualname__ = method
    convert.__doc__ = f"The tensor in {name}: itself when it is so already."
    return convert


def _from_data(
    value: Any, place: Any = None, persistable: bool = False, zero_copy: bool = False, name: str = "", stop_gradient: bool = True
) -> Tensor:
    """``Tensor(value)``: a new tensor with a copy of an array, in its dtype, or of a list of numbers, in the default floating dtype.

    Args:
        value: the data.
        place: the CPU.
        persistable: of the tensor.
        zero_copy: accepted for compatibility.
        name: of the tensor; made by default.
        stop_gradient: whether no gradient flows to it.
    """
    if not isinstance(value, (np.ndarray, list, tuple, Tensor)):
        raise ArgumentTypeError(
            message(f"Tensor(): value is {describe(value)}", "it must be a Tensor, an array or a list", "use to_tensor()")
        )
    dtype = dtypes.default_float() if isinstance(value, (list, tuple)) else None
    made = to_tensor(value, dtype, place, stop_gradient)
    made.persistable = bool(persistable)
    if name:
        made.name = name
    return made


def install_conversions() -> None:
    """Attach the conversions to Tensor, and those of the dtype to symbolic Values."""
    for function in (numpy, cpu, cuda, pin_memory, to):
        setattr(Tensor, function.__name__, explained(function))
    setattr(Tensor, "_from_data", staticmethod(_from_data))  # noqa: B010 (what the type's own constructor calls)
    attach("type_as", type_as)
    for method, name in DTYPE_METHODS.items():
        attach(method, _dtype_method(method, name))
