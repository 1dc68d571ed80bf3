"""CompiledProgram: passes by name, replicas over places that train as one place does, the graph and its order."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import sampan as paddle
from sampan import static
from static.programs import floats, fresh_static_mode


@pytest.fixture(autouse=True)
def static_mode():
    with fresh_static_mode() as main:
        yield main


def strategy(**settings):
    made = static.BuildStrategy()
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def trained(places, rows=10, dropout=0.0, as_list=False, threads=0, **settings):
    """(losses, the last outputs, parameters) of five steps."""
    with fresh_static_mode() as main:
        paddle.seed(3)
        x, y = static.data("x", [None, 6]), static.data("y", [None, 1], "int64")
        h = paddle.nn.functional.dropout(static.nn.fc(x, 8, activation="relu"), dropout)
        out = static.nn.fc(h, 3)
        loss = paddle.nn.functional.cross_entropy(out, y)
        paddle.optimizer.Adam(0.05, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.5)).minimize(loss)
        exe = static.Executor()
        exe.run(static.default_startup_program())
        program = static.CompiledProgram(main, strategy(**settings))
        if places:
            execution = static.ExecutionStrategy()
            execution.num_threads = threads
            program.with_data_parallel(loss.name, places=static.cpu_places(places), exec_strategy=execution)
        random = np.random.default_rng(0)
        losses = []
        for _ in range(5):
            feed = {"x": random.standard_normal((rows, 6)).astype("float32"), "y": random.integers(0, 3, (rows, 1))}
            given = [{k: v[i :: rows // 2][:1] for k, v in feed.items()} for i in range(places)] if as_list else feed
            value, last = exe.run(program, feed=given, fetch_list=[loss, out])
            losses.append(value.item())
        scope = static.global_scope()
        return losses, last, [scope.find_var(p.name).get_tensor().numpy() for p in main.all_parameters()]


@pytest.mark.parametrize(("places", "rows", "threads"), [(2, 10, 0), (3, 10, 1), (4, 4, 8)])
def test_places_train_as_one_place_trains_on_the_whole_batch(places, rows, threads):
    one, several = trained(0, rows), trained(places, rows, threads=threads)
    np.testing.assert_allclose(several[0], one[0], rtol=1e-5)
    np.testing.assert_allclose(several[1], one[1], rtol=1e-4, atol=1e-5)
    for a, b in zip(several[2], one[2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_runs_are_equal_whoever_comes_first():
    assert trained(2, dropout=0.5)[0] == trained(2, dropout=0.5)[0] != trained(2)[0]
    assert trained(2)[0] == trained(2, fuse_all_reduce_ops=False, reduce_strategy=static.BuildStrategy.ReduceStrategy.Reduce)[0]


def test_a_feed_for_each_place():
    assert trained(2, as_list=True)[1].shape == (2, 3)


def test_replicas_draw_numbers_of_their_own(static_mode):
    x = static.data("x", [None, 64])
    y = paddle.nn.functional.dropout(x, 0.5)
    program = static.CompiledProgram(static_mode).with_data_parallel(places=2)
    (out,) = static.Executor().run(program, feed={"x": np.ones((2, 64), "float32")}, fetch_list=[y])
    assert (out[0] != out[1]).any()


def test_statistics_and_counts_are_aggregated(static_mode):
    x = static.data("x", [None, 3])
    seen = static.create_global_var([1], 5, "int64", persistable=True, name="seen")
    y = static.nn.batch_norm(x, momentum=0.5, moving_mean_name="mean")
    seen.add_(paddle.sum(paddle.ones_like(x[:, :1]), 0).astype("int64"))
    exe = static.Executor()
    exe.run(static.default_startup_program())
    program = static.CompiledProgram(static_mode).with_data_parallel(places=2)
    given = floats(5, 3)
    outs = exe.run(program, feed={"x": given}, fetch_list=[y, seen])
    assert outs[0].shape == (5, 3)
    assert static.global_scope().find_var("seen").get_tensor().item() == 10
    np.testing.assert_allclose(static.global_scope().find_var("mean").get_tensor().numpy(), given.mean(0) * 0.5, rtol=1e-5)


def test_control_flow_and_effects_run_in_replicas(static_mode):
    x, seen = static.data("x", [None, 1]), []
    _, y = static.nn.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), [paddle.zeros([], "int64"), x])
    z = static.nn.cond(y.sum() > 0, lambda: y, lambda: -y)
    static.py_func(lambda v: seen.append(len(np.array(v))), z, None)
    program = static.CompiledProgram(static_mode).with_data_parallel(places=3)
    given = np.array([[1], [-2], [3], [4]], "float32")
    (out,) = static.Executor().run(program, feed={"x": given}, fetch_list=[z])
    assert out[:, 0].tolist() == [8, 16, 24, 32]
    assert sorted(seen) == [1, 1, 2]


def test_sums_over_places_when_asked_for(static_mode):
    x = static.data("x", [None, 1])
    w = static.create_parameter([1], "float32", name="w", default_initializer=paddle.nn.initializer.Constant(0.0))
    paddle.optimizer.SGD(1.0).minimize((x * w).sum())
    exe = static.Executor()
    exe.run(static.default_startup_program())
    build = strategy(gradient_scale_strategy=static.BuildStrategy.GradientScaleStrategy.One)
    exe.run(
        static.CompiledProgram(static_mode, build).with_data_parallel(places=2),
        feed={"x": np.arange(5, dtype="float32")[:, None]},
    )
    assert static.global_scope().find_var("w").get_tensor().item() == -10


def test_the_graph_is_written_for_graphviz(static_mode, tmp_path):
    x = static.data("x", [None, 2])
    loss = static.nn.fc(x, 1).mean()
    paddle.optimizer.SGD(0.1).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    build = strategy(debug_graphviz_path=str(tmp_path / "graph.dot"))
    exe.run(static.CompiledProgram(static_mode, build).with_data_parallel(places=2), feed={"x": floats(4, 2)}, fetch_list=[loss])
    text = (tmp_path / "graph.dot").read_text()
    assert all(word in text for word in ("replica 0", "replica 1", "aggregate_mean", "shared", "->"))


@pytest.mark.parametrize(
    "name", ["fold_constants", "simplify_algebra", "merge_common", "drop_dead", "narrow_broadcasts", "expand_picks"]
)
def test_each_pass_can_be_left_out(name, monkeypatch):
    from sampan.passes import pipeline

    ran = []
    watched = tuple((_watched(function, ran), why) for function, why in pipeline.PIPELINE)
    monkeypatch.setattr(pipeline, "PIPELINE", watched)
    expected = trained(0)[0]
    assert name in ran
    ran.clear()
    np.testing.assert_allclose(trained(0, **{name: False})[0], expected, rtol=1e-5)
    assert ran.count("expand_definitions") > ran.count(name)


def _watched(function, ran):
    def call(program):
        ran.append(function.__name__)
        return function(program)

    call.__name__ = function.__name__
    return call


def test_an_error_in_a_replica_reaches_the_caller(static_mode):
    x = static.data("x", [None, 1])

    def fail(v):
        raise ValueError("from the replica")

    static.py_func(fail, x, None)
    program = static.CompiledProgram(static_mode).with_data_parallel(places=2)
    for _ in range(2):
        with pytest.raises(ValueError, match="from the replica"):
            static.Executor().run(program, feed={"x": floats(4, 1)})


def test_after_an_error_nothing_runs_any_more_when_the_caller_knows(static_mode):
    x = static.data("x", [None, 1])
    started, failing, ended, later = threading.Event(), threading.Event(), [], []

    def first(v):
        if np.array(v)[0, 0] > 0:
            assert started.wait(60)
            failing.set()
            raise ValueError("from the second replica")
        started.set()
        assert failing.wait(60)
        ended.append(sum(range(2_000_000)))  # still at work when the other one has failed
        return v

    y = static_mode.global_block().create_var("y", [-1, 1], "float32")
    static.py_func(first, x, y)
    static.py_func(lambda v: later.append(1), y * 2, None)
    execution = static.ExecutionStrategy()
    execution.num_threads = 2
    program = static.CompiledProgram(static_mode).with_data_parallel(places=2, exec_strategy=execution)
    with pytest.raises(ValueError, match="second replica"):
        static.Executor().run(program, feed={"x": np.array([[0], [1]], "float32")})
    assert len(ended) == 1
    assert not later


def test_runs_between_failing_runs_are_right(static_mode):
    """Many runs over many workers, of which some fail somewhere in the middle: what follows a failure is not disturbed by it."""
    x, picked = static.data("x", [None, 4]), []
    w = static.create_parameter([4, 4], "float32", name="w", default_initializer=paddle.nn.initializer.Constant(0.25))
    towers = [paddle.tanh(paddle.matmul(x, w) * (k + 1)) for k in range(6)]

    def check(v):
        if picked and np.array(v).sum() > picked[0]:
            raise ValueError("too large")
        return v

    checked = []
    for k, tower in enumerate(towers):
        out = static_mode.global_block().create_var(f"checked{k}", [-1, 4], "float32")
        static.py_func(check, tower, out)
        checked.append(out)
    total = paddle.add_n([c * (k + 1) for k, c in enumerate(checked)])
    exe = static.Executor()
    exe.run(static.default_startup_program())
    execution = static.ExecutionStrategy()
    execution.num_threads = 8
    program = static.CompiledProgram(static_mode).with_data_parallel(places=4, exec_strategy=execution)
    random = np.random.default_rng(2)
    failed = 0
    for k in range(60):
        value = random.standard_normal((8, 4)).astype("float32")
        picked[:] = [0.5] if k % 3 == 2 else []
        try:
            (found,) = exe.run(program, feed={"x": value}, fetch_list=[total])
        except ValueError:
            failed += 1
            continue
        wanted = sum(np.tanh(value.sum(1, keepdims=True) * 0.25 * (n + 1)) * (n + 1) for n in range(6)) * np.ones((1, 4))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert failed > 5


def test_bad_input_is_refused(static_mode):
    x, y = static.data("x", [None, 1]), static.data("y", [2])
    z = x.sum() + y.sum()
    exe, good = static.Executor(), np.ones(2, "float32")
    program = static.CompiledProgram(static_mode).with_data_parallel(places=3)
    with pytest.raises(ValueError, match="2 rows are fed for 3 places"):
        exe.run(program, feed={"x": floats(2, 1), "y": good}, fetch_list=[z])
    with pytest.raises(ValueError, match="2 items for 3 places"):
        exe.run(program, feed=[{"x": floats(2, 1), "y": good}] * 2, fetch_list=[z])
    with pytest.raises(ValueError, match="can be divided"):
        exe.run(program, feed={"y": good}, fetch_list=[y * 1])
    w = static.data("w", [None])
    with pytest.raises(ValueError, match="as many rows"):
        exe.run(program, feed={"x": floats(4, 1), "w": floats(5), "y": good}, fetch_list=[z + w.sum()])
    with pytest.raises(ValueError, match="no such Variable"):
        exe.run(program, feed={"xx": floats(4, 1)}, fetch_list=[z])
    for action in (
        lambda: static.CompiledProgram(3), lambda: static.CompiledProgram(static_mode, 3), lambda: program.with_data_parallel(places=["cpu"]),
        lambda: program.with_data_parallel(places=[]), lambda: program.with_data_parallel(exec_strategy=3), lambda: strategy(fold_constants=3),
        lambda: strategy(reduce_strategy=1),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            action()
    with pytest.raises(AttributeError, match="no setting 'fold'"):
        strategy(fold=True)
    assert strategy(memory_optimize=True).memory_optimize
