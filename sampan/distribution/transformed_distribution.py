"""TransformedDistribution."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.errors import ArgumentTypeError, message
from ..tensor import Tensor
from .distribution import Distribution
from .transform import CALLS, ChainTransform, Transform, log_det, sum_rightmost


class TransformedDistribution(Distribution):
    """The distribution of f(x) for an x of the base distribution.

    Args:
        base: the distribution of x.
        transforms: the functions that make up f, the first applied first.

    Raises:
        ArgumentTypeError: not a Distribution and Transforms.

    Example:
        >>> import sampan as paddle
        >>> from sampan.distribution import AffineTransform, Normal, TransformedDistribution
        >>> shift = AffineTransform(paddle.to_tensor(1.0), paddle.to_tensor(2.0))
        >>> law = TransformedDistribution(Normal(0.0, 1.0), [shift])
        >>> round(law.log_prob(paddle.to_tensor(1.0)).item(), 4)
        -1.6121
    """

    def __init__(self, base: Distribution, transforms: Sequence[Transform]) -> None:
        if not isinstance(base, Distribution):
            raise ArgumentTypeError(
                message(f"TransformedDistribution(): base is a {type(base).__name__}", "it must be a Distribution")
            )
        if not all(isinstance(t, Transform) for t in transforms):
            raise ArgumentTypeError(
                message("TransformedDistribution(): transforms holds something else", "it must hold Transforms")
            )
        self._base = base
        self._transforms = list(transforms)
        self._chain = ChainTransform(self._transforms)
        shape = self._chain.forward_shape([*base.batch_shape, *base.event_shape])
        base_rank = len(base.event_shape)
        rank = max(self._chain._codomain_rank, base_rank + self._chain._codomain_rank - self._chain._domain_rank)
        super().__init__(shape[: len(shape) - rank], shape[len(shape) - rank :])

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, through which no gradient flows."""
        return self._chain.forward(self._base.sample(shape)).detach()

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values, differentiable in the parameters."""
        return self._chain.forward(self._base.rsample(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density: the base's, less that of the Jacobian's determinant."""
        rank, total, y = len(self.event_shape), 0.0, value
        for transform in reversed(self._transforms):
            x = transform.inverse(y)
            rank += transform._domain_rank - transform._codomain_rank
            total = total - log_det(transform, x, rank - transform._domain_rank)
            y = x
        return total + sum_rightmost(self._base.log_prob(y), rank - len(self._base.event_shape))


CALLS[Distribution] = lambda transform, base: TransformedDistribution(base, [transform])
