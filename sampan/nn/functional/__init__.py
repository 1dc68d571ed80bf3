"""``paddle.nn.functional``: what layers compute, as functions."""

from __future__ import annotations

from ...tensor import OPS, public_names
from .inputs import *  # noqa: F403
from .norms import *  # noqa: F403
from .padding import *  # noqa: F403

globals().update(public_names("nn.functional"))
tanh, tanh_, diag_embed = OPS["tanh"], OPS["tanh_"], OPS["diag_embed"]

__all__ = ["diag_embed", "tanh", "tanh_"]
__all__ += [name for name, value in globals().items() if callable(value) and not name.startswith("_") and name != "public_names"]
