"""Distances between vectors."""

from __future__ import annotations

from ...tensor import Tensor
from .. import functional as F
from .configured import Configured, also


class PairwiseDistance(Configured):
    """The p-norm of x - y + epsilon over the last axis."""

    def __init__(self, p: float = 2.0, epsilon: float = 1e-06, keepdim: bool = False, name: str | None = None) -> None:
        super().__init__(name, p=p, epsilon=epsilon, keepdim=keepdim)

    norm = also("p")
    eps = also("epsilon")

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.pairwise_distance(x, y, self.p, self.epsilon, self.keepdim)

    def extra_repr(self) -> str:
        parts = [f"p={self.p}"]
        if self.epsilon != 1e-6:
            parts.append(f"epsilon={self.epsilon}")
        if self.keepdim:
            parts.append(f"keepdim={self.keepdim}")
        return ", ".join(parts) + (f", name={self._name}" if self._name is not None else "")


__all__ = ["PairwiseDistance"]
