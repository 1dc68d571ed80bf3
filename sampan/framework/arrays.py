"""Where tensors become NumPy arrays and arrays become tensors, for files, data loading and metrics."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..tensor import Tensor, share_array

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def is_tensor(value: Any) -> bool:
    """Whether the value is a tensor."""
    return isinstance(value, Tensor)


def to_array(value: Any) -> np.ndarray:
    """The value as an array in the machine's byte order: a tensor's own memory; bfloat16 as ``ml_dtypes``'s."""
    if isinstance(value, Tensor):
        return value.numpy_view()
    array = np.asarray(value)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def to_tensor(array: np.ndarray) -> Any:
    """A tensor with the array's content: over its memory where that can be written to."""
    return share_array(array)


def content(array: np.ndarray) -> memoryview:
    """The array's elements as bytes, row-major; its own memory where that is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def bits(array: np.ndarray) -> np.ndarray:
    """The array as files hold it: bfloat16 as uint16, everything else as it is."""
    return array.view(np.uint16) if array.dtype == _BFLOAT16 else array


def from_bits(array: np.ndarray) -> np.ndarray:
    """The array that a file's content means: no tensor has the type uint16, so in files it stands for bfloat16."""
    return array.view(_BFLOAT16) if array.dtype == np.uint16 else array
