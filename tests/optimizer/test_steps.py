"""Ten steps of every optimizer: against the methods in NumPy, and against the real PaddlePaddle where it is installed."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest
from front.reference import needs_paddle, paddle_python

import sampan as paddle

from . import step_cases
from .oracles import ORACLES


@pytest.mark.parametrize("case", step_cases.CASES)
def test_ten_steps_equal_the_method_in_numpy(case):
    params, _ = step_cases.run(paddle, case)
    name, options = step_cases.CASES[case]
    weights, grads = step_cases.data()
    for p, w, g in zip(params, weights, grads, strict=True):
        np.testing.assert_allclose(p.numpy(), ORACLES[name](w, g, **options), rtol=1e-5, atol=1e-5)


@needs_paddle
def test_ten_steps_equal_paddles_and_states_have_its_names_shapes_and_order():
    done = subprocess.run([paddle_python(), step_cases.__file__], capture_output=True, text=True, timeout=120, check=True)
    expected = json.loads(done.stdout.strip().splitlines()[-1])
    for case, theirs in expected.items():
        ours = step_cases.results(paddle, case)
        for a, b in zip(ours["weights"], theirs["weights"], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=case)
        assert list(ours["state"]) == list(theirs["state"])
        for key, value in theirs["state"].items():
            # Paddle rounds 1 - beta2 to float32 (0.00099998713 for 0.001), which its second moments keep
            np.testing.assert_allclose(ours["state"][key], value, rtol=2e-5, atol=1e-6, err_msg=key)


def test_a_schedule_changes_the_rate_of_later_steps():
    w = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(0.0))
    schedule = paddle.optimizer.lr.StepDecay(1.0, step_size=1, gamma=0.5)
    optimizer = paddle.optimizer.SGD(schedule, parameters=[w])
    for _ in range(3):
        w.grad = paddle.ones([1])
        optimizer.step()
        schedule.step()
    assert w.item() == -1.75


def test_a_parameter_without_gradient_or_that_is_frozen_stays():
    a, b, c = (paddle.create_parameter([2], "float32") for _ in range(3))
    before = [p.numpy().copy() for p in (b, c)]
    optimizer = paddle.optimizer.Adam(0.1, parameters=[a, b, c])
    a.grad, c.grad = paddle.ones([2]), paddle.ones([2])
    c.stop_gradient = True
    optimizer.step()
    np.testing.assert_array_equal([b.numpy(), c.numpy()], before)
    assert f"{b.name}_moment1_0" not in optimizer.state_dict()


def test_a_parameter_that_joins_later_starts_its_own_count_of_steps():
    a, b = (paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(0.0)) for _ in range(2))
    optimizer = paddle.optimizer.Adam(0.1, parameters=[a, b])
    for step in range(4):
        a.grad = paddle.ones([1])
        b.grad = paddle.ones([1]) if step >= 2 else None
        optimizer.step()
    # with a constant gradient each bias-corrected step is the learning rate
    np.testing.assert_allclose([a.item(), b.item()], [-0.4, -0.2], rtol=1e-5)


def test_many_tensors_of_many_shapes_are_all_updated():
    params = [paddle.create_parameter([1 + k % 3], "float32") for k in range(70)]
    before = [p.numpy().copy() for p in params]
    for k, p in enumerate(params):
        p.grad = paddle.full(p.shape, float(k))
    paddle.optimizer.SGD(0.5, parameters=params).step()
    for k, (p, w) in enumerate(zip(params, before, strict=True)):
        np.testing.assert_allclose(p.numpy(), w - 0.5 * k, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["SGD", "Momentum", "Adam", "AdamW", "Lamb", "ASGD", "Rprop"])
def test_master_weights_gather_steps_too_small_for_the_parameter(name, dtype):
    w = paddle.to_tensor([1.0, -2.0], dtype, stop_gradient=False)
    kept = paddle.to_tensor([1.0, -2.0], "float32", stop_gradient=False)
    make = getattr(paddle.optimizer, name)
    mixed, full = make(1e-4, parameters=[w], multi_precision=True), make(1e-4, parameters=[kept])
    for _ in range(20):
        w.grad, kept.grad = paddle.to_tensor([0.5, -0.25], dtype), paddle.to_tensor([0.5, -0.25], "float32")
        mixed.step()
        full.step()
    master = mixed.state_dict()["master_weights"][w.name]
    assert w.dtype.name == dtype
    assert master.dtype.name == "float32"
    np.testing.assert_allclose(master.numpy(), kept.numpy(), rtol=1e-6)
    np.testing.assert_array_equal(w.astype("float32").numpy(), master.astype(dtype).astype("float32").numpy())


def test_the_same_buckets_serve_every_step_until_something_changes():
    params = [paddle.create_parameter([2], "float32") for _ in range(3)]
    optimizer = paddle.optimizer.Adam(0.1, parameters=params)
    for p in params:
        p.grad = paddle.ones([2])
    optimizer.step()
    first = optimizer._buckets
    optimizer.step()
    assert optimizer._buckets is first
    params[0].optimize_attr["learning_rate"] = 0.5
    optimizer.step()
    assert [b.factor for b in optimizer._buckets] == [0.5, 1.0]
