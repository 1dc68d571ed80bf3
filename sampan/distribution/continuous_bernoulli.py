"""ContinuousBernoulli."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import tensor as T
from ..tensor import Tensor
from .distribution import Distribution, as_tensor, require, uniform_like, value_like


class ContinuousBernoulli(Distribution):
    """The distribution on [0, 1] with density ``C(p) p^x (1 - p)^(1 - x)``: https://arxiv.org/abs/1907.06845.

    Args:
        probs: p, in (0, 1).
        lims: between these, C and the moments come from their series at 1/2, where the closed forms divide 0 by 0.

    Example:
        >>> import sampan as paddle
        >>> round(paddle.distribution.ContinuousBernoulli(0.5).mean.item(), 4)
        0.5
    """

    def __init__(self, probs: Any, lims: tuple[float, float] = (0.499, 0.501)) -> None:
        given = as_tensor("ContinuousBernoulli", "probs", probs)
        require("ContinuousBernoulli", "probs", given, lambda v: (v > 0) & (v < 1), "in (0, 1)")
        self.probs = given
        self.lims = (float(lims[0]), float(lims[1]))
        super().__init__(given.shape)

    def _away_from_half(self) -> tuple[Tensor, Tensor]:
        """Where the closed forms hold, and p with a harmless number elsewhere."""
        holds = T.logical_or(self.probs < self.lims[0], self.probs > self.lims[1])
        return holds, T.where(holds, self.probs, T.full_like(self.probs, self.lims[0]))

    def _log_norm(self) -> Tensor:
        """log C(p)."""
        holds, p = self._away_from_half()
        closed = T.log(T.abs(2 * T.atanh(1 - 2 * p))) - T.log(T.abs(1 - 2 * p))
        square = (self.probs - 0.5) * (self.probs - 0.5)
        return T.where(holds, closed, 0.6931471805599453 + (4 / 3 + 104 / 45 * square) * square)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        holds, p = self._away_from_half()
        closed = p / (2 * p - 1) + 1 / (2 * T.atanh(1 - 2 * p))
        shift = self.probs - 0.5
        return T.where(holds, closed, 0.5 + (1 / 3 + 16 / 45 * shift * shift) * shift)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        holds, p = self._away_from_half()
        slope = 2 * T.atanh(1 - 2 * p)
        closed = p * (p - 1) / ((1 - 2 * p) * (1 - 2 * p)) + 1 / (slope * slope)
        square = (self.probs - 0.5) * (self.probs - 0.5)
        return T.where(holds, closed, 1 / 12 - (1 / 15 - 128 / 945 * square) * square)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, differentiable in the parameter."""
        return self.icdf(uniform_like(self._extend_shape(shape), self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        x = value_like(value, self.probs)
        return x * T.log(self.probs) + (1 - x) * T.log1p(-self.probs) + self._log_norm()

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        odds = T.log(self.probs) - T.log1p(-self.probs)
        return -self.mean * odds - T.log1p(-self.probs) - self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to this one."""
        holds, p = self._away_from_half()
        x = value_like(value, self.probs)
        inside = T.clip(x, 0.0, 1.0)
        closed = (T.pow(p, inside) * T.pow(1 - p, 1 - inside) + p - 1) / (2 * p - 1)
        return T.where(T.logical_and(holds, x == inside), closed, inside)

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of ``cdf``."""
        holds, p = self._away_from_half()
        u = value_like(value, self.probs)
        closed = (T.log1p(-p + u * (2 * p - 1)) - T.log1p(-p)) / (T.log(p) - T.log1p(-p))
        return T.where(holds, closed, u)

    def kl_divergence(self, other: ContinuousBernoulli) -> Tensor:
        """The divergence of another continuous Bernoulli distribution from this one."""
        odds = T.log(other.probs) - T.log1p(-other.probs)
        return -self.entropy() - self.mean * odds - T.log1p(-other.probs) - other._log_norm()
