"""Programs: building, running, gradients, training, control flow, and that they compute what eager mode computes."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import static


@pytest.fixture(autouse=True)
def static_mode():
    """Static mode, fresh default Programs and a fresh scope for each test."""
    paddle.enable_static()
    main, startup = static.Program(), static.Program()
    with static.scope_guard(static.Scope()), static.program_guard(main, startup):
        yield main
    paddle.disable_static()


def run(fetches, feed=None, program=None):
    return static.Executor().run(program or static.default_main_program(), feed=feed or {}, fetch_list=fetches)


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


# ---------------------------------------------------------------------- building


def test_unknown_sizes_follow_through_operators():
    x = static.data("x", [None, 3, 4])
    assert x.shape == [-1, 3, 4]
    assert x.reshape([-1, 12]).shape == [-1, 12]
    assert paddle.concat([x, x], axis=0).shape == [-1, 3, 4]
    assert paddle.concat([x, x], axis=1).shape == [-1, 6, 4]
    assert x.transpose([2, 0, 1]).shape == [4, -1, 3]
    assert x.mean(axis=0).shape == [3, 4]
    assert x[:, 1].shape == [-1, 4]
    assert x[2:5].shape == [3, 3, 4]
    assert (x + x.sum(axis=1, keepdim=True)).dtype == paddle.float32


def test_errors_speak_of_unknown_sizes_and_of_the_line():
    x = static.data("x", [None, 3])
    with pytest.raises(ValueError, match=r"test_core.py:\d+") as caught:
        x.reshape([-1, 2]) @ paddle.ones([3, 2])
    assert "1440" not in str(caught.value)
    assert "2880" not in str(caught.value)


@pytest.mark.parametrize("action", [bool, float, int, len, lambda v: v.numpy(), lambda v: v.item(), np.asarray])
def test_a_variable_has_no_elements(action):
    x = static.data("x", [None])
    with pytest.raises(TypeError, match="Variable x"):
        action(x)


def test_names_are_unique_and_wrong_declarations_are_refused():
    static.data("x", [1])
    with pytest.raises(ValueError, match="already"):
        static.data("x", [1])
    for bad in ([-2], ["a"], 3, [1.5], [True]):
        with pytest.raises(TypeError, match="data"):
            static.data("y", bad)
    with pytest.raises(TypeError, match="string"):
        static.data("", [1])


def test_a_variable_of_another_program_is_refused():
    x = static.data("x", [1])
    with static.program_guard(static.Program()):
        with pytest.raises(ValueError, match="another Program"):
            x + 1
        with pytest.raises(ValueError, match="another Program"):
            static.data("z", [1]) + x


def test_a_program_prints_as_statements(static_mode):
    x = static.data("x", [None, 2])
    paddle.nn.functional.dropout(paddle.matmul(x, paddle.ones([2, 5])), 0.25)
    text = str(static_mode)
    assert "data x: float32[-1, 2]" in text
    assert "= matmul(x, " in text
    assert "p=0.25" in text


# ---------------------------------------------------------------------- running


def test_one_program_runs_with_any_batch_size():
    x = static.data("x", [None, 3])
    y = paddle.nn.functional.softmax(x * 2 + 1, axis=-1)
    for rows in (1, 4, 7, 0):
        given = floats(rows, 3)
        (out,) = run([y], {"x": given})
        e = np.exp((given * 2 + 1) - (given * 2 + 1).max(-1, keepdims=True, initial=-9))
        np.testing.assert_allclose(out, e / e.sum(-1, keepdims=True), rtol=1e-6)


def test_feeds_are_checked():
    x = static.data("x", [None, 3])
    y = x + 1
    with pytest.raises(ValueError, match=r"(?s)was not fed.*feed="):
        run([y])
    with pytest.raises(ValueError, match=r"\[2, 4\]"):
        run([y], {"x": floats(2, 4)})
    with pytest.raises(TypeError, match="float64"):
        run([y], {"x": np.ones((2, 3))})
    with pytest.raises(ValueError, match="did you mean"):
        run([y], {"xx": floats(2, 3)})
    with pytest.raises(ValueError, match="no such Variable"):
        run(["nothing"], {"x": floats(2, 3)})
    with pytest.raises(TypeError, match="dict"):
        run([y], 3)
    assert run([y], {"x": [[1.0, 2.0, 3.0]]})[0].tolist() == [[2, 3, 4]]


def test_an_intermediate_variable_can_be_fed():
    x = static.data("x", [2])
    y = x + 1
    z = y * 10
    assert run([z], {y.name: np.array([5, 6], "float32")})[0].tolist() == [50, 60]


def test_fetching_by_name_and_as_tensors():
    x = static.data("x", [2])
    y = x + 1
    out = static.Executor().run(feed={"x": np.ones(2, "float32")}, fetch_list=[y.name], return_numpy=False)
    assert isinstance(out[0], paddle.Tensor)


def test_parameters_need_the_startup_program():
    w = static.create_parameter([2, 2], "float32", name="w")
    with pytest.raises(ValueError, match="startup"):
        run([w])
    static.Executor().run(static.default_startup_program())
    assert run([w])[0].shape == (2, 2)


def test_scopes_keep_apart():
    v = static.create_global_var([1], 3.0, "float32", persistable=True, name="v")
    paddle.increment(v)
    exe, scope = static.Executor(), static.Scope()
    exe.run(static.default_startup_program())
    exe.run(static.default_startup_program(), scope=scope)
    main = static.default_main_program()
    assert [exe.run(main, fetch_list=[v])[0].item() for _ in range(3)] == [4, 5, 6]
    assert exe.run(main, fetch_list=[v], scope=scope)[0].item() == 4
    assert scope.find_var("v").get_tensor().item() == 4
    assert scope.find_var("nothing") is None


def test_writes_in_place_are_ordered():
    x = static.data("x", [3])
    before = x * 1
    x[1] = 7.0
    after = x * 1
    x.add_(paddle.ones([3]))
    end = x * 1
    outs = run([before, after, end], {"x": np.zeros(3, "float32")})
    assert [o.tolist() for o in outs] == [[0, 0, 0], [0, 7, 0], [1, 8, 1]]


def test_writing_into_a_view_is_refused():
    x = static.data("x", [3, 2])
    with pytest.raises(NotImplementedError, match="view"):
        x[0][1] = 5.0
    with pytest.raises(NotImplementedError, match="view"):
        x.reshape([6]).add_(paddle.ones([6]))


@pytest.mark.parametrize("rows", [1, 5])
def test_what_depends_on_data_runs_between_compiled_pieces(rows):
    x = static.data("x", [None, 3])
    picked = x[x > 0]
    where = paddle.nonzero(x > 0)
    total = picked.sum() + x.sum()
    given = floats(rows, 3, seed=rows)
    outs = run([picked, where, total, paddle.unique(paddle.sign(x))], {"x": given})
    np.testing.assert_array_equal(outs[0], given[given > 0])
    np.testing.assert_array_equal(outs[1], np.argwhere(given > 0))
    np.testing.assert_allclose(outs[2], given[given > 0].sum() + given.sum(), rtol=1e-5)
    np.testing.assert_array_equal(outs[3], np.unique(np.sign(given)))


def test_random_operators_draw_as_eager_mode_draws():
    x = static.data("x", [None, 8])
    y = paddle.nn.functional.dropout(x, 0.5) + paddle.rand([8])
    given = floats(4, 8)
    paddle.seed(11)
    first, second = run([y], {"x": given})[0], run([y], {"x": given})[0]
    paddle.disable_static()
    paddle.seed(11)
    for wanted in (first, second):
        t = paddle.to_tensor(given)
        np.testing.assert_array_equal((paddle.nn.functional.dropout(t, 0.5) + paddle.rand([8])).numpy(), wanted)
    paddle.enable_static()


# ---------------------------------------------------------------------- gradients


def test_gradients_are_those_of_eager_mode():
    given, weights = floats(3, 4), floats(4, 2, seed=1)
    x = static.data("x", [None, 4])
    x.stop_gradient = False
    w = static.create_parameter([4, 2], "float32", name="w", default_initializer=paddle.nn.initializer.Assign(weights))
    loss = (paddle.tanh(x @ w) ** 2).mean() + x[:, 1].exp().sum()
    gx, gw = static.gradients([loss], [x, w])
    static.Executor().run(static.default_startup_program())
    outs = run([gx, gw], {"x": given})
    paddle.disable_static()
    a, b = paddle.to_tensor(given, stop_gradient=False), paddle.to_tensor(weights, stop_gradient=False)
    ((paddle.tanh(a @ b) ** 2).mean() + a[:, 1].exp().sum()).backward()
    paddle.enable_static()
    np.testing.assert_allclose(outs[0], a.grad.numpy(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(outs[1], b.grad.numpy(), rtol=1e-5, atol=1e-7)


def test_a_variable_used_twice_gets_the_sum():
    x = static.data("x", [2])
    y = x * x + x
    (g,) = static.gradients(y, x)
    assert run([g], {"x": np.array([3, -1], "float32")})[0].tolist() == [7, -1]


def test_gradients_of_what_nothing_depends_on_are_none():
    x, z = static.data("x", [2]), static.data("z", [2])
    assert static.gradients(x * 2, z) == [None]


def test_append_backward_wants_one_number():
    w = static.create_parameter([2], "float32")
    with pytest.raises(ValueError, match="one number"):
        static.append_backward(w * 2)
    with pytest.raises(TypeError, match="Variables"):
        static.append_backward(3.0)


# ---------------------------------------------------------------------- control flow


@pytest.mark.parametrize("value", [3.0, -3.0])
def test_cond_with_gradients(value):
    x = static.data("x", [2])
    y = static.nn.cond(x.sum() > 0, lambda: x * x, lambda: x * 3 + 1)
    (g,) = static.gradients(y.sum(), x)
    given = np.array([value, value], "float32")
    outs = run([y, g], {"x": given})
    np.testing.assert_allclose(outs[0], given * given if value > 0 else given * 3 + 1)
    np.testing.assert_allclose(outs[1], 2 * given if value > 0 else [3, 3])


@pytest.mark.parametrize("times", [0, 1, 4])
def test_while_with_gradients(times):
    x, n = static.data("x", [2]), static.data("n", [], "int64")
    _, y = static.nn.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), [paddle.zeros([], "int64"), x + 1])
    (g,) = static.gradients(y.sum(), x)
    given = np.array([2, 0.5], "float32")
    outs = run([y, g], {"x": given, "n": np.array(times)})
    np.testing.assert_allclose(outs[0], (given + 1) * given**times)
    np.testing.assert_allclose(outs[1], given**times + times * (given + 1) * given ** max(times - 1, 0) * (times > 0), rtol=1e-6)


def test_control_flow_nests():
    x = static.data("x", [], "float32")

    def body(i, acc):
        acc = static.nn.cond(i % 2 == 0, lambda: acc + x, lambda: acc * 2)
        _, acc = static.nn.while_loop(lambda j, a: j < i, lambda j, a: (j + 1, a + 1), [paddle.zeros([], "int64"), acc])
        return i + 1, acc

    _, acc = static.nn.while_loop(lambda i, acc: i < 4, body, [paddle.zeros([], "int64"), paddle.zeros([])])
    (g,) = static.gradients(acc, x)
    expected, slope = 0.0, 0.0
    for i in range(4):
        expected, slope = (expected + 5, slope + 1) if i % 2 == 0 else (expected * 2, slope * 2)
        expected += i
    outs = run([acc, g], {"x": np.float32(5)})
    assert (outs[0].item(), outs[1].item()) == (expected, slope)


def test_a_loop_may_carry_growing_sizes():
    x = static.data("x", [1, 2])
    _, rows = static.nn.while_loop(
        lambda i, r: i < 3, lambda i, r: (i + 1, paddle.concat([r, x], axis=0)), [paddle.zeros([], "int64"), x]
    )
    assert rows.shape == [-1, 2]
    assert run([rows * 2], {"x": np.ones((1, 2), "float32")})[0].shape == (4, 2)


def test_branches_write_outer_variables():
    x, flag = static.data("x", [2]), static.data("flag", [], "bool")
    total = paddle.zeros([2])

    def add():
        total.add_(x)

    static.nn.cond(flag, add, None)
    for on in (True, False):
        assert run([total * 1], {"x": np.ones(2, "float32"), "flag": np.array(on)})[0].tolist() == [float(on)] * 2


def test_dropout_in_a_loop_draws_anew_in_every_pass():
    x = static.data("x", [64])
    _i, a, b = static.nn.while_loop(
        lambda i, a, b: i < 2,
        lambda i, a, b: (i + 1, b, paddle.nn.functional.dropout(x, 0.5)),
        [paddle.zeros([], "int64"), x, x],
    )
    first, second = run([a, b], {"x": np.ones(64, "float32")})
    assert (first != second).any()
    assert set(np.unique(first)) == {0.0, 2.0}


def test_branches_that_do_not_match_are_refused():
    x = static.data("x", [2])
    test = x.sum() > 0
    with pytest.raises(ValueError, match="structure"):
        static.nn.cond(test, lambda: (x, x), lambda: x)
    with pytest.raises(TypeError, match="int64"):
        static.nn.cond(test, lambda: x, lambda: x.astype("int64"))
    with pytest.raises(ValueError, match="must be tensors, or the same value"):
        static.nn.cond(test, lambda: "a", lambda: "b")
    with pytest.raises(ValueError, match="one element"):
        static.nn.cond(x > 0, lambda: x, lambda: x)
    with pytest.raises(ValueError, match="3 values"):
        static.nn.while_loop(lambda i: i < 3, lambda i: (i, i, i), [paddle.zeros([], "int64")])
    with pytest.raises(TypeError, match="began as"):
        static.nn.while_loop(lambda i: i < 3, lambda i: i * 0.5, [paddle.zeros([], "int64")])


@pytest.mark.parametrize("number", [0, 1, 2, 9])
def test_switch_case_and_case(number):
    k = static.data("k", [], "int64")
    a = static.nn.switch_case(k, {0: lambda: k * 10, 2: lambda: k * 20}, default=lambda: k - 1)
    b = static.nn.case([(k < 1, lambda: k + 100), (k < 2, lambda: k + 200)], default=lambda: k + 300)
    outs = run([a, b], {"k": np.array(number)})
    assert outs[0] == {0: 0, 2: 40}.get(number, number - 1)
    assert outs[1] == number + (100 if number < 1 else 200 if number < 2 else 300)


# ---------------------------------------------------------------------- training

OPTIMIZERS = {
    "SGD": {}, "Momentum": {"momentum": 0.9}, "Adam": {}, "AdamW": {"weight_decay": 0.1}, "Adagrad": {}, "RMSProp": {}, "Adamax": {}, "Lamb": {},
    "NAdam": {}, "Adadelta": {},
}  # fmt: skip


def net():
    return paddle.nn.Sequential(
        paddle.nn.Linear(6, 8, bias_attr=False),
        paddle.nn.BatchNorm1D(8),
        paddle.nn.ReLU(),
        paddle.nn.Dropout(0.2),
        paddle.nn.Linear(8, 3),
    )


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_training_equals_eager_training(kind):
    xs, ys = floats(5, 12, 6), np.random.default_rng(1).integers(0, 3, (5, 12, 1))
    paddle.disable_static()
    paddle.seed(5)
    eager = net()
    start = {k: v.numpy() for k, v in eager.state_dict().items()}
    options = dict(OPTIMIZERS[kind], learning_rate=0.05, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.5))
    opt = getattr(paddle.optimizer, kind)(parameters=eager.parameters(), **options)
    paddle.seed(9)
    expected = []
    for x, y in zip(xs, ys, strict=True):
        loss = paddle.nn.functional.cross_entropy(eager(paddle.to_tensor(x)), paddle.to_tensor(y))
        loss.backward()
        opt.step()
        opt.clear_grad()
        expected.append(loss.item())
    paddle.enable_static()
    x, y = static.data("x", [None, 6]), static.data("y", [None, 1], "int64")
    layer = net()
    loss = paddle.nn.functional.cross_entropy(layer(x), y)
    getattr(paddle.optimizer, kind)(**options).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    for name, p in layer.state_dict().items():
        static.global_scope().find_var(p.name).get_tensor().set_value(start[name])
    paddle.seed(9)
    got = [exe.run(feed={"x": a, "y": b}, fetch_list=[loss])[0].item() for a, b in zip(xs, ys, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=2e-5)
    for name, p in layer.state_dict().items():
        held = static.global_scope().find_var(p.name).get_tensor().numpy()
        np.testing.assert_allclose(held, eager.state_dict()[name].numpy(), rtol=1e-4, atol=1e-6, err_msg=name)


def test_clone_for_test_computes_as_in_evaluation(static_mode):
    x = static.data("x", [None, 6])
    out = net()(x)
    loss = out.mean()
    test = static_mode.clone(for_test=True)
    paddle.optimizer.SGD(0.1).minimize(loss)
    later = static_mode.clone(for_test=True)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    given = floats(4, 6)
    first = exe.run(test, feed={"x": given}, fetch_list=[out])[0]
    np.testing.assert_array_equal(exe.run(test, feed={"x": given}, fetch_list=[out.name])[0], first)
    np.testing.assert_array_equal(exe.run(later, feed={"x": given}, fetch_list=[out])[0], first)
    assert "_grad" not in str(later)
    assert "step" not in str(later)
    assert "random_key" not in str(later)
    exe.run(static_mode, feed={"x": given}, fetch_list=[loss])
    assert (exe.run(test, feed={"x": given}, fetch_list=[out])[0] != first).any()


def test_prune_keeps_what_the_targets_need(static_mode):
    x, z = static.data("x", [2]), static.data("z", [2])
    y = x + 1
    w = z * 2 + y
    pruned = static_mode.prune([y])
    assert "z" not in pruned.variables
    assert len(pruned.global_block().ops) < len(static_mode.global_block().ops)
    assert run([y.name], {"x": np.ones(2, "float32")}, pruned)[0].tolist() == [2, 2]
    assert w.shape == [2]


def test_schedulers_drive_the_program():
    w = static.create_parameter([1], "float32", name="w", default_initializer=paddle.nn.initializer.Constant(0.0))
    scheduler = paddle.optimizer.lr.StepDecay(1.0, step_size=1, gamma=0.5)
    paddle.optimizer.SGD(scheduler).minimize(w.sum())
    exe = static.Executor()
    exe.run(static.default_startup_program())
    seen = []
    for _ in range(3):
        exe.run()
        seen.append(static.global_scope().find_var("w").get_tensor().item())
        scheduler.step()
    assert seen == [-1.0, -1.5, -1.75]


def test_many_threads_run_one_program():
    from concurrent.futures import ThreadPoolExecutor

    x = static.data("x", [None, 4])
    y = (x * 2).sum()
    main, exe = static.default_main_program(), static.Executor()

    def work(k):
        given = np.full((k % 5 + 1, 4), k, "float32")
        return exe.run(main, feed={"x": given}, fetch_list=[y])[0].item() == given.sum() * 2

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(40)))


def test_programs_under_the_interpreter():
    x = static.data("x", [None, 3])
    y = paddle.nn.functional.softmax(x @ paddle.ones([3, 3]) + 1)
    given = floats(2, 3)
    compiled = run([y], {"x": given})[0]
    paddle.set_flags({"FLAGS_interpret": True})
    try:
        np.testing.assert_allclose(run([y], {"x": given})[0], compiled, rtol=1e-6)
    finally:
        paddle.set_flags({"FLAGS_interpret": False})


def test_python_numbers_never_widen_a_recorded_result():
    x = static.data("x", [2])
    a, b = run([x + 1.0, x * 2], {"x": floats(2)})
    assert a.dtype == b.dtype == np.float32


def test_an_operator_may_be_called_like_control_flow():
    x = static.data("x", [2, 2])
    (found,) = run([paddle.linalg.cond(x)], {"x": np.diag([4.0, 2.0]).astype("float32")})
    assert found == pytest.approx(2)
