"""Running a function eagerly and as a recorded Program, and comparing what comes out."""

from __future__ import annotations

from typing import Any

import numpy as np

import sampan as paddle
from sampan.base import nest
from sampan.tensor.traced import Traced, Typed


def recorded(function: Any, *args: Any) -> Any:
    """What the function gives as a Program, its tensor arguments fed; their sizes are unknown while it is recorded when it asks for that."""
    unknown = getattr(function, "unknown_sizes", False)

    def typed(value: Any) -> Any:
        if not isinstance(value, paddle.Tensor):
            return value
        shape = tuple(-1 if unknown else n for n in value.shape)
        return Typed(value.dtype.name, shape, value.stop_gradient)

    traced = Traced(function, [nest.map_structure(typed, a) for a in args], {})
    return traced.run([v for v in nest.flatten(list(args)) if isinstance(v, paddle.Tensor)])


def unknown_sizes(function: Any) -> Any:
    """Record the function for tensors of any size."""
    function.unknown_sizes = True
    return function


def plain(value: Any) -> Any:
    """Tensors as (dtype, shape, elements), for comparisons."""
    return nest.map_structure(
        lambda v: (v.dtype.name, tuple(v.shape), v.tolist()) if isinstance(v, paddle.Tensor) else (type(v).__name__, v), value
    )


def check(function: Any, *args: Any) -> None:
    """The Program gives what eager mode gives: structure, types, dtypes, shapes, elements, and gradients of floating results."""
    eager, static = [fresh(a) for a in args], [fresh(a) for a in args]
    wanted, found = function(*eager), recorded(function, *static)
    assert plain(found) == plain(wanted)
    compare_gradients(wanted, found, eager, static)


def fresh(value: Any) -> Any:
    """A copy of a tensor that gradients flow to where its dtype has them."""
    if not isinstance(value, paddle.Tensor):
        return value
    made = value.clone().detach()
    made.stop_gradient = not paddle.is_floating_point(made)
    return made


def compare_gradients(wanted: Any, found: Any, eager: list[Any], static: list[Any]) -> None:
    roots = [
        [v for v in nest.flatten(r) if isinstance(v, paddle.Tensor) and paddle.is_floating_point(v) and not v.stop_gradient]
        for r in (wanted, found)
    ]
    leaves = [[v for v in args if isinstance(v, paddle.Tensor) and not v.stop_gradient] for args in (eager, static)]
    if not roots[0] or not leaves[0]:
        return
    gradients = []
    for outputs, inputs in zip(roots, leaves, strict=True):
        total = sum((v * (k + 1)).sum() for k, v in enumerate(outputs))
        gradients.append(paddle.grad(total, inputs, allow_unused=True))
    for a, b in zip(*gradients, strict=True):
        left = np.zeros(()) if a is None else a.numpy()
        right = np.zeros(()) if b is None else b.numpy()
        np.testing.assert_allclose(np.broadcast_to(right, left.shape), left, rtol=1e-5, atol=1e-6)
