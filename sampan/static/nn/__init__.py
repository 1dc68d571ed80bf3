"""``paddle.static.nn``: control flow, and functions that make their own parameters."""

from __future__ import annotations

from ...tensor.block_styles import IfElse, StaticRNN, Switch, While
from ...tensor.control_flow import case, cond, switch_case, while_loop
from ...tensor.custom_ops import py_func
from ...tensor.python_layers import static_pylayer
from .common import (
    bilinear_tensor_product,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    deform_conv2d,
    embedding,
    fc,
    nce,
    prelu,
    row_conv,
    sparse_embedding,
)
from .norms import batch_norm, data_norm, group_norm, instance_norm, layer_norm, spectral_norm
from .sequences import (
    sequence_conv,
    sequence_expand,
    sequence_first_step,
    sequence_last_step,
    sequence_pool,
    sequence_softmax,
)

__all__ = [
    "IfElse",
    "StaticRNN",
    "Switch",
    "While",
    "batch_norm",
    "bilinear_tensor_product",
    "case",
    "cond",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "data_norm",
    "deform_conv2d",
    "embedding",
    "fc",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "nce",
    "prelu",
    "py_func",
    "row_conv",
    "sequence_conv",
    "sequence_expand",
    "sequence_first_step",
    "sequence_last_step",
    "sequence_pool",
    "sequence_softmax",
    "sparse_embedding",
    "spectral_norm",
    "static_pylayer",
    "switch_case",
    "while_loop",
]
