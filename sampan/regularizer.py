"""Regularisers: penalties on the size of parameters, for an optimizer's ``weight_decay`` or a parameter's ``ParamAttr``."""

from __future__ import annotations

import math
from numbers import Real

from .base.errors import ArgumentError, ArgumentTypeError, describe, message


class WeightDecayRegularizer:
    """The base of both penalties.

    Args:
        coeff: the penalty's factor.

    Raises:
        ArgumentTypeError: ``coeff`` is not a number.
        ArgumentError: it is infinite or NaN.
    """

    def __init__(self, coeff: float = 0.0) -> None:
        if not isinstance(coeff, Real):
            raise ArgumentTypeError(message(f"{type(self).__name__}: coeff is {describe(coeff)}", "it must be a number"))
        if not math.isfinite(coeff):
            raise ArgumentError(message(f"{type(self).__name__}: coeff is {coeff}", "it must be finite"))
        self.coeff: float = float(coeff)

    @property
    def _coeff(self) -> float:
        return self.coeff  # Paddle's name, which users' optimizers read

    def __repr__(self) -> str:
        return f"{type(self).__name__}, coeff={self.coeff:f}"


class L1Decay(WeightDecayRegularizer):
    """coeff * sum(|parameter|) on top of the loss: coeff * sign(parameter) on top of its gradient.

    Args:
        coeff: the penalty's factor.

    Example:
        >>> from sampan.regularizer import L1Decay
        >>> L1Decay(0.5)
        L1Decay, coeff=0.500000
    """


class L2Decay(WeightDecayRegularizer):
    """coeff / 2 * sum(parameter^2) on top of the loss: coeff * parameter on top of its gradient.

    Args:
        coeff: the penalty's factor.

    Example:
        >>> from sampan.regularizer import L2Decay
        >>> L2Decay(0.5)
        L2Decay, coeff=0.500000
    """


__all__ = ["L1Decay", "L2Decay"]
