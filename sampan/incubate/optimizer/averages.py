"""LookAhead and ModelAverage: weights that follow the trained ones more slowly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...base.errors import ArgumentError, ArgumentTypeError, message
from ...optimizer import Optimizer
from ...tensor import OPS, Tensor
from ...tensor.functions import no_grad


class LookAhead:
    """Every k steps of an optimizer, the weights go back to a point on the way they came: https://arxiv.org/abs/1907.08610.

    As in Paddle, the slow weights begin as the weights after the first step.

    Args:
        inner_optimizer: the optimizer that makes the steps.
        alpha: where on the way, in [0, 1]: 1 stays.
        k: how many steps.

    Raises:
        ArgumentTypeError: inner_optimizer is no Optimizer.
        ArgumentError: alpha or k out of range.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.incubate.LookAhead(paddle.optimizer.SGD(0.1, parameters=layer.parameters()), alpha=0.5, k=5)
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
        >>> opt.clear_grad()
    """

    def __init__(self, inner_optimizer: Optimizer, alpha: float = 0.5, k: int = 5, name: str | None = None) -> None:
        if not isinstance(inner_optimizer, Optimizer):
            raise ArgumentTypeError(
                message(f"LookAhead(): inner_optimizer is a {type(inner_optimizer).__name__}", "it must be an Optimizer")
            )
        if not 0.0 <= alpha <= 1.0:
            raise ArgumentError(message(f"LookAhead(): alpha={alpha!r}", "it must be in [0, 1]"))
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ArgumentError(message(f"LookAhead(): k={k!r}", "it must be an int of at least 1"))
        self.inner_optimizer, self.alpha, self.k = inner_optimizer, float(alpha), k
        self._steps = 0
        self._slow: dict[int, Tensor] = {}

    @no_grad()
    def step(self) -> None:
        """One step of the optimizer; after every k of them, back."""
        self.inner_optimizer.step()
        self._steps += 1
        for p in self.inner_optimizer._parameter_list:
            if p.stop_gradient:
                continue
            if id(p) not in self._slow:
                self._slow[id(p)] = OPS["clone"](p)
            slow = self._slow[id(p)]
            if self._steps % self.k == 0:
                slow.set_value(slow + self.alpha * (p - slow))
                p.set_value(slow)

    def minimize(
        self, loss: Tensor, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None
    ) -> tuple[list[Any], list[Any]]:
        """Backward, when no gradient is there yet, and one step."""
        if all(p.grad is None for p in self.inner_optimizer._parameter_list):
            loss.backward()
        pairs = [(p, p.grad) for p in self.inner_optimizer._parameter_list if p.grad is not None]
        self.step()
        return [], pairs

    def __getattr__(self, name: str) -> Any:
        # what is not LookAhead's own, such as clear_grad and get_lr, is the optimizer's
        if name == "inner_optimizer":
            raise AttributeError(name)
        return getattr(self.inner_optimizer, name)


class ModelAverage:
    """The mean of the weights over the last steps, to evaluate with.

    The window grows with training: it is ``average_window_rate`` times the number of steps, but no shorter than ``min_average_window`` and no longer than
    ``max_average_window``. When it is full, its sum is kept as the past and a new one begins, so that the mean is over one to two windows.

    Args:
        average_window_rate: the window's part of all steps.
        parameters: the tensors to average.
        min_average_window: the shortest window.
        max_average_window: the longest window.

    Raises:
        ArgumentError: no parameters.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> average = paddle.incubate.ModelAverage(0.15, layer.parameters(), min_average_window=2, max_average_window=10)
        >>> average.step()
        >>> with average.apply():
        ...     y = layer(paddle.ones([1, 2]))
    """

    def __init__(
        self,
        average_window_rate: float,
        parameters: Any = None,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        name: str | None = None,
    ) -> None:
        if parameters is None:
            raise ArgumentError(message("ModelAverage(): parameters is None", "", "pass parameters=model.parameters()"))
        self._rate = float(average_window_rate)
        self._parameters = [p for p in parameters if getattr(p, "do_model_average", True) is not False]
        self._shortest, self._longest = int(min_average_window), int(max_average_window)
        self._steps = self._count = self._past_count = 0
        self._sums = [OPS["zeros_like"](p) for p in self._parameters]
        self._past = [OPS["zeros_like"](p) for p in self._parameters]
        self._kept: list[Tensor] | None = None

    @no_grad()
    def step(self) -> None:
        """Take the present weights into the mean."""
        self._steps += 1
        self._count += 1
        for total, p in zip(self._sums, self._parameters, strict=True):
            total.set_value(total + p)
        if self._count >= self._shortest and self._count >= min(self._longest, int(self._steps * self._rate)):
            for total, past in zip(self._sums, self._past, strict=True):
                past.set_value(total)
                total.set_value(OPS["zeros_like"](total))
            self._past_count, self._count = self._count, 0

    def minimize(
        self, loss: Tensor, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None
    ) -> tuple[list[Any], list[Any]]:
        """``step``."""
        self.step()
        return [], []

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Clear the parameters' gradients."""
        for p in self._parameters:
            p.clear_gradient(set_to_zero)

    @contextmanager
    def apply(self, executor: Any = None, need_restore: bool = True) -> Iterator[None]:
        """A block in which the parameters are their means.

        Args:
            executor: accepted for compatibility.
            need_restore: False: they stay so after the block, until ``restore``.
        """
        count = self._count + self._past_count
        if count:
            with no_grad():
                self._kept = [OPS["clone"](p) for p in self._parameters]
                for p, total, past in zip(self._parameters, self._sums, self._past, strict=True):
                    p.set_value((total + past) / count)
        try:
            yield
        finally:
            if need_restore:
                self.restore()

    @no_grad()
    def restore(self, executor: Any = None) -> None:
        """Give the parameters back the values that they had before ``apply``."""
        if self._kept is not None:
            for p, kept in zip(self._parameters, self._kept, strict=True):
                p.set_value(kept)
            self._kept = None
