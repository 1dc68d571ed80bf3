"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..base.errors import ArgumentTypeError, message
from ..tensor import OPS, Tensor
from .optimizer import Bucket, Optimizer, require_rate


class Adam(Optimizer):
    """Adam, by https://arxiv.org/abs/1412.6980.

    Args:
        learning_rate: a float or an LRScheduler.
        beta1: the decay rate of the gradient's mean, in [0, 1).
        beta2: the decay rate of its square's mean, in [0, 1).
        epsilon: added to the denominator.
        parameters: the tensors to train, or parameter groups.
        weight_decay: a float (L2), L1Decay or L2Decay, added to the gradient.
        grad_clip: how gradients are clipped.
        lazy_mode: accepted for compatibility; sparse gradients update only their rows anyway.
        multi_precision: keep float32 copies of 16-bit parameters.
        use_multi_tensor: accepted for compatibility; all parameters are updated by one call anyway.
        amsgrad: keep the largest second moment (https://openreview.net/forum?id=ryQu7f-RZ).
    """

    _power_names = {"beta1_pow_acc": "_beta1", "beta2_pow_acc": "_beta2"}

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
        kind = type(self).__name__
        self._beta1 = require_rate(kind, "beta1", beta1, lambda v: 0 <= v < 1, "in [0, 1)")
        self._beta2 = require_rate(kind, "beta2", beta2, lambda v: 0 <= v < 1, "in [0, 1)")
        self._epsilon = require_rate(kind, "epsilon", epsilon, lambda v: v >= 0, "at least 0")
        self._amsgrad = bool(amsgrad)
        self._state_names = {"moment1": 0.0, "moment2": 0.0, **({"moment2_max": 0.0} if amsgrad else {})}

    def _update(self, b: Bucket) -> None:
        powers = b.states[0].powers
        largest = b.state("moment2_max") if self._amsgrad else []
        decay = b.options[0] if b.options else 0.0
        OPS["adam_step"](
            b.params, b.grads, b.state("moment1"), b.state("moment2"), largest, b.masters, b.lr, powers["beta1_pow_acc"], powers["beta2_pow_acc"],
            self._beta1, self._beta2, self._epsilon, decay, b.l2, b.l1,
        )  # fmt: skip


class AdamW(Adam):
    """Adam with decoupled weight decay, by https://arxiv.org/abs/1711.05101: ``w * (1 - lr * weight_decay)`` before the step.

    Args:
        learning_rate: a float or an LRScheduler.
        beta1: the decay rate of the gradient's mean, in [0, 1).
        beta2: the decay rate of its square's mean, in [0, 1).
        epsilon: added to the denominator.
        parameters: the tensors to train, or parameter groups.
        weight_decay: the decay's coefficient.
        lr_ratio: a function of the parameter that gives a factor on its learning rate.
        apply_decay_param_fun: a function of the parameter's name that says whether it decays.
        grad_clip: how gradients are clipped.
        multi_precision: keep float32 copies of 16-bit parameters.
        amsgrad: keep the largest second moment.
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
            raise ArgumentTypeError(message(f"AdamW(): weight_decay is a {type(weight_decay).__name__}", "it must be a float"))
        super().__init__(
            learning_rate,
            beta1,
            beta2,
            epsilon,
            parameters,
            None,
            grad_clip,
            lazy_mode,
            multi_precision,
            amsgrad=amsgrad,
            name=name,
        )
        self._coefficient = float(weight_decay)
        self._lr_ratio = lr_ratio
        self._decays = apply_decay_param_fun

    def _rate_factor(self, param: Tensor) -> float:
        return 1.0 if self._lr_ratio is None else float(self._lr_ratio(param))

    def _decay_of(self, param: Tensor, group: Mapping[str, Any]) -> tuple[float, float]:
        return super()._decay_of(param, {**group, "weight_decay": None})

    def _options(self, param: Tensor, group: Mapping[str, Any]) -> tuple[Any, ...]:
        is_decayed = self._decays is None or self._decays(param.name)
        return (float(group.get("weight_decay", self._coefficient)) if is_decayed else 0.0,)
