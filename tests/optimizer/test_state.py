"""Optimizer states: names, resuming, files that the real PaddlePaddle reads and writes, errors."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from front.reference import ask_paddle, needs_paddle, paddle_python

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


MASTERS = ["SGD", "Momentum", "Adam", "AdamW", "Lamb", "ASGD", "Rprop"]


@pytest.mark.parametrize("name", MASTERS)
def test_states_of_master_weights_have_paddles_names_and_round_trip(name, tmp_path):
    def made():
        attr = paddle.ParamAttr(name="half.w_0", initializer=paddle.nn.initializer.Constant(1.0))
        w = paddle.create_parameter([2, 3], "bfloat16", attr=attr)
        return w, getattr(paddle.optimizer, name)(0.05, parameters=[w], multi_precision=True)

    def step(w, optimizer, k):
        w.grad = paddle.to_tensor(np.sin(np.arange(6) + k).reshape(2, 3)).astype("bfloat16")
        optimizer.step()

    w, optimizer = made()
    for k in range(3):
        step(w, optimizer, k)
    state = optimizer.state_dict()
    assert list(state["master_weights"]) == ["half.w_0"]
    names = [key for key in state if key not in ("master_weights", "LR_Scheduler")]
    assert all(key.startswith("half.w_0_fp32_master_0_") for key in names)
    paddle.save(state, str(tmp_path / "o.pdopt"))
    older = {key.replace("_fp32_master_0", ""): value for key, value in state.items()}
    for found in (paddle.load(str(tmp_path / "o.pdopt")), older):
        other, resumed = made()
        other.set_value(w)
        resumed.set_state_dict(found)
        copy, whole = made()
        copy.set_value(w)
        whole.set_state_dict(state)
        for k in range(3, 5):
            step(other, resumed, k)
            step(copy, whole, k)
        np.testing.assert_array_equal(
            resumed.state_dict()["master_weights"]["half.w_0"], whole.state_dict()["master_weights"]["half.w_0"]
        )
    for k in range(3, 5):
        step(w, optimizer, k)
    for key, value in optimizer.state_dict().items():
        if key != "master_weights":
            np.testing.assert_allclose(whole.state_dict()[key].numpy(), value.numpy(), rtol=1e-6, atol=1e-7, err_msg=key)
    np.testing.assert_allclose(
        whole.state_dict()["master_weights"]["half.w_0"], optimizer.state_dict()["master_weights"]["half.w_0"], rtol=1e-6
    )


@needs_paddle
def test_paddles_states_of_master_weights_are_taken(tmp_path):
    script = """
import sys, numpy as np, paddle
layer = paddle.nn.Layer()
layer.w = paddle.create_parameter([2, 3], "float32", attr=paddle.ParamAttr(name="half.w_0", initializer=paddle.nn.initializer.Constant(1.0)))
layer.to(dtype="bfloat16")
opt = paddle.optimizer.Rprop(0.05, parameters=[layer.w], multi_precision=True)
for k in range(2):
    (layer.w * paddle.to_tensor(np.sin(np.arange(6) + k).reshape(2, 3)).astype("bfloat16")).sum().backward()
    opt.step()
    opt.clear_grad()
paddle.save(opt.state_dict(), sys.argv[1])
print("[]")
"""
    path = str(tmp_path / "theirs.pdopt")
    ask_paddle(script, path)
    theirs = paddle.load(path)
    w = paddle.create_parameter([2, 3], "bfloat16", attr=paddle.ParamAttr(name="half.w_0"))
    opt = paddle.optimizer.Rprop(0.05, parameters=[w], multi_precision=True)
    opt.set_state_dict(theirs)
    state = opt.state_dict()
    assert set(theirs) - {"LR_Scheduler"} <= set(state)
    for key in set(theirs) - {"LR_Scheduler", "master_weights"}:
        np.testing.assert_allclose(
            state[key].astype("float32").numpy(), theirs[key].astype("float32").numpy(), rtol=1e-2, err_msg=key
        )
    np.testing.assert_array_equal(state["master_weights"]["half.w_0"].numpy(), theirs["master_weights"]["half.w_0"].numpy())
