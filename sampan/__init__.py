"""sampan: a deep-learning framework with PaddlePaddle's public API.

``import sampan as paddle`` runs a program that was written for Paddle.
"""

from __future__ import annotations

import importlib
from typing import Any

from .base.collecting import paused_collector as _paused_collector
from .base.flags import short_spinning as _short_spinning

with _short_spinning():
    try:
        from . import _rt
    except ImportError as _error:
        from .base.shared_libraries import load_missing_library as _load_missing_library

        _load_missing_library(_error)
        from . import _rt

with _paused_collector():  # it would take a tenth of the import
    from . import autograd, tensor
    from .base.dtypes import ABSENT as _absent_dtypes
    from .base.flags import get_flags, set_flags
    from .base.places import CPUPlace, CUDAPinnedPlace, CUDAPlace, XPUPinnedPlace, XPUPlace
    from .tensor import Parameter, Size, Tensor, to_tensor
    from .tensor.functions import *  # noqa: F403
    from .tensor.printing import set_printoptions
    from .tensor.random import Generator, get_cuda_rng_state, get_rng_state, seed, set_cuda_rng_state, set_rng_state
    from .tensor.random import seed as manual_seed
    from .tensor.typed import *  # noqa: F403
    from .version import full_version as __version__

globals().update(tensor.public_names(""))
globals().update(_rt.dtypes)
globals().update(_absent_dtypes)
uint16 = _rt.dtypes["bfloat16"]  # NumPy holds its bits so
dtype = _rt.DType
globals().update({name: _rt.dtypes[of] for name, of in tensor.DTYPE_ALIASES.items()})

#: Public names that load their module when first used.
_LAZY_NAMES = {
    "save": "framework",
    "load": "framework",
    "ParamAttr": "nn.parameters",
    "create_parameter": "nn.parameters",
    "Model": "hapi",
    "summary": "hapi",
    "flops": "hapi",
    "callbacks": "callbacks",
    "autocast": "amp",
    "is_autocast_enabled": "amp",
    "get_autocast_dtype": "amp",
    "get_autocast_cpu_dtype": "amp",
    "get_autocast_gpu_dtype": "amp",
    "LazyGuard": "nn.parameters",
    "DataParallel": "nn.layer.data_parallel",
    "MmapStorage": "framework.storage",
    "enable_compat": "utils.compat",
    "disable_compat": "utils.compat",
    "is_compiled_with_cuda": "device",
    "is_compiled_with_rocm": "device",
    "is_compiled_with_xpu": "device",
    "is_compiled_with_ipu": "device",
    "is_compiled_with_cinn": "device",
    "is_compiled_with_distribute": "device",
    "is_compiled_with_custom_device": "device",
    **dict.fromkeys(["conv1d", "conv2d", "conv3d", "group_norm", "layer_norm", "adaptive_avg_pool1d"], "nn.functional"),
}
_LAZY_MODULES = frozenset(
    (
        "nn optimizer io metric amp framework regularizer callbacks hapi inference jit linalg fft signal device distribution utils version random static sysconfig "
        "compat sparse geometric incubate profiler vision"
    ).split()
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
