"""What a Tensor has beside its operators: conversions, properties, Python's protocols."""

from __future__ import annotations

import copy
import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import _rt
from ..base import names
from ..base.dtypes import numpy_dtype
from ..base.errors import ArgumentTypeError, AutogradError, IndexRangeError, ShapeError, UnsupportedError, message
from ..base.places import CPU, Device
from ..ir.program import Value
from ..ops.arguments import normalized_axis
from .build import OPS, attach
from .conversions import numpy
from .explained import explained
from .printing import format_tensor
from .size import ElementCount, Size
from .subscript import Subscripts

Tensor = _rt.Tensor
_sizes = Tensor.shape
_count = Tensor.size


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
    result: Any = data if kind is Tensor else kind.__new__(kind, data)
    result.__dict__.update(attributes)
    result.stop_gradient = stop_gradient
    result.name = name
    return result


def element_offset(self: Tensor) -> int:
    """Bytes from the start of its memory to the first element."""
    return int(self.offset_bytes)


def get_strides(self: Tensor) -> list[int]:
    """Elements from one position to the next, for each axis."""
    return list(self.strides)


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Elements from one position to the next along ``dim``, or for each axis."""
    return get_strides(self) if dim is None else self.strides[normalized_axis("stride", dim, self.ndim)]


def narrow(self: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """A view of ``length`` elements along ``dim`` from ``start``; a negative start counts from the end."""
    if isinstance(start, bool) or not isinstance(start, (int, np.integer, Tensor)):
        raise ArgumentTypeError(message(f"narrow(): start is {start!r}", "it must be an integer"))
    axis, first = normalized_axis("narrow", dim, self.ndim), int(start)
    size = self.shape[axis] if self.ndim else 0
    if isinstance(length, bool) or not isinstance(length, int):
        raise ArgumentTypeError(message(f"narrow(): length={length!r}", "it must be an integer"))
    begin = first + size if first < 0 else first
    if length < 0 or not 0 <= begin <= begin + length <= size:
        raise IndexRangeError(message(f"narrow(): start={first}, length={length}", f"axis {axis} has {size} elements"))
    return self[(slice(None),) * axis + (slice(begin, begin + length),)]


def contiguous(self: Tensor) -> Tensor:
    """The tensor with its elements in row-major order: itself where they are so already."""
    return self if self.is_contiguous() else OPS["clone"](self)


def is_same_shape(self: Tensor, y: Tensor) -> bool:
    """Whether both have the same sizes."""
    if not isinstance(y, Tensor):
        raise ArgumentTypeError(message(f"is_same_shape(): y is a {type(y).__name__}", "it must be a Tensor"))
    return list(self.shape) == list(y.shape)


def _is_shared_buffer_with(self: Tensor, other: Tensor) -> bool:
    """Whether both look at the same memory."""
    return bool(_rt.shares_storage(self, other))


def is_dense(self: Tensor) -> bool:
    """Whether it is an ordinary tensor: neither of ``paddle.sparse`` nor some rows of a table."""
    return _rt.selected_rows_of(self) is None


def get_device(self: Tensor) -> int:
    """The number of its GPU; -1 for the CPU."""
    return -1


def get_tensor(self: Tensor) -> Tensor:
    """The tensor itself."""
    return self


def ndimension(self: Tensor) -> int:
    """The number of axes."""
    return int(self.ndim)


def gradient(self: Tensor) -> np.ndarray[Any, Any] | None:
    """The gradient as a NumPy array, or None."""
    return None if self.grad is None else numpy(self.grad)


def _set_requires_grad(self: Tensor, value: bool) -> None:
    self.stop_gradient = not value


def _matrix_transposed(self: Tensor) -> Tensor:
    if self.ndim < 2:
        raise ShapeError(message(f"Tensor.mT: the tensor has shape {list(self.shape)}", "it needs at least two axes"))
    return OPS["transpose"](self, [*range(self.ndim - 2), self.ndim - 1, self.ndim - 2])


def _set_data(self: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(message(f"Tensor.data: got a {type(value).__name__}", "it must be a Tensor"))
    _rt.rebind(self, value)


class VarType(enum.Enum):
    """Kinds of variables, as ``Tensor.type`` names them."""

    DENSE_TENSOR = 7
    SELECTED_ROWS = 8

    def __repr__(self) -> str:
        return f"<VarType.{self.name}: {self.value}>"


def _never(name: str, what: str) -> Callable[[Tensor], bool]:
    def is_it(self: Tensor) -> bool:
        return False

    is_it.__name__ = is_it.__qualname__ = name
    is_it.__doc__ = f"Whether it is {what}: False, for a dense tensor in the CPU's memory."
    return is_it


def _sparse_only(name: str) -> Callable[..., Any]:
    def fail(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(
            message(f"{name}(): the tensor is dense", "only tensors of paddle.sparse have it", "make one with paddle.sparse")
        )

    fail.__name__ = fail.__qualname__ = name
    fail.__doc__ = "Raises UnsupportedError: only tensors of paddle.sparse have it."
    return fail


def sparse_dim(self: Tensor) -> int:
    """The number of axes that are stored sparsely: 0 of a dense tensor."""
    return 0


def dense_dim(self: Tensor) -> int:
    """The number of axes that are stored densely: all of a dense tensor."""
    return int(self.ndim)


def _refusing(name: str, why: str, fix: str = "") -> Callable[..., Any]:
    def fail(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(message(f"{name}(): {why}", "", fix))

    fail.__name__ = fail.__qualname__ = name
    fail.__doc__ = f"Raises UnsupportedError: {why}."
    return fail


#: Methods that a Paddle tensor has and a tensor here cannot have: why, and what to use.
_REFUSED = {
    "set_tensor": ("a tensor is no variable of a scope that holds another one", "use set_value(), copy_() or set_()"),
    "reconstruct_from_": ("a tensor is no variable of a scope that holds another one", "use set_()"),
    "set_string_list": ("tensors hold numbers, no text", "keep the strings in a list"),
    "set_vocab": ("tensors hold numbers, no vocabularies", "keep the vocabulary in a dict"),
    "get_map_tensor": ("tensors hold numbers, no vocabularies", "keep the vocabulary in a dict"),
    "block": ("an eager tensor belongs to no block of a Program", "look at the Variables of a static Program"),
    "create_parameter": ("it is a function, no method", "call paddle.create_parameter()"),
}


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Say whether gradients flow to this tensor; gives the tensor."""
    self.stop_gradient = not requires_grad
    return self


_NEVER = {
    "is_sparse": "sparse", "is_sparse_coo": "sparse in coordinate form", "is_sparse_csr": "sparse in row form",
    "is_dist": "spread over processes", "is_quantized": "quantized",
}  # fmt: skip
_SPARSE_ONLY = ("coalesce", "is_coalesced", "indices", "values", "crows", "cols", "nnz")
#: Public functions that are methods too, beside those that operators declare.
_FUNCTIONS_AS_METHODS = """add_n argwhere bincount increment msort block_diag broadcast_shape broadcast_shapes broadcast_tensors concat create_tensor
is_complex is_floating_point is_integer is_tensor multiplex polar scatter_nd shard_index stack""".split()


def install(subscripts: Subscripts) -> None:
    """Attach everything to Tensor, and what makes sense to symbolic Values."""
    for function in (
        __repr__, __format__, __bool__, __int__, __float__, __complex__, __index__, __len__, __iter__, __contains__, __deepcopy__, __reduce__,
        get_strides, stride, narrow, contiguous, is_same_shape, _is_shared_buffer_with, is_dense, get_device, get_tensor, ndimension, gradient, requires_grad_,
        sparse_dim, dense_dim,
    ):  # fmt: skip
        setattr(Tensor, function.__name__, function if function.__name__.startswith("__") else explained(function))
    for name, what in _NEVER.items():
        setattr(Tensor, name, _never(name, what))
    for name in _SPARSE_ONLY:
        setattr(Tensor, name, _sparse_only(name))
    for name, (why, fix) in _REFUSED.items():
        setattr(Tensor, name, _refusing(name, why, fix))
    Tensor.__str__ = __repr__  # type: ignore[method-assign, assignment]
    Tensor.__array_priority__ = 100
    Tensor.shape = property(lambda self: Size(_sizes.__get__(self)), doc="The sizes of its axes.")
    Tensor.size = property(
        lambda self: ElementCount(_count.__get__(self), self.shape),
        doc="The number of elements; size() is the shape, size(k) that of axis k.",
    )
    Tensor.place = property(lambda self: CPU, doc="Where it lives.")
    Tensor.device = property(lambda self: Device(CPU.kind), doc="Where it lives, as a string with the attributes type and index.")
    Tensor.T = property(lambda self: OPS["transpose"](self, list(range(self.ndim))[::-1]), doc="With axes in reversed order.")
    Tensor.mT = property(_matrix_transposed, doc="With the last two axes swapped.")
    Tensor.requires_grad = property(lambda self: not self.stop_gradient, _set_requires_grad, doc="Whether gradients flow to it.")
    Tensor.itemsize = property(lambda self: self.element_size(), doc="Bytes of one element.")
    Tensor.nbytes = property(lambda self: self.element_size() * self.size, doc="Bytes of all elements.")
    Tensor.offset = property(element_offset, doc=element_offset.__doc__)
    Tensor.type = property(
        lambda self: VarType.DENSE_TENSOR if is_dense(self) else VarType.SELECTED_ROWS, doc="What kind of variable it is."
    )
    Tensor.is_cuda = property(lambda self: False, doc="Whether it is on a GPU: False.")
    Tensor.grad_ = property(lambda self: self.grad, doc="The gradient, or None.")
    Tensor.data = property(lambda self: self.detach(), _set_data, doc="The tensor without its history.")
    Tensor.value = get_tensor
    Tensor.dim = ndimension
    for name in ("process_mesh", "placements", "num_shard"):
        setattr(Tensor, name, property(lambda self: None, doc="None: the tensor is not spread over processes."))
    _rt.set_index_handlers(subscripts.get, subscripts.set)
    Value.operators["__getitem__"] = subscripts.get
    Value.operators["__setitem__"] = subscripts.set


def repeat(input: Any, *repeats: Any) -> Any:
    """The tensor laid out ``repeats[k]`` times along each axis k; given as integers, or as one list of them.

    Example:
        >>> import sampan as paddle
        >>> paddle.to_tensor([1, 2]).repeat(2, 1).tolist()
        [[1, 2], [1, 2]]
    """
    return OPS["tile"](input, repeats[0] if len(repeats) == 1 and not isinstance(repeats[0], int) else list(repeats))


def install_functions(functions: Mapping[str, Any]) -> None:
    """Attach the public functions that are methods too."""
    for name in _FUNCTIONS_AS_METHODS:
        if name in functions:
            attach(name, functions[name])
    attach("repeat", explained(repeat))
    for name, function in {"view_as_complex": "as_complex", "view_as_real": "as_real"}.items():
        attach(name, functions[function])
