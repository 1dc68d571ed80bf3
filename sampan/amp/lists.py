"""Which operators gain from 16-bit floats, and which need float32."""

from __future__ import annotations

#: Matrix products and convolutions: the libraries' 16-bit forms accumulate in float32.
WHITE = frozenset(
    {
        "addmm", "baddbmm", "bmm", "conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "einsum", "linear",
        "matmul", "max_pool2d", "mm", "mv", "scaled_dot_product_attention",
    }
)  # fmt: skip

#: Sums over many elements, and functions whose results leave the range of float16 or lose their digits.
BLACK = frozenset(
    {
        "acos", "asin", "atanh", "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosh", "cross_entropy", "ctc_loss", "cumprod", "cumsum",
        "dist", "embedding", "erfinv", "exp", "expm1", "group_norm", "interpolate", "kl_div", "layer_norm", "log", "log10", "log2", "log_loss",
        "log_softmax", "logsumexp", "mean", "mse_loss", "nll_loss", "norm", "p_norm", "pow", "prod", "reciprocal", "renorm", "rms_norm", "rsqrt",
        "scatter", "sinh", "smooth_l1_loss", "softmax", "softplus", "square", "sum", "tan", "tanhshrink", "triplet_margin_loss", "vector_norm",
    }
)  # fmt: skip

#: Under O2 only these stay in float32.
BLACK_O2 = frozenset({"embedding", "interpolate", "scatter"})

#: Names by which users know operators, to ours.
ALIASES = {
    "lookup_table_v2": "embedding",
    "embedding": "embedding",
    "matmul_v2": "matmul",
    "mul": "matmul",
    "reduce_sum": "sum",
    "reduce_mean": "mean",
}


def resolved(names: object) -> frozenset[str]:
    """The user's operator names as ours."""
    return frozenset(ALIASES.get(n, n) for n in names or ())  # type: ignore[attr-defined]
