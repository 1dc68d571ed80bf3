"""The base of all learning-rate schedules, and the argument checks they share."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

from ...base.errors import ArgumentError, ArgumentTypeError, describe, message
from ...tensor.explained import Explained


def real(
    owner: str,
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> float:
    """``value`` as a float, when it is a real number with above < value < below and least <= value <= most."""
    if not isinstance(value, Real):
        raise ArgumentTypeError(
            message(f"{owner}: {name} is {describe(value)} ({type(value).__name__})", "it must be a number (int or float)")
        )
    number = float(value)
    if not (above < number < below and least <= number <= most):
        limits = [f"greater than {above:g}"] * (above > -math.inf) + [f"at least {least:g}"] * (least > -math.inf)
        limits += [f"less than {below:g}"] * (below < math.inf) + [f"at most {most:g}"] * (most < math.inf)
        raise ArgumentError(message(f"{owner}: {name} is {value}", f"it must be {' and '.join(limits) or 'a finite number'}"))
    return number


def whole(owner: str, name: str, value: Any, *, least: int = 1) -> int:
    """``value`` as an int, when it is an integer of at least ``least``."""
    if not isinstance(value, Integral):
        raise ArgumentTypeError(message(f"{owner}: {name} is {describe(value)} ({type(value).__name__})", "it must be an int"))
    if value < least:
        raise ArgumentError(message(f"{owner}: {name} is {value}", f"it must be at least {least}"))
    return int(value)


def choice(owner: str, name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """``value``, when it is one of the allowed words."""
    if value not in allowed:
        raise ArgumentError(message(f"{owner}: {name} is {value!r}", f"it must be one of {', '.join(map(repr, allowed))}"))
    return str(value)


def function(owner: str, name: str, value: Any) -> Callable[..., float]:
    """``value``, when it can be called."""
    if not callable(value):
        raise ArgumentTypeError(
            message(f"{owner}: {name} is {describe(value)}", "it must be a function of the epoch that returns a number")
        )
    return value  # type: ignore[no-any-return]


class LRScheduler(Explained):
    """A learning rate that changes with the number of ``step`` calls.

    To write a schedule of your own, derive from this class and define ``get_lr``, which may use ``self.base_lr``,
    ``self.last_lr`` and ``self.last_epoch``. The constructor takes the first step, so set your own attributes before you call it.

    Args:
        learning_rate: the rate to start from; at least 0.
        last_epoch: the epoch that was finished last, when training is resumed; -1 for a fresh start.
        verbose: print the rate at every step.

    Raises:
        ArgumentTypeError: ``learning_rate`` is not a number.
        ArgumentError: ``learning_rate`` is negative.

    Example:
        >>> from sampan.optimizer.lr import LRScheduler
        >>> class Halving(LRScheduler):
        ...     def get_lr(self):
        ...         return self.base_lr / 2 ** self.last_epoch
        >>> schedule = Halving(0.4)
        >>> schedule.step()
        >>> schedule()
        0.2
    """

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False) -> None:
        self.base_lr = real(type(self).__name__, "learning_rate", learning_rate, least=0.0)
        self.last_lr: Any = self.base_lr
        self.last_epoch = whole(type(self).__name__, "last_epoch", last_epoch, least=-1)
        self.verbose = verbose
        self._var_name: str | None = None
        self.step()

    def __call__(self) -> float:
        """The learning rate in force."""
        return self.last_lr  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        given = inspect.signature(type(self).__init__).parameters
        shown = [f"{n}={getattr(self, n)!r}" for n in given if n not in ("self", "last_epoch", "verbose") and hasattr(self, n)]
        return f"{type(self).__name__}({', '.join([*shown, f'last_epoch={self.last_epoch}', f'last_lr={self.last_lr}'])})"

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to ``epoch``, and set the learning rate for it.

        Args:
            epoch: the epoch to go to, forward or back; one more than the last when it is None.
        """
        if epoch is not None and not isinstance(epoch, Real):
            raise ArgumentTypeError(
                message(f"{type(self).__name__}.step(): epoch is {describe(epoch)}", "it must be a number or None")
            )
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch  # type: ignore[assignment]
        self.last_lr = self.get_lr()
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def get_lr(self) -> float:
        """The learning rate at ``self.last_epoch``; every schedule defines it."""
        raise NotImplementedError(
            message(
                f"{type(self).__name__} has no get_lr()",
                "a schedule must say what its rate is",
                "define get_lr(self) and return the rate at self.last_epoch",
            )
        )

    def state_keys(self) -> None:
        """Set ``self.keys``, the attributes that ``state_dict`` holds; a schedule with more state overrides it."""
        self.keys = ["last_epoch", "last_lr"]

    def state_dict(self) -> dict[str, Any]:
        """The schedule's state: plain numbers under the names that ``state_keys`` lists."""
        self.state_keys()
        state = {}
        for key in self.keys:
            if key in self.__dict__:
                state[key] = _plain(self.__dict__[key])
        return state

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a state that ``state_dict`` returned.

        Args:
            state_dict: the state; it must hold every name in ``self.keys``.

        Raises:
            ArgumentError: a name is missing.
        """
        self.state_keys()
        missing = [k for k in self.keys if k not in state_dict]
        if missing:
            raise _StateError(
                message(
                    f"{type(self).__name__}.set_state_dict(): the state has no {', '.join(missing)}",
                    f"it holds {', '.join(map(str, state_dict)) or 'nothing'}",
                    "pass what state_dict() of the same kind of schedule returned",
                )
            )
        for key in self.keys:
            self.__dict__[key] = _plain(state_dict[key])
        if len(state_dict) > len(self.keys):
            extra = ", ".join(str(k) for k in state_dict if k not in self.keys)
            warnings.warn(
                f"{type(self).__name__}.set_state_dict(): not used: {extra}; was it saved by another kind of schedule?",
                stacklevel=2,
            )

    set_dict = set_state_dict


class _StateError(ArgumentError, RuntimeError):
    """A state does not fit; also a RuntimeError, which is what Paddle's users catch here."""


def _plain(value: Any) -> Any:
    """A one-element array or tensor as a Python number; everything else as it is."""
    if getattr(value, "shape", None) is None or not hasattr(value, "item"):
        return value
    return value.item() if math.prod(value.shape) == 1 else value
