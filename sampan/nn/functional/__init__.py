"""``paddle.nn.functional``: what layers compute, as functions."""

from __future__ import annotations

from types import FunctionType

from ...tensor import OPS, public_names
from ...tensor.explained import explained
from ...tensor.replay import recordable

globals().update(public_names("nn.functional"))
tanh, tanh_, diag_embed = OPS["tanh"], OPS["tanh_"], OPS["diag_embed"]

from . import flash_attention  # noqa: E402
from .compositions import *  # noqa: E402, F403
from .cuda_only import *  # noqa: E402, F403
from .flash_attention import *  # noqa: E402, F403
from .inputs import *  # noqa: E402, F403
from .norms import *  # noqa: E402, F403
from .padding import *  # noqa: E402, F403
from .pools import *  # noqa: E402, F403
from .resizing import *  # noqa: E402, F403
from .sequences import *  # noqa: E402, F403

for _name, _value in list(globals().items()):
    if isinstance(_value, FunctionType) and _value.__module__.startswith(__name__ + "."):
        _rule, _numbers = getattr(_value, "data_rule", None), getattr(_value, "numbers", frozenset())
        globals()[_name] = recordable(f"nn.functional.{_name}", _rule, _numbers)(explained(_value))
        globals()[_name].__module__ = __name__  # by which it pickles

__all__ = ["diag_embed", "flash_attention", "tanh", "tanh_"]
__all__ += [
    name
    for name, value in globals().items()
    if callable(value) and not name.startswith("_") and name not in ("FunctionType", "explained", "public_names", "recordable")
]
