"""Independent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..tensor import Tensor
from .distribution import Distribution
from .transform import sum_rightmost


class Independent(Distribution):
    """A batch of distributions as one distribution over a larger event: the last axes of the batch become axes of the value.

    Args:
        base: the batch.
        reinterpreted_batch_rank: how many axes.

    Raises:
        ArgumentError: more axes than the batch has.

    Example:
        >>> import sampan as paddle
        >>> law = paddle.distribution.Independent(paddle.distribution.Normal(paddle.zeros([3]), paddle.ones([3])), 1)
        >>> law.event_shape
        (3,)
    """

    def __init__(self, base: Distribution, reinterpreted_batch_rank: int) -> None:
        if not isinstance(base, Distribution):
            raise ArgumentTypeError(message(f"Independent(): base is a {type(base).__name__}", "it must be a Distribution"))
        if not 0 < reinterpreted_batch_rank <= len(base.batch_shape):
            raise ArgumentError(
                message(
                    f"Independent(): reinterpreted_batch_rank={reinterpreted_batch_rank!r}",
                    f"it must be in [1, {len(base.batch_shape)}]",
                )
            )
        self._base, self._rank = base, reinterpreted_batch_rank
        cut = len(base.batch_shape) - reinterpreted_batch_rank
        super().__init__(base.batch_shape[:cut], base.batch_shape[cut:] + base.event_shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self._base.mean

    @property
    def variance(self) -> Tensor:
        """The variance of each element."""
        return self._base.variance

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, through which no gradient flows."""
        return self._base.sample(shape)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, differentiable in the parameters."""
        return self._base.rsample(shape)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the probability, or of its density."""
        return sum_rightmost(self._base.log_prob(value), self._rank)

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        return sum_rightmost(self._base.entropy(), self._rank)
