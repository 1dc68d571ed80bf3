"""static: metrics, printing, Python calls, averages, weight norm, scopes of names, places; methods of Variables."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import static
from static.programs import floats, fresh_static_mode, held, run


@pytest.fixture(autouse=True)
def static_mode():
    with fresh_static_mode() as main:
        yield main


# ---------------------------------------------------------------------- metrics


@pytest.mark.parametrize("k", [1, 2])
def test_accuracy_counts_the_highest(k):
    scores, label = static.data("scores", [None, 4]), static.data("label", [None, 1], "int64")
    main = static.default_main_program()
    correct = main.global_block().create_var("correct", [1], "int64")
    total = main.global_block().create_var("total", [1], "int32")
    acc = static.accuracy(scores, label, k, correct, total)
    a, b = floats(30, 4), np.random.default_rng(1).integers(0, 4, (30, 1))
    outs = run([acc, correct, total], {"scores": a, "label": b})
    right = (np.argsort(-a, 1)[:, :k] == b).any(1)
    assert outs[0] == pytest.approx(right.mean())
    assert (outs[1].tolist(), outs[2].tolist()) == ([right.sum()], [30])
    assert outs[2].dtype == np.int32
    with pytest.raises(ValueError, match="k is 5"):
        static.accuracy(scores, label, 5)
    with pytest.raises(ValueError, match="must be"):
        static.accuracy(label, scores)


@pytest.mark.parametrize("curve", ["ROC", "PR"])
def test_auc_is_that_of_the_metric_over_all_runs_and_the_last_ones(curve):
    scores, label = static.data("scores", [None, 2]), static.data("label", [None, 1], "int64")
    whole, last, counts = static.auc(scores, label, curve, num_thresholds=200, slide_steps=2)
    r = np.random.default_rng(0)
    batches = []
    for step in range(4):
        p = r.random((40, 1)).astype("float32")
        y = (r.random((40, 1)) < p).astype("int64")
        batches.append((np.concatenate([1 - p, p], 1), y))
        outs = run([whole, last, *counts], {"scores": batches[-1][0], "label": y}, start=step == 0)
        for got, used in ((outs[0], batches), (outs[1], batches[-2:])):
            metric = paddle.metric.Auc(curve, 200)
            for a, b in used:
                metric.update(a, b)
            assert got == pytest.approx(metric.accumulate(), abs=1e-9)
        assert outs[4].sum() + outs[5].sum() == 40 * (step + 1)


def test_auc_of_one_class_is_zero_and_weights_leave_samples_out():
    p, label, weight = static.data("p", [None, 1]), static.data("label", [None], "int64"), static.data("w", [None, 1])
    area = static.auc(p, label, ins_tag_weight=weight)[0]
    feed = {"p": np.array([[0.9], [0.1], [0.8]], "float32"), "label": np.array([1, 0, 0])}
    assert run([area], feed | {"w": np.array([[1], [0], [0]], "float32")}, start=True)[0] == 0
    assert run([area], feed | {"w": np.array([[1], [1], [0]], "float32")})[0] == 1
    for bad in ({"curve": "X"}, {"num_thresholds": 0}, {"slide_steps": -1}, {"topk": 2}):
        with pytest.raises(ValueError, match="auc"):
            static.auc(p, label, **bad)
    with pytest.raises(ValueError, match="N, 2"):
        static.auc(static.data("q", [None, 3]), label)


def test_ctr_metric_bundle_sums_over_runs():
    p, label = static.data("p", [None, 1]), static.data("label", [None, 1])
    sums = static.ctr_metric_bundle(p, label)
    a, b = np.random.default_rng(0).random((5, 1)).astype("float32"), np.array([[1], [0], [1], [1], [0]], "float32")
    for runs in (1, 2):
        got = run(list(sums), {"p": a, "label": b}, start=runs == 1)
        wanted = [((a - b) ** 2).sum(), abs(a - b).sum(), a.sum(), (1 / (1 + np.exp(-a))).sum(), 3, 5]
        np.testing.assert_allclose([g[0] for g in got], np.array(wanted) * runs, rtol=1e-5)
    with pytest.raises(ValueError, match="N, 1"):
        static.ctr_metric_bundle(static.data("q", [None, 2]), label)


# ---------------------------------------------------------------------- printing and Python calls


def test_print_shows_the_value_and_its_gradient_a_limited_number_of_times(capsys):
    x = static.data("x", [None, 2])
    x.stop_gradient = False
    y = static.Print(x * 2, first_n=1, message="seen", summarize=1)
    (g,) = static.gradients((y * y).sum(), x)
    for _ in range(2):
        outs = run([y, g], {"x": np.array([[1, 2]], "float32")})
        np.testing.assert_array_equal(outs[1], [[8, 16]])
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("seen") == 2
    assert [line for line in lines if "data" in line] == ["  - data: [2.0]", "  - data: [4.0]"]
    assert any("@GRAD" in line for line in lines)


@pytest.mark.parametrize(("phase", "shown"), [("forward", 1), ("backward", 1), ("both", 2)])
def test_print_has_phases_and_needs_no_fetch(phase, shown, capsys):
    x = static.data("x", [2])
    x.stop_gradient = False
    y = static.Print(x, print_phase=phase)
    static.gradients(y.sum(), x)
    run([], {"x": np.ones(2, "float32")})
    assert capsys.readouterr().out.count("Variable:") == shown


def test_print_refuses_unknown_phases_and_prints_at_once_in_eager_mode(capsys):
    with pytest.raises(ValueError, match="print_phase"):
        static.Print(static.data("x", [2]), print_phase="sideways")
    with pytest.raises(TypeError, match="Variables"):
        static.Print(3)
    paddle.disable_static()
    t = paddle.to_tensor([1, 2])
    assert static.Print(t, message="now") is t
    assert "now" in capsys.readouterr().out
    paddle.enable_static()


def out_var(name="out", shape=(-1, 2), dtype="float32"):
    return static.default_main_program().global_block().create_var(name, list(shape), dtype)


def test_py_func_calls_back_with_gradients():
    x = static.data("x", [None, 2])
    x.stop_gradient = False
    out = static.py_func(lambda v: np.sin(np.array(v)), x, out_var(), lambda v, o, g: np.cos(np.array(v)) * np.array(g))
    (g,) = static.gradients((out * 3).sum(), x)
    for rows in (1, 4):
        given = floats(rows, 2)
        outs = run([out, g], {"x": given})
        np.testing.assert_allclose(outs[0], np.sin(given), rtol=1e-6)
        np.testing.assert_allclose(outs[1], 3 * np.cos(given), rtol=1e-6)


def test_py_func_leaves_out_what_backward_does_not_take_and_sums_what_stands_twice():
    x = static.data("x", [2])
    x.stop_gradient = False
    seen = []

    def backward(*values):
        seen.append(len(values))
        return np.array(values[-1]), np.array(values[-1]) * 2

    out = out_var(shape=(2,))
    static.py_func(lambda a, b: np.array(a) + 2 * np.array(b), [x, x], out, backward, skip_vars_in_backward_input=[x, out])
    (g,) = static.gradients(out.sum(), x)
    assert run([g], {"x": np.ones(2, "float32")})[0].tolist() == [3, 3]
    assert seen == [1]


def test_py_func_without_results_runs_for_its_effect():
    x, seen = static.data("x", [2]), []
    static.py_func(lambda v: seen.append(np.array(v).sum()), x, None)
    run([], {"x": np.ones(2, "float32")})
    assert seen == [2]


def test_py_func_checks_what_comes_back():
    x = static.data("x", [2])
    for k, (function, words) in enumerate(
        [
            (lambda v: np.zeros(2), "float64"),
            (lambda v: np.zeros((2, 3), "float32"), r"\[2, 3\]"),
            (lambda v: (v, v), "2 values"),
        ]
    ):
        out = static.py_func(function, x, out_var(f"o{k}", (2,)))
        with pytest.raises((ValueError, TypeError), match=words):
            run([out], {"x": np.ones(2, "float32")})
    with pytest.raises(TypeError, match="callable"):
        static.py_func(3, x, out_var("p"))
    with pytest.raises(TypeError, match="Variables"):
        static.py_func(lambda v: v, 3, out_var("q"))
    with pytest.raises(ValueError, match="neither in x nor in out"):
        static.py_func(lambda v: v, x, out_var("r"), lambda *v: v, [static.data("z", [2])])


def test_static_pylayer_has_the_gradient_that_is_given():
    x, y = static.data("x", [None]), static.data("y", [None])
    x.stop_gradient = y.stop_gradient = False
    a, b = static.nn.static_pylayer(lambda p, q: (p * q, p), [x, y], lambda g, h: (g * 10, h * 100))
    gx, gy = static.gradients([(a * 2).sum(), b.sum()], [x, y])
    outs = run([a, b, gx, gy], {"x": np.array([3, 4], "float32"), "y": np.array([5, 6], "float32")})
    assert [o.tolist() for o in outs] == [[15, 24], [3, 4], [20, 20], [100, 100]]


def test_static_pylayer_in_a_branch_and_without_backward():
    x = static.data("x", [2])
    x.stop_gradient = False
    layer = lambda: static.nn.static_pylayer(lambda p: p * 2, [x], lambda g: g * 7)  # noqa: E731
    y = static.nn.cond(x.sum() > 0, layer, lambda: x * 3)
    (g,) = static.gradients(y.sum(), x)
    for sign in (1, -1):
        outs = run([y, g], {"x": np.full(2, sign, "float32")})
        assert [o.tolist() for o in outs] == ([[2, 2], [7, 7]] if sign > 0 else [[-3, -3], [3, 3]])
    assert static.nn.static_pylayer(lambda p: p * 2, [x]).stop_gradient
    with pytest.raises(TypeError, match="callable"):
        static.nn.static_pylayer(3, [x])
    with pytest.raises(ValueError, match="2 values"):
        static.nn.static_pylayer(lambda p: p * 2, [x], lambda g: (g, g))


# ---------------------------------------------------------------------- averages and weight norm


@pytest.mark.parametrize("scheduled", [False, True])
def test_averages_follow_the_parameters(scheduled, static_mode):
    w = static.create_parameter([2], "float32", name="w", default_initializer=paddle.nn.initializer.Constant(1.0))
    paddle.optimizer.SGD(1.0).minimize((w * paddle.to_tensor(np.array([1, 3], "float32"))).sum())
    steps = static.create_global_var([1], 0.0, "float32", persistable=True, name="steps") if scheduled else None
    ema = static.ExponentialMovingAverage(0.6, steps)
    ema.update()
    if scheduled:
        paddle.increment(steps)
    test = static_mode.clone(for_test=True)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    average, left, value = np.zeros(2), 1.0, np.ones(2)
    for step in range(3):
        exe.run()
        value = value - [1, 3]
        decay = min(0.6, (1 + step) / (10 + step)) if scheduled else 0.6
        average, left = average * decay + value * (1 - decay), left * decay
    with ema.apply(exe):
        np.testing.assert_allclose(exe.run(test, fetch_list=["w"])[0], average / (1 - left), rtol=1e-5)
    np.testing.assert_allclose(held("w"), value)
    with ema.apply(exe, need_restore=False):
        pass
    assert abs(held("w") - value).max() > 0.1
    ema.restore(exe)
    np.testing.assert_allclose(held("w"), value)


def test_averages_refuse_what_is_out_of_order():
    for bad, kind in (({"decay": 2.0}, ValueError), ({"decay": "x"}, ValueError), ({"thres_steps": 3}, TypeError)):
        with pytest.raises(kind, match="ExponentialMovingAverage"):
            static.ExponentialMovingAverage(**bad)
    ema = static.ExponentialMovingAverage()
    with pytest.raises(ValueError, match="no trained parameter"):
        ema.update()
    with pytest.raises(ValueError, match="before update"), static.ExponentialMovingAverage().apply(None):
        pass


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_weight_norm_splits_a_weight_into_length_and_direction(dim, static_mode):
    x = static.data("x", [None, 3])
    y = static.nn.fc(x, 4, weight_attr=static.WeightNormParamAttr(dim, "w"), bias_attr=False)
    pairs = static.append_backward(y.sum())
    assert {p.name for p, _ in pairs} == {"w_g", "w_v"}
    given = floats(5, 3)
    (got,) = run([y], {"x": given}, start=True)
    np.testing.assert_allclose(got, given @ held("w_v"), rtol=1e-5, atol=1e-6)
    assert held("w_g").shape == {None: (1, 1), 0: (3, 1), 1: (1, 4), -1: (1, 4)}[dim]
    static.global_scope().find_var("w_g").get_tensor().set_value(held("w_g") * 2)
    np.testing.assert_allclose(run([y], {"x": given})[0], 2 * got, rtol=1e-5)
    with pytest.raises(ValueError, match="axis"):
        static.nn.fc(x, 4, weight_attr=static.WeightNormParamAttr(2))


# ---------------------------------------------------------------------- names, places, devices


def test_name_scopes_nest_and_end():
    x = static.data("x", [2])
    with static.name_scope("a"):
        with static.name_scope("b"):
            inner = x + 1
            assert static.nn.fc(static.data("y", [None, 2]), 3, name="head").shape == [-1, 3]
        outer = x + 1
    assert (inner.name.split("add")[0], outer.name.split("add")[0], (x + 1).name.split("add")[0]) == ("a/b/", "a/", "")
    assert "head.w_0" in static.default_main_program().global_block().vars
    with pytest.raises(TypeError, match="prefix"), static.name_scope(""):
        pass


def test_places_and_devices():
    assert static.cpu_places(3) == [paddle.CPUPlace()] * 3
    assert static.cpu_places()
    with static.device_guard("cpu"), static.device_guard():
        assert static.data("x", [2]).place == paddle.CPUPlace()
    for action in (
        lambda: static.cpu_places(0), lambda: static.cpu_places(True), static.cuda_places, static.xpu_places, lambda: static.device_guard("tpu").__enter__(),
        lambda: static.device_guard("gpu:0").__enter__(), static.IpuStrategy, static.IpuCompiledProgram, static.ipu_shard_guard,
        lambda: static.set_ipu_shard(print),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError, NotImplementedError)):
            action()


# ---------------------------------------------------------------------- Variables


def test_variables_have_the_methods_of_tensors():
    x = static.data("x", [None, 3, 2])
    assert (x.dim(), x.ndimension(), x.ndim, x.element_size(), x.itemsize) == (3, 3, 3, 4, 4)
    assert (x.is_leaf, x.is_parameter, x.is_contiguous(), x.requires_grad, x.get_device()) == (True, False, True, False, -1)
    assert x.is_dense_tensor_type()
    assert not x.is_dist()
    assert x.cpu() is x
    assert x.contiguous() is x
    assert x.T.shape == [2, 3, -1]
    assert x.mT.shape == [-1, 2, 3]
    assert static.data("known", [4, 3]).size == 12
    assert (x.to("float64").dtype, x.to(x.astype("int32")).dtype, x.to("cpu").dtype) == ("float64", "int32", "float32")
    assert x.new_zeros([2, 5]).shape == [2, 5]
    assert x.new_ones(2, 5, dtype="int64").dtype == "int64"
    outs = run([x.size, x.new_full([2], 7.0), x.new_ones([1])], {"x": floats(5, 3, 2)})
    assert (outs[0].item(), outs[1].tolist(), outs[2].tolist()) == (30, [7, 7], [1])
    with pytest.raises(ValueError, match="two axes"):
        static.data("v", [2]).mT
    with pytest.raises(NotImplementedError, match="CUDA"):
        x.cuda()
    for action in (x.backward, lambda: x.register_hook(print), lambda: x.append(x)):
        with pytest.raises((TypeError, NotImplementedError), match="x"):
            action()


def test_detached_variables_stop_gradients():
    x = static.data("x", [2])
    x.requires_grad = True
    y = x.detach() * x
    assert not y.stop_gradient
    (g,) = static.gradients(y.sum(), x)
    assert run([g], {"x": np.array([3, 4], "float32")})[0].tolist() == [3, 4]


def test_writes_into_variables_are_statements():
    x = static.data("x", [None, 2])
    before = x * 1
    x.fill_(2.0)
    filled = x * 1
    x.set_value(np.array([[5, 6]], "float32"))
    copied = x * 1
    x.zero_()
    outs = run([before, filled, copied, x], {"x": np.ones((3, 2), "float32")})
    assert [o.tolist() for o in outs] == [[[1, 1]] * 3, [[2, 2]] * 3, [[5, 6]] * 3, [[0, 0]] * 3]
    with pytest.raises(ValueError, match="must be equal"):
        x.set_value(np.ones((2, 3), "float32"))


def test_values_in_the_scope_and_shapes_made_known(static_mode):
    w = static.create_parameter([2], "float32", name="w")
    with pytest.raises(ValueError, match="no value"):
        w.get_value()
    static.Executor().run(static.default_startup_program())
    w.set_value(np.array([1, 2], "float32"), static.global_scope())
    assert w.get_value().tolist() == [1, 2]
    x = static.data("x", [None, None])
    x.set_shape([None, 4])
    assert x.shape == [-1, 4]
    assert (x @ paddle.ones([4, 2])).shape == [-1, 2]
    with pytest.raises(ValueError, match="set_shape"):
        x.set_shape([2, 3])
    assert (x + 1).get_defining_op().name.endswith("add")
    assert x.block.program is static_mode


# ---------------------------------------------------------------------- Programs and Executors


def test_programs_count_what_they_hold_and_run_over_datasets(static_mode, capsys):
    x = static.data("x", [None, 2])
    loss = static.nn.fc(x, 1, weight_attr="w").mean()
    paddle.optimizer.SGD(0.1).minimize(loss)
    assert static_mode.parameters_num() == 2
    assert static_mode.num_ops() == sum(len(b.ops) for b in static_mode.blocks) > 3
    exe = static.Executor()
    exe.run(static.default_startup_program())
    before = held("w").copy()
    np.testing.assert_array_equal(static_mode.get_parameter_value_by_name("w").numpy(), before)
    assert set(static_mode.get_all_parameter_values()) == {p.name for p in static_mode.all_parameters()}
    exe.train_from_dataset(static_mode, [{"x": floats(3, 2)}] * 3, fetch_list=[loss], fetch_info=["loss"], print_period=2)
    exe.flush()
    assert capsys.readouterr().out.count("loss: ") == 2
    assert (held("w") != before).any()
    with pytest.raises(TypeError, match="dicts"):
        exe.train_from_dataset(static_mode, None)


@pytest.mark.parametrize("kind", ["conv", "softmax", "pool", "first_step", "last_step", "expand"])
def test_sequences_by_level_of_detail_are_refused_with_another_way(kind):
    with pytest.raises(NotImplementedError, match=f"(?s)sequence_{kind}.*levels of detail"):
        getattr(static.nn, f"sequence_{kind}")(
            static.data("x", [None, 2]), *{"conv": [3], "pool": ["sum"], "expand": ["y"]}.get(kind, [])
        )


@pytest.mark.parametrize("method", ["Adam", "Adamax", "NAdam", "RAdam", "Lamb"])
def test_what_an_optimizer_counts_is_saved_loaded_started_anew_and_of_the_scope(method, tmp_path):
    def build():
        main, startup = static.Program(), static.Program()
        with static.program_guard(main, startup), paddle.utils.unique_name.guard():
            x = static.data("x", [None, 3])
            weight = paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.5))
            loss = static.nn.fc(x, 1, weight_attr=weight, bias_attr=False).pow(2).mean()
            getattr(paddle.optimizer, method)(0.1).minimize(loss)
        return main, startup

    def train(main, steps):
        for _ in range(steps):
            exe.run(main, feed={"x": floats(4, 3)})
        return held("w").copy()

    exe, path = static.Executor(), str(tmp_path / "model")
    with fresh_static_mode():
        main, startup = build()
        exe.run(startup)
        first = train(main, 1)
        train(main, 2)
        static.save(main, path)
        fourth = train(main, 1)
        exe.run(startup)  # anew
        np.testing.assert_array_equal(train(main, 1), first)
        with static.scope_guard(static.Scope()):  # another scope has its own count
            exe.run(startup)
            np.testing.assert_array_equal(train(main, 1), first)
        static.load(main, path)
        np.testing.assert_allclose(train(main, 1), fourth, rtol=1e-5)
    with fresh_static_mode():
        main, startup = build()
        exe.run(startup)
        static.load(main, path)
        np.testing.assert_allclose(train(main, 1), fourth, rtol=1e-5)
