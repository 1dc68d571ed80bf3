"""The limits of number types: ``iinfo`` and ``finfo``."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from . import dtypes
from .errors import DTypeError, message


class iinfo:
    """The smallest and largest value of an integer dtype, and its width.

    Example:
        >>> import sampan as paddle
        >>> paddle.iinfo("int8").max
        127
    """

    def __init__(self, dtype: Any) -> None:
        name = _name("iinfo", dtype)
        if not dtypes.is_integer(name):
            raise DTypeError(message(f"iinfo(): {name} is no integer type", "", "use finfo() for floating types"))
        found = np.iinfo(name)
        self.min, self.max, self.bits, self.dtype = int(found.min), int(found.max), int(found.bits), name

    def __repr__(self) -> str:
        return f"paddle.iinfo(min={self.min}, max={self.max}, bits={self.bits}, dtype={self.dtype})"


class finfo:
    """The range and precision of a floating dtype; those of its parts for a complex one.

    Example:
        >>> import sampan as paddle
        >>> paddle.finfo("float32").bits
        32
    """

    def __init__(self, dtype: Any) -> None:
        name = _name("finfo", dtype)
        if not dtypes.is_differentiable(name):
            raise DTypeError(message(f"finfo(): {name} is no floating type", "", "use iinfo() for integer types"))
        found: Any = ml_dtypes.finfo(dtypes.numpy_dtype(dtypes.real_of(name)))
        self.min, self.max, self.eps = float(found.min), float(found.max), float(found.eps)
        self.resolution, self.bits, self.dtype = float(found.resolution), int(found.bits), name
        self.smallest_normal = self.tiny = float(found.smallest_normal)

    def __repr__(self) -> str:
        names = ("min", "max", "eps", "resolution", "smallest_normal", "tiny")
        shown = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"paddle.finfo({shown}, bits={self.bits}, dtype={self.dtype})"


def _name(function: str, dtype: Any) -> str:
    name = dtypes.name_of(dtype)
    if not name:
        raise DTypeError(message(f"{function}(): {dtype!r} is no dtype", "", "pass a string such as 'float32'"))
    return name
