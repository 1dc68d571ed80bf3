"""Gamma, Chi2, Beta and Dirichlet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import tensor as T
from ..base.errors import ShapeError, message
from ..tensor import Tensor
from .distribution import ExponentialFamily, as_tensor, as_tensors, log_beta, require, value_like, xlogy


class Gamma(ExponentialFamily):
    """The gamma distribution.

    Args:
        concentration: the shape, above 0.
        rate: the inverse of the scale, above 0.

    Example:
        >>> import sampan as paddle
        >>> paddle.distribution.Gamma(3.0, 2.0).mean.item()
        1.5
    """

    def __init__(self, concentration: Any, rate: Any) -> None:
        self.concentration, self.rate = as_tensors(type(self).__name__, concentration=concentration, rate=rate)
        require(type(self).__name__, "concentration", self.concentration, lambda v: v > 0, "above 0")
        require(type(self).__name__, "rate", self.rate, lambda v: v > 0, "above 0")
        super().__init__(self.concentration.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration / self.rate

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.concentration / (self.rate * self.rate)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, differentiable in the rate."""
        shape = self._extend_shape(shape)
        return T.standard_gamma(T.expand(self.concentration, shape).detach()) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        x, a = value_like(value, self.rate), self.concentration
        return a * T.log(self.rate) + xlogy(a - 1, x) - self.rate * x - T.lgamma(a)

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        a = self.concentration
        return a - T.log(self.rate) + T.lgamma(a) + (1 - a) * T.digamma(a)

    def kl_divergence(self, other: Gamma) -> Tensor:
        """The divergence of another gamma distribution from this one."""
        a, b = self.concentration, other.concentration
        gammas = T.lgamma(b) - T.lgamma(a)
        return (a - b) * T.digamma(a) + gammas + b * T.log(self.rate / other.rate) + a * (other.rate / self.rate - 1)


class Chi2(Gamma):
    """The chi-squared distribution: of the sum of ``df`` squared normal values.

    Args:
        df: the degrees of freedom, above 0.

    Example:
        >>> import sampan as paddle
        >>> paddle.distribution.Chi2(3.0).mean.item()
        3.0
    """

    def __init__(self, df: Any) -> None:
        self.df = as_tensor("Chi2", "df", df)
        super().__init__(self.df / 2, T.full_like(self.df, 0.5))


class Beta(ExponentialFamily):
    """The beta distribution on (0, 1).

    Args:
        alpha: the weight of 1, above 0.
        beta: the weight of 0, above 0.

    Example:
        >>> import sampan as paddle
        >>> paddle.distribution.Beta(1.0, 3.0).mean.item()
        0.25
    """

    def __init__(self, alpha: Any, beta: Any) -> None:
        self.alpha, self.beta = as_tensors("Beta", alpha=alpha, beta=beta)
        super().__init__(self.alpha.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        total = self.alpha + self.beta
        return self.alpha * self.beta / (total * total * (total + 1))

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, through which no gradient flows."""
        shape = self._extend_shape(shape)
        a, b = (T.standard_gamma(T.expand(v, shape).detach()) for v in (self.alpha, self.beta))
        return a / (a + b)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        x = value_like(value, self.alpha)
        return xlogy(self.alpha - 1, x) + xlogy(self.beta - 1, 1 - x) - log_beta(self.alpha, self.beta)

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        a, b = self.alpha, self.beta
        return log_beta(a, b) - (a - 1) * T.digamma(a) - (b - 1) * T.digamma(b) + (a + b - 2) * T.digamma(a + b)


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution, of positive vectors whose elements sum to 1.

    Args:
        concentration: the weights of the elements, above 0; [..., k].

    Raises:
        ShapeError: concentration has no axis.

    Example:
        >>> import sampan as paddle
        >>> paddle.distribution.Dirichlet(paddle.to_tensor([1.0, 3.0])).mean.tolist()
        [0.25, 0.75]
    """

    def __init__(self, concentration: Any) -> None:
        self.concentration = as_tensor("Dirichlet", "concentration", concentration)
        if self.concentration.ndim < 1:
            raise ShapeError(message("Dirichlet(): concentration has no axis", "its last axis holds the weights of the elements"))
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:])

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def variance(self) -> Tensor:
        """The variance of each element."""
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total * total * (total + 1))

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, through which no gradient flows."""
        parts = T.standard_gamma(T.expand(self.concentration, self._extend_shape(shape)).detach())
        return parts / parts.sum(-1, keepdim=True)

    def _log_norm(self) -> Tensor:
        return T.lgamma(self.concentration).sum(-1) - T.lgamma(self.concentration.sum(-1))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        return xlogy(self.concentration - 1, value_like(value, self.concentration)).sum(-1) - self._log_norm()

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        a = self.concentration
        total, count = a.sum(-1), self._event_shape[0]
        return self._log_norm() + (total - count) * T.digamma(total) - ((a - 1) * T.digamma(a)).sum(-1)
