"""The strong Wolfe line search: Nocedal and Wright, Numerical Optimization, second edition, algorithms 3.5 and 3.6, with cubic interpolation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]

#: How far the slope must have fallen, and the decrease that counts as sufficient.
SUFFICIENT_DECREASE, CURVATURE = 1e-4, 0.9


@dataclass
class Point:
    """The function along the line: the step, the value, the gradient, and the slope along the line."""

    step: float
    value: float
    gradient: Vector
    slope: float


def cubic_minimum(a: Point, b: Point, low: float, high: float) -> float:
    """The minimum of the cubic through both points with their slopes, inside [low, high]; the middle where there is none."""
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    root = float(np.sqrt(square))
    first, last = (a, b) if a.step <= b.step else (b, a)
    place = last.step - (last.step - first.step) * ((last.slope + root - d1) / (last.slope - first.slope + 2 * root))
    return min(max(place, low), high) if np.isfinite(place) else (low + high) / 2


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    step: float,
    direction_size: float,
    tolerance_change: float = 1e-9,
    max_evaluations: int = 25,
) -> tuple[Point, int]:
    """A point that satisfies the strong Wolfe conditions, or the best that was found; and the number of evaluations.

    Args:
        evaluate: the function at a step along the line.
        start: the function at step 0; its slope is negative.
        step: the first step to try.
        direction_size: the largest element of the direction; with ``tolerance_change`` it says when an interval is too short to matter.
        max_evaluations: how many points are tried.
    """
    previous, count = start, 0
    while True:
        current, count = evaluate(step), count + 1
        is_high = current.value > start.value + SUFFICIENT_DECREASE * step * start.slope
        if is_high or (count > 1 and current.value >= previous.value) or not np.isfinite(current.value):
            bracket = (previous, current)
            break
        if abs(current.slope) <= -CURVATURE * start.slope:
            return current, count
        if current.slope >= 0:
            bracket = (previous, current)
            break
        if count >= max_evaluations:
            return min(start, current, key=lambda p: p.value), count
        smallest, largest = step + 0.01 * (step - previous.step), step * 10
        step, previous = cubic_minimum(previous, current, smallest, largest), current
    return _zoom(evaluate, start, bracket, count, direction_size, tolerance_change, max_evaluations)


def _zoom(
    evaluate: Callable[[float], Point],
    start: Point,
    bracket: tuple[Point, Point],
    count: int,
    direction_size: float,
    tolerance_change: float,
    max_evaluations: int,
) -> tuple[Point, int]:
    low, high = sorted(bracket, key=lambda p: p.value if np.isfinite(p.value) else np.inf)
    was_near_edge = False
    while count < max_evaluations and abs(high.step - low.step) * direction_size >= tolerance_change:
        left, right = min(low.step, high.step), max(low.step, high.step)
        step = cubic_minimum(low, high, left, right) if np.isfinite(high.value) else (left + right) / 2
        # two steps in a row near an edge would shrink the interval too slowly: move inside
        edge = 0.1 * (right - left)
        if min(right - step, step - left) < edge:
            if was_near_edge or step >= right or step <= left:
                step, was_near_edge = (right - edge if right - step < step - left else left + edge), False
            else:
                was_near_edge = True
        else:
            was_near_edge = False
        current, count = evaluate(step), count + 1
        if current.value > start.value + SUFFICIENT_DECREASE * step * start.slope or not current.value < low.value:
            high = current
            continue
        if abs(current.slope) <= -CURVATURE * start.slope:
            return current, count
        if current.slope * (high.step - low.step) >= 0:
            high = low
        low = current
    return low, count
