"""Which operators gain from 16-bit floats, and which need float32."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base.errors import ArgumentError, message
from ..tensor.autocast import Precision
from ..tensor.functions import dtype_name

#: Matrix products and convolutions: the libraries' 16-bit forms accumulate in float32. max_pool2d loses nothing.
WHITE = frozenset(
    {
        "addmm", "baddbmm", "bmm", "conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "einsum", "linear",
        "matmul", "max_pool2d", "mm", "mv",
    }
)  # fmt: skip

#: Sums over many elements, and functions whose results leave the range of float16 or lose their digits.
BLACK = frozenset(
    {
        "acos", "asin", "atanh", "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosh", "cross_entropy", "cumprod", "cumsum",
        "dist", "embedding", "erfinv", "exp", "expm1", "group_norm", "kl_div", "layer_norm", "log", "log10", "log2", "log_loss",
        "log_softmax", "logsumexp", "matrix_norm", "mean", "mse_loss", "nll_loss", "norm", "pow", "prod", "reciprocal", "renorm", "rms_norm",
        "rsqrt", "scatter", "sinh", "smooth_l1_loss", "softmax", "softplus", "square", "sum", "tan", "tanhshrink", "vector_norm",
    }
)  # fmt: skip

#: Under O2 only these stay in float32.
BLACK_O2 = frozenset({"embedding", "scatter"})

#: Names by which Paddle's users know operators, to ours.
ALIASES = {
    "elementwise_add": "add",
    "elementwise_div": "divide",
    "elementwise_max": "maximum",
    "elementwise_min": "minimum",
    "elementwise_mul": "multiply",
    "elementwise_pow": "pow",
    "elementwise_sub": "subtract",
    "frobenius_norm": "norm",
    "linear_v2": "linear",
    "lookup_table": "embedding",
    "lookup_table_v2": "embedding",
    "matmul_v2": "matmul",
    "max_pool2d_with_index": "max_pool2d",
    "mul": "matmul",
    "p_norm": "norm",
    "pnorm": "norm",
    "reduce_max": "max",
    "reduce_mean": "mean",
    "reduce_min": "min",
    "reduce_prod": "prod",
    "reduce_sum": "sum",
    "sigmoid_cross_entropy_with_logits": "binary_cross_entropy_with_logits",
    "softmax_with_cross_entropy": "cross_entropy",
    "tanh_shrink": "tanhshrink",
}


def precision_of(
    what: str, level: Any, dtype: Any, custom_white: Iterable[str] | None, custom_black: Iterable[str] | None
) -> Precision:
    """What operators compute under at this level, with further names in either list.

    Raises:
        ArgumentError: an unknown level or dtype, or a name in both lists.
    """
    if level not in ("O0", "OD", "O1", "O2"):
        raise ArgumentError(message(f"{what}(): level={level!r}", "it must be 'O0', 'OD', 'O1' or 'O2'"))
    name = dtype_name(what, dtype)
    if name not in ("float16", "bfloat16"):
        raise ArgumentError(message(f"{what}(): dtype={dtype!r}", "it must be 'float16' or 'bfloat16'"))
    white, black = resolved(custom_white), resolved(custom_black)
    if white & black:
        raise ArgumentError(f"{what}(): {sorted(white & black)} are in both lists")
    base_black = BLACK_O2 if level == "O2" else frozenset() if level == "OD" else BLACK
    return Precision(level, name, (WHITE | white) - black, (base_black | black) - white)


def resolved(names: Iterable[str] | None) -> frozenset[str]:
    """The user's operator names as ours."""
    return frozenset(ALIASES.get(n, n) for n in names or ())
