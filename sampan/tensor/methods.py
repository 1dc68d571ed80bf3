"""What a Tensor has beside its operators: conversions, properties, Python's protocols."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _rt
from ..base import names
from ..base.dtypes import numpy_dtype
from ..base.errors import ArgumentTypeError, AutogradError, ShapeError, message
from ..base.places import CPU, Place, parse_place
from ..ir.program import Value
from ..ops.arguments import dtype_name
from .build import OPS, attach
from .creation import to_array, to_tensor
from .printing import format_tensor
from .subscript import Subscripts

Tensor = _rt.Tensor
_sizes = Tensor.shape


class Size(list):  # type: ignore[type-arg]
    """A shape: a list of sizes that prints as ``paddle.Size([2, 3])``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"paddle.Size({list(self)})"

    __str__ = __repr__

    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        return Size(item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Size:
        return Size([*self, *other])

    def __radd__(self, other: Any) -> Size:
        return Size([*other, *self])

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def numel(self) -> int:
        """The number of elements."""
        count = 1
        for n in self:
            count *= n
        return count


def numpy(self: Tensor) -> np.ndarray[Any, Any]:
    """The elements as a new NumPy array; bfloat16 as the uint16 bits, as NumPy has no such type."""
    array = self.numpy_view()
    return array.view(np.uint16).copy() if self.dtype.name == "bfloat16" else array.copy()


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    array = self.numpy_view()
    return array.astype(dtype) if dtype is not None else array.copy() if copy or copy is None else array


def __repr__(self: Tensor) -> str:
    return format_tensor(self)


def __format__(self: Tensor, spec: str) -> str:
    return format(self.item(), spec) if self.size == 1 and self.ndim == 0 else format(str(self), spec)


def __bool__(self: Tensor) -> bool:
    if self.size != 1:
        raise ShapeError(
            message(
                f"a tensor of shape {list(self.shape)} has no single truth value",
                "only a tensor of one element has",
                "use .any() or .all()",
            )
        )
    return bool(self.item())


def _scalar(self: Tensor, what: str) -> Any:
    if self.size != 1:
        raise ArgumentTypeError(
            message(f"a tensor of shape {list(self.shape)} cannot become {what}", "only a tensor of one element can")
        )
    return self.item()


def __int__(self: Tensor) -> int:
    return int(_scalar(self, "an int"))


def __float__(self: Tensor) -> float:
    return float(_scalar(self, "a float"))


def __complex__(self: Tensor) -> complex:
    return complex(_scalar(self, "a complex number"))


def __index__(self: Tensor) -> int:
    value = _scalar(self, "an index")
    if not isinstance(value, int):
        raise ArgumentTypeError(
            message(f"a {self.dtype.name} tensor cannot be an index", "only an integer tensor of one element can")
        )
    return int(value)


def __len__(self: Tensor) -> int:
    if self.ndim == 0:
        raise ArgumentTypeError("a 0-D tensor has no length")
    return int(self.shape[0])


def __iter__(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 0:
        raise ArgumentTypeError("a 0-D tensor cannot be iterated")
    return iter([self[k] for k in range(self.shape[0])])


def __contains__(self: Tensor, item: Any) -> bool:
    return bool((self == item).any())


def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if not self.is_leaf:
        raise AutogradError(
            message(
                "only a leaf tensor can be deep-copied",
                "this one is the result of a recorded operator",
                "use .detach() or .clone() first",
            )
        )
    data = _rt.copy(self)
    result = data
    if type(self) is not Tensor:
        result = type(self).__new__(type(self), data)
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    result.stop_gradient = self.stop_gradient
    result.persistable = self.persistable
    result.name = names.generate(f"{self.name}_deepcopy") if self.name else ""
    memo[id(self)] = result
    return result


def __reduce__(self: Tensor) -> Any:
    return _rebuild, (type(self), self.numpy(), self.dtype.name, self.stop_gradient, self.name, dict(self.__dict__))


def _rebuild(
    kind: type, array: np.ndarray[Any, Any], dtype: str, stop_gradient: bool, name: str, attributes: dict[str, Any]
) -> Tensor:
    data = _rt.from_numpy(array.view(numpy_dtype(dtype)) if dtype == "bfloat16" else array, True)
    result = data if kind is Tensor else kind.__new__(kind, data)
    result.__dict__.update(attributes)
    result.stop_gradient = stop_gradient
    result.name = name
    return result


def astype(self: Tensor, dtype: Any) -> Tensor:
    """The tensor in another dtype."""
    return OPS["cast"](self, dtype_name("astype", dtype))


def cpu(self: Tensor) -> Tensor:
    """The tensor in the CPU's memory: itself, in this build."""
    return self


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor on another device or in another dtype: ``to(device)``, ``to(dtype)``, ``to(other)``, ``to(device, dtype)``."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    kwargs.pop("blocking", None)
    other = kwargs.pop("other", None)
    if kwargs:
        raise ArgumentTypeError(f"to() got unknown arguments {sorted(kwargs)}; it takes device, dtype, blocking and other")
    for a in args:
        if isinstance(a, Tensor):
            other = a
        elif isinstance(a, bool) or a is None:
            continue
        elif isinstance(a, Place) or (
            isinstance(a, str) and a.split(":")[0] in ("cpu", "gpu", "cuda", "xpu", "npu", "gpu_pinned")
        ):
            device = a
        else:
            dtype = a
    if device is not None:
        parse_place("to", device)
    if other is not None:
        dtype = other.dtype
    return self if dtype is None or dtype_name("to", dtype) == self.dtype.name else astype(self, dtype)


def set_value(self: Tensor, value: Any) -> None:
    """Overwrite the elements by those of an array or tensor of equal shape, outside of any gradient."""
    if isinstance(value, Tensor):
        source = value.detach()
    else:
        array = np.asarray(value)
        source = _rt.from_numpy(to_array(array, self.dtype.name), True)
    if list(source.shape) != list(self.shape):
        raise ShapeError(
            message(
                f"set_value(): the value has shape {list(source.shape)} and the tensor {list(self.shape)}", "they must be equal"
            )
        )
    _rt.copy_into(self, source)


def copy_(self: Tensor, other: Tensor, blocking: bool = True) -> Tensor:
    """Overwrite the elements by those of another tensor, broadcast to this one's shape; gives this tensor."""
    source = other if isinstance(other, Tensor) else to_tensor(other)
    with _NoGrad():
        _rt.copy_into(
            self, OPS["broadcast_to"](source, list(self.shape)) if list(source.shape) != list(self.shape) else source.detach()
        )
    return self


class _NoGrad:
    def __enter__(self) -> None:
        self.was = _rt.grad_enabled()
        _rt.set_grad_enabled(False)

    def __exit__(self, *error: Any) -> None:
        _rt.set_grad_enabled(self.was)


def get_tensor(self: Tensor) -> Tensor:
    """The tensor itself."""
    return self


def ndimension(self: Tensor) -> int:
    """The number of axes."""
    return int(self.ndim)


def gradient(self: Tensor) -> np.ndarray[Any, Any] | None:
    """The gradient as a NumPy array, or None."""
    return None if self.grad is None else numpy(self.grad)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Say whether gradients flow to this tensor; gives the tensor."""
    self.stop_gradient = not requires_grad
    return self


def install(subscripts: Subscripts) -> None:
    """Attach everything to Tensor, and what makes sense to symbolic Values."""
    for function in (
        numpy, __array__, __repr__, __format__, __bool__, __int__, __float__, __complex__, __index__, __len__, __iter__, __contains__,
        __deepcopy__, __reduce__, cpu, to, set_value, copy_, get_tensor, ndimension, gradient, requires_grad_,
    ):  # fmt: skip
        setattr(Tensor, function.__name__, function)
    Tensor.__str__ = __repr__
    Tensor.__array_priority__ = 100
    Tensor.shape = property(lambda self: Size(_sizes.__get__(self)), doc="The sizes of its axes.")
    Tensor.place = property(lambda self: CPU, doc="Where it lives.")
    Tensor.T = property(lambda self: OPS["transpose"](self, list(range(self.ndim))[::-1]), doc="With axes in reversed order.")
    Tensor.mT = property(
        lambda self: OPS["transpose"](self, [*range(self.ndim - 2), self.ndim - 1, self.ndim - 2]),
        doc="With the last two axes swapped.",
    )
    Tensor.requires_grad = property(lambda self: not self.stop_gradient, requires_grad_, doc="Whether gradients flow to it.")
    Tensor.itemsize = property(lambda self: self.element_size(), doc="Bytes of one element.")
    Tensor.nbytes = property(lambda self: self.element_size() * self.size, doc="Bytes of all elements.")
    Tensor.data = property(
        lambda self: self.detach(), lambda self, value: set_value(self, value), doc="The tensor without its history."
    )
    Tensor.value = get_tensor
    Tensor.dim = ndimension
    attach("astype", astype)
    for name in ("is_cuda", "is_sparse", "is_dist", "is_quantized"):
        setattr(Tensor, name, (lambda self: False))
    _rt.set_index_handlers(subscripts.get, subscripts.set)
    Value.operators["__getitem__"] = subscripts.get
