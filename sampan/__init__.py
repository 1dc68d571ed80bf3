"""sampan: a deep-learning framework with PaddlePaddle's public API.

``import sampan as paddle`` runs a program that was written for Paddle.
"""

from __future__ import annotations

from . import _rt, tensor
from .base import flags as _flags
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
