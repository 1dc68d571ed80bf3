"""Methods that overwrite a tensor's elements or make it look at other memory, and fresh tensors like an old one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _rt
from ..base import nest
from ..base.errors import ArgumentError, ArgumentTypeError, AutogradError, ShapeError, message
from ..base.places import parse_place
from ..ops.arguments import dtype_name, known_shape
from .autograd import no_grad
from .build import OPS
from .creation import to_array, to_tensor
from .explained import explained

Tensor = _rt.Tensor


def set_value(self: Tensor, value: Any) -> None:
    """Overwrite the elements by those of an array or tensor of equal shape, outside of any gradient."""
    if isinstance(value, Tensor):
        source = value.detach()
    else:
        source = _rt.from_numpy(to_array(np.asarray(nest.settled(value)), self.dtype.name), True)
    if list(source.shape) != list(self.shape):
        raise ShapeError(
            message(
                f"set_value(): the value has shape {list(source.shape)} and the tensor {list(self.shape)}", "they must be equal"
            )
        )
    _rt.copy_into(self, source)


def _broadcasts(shape: Sequence[int], to: Sequence[int]) -> bool:
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))


def copy_(self: Tensor, other: Tensor, blocking: bool = True) -> Tensor:
    """Overwrite the elements by those of another tensor, broadcast to this one's shape, outside of any gradient; gives this tensor."""
    source = other.detach() if isinstance(other, Tensor) else to_tensor(other)
    if not _broadcasts(source.shape, self.shape):
        raise ShapeError(
            message(
                f"copy_(): other has shape {list(source.shape)} and the tensor {list(self.shape)}", "other must broadcast to it"
            )
        )
    with no_grad():
        _rt.copy_into(self, OPS["broadcast_to"](source, list(self.shape)) if list(source.shape) != list(self.shape) else source)
    return self


def fill_(self: Tensor, value: Any) -> Tensor:
    """Overwrite every element by one value; gives this tensor."""
    if isinstance(value, Tensor) and value.size != 1:
        raise ShapeError(message(f"fill_(): value has shape {list(value.shape)}", "it must be one number"))
    self[...] = value
    return self


def zero_(self: Tensor) -> Tensor:
    """Overwrite every element by 0; gives this tensor."""
    return fill_(self, 0)


def apply(self: Tensor, func: Callable[[Tensor], Any]) -> Any:
    """``func`` of the tensor, which must not want a gradient."""
    _require_no_gradient(self, "apply")
    return func(self)


def apply_(self: Tensor, func: Callable[[Tensor], Any]) -> Tensor:
    """Make the tensor what ``func`` gives for it; the tensor must not want a gradient. Gives this tensor."""
    _require_no_gradient(self, "apply_")
    result = func(self)
    if not isinstance(result, Tensor):
        raise ArgumentTypeError(message(f"apply_(): func gave a {type(result).__name__}", "it must give a Tensor"))
    _rt.rebind(self, result)
    return self


def _require_no_gradient(x: Tensor, name: str) -> None:
    if not x.stop_gradient:
        raise AutogradError(
            message(
                f"{name}(): the tensor wants a gradient, which cannot pass through a Python function",
                "",
                "detach it, or call the function yourself",
            )
        )


def set_(
    self: Tensor,
    source: Tensor | None = None,
    shape: Sequence[int] | None = None,
    stride: Any = None,
    offset: int = 0,
    name: str | None = None,
) -> Tensor:
    """Look at the memory of ``source`` from now on; gives this tensor.

    Args:
        source: a tensor of the same dtype; None: no elements.
        shape, stride: what to look at; by default all of source. Strides count elements.
        offset: where the first element lies, in bytes from that of source.
    """
    if source is None:
        _rt.rebind(self, _rt.empty([0], self.dtype.name))
        return self
    if not isinstance(source, Tensor):
        raise ArgumentTypeError(message(f"set_(): source is a {type(source).__name__}", "it must be a Tensor"))
    if source.dtype != self.dtype:
        raise ArgumentTypeError(message(f"set_(): source is {source.dtype.name} and the tensor {self.dtype.name}", "", "cast it"))
    if isinstance(offset, bool) or not isinstance(offset, int) or offset % source.element_size():
        raise ArgumentError(message(f"set_(): offset={offset!r}", f"it must be a multiple of {source.element_size()} bytes"))
    sizes = list(source.shape) if shape is None else list(known_shape("set_", shape))
    if stride is None:
        strides = list(source.strides) if shape is None else [int(np.prod(sizes[k + 1 :])) for k in range(len(sizes))]
    else:
        strides = list(known_shape("set_", stride))
    _rt.rebind(self, _rt.as_view(source, sizes, strides, offset // source.element_size()))
    return self


def resize_(self: Tensor, shape: Sequence[int], fill_zero: bool = False, name: str | None = None) -> Tensor:
    """Give the tensor another shape, of any number of elements, in row-major order; gives this tensor.

    Args:
        shape: the new sizes.
        fill_zero: whether elements that are new are 0, else they hold any value.
    """
    _require_no_gradient(self, "resize_")
    sizes = list(known_shape("resize_", shape))
    if -1 in sizes:
        raise ArgumentError(f"resize_(): shape {sizes} holds -1")
    made = _rt.empty(sizes, self.dtype.name)
    flat = _rt.as_view(made, [made.size], [1])
    kept = min(self.size, made.size)
    if fill_zero:
        _rt.fill(made, 0)
    if kept:
        old = _rt.copy(self)
        _rt.copy_into(_rt.as_view(flat, [kept], [1]), _rt.as_view(old, [kept], [1]))
    _rt.rebind(self, made)
    return self


def _sizes_of(name: str, size: tuple[Any, ...]) -> list[int]:
    given = size[0] if len(size) == 1 and isinstance(size[0], (list, tuple, Tensor)) else size
    sizes = list(known_shape(name, [int(n) if isinstance(n, (Tensor, np.integer)) else n for n in given]))
    if -1 in sizes:
        raise ArgumentError(f"{name}(): shape {sizes} has a negative size")
    return sizes


def _fresh(name: str, like: Tensor, sizes: list[int], value: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    parse_place(name, device)
    made = _rt.empty(sizes, like.dtype.name if dtype is None else dtype_name(name, dtype))
    if value is not None:
        _rt.fill(made, value.item() if isinstance(value, Tensor) else value)
    made.stop_gradient = not requires_grad
    return made


def new_full(
    self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A fresh tensor of one value, in this tensor's dtype unless another is given."""
    return _fresh("new_full", self, _sizes_of("new_full", (size,)), fill_value, dtype, device, requires_grad)


def _new(name: str, value: int | None, what: str) -> Callable[..., Tensor]:
    def make(
        self: Tensor,
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        return _fresh(name, self, _sizes_of(name, sizes if size is None else (size,)), value, dtype, device, requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A fresh tensor of {what}, in this tensor's dtype unless another is given."
    return make


def install_storage_methods() -> None:
    """Attach them to Tensor."""
    for function in (
        set_value, copy_, fill_, zero_, apply, apply_, set_, resize_, new_full,
        _new("new_zeros", 0, "zeros"), _new("new_ones", 1, "ones"), _new("new_empty", None, "any values"),
    ):  # fmt: skip
        setattr(Tensor, function.__name__, explained(function))
