"""``paddle.nn.functional``: what layers compute, as functions."""

from __future__ import annotations

from ...tensor import public_names
from .inputs import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, embedding, feature_alpha_dropout
from .norms import batch_norm, instance_norm
from .padding import pad, zeropad2d

globals().update(public_names("nn.functional"))
globals().update({name: public_names("")[name] for name in ("tanh", "tanh_", "diag_embed") if name in public_names("")})
