"""The enumerations of ``paddle.inference``."""

from __future__ import annotations

import enum
from collections.abc import Collection
from typing import Any, NoReturn

from ..base import dtypes
from ..base.errors import ArgumentTypeError, UnsupportedError, message
from ..base.places import missing_device


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


class XpuConfig:
    """Settings of an XPU. Raises UnsupportedError: this build serves none."""

    device_id = l3_size = l3_autotune_size = context_gm_size = conv_autotune_level = fc_autotune_level = (
        gemm_compute_precision
    ) = 0
    l3_ptr = context = stream = None
    conv_autotune_file = fc_autotune_file = ""
    conv_autotune_file_writeback = fc_autotune_file_writeback = transformer_encoder_adaptive_seqlen = False
    transformer_softmax_optimize_level = quant_post_dynamic_activation_method = quant_post_dynamic_weight_precision = 0
    quant_post_static_gelu_out_threshold = 0.0
    quant_post_dynamic_op_types: tuple[str, ...] = ()

    def __init__(self) -> None:
        raise missing_device("XPU")


def get_trt_compile_version() -> tuple[int, int, int]:
    """The version of TensorRT that the build has: none.

    Example:
        >>> import sampan as paddle
        >>> paddle.inference.get_trt_compile_version()
        (0, 0, 0)
    """
    return 0, 0, 0


def get_trt_runtime_version() -> tuple[int, int, int]:
    """The version of TensorRT that runs: none."""
    return 0, 0, 0


def convert_to_mixed_precision(
    model_file: str,
    params_file: str,
    mixed_model_file: str,
    mixed_params_file: str,
    mixed_precision: PrecisionType,
    backend: PlaceType,
    keep_io_types: bool = True,
    black_list: Collection[str] = frozenset(),
    **kwargs: Any,
) -> NoReturn:
    """Raises UnsupportedError: a model is saved in the precision that its layers have."""
    raise UnsupportedError(
        message(
            f"convert_to_mixed_precision({model_file!r})",
            "the operators of a saved model are not rewritten",
            "save the layer again, under amp.auto_cast() or after layer.bfloat16()",
        )
    )
