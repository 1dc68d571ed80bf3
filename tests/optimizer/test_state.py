"""Optimizer states: names, resuming, files that the real PaddlePaddle reads and writes, errors."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from front.reference import needs_paddle, paddle_python

import sampan as paddle
from sampan.base.errors import ArgumentTypeError, ShapeError

from . import pdopt_script


def weights(folder, tag):
    return {name: paddle.load(f"{folder}/{tag}_{name}.pdparams")["w"].numpy() for name in pdopt_script.OPTIMIZERS}


def test_a_run_resumed_from_files_equals_one_that_was_not_interrupted(tmp_path):
    pdopt_script.train(paddle, tmp_path, "half")
    pdopt_script.train(paddle, tmp_path, "whole", "half")
    for name in pdopt_script.OPTIMIZERS:
        w = paddle.ones([2, 3])
        w.stop_gradient, w.name = False, f"{name}.w"
        schedule = paddle.optimizer.lr.StepDecay(0.05, step_size=3, gamma=0.5)
        rate = 0.05 if name == "Rprop" else schedule
        optimizer = getattr(paddle.optimizer, name)(rate, parameters=[w], **pdopt_script.OPTIMIZERS[name])
        for step in range(8):
            w.grad = paddle.to_tensor(np.sin(np.arange(6) + step).reshape(2, 3).astype("float32"))
            optimizer.step()
            schedule.step()
        np.testing.assert_allclose(weights(tmp_path, "whole")[name], w.numpy(), rtol=1e-6, atol=1e-6, err_msg=name)


@needs_paddle
def test_states_travel_to_paddle_and_back_in_the_middle_of_a_run(tmp_path):
    def theirs(*arguments):
        done = subprocess.run(
            [paddle_python(), pdopt_script.__file__, str(tmp_path), *arguments],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]

    theirs("paddle_half")
    pdopt_script.train(paddle, tmp_path, "ours_half")
    pdopt_script.train(paddle, tmp_path, "ours_after_paddle", "paddle_half")
    theirs("paddle_after_ours", "ours_half")
    theirs("paddle_only", "paddle_half")
    expected = weights(tmp_path, "paddle_only")
    for tag in ("ours_after_paddle", "paddle_after_ours"):
        for name, w in weights(tmp_path, tag).items():
            np.testing.assert_allclose(w, expected[name], rtol=1e-5, atol=1e-5, err_msg=f"{name}, {tag}")


def test_states_are_named_after_their_parameter_and_the_optimizer():
    w = paddle.create_parameter([2], "float32", name="encoder.w_0")
    optimizer = paddle.optimizer.Adam(0.1, parameters=[w], name="mine")
    w.grad = paddle.ones([2])
    optimizer.step()
    assert list(optimizer.state_dict()) == [
        "encoder.w_0_mine_moment1_0",
        "encoder.w_0_mine_moment2_0",
        "encoder.w_0_mine_beta1_pow_acc_0",
        "encoder.w_0_mine_beta2_pow_acc_0",
    ]
    assert optimizer.state_dict()["encoder.w_0_mine_beta1_pow_acc_0"].shape == [1]


def test_states_are_taken_before_the_first_step_and_after_it():
    def stepped(optimizer, w, count):
        for _ in range(count):
            w.grad = paddle.to_tensor([1.0, -3.0])
            optimizer.step()
        return w.numpy()

    def fresh():
        w = paddle.zeros([2])
        w.stop_gradient, w.name = False, "state_test_w"
        return w, paddle.optimizer.Adam(0.1, parameters=[w])

    w, optimizer = fresh()
    stepped(optimizer, w, 3)
    state, at_three = {k: v.clone() for k, v in optimizer.state_dict().items()}, w.clone()
    expected = stepped(optimizer, w, 2).copy()
    for steps_before in (0, 1):
        other, second = fresh()
        stepped(second, other, steps_before)
        second.set_state_dict(state)
        other.set_value(at_three)
        np.testing.assert_allclose(stepped(second, other, 2), expected, rtol=1e-6)


def test_a_state_of_another_model_is_refused():
    w = paddle.create_parameter([2], "float32", name="refused_w")
    optimizer = paddle.optimizer.Momentum(0.1, parameters=[w])
    with pytest.raises(ShapeError, match=r"refused_w_velocity_0 has shape \[3\]; its parameter needs \[2\]"):
        optimizer.set_state_dict({"refused_w_velocity_0": paddle.zeros([3])})
    with pytest.raises(ArgumentTypeError, match="set_state_dict"):
        optimizer.set_state_dict([1])
