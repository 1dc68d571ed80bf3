"""The enumerations of ``paddle.inference``."""

from __future__ import annotations

import enum

from ..base import dtypes
from ..base.errors import ArgumentTypeError, message


class DataType(enum.Enum):
    """Element types of a predictor's inputs and outputs."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT64 = "int64"
    INT32 = "int32"
    UINT8 = "uint8"
    INT8 = "int8"
    BOOL = "bool"


class PlaceType(enum.Enum):
    """Where tensors live."""

    UNK = -1
    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM = 9


class PrecisionType(enum.Enum):
    """Precisions of a predictor."""

    Float32 = 0
    Int8 = 1
    Half = 2
    Bfloat16 = 3


def get_num_bytes_of_data_type(dtype: DataType) -> int:
    """The bytes of one element.

    Example:
        >>> import sampan as paddle
        >>> paddle.inference.get_num_bytes_of_data_type(paddle.inference.DataType.FLOAT32)
        4
    """
    if not isinstance(dtype, DataType):
        raise ArgumentTypeError(message(f"get_num_bytes_of_data_type(): got a {type(dtype).__name__}", "it takes a DataType"))
    return dtypes.itemsize(dtype.value)
