"""The schedule that listens to a metric."""

from __future__ import annotations

import math
from typing import Any

from ...base.errors import ArgumentError, ArgumentTypeError, describe, message
from .scheduler import LRScheduler, choice, real, whole


class ReduceOnPlateau(LRScheduler):
    """The rate times ``factor`` once a metric has not become better for more than ``patience`` steps.

    Args:
        learning_rate: the rate to start from.
        mode: ``'min'`` when a smaller metric is better (a loss), ``'max'`` when a larger one is.
        factor: what the rate is multiplied by; less than 1.
        patience: how many steps without improvement are let pass.
        threshold: how much better a metric must be to count.
        threshold_mode: ``'rel'`` measures that as a part of the best value, ``'abs'`` as a difference.
        cooldown: steps after a reduction in which the metric is not looked at.
        min_lr: the lowest rate.
        epsilon: a change of the rate smaller than this is not made.
        verbose: print each change.

    Raises:
        ArgumentTypeError: an argument is not a number.
        ArgumentError: ``mode``, ``threshold_mode`` or ``factor`` is out of range.

    Example:
        >>> from sampan.optimizer.lr import ReduceOnPlateau
        >>> schedule = ReduceOnPlateau(1.0, factor=0.5, patience=1)
        >>> for loss in [0.9, 0.9, 0.9]:
        ...     schedule.step(loss)
        >>> schedule()
        0.5
    """

    def __init__(
        self,
        learning_rate: float,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        epsilon: float = 1e-8,
        verbose: bool = False,
    ) -> None:
        # The base class's constructor is not used: it takes a step, and a step needs a metric.
        self.mode = choice("ReduceOnPlateau", "mode", mode, ("min", "max"))
        self.threshold_mode = choice("ReduceOnPlateau", "threshold_mode", threshold_mode, ("rel", "abs"))
        self.factor = real("ReduceOnPlateau", "factor", factor, below=1)
        self.base_lr = real("ReduceOnPlateau", "learning_rate", learning_rate, least=0)
        self.patience = whole("ReduceOnPlateau", "patience", patience, least=0)
        self.threshold = real("ReduceOnPlateau", "threshold", threshold)
        self.cooldown = whole("ReduceOnPlateau", "cooldown", cooldown, least=0)
        self.min_lr = real("ReduceOnPlateau", "min_lr", min_lr)
        self.epsilon = real("ReduceOnPlateau", "epsilon", epsilon)
        self.verbose = verbose
        self.best: float | None = None
        self.cooldown_counter = 0
        self.num_bad_epochs = 0
        self.last_lr = self.base_lr
        self.last_epoch = 0
        self._var_name = None

    def state_keys(self) -> None:
        """Set ``self.keys``: the counters and the best metric come on top of the usual state."""
        self.keys = ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at a metric and reduce the rate when it is time.

        Args:
            metrics: a number, or an array or tensor with one element.
            epoch: the epoch to go to; one more than the last when it is None.

        Raises:
            ArgumentTypeError: ``metrics`` is not a number.
            ArgumentError: ``metrics`` has more than one element, or none.
        """
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        value = _number(metrics)
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs <= self.patience:
            return
        self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        reduced = max(self.last_lr * self.factor, self.min_lr)
        if self.last_lr - reduced > self.epsilon:
            self.last_lr = reduced
            if self.verbose:
                print(f"Epoch {self.last_epoch}: ReduceOnPlateau set learning rate to {self.last_lr}.")

    def _is_better(self, value: float) -> bool:
        if self.best is None:
            return True
        margin = self.threshold * self.best if self.threshold_mode == "rel" else self.threshold
        return value < self.best - margin if self.mode == "min" else value > self.best + margin


def _number(metrics: Any) -> float:
    shape = getattr(metrics, "shape", ())
    if math.prod(shape) != 1:
        raise ArgumentError(
            message(f"ReduceOnPlateau.step(): metrics has the shape {list(shape)}", "it must have one element", "pass its mean")
        )
    if isinstance(metrics, str) or not hasattr(metrics, "__float__"):
        raise ArgumentTypeError(
            message(
                f"ReduceOnPlateau.step(): metrics is {describe(metrics)}",
                "it must be a number, or an array or tensor with one element",
            )
        )
    return float(metrics.item() if hasattr(metrics, "item") else metrics)
