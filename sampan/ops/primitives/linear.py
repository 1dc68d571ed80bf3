"""The matmul primitive: batched, with operands' batch axes broadcast; transposes are views of its operands."""

from __future__ import annotations

import numpy as np

from ...base import dtypes
from ...base.errors import ShapeError, message
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, append, broadcast_shapes, gradient_of, primitive, same_dtype
from .maps import conj
from .views import sum_to, swap_last


def _infer_matmul(op: Op) -> list[Type]:
    a, b = op.inputs
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            message(
                f"matmul(x, y): x is {list(a.shape)} and y is {list(b.shape)}",
                f"the last axis of x ({a.shape[-1] if a.ndim else 'none'}) must equal the second-last of y ({b.shape[-2] if b.ndim > 1 else 'none'})",
                "y looks transposed: pass transpose_y=True, or check the weight's shape [in_features, out_features]"
                if b.ndim > 1 and a.ndim and b.shape[-1] == a.shape[-1]
                else "",
            )
        )
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return [(same_dtype(op), (*batch, a.shape[-2], b.shape[-1]))]


@primitive("native", _infer_matmul, name="matmul")
def _matmul(a: Array, b: Array) -> Array:
    dtype = a.dtype
    if dtypes.kind(dtype.name) == "f" and dtype.itemsize == 2:
        a, b = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(a, b)).astype(dtype, copy=False)


def matmul(a: Value, b: Value) -> Value:
    """[..., M, K] by [..., K, N]: [..., M, N]."""
    return append("matmul", a, b)


@gradient_of("matmul")
def _matmul_gradient(op: Op, g: Value) -> Gradients:
    a, b = op.inputs
    if dtypes.is_complex(g.dtype):
        a, b = conj(a), conj(b)
    return sum_to(matmul(g, swap_last(b)), a.shape), sum_to(matmul(swap_last(a), g), b.shape)
