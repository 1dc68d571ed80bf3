"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..base.errors import ArgumentTypeError, message
from ..tensor import Tensor
from .buckets import Bucket
from .optimizer import Number, Optimizer, require_rate


class MomentOptimizer(Optimizer):
    """What Adam and its relatives share: the decay rates of the gradient's mean and of its square's."""

    def _set_rates(self, beta1: Any, beta2: Any, epsilon: Any) -> None:
        kind = type(self).__name__
        self._beta1 = require_rate(kind, "beta1", beta1, lambda v: 0 <= v < 1, "in [0, 1)")
        self._beta2 = require_rate(kind, "beta2", beta2, lambda v: 0 <= v < 1, "in [0, 1)")
        self._epsilon = require_rate(kind, "epsilon", epsilon, lambda v: v >= 0, "at least 0")

    def _keep_powers(self) -> None:
        """Keep beta1^t and beta2^t of the step to come."""
        self._numbers = {"beta1_pow_acc": Number("beta1"), "beta2_pow_acc": Number("beta2")}

    def _moments(self, bucket: Bucket) -> tuple[float, float, float]:
        """beta1, beta2 and epsilon of the bucket's group."""
        group = bucket.group
        return self._option(group, "beta1"), self._option(group, "beta2"), self._option(group, "epsilon")

    def _finish(self, bucket: Bucket) -> None:
        for name, option in (("beta1_pow_acc", "beta1"), ("beta2_pow_acc", "beta2")):
            if name in bucket.numbers:
                bucket.numbers[name] *= self._option(bucket.group, option)


class Adam(MomentOptimizer):
    """Adam, by https://arxiv.org/abs/1412.6980.

    Args:
        learning_rate: a float or an LRScheduler.
        beta1: the decay rate of the gradient's mean, in [0, 1).
        beta2: the decay rate of its square's mean, in [0, 1).
        epsilon: added to the denominator.
        parameters: the tensors to train, or parameter groups.
        weight_decay: a float (L2), L1Decay or L2Decay, added to the gradient.
        grad_clip: how gradients are clipped.
        lazy_mode: of a sparse embedding's table only the rows that the gradient holds are updated, moments too.
        multi_precision: keep float32 copies of 16-bit parameters.
        use_multi_tensor: accepted for compatibility; parameters are always updated many at once.
        amsgrad: keep the largest second moment (https://openreview.net/forum?id=ryQu7f-RZ).
        name: goes into the names of its states.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.Adam(0.01, parameters=layer.parameters())
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    _operator = "adam_step"
    _operands = ("moment1", "moment2", "moment2_max")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        use_multi_tensor: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, multi_precision)
        self._set_rates(beta1, beta2, epsilon)
        self._keep_powers()
        self._lazy_mode = bool(lazy_mode)
        self._state_starts = {"moment1": 0.0, "moment2": 0.0, **({"moment2_max": 0.0} if amsgrad else {})}

    def _updates_rows_alone(self, param: Tensor, group: Mapping[str, Any]) -> bool:
        return self._lazy_mode

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        decay = bucket.options[0] if bucket.options else 0.0
        beta1, beta2, epsilon = self._moments(bucket)
        root = math.sqrt(1 - bucket.numbers["beta2_pow_acc"])
        step_size = rate * root / (1 - bucket.numbers["beta1_pow_acc"])
        kept = 1 - rate * decay if decay else None
        return step_size, epsilon * root, kept, beta1, beta2, bucket.l2, bucket.l1


class AdamW(Adam):
    """Adam with decoupled weight decay, by https://arxiv.org/abs/1711.05101: ``w * (1 - lr * weight_decay)`` before the step.

    Args:
        learning_rate: a float or an LRScheduler.
        beta1: the decay rate of the gradient's mean, in [0, 1).
        beta2: the decay rate of its square's mean, in [0, 1).
        epsilon: added to the denominator.
        parameters: the tensors to train, or parameter groups.
        weight_decay: the decay's coefficient.
        use_lowprecision_moment: accepted for compatibility; moments have the precision of the weights that are updated.
        lr_ratio: a function of the parameter that gives a factor on its learning rate.
        apply_decay_param_fun: a function of the parameter's name that says whether it decays.
        grad_clip: how gradients are clipped.
        lazy_mode: of a sparse embedding's table only the rows that the gradient holds are updated, moments too.
        multi_precision: keep float32 copies of 16-bit parameters.
        amsgrad: keep the largest second moment.
        name: goes into the names of its states.

    Raises:
        ArgumentTypeError: weight_decay is no number; a regularizer is not decoupled.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.AdamW(0.01, parameters=layer.parameters(), apply_decay_param_fun=lambda name: ".w_" in name)
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        parameters: Any = None,
        weight_decay: Any = 0.01,
        use_lowprecision_moment: bool = False,
        lr_ratio: Callable[[Tensor], float] | None = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        if isinstance(weight_decay, bool) or not isinstance(weight_decay, (int, float, Tensor)):
            raise ArgumentTypeError(
                message(
                    f"AdamW(): weight_decay is a {type(weight_decay).__name__}",
                    "its decay is apart from the gradient, so it must be a float",
                    "use Adam for L1Decay and L2Decay",
                )
            )
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameters, weight_decay, grad_clip, lazy_mode, multi_precision,
            amsgrad=amsgrad, name=name,
        )  # fmt: skip
        self._lr_ratio = lr_ratio
        if apply_decay_param_fun is not None and not callable(apply_decay_param_fun):
            raise ArgumentTypeError(
                message(
                    f"AdamW(): apply_decay_param_fun is {apply_decay_param_fun!r}", "it must be a function of a parameter's name"
                )
            )
        self._apply_decay_param_fun = apply_decay_param_fun

    def _rate_factor(self, param: Tensor) -> float:
        return super()._rate_factor(param) * (1.0 if self._lr_ratio is None else float(self._lr_ratio(param)))

    def _decay_of(self, param: Tensor, group: Mapping[str, Any]) -> tuple[float, float]:
        return super()._decay_of(param, {"weight_decay": None})

    def _options(self, param: Tensor, group: Mapping[str, Any]) -> tuple[Any, ...]:
        is_decayed = self._apply_decay_param_fun is None or self._apply_decay_param_fun(param.name)
        return (float(group["weight_decay"] or 0.0) if is_decayed else 0.0,)
