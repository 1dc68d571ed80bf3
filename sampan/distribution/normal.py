"""Normal, LogNormal and MultivariateNormal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import tensor as T
from ..base.errors import ArgumentError, ShapeError, message
from ..tensor import OPS, Tensor
from ..tensor.functions import broadcast_shape
from .distribution import HALF_LOG_TWO_PI, Distribution, ExponentialFamily, as_tensor, as_tensors, value_like
from .transform import ExpTransform
from .transformed_distribution import TransformedDistribution


class Normal(ExponentialFamily):
    """The normal distribution.

    Args:
        loc: the mean.
        scale: the standard deviation, above 0.

    Example:
        >>> import sampan as paddle
        >>> normal = paddle.distribution.Normal(0.0, 2.0)
        >>> round(normal.log_prob(paddle.to_tensor(1.0)).item(), 4)
        -1.7371
    """

    def __init__(self, loc: Any, scale: Any, name: str | None = None) -> None:
        self.loc, self.scale = as_tensors("Normal", loc=loc, scale=scale)
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale * self.scale

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, differentiable in the parameters."""
        noise = T.randn(self._extend_shape(shape)).astype(self.loc.dtype)
        return self.loc + self.scale * noise

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        z = (value_like(value, self.loc) - self.loc) / self.scale
        return -0.5 * z * z - T.log(self.scale) - HALF_LOG_TWO_PI

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        return 0.5 + HALF_LOG_TWO_PI + T.log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to this one."""
        return 0.5 * (1 + T.erf((value_like(value, self.loc) - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of ``cdf``."""
        return self.loc + self.scale * math.sqrt(2) * T.erfinv(2 * value_like(value, self.loc) - 1)

    def kl_divergence(self, other: Normal) -> Tensor:
        """The divergence of another normal distribution from this one."""
        ratio, shift = self.scale / other.scale, (self.loc - other.loc) / other.scale
        return 0.5 * (ratio * ratio + shift * shift - 1) - T.log(ratio)


class LogNormal(TransformedDistribution):
    """The distribution of exp(x) for a normally distributed x.

    Args:
        loc: the mean of x.
        scale: the standard deviation of x, above 0.

    Example:
        >>> import sampan as paddle
        >>> round(paddle.distribution.LogNormal(0.0, 1.0).mean.item(), 4)
        1.6487
    """

    def __init__(self, loc: Any, scale: Any) -> None:
        self._base = Normal(loc, scale)
        self.loc, self.scale = self._base.loc, self._base.scale
        super().__init__(self._base, [ExpTransform()])

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return T.exp(self.loc + self.scale * self.scale / 2)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        square = self.scale * self.scale
        return T.expm1(square) * T.exp(2 * self.loc + square)

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        return self._base.entropy() + self.loc

    def kl_divergence(self, other: LogNormal) -> Tensor:
        """The divergence of another log-normal distribution from this one."""
        return self._base.kl_divergence(other._base)


class MultivariateNormal(Distribution):
    """The normal distribution of vectors. Exactly one of the three matrices is given.

    Args:
        loc: the mean, [..., d].
        covariance_matrix: symmetric and positive definite, [..., d, d].
        precision_matrix: its inverse.
        scale_tril: its lower Cholesky factor, with a positive diagonal.

    Raises:
        ArgumentError: not exactly one matrix.
        ShapeError: a matrix that is not [..., d, d].

    Example:
        >>> import sampan as paddle
        >>> law = paddle.distribution.MultivariateNormal(paddle.zeros([2]), paddle.eye(2))
        >>> round(law.entropy().item(), 4)
        2.8379
    """

    def __init__(self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None) -> None:
        mean = as_tensor("MultivariateNormal", "loc", loc)
        mean = mean if mean.ndim else mean.reshape([1])
        matrices = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {k: as_tensor("MultivariateNormal", k, v) for k, v in matrices.items() if v is not None}
        if len(given) != 1:
            raise ArgumentError(
                message(f"MultivariateNormal(): {len(given)} matrices are given", f"exactly one of {list(matrices)} must be")
            )
        ((kind, matrix),) = given.items()
        if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or mean.shape[-1] not in (1, matrix.shape[-1]):
            raise ShapeError(
                message(
                    f"MultivariateNormal(): {kind} has shape {list(matrix.shape)} and loc {list(mean.shape)}",
                    "they must be [..., d, d] and [..., d]",
                )
            )
        size = matrix.shape[-1]
        batch = list(broadcast_shape(list(matrix.shape[:-2]), list(mean.shape[:-1])))
        self.loc = T.expand(mean, [*batch, size])
        setattr(self, kind, T.expand(matrix, [*batch, size, size]))
        if kind == "scale_tril":
            factor = matrix
        elif kind == "covariance_matrix":
            factor = T.cholesky(matrix)
        else:
            # the precision reversed in both axes has the factor whose inverse, reversed back, is lower triangular
            reverse = T.cholesky(T.flip(matrix, [-2, -1]))
            inverse = T.transpose(T.flip(reverse, [-2, -1]), [*range(matrix.ndim - 2), matrix.ndim - 1, matrix.ndim - 2])
            factor = OPS["triangular_solve"](inverse, T.expand_as(T.eye(size, dtype=matrix.dtype), matrix), upper=False)
        self._unbroadcasted_scale_tril = factor
        super().__init__(batch, [size])

    @property
    def _factor(self) -> Tensor:
        return T.expand(self._unbroadcasted_scale_tril, [*self._batch_shape, *self._event_shape, *self._event_shape])

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance of each element."""
        return (self._factor * self._factor).sum(-1)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, differentiable in the parameters."""
        noise = T.randn(self._extend_shape(shape)).astype(self.loc.dtype)
        return self.loc + T.matmul(self._unbroadcasted_scale_tril, noise.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return T.log(T.diagonal(self._factor, axis1=-2, axis2=-1)).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        z = _solved(self._unbroadcasted_scale_tril, value_like(value, self.loc) - self.loc)
        return -0.5 * (z * z).sum(-1) - self._half_log_det() - self._event_shape[0] * HALF_LOG_TWO_PI

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        return self._half_log_det() + self._event_shape[0] * (0.5 + HALF_LOG_TWO_PI)

    def kl_divergence(self, other: MultivariateNormal) -> Tensor:
        """The divergence of another distribution of vectors of this size from this one."""
        shape = list(broadcast_shape(list(self._factor.shape), list(other._factor.shape)))
        ours, theirs = T.expand(self._factor, shape), T.expand(other._factor, shape)
        spread = OPS["triangular_solve"](theirs, ours, upper=False)
        shift = T.expand((other.loc - self.loc).unsqueeze(-1), [*shape[:-1], 1])
        z = OPS["triangular_solve"](theirs, shift, upper=False).squeeze(-1)
        trace = (spread * spread).sum([-2, -1])
        return other._half_log_det() - self._half_log_det() + 0.5 * (trace + (z * z).sum(-1) - self._event_shape[0])


def _solved(factor: Tensor, vectors: Tensor) -> Tensor:
    """The vectors [..., d] multiplied by the inverse of a lower triangular factor; by one solve where there is one factor."""
    if factor.ndim == 2:
        columns = T.transpose(T.reshape(vectors, [-1, factor.shape[-1]]), [1, 0])
        return T.reshape(T.transpose(OPS["triangular_solve"](factor, columns, upper=False), [1, 0]), list(vectors.shape))
    factors = T.expand(factor, [*vectors.shape[:-1], *factor.shape[-2:]])
    return OPS["triangular_solve"](factors, vectors.unsqueeze(-1), upper=False).squeeze(-1)
