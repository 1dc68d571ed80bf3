"""Linear algebra: products, norms, decompositions, solvers."""

from __future__ import annotations

from typing import Any, NoReturn

from .base.errors import UnsupportedError, message
from .tensor import public_names

_names = public_names("linalg")
globals().update(_names)


def fp8_fp8_half_gemm_fused(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises UnsupportedError: Paddle has it for CUDA alone, and tensors here have no float8 dtypes."""
    raise UnsupportedError(
        message(
            "fp8_fp8_half_gemm_fused(): tensors have no float8 dtypes",
            "in Paddle it exists for CUDA alone",
            "use matmul() in bfloat16",
        )
    )


__all__ = ["fp8_fp8_half_gemm_fused", *sorted(_names)]  # noqa: PLE0604
