"""A budget of memory: what a step computes again has the same bits, and its temporaries take less."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import _rt


def network(width=64, depth=6, dropout=0.3):
    paddle.seed(3)
    layers = []
    for _ in range(depth):
        layers += [paddle.nn.Linear(width, width), paddle.nn.LayerNorm(width), paddle.nn.GELU(), paddle.nn.Dropout(dropout)]
    return paddle.nn.Sequential(*layers, paddle.nn.Linear(width, 4))


def images(channels=8):
    paddle.seed(3)
    layers = []
    for before in (3, channels, channels):
        layers += [paddle.nn.Conv2D(before, channels, 3, padding=1), paddle.nn.BatchNorm2D(channels), paddle.nn.ReLU()]
    return paddle.nn.Sequential(*layers, paddle.nn.MaxPool2D(2, 2), paddle.nn.Flatten(), paddle.nn.Linear(channels * 36, 4))


def trained(make, shape, budget, steps=4, precision=None):
    """Losses, parameters and buffers after some steps, and the peak of memory during them."""
    net = make()
    optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())

    def loss(x, y):
        with paddle.amp.auto_cast(enable=precision is not None, dtype=precision or "bfloat16"):
            return paddle.nn.functional.cross_entropy(net(x), y)

    step = paddle.jit.TrainStep(loss, optimizer, memory_budget=budget)
    rng = np.random.default_rng(1)
    x = paddle.to_tensor(rng.standard_normal(shape).astype("float32"))
    y = paddle.to_tensor(rng.integers(0, 4, shape[0]))
    paddle.seed(5)
    losses = [step(x, y).item()]
    _rt.reset_peak_memory()
    before = _rt.memory_stats()["allocated_bytes"]
    losses += [step(x, y).item() for _ in range(steps - 1)]
    peak = _rt.memory_stats()["peak_allocated_bytes"] - before
    return losses, [v.numpy() for v in net.state_dict().values()], peak


@pytest.mark.parametrize(("make", "shape"), [(network, (512, 64)), (images, (16, 3, 12, 12))], ids=["dropout", "batch norm"])
def test_numbers_are_the_same_and_memory_is_less(make, shape):
    losses, state, peak = trained(make, shape, None)
    fewer_losses, fewer_state, fewer_peak = trained(make, shape, peak // 2)
    assert fewer_losses == losses
    for a, b in zip(state, fewer_state, strict=True):
        np.testing.assert_array_equal(a, b)
    assert fewer_peak < 0.85 * peak


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize(("make", "shape"), [(network, (512, 64)), (images, (16, 3, 12, 12))], ids=["dropout", "batch norm"])
def test_numbers_of_16_bits_are_the_same_too(make, shape, precision):
    losses, state, peak = trained(make, shape, None, precision=precision)
    fewer_losses, fewer_state, fewer_peak = trained(make, shape, peak // 2, precision=precision)
    assert fewer_peak < peak
    assert fewer_losses == losses
    for a, b in zip(state, fewer_state, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_budget_that_is_met_changes_nothing():
    _, state, peak = trained(network, (32, 64), None, 2)
    _, same_state, same_peak = trained(network, (32, 64), 1 << 40, 2)
    assert same_peak == peak
    for a, b in zip(state, same_state, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_budget_that_cannot_be_met_is_come_near_to():
    losses, _, peak = trained(network, (512, 64), None)
    same, _, least = trained(network, (512, 64), 1)
    assert same == losses
    assert least < peak


@pytest.mark.parametrize(
    ("budget", "kind"), [(0, ValueError), (-5, ValueError), (1.5, TypeError), (True, TypeError), ("1 GB", TypeError)]
)
def test_strange_budgets_are_refused(budget, kind):
    net = paddle.nn.Linear(2, 2)
    optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    with pytest.raises(kind, match="memory_budget"):
        paddle.jit.TrainStep(lambda x: net(x).mean(), optimizer, memory_budget=budget)


def test_a_program_has_it_in_its_strategy():
    def run(budget, skip=False):
        paddle.enable_static()
        try:
            main, startup = paddle.static.Program(), paddle.static.Program()
            with paddle.static.program_guard(main, startup):
                paddle.seed(1)
                x = paddle.static.data("x", [None, 64])
                value = x
                for _ in range(6):
                    value = paddle.nn.functional.gelu(paddle.static.nn.fc(value, 64))
                loss = (value * value).mean()
                paddle.optimizer.SGD(0.1).minimize(loss)
            strategy = paddle.static.BuildStrategy()
            strategy.memory_budget = budget
            strategy.recompute = not skip
            exe, scope = paddle.static.Executor(), paddle.static.Scope()
            with paddle.static.scope_guard(scope):
                exe.run(startup)
                compiled = paddle.static.CompiledProgram(main, build_strategy=strategy)
                feed = {"x": np.random.default_rng(2).standard_normal((512, 64)).astype("float32")}
                exe.run(compiled, feed=feed, fetch_list=[loss])
                _rt.reset_peak_memory()
                before = _rt.memory_stats()["allocated_bytes"]
                losses = [exe.run(compiled, feed=feed, fetch_list=[loss])[0].item() for _ in range(2)]
                return losses, _rt.memory_stats()["peak_allocated_bytes"] - before
        finally:
            paddle.disable_static()

    losses, peak = run(0)
    same, fewer = run(peak // 2)
    assert same == losses
    assert fewer < peak
    assert run(peak // 2, skip=True) == (losses, peak)


@pytest.mark.parametrize("budget", [-1, 1.5, True])
def test_a_strategy_refuses_strange_budgets(budget):
    with pytest.raises(TypeError, match="memory_budget"):
        paddle.static.BuildStrategy().memory_budget = budget
