"""Schedules that only go down (or up) with the epoch: one closed formula each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from ...base.errors import ArgumentError, ArgumentTypeError, describe, message
from .scheduler import LRScheduler, function, real, whole


class NoamDecay(LRScheduler):
    """Linear warm-up, then decay with the inverse square root of the step ("Attention Is All You Need", section 5.3).

    rate = learning_rate * d_model^-0.5 * min(epoch^-0.5, epoch * warmup_steps^-1.5)

    Args:
        d_model: the model's width; at least 1.
        warmup_steps: steps until the rate peaks; at least 1.
        learning_rate: a factor on the whole curve.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Example:
        >>> from sampan.optimizer.lr import NoamDecay
        >>> schedule = NoamDecay(d_model=64, warmup_steps=4)
        >>> for _ in range(4):
        ...     schedule.step()
        >>> schedule()
        0.0625
    """

    def __init__(
        self, d_model: int, warmup_steps: int, learning_rate: float = 1.0, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.d_model = real("NoamDecay", "d_model", d_model, above=0)
        self.warmup_steps = real("NoamDecay", "warmup_steps", warmup_steps, above=0)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``; 0 at epoch 0."""
        falling = self.last_epoch**-0.5 if self.last_epoch else 1.0
        return self.base_lr * self.d_model**-0.5 * min(falling, self.warmup_steps**-1.5 * self.last_epoch)


class PiecewiseDecay(LRScheduler):
    """A staircase: ``values[i]`` until epoch ``boundaries[i]``, the last value from there on.

    Args:
        boundaries: the epochs at which the rate changes; at least one.
        values: the rates; one more than there are boundaries.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Raises:
        ArgumentError: no boundary, or the number of values does not fit.

    Example:
        >>> from sampan.optimizer.lr import PiecewiseDecay
        >>> schedule = PiecewiseDecay(boundaries=[1, 3], values=[0.1, 0.05, 0.01])
        >>> rates = [schedule()]
        >>> for _ in range(3):
        ...     schedule.step()
        ...     rates.append(schedule())
        >>> rates
        [0.1, 0.05, 0.05, 0.01]
    """

    def __init__(self, boundaries: Sequence[int], values: Sequence[float], last_epoch: int = -1, verbose: bool = False) -> None:
        if len(boundaries) == 0:
            raise ArgumentError(
                message(
                    "PiecewiseDecay: boundaries is empty",
                    "a staircase needs at least one step",
                    "for a constant rate pass a float to the optimizer",
                )
            )
        if len(values) != len(boundaries) + 1:
            raise ArgumentError(
                message(
                    f"PiecewiseDecay: {len(values)} values and {len(boundaries)} boundaries",
                    f"values must have one more: {len(boundaries) + 1}",
                )
            )
        self.boundaries = list(boundaries)
        self.values = [real("PiecewiseDecay", f"values[{i}]", v) for i, v in enumerate(values)]
        super().__init__(self.values[0], last_epoch, verbose)

    def get_lr(self) -> float:
        """The value of the first boundary that still lies ahead, else the last value."""
        ahead = (value for boundary, value in zip(self.boundaries, self.values, strict=False) if self.last_epoch < boundary)
        return next(ahead, self.values[-1])


class NaturalExpDecay(LRScheduler):
    """rate = learning_rate * exp(-gamma * epoch).

    Args:
        learning_rate: the rate at epoch 0.
        gamma: the speed of the decay; greater than 0.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Example:
        >>> from sampan.optimizer.lr import NaturalExpDecay
        >>> schedule = NaturalExpDecay(0.5, gamma=0.1)
        >>> schedule.step()
        >>> round(schedule(), 6)
        0.452419
    """

    def __init__(self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False) -> None:
        self.gamma = real("NaturalExpDecay", "gamma", gamma, above=0)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``."""
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(LRScheduler):
    """rate = learning_rate / (1 + gamma * epoch).

    Args:
        learning_rate: the rate at epoch 0.
        gamma: the speed of the decay.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Example:
        >>> from sampan.optimizer.lr import InverseTimeDecay
        >>> schedule = InverseTimeDecay(0.5, gamma=1.0)
        >>> schedule.step()
        >>> schedule()
        0.25
    """

    def __init__(self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False) -> None:
        self.gamma = real("InverseTimeDecay", "gamma", gamma)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``."""
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class PolynomialDecay(LRScheduler):
    """From ``learning_rate`` to ``end_lr`` in ``decay_steps`` along (1 - epoch / decay_steps)^power.

    Args:
        learning_rate: the rate at epoch 0.
        decay_steps: the length of the way down; at least 1.
        end_lr: the rate at its end.
        power: the polynomial's degree; greater than 0.
        cycle: past the end, start again on a way that is as long as the whole time so far, in place of staying at ``end_lr``.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Example:
        >>> from sampan.optimizer.lr import PolynomialDecay
        >>> schedule = PolynomialDecay(1.0, decay_steps=4, end_lr=0.0)
        >>> schedule.step()
        >>> schedule()
        0.75
    """

    def __init__(
        self,
        learning_rate: float,
        decay_steps: int,
        end_lr: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.decay_steps = whole("PolynomialDecay", "decay_steps", decay_steps)
        self.end_lr = real("PolynomialDecay", "end_lr", end_lr)
        self.power = real("PolynomialDecay", "power", power, above=0)
        self.cycle = cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``."""
        length, at = self.decay_steps, self.last_epoch
        if self.cycle:
            length *= max(1, math.ceil(at / length))
        else:
            at = min(at, length)
        return (self.base_lr - self.end_lr) * (1 - at / length) ** self.power + self.end_lr


class ExponentialDecay(LRScheduler):
    """rate = learning_rate * gamma^epoch.

    Args:
        learning_rate: the rate at epoch 0.
        gamma: the factor of each epoch; between 0 and 1, both excluded.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Example:
        >>> from sampan.optimizer.lr import ExponentialDecay
        >>> schedule = ExponentialDecay(0.5, gamma=0.5)
        >>> schedule.step()
        >>> schedule()
        0.25
    """

    def __init__(self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False) -> None:
        self.gamma = real("ExponentialDecay", "gamma", gamma, above=0, below=1)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``."""
        return self.base_lr * self.gamma**self.last_epoch


class MultiStepDecay(LRScheduler):
    """The rate times ``gamma`` at each milestone.

    Args:
        learning_rate: the rate before the first milestone.
        milestones: the epochs at which the rate changes, in increasing order.
        gamma: the factor; less than 1.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Raises:
        ArgumentTypeError: ``milestones`` is not a list or tuple.
        ArgumentError: the milestones do not increase, or ``gamma`` is not below 1.

    Example:
        >>> from sampan.optimizer.lr import MultiStepDecay
        >>> schedule = MultiStepDecay(0.4, milestones=[1, 3], gamma=0.5)
        >>> schedule.step()
        >>> schedule()
        0.2
    """

    def __init__(
        self, learning_rate: float, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        if not isinstance(milestones, (list, tuple)):
            raise ArgumentTypeError(
                message(f"MultiStepDecay: milestones is {describe(milestones)}", "it must be a list or tuple of epochs")
            )
        if any(later <= earlier for earlier, later in itertools.pairwise(milestones)):
            raise ArgumentError(
                message(
                    f"MultiStepDecay: milestones is {list(milestones)}",
                    "each must be greater than the one before",
                    "sort them and drop repeats",
                )
            )
        self.milestones = milestones
        self.gamma = real("MultiStepDecay", "gamma", gamma, below=1)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``."""
        return self.base_lr * self.gamma ** sum(self.last_epoch >= m for m in self.milestones)


class StepDecay(LRScheduler):
    """The rate times ``gamma`` every ``step_size`` epochs.

    Args:
        learning_rate: the rate at epoch 0.
        step_size: epochs from one change to the next; at least 1.
        gamma: the factor; less than 1.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Example:
        >>> from sampan.optimizer.lr import StepDecay
        >>> schedule = StepDecay(0.5, step_size=2, gamma=0.5)
        >>> for _ in range(2):
        ...     schedule.step()
        >>> schedule()
        0.25
    """

    def __init__(
        self, learning_rate: float, step_size: int, gamma: float = 0.1, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.step_size = whole("StepDecay", "step_size", step_size)
        self.gamma = real("StepDecay", "gamma", gamma, below=1)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``."""
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)


class LambdaDecay(LRScheduler):
    """rate = learning_rate * lr_lambda(epoch).

    Args:
        learning_rate: the rate that the factor applies to.
        lr_lambda: the factor as a function of the epoch.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Example:
        >>> from sampan.optimizer.lr import LambdaDecay
        >>> schedule = LambdaDecay(0.5, lr_lambda=lambda epoch: 0.5 ** epoch)
        >>> schedule.step()
        >>> schedule()
        0.25
    """

    def __init__(
        self, learning_rate: float, lr_lambda: Callable[[int], float], last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.lr_lambda = function("LambdaDecay", "lr_lambda", lr_lambda)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``."""
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(LRScheduler):
    """The product of ``lr_lambda(1)`` to ``lr_lambda(epoch)``, times ``learning_rate``.

    Args:
        learning_rate: the rate at epoch 0.
        lr_lambda: the factor that each epoch applies to the rate of the one before.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Example:
        >>> from sampan.optimizer.lr import MultiplicativeDecay
        >>> schedule = MultiplicativeDecay(0.5, lr_lambda=lambda epoch: 0.5)
        >>> for _ in range(2):
        ...     schedule.step()
        >>> schedule()
        0.125
    """

    def __init__(
        self, learning_rate: float, lr_lambda: Callable[[int], float], last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.lr_lambda = function("MultiplicativeDecay", "lr_lambda", lr_lambda)
        self._product: tuple[int, float] = (0, 1.0)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``; a step forward costs one call of ``lr_lambda``, a jump back starts the product again."""
        done, product = self._product if self._product[0] <= self.last_epoch else (0, 1.0)
        for epoch in range(done + 1, int(self.last_epoch) + 1):
            product *= self.lr_lambda(epoch)
        self._product = (max(int(self.last_epoch), 0), product)
        return self.base_lr * product


class LinearLR(LRScheduler):
    """A straight line from ``learning_rate * start_factor`` to ``learning_rate * end_factor`` over ``total_steps``.

    Args:
        learning_rate: the rate that both factors apply to.
        total_steps: the length of the line; at least 1.
        start_factor: the factor at epoch 0; above 0, at most 1.
        end_factor: the factor from ``total_steps`` on; from 0 to 1.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Example:
        >>> from sampan.optimizer.lr import LinearLR
        >>> schedule = LinearLR(0.8, total_steps=2, start_factor=0.5)
        >>> schedule.step()
        >>> round(schedule(), 6)
        0.6
    """

    def __init__(
        self,
        learning_rate: float,
        total_steps: int,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.total_steps = whole("LinearLR", "total_steps", total_steps)
        self.start_factor = real("LinearLR", "start_factor", start_factor, above=0, most=1)
        self.end_factor = real("LinearLR", "end_factor", end_factor, least=0, most=1)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``."""
        part = min(self.last_epoch, self.total_steps) / self.total_steps
        return self.base_lr * (self.start_factor + (self.end_factor - self.start_factor) * part)
