"""to_tensor and Parameter: tensors from the user's data."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes, names
from ..base.errors import ArgumentTypeError, DTypeError, message
from ..base.places import parse_place
from ..ir.program import Value
from ..ops.arguments import dtype_name
from .build import OPS

Tensor = _rt.Tensor


def to_tensor(data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True) -> Tensor:
    """A new tensor with a copy of the data.

    Args:
        data: a number, a nested list or tuple of numbers and tensors, a NumPy array, or a Tensor.
        dtype: of the result; by default that of the data, Python floats becoming the default dtype and Python ints int64.
        place: the CPU, as a Place or a string.
        stop_gradient: whether no gradient flows to it.

    Raises:
        ArgumentTypeError: the data holds something that is no number, or its rows differ in length.

    Example:
        >>> import sampan as paddle
        >>> paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]]).shape
        paddle.Size([2, 2])
    """
    parse_place("to_tensor", place)
    name = None if dtype is None else dtype_name("to_tensor", dtype)
    if _holds_values(data):
        result = _joined(data, name)
    elif isinstance(data, Tensor):
        result = _rt.copy(data, name)
    else:
        result = _rt.from_numpy(to_array(data, name), True)
    result.stop_gradient = bool(stop_gradient)
    return result


def _holds_values(data: Any) -> bool:
    """Whether the data is, or holds, something whose elements only a run of the Program that is being recorded knows."""
    return (
        isinstance(data, Value)
        or (isinstance(data, Tensor) and _rt.tracing())
        or (isinstance(data, (list, tuple)) and any(map(_holds_values, data)))
    )


def _joined(data: Any, name: str | None) -> Any:
    """The data as one symbolic tensor: items are stacked, those of one element in the shape of the others."""
    if isinstance(data, (Value, Tensor)):
        return OPS["clone"](data) if name in (None, _named(data)) else OPS["cast"](data, name)
    if not isinstance(data, (list, tuple)):
        return to_tensor(data, name)
    common = name or np.result_type(*_leaf_dtypes(data)).name
    parts = [_joined(d, common) for d in data]
    if len({tuple(p.shape) for p in parts}) > 1:
        parts = [OPS["reshape"](p, [1]) if all(n == 1 for n in p.shape) else p for p in parts]
    return OPS["stack"](parts, 0)


def _leaf_dtypes(data: Any) -> list[Any]:
    """NumPy's dtypes of the tensors and numbers in the data."""
    if isinstance(data, (list, tuple)):
        return [kind for d in data for kind in _leaf_dtypes(d)]
    return [dtypes.numpy_dtype(_named(data)) if isinstance(data, (Value, Tensor)) else np.asarray(data).dtype]


def _named(tensor: Any) -> str:
    return str(getattr(tensor.dtype, "name", tensor.dtype))


def share_array(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor over the array's own memory, which it keeps alive; over a copy where the memory is read-only or foreign.

    Args:
        array: an array of a type that tensors have; a write to either is seen by both.

    Raises:
        DTypeError: tensors do not have the array's type.
    """
    _require_supported(array)
    is_shared = array.flags.writeable and array.flags.aligned and array.dtype.isnative
    return _rt.from_numpy(array, not is_shared)


def to_array(data: Any, name: str | None = None) -> np.ndarray[Any, Any]:
    """The data as a NumPy array of the named dtype, or of the dtype that a tensor of it has."""
    target = None if name is None else dtypes.numpy_dtype(name)
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        if array.dtype == np.uint16:  # the bits of bfloat16, as Tensor.numpy() gives them
            array = array.view(dtypes.numpy_dtype("bfloat16"))
        _require_supported(array)
    else:
        array = _from_python(data)
        is_list = isinstance(data, (list, tuple))
        if target is None and (not _is_of_tensors(data) if is_list else isinstance(data, (float, complex))):
            if array.dtype == np.float64:
                target = dtypes.numpy_dtype(dtypes.default_float())
            elif array.dtype == np.complex128:
                target = np.dtype(dtypes.complex_of(dtypes.default_float()))
    if target is not None and array.dtype != target:
        with np.errstate(all="ignore"):
            array = (
                array.real.astype(target) if array.dtype.kind == "c" and dtypes.kind(target.name) != "c" else array.astype(target)
            )
    return array


def _is_of_tensors(data: Any) -> bool:
    """Whether tensors decide the dtype, as NumPy combines them with numbers: those in the list itself, and of 64-bit floats in lists inside of it.

    Otherwise NumPy's numbers in lists count as Python's, as in Paddle.
    """
    kinds = set(map(type, data))
    return any(issubclass(kind, Tensor) for kind in kinds) or (
        any(issubclass(kind, (list, tuple)) for kind in kinds) and any(map(_holds_wide_tensor, data))
    )


def _holds_wide_tensor(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(issubclass(kind, (list, tuple, Tensor)) for kind in set(map(type, data))) and any(
            map(_holds_wide_tensor, data)
        )
    return isinstance(data, Tensor) and data.dtype.name in ("float64", "complex128")


def _from_python(data: Any) -> np.ndarray[Any, Any]:
    if hasattr(data, "__array__") and not isinstance(data, (list, tuple)):
        array = np.asarray(data)
        _require_supported(array)
        return array
    if not isinstance(data, (bool, int, float, complex, list, tuple, range)):
        raise ArgumentTypeError(
            message(
                f"to_tensor(): the data is a {type(data).__name__}",
                "it must be a number, a nested list of numbers, an array or a tensor",
            )
        )
    try:
        array = np.array(_without_tensors(data))
    except (ValueError, TypeError) as error:
        raise ArgumentTypeError(message("to_tensor(): the data is no rectangular list of numbers", str(error))) from None
    except OverflowError:
        raise ArgumentTypeError("to_tensor(): the data holds an integer beyond 64 bits") from None
    if array.dtype == object and array.size == 0:
        array = array.astype(np.float64)
    if array.size == 0 and isinstance(data, (list, tuple)):
        array = array.astype(np.float64)
    _require_supported(array)
    return array


def _without_tensors(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.numpy_view()
    if isinstance(data, (list, tuple)):
        data = tuple(data)
        if any(issubclass(kind, (list, tuple, Tensor)) for kind in set(map(type, data))):
            parts = [_without_tensors(d) for d in data]
            shapes = {np.shape(p) for p in parts if isinstance(p, np.ndarray)}
            if len(shapes) > 1 and any(np.size(p) == 1 for p in parts):
                parts = [np.reshape(p, (1,)) if np.size(p) == 1 else p for p in parts]
            return parts
        return data
    return data


def _require_supported(array: np.ndarray[Any, Any]) -> None:
    if array.dtype.kind in "US":
        raise DTypeError(message("to_tensor(): the data holds text", "tensors hold numbers", "turn words into ids first"))
    if array.dtype.name not in _rt.dtypes:
        raise DTypeError(
            message(
                f"to_tensor(): the data has NumPy dtype {array.dtype}",
                f"tensors hold {', '.join(_rt.dtypes)}",
                "convert the array with .astype() first",
            )
        )


_SETTINGS = frozenset({"stop_gradient", "trainable", "optimize_attr", "regularizer", "need_clip"})


class Parameter(Tensor):
    """A tensor that layers and optimizers train.

    Attributes: ``trainable`` (the opposite of stop_gradient), ``optimize_attr`` (its learning-rate factor), ``regularizer``, ``need_clip``, ``is_distributed``.
    """

    #: Counts changes of any parameter's settings, so that what optimizers made of them need not look at each.
    changes = 0

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SETTINGS:
            Parameter.changes += 1
        super().__setattr__(name, value)

    def __init__(self, data: Tensor, trainable: bool = True, name: str | None = None) -> None:
        super().__init__()
        self.stop_gradient = not trainable
        self.persistable = True
        self.name = name or names.generate("param")
        self.optimize_attr = {"learning_rate": 1.0}
        self.regularizer = None
        self.do_model_average = None
        self.need_clip = True
        self.is_distributed = False

    @property
    def trainable(self) -> bool:
        """Whether it is trained."""
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise ArgumentTypeError(f"trainable must be True or False, got {value!r}")
        self.stop_gradient = not value

    @classmethod
    def from_tensor(cls, tensor: Tensor, **kwargs: Any) -> Parameter:
        """A parameter over the memory of a tensor. ``kwargs``: ``trainable``, ``name``, and attributes to set."""
        made = cls(tensor, kwargs.pop("trainable", True), kwargs.pop("name", None))
        for attribute, value in kwargs.items():
            setattr(made, attribute, value)
        return made

    def set_init_func(self, obj: Any) -> None:
        """Accepted for compatibility with ``LazyGuard``: a parameter has its values from the start."""

    def initialize(self) -> None:
        """Nothing: a parameter has its values from the start, inside ``LazyGuard`` too."""

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    __str__ = __repr__
