"""Layer 5: tensors, their operators' public callables, autograd, and what turns calls into Programs."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

from .. import _rt
from ..base import errors, flags

_rt.set_error_classes(
    {
        "shape": errors.ShapeError,
        "dtype": errors.DTypeError,
        "index": errors.IndexRangeError,
        "value": errors.ArgumentError,
        "type": errors.ArgumentTypeError,
        "memory": errors.MemoryLimitError,
        "runtime": errors.AutogradError,
        "not_implemented": errors.UnsupportedError,
    }
)

from . import composed  # noqa: E402
from .build import OPS, attach, build, public_names  # noqa: E402
from .conversions import DTYPE_ALIASES, install_conversions  # noqa: E402
from .creation import Parameter, Tensor, share_array, to_tensor  # noqa: E402
from .dispatch import refresh_context  # noqa: E402
from .dtype_members import install_dtype_members  # noqa: E402
from .methods import Size, install, install_functions  # noqa: E402
from .storage_methods import install_storage_methods  # noqa: E402
from .subscript import Subscripts  # noqa: E402
from .variable_methods import install_variable_methods  # noqa: E402

build()
install(Subscripts(OPS, to_tensor, composed.mask_indices))
install_conversions()
install_dtype_members()
install_storage_methods()
install_variable_methods()

from . import functions, numerics, optional_forms, random_functions  # noqa: E402
from .operators import install_operators  # noqa: E402
from .other_forms import install_other_forms  # noqa: E402
from .selected_rows import install_selected_rows  # noqa: E402
from .sparse_tensor import install_sparse  # noqa: E402

install_operators()
install_other_forms()
install_selected_rows()
install_sparse()
install_functions({**public_names(""), **vars(functions)})
_rt.set_internal_prefix(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
flags.CALL_SITES.follow(lambda on: _rt.set_record_call_sites(bool(on)))
_default_threads = _rt.num_threads()
flags.NUM_THREADS.follow(lambda count: _rt.set_num_threads(count or _default_threads))
flags.MEMORY_LIMIT_MB.follow(lambda size: _rt.set_memory_limit(size << 20))
flags.SIGNATURE_LIMIT.follow(_rt.set_cache_limit)
for _flag in (flags.INTERPRET, flags.MAX_ISA):  # calls are compiled again under another value
    _flag.follow(lambda _: refresh_context())
refresh_context()

globals().update(public_names(""))
DType = _rt.DType
create_tensor = functions.create_tensor
from . import recorded_grad  # noqa: E402, F401
from .arrays import array_length, array_read, array_write, create_array, tensor_array_to_tensor  # noqa: E402


class _Callable(types.ModuleType):
    """The module as what ``paddle.tensor`` is too: a function that makes tensors."""

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        return functions.tensor(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable


def __getattr__(name: str) -> Any:
    if name in ("attribute", "linalg", "logic", "manipulation", "math", "ops", "search", "stat"):  # Paddle's files of operators
        return sys.modules[__name__]
    raise AttributeError(f"module 'sampan.tensor' has no attribute {name!r}")


__all__ = [
    "DTYPE_ALIASES",
    "OPS",
    "DType",
    "Parameter",
    "Size",
    "Tensor",
    "array_length",
    "array_read",
    "array_write",
    "attach",
    "composed",
    "create_array",
    "functions",
    "numerics",
    "optional_forms",
    "public_names",
    "random_functions",
    "share_array",
    "tensor_array_to_tensor",
    "to_tensor",
]
