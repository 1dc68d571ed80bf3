"""Bernoulli, Geometric, Poisson, Binomial, Multinomial and Categorical."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import tensor as T
from ..base.errors import ArgumentError, ShapeError, message
from ..tensor import Tensor, to_tensor
from ..tensor.functions import is_tensor
from .distribution import Distribution, ExponentialFamily, as_tensor, require, sizes, uniform_like, value_like, xlogy


def _is_probability(v: Any) -> Any:
    return (v >= 0) & (v <= 1)


class Bernoulli(ExponentialFamily):
    """The distribution of 0 and 1.

    Args:
        probs: the probability of 1.

    Example:
        >>> import sampan as paddle
        >>> round(paddle.distribution.Bernoulli(0.25).variance.item(), 4)
        0.1875
    """

    def __init__(self, probs: Any, name: str | None = None) -> None:
        self.probs = as_tensor("Bernoulli", "probs", probs)
        require("Bernoulli", "probs", self.probs, _is_probability, "in [0, 1]")
        self.logits = T.log(self.probs) - T.log1p(-self.probs)
        super().__init__(self.probs.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.probs

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """0s and 1s, through which no gradient flows."""
        drawn = T.uniform(self._extend_shape(shape), self.probs.dtype, 0.0, 1.0) < self.probs
        return drawn.astype(self.probs.dtype)

    def rsample(self, shape: Sequence[int] = (), temperature: float = 1.0) -> Tensor:
        """The logit of a value between 0 and 1, differentiable in the parameters: https://arxiv.org/abs/1611.00712.

        Args:
            shape: the sample shape.
            temperature: the lower, the nearer the values' sigmoids are to 0 and 1.
        """
        u = uniform_like(self._extend_shape(shape), self.probs.dtype)
        return (self.logits + T.log(u) - T.log1p(-u)) / temperature

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to this one."""
        x = value_like(value, self.probs)
        below = T.where(x < 0, T.zeros_like(self.probs + x), 1 - self.probs + T.zeros_like(x))
        return T.where(x < 1, below, T.ones_like(below))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of each value."""
        x = value_like(value, self.probs)
        return xlogy(x, self.probs) + xlogy(1 - x, 1 - self.probs)

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        return -xlogy(self.probs, self.probs) - xlogy(1 - self.probs, 1 - self.probs)

    def kl_divergence(self, other: Bernoulli) -> Tensor:
        """The divergence of another Bernoulli distribution from this one."""
        p, q = self.probs, other.probs
        return xlogy(p, p) - xlogy(p, q) + xlogy(1 - p, 1 - p) - xlogy(1 - p, 1 - q)


class Geometric(Distribution):
    """The distribution of the number of failures before the first success.

    Args:
        probs: the probability of success, in (0, 1].

    Example:
        >>> import sampan as paddle
        >>> paddle.distribution.Geometric(0.5).pmf(paddle.to_tensor([0.0, 2.0])).tolist()
        [0.5, 0.125]
    """

    def __init__(self, probs: Any) -> None:
        self.probs = as_tensor("Geometric", "probs", probs)
        require("Geometric", "probs", self.probs, lambda v: (v > 0) & (v <= 1), "in (0, 1]")
        super().__init__(self.probs.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return 1 / self.probs - 1

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (1 / self.probs - 1) / self.probs

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Numbers of failures. They are whole numbers, so their derivative in the parameter is 0."""
        u = uniform_like(self._extend_shape(shape), self.probs.dtype)
        return T.floor(T.log(u) / T.log1p(-self.probs))

    def pmf(self, k: Any) -> Tensor:
        """The probability of k failures."""
        return T.exp(self.log_pmf(k))

    def log_pmf(self, k: Any) -> Tensor:
        """The logarithm of the probability of k failures."""
        return xlogy(value_like(k, self.probs), 1 - self.probs) + T.log(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of each number of failures."""
        return self.log_pmf(value)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of up to so many failures."""
        return 1 - T.pow(1 - self.probs, value_like(value, self.probs) + 1)

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        return -(xlogy(1 - self.probs, 1 - self.probs) + xlogy(self.probs, self.probs)) / self.probs

    def kl_divergence(self, other: Geometric) -> Tensor:
        """The divergence of another geometric distribution from this one."""
        p, q = self.probs, other.probs
        return T.log(p / q) + (1 / p - 1) * (T.log1p(-p) - T.log1p(-q))


class Poisson(ExponentialFamily):
    """The distribution of the number of independent events in a unit of time.

    Args:
        rate: the mean, at least 0.

    Example:
        >>> import sampan as paddle
        >>> round(paddle.distribution.Poisson(2.0).prob(paddle.to_tensor(0.0)).item(), 4)
        0.1353
    """

    def __init__(self, rate: Any) -> None:
        self.rate = as_tensor("Poisson", "rate", rate)
        require("Poisson", "rate", self.rate, lambda v: v >= 0, "at least 0")
        super().__init__(self.rate.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.rate

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.rate

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Numbers of events, through which no gradient flows."""
        return T.poisson(T.expand(self.rate, self._extend_shape(shape)).detach())

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of each value."""
        x = value_like(value, self.rate)
        return xlogy(x, self.rate) - self.rate - T.lgamma(x + 1)

    def entropy(self) -> Tensor:
        """The entropy in nats, by a sum over the numbers within 30 standard deviations of the mean."""
        largest = float(self.rate.max().item())
        numbers = T.arange(0, int(largest + 30 * max(largest, 1.0) ** 0.5) + 2, dtype=self.rate.dtype)
        logs = self.log_prob(T.reshape(numbers, [-1, *[1] * len(self._batch_shape)]))
        return -(T.exp(logs) * logs).sum(0)

    def kl_divergence(self, other: Poisson) -> Tensor:
        """The divergence of another Poisson distribution from this one."""
        return xlogy(self.rate, self.rate) - xlogy(self.rate, other.rate) - self.rate + other.rate


class Binomial(Distribution):
    """The distribution of the number of successes among ``total_count`` attempts.

    Args:
        total_count: the number of attempts.
        probs: the probability of success.

    Example:
        >>> import sampan as paddle
        >>> paddle.distribution.Binomial(4, 0.5).prob(paddle.to_tensor(2.0)).item()
        0.375
    """

    def __init__(self, total_count: Any, probs: Any) -> None:
        p = as_tensor("Binomial", "probs", probs)
        count = total_count if is_tensor(total_count) else to_tensor(total_count)
        self.total_count, self.probs = T.broadcast_tensors([count, p])
        require("Binomial", "probs", self.probs, _is_probability, "in [0, 1]")
        require("Binomial", "total_count", self.total_count, lambda v: v >= 0, "at least 0")
        self._count = self.total_count.astype(p.dtype)
        super().__init__(self.probs.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self._count * self.probs

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self._count * self.probs * (1 - self.probs)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Numbers of successes, through which no gradient flows."""
        full = self._extend_shape(shape)
        counts, p = (T.expand(v, full).detach() for v in (self.total_count.astype("int64"), self.probs))
        return T.binomial(counts, p).astype(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of each value."""
        x, n = value_like(value, self.probs), self._count
        ways = T.lgamma(n + 1) - T.lgamma(x + 1) - T.lgamma(n - x + 1)
        return ways + xlogy(x, self.probs) + xlogy(n - x, 1 - self.probs)

    def entropy(self) -> Tensor:
        """The entropy in nats, by a sum over all numbers."""
        largest = int(self.total_count.max().item())
        numbers = T.reshape(T.arange(0, largest + 1, dtype=self.probs.dtype), [-1, *[1] * len(self._batch_shape)])
        inside = numbers <= self._count
        logs = self.log_prob(T.minimum(numbers, self._count))
        return -T.where(inside, T.exp(logs) * logs, T.zeros_like(logs)).sum(0)

    def kl_divergence(self, other: Binomial) -> Tensor:
        """The divergence of another binomial distribution with as many attempts from this one."""
        if not np.array_equal(self.total_count.numpy(), other.total_count.numpy()):
            raise ArgumentError(
                message("Binomial.kl_divergence(): the numbers of attempts differ", "one may give what the other cannot")
            )
        p, q = self.probs, other.probs
        return self._count * (xlogy(p, p) - xlogy(p, q) + xlogy(1 - p, 1 - p) - xlogy(1 - p, 1 - q))


class Categorical(Distribution):
    """The distribution of the numbers of categories.

    As Paddle has it, ``probs``, ``log_prob`` and ``sample`` take the given numbers as weights, while ``entropy`` and ``kl_divergence`` take them
    as logits, of a softmax.

    Args:
        logits: [..., categories].

    Example:
        >>> import sampan as paddle
        >>> law = paddle.distribution.Categorical(paddle.to_tensor([1.0, 3.0]))
        >>> law.probs(paddle.to_tensor([0, 1])).tolist()
        [0.25, 0.75]
    """

    def __init__(self, logits: Any, name: str | None = None) -> None:
        self.logits = as_tensor("Categorical", "logits", logits)
        if not self.logits.ndim:
            raise ShapeError(message("Categorical(): logits has no axis", "its last axis holds the categories"))
        super().__init__(self.logits.shape[:-1])

    def _weights(self) -> Tensor:
        return self.logits / self.logits.sum(-1, keepdim=True)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """int64 numbers of categories, of shape ``shape + batch_shape``."""
        count = int(np.prod(sizes(shape), dtype=np.int64))
        rows = T.reshape(self.logits, [-1, self.logits.shape[-1]]).detach()
        drawn = T.multinomial(rows, count, True) if count else T.zeros([rows.shape[0], 0], "int64")
        return T.reshape(T.transpose(drawn, [1, 0]), self._extend_shape(shape))

    def probs(self, value: Tensor) -> Tensor:
        """The probabilities of the categories; of all rows' for a one-dimensional value."""
        weights = self._weights()
        if weights.ndim == 1:
            return T.reshape(T.gather(weights, T.reshape(value, [-1])), list(value.shape))
        if value.ndim == 1:
            return T.index_select(weights, value, axis=-1)
        return T.take_along_axis(weights, value, axis=-1)

    def prob(self, value: Tensor) -> Tensor:
        """The probabilities of the categories."""
        return self.probs(value)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithms of the probabilities of the categories."""
        return T.log(self.probs(value))

    def _log_softmax(self) -> Tensor:
        return self.logits - T.logsumexp(self.logits, -1, keepdim=True)

    def entropy(self) -> Tensor:
        """The entropy in nats of the softmax."""
        logs = self._log_softmax()
        return -(T.exp(logs) * logs).sum(-1)

    def kl_divergence(self, other: Categorical) -> Tensor:
        """The divergence of another softmax from this one, with a last axis of length 1."""
        logs = self._log_softmax()
        return (T.exp(logs) * (logs - other._log_softmax())).sum(-1, keepdim=True)


class Multinomial(Distribution):
    """The distribution of how often each category is drawn among ``total_count`` draws.

    Args:
        total_count: the number of draws.
        probs: weights of the categories, [..., categories]; scaled to a sum of 1.

    Raises:
        ArgumentError: total_count is less than 1.
        ShapeError: probs has no axis.

    Example:
        >>> import sampan as paddle
        >>> paddle.distribution.Multinomial(10, paddle.to_tensor([0.2, 0.8])).mean.tolist()
        [2.0, 8.0]
    """

    def __init__(self, total_count: int, probs: Any) -> None:
        if isinstance(total_count, bool) or not isinstance(total_count, int) or total_count < 1:
            raise ArgumentError(message(f"Multinomial(): total_count={total_count!r}", "it must be an int of at least 1"))
        weights = as_tensor("Multinomial", "probs", probs)
        if not weights.ndim:
            raise ShapeError(message("Multinomial(): probs has no axis", "its last axis holds the categories"))
        self.total_count = total_count
        self.probs = weights / weights.sum(-1, keepdim=True)
        super().__init__(weights.shape[:-1], weights.shape[-1:])

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        """The variance of each element."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Counts, through which no gradient flows."""
        drawn = Categorical(self.probs).sample([self.total_count, *sizes(shape)])
        categories = self._event_shape[0]
        hits = T.unsqueeze(drawn, -1) == T.arange(0, categories, dtype="int64")
        return hits.astype(self.probs.dtype).sum(0)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of each vector of counts."""
        x = value_like(value, self.probs)
        return T.lgamma(x.sum(-1) + 1) - T.lgamma(x + 1).sum(-1) + xlogy(x, self.probs).sum(-1)

    def entropy(self) -> Tensor:
        """The entropy in nats: that of ordered draws, less what their order tells."""
        n = T.full([], float(self.total_count), self.probs.dtype)
        numbers = T.reshape(T.arange(1, self.total_count + 1, dtype=self.probs.dtype), [-1, *[1] * self.probs.ndim])
        counts = Binomial(T.full([], self.total_count, "int64"), self.probs).prob(numbers)
        ordered = -self.total_count * xlogy(self.probs, self.probs).sum(-1)
        return ordered - T.lgamma(n + 1) + (counts * T.lgamma(numbers + 1)).sum([0, -1])
