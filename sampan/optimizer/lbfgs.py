"""L-BFGS: a quasi-Newton method that evaluates the loss itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ..base import spans
from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..base.kinds import Count, NotNegative
from ..tensor import Tensor, to_tensor
from ..tensor.functions import enable_grad, no_grad
from .line_search import Point, Vector, strong_wolfe
from .optimizer import Optimizer


class LBFGS(Optimizer):
    """L-BFGS: Nocedal and Wright, Numerical Optimization, second edition, section 7.2.

    Every step calls the closure up to ``max_eval`` times. All parameters are one vector; it is kept in float64 on the host.

    Args:
        learning_rate: the first step along each direction.
        max_iter: directions in a step.
        max_eval: calls of the closure in a step; by default ``max_iter * 5 // 4``.
        tolerance_grad: done when no element of the gradient is larger.
        tolerance_change: done when the loss or the parameters change less.
        history_size: how many past steps shape a direction.
        line_search_fn: ``"strong_wolfe"``, or None for fixed steps.
        parameters: the tensors to train; no groups.
        weight_decay: a float (L2), L1Decay or L2Decay, added to the gradient.
        grad_clip: how gradients are clipped.
        name: goes into the names of its states.

    Raises:
        ArgumentError: an unknown line search, or several groups.

    Example:
        >>> import sampan as paddle
        >>> w = paddle.create_parameter([2], "float32")
        >>> target = paddle.to_tensor([1.0, -2.0])
        >>> opt = paddle.optimizer.LBFGS(parameters=[w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     opt.clear_grad()
        ...     loss = ((w - target) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> loss = opt.step(closure)
        >>> [round(v, 3) for v in w.tolist()]
        [1.0, -2.0]
    """

    def __init__(
        self,
        learning_rate: float = 1.0,
        max_iter: Count = 20,
        max_eval: Count | None = None,
        tolerance_grad: NotNegative = 1e-7,
        tolerance_change: NotNegative = 1e-9,
        history_size: Count = 100,
        line_search_fn: Literal["strong_wolfe"] | None = None,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        if len(self._param_groups) != 1:
            raise ArgumentError("LBFGS(): it takes one list of parameters; its directions cross all of them")
        self._max_iter = int(max_iter)
        self._max_eval = self._max_iter * 5 // 4 if max_eval is None else int(max_eval)
        self._tolerance_grad = float(tolerance_grad)
        self._tolerance_change = float(tolerance_change)
        self._line_search_fn = line_search_fn
        self._evaluations = self._iterations = 0
        #: Pairs (change of the parameters, change of the gradient), oldest first.
        self._history: deque[tuple[Vector, Vector]] = deque(maxlen=int(history_size))
        self._last_gradient: Vector | None = None
        self._last_direction: Vector | None = None
        self._last_step = self._last_value = 0.0

    # ------------------------------------------------------------------ the parameters as one vector

    @property
    def _trained(self) -> list[Tensor]:
        return [p for p in self._parameter_list if not p.stop_gradient]

    def _position(self) -> Vector:
        return np.concatenate([np.asarray(p).astype(np.float64).reshape(-1) for p in self._trained])

    @no_grad()
    def _move_to(self, position: Vector) -> None:
        at = 0
        for p in self._trained:
            part = position[at : at + p.size].reshape(tuple(p.shape))
            p.set_value(to_tensor(part, p.dtype))
            at += p.size

    @no_grad()
    def _gradient(self) -> Vector:
        params = self._parameter_list
        grads = self._clipped(params, [None if p.stop_gradient else p.grad for p in params])
        parts = []
        for p, g in zip(params, grads):
            if p.stop_gradient:
                continue
            part = np.zeros(p.size) if g is None else np.asarray(g).astype(np.float64).reshape(-1)
            l2, l1 = self._decay_of(p, self._param_groups[0])
            if l2 or l1:
                w = np.asarray(p).astype(np.float64).reshape(-1)
                part = part + l2 * w + l1 * np.sign(w)
            parts.append(part)
        return np.concatenate(parts)

    # ------------------------------------------------------------------ the step

    @spans.watched("Optimization", "Optimization Step")
    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor:  # type: ignore[override]
        """Follow up to ``max_iter`` directions.

        Args:
            closure: clears the gradients, computes the loss, runs backward and gives the loss.

        Returns:
            The loss before the step.

        Raises:
            ArgumentTypeError: closure is not callable.
        """
        if not callable(closure):
            raise ArgumentTypeError(
                message(
                    f"LBFGS.step(): closure is a {type(closure).__name__}",
                    "the method evaluates the loss several times",
                    "pass a function that clears the gradients, computes the loss, runs backward and gives the loss",
                )
            )
        with enable_grad():
            first = closure()
        count, value = 1, float(first)
        position, gradient = self._position(), self._gradient()
        for k in range(self._max_iter):
            if np.abs(gradient).max(initial=0.0) <= self._tolerance_grad:
                break
            self._iterations += 1
            direction = self._direction(gradient)
            slope = float(gradient @ direction)
            if not slope < -self._tolerance_change:
                break
            rate = self.get_lr()
            step = min(1.0, 1.0 / float(np.abs(gradient).sum())) * rate if not self._history else rate
            start = Point(0.0, value, gradient, slope)
            if self._line_search_fn:
                found, used = strong_wolfe(
                    lambda s: self._evaluate(closure, position, direction, s),  # noqa: B023 (used within the iteration)
                    start,
                    step,
                    float(np.abs(direction).max()),
                    self._tolerance_change,
                )
                self._move_to(position + found.step * direction)
            elif k == self._max_iter - 1:
                # nothing asks for the loss there before the next step, which begins with it
                self._move_to(position + step * direction)
                found, used = Point(step, value, gradient, slope), 0
            else:
                found, used = self._evaluate(closure, position, direction, step), 1
            count += used
            self._last_direction, self._last_step, self._last_gradient, self._last_value = direction, found.step, gradient, value
            change, position = abs(found.value - value), position + found.step * direction
            gradient, value = found.gradient, found.value
            is_short = found.step * np.abs(direction).max() <= self._tolerance_change
            if count >= self._max_eval or is_short or change < self._tolerance_change:
                break
        self._evaluations += count
        return first

    def _evaluate(self, closure: Callable[[], Tensor], position: Vector, direction: Vector, step: float) -> Point:
        self._move_to(position + step * direction)
        with enable_grad():
            value = float(closure())
        gradient = self._gradient()
        return Point(step, value, gradient, float(gradient @ direction))

    def _direction(self, gradient: Vector) -> Vector:
        """Minus the gradient times the inverse Hessian that the history describes."""
        if self._last_gradient is not None and self._last_direction is not None:
            move, turn = self._last_step * self._last_direction, gradient - self._last_gradient
            if float(turn @ move) > 1e-10:
                self._history.append((move, turn))
        result = -gradient
        factors = []
        for move, turn in reversed(self._history):
            factor = float(move @ result) / float(turn @ move)
            factors.append(factor)
            result = result - factor * turn
        result = result * self._scale()
        for (move, turn), factor in zip(self._history, reversed(factors)):
            result = result + move * (factor - float(turn @ result) / float(turn @ move))
        return result

    def _scale(self) -> float:
        """The inverse Hessian's size along the last step."""
        if not self._history:
            return 1.0
        move, turn = self._history[-1]
        return float(turn @ move) / float(turn @ turn)

    def minimize(self, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None) -> Any:
        """Not for this method: it must evaluate the loss again.

        Raises:
            ArgumentTypeError: always.
        """
        raise ArgumentTypeError(
            message("LBFGS.minimize(): a computed loss cannot be evaluated again", "", "call step(closure) instead")
        )

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Any]:
        """The history and counts of the search, under ``state``; float32, as Paddle keeps them."""
        if self._last_gradient is None or self._last_direction is None:
            return {"state": {}}
        moves = [to_tensor(m, "float32") for m, _ in self._history]
        turns = [to_tensor(t, "float32") for _, t in self._history]
        return {
            "state": {
                "func_evals": self._evaluations,
                "n_iter": self._iterations,
                "al": [None] * self._history.maxlen if self._history.maxlen else [],
                "d": to_tensor(self._last_direction, "float32"),
                "alpha": self._last_step,
                "old_yk": turns,
                "old_sk": moves,
                "ro": [to_tensor(1.0 / float(m @ t), "float32") for m, t in self._history],
                "H_diag": to_tensor(self._scale(), "float32"),
                "prev_flat_grad": to_tensor(self._last_gradient, "float32"),
                "prev_loss": self._last_value,
            }
        }

    def set_state_dict(self, state_dict: Any) -> None:
        """Take the history and counts of a search over the same parameters."""
        given = state_dict["state"]
        self._history.clear()
        self._evaluations, self._iterations = given.get("func_evals", 0), given.get("n_iter", 0)
        self._history.extend((_vector(m), _vector(t)) for m, t in zip(given.get("old_sk", ()), given.get("old_yk", ())))
        self._last_gradient = _vector(given["prev_flat_grad"]) if given else None
        self._last_direction = _vector(given["d"]) if given else None
        self._last_step, self._last_value = float(given.get("alpha", 0.0)), float(given.get("prev_loss", 0.0))

    load_state_dict = set_dict = set_state_dict


def _vector(x: Any) -> Vector:
    return np.asarray(x).astype(np.float64).reshape(-1)
