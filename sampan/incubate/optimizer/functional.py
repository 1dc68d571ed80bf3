"""minimize_bfgs and minimize_lbfgs: Nocedal and Wright, Numerical Optimization, second edition, chapters 6 and 7."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.errors import ArgumentError, message
from ...optimizer.line_search import Point, Vector, strong_wolfe
from ...tensor import Tensor, autograd, to_tensor
from ...tensor.explained import explained

__all__ = ["minimize_bfgs", "minimize_lbfgs"]


class _Objective:
    """The function on float64 vectors, through tensors of the caller's dtype; counts its calls."""

    def __init__(self, function: Callable[[Tensor], Tensor], start: Tensor, dtype: str) -> None:
        self.function, self.shape, self.dtype, self.calls = function, list(start.shape), dtype, 0

    def __call__(self, position: Vector) -> tuple[float, Vector]:
        self.calls += 1
        x = to_tensor(position.reshape(self.shape), self.dtype, stop_gradient=False)
        with autograd.enable_grad():
            value = self.function(x)
            (gradient,) = autograd.grad(value, x)
        return float(value), np.asarray(gradient).astype(np.float64).reshape(-1)

    def tensor(self, values: Any) -> Tensor:
        """Values as a tensor of the caller's dtype."""
        return to_tensor(values, self.dtype)


def _search(
    objective: _Objective,
    position: Vector,
    direction: Callable[[Vector], Vector],
    learn: Callable[[Vector, Vector], None],
    max_iters: int,
    tolerance_grad: float,
    tolerance_change: float,
    first_step: float,
    line_iters: int,
) -> tuple[bool, Vector, float, Vector]:
    value, gradient = objective(position)
    is_converged = bool(np.abs(gradient).max(initial=0.0) < tolerance_grad)
    for _ in range(max_iters):
        if is_converged:
            break
        way = direction(gradient)
        slope = float(gradient @ way)
        if not slope < 0:
            break

        def evaluate(step: float, origin: Vector = position, along: Vector = way) -> Point:
            found, there = objective(origin + step * along)
            return Point(step, found, there, float(there @ along))

        start = Point(0.0, value, gradient, slope)
        found, _ = strong_wolfe(evaluate, start, first_step, float(np.abs(way).max()), 1e-12, line_iters)
        move = found.step * way
        learn(move, found.gradient - gradient)
        position, value, gradient = position + move, found.value, found.gradient
        is_converged = bool(np.abs(gradient).max() < tolerance_grad or np.abs(move).max() < tolerance_change)
    return is_converged, position, value, gradient


def _checked(name: str, line_search_fn: str, dtype: str) -> None:
    if line_search_fn != "strong_wolfe":
        raise ArgumentError(message(f"{name}(): line_search_fn={line_search_fn!r}", "it must be 'strong_wolfe'"))
    if dtype not in ("float32", "float64"):
        raise ArgumentError(message(f"{name}(): dtype={dtype!r}", "it must be 'float32' or 'float64'"))


@explained
def minimize_bfgs(
    objective_func: Callable[[Tensor], Tensor],
    initial_position: Tensor,
    max_iters: int = 50,
    tolerance_grad: float = 1e-7,
    tolerance_change: float = 1e-9,
    initial_inverse_hessian_estimate: Tensor | None = None,
    line_search_fn: str = "strong_wolfe",
    max_line_search_iters: int = 50,
    initial_step_length: float = 1.0,
    dtype: str = "float32",
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """A minimum of a function, by BFGS.

    Args:
        objective_func: a differentiable function of a vector that gives one number.
        initial_position: where to begin.
        max_iters: the most directions.
        tolerance_grad: done when no element of the gradient is larger.
        tolerance_change: done when the position changes less.
        initial_inverse_hessian_estimate: symmetric and positive definite; the identity by default.
        line_search_fn: ``strong_wolfe``.
        max_line_search_iters: the most evaluations along a direction.
        initial_step_length: the first step along each direction.
        dtype: float32 or float64.

    Returns:
        Whether it converged [1], the number of evaluations [1], the position, the value, the gradient, the estimate of the inverse Hessian.

    Raises:
        ArgumentError: an unknown line search or dtype, or an estimate that is not symmetric and positive definite.

    Example:
        >>> import sampan as paddle
        >>> from sampan.incubate.optimizer.functional import minimize_bfgs
        >>> found = minimize_bfgs(lambda x: ((x - 1.0) ** 2).sum(), paddle.zeros([2]))
        >>> found[0].tolist(), found[2].tolist()
        ([True], [1.0, 1.0])
    """
    _checked("minimize_bfgs", line_search_fn, dtype)
    objective = _Objective(objective_func, initial_position, dtype)
    start = np.asarray(initial_position).astype(np.float64).reshape(-1)
    inverse = np.eye(len(start))
    if initial_inverse_hessian_estimate is not None:
        inverse = np.asarray(initial_inverse_hessian_estimate).astype(np.float64)
        if not np.allclose(inverse, inverse.T) or np.linalg.eigvalsh(inverse).min() <= 0:
            raise ArgumentError(
                message("minimize_bfgs(): initial_inverse_hessian_estimate", "it must be symmetric and positive definite")
            )
    state = {"inverse": inverse}

    def learn(move: Vector, turn: Vector) -> None:
        curvature = float(turn @ move)
        if curvature > 0:
            left = np.eye(len(move)) - np.outer(move, turn) / curvature
            state["inverse"] = left @ state["inverse"] @ left.T + np.outer(move, move) / curvature

    is_converged, position, value, gradient = _search(
        objective, start, lambda g: -(state["inverse"] @ g), learn,
        max_iters, tolerance_grad, tolerance_change, initial_step_length, max_line_search_iters,
    )  # fmt: skip
    return (*_result(objective, is_converged, position, value, gradient), objective.tensor(state["inverse"]))


def _result(
    objective: _Objective, is_converged: bool, position: Vector, value: float, gradient: Vector
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return (
        to_tensor([is_converged]),
        to_tensor([objective.calls], "int64"),
        objective.tensor(position.reshape(objective.shape)),
        objective.tensor(value),
        objective.tensor(gradient.reshape(objective.shape)),
    )


@explained
def minimize_lbfgs(
    objective_func: Callable[[Tensor], Tensor],
    initial_position: Tensor,
    history_size: int = 100,
    max_iters: int = 50,
    tolerance_grad: float = 1e-7,
    tolerance_change: float = 1e-9,
    initial_inverse_hessian_estimate: Tensor | None = None,
    line_search_fn: str = "strong_wolfe",
    max_line_search_iters: int = 50,
    initial_step_length: float = 1.0,
    dtype: str = "float32",
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """A minimum of a function, by L-BFGS.

    Args:
        objective_func: a differentiable function of a vector that gives one number.
        initial_position: where to begin.
        history_size: how many past steps shape a direction.
        max_iters: the most directions.
        tolerance_grad: done when no element of the gradient is larger.
        tolerance_change: done when the position changes less.
        initial_inverse_hessian_estimate: what the history starts from; the identity by default, scaled to the last step.
        line_search_fn: ``strong_wolfe``.
        max_line_search_iters: the most evaluations along a direction.
        initial_step_length: the first step along each direction.
        dtype: float32 or float64.

    Returns:
        Whether it converged [1], the number of evaluations [1], the position, the value, the gradient.

    Raises:
        ArgumentError: an unknown line search or dtype.

    Example:
        >>> import sampan as paddle
        >>> from sampan.incubate.optimizer.functional import minimize_lbfgs
        >>> minimize_lbfgs(lambda x: ((x - 1.0) ** 2).sum(), paddle.zeros([2]))[2].tolist()
        [1.0, 1.0]
    """
    _checked("minimize_lbfgs", line_search_fn, dtype)
    objective = _Objective(objective_func, initial_position, dtype)
    history: deque[tuple[Vector, Vector]] = deque(maxlen=history_size)
    given = initial_inverse_hessian_estimate
    first = None if given is None else np.asarray(given).astype(np.float64)

    def direction(gradient: Vector) -> Vector:
        result, factors = -gradient, []
        for move, turn in reversed(history):
            factors.append(float(move @ result) / float(turn @ move))
            result = result - factors[-1] * turn
        if first is not None:
            result = first @ result
        elif history:
            move, turn = history[-1]
            result = result * (float(turn @ move) / float(turn @ turn))
        for (move, turn), factor in zip(history, reversed(factors), strict=True):
            result = result + move * (factor - float(turn @ result) / float(turn @ move))
        return result

    def learn(move: Vector, turn: Vector) -> None:
        if float(turn @ move) > 0:
            history.append((move, turn))

    start = np.asarray(initial_position).astype(np.float64).reshape(-1)
    found = _search(
        objective,
        start,
        direction,
        learn,
        max_iters,
        tolerance_grad,
        tolerance_change,
        initial_step_length,
        max_line_search_iters,
    )
    return _result(objective, *found)
