"""Optimizers in Programs and compiled steps train as in eager mode."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan.optimizer.recorded import form_of

RNG = np.random.default_rng(0)
START = RNG.standard_normal((3, 2)).astype("float32")
BATCHES = RNG.standard_normal((7, 4, 3)).astype("float32")

KINDS = {
    "RAdam": {"beta2": 0.9}, "RAdam before it is rectified": {}, "ASGD": {"batch_num": 3}, "ASGD of one batch": {}, "ASGD decayed": {"batch_num": 2, "weight_decay": 0.1},
}  # fmt: skip
MASTERS = ["SGD", "Momentum", "Adam", "AdamW", "Lamb", "ASGD", "Rprop"]


def made(name, parameters=None, **options):
    return getattr(paddle.optimizer, name.split()[0])(0.05, parameters=parameters, **options)


def parameter(dtype):
    value = paddle.nn.initializer.Assign(START.astype(dtype))
    create = paddle.create_parameter if paddle.in_dynamic_mode() else paddle.static.create_parameter
    return create([3, 2], dtype, default_initializer=value)


def eager(name, dtype="float32", **options):
    w = parameter(dtype)
    optimizer = made(name, [w], **options)
    losses = []
    for batch in BATCHES:
        loss = ((paddle.to_tensor(batch.astype(dtype)) @ w) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    return losses, w.astype("float32").numpy()


def compiled(name, dtype="float32", **options):
    w = parameter(dtype)
    step = paddle.jit.TrainStep(lambda x: ((x @ w) ** 2).mean(), made(name, [w], **options))
    return [step(paddle.to_tensor(b.astype(dtype))).item() for b in BATCHES], w.astype("float32").numpy(), step


def program(name, dtype="float32", **options):
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            x = paddle.static.data("x", [None, 3], dtype)
            w = parameter(dtype)
            loss = ((x @ w) ** 2).mean()
            made(name, **options).minimize(loss)
        executor = paddle.static.Executor()
        with paddle.static.scope_guard(paddle.static.Scope()):
            executor.run(startup)
            losses = [
                executor.run(main, feed={"x": b.astype(dtype)}, fetch_list=[loss], return_numpy=False)[0].item() for b in BATCHES
            ]
            kept = paddle.static.global_scope().get(w.name)
    finally:
        paddle.disable_static()
    return losses, kept.astype("float32").numpy()


@pytest.mark.parametrize("name", KINDS)
def test_methods_that_count_their_steps_do_so_in_programs(name):
    losses, w = eager(name, **KINDS[name])
    *found, step = compiled(name, **KINDS[name])
    assert step._recordings.by_key
    assert sum(map(len, step._recordings.by_key.values())) == 1
    for others in (found, program(name, **KINDS[name])):
        assert others[0] == losses
        np.testing.assert_array_equal(others[1], w)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", MASTERS)
def test_master_weights_of_programs_are_made_by_the_startup_program(name, dtype):
    options = {"multi_precision": True, **({"momentum": 0.5} if name == "Momentum" else {})}
    losses, w = eager(name, dtype, **options)
    tolerance = 0.005 if dtype == "float16" else 0.05
    for found in (compiled(name, dtype, **options), program(name, dtype, **options)):
        np.testing.assert_allclose(found[0], losses, rtol=tolerance)
        np.testing.assert_allclose(found[1], w, rtol=tolerance, atol=tolerance)


def test_master_weights_gather_steps_too_small_for_the_parameter():
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            w = paddle.static.create_parameter([1], "float16", default_initializer=paddle.nn.initializer.Constant(1.0))
            loss = w.sum()
            paddle.optimizer.SGD(1e-4, multi_precision=True).minimize(loss)
        executor = paddle.static.Executor()
        executor.run(startup)
        for _ in range(20):
            executor.run(main)
        (value,) = executor.run(main, fetch_list=[w])
    finally:
        paddle.disable_static()
    assert abs(value.item() - (1 - 20 * 1e-4)) < 1e-3


def test_minimize_and_apply_gradients_give_the_statements_of_the_update():
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main, paddle.static.Program()):
            w = parameter("float32")
            loss = (w**2).mean()
            statements, pairs = paddle.optimizer.SGD(0.1).minimize(loss)
            assert [s.type for s in statements] == ["sgd_step"]
            assert pairs[0][1].name in statements[0].input_arg_names
            assert statements[-1].op is main.global_block().ops[-1].op
            before = len(main.global_block().ops)
            clip = paddle.nn.ClipGradByNorm(1.0)
            optimizer = paddle.optimizer.Adam(0.1, grad_clip=clip)
            statements = optimizer.apply_gradients(optimizer.backward(loss))
            assert statements[-1].type == "adam_step"
            assert len(statements) > 1  # the clipping too
            assert len(main.global_block().ops) > before + len(statements)  # but not the gradients
            assert repr(statements[-1]) == f"Operator({statements[-1]})"
    finally:
        paddle.disable_static()
    x = paddle.create_parameter([2], "float32")
    assert paddle.optimizer.SGD(0.1, parameters=[x]).minimize(x.sum())[0] == []


def test_lbfgs_in_a_program_says_why_not():
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
            w = parameter("float32")
            loss = (w**2).mean()
            for update in (lambda o: o.minimize(loss), lambda o: o.apply_gradients(paddle.static.append_backward(loss))):
                with pytest.raises((TypeError, NotImplementedError), match="evaluate"):
                    update(paddle.optimizer.LBFGS(parameters=[w]))
    finally:
        paddle.disable_static()


def test_the_form_of_an_update_is_looked_at_again_when_a_parameter_changes():
    layer = paddle.nn.Linear(2, 2)
    optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters(), weight_decay=0.5)
    first = form_of(optimizer, None)
    assert form_of(optimizer, first) is first
    for change in (
        lambda: setattr(layer.weight, "stop_gradient", True),
        lambda: setattr(layer.bias, "trainable", False),
        lambda: layer.bias.optimize_attr.update(learning_rate=0.5),
        lambda: setattr(layer.weight, "regularizer", paddle.regularizer.L1Decay(0.1)),
        lambda: optimizer._param_groups[0].update(weight_decay=0.25),
    ):
        change()
        second = form_of(optimizer, first)
        assert second.settings != first.settings
        first = second


def test_a_step_is_recorded_again_when_a_setting_that_it_read_changes():
    net = paddle.nn.Sequential(paddle.nn.Linear(4, 4), paddle.nn.Dropout(0.5))
    net[0].weight.set_value(paddle.eye(4))
    step = paddle.jit.TrainStep(lambda x: net(x).mean(), paddle.optimizer.SGD(0.0, parameters=net.parameters()))
    x = paddle.ones([8, 4])
    step(x)
    net[1].p = 0.0
    assert step(x).item() == pytest.approx(1 + net[0].bias.numpy().mean())
    net[1].p = 0.5
    net.eval()
    assert step(x).item() == pytest.approx(1 + net[0].bias.numpy().mean())


def test_what_a_step_could_not_repeat_is_refused():
    net, seen = paddle.nn.Linear(2, 1), []

    def loss(x):
        seen.append(x)
        return net(x).mean()

    with pytest.raises(paddle.base.errors.ConversionError, match="changes a list"):
        paddle.jit.TrainStep(loss, paddle.optimizer.SGD(0.1, parameters=net.parameters()))(paddle.ones([2, 2]))
    assert seen == []
