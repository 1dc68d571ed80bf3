"""Linear algebra: products, norms, decompositions, solvers."""

from __future__ import annotations

from .tensor import public_names

_names = public_names("linalg")
globals().update(_names)
__all__ = sorted(_names)  # noqa: PLE0605
