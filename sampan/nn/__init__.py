"""``paddle.nn``: layers, containers, losses, initializers and gradient clipping."""

from __future__ import annotations

from ..tensor import Parameter
from . import functional, initializer, utils
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from .decode import BeamSearchDecoder, dynamic_decode
from .layer import *  # noqa: F403
from .layer import loss
from .parameters import ParamAttr

Module = Layer  # noqa: F405
ModuleList = LayerList  # noqa: F405
ModuleDict = LayerDict  # noqa: F405
Conv1d, Conv2d, Conv3d = Conv1D, Conv2D, Conv3D  # noqa: F405

__all__ = [
    "BeamSearchDecoder",
    "ClipGradByGlobalNorm",
    "ClipGradByNorm",
    "ClipGradByValue",
    "ParamAttr",
    "Parameter",
    "dynamic_decode",
    "functional",
    "initializer",
    "loss",
    "utils",
]
__all__ += [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, Layer)]  # noqa: F405
