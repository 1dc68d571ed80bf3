"""sampan: a deep-learning framework with PaddlePaddle's public API.

``import sampan as paddle`` runs a program that was written for Paddle.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import _rt, autograd, tensor
from .base.flags import get_flags, set_flags
from .base.places import CPUPlace, CUDAPinnedPlace, CUDAPlace, XPUPlace
from .tensor import Parameter, Size, Tensor, to_tensor
from .tensor.functions import *  # noqa: F403
from .tensor.printing import set_printoptions
from .tensor.random import get_rng_state, seed, set_rng_state
from .version import full_version as __version__

globals().update(tensor.public_names(""))
globals().update(_rt.dtypes)
dtype = _rt.DType

#: Public names that load their module when first used.
_LAZY_NAMES = {
    "save": "framework",
    "load": "framework",
    "ParamAttr": "nn.parameters",
    "create_parameter": "nn.parameters",
    "DataParallel": "distributed",
    "Model": "hapi",
    "summary": "hapi",
    "flops": "hapi",
    "callbacks": "callbacks",
}
_LAZY_MODULES = frozenset(
    "nn optimizer io metric amp framework regularizer callbacks hapi vision linalg fft signal device distribution jit static utils version".split()
)


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY_NAMES:
        found = getattr(importlib.import_module(f"{__name__}.{_LAZY_NAMES[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'sampan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY_NAMES, *_LAZY_MODULES})
