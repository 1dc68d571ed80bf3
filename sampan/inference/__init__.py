"""``paddle.inference``: saved models as predictors, their weights packed and what depends on them alone computed once."""

from __future__ import annotations

from .config import Config
from .kinds import (
    DataType,
    PlaceType,
    PrecisionType,
    XpuConfig,
    convert_to_mixed_precision,
    get_num_bytes_of_data_type,
    get_trt_compile_version,
    get_trt_runtime_version,
)
from .predictor import Predictor, PredictorPool, Tensor, create_predictor, get_version

__all__ = [
    "Config",
    "DataType",
    "PlaceType",
    "PrecisionType",
    "Predictor",
    "PredictorPool",
    "Tensor",
    "XpuConfig",
    "convert_to_mixed_precision",
    "create_predictor",
    "get_num_bytes_of_data_type",
    "get_trt_compile_version",
    "get_trt_runtime_version",
    "get_version",
]
