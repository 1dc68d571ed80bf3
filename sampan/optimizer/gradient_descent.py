"""SGD and Momentum."""

from __future__ import annotations

from typing import Any

from ..tensor import OPS
from .optimizer import Bucket, Optimizer, require_rate


class SGD(Optimizer):
    """Stochastic gradient descent: ``w - lr * g``.

    Args:
        learning_rate: a float or an LRScheduler.
        parameters: the tensors to train, or parameter groups.
        weight_decay: a float (L2), L1Decay or L2Decay.
        grad_clip: how gradients are clipped.
        multi_precision: keep float32 copies of 16-bit parameters.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, multi_precision)

    def _update(self, b: Bucket) -> None:
        OPS["sgd_step"](b.params, b.grads, b.masters, b.lr, l2=b.l2, l1=b.l1)


class Momentum(Optimizer):
    """Gradient descent with a velocity: ``v = momentum * v + g; w - lr * v``.

    Args:
        learning_rate: a float or an LRScheduler.
        momentum: how much of the velocity stays.
        parameters: the tensors to train, or parameter groups.
        use_nesterov: step by ``g + momentum * v``.
        weight_decay: a float (L2), L1Decay or L2Decay.
        grad_clip: how gradients are clipped.
        multi_precision: keep float32 copies of 16-bit parameters.
        rescale_grad: a factor on every gradient.
    """

    _state_names = {"velocity": 0.0}

    def __init__(
        self,
        learning_rate: Any = 0.001,
        momentum: float = 0.9,
        parameters: Any = None,
        use_nesterov: bool = False,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, multi_precision)
        self._momentum = float(momentum)
        self._use_nesterov = bool(use_nesterov)
        self._rescale_grad = require_rate("Momentum", "rescale_grad", rescale_grad, lambda v: v == v, "a number")

    def _update(self, b: Bucket) -> None:
        OPS["momentum_step"](
            b.params,
            b.grads,
            b.state("velocity"),
            b.masters,
            b.lr,
            self._momentum,
            self._use_nesterov,
            self._rescale_grad,
            b.l2,
            b.l1,
        )
