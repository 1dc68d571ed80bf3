"""GradScaler: scaling, skipped steps, the moving scale, its state."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan.base.errors import ArgumentError, AutogradError

INF = float("inf")


def setup(**options):
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    return w, paddle.optimizer.SGD(0.5, parameters=[w]), paddle.amp.GradScaler(**options)


def test_the_scale_leaves_the_step_as_it_is_without():
    w, optimizer, scaler = setup(init_loss_scaling=1024.0)
    scaler.scale((w * w).sum()).backward()
    assert w.grad.tolist() == [2048.0, 4096.0]
    scaler.step(optimizer)
    assert w.grad.tolist() == [2.0, 4.0]
    assert w.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("groups", [False, True])
def test_three_iterations_equal_those_without_scaler_with_parameter_groups(groups):
    # behaviours UP108
    def run(scaler):
        w = paddle.to_tensor([1.0, -2.0], stop_gradient=False)
        optimizer = paddle.optimizer.SGD(0.1, parameters=[{"params": [w]}] if groups else [w])
        for _ in range(3):
            scaler.scale((w * w).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.clear_grad()
        return w.numpy()

    np.testing.assert_array_equal(run(paddle.amp.GradScaler()), run(paddle.amp.GradScaler(enable=False)))


@pytest.mark.parametrize("bad", [INF, float("nan")])
def test_a_step_with_gradients_that_are_not_finite_is_skipped_and_the_scale_shrinks(bad):
    w, optimizer, scaler = setup(init_loss_scaling=8.0)
    w.grad = paddle.to_tensor([1.0, bad])
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [1.0, 2.0]
    assert scaler.get_init_loss_scaling() == 4.0


def test_large_finite_gradients_do_not_count_as_infinite():
    w, optimizer, scaler = setup(init_loss_scaling=1.0)
    w.grad = paddle.to_tensor([1e30, 2e30])
    scaler.step(optimizer)
    np.testing.assert_allclose(w.numpy(), [-5e29, -1e30], rtol=1e-6)


def test_the_scale_follows_runs_of_good_and_bad_steps():
    w, optimizer, scaler = setup(init_loss_scaling=1024.0, incr_every_n_steps=2, decr_every_n_nan_or_inf=2)
    seen = []
    for g in [1, 1, 1, INF, 1, INF, INF, 1, 1]:
        w.grad = paddle.to_tensor([float(g), 0.0])
        scaler.step(optimizer)
        scaler.update()
        seen.append(scaler.get_init_loss_scaling())
    assert seen == [1024, 2048, 2048, 2048, 2048, 2048, 1024, 1024, 2048]


def test_the_scale_never_falls_below_one():
    w, optimizer, scaler = setup(init_loss_scaling=2.0, decr_ratio=0.1)
    w.grad = paddle.to_tensor([INF, 0.0])
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_init_loss_scaling() == 1.0


def test_a_scaler_resumes_from_its_state():
    _, _, scaler = setup(init_loss_scaling=64.0, incr_ratio=4.0)
    state = scaler.state_dict()
    assert state["scale"].tolist() == [64.0]
    assert list(state) == [
        "scale", "incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf", "incr_count", "decr_count",
        "use_dynamic_loss_scaling",
    ]  # fmt: skip
    other = paddle.amp.GradScaler()
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert paddle.amp.GradScaler(enable=False).state_dict() == {}


def test_unscaling_or_stepping_twice_is_refused():
    w, optimizer, scaler = setup()
    w.grad = paddle.ones([2])
    scaler.unscale_(optimizer)
    with pytest.raises(AutogradError, match="unscale_"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(AutogradError, match="step"):
        scaler.step(optimizer)
    scaler.update()
    scaler.step(optimizer)


@pytest.mark.parametrize(("option", "value"), [("incr_ratio", 1.0), ("decr_ratio", 1.0)])
def test_a_ratio_out_of_its_range_is_refused(option, value):
    with pytest.raises(ArgumentError, match=option):
        paddle.amp.GradScaler(**{option: value})
