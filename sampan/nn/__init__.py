"""``paddle.nn``: layers, containers, losses, initializers and gradient clipping."""

from __future__ import annotations

from ..tensor import Parameter
from . import functional, initializer, utils
from .activations import *  # noqa: F403
from .cells import *  # noqa: F403
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from .common import *  # noqa: F403
from .containers import *  # noqa: F403
from .convolutions import *  # noqa: F403
from .decoding import BeamSearchDecoder, dynamic_decode
from .layer import Layer
from .losses import *  # noqa: F403
from .norms import *  # noqa: F403
from .paddings import *  # noqa: F403
from .parameters import ParamAttr
from .poolings import *  # noqa: F403
from .recurrent import *  # noqa: F403
from .transformer import *  # noqa: F403
from .upsampling import *  # noqa: F403

Module = Layer
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
    "utils",
]
__all__ += [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, Layer)]
