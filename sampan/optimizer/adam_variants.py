"""Adam's relatives: Adamax, NAdam, RAdam, Lamb."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..base.kinds import Finite
from ..tensor import Tensor
from .adam import MomentOptimizer
from .buckets import Bucket
from .optimizer import Number, require_rate


class Adamax(MomentOptimizer):
    """Adam by the infinity norm: section 7 of https://arxiv.org/abs/1412.6980.

    Args:
        learning_rate: a float or an LRScheduler.
        beta1: the decay rate of the gradient's mean, in [0, 1).
        beta2: the decay rate of the norm, in [0, 1).
        epsilon: added to the decayed norm.
        parameters: the tensors to train, or parameter groups.
        weight_decay: a float (L2), L1Decay or L2Decay, added to the gradient.
        grad_clip: how gradients are clipped.
        name: goes into the names of its states.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.Adamax(0.01, parameters=layer.parameters())
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    _operator = "adamax_step"
    _operands = ("moment", "inf_norm")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._set_rates(beta1, beta2, epsilon)
        self._state_starts = {"moment": 0.0, "inf_norm": 0.0}
        self._numbers = {"beta1_pow_acc": Number("beta1")}

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        step_size = rate / (1 - bucket.numbers["beta1_pow_acc"])
        return step_size, *self._moments(bucket), bucket.l2, bucket.l1


class NAdam(MomentOptimizer):
    """Adam with Nesterov's momentum: https://openreview.net/forum?id=OM0jvwB8jIp57ZJjtNEZ.

    Args:
        learning_rate: a float or an LRScheduler.
        beta1: the decay rate of the gradient's mean, in [0, 1).
        beta2: the decay rate of its square's mean, in [0, 1).
        epsilon: added to the denominator.
        momentum_decay: how fast the momentum warms up.
        parameters: the tensors to train, or parameter groups.
        weight_decay: a float (L2), L1Decay or L2Decay, added to the gradient.
        grad_clip: how gradients are clipped.
        name: goes into the names of its states.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.NAdam(0.01, parameters=layer.parameters())
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    _operator = "nadam_step"
    _operands = ("moment1", "moment2")
    #: The base of the momentum's warm-up, as the paper has it.
    _WARMUP = 0.96

    def __init__(
        self,
        learning_rate: Any = 0.002,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        momentum_decay: float = 0.004,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        require_rate(type(self).__name__, "learning_rate", self.get_lr(), lambda v: v >= 0, "at least 0")
        self._set_rates(beta1, beta2, epsilon)
        self._momentum_decay = require_rate("NAdam", "momentum_decay", momentum_decay, lambda v: v >= 0, "at least 0")
        self._state_starts = {"moment1": 0.0, "moment2": 0.0}
        kept = Number(1.0, like_parameter=True)
        self._numbers = {"momentum_decay_pow": kept, "beta2_pow": kept, "mu_product": kept}

    def _state_names(self) -> list[str]:
        return [*self._numbers, *self._state_starts]

    def _momentum(self, bucket: Bucket, power: float) -> float:
        return self._option(bucket.group, "beta1") * (1 - 0.5 * power ** self._option(bucket.group, "momentum_decay"))

    def _advance(self, bucket: Bucket) -> None:
        numbers = bucket.numbers
        numbers["momentum_decay_pow"] *= self._WARMUP
        numbers["beta2_pow"] *= self._option(bucket.group, "beta2")
        numbers["mu_product"] *= self._momentum(bucket, numbers["momentum_decay_pow"])

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        power, product = bucket.numbers["momentum_decay_pow"], bucket.numbers["mu_product"]
        following = self._momentum(bucket, power * self._WARMUP)
        momentum_size = rate * following / (1 - product * following)
        gradient_size = rate * (1 - self._momentum(bucket, power)) / (1 - product)
        root = math.sqrt(1 - bucket.numbers["beta2_pow"])
        return momentum_size, gradient_size, root, *self._moments(bucket), bucket.l2, bucket.l1


class RAdam(MomentOptimizer):
    """Adam without its adaptive part until that part's variance is known: https://arxiv.org/abs/1908.03265.

    Args:
        learning_rate: a float or an LRScheduler.
        beta1: the decay rate of the gradient's mean, in [0, 1).
        beta2: the decay rate of its square's mean, in [0, 1).
        epsilon: added to the denominator.
        parameters: the tensors to train, or parameter groups.
        weight_decay: a float (L2), L1Decay or L2Decay, added to the gradient.
        grad_clip: how gradients are clipped.
        name: goes into the names of its states.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.RAdam(0.01, parameters=layer.parameters())
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    _operator = "radam_step"
    _operands = ("moment1", "moment2")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: float = 1e-8,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        require_rate(type(self).__name__, "learning_rate", self.get_lr(), lambda v: v >= 0, "at least 0")
        self._set_rates(beta1, beta2, epsilon)
        self._state_starts = {"moment1": 0.0, "moment2": 0.0}
        kept = Number(1.0, like_parameter=True)
        self._numbers = {"beta1_pow": kept, "beta2_pow": kept, "rho": Number(0.0, like_parameter=True)}

    def _state_names(self) -> list[str]:
        return [*self._numbers, *self._state_starts]

    def _advance(self, bucket: Bucket) -> None:
        numbers = bucket.numbers
        beta1, beta2, _ = self._moments(bucket)
        numbers["beta1_pow"] *= beta1
        numbers["beta2_pow"] *= beta2
        # rho is t * beta2^t / (1 - beta2^t), from its value one step ago
        power = numbers["beta2_pow"]
        numbers["rho"] = (numbers["rho"] * (beta2 - power) + power) / (1 - power)

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        limit = 2 / (1 - self._option(bucket.group, "beta2")) - 1
        length = limit - 2 * bucket.numbers["rho"]
        step_size = rate / (1 - bucket.numbers["beta1_pow"])
        adaptive_size = 0.0
        if length > 5:
            rectifier = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
            adaptive_size = step_size * math.sqrt(rectifier * (1 - bucket.numbers["beta2_pow"]))
        return step_size, adaptive_size, float(length > 5), *self._moments(bucket), bucket.l2, bucket.l1


class Lamb(MomentOptimizer):
    """Adam for large batches, each tensor's step scaled to the norm of its weights: https://arxiv.org/abs/1904.00962.

    Args:
        learning_rate: a float or an LRScheduler.
        lamb_weight_decay: the coefficient of the decay inside the step.
        beta1: the decay rate of the gradient's mean, in [0, 1).
        beta2: the decay rate of its square's mean, in [0, 1).
        epsilon: added to the denominator.
        parameters: the tensors to train, or parameter groups.
        grad_clip: how gradients are clipped.
        exclude_from_weight_decay_fn: a function of the parameter that says whether it does not decay.
        multi_precision: keep float32 copies of 16-bit parameters.
        always_adapt: scale the steps of parameters without decay too.
        name: goes into the names of its states.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.Lamb(0.01, parameters=layer.parameters(), exclude_from_weight_decay_fn=lambda p: p.ndim == 1)
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    _operator = "lamb_step"
    _operands = ("moment1", "moment2")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        lamb_weight_decay: Finite = 0.01,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-6,
        parameters: Any = None,
        grad_clip: Any = None,
        exclude_from_weight_decay_fn: Callable[[Tensor], bool] | None = None,
        multi_precision: bool = False,
        always_adapt: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, None, grad_clip, name, multi_precision)
        self._set_rates(beta1, beta2, epsilon)
        self._keep_powers()
        self._state_starts = {"moment1": 0.0, "moment2": 0.0}
        self._lamb_weight_decay = float(lamb_weight_decay)
        self._exclude_from_weight_decay_fn = exclude_from_weight_decay_fn
        self._always_adapt = bool(always_adapt)

    def _options(self, param: Tensor, group: Mapping[str, Any]) -> tuple[Any, ...]:
        excluded = self._exclude_from_weight_decay_fn
        return (
            0.0 if excluded is not None and excluded(param) else float(group.get("lamb_weight_decay", self._lamb_weight_decay)),
        )

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        (decay,) = bucket.options
        corrections = (1 - bucket.numbers["beta1_pow_acc"], 1 - bucket.numbers["beta2_pow_acc"])
        is_adapted = decay != 0 or self._always_adapt
        return rate, *corrections, decay, is_adapted, *self._moments(bucket), bucket.l2, bucket.l1
