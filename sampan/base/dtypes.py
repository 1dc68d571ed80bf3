"""Element types by name: their NumPy forms, kinds, and how two of them combine.

The list itself is the runtime's (``csrc/base/dtype.h``); the IR names a type by its plain string.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from .errors import DTypeError, UnsupportedError, message

#: Every element type, in the runtime's order.
NAMES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
#: Other names of element types; NumPy has no bfloat16 and holds its bits as uint16.
_OTHER_NAMES = {
    "float": "float64", "int": "int64", "complex": "complex128", "half": "float16", "double": "float64", "bool_": "bool", "uint16": "bfloat16",
}  # fmt: skip
_default = "float32"


class AbsentDType:
    """A dtype that Paddle names and tensors here do not have; whatever takes a dtype refuses it by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"paddle.{self.name}"


ABSENT = {name: AbsentDType(name) for name in ("uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "pstring", "raw")}


def name_of(dtype: Any) -> str:
    """The name of a dtype given as a DType, a string, or a NumPy dtype or scalar type; an empty string where it is none.

    Raises:
        UnsupportedError: the dtype is one of Paddle's that tensors here do not have.
    """
    if isinstance(dtype, AbsentDType):
        raise UnsupportedError(message(f"{dtype.name} is no dtype of this build", f"tensors hold {', '.join(NAMES)}"))
    text = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", "")
    if text in NAMES:
        return str(text)
    if text in _OTHER_NAMES:
        return _OTHER_NAMES[text]
    try:  # NumPy's own abbreviations, such as f4
        found = np.dtype(text).name if isinstance(text, str) and len(text) == 2 else ""
    except TypeError:
        found = ""
    return found if found in NAMES else ""


@functools.cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of this name; bfloat16 is ``ml_dtypes``'s."""
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


@functools.cache
def kind(name: str) -> str:
    """``b`` bool, ``u`` unsigned, ``i`` signed, ``f`` floating (bfloat16 too), ``c`` complex."""
    return "f" if name == "bfloat16" else numpy_dtype(name).kind


@functools.cache
def itemsize(name: str) -> int:
    """Bytes of one element."""
    return numpy_dtype(name).itemsize


def is_floating(name: str) -> bool:
    """Whether the type is a real floating type."""
    return kind(name) == "f"


def is_complex(name: str) -> bool:
    """Whether the type is complex."""
    return kind(name) == "c"


def is_differentiable(name: str) -> bool:
    """Whether values of this type carry gradients."""
    return kind(name) in "fc"


def is_integer(name: str) -> bool:
    """Whether the type is an integer type; bool is not."""
    return kind(name) in "iu"


def real_of(name: str) -> str:
    """The real type of a complex type's parts; other types are their own."""
    return {"complex64": "float32", "complex128": "float64"}.get(name, name)


def complex_of(name: str) -> str:
    """The complex type over a real type's precision."""
    return name if is_complex(name) else ("complex128" if name == "float64" else "complex64")


def default_float() -> str:
    """The floating type of new tensors made from Python floats."""
    return _default


def set_default_float(name: str) -> None:
    """Set the floating type of new tensors; float16, bfloat16, float32 or float64."""
    global _default
    if name not in ("float16", "bfloat16", "float32", "float64"):
        raise DTypeError(message(f"set_default_dtype({name!r})", "it takes float16, bfloat16, float32 or float64"))
    _default = name


@functools.cache
def promote(a: str, b: str) -> str:
    """The type that holds both: wider floats win, complex wins over real, floats over integers; uint8 with int8 gives int16."""
    if a == b:
        return a
    ka, kb = kind(a), kind(b)
    if ka not in "fc" and kb not in "fc":
        return np.promote_types(a, b).name
    if ka not in "fc":
        return b
    if kb not in "fc":
        return a
    if "c" in (ka, kb):
        wide = "float64" in (real_of(a), real_of(b)) and "complex128"
        return wide or "complex64"
    size_a, size_b = itemsize(a), itemsize(b)
    if size_a != size_b:
        return a if size_a > size_b else b
    return "float32"  # float16 with bfloat16: neither holds the other


def promote_scalar(dtype: str, scalar_kind: str) -> str:
    """The type of a tensor of ``dtype`` combined with a Python scalar of this kind: the scalar only lifts the kind, never the width."""
    if scalar_kind == "c":
        return complex_of(dtype)
    if scalar_kind == "f" and kind(dtype) not in "fc":
        return default_float()
    if scalar_kind in "iu" and kind(dtype) == "b":
        return "int64"
    return dtype
