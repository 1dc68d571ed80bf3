"""Uniform, Laplace, Gumbel, Cauchy, StudentT and Exponential."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import tensor as T
from ..tensor import Tensor
from .distribution import (
    EULER,
    Distribution,
    ExponentialFamily,
    as_tensor,
    as_tensors,
    log_beta,
    require,
    uniform_like,
    value_like,
)


class Uniform(Distribution):
    """The uniform distribution on [low, high).

    Args:
        low: the lower end.
        high: the upper end.

    Example:
        >>> import sampan as paddle
        >>> paddle.distribution.Uniform(1.0, 3.0).probs(paddle.to_tensor([2.0, 4.0])).tolist()
        [0.5, 0.0]
    """

    def __init__(self, low: Any, high: Any, name: str | None = None) -> None:
        self.low, self.high = as_tensors("Uniform", low=low, high=high)
        super().__init__(self.low.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        """The variance."""
        width = self.high - self.low
        return width * width / 12

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, differentiable in the parameters."""
        return self.low + (self.high - self.low) * T.uniform(self._extend_shape(shape), self.low.dtype, 0.0, 1.0)

    def sample(self, shape: Sequence[int] = (), seed: int = 0) -> Tensor:
        """Values, through which no gradient flows. ``seed`` is accepted for compatibility: ``paddle.seed`` decides."""
        return super().sample(shape)

    def prob(self, value: Tensor) -> Tensor:
        """The density of each value."""
        value = value_like(value, self.low)
        inside = T.logical_and(self.low < value, value < self.high)
        return inside.astype(self.low.dtype) / (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density; minus infinity outside."""
        return T.log(self.prob(value))

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        return T.log(self.high - self.low)


class Laplace(Distribution):
    """The Laplace distribution: two exponential distributions back to back.

    Args:
        loc: the mean.
        scale: the mean distance from it, above 0.

    Example:
        >>> import sampan as paddle
        >>> paddle.distribution.Laplace(0.0, 1.0).variance.item()
        2.0
    """

    def __init__(self, loc: Any, scale: Any) -> None:
        self.loc, self.scale = as_tensors("Laplace", loc=loc, scale=scale)
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return 2 * self.scale * self.scale

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, differentiable in the parameters."""
        return self.icdf(uniform_like(self._extend_shape(shape), self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        return -T.abs(value_like(value, self.loc) - self.loc) / self.scale - T.log(2 * self.scale)

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        return 1 + T.log(2 * self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to this one."""
        z = (value_like(value, self.loc) - self.loc) / self.scale
        return 0.5 - 0.5 * T.sign(z) * T.expm1(-T.abs(z))

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of ``cdf``."""
        u = value_like(value, self.loc) - 0.5
        return self.loc - self.scale * T.sign(u) * T.log1p(-2 * T.abs(u))

    def kl_divergence(self, other: Laplace) -> Tensor:
        """The divergence of another Laplace distribution from this one."""
        ratio, distance = self.scale / other.scale, T.abs(self.loc - other.loc)
        return ratio * T.exp(-distance / self.scale) + distance / other.scale - T.log(ratio) - 1


class Gumbel(Distribution):
    """The Gumbel distribution, of the largest of many values.

    Args:
        loc: the mode.
        scale: the spread, above 0.

    Example:
        >>> import sampan as paddle
        >>> round(paddle.distribution.Gumbel(0.0, 1.0).mean.item(), 4)
        0.5772
    """

    def __init__(self, loc: Any, scale: Any) -> None:
        self.loc, self.scale = as_tensors("Gumbel", loc=loc, scale=scale)
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc + self.scale * EULER

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale * self.scale * (math.pi**2 / 6)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, differentiable in the parameters."""
        u = uniform_like(self._extend_shape(shape), self.loc.dtype)
        return self.loc - self.scale * T.log(-T.log(u))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        z = (value_like(value, self.loc) - self.loc) / self.scale
        return -z - T.exp(-z) - T.log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to this one."""
        return T.exp(-T.exp(-(value_like(value, self.loc) - self.loc) / self.scale))

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        return T.log(self.scale) + 1 + EULER


class Cauchy(Distribution):
    """The Cauchy distribution, which has neither mean nor variance.

    Args:
        loc: the median.
        scale: the distance of the quartiles from it, above 0.

    Example:
        >>> import sampan as paddle
        >>> round(paddle.distribution.Cauchy(0.0, 1.0).entropy().item(), 4)
        2.531
    """

    def __init__(self, loc: Any, scale: Any, name: str | None = None) -> None:
        self.loc, self.scale = as_tensors("Cauchy", loc=loc, scale=scale)
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """There is none.

        Raises:
            ValueError: always.
        """
        raise ValueError("Cauchy distribution has no mean.")

    @property
    def variance(self) -> Tensor:
        """There is none.

        Raises:
            ValueError: always.
        """
        raise ValueError("Cauchy distribution has no variance.")

    @property
    def stddev(self) -> Tensor:
        """There is none.

        Raises:
            ValueError: always.
        """
        raise ValueError("Cauchy distribution has no stddev.")

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, differentiable in the parameters."""
        u = uniform_like(self._extend_shape(shape), self.loc.dtype)
        return self.loc + self.scale * T.tan(math.pi * (u - 0.5))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        z = (value_like(value, self.loc) - self.loc) / self.scale
        return -T.log1p(z * z) - T.log(self.scale) - math.log(math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to this one."""
        return T.atan((value_like(value, self.loc) - self.loc) / self.scale) / math.pi + 0.5

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        return T.log(self.scale) + math.log(4 * math.pi)

    def kl_divergence(self, other: Cauchy) -> Tensor:
        """The divergence of another Cauchy distribution from this one: https://arxiv.org/abs/1905.10965."""
        spread, shift = self.scale + other.scale, self.loc - other.loc
        return T.log((spread * spread + shift * shift) / (4 * self.scale * other.scale))


class StudentT(Distribution):
    """Student's t distribution.

    Args:
        df: the degrees of freedom, above 0.
        loc: the median.
        scale: the spread, above 0.

    Example:
        >>> import sampan as paddle
        >>> paddle.distribution.StudentT(5.0, 0.0, 3.0).variance.item()
        15.0
    """

    def __init__(self, df: Any, loc: Any, scale: Any, name: str | None = None) -> None:
        self.df, self.loc, self.scale = as_tensors("StudentT", df=df, loc=loc, scale=scale)
        require("StudentT", "df", self.df, lambda v: v > 0, "above 0")
        require("StudentT", "scale", self.scale, lambda v: v > 0, "above 0")
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """The mean; NaN up to one degree of freedom."""
        return T.where(self.df > 1, self.loc, T.full_like(self.loc, math.nan))

    @property
    def variance(self) -> Tensor:
        """The variance; infinite up to two degrees of freedom, NaN up to one."""
        safe = T.where(self.df > 2, self.df, T.full_like(self.df, 3.0))
        finite = self.scale * self.scale * safe / (safe - 2)
        without = T.where(self.df > 1, T.full_like(finite, math.inf), T.full_like(finite, math.nan))
        return T.where(self.df > 2, finite, without)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, through which no gradient flows."""
        shape = self._extend_shape(shape)
        noise = T.randn(shape).astype(self.loc.dtype)
        chi = 2 * T.standard_gamma(T.expand(self.df / 2, shape).detach())
        return (self.loc + self.scale * noise * T.rsqrt(chi / self.df)).detach()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        z = (value_like(value, self.loc) - self.loc) / self.scale
        norm = (
            T.log(self.scale)
            + 0.5 * T.log(self.df)
            + 0.5 * math.log(math.pi)
            + T.lgamma(self.df / 2)
            - T.lgamma((self.df + 1) / 2)
        )
        return -0.5 * (self.df + 1) * T.log1p(z * z / self.df) - norm

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        half = (self.df + 1) / 2
        beta = log_beta(self.df / 2, T.full_like(self.df, 0.5))
        return T.log(self.scale) + half * (T.digamma(half) - T.digamma(self.df / 2)) + 0.5 * T.log(self.df) + beta


class Exponential(ExponentialFamily):
    """The exponential distribution, of waiting times.

    Args:
        rate: events in a unit of time, above 0.

    Example:
        >>> import sampan as paddle
        >>> paddle.distribution.Exponential(2.0).mean.item()
        0.5
    """

    def __init__(self, rate: Any) -> None:
        self.rate = as_tensor("Exponential", "rate", rate)
        super().__init__(self.rate.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return 1 / self.rate

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return 1 / (self.rate * self.rate)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, differentiable in the rate."""
        return -T.log(uniform_like(self._extend_shape(shape), self.rate.dtype)) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        return T.log(self.rate) - self.rate * value_like(value, self.rate)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to this one."""
        return -T.expm1(-self.rate * value_like(value, self.rate))

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of ``cdf``."""
        return -T.log1p(-value_like(value, self.rate)) / self.rate

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        return 1 - T.log(self.rate)

    def kl_divergence(self, other: Exponential) -> Tensor:
        """The divergence of another exponential distribution from this one."""
        ratio = other.rate / self.rate
        return ratio - T.log(ratio) - 1
