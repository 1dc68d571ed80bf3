"""LKJCholesky."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import tensor as T
from ..base.errors import ArgumentError, message
from ..tensor import Tensor, to_tensor
from ..tensor.functions import no_grad
from .distribution import Distribution, as_tensor, require, value_like
from .gamma_family import Beta


class LKJCholesky(Distribution):
    """The distribution of the lower Cholesky factors of correlation matrices with density ~ det^(concentration - 1).

    Source: D. Lewandowski, D. Kurowicka, H. Joe, https://doi.org/10.1016/j.jmva.2009.04.008

    Args:
        dim: the matrices' size, at least 2.
        concentration: 1: all correlation matrices alike; above: near the identity, above 0.
        sample_method: ``onion`` or ``cvine``.

    Raises:
        ArgumentError: a size below 2, or an unknown method.

    Example:
        >>> import sampan as paddle
        >>> factor = paddle.distribution.LKJCholesky(3, 2.0).sample()
        >>> paddle.diagonal(paddle.matmul(factor, factor, transpose_y=True)).round().tolist()
        [1.0, 1.0, 1.0]
    """

    def __init__(self, dim: int = 2, concentration: Any = 1.0, sample_method: str = "onion") -> None:
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 2:
            raise ArgumentError(message(f"LKJCholesky(): dim={dim!r}", "it must be an int of at least 2"))
        if sample_method not in ("onion", "cvine"):
            raise ArgumentError(message(f"LKJCholesky(): sample_method={sample_method!r}", "it must be 'onion' or 'cvine'"))
        self.dim, self.sample_method = dim, sample_method
        self.concentration = as_tensor("LKJCholesky", "concentration", concentration)
        require("LKJCholesky", "concentration", self.concentration, lambda v: v > 0, "above 0")
        super().__init__(self.concentration.shape, [dim, dim])

    @no_grad()
    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Factors, of shape ``shape + batch_shape + [dim, dim]``."""
        full = self._extend_shape(shape)
        lead = full[:-2]
        rows = self._onion_rows(lead) if self.sample_method == "onion" else self._vine_rows(lead)
        return T.stack([self._row(lead, k, left) for k, left in enumerate(rows)], -2)

    def _row(self, lead: list[int], k: int, left: Tensor | None) -> Tensor:
        """Row k: what is left of the diagonal, the positive number that makes its length 1, zeros."""
        dtype = self.concentration.dtype
        if left is None:
            parts = [T.ones([*lead, 1], dtype)]
        else:
            parts = [left, T.sqrt(T.clip(1 - (left * left).sum(-1, keepdim=True), 1e-12, 1.0))]
        rest = self.dim - k - 1
        return T.concat([*parts, T.zeros([*lead, rest], dtype)] if rest else parts, -1)

    def _onion_rows(self, lead: list[int]) -> list[Tensor | None]:
        """Row k has a direction on the sphere and a squared length by a beta distribution."""
        rows: list[Tensor | None] = [None]
        for k in range(1, self.dim):
            a = T.full_like(self.concentration, k / 2)
            b = self.concentration + (self.dim - 1 - k) / 2
            square = T.reshape(Beta(a, b).sample(lead[: len(lead) - len(self._batch_shape)]), [*lead, 1])
            direction = T.randn([*lead, k]).astype(self.concentration.dtype)
            rows.append(direction / T.sqrt((direction * direction).sum(-1, keepdim=True)) * T.sqrt(square))
        return rows

    def _vine_rows(self, lead: list[int]) -> list[Tensor | None]:
        """Row k from partial correlations, each by a symmetric beta distribution on (-1, 1)."""
        rows: list[Tensor | None] = [None]
        for k in range(1, self.dim):
            left, remaining = [], T.ones([*lead, 1], self.concentration.dtype)
            for j in range(k):
                b = self.concentration + (self.dim - 2 - j) / 2
                drawn = T.reshape(Beta(b, b).sample(lead[: len(lead) - len(self._batch_shape)]), [*lead, 1])
                partial = 2 * drawn - 1
                left.append(partial * T.sqrt(remaining))
                remaining = remaining * (1 - partial * partial)
            rows.append(T.concat(left, -1))
        return rows

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of factors."""
        eta, d = self.concentration, self.dim
        diagonal = T.diagonal(value_like(value, eta), axis1=-2, axis2=-1)[..., 1:]
        powers = to_tensor(np.arange(d - 2, -1, -1), eta.dtype) + 2 * (T.unsqueeze(eta, -1) - 1)
        kernel = (powers * T.log(diagonal)).sum(-1)
        last = eta + 0.5 * (d - 1)
        above = 0.25 * d * (d - 1) * math.log(math.pi) + sum(T.lgamma(last - 0.5 * k) for k in range(1, d))
        return kernel - (above - (d - 1) * T.lgamma(last))
