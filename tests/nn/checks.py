"""One call checks a whole layer: build, shapes, dtypes, weights, saved state, a training step, and another dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import sampan as paddle
from sampan import nn
from sampan.base import nest
from sampan.tensor import Tensor


def array(shape: Sequence[int], seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Numbers in [-1, 1), or ids in [0, 4) for an integer dtype."""
    generator = np.random.default_rng(seed)
    if dtype.startswith("int"):
        return generator.integers(0, 4, shape).astype(dtype)
    return generator.uniform(-1, 1, shape).astype(dtype)


def tensors(shapes: Sequence[Any]) -> list[Tensor]:
    """A tensor for each shape; a pair (shape, dtype) fixes the dtype."""
    made = []
    for k, spec in enumerate(shapes):
        shape, dtype = spec if len(spec) == 2 and isinstance(spec[1], str) else (spec, "float32")
        made.append(paddle.to_tensor(array(shape, k, dtype)))
    return made


def outputs_of(result: Any) -> list[Tensor]:
    """The tensors in a nested result."""
    return [v for v in nest.flatten(result) if isinstance(v, Tensor)]


def weighted_sum(values: Sequence[Tensor]) -> Tensor:
    """A scalar that depends on every element in its own way."""
    return paddle.add_n([(v * paddle.to_tensor(array(v.shape, 50 + k, v.dtype.name))).sum() for k, v in enumerate(values)])


def check_layer(
    make: Callable[[], nn.Layer],
    inputs: Sequence[Any],
    expected: Sequence[Any],
    parameters: dict[str, list[int]] | None = None,
    is_random: bool = False,
) -> nn.Layer:
    """Check the layer that ``make`` builds on inputs of these shapes.

    Args:
        make: builds the layer.
        inputs: shapes of its inputs, or (shape, dtype).
        expected: shapes of its results.
        parameters: names and shapes of its state.
        is_random: the training output may differ from call to call.
    """
    paddle.seed(3)
    layer = make()
    if parameters is not None:
        assert {k: list(v.shape) for k, v in layer.state_dict().items()} == parameters
    assert repr(layer).startswith(type(layer).__name__ + "(")
    assert layer.training

    given = tensors(inputs)
    for x in given:
        x.stop_gradient = not x.is_floating_point()
    results = outputs_of(layer(*given))
    assert [list(r.shape) for r in results] == [list(s) for s in expected]

    trained = [p for p in layer.parameters() if not p.stop_gradient]
    floats = [r for r in results if r.is_floating_point() and not r.stop_gradient]
    if trained:
        optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=trained)
        before = [p.numpy() for p in trained]
        weighted_sum(floats).backward()
        assert all(p.grad is not None for p in trained)
        optimizer.step()
        moved = [np.abs(p.numpy() - old).max() for p, old in zip(trained, before, strict=True) if p.grad.abs().max().item() > 0]
        assert all(m > 0 for m in moved)
    elif floats:
        weighted_sum(floats).backward()
        assert list(given[0].grad.shape) == list(given[0].shape)

    layer.eval()
    assert not any(sub.training for sub in layer.sublayers(include_self=True))
    with paddle.no_grad():
        first = [r.numpy() for r in outputs_of(layer(*given))]
        other = make()
        missing, unexpected = other.set_state_dict({k: v.numpy() for k, v in layer.state_dict().items()})
        assert not missing
        assert not unexpected
        second = [r.numpy() for r in outputs_of(other.eval()(*given))]
    if not is_random:
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)
    return layer
