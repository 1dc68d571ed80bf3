"""Schedules that go up and down: cosine annealing, warm restarts, cycles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ...base.errors import ArgumentError, ArgumentTypeError, describe, message
from .scheduler import LRScheduler, choice, function, real, whole


class CosineAnnealingDecay(LRScheduler):
    """Half a cosine from ``learning_rate`` to ``eta_min`` in ``T_max`` epochs, and back in the next (SGDR, without restarts).

    rate = eta_min + (learning_rate - eta_min) * (1 + cos(pi * epoch / T_max)) / 2

    The rate depends on the epoch alone: a schedule built with ``last_epoch=k`` goes on exactly as one that was stepped there.

    Args:
        learning_rate: the rate at epoch 0.
        T_max: epochs on the way down; at least 1.
        eta_min: the lowest rate.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Example:
        >>> from sampan.optimizer.lr import CosineAnnealingDecay
        >>> schedule = CosineAnnealingDecay(0.5, T_max=4)
        >>> for _ in range(2):
        ...     schedule.step()
        >>> round(schedule(), 6)
        0.25
    """

    def __init__(self, learning_rate: float, T_max: int, eta_min: float = 0, last_epoch: int = -1, verbose: bool = False) -> None:
        self.T_max = whole("CosineAnnealingDecay", "T_max", T_max)
        self.eta_min = real("CosineAnnealingDecay", "eta_min", eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``."""
        return _cosine(self.base_lr, self.eta_min, self.last_epoch / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that jumps back to ``learning_rate`` after ``T_0`` epochs, then after ``T_0 * T_mult``, and so on (SGDR).

    Args:
        learning_rate: the rate at every restart.
        T_0: epochs until the first restart; at least 1.
        T_mult: how much longer each run is than the one before; at least 1.
        eta_min: the lowest rate.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Example:
        >>> from sampan.optimizer.lr import CosineAnnealingWarmRestarts
        >>> schedule = CosineAnnealingWarmRestarts(0.5, T_0=2, T_mult=2)
        >>> rates = [schedule()]
        >>> for _ in range(3):
        ...     schedule.step()
        ...     rates.append(round(schedule(), 4))
        >>> rates
        [0.5, 0.25, 0.5, 0.4268]
    """

    def __init__(
        self, learning_rate: float, T_0: int, T_mult: int = 1, eta_min: float = 0, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.T_0 = whole("CosineAnnealingWarmRestarts", "T_0", T_0)
        self.T_mult = whole("CosineAnnealingWarmRestarts", "T_mult", T_mult)
        self.eta_min = real("CosineAnnealingWarmRestarts", "eta_min", eta_min)
        self._at: float = 0.0
        super().__init__(learning_rate, last_epoch, verbose)

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to ``epoch``, which may lie between two whole epochs.

        Args:
            epoch: where to go; at least 0. ``last_epoch`` becomes its whole part.
        """
        if epoch is not None and real("CosineAnnealingWarmRestarts.step()", "epoch", epoch) < 0:
            raise ArgumentError(message(f"CosineAnnealingWarmRestarts.step(): epoch is {epoch}", "it must be at least 0"))
        self._at = self.last_epoch + 1 if epoch is None else epoch
        super().step(math.floor(self._at))

    def get_lr(self) -> float:
        """The rate at the epoch that was stepped to."""
        length, at = self.T_0, self._at
        if self.T_mult == 1:
            at %= length
        while at >= length:
            at -= length
            length *= self.T_mult
        return _cosine(self.base_lr, self.eta_min, at / length)


class OneCycleLR(LRScheduler):
    """One rise to ``max_learning_rate`` and one fall to ``end_learning_rate`` over the whole training ("Super-Convergence").

    With ``three_phase`` the fall stops at the first rate after a phase as long as the rise, then goes on to the end.

    Args:
        max_learning_rate: the peak.
        total_steps: steps of the whole training; at least 1. One more than that is an error.
        divide_factor: the first rate is the peak divided by this.
        end_learning_rate: the last rate.
        phase_pct: the part of the steps that the rise takes; from 0 to 1, at most 0.5 with three phases.
        anneal_strategy: ``'cos'`` or ``'linear'``.
        three_phase: rise, fall to the first rate, fall to the last rate.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Raises:
        ArgumentError: a value is out of range, or ``step`` was called more than ``total_steps`` times.

    Example:
        >>> from sampan.optimizer.lr import OneCycleLR
        >>> schedule = OneCycleLR(1.0, total_steps=10)
        >>> for _ in range(2):
        ...     schedule.step()
        >>> schedule()
        1.0
    """

    def __init__(
        self,
        max_learning_rate: float,
        total_steps: int,
        divide_factor: float = 25.0,
        end_learning_rate: float = 0.0001,
        phase_pct: float = 0.3,
        anneal_strategy: str = "cos",
        three_phase: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        peak = real("OneCycleLR", "max_learning_rate", max_learning_rate)
        self.total_steps = whole("OneCycleLR", "total_steps", total_steps)
        first = peak / real("OneCycleLR", "divide_factor", divide_factor, above=0)
        end = real("OneCycleLR", "end_learning_rate", end_learning_rate)
        rise = real("OneCycleLR", "phase_pct", phase_pct, least=0, most=1) * self.total_steps
        self._curve = _cosine if choice("OneCycleLR", "anneal_strategy", anneal_strategy, ("cos", "linear")) == "cos" else _line
        if three_phase and phase_pct >= 0.5:
            raise ArgumentError(
                message(
                    f"OneCycleLR: phase_pct is {phase_pct}",
                    "three phases take 2 * phase_pct of the steps and more, so it must be less than 0.5",
                )
            )
        # Each phase is (its last step, the rate it starts from, the rate it ends at).
        last = self.total_steps - 1
        self._phases = (
            [(rise - 1, first, peak), (2 * rise - 2, peak, first), (last, first, end)]
            if three_phase
            else [(rise - 1, first, peak), (last, peak, end)]
        )
        super().__init__(first, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``."""
        if self.last_epoch > self.total_steps:
            raise ArgumentError(
                message(
                    f"OneCycleLR: step {self.last_epoch + 1} of {self.total_steps}",
                    "the cycle is over",
                    "make total_steps the number of steps of the whole training (epochs * batches of an epoch)",
                )
            )
        phase = next((i for i, (end, _, _) in enumerate(self._phases) if self.last_epoch <= end), len(self._phases) - 1)
        start = self._phases[phase - 1][0] if phase else 0.0
        end, first, last = self._phases[phase]
        return self._curve(first, last, (self.last_epoch - start) / (end - start) if end > start else 1.0)


class CyclicLR(LRScheduler):
    """Up from ``base_learning_rate`` to ``max_learning_rate`` and down again, over and over ("Cyclical Learning Rates").

    Args:
        base_learning_rate: the lower edge.
        max_learning_rate: the upper edge.
        step_size_up: steps of the way up; at least 1.
        step_size_down: steps of the way down; ``step_size_up`` when it is None.
        mode: the height of the peaks: ``'triangular'`` keeps it, ``'triangular2'`` halves it every cycle, ``'exp_range'``
            multiplies it by ``exp_gamma`` every step. Not used when ``scale_fn`` is given.
        exp_gamma: the factor of ``'exp_range'``.
        scale_fn: the height as a function of the cycle's number (from 1) or of the step (from 0).
        scale_mode: which of the two ``scale_fn`` gets: ``'cycle'`` or ``'iterations'``.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Example:
        >>> from sampan.optimizer.lr import CyclicLR
        >>> schedule = CyclicLR(0.25, 0.75, step_size_up=2)
        >>> rates = [schedule()]
        >>> for _ in range(3):
        ...     schedule.step()
        ...     rates.append(schedule())
        >>> rates
        [0.25, 0.5, 0.75, 0.5]
    """

    def __init__(
        self,
        base_learning_rate: float,
        max_learning_rate: float,
        step_size_up: int,
        step_size_down: int | None = None,
        mode: str = "triangular",
        exp_gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.max_lr = real("CyclicLR", "max_learning_rate", max_learning_rate, least=0)
        self._up = whole("CyclicLR", "step_size_up", step_size_up)
        self._down = self._up if step_size_down is None else whole("CyclicLR", "step_size_down", step_size_down)
        gamma = real("CyclicLR", "exp_gamma", exp_gamma)
        self.scale_mode = choice("CyclicLR", "scale_mode", scale_mode, ("cycle", "iterations"))
        if scale_fn is not None:
            self.scale_fn = function("CyclicLR", "scale_fn", scale_fn)
        elif choice("CyclicLR", "mode", mode, ("triangular", "triangular2", "exp_range")) == "triangular":
            self.scale_fn, self.scale_mode = (lambda cycle: 1.0), "cycle"
        elif mode == "triangular2":
            self.scale_fn, self.scale_mode = (lambda cycle: 0.5 ** (cycle - 1)), "cycle"
        else:
            self.scale_fn, self.scale_mode = (lambda step: gamma**step), "iterations"
        super().__init__(base_learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``."""
        cycle, step = divmod(self.last_epoch, self._up + self._down)
        part = step / self._up if step <= self._up else (self._up + self._down - step) / self._down
        return self.base_lr + (self.max_lr - self.base_lr) * part * self.scale_fn(
            cycle + 1 if self.scale_mode == "cycle" else self.last_epoch
        )


class LinearWarmup(LRScheduler):
    """A straight line from ``start_lr`` to ``end_lr`` over ``warmup_steps``, then ``learning_rate``, which may be a schedule.

    Args:
        learning_rate: the rate after the warm-up: a number, or a schedule, which this one steps from epoch 0 on.
        warmup_steps: steps of the warm-up; at least 1.
        start_lr: the first rate.
        end_lr: the rate that the line leads to; greater than ``start_lr``.
        last_epoch: the epoch that was finished last; -1 for a fresh start.
        verbose: print the rate at every step.

    Raises:
        ArgumentTypeError: ``learning_rate`` is neither a number nor a schedule.
        ArgumentError: ``end_lr`` is not greater than ``start_lr``.

    Example:
        >>> from sampan.optimizer.lr import LinearWarmup
        >>> schedule = LinearWarmup(0.5, warmup_steps=2, start_lr=0.0, end_lr=0.5)
        >>> schedule.step()
        >>> schedule()
        0.25
    """

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        warmup_steps: int,
        start_lr: float,
        end_lr: float,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(learning_rate, (int, float, LRScheduler)):
            raise ArgumentTypeError(
                message(
                    f"LinearWarmup: learning_rate is {describe(learning_rate)}", "it must be a number or a schedule (LRScheduler)"
                )
            )
        self.learning_rate = (
            learning_rate if isinstance(learning_rate, LRScheduler) else real("LinearWarmup", "learning_rate", learning_rate)
        )
        self.warmup_steps = whole("LinearWarmup", "warmup_steps", warmup_steps, least=1)
        self.start_lr = real("LinearWarmup", "start_lr", start_lr)
        self.end_lr = real("LinearWarmup", "end_lr", end_lr)
        if self.end_lr <= self.start_lr:
            raise ArgumentError(
                message(
                    f"LinearWarmup: start_lr is {start_lr} and end_lr is {end_lr}",
                    "a warm-up rises: end_lr must be greater than start_lr",
                )
            )
        super().__init__(self.start_lr, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at ``last_epoch``; past the warm-up it steps the inner schedule."""
        if self.last_epoch < self.warmup_steps:
            return self.start_lr + (self.end_lr - self.start_lr) * self.last_epoch / self.warmup_steps
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return self.learning_rate

    def state_dict(self) -> dict[str, Any]:
        """The state, with that of the inner schedule under ``LinearWarmup_LR``."""
        state = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            state["LinearWarmup_LR"] = self.learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a state that ``state_dict`` returned, the inner schedule's too."""
        outer = dict(state_dict)
        inner = outer.pop("LinearWarmup_LR", None)
        if isinstance(self.learning_rate, LRScheduler):
            if inner is None:
                raise ArgumentError(
                    message(
                        "LinearWarmup.set_state_dict(): the state has no LinearWarmup_LR",
                        "its learning_rate is a schedule, whose state is needed too",
                    )
                )
            self.learning_rate.set_state_dict(inner)
        super().set_state_dict(outer)

    set_dict = set_state_dict


def _cosine(first: float, last: float, part: float) -> float:
    """The value at ``part`` of the way along half a cosine."""
    return last + (first - last) * (1 + math.cos(math.pi * part)) / 2


def _line(first: float, last: float, part: float) -> float:
    """The value at ``part`` of the way along a straight line."""
    return first + (last - first) * part
