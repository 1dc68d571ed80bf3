"""to_static and TrainStep under auto_cast, and with a GradScaler."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle

SCALING = {"init_loss_scaling": 1024.0, "incr_every_n_steps": 2}


def model():
    paddle.seed(0)
    return paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 1))


def batches(count=8, bad=3):
    rng = np.random.default_rng(1)
    for k in range(count):
        x = rng.standard_normal((16, 4)).astype("float32")
        y = x.sum(1, keepdims=True)
        if k == bad:
            x[0, 0] = np.inf
        yield paddle.to_tensor(x), paddle.to_tensor(y)


def trained(kind, method, dtype="bfloat16", clip=None):
    """(loss, scale, weights) of each step, and the powers of Adam's rates in the end."""
    net = model()
    optimizer = getattr(paddle.optimizer, method)(0.05, parameters=net.parameters(), grad_clip=clip)
    scaler = paddle.amp.GradScaler(**SCALING)

    def loss_of(x, y):
        with paddle.amp.auto_cast(dtype=dtype):
            return ((net(x) - y) ** 2).mean()

    step = paddle.jit.TrainStep(loss_of, optimizer, scaler=scaler)
    called = paddle.jit.to_static(loss_of, full_graph=True) if kind == "to_static" else loss_of
    found = []
    for x, y in batches():
        if kind == "TrainStep":
            loss = step(x, y)
        else:
            loss = called(x, y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.clear_grad()
        found.append((loss.item(), scaler.get_init_loss_scaling(), net[0].weight.numpy().copy()))
    return found, [np.asarray(v) for k, v in optimizer.state_dict().items() if "pow" in k]


@pytest.mark.parametrize("kind", ["to_static", "TrainStep"])
@pytest.mark.parametrize("method", ["SGD", "Adam"])
def test_training_with_a_scaler_equals_eager_mode(kind, method):
    expected, their_state = trained("eager", method, clip=paddle.nn.ClipGradByGlobalNorm(1.0))
    found, state = trained(kind, method, clip=paddle.nn.ClipGradByGlobalNorm(1.0))
    for (loss, scale, weights), (their_loss, their_scale, their_weights) in zip(found, expected, strict=True):
        np.testing.assert_allclose(loss, their_loss, rtol=0.03)
        assert scale == their_scale
        np.testing.assert_allclose(weights, their_weights, rtol=0.02, atol=5e-3)
    assert {s for _, s, _ in found} == {1024.0, 2048.0, 4096.0}
    np.testing.assert_array_equal(found[3][2], found[2][2])
    np.testing.assert_array_equal(state, their_state)


def test_float32_steps_with_a_scaler_are_those_without():
    def run(scaler):
        net = model()
        step = paddle.jit.TrainStep(
            lambda x, y: ((net(x) - y) ** 2).mean(), paddle.optimizer.SGD(0.05, parameters=net.parameters()), scaler=scaler
        )
        for x, y in batches(bad=None):
            step(x, y)
        return net[0].weight.numpy()

    np.testing.assert_allclose(run(paddle.amp.GradScaler()), run(None), rtol=1e-6)
    np.testing.assert_array_equal(run(paddle.amp.GradScaler(enable=False)), run(None))


def test_the_recorded_step_stays_while_the_scale_moves():
    net = model()
    scaler = paddle.amp.GradScaler(**SCALING)
    step = paddle.jit.TrainStep(
        lambda x, y: ((net(x) - y) ** 2).mean(), paddle.optimizer.SGD(0.01, parameters=net.parameters()), scaler=scaler
    )
    x, y = next(batches(bad=None))
    program = step.program(x, y)
    for _ in range(4):
        step(x, y)
    assert scaler.get_init_loss_scaling() == 4096.0
    assert step.program(x, y) is program


@pytest.mark.parametrize("scaler", [1024.0, "dynamic"])
def test_what_is_no_scaler_is_refused(scaler):
    with pytest.raises(TypeError, match="scaler is a"):
        paddle.jit.TrainStep(lambda x: x, paddle.optimizer.SGD(0.1, parameters=[paddle.ones([1])]), scaler=scaler)


def test_what_depends_on_data_runs_under_the_precision_that_it_was_recorded_under():
    def f(x):
        with paddle.amp.auto_cast(level="O2", dtype="bfloat16"):
            found = paddle.masked_select(x, x > 1)
            return found, found * 2

    x = paddle.to_tensor([[0.5, 1.51, 2.3]])
    for eager, recorded in zip(f(x), paddle.jit.to_static(f, full_graph=True)(x), strict=True):
        assert eager.dtype == recorded.dtype == paddle.bfloat16
        np.testing.assert_array_equal(eager.numpy(), recorded.numpy())
