"""Adagrad, Adadelta and RMSProp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..tensor import Tensor
from .buckets import Bucket
from .optimizer import Optimizer, require_rate


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients: https://jmlr.org/papers/v12/duchi11a.html.

    Args:
        learning_rate: a float or an LRScheduler.
        epsilon: added to the denominator.
        parameters: the tensors to train, or parameter groups.
        weight_decay: a float (L2), L1Decay or L2Decay, added to the gradient.
        grad_clip: how gradients are clipped.
        name: goes into the names of its states.
        initial_accumulator_value: what the sum starts from.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.Adagrad(0.1, parameters=layer.parameters())
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    _operator = "adagrad_step"
    _operands = ("moment",)

    def __init__(
        self,
        learning_rate: Any,
        epsilon: float = 1e-6,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._epsilon = require_rate("Adagrad", "epsilon", epsilon, lambda v: v >= 0, "at least 0")
        start = require_rate("Adagrad", "initial_accumulator_value", initial_accumulator_value, lambda v: v >= 0, "at least 0")
        self._state_starts = {"moment": start}

    def _updates_rows_alone(self, param: Tensor, group: Mapping[str, Any]) -> bool:
        return not any(self._decay_of(param, group))

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        return rate, self._option(bucket.group, "epsilon"), bucket.l2, bucket.l1


class Adadelta(Optimizer):
    """Steps in the units of the weights, by running means of squared gradients and squared steps: https://arxiv.org/abs/1212.5701.

    Args:
        learning_rate: a float or an LRScheduler.
        epsilon: added to both means.
        rho: the decay rate of the means, in [0, 1).
        parameters: the tensors to train, or parameter groups.
        weight_decay: a float (L2), L1Decay or L2Decay, added to the gradient.
        grad_clip: how gradients are clipped.
        name: goes into the names of its states.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.Adadelta(1.0, parameters=layer.parameters())
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    _operator = "adadelta_step"
    _operands = ("_avg_squared_grad", "_avg_squared_update")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        epsilon: float = 1e-6,
        rho: float = 0.95,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._epsilon = require_rate("Adadelta", "epsilon", epsilon, lambda v: v >= 0, "at least 0")
        self._rho = require_rate("Adadelta", "rho", rho, lambda v: 0 <= v < 1, "in [0, 1)")
        self._state_starts = {"_avg_squared_grad": 0.0, "_avg_squared_update": 0.0}

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        return rate, self._option(bucket.group, "rho"), self._option(bucket.group, "epsilon"), bucket.l2, bucket.l1


class RMSProp(Optimizer):
    """Steps divided by the root of a running mean of squared gradients: http://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf.

    Args:
        learning_rate: a float or an LRScheduler.
        rho: the decay rate of the mean, in [0, 1).
        epsilon: added under the root.
        momentum: how much of the velocity stays.
        centered: divide by the gradients' standard deviation in place of their root mean square.
        parameters: the tensors to train, or parameter groups.
        weight_decay: a float (L2), L1Decay or L2Decay, added to the gradient.
        grad_clip: how gradients are clipped.
        name: goes into the names of its states.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.RMSProp(0.01, parameters=layer.parameters(), momentum=0.9)
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    _operator = "rmsprop_step"
    _operands = ("momentum", "mean_square", "mean_grad")

    def __init__(
        self,
        learning_rate: Any,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._rho = require_rate("RMSProp", "rho", rho, lambda v: 0 <= v < 1, "in [0, 1)")
        self._epsilon = require_rate("RMSProp", "epsilon", epsilon, lambda v: v >= 0, "at least 0")
        self._momentum = require_rate("RMSProp", "momentum", momentum, lambda v: v >= 0, "at least 0")
        self._centered = bool(centered)
        self._state_starts = {"momentum": 0.0, "mean_square": 0.0, "mean_grad": 0.0}

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        options = (self._option(bucket.group, name) for name in ("rho", "epsilon", "momentum", "centered"))
        return rate, *options, bucket.l2, bucket.l1
