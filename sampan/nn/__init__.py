"""``paddle.nn``: layers, containers, losses, initializers and gradient clipping."""

from __future__ import annotations

from ..tensor import Parameter
from . import functional, initializer
from .activations import *  # noqa: F403
from .common import *  # noqa: F403
from .containers import *  # noqa: F403
from .convolutions import *  # noqa: F403
from .layer import Layer
from .losses import *  # noqa: F403
from .norms import *  # noqa: F403
from .paddings import *  # noqa: F403
from .parameters import ParamAttr
from .poolings import *  # noqa: F403

Module = Layer
ModuleList = LayerList  # noqa: F405
ModuleDict = LayerDict  # noqa: F405
Conv1d, Conv2d, Conv3d = Conv1D, Conv2D, Conv3D  # noqa: F405

__all__ = ["ParamAttr", "Parameter", "functional", "initializer"]
__all__ += [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, Layer)]
