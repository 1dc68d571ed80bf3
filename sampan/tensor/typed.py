"""Constructors of one dtype: ``FloatTensor([1, 2])``, ``IntTensor(2, 3)``."""

from __future__ import annotations

from typing import Any

from .. import _rt
from .creation import to_tensor

Tensor = _rt.Tensor


class _TypedKind(type):
    """The class of the constructors: a tensor of the dtype is an instance of each."""

    dtype_name: str

    def __call__(cls, *args: Any, device: Any = None, dtype: Any = None) -> Tensor:
        if all(isinstance(a, int) and not isinstance(a, bool) for a in args):
            return _rt.empty(list(args) if args else [0], cls.dtype_name)
        (data,) = args
        return to_tensor(data, cls.dtype_name, device)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype.name == cls.dtype_name


def _typed(name: str, dtype: str) -> _TypedKind:
    doc = f"A {dtype} tensor of data, or one of these sizes that holds any values."
    return _TypedKind(name, (), {"dtype_name": dtype, "__doc__": doc, "__module__": "sampan"})


FloatTensor = _typed("FloatTensor", "float32")
DoubleTensor = _typed("DoubleTensor", "float64")
HalfTensor = _typed("HalfTensor", "float16")
BFloat16Tensor = _typed("BFloat16Tensor", "bfloat16")
ByteTensor = _typed("ByteTensor", "uint8")
CharTensor = _typed("CharTensor", "int8")
ShortTensor = _typed("ShortTensor", "int16")
IntTensor = _typed("IntTensor", "int32")
LongTensor = _typed("LongTensor", "int64")
BoolTensor = _typed("BoolTensor", "bool")

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor",
    "ShortTensor",
]  # fmt: skip
