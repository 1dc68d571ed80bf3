"""Public functions about tensors and their settings that are no operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..base.limits import finfo, iinfo
from ..base.modes import in_dynamic_mode
from ..base.places import CPU, Place, parse_place
from ..ir.program import Value
from ..ops import primitives
from ..ops.arguments import dtype_name as _dtype_name
from .autograd import enable_grad, grad, is_grad_enabled, no_grad, set_grad_enabled
from .creation import share_array, to_tensor
from .dispatch import refresh_context
from .explained import explain
from .program import disable_static, enable_static

__all__ = [
    "as_tensor", "asarray", "batch", "broadcast_shape", "broadcast_shapes", "check_shape", "create_tensor", "disable_signal_handler",
    "disable_static", "dtype_name", "e", "enable_grad", "enable_static", "finfo", "from_dlpack", "from_numpy", "get_default_dtype",
    "get_device", "grad", "iinfo", "in_dynamic_mode", "inf", "is_complex", "is_floating_point", "is_grad_enabled", "is_integer",
    "is_tensor", "nan", "newaxis", "no_grad", "pi", "set_default_dtype", "set_device", "set_grad_enabled", "to_dlpack", "tolist",
]  # fmt: skip

Tensor = _rt.Tensor
inf, nan, pi, e, newaxis = math.inf, math.nan, math.pi, math.e, None


def dtype_name(name: str, dtype: Any) -> str:
    """The name of a dtype argument of the function ``name``."""
    return _dtype_name(name, dtype)


def dtype_named(name: str) -> Any:
    """The dtype object of this name."""
    return _rt.dtypes[name]


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


def _name_of(function: str, x: Any) -> str:
    if not is_tensor(x):
        raise ArgumentTypeError(message(f"{function}(): x is a {type(x).__name__}", "it must be a Tensor"))
    return getattr(x.dtype, "name", x.dtype)


def is_floating_point(x: Tensor) -> bool:
    """Whether the tensor's dtype is floating."""
    return dtypes.is_floating(_name_of("is_floating_point", x))


def is_complex(x: Tensor) -> bool:
    """Whether the tensor's dtype is complex."""
    return dtypes.is_complex(_name_of("is_complex", x))


def is_integer(x: Tensor) -> bool:
    """Whether the tensor's dtype is an integer type."""
    return dtypes.is_integer(_name_of("is_integer", x))


def tolist(x: Tensor) -> Any:
    """The elements as nested lists of Python numbers; a number for a 0-D tensor."""
    _name_of("tolist", x)
    return x.tolist()


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A new tensor with a copy of the data; what calling the module ``sampan.tensor`` gives.

    Args:
        data: a number, nested lists of numbers, an array or a tensor.
        dtype: of the result; by default the data's.
        device: the CPU.
        requires_grad: whether gradients flow to the result.
        pin_memory: accepted for compatibility: memory of the CPU needs no pinning for the CPU.

    Example:
        >>> import sampan as paddle
        >>> paddle.tensor([1, 2]).tolist()
        [1, 2]
    """
    return to_tensor(data, dtype, device, not requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A tensor of the data: the data itself where it is a tensor of that dtype already, else a copy.

    Args:
        data: a number, nested lists of numbers, an array or a tensor.
        dtype: of the result; by default the data's.
        device: the CPU.
        requires_grad: whether gradients flow to the result.
        pin_memory: accepted for compatibility.

    Example:
        >>> import sampan as paddle
        >>> paddle.as_tensor([1, 2]).tolist()
        [1, 2]
    """
    parse_place("as_tensor", device)
    if isinstance(data, Tensor) and (dtype is None or _dtype_name("as_tensor", dtype) == data.dtype.name):
        made = data
    else:
        made = to_tensor(data, dtype)
    if requires_grad:
        made.stop_gradient = False
    return made


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:  # fmt: skip
    """A tensor of ``obj``: a tensor, a NumPy array, another library's tensor, or nested lists of numbers.

    Args:
        obj: the data.
        dtype: of the result; by default the data's.
        device: the CPU.
        copy: True: always copy. None: share memory where that is possible. False: share, or raise ArgumentError.
        requires_grad: whether gradients flow to the result.
    """
    parse_place("asarray", device)
    name = None if dtype is None else _dtype_name("asarray", dtype)
    shared = None if copy else _shared(obj)
    if shared is not None and name in (None, shared.dtype.name):
        result = shared
    elif copy is False:
        raise ArgumentError(message("asarray(): the data cannot be shared", "copy=False forbids a copy"))
    else:
        result = to_tensor(obj, name)
    if requires_grad:
        result.stop_gradient = False
    return result


def _shared(data: Any) -> Tensor | None:
    if isinstance(data, Tensor):
        return data
    if isinstance(data, np.ndarray):
        return share_array(data) if data.dtype.name in _rt.dtypes and data.flags.writeable else None
    return from_dlpack(data) if hasattr(data, "__dlpack__") else None


def from_numpy(ndarray: np.ndarray[Any, Any]) -> Tensor:
    """A tensor over the array's own memory where it can be shared: a write to either is seen by both.

    Example:
        >>> import numpy, sampan as paddle
        >>> paddle.from_numpy(numpy.arange(3)).tolist()
        [0, 1, 2]
    """
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentTypeError(
            message(f"from_numpy(): got a {type(ndarray).__name__}", "it takes a NumPy array", "use to_tensor()")
        )
    return share_array(ndarray)


def to_dlpack(x: Tensor) -> Any:
    """A DLPack capsule over the tensor's memory, to be used once."""
    _name_of("to_dlpack", x)
    return x.__dlpack__()


def from_dlpack(dlpack: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's tensor.

    Args:
        dlpack: an object with ``__dlpack__``, or a DLPack capsule.
        device: the CPU.
        copy: True: copy the elements. False: never copy.
    """
    parse_place("from_dlpack", device)
    made = _rt.from_dlpack(dlpack)
    return _rt.copy(made) if copy else made


def create_tensor(dtype: Any, name: str | None = None, persistable: bool = False) -> Tensor:
    """An empty tensor of this dtype, to be assigned to."""
    made = _rt.empty([0], _dtype_name("create_tensor", dtype))
    made.persistable = bool(persistable)
    if name:
        made.name = name
    return made


def _sizes(function: str, shape: Any) -> tuple[int, ...]:
    if isinstance(shape, Tensor):
        shape = shape.tolist()
    if not isinstance(shape, (list, tuple)) or any(isinstance(n, bool) or not isinstance(n, int) for n in shape):
        raise ArgumentTypeError(message(f"{function}(): {shape!r} is no shape", "it must be a list or tuple of integers"))
    return tuple(shape)


def broadcast_shapes(*shapes: Sequence[int]) -> list[int]:
    """The shape that tensors of these shapes have together.

    Example:
        >>> import sampan as paddle
        >>> paddle.broadcast_shapes([2, 1, 3], [1, 3, 1])
        [2, 3, 3]
    """
    return list(primitives.broadcast_shapes(*(_sizes("broadcast_shapes", s) for s in shapes)))


def broadcast_shape(x_shape: Sequence[int], y_shape: Sequence[int]) -> list[int]:
    """The shape that two tensors of these shapes have together."""
    return broadcast_shapes(x_shape, y_shape)


def check_shape(
    shape: Any, op_name: str, expected_shape_type: Any = (list, tuple, Tensor), expected_element_type: Any = (int, Tensor),
    expected_tensor_dtype: Any = ("int32", "int64"),
) -> None:  # fmt: skip
    """Raise when ``shape`` is no shape: of another type, with another type of element, or a tensor of another dtype."""
    if not isinstance(shape, expected_shape_type):
        raise ArgumentTypeError(message(f"{op_name}(): shape is a {type(shape).__name__}", "it must be a list, tuple or tensor"))
    if isinstance(shape, Tensor):
        if shape.dtype.name not in expected_tensor_dtype:
            raise ArgumentTypeError(message(f"{op_name}(): shape is {shape.dtype.name}", f"it must be {expected_tensor_dtype}"))
        return
    for n in shape:
        if not isinstance(n, expected_element_type):
            raise ArgumentTypeError(message(f"{op_name}(): shape holds {n!r}", "it must hold integers"))
        if isinstance(n, int) and n < -1:
            raise ArgumentError(message(f"{op_name}(): shape holds {n}", "sizes are at least 0, or -1"))


def batch(reader: Callable[[], Any], batch_size: int, drop_last: bool = False) -> Callable[[], Iterator[list[Any]]]:
    """A reader of lists of ``batch_size`` of the reader's items.

    Example:
        >>> import sampan as paddle
        >>> list(paddle.batch(lambda: iter(range(5)), 2)())
        [[0, 1], [2, 3], [4]]
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
        raise ArgumentError(message(f"batch(): batch_size={batch_size!r}", "it must be a positive integer"))

    def read() -> Iterator[list[Any]]:
        items: list[Any] = []
        for item in reader():
            items.append(item)
            if len(items) == batch_size:
                yield items
                items = []
        if items and not drop_last:
            yield items

    return read


def disable_signal_handler() -> None:
    """Accepted for compatibility: sampan installs no signal handlers."""


def set_device(device: Any) -> Place:
    """Set where new tensors live; this build has the CPU."""
    return parse_place("set_device", device)


def get_device(input: Tensor | None = None) -> Any:
    """The device of new tensors; with a tensor, the number of its GPU, which is -1 for the CPU."""
    return CPU.kind if input is None else input.get_device()


explain(globals(), __all__)
