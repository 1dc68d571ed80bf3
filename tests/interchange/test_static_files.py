"""static.save_inference_model and its kin: our Programs to files and bytes and back, checkpoints, parts of models, reports."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import static
from sampan.base.errors import ArgumentError, ArgumentTypeError, ShapeError
from sampan.framework import MissingFileError
from sampan.framework.interchange.model import ModelFileError
from sampan.framework.interchange.saved import parse_model
from sampan.framework.interchange.write import UnwritableError

F = paddle.nn.functional


@pytest.fixture(autouse=True)
def _static_mode():
    paddle.enable_static()
    with static.scope_guard(static.Scope()):
        yield
    paddle.disable_static()


def two_layers(main, start):
    """x, hidden, y of a small network with dropout and batch norm."""
    with static.program_guard(main, start):
        x = static.data("x", [None, 4])
        first, norm, second = paddle.nn.Linear(4, 6), paddle.nn.BatchNorm1D(6), paddle.nn.Linear(6, 3)
        hidden = F.dropout(F.relu(norm(first(x))), 0.5)
        y = F.softmax(second(hidden))
    return x, hidden, y


def built():
    main, start = static.Program(), static.Program()
    x, hidden, y = two_layers(main, start)
    executor = static.Executor()
    executor.run(start)
    return main, executor, x, hidden, y


def evaluated(main, executor, data, fetch):
    return executor.run(main.clone(for_test=True), feed={"x": data}, fetch_list=[fetch.name])[0]


DATA = np.random.default_rng(0).standard_normal((5, 4)).astype("float32")


def test_an_inference_model_gives_what_the_program_gives_in_evaluation(tmp_path):
    main, executor, x, _, y = built()
    static.save_inference_model(str(tmp_path / "deep" / "model"), [x], [y], executor, program=main)
    expected = evaluated(main, executor, DATA, y)
    with static.scope_guard(static.Scope()):
        program, feeds, fetches = static.load_inference_model(str(tmp_path / "deep" / "model"), executor)
        assert feeds == ["x"]
        for rows in (5, 2):
            (found,) = executor.run(program, feed={"x": DATA[:rows]}, fetch_list=fetches)
            np.testing.assert_allclose(found, expected[:rows], rtol=1e-5, atol=1e-6)


def test_a_part_of_a_model_holds_its_own_parameters_only(tmp_path):
    main, executor, x, hidden, _ = built()
    static.save_inference_model(str(tmp_path / "part"), x, hidden, executor)
    state = static.load_program_state(str(tmp_path / "part"))
    assert sorted(a.shape for a in state.values()) == [(4, 6), (6,), (6,), (6,), (6,), (6,)]
    expected = evaluated(main, executor, DATA, hidden)
    program, _, fetches = static.load_inference_model(str(tmp_path / "part"), executor)
    np.testing.assert_allclose(executor.run(program, feed={"x": DATA}, fetch_list=fetches)[0], expected, rtol=1e-5, atol=1e-6)


def test_the_last_layers_are_fed_by_an_inner_variable(tmp_path):
    main, executor, _, hidden, y = built()
    static.save_inference_model(str(tmp_path / "head"), [hidden], [y], executor, program=main)
    program, feeds, fetches = static.load_inference_model(str(tmp_path / "head"), executor)
    assert feeds == [hidden.name]
    (found,) = executor.run(program, feed={hidden.name: np.ones((2, 6), "float32")}, fetch_list=fetches)
    assert found.shape == (2, 3)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)


def test_a_program_and_its_parameters_travel_as_bytes(tmp_path):
    main, executor, x, _, y = built()
    program_bytes = static.serialize_program([x], [y], program=main)
    parameter_bytes = static.serialize_persistables([x], [y], executor, program=main)
    static.save_to_file(str(tmp_path / "p"), program_bytes)
    assert static.load_from_file(str(tmp_path / "p")) == program_bytes
    expected = evaluated(main, executor, DATA, y)
    with static.scope_guard(static.Scope()):
        program = static.deserialize_program(program_bytes)
        static.deserialize_persistables(program, parameter_bytes, executor)
        (found,) = executor.run(program, feed={"x": DATA}, fetch_list=program.fetch_variables)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        again, _, fetches = static.load_inference_model(
            None, executor, model_filename=program_bytes, params_filename=parameter_bytes
        )
        np.testing.assert_allclose(executor.run(again, feed={"x": DATA}, fetch_list=fetches)[0], expected, rtol=1e-5, atol=1e-6)


def test_a_loaded_program_is_written_again_alike(tmp_path):
    main, executor, x, _, y = built()
    static.save_inference_model(str(tmp_path / "a"), [x], [y], executor, program=main)
    program, feeds, fetches = static.load_inference_model(str(tmp_path / "a"), executor)
    static.save_inference_model(str(tmp_path / "b"), [program.var(feeds[0])], fetches, executor, program=program)
    assert (tmp_path / "a.pdiparams").read_bytes() == (tmp_path / "b.pdiparams").read_bytes()
    kinds = [[op.kind for op in parse_model((tmp_path / f"{n}.pdmodel").read_bytes()).operations()] for n in "ab"]
    assert kinds[0] == kinds[1]


def test_normalize_program_drops_training_and_what_is_not_needed():
    main, start = static.Program(), static.Program()
    x, _, y = two_layers(main, start)
    with static.program_guard(main, start):
        label = static.data("label", [None, 1], "int64")
        loss = F.cross_entropy(y, label)
        paddle.optimizer.SGD(0.1).minimize(loss)
    form = static.normalize_program(main, [x], [y])
    assert form.feed_names == ["x"]
    assert all(not op.role for op in form.recorder.block.ops)
    assert "label" not in form.variables
    assert len(form.recorder.block.ops) < len(main.recorder.block.ops)


def test_a_result_that_needs_what_is_not_fed_is_refused():
    main, _, _, _, y = built()
    with pytest.raises(ArgumentError, match=r"need x.*\n?.*add it to feed_vars"):
        static.serialize_program([], [y], program=main)


def test_parameters_without_values_are_named():
    main, start = static.Program(), static.Program()
    x, _, y = two_layers(main, start)
    with pytest.raises(ArgumentError, match="has no value in the scope"):
        static.serialize_persistables([x], [y], program=main)


def test_operators_without_a_form_are_all_named_and_nothing_is_written(tmp_path):
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", [3, 3])
        z = paddle.cast(x, "complex64")
        y = paddle.linalg.matrix_exp(z) + paddle.linalg.lstsq(z, z)[0]
        with pytest.raises(UnwritableError, match=r"2 operators have no form .*lstsq.*, matrix_exp"):
            static.save_inference_model(str(tmp_path / "m"), [x], [y])
    assert not list(tmp_path.iterdir())


def training(seed=3):
    """A program that trains, its loss, and a function that runs a step."""
    main, start = static.Program(), static.Program()
    with static.program_guard(main, start), paddle.utils.unique_name.guard():
        x, label = static.data("x", [None, 4]), static.data("label", [None, 1])
        loss = F.mse_loss(paddle.nn.Linear(4, 1)(x), label)
        paddle.optimizer.Adam(0.05).minimize(loss)
    executor = static.Executor()
    paddle.seed(seed)
    executor.run(start)

    def step():
        return float(executor.run(main, feed={"x": DATA, "label": DATA[:, :1] * 2}, fetch_list=[loss])[0])

    return main, step


def test_parameters_come_back_from_a_checkpoint(tmp_path):
    main, step = training()
    for _ in range(3):
        step()
    static.save(main, str(tmp_path / "checkpoint"))
    assert (tmp_path / "checkpoint.pdparams").exists()
    assert (tmp_path / "checkpoint.pdopt").exists()
    expected = step()
    with static.scope_guard(static.Scope()):
        other, other_step = training(seed=8)
        assert other_step() != pytest.approx(expected)
        static.load(other, str(tmp_path / "checkpoint"))
        assert other_step() == pytest.approx(expected, rel=1e-6)


def one_weight(name="w", shape=(2, 3)):
    main = static.Program()
    with static.program_guard(main, static.Program()):
        static.create_parameter(list(shape), "float32", name=name)
        static.create_parameter([3], "float32", name="b")
    return main


def test_a_partial_checkpoint_is_reported():
    report = static.set_program_state(one_weight(), {"w": np.ones((2, 3), "float32"), "stranger": np.zeros(1)})
    assert (report.loaded, report.missing, report.unexpected) == (["w"], ["b"], ["stranger"])
    assert str(report) == "1 loaded; 1 missing: b; 1 not in the Program: stranger"


def test_a_model_inside_a_larger_one_is_chosen_by_prefix_and_filter():
    state = {"encoder.w": np.full((2, 3), 4.0, "float32"), "encoder.b": np.zeros(3, "float32"), "w": np.zeros((9, 9))}
    report = static.set_program_state(one_weight(), state, prefix="encoder.", select=lambda name: name != "b")
    assert (report.loaded, report.missing, report.unexpected) == (["w"], [], [])
    assert (static.global_scope().find_var("w").get_tensor().numpy() == 4).all()


def test_another_shape_is_an_error_that_names_all_and_loads_nothing_or_is_skipped():
    main = one_weight()
    state = {"w": np.ones((2, 4), "float32"), "b": np.ones(3, "float32")}
    with pytest.raises(ShapeError, match=r"w is \[2, 4\] in place of \[2, 3\]"):
        static.set_program_state(main, state)
    assert static.global_scope().find_var("b") is None
    report = static.set_program_state(main, state, skip_mismatch=True)
    assert (report.loaded, list(report.mismatched)) == (["b"], ["w"])


def test_a_missing_parameter_is_an_error_of_load(tmp_path):
    paddle.framework.save({"w": np.ones((2, 3), "float32")}, str(tmp_path / "old.pdparams"))
    with pytest.raises(ArgumentError, match="no value for b"):
        static.load(one_weight(), str(tmp_path / "old"))


def test_files_that_are_not_there_are_named(tmp_path):
    for call in (
        lambda p: static.load_program_state(p),
        lambda p: static.load_inference_model(p, None),
        lambda p: static.load(one_weight(), p),
    ):
        with pytest.raises(MissingFileError, match="nowhere"):
            call(str(tmp_path / "nowhere"))


def test_bad_arguments_are_named():
    main, _, x, _, _ = built()
    with pytest.raises(ArgumentTypeError, match="fetch_vars holds a str"):
        static.normalize_program(main, [x], ["y"])
    with pytest.raises(ArgumentError, match="fetch_vars is empty"):
        static.normalize_program(main, [x], [])
    with pytest.raises(ArgumentTypeError, match="program is a NoneType"):
        static.normalize_program(None, [x], [x])
    with pytest.raises(ArgumentTypeError, match="takes bytes"):
        static.deserialize_program("text")
    with pytest.raises(ModelFileError, match="no ProgramDesc"):
        static.deserialize_program(b"\xff\xff\xff")
    with pytest.raises(ArgumentError, match="not made by deserialize_program"):
        static.deserialize_persistables(main, b"")


def test_control_flow_goes_through_the_format(tmp_path):
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x, n = static.data("x", [None, 2]), static.data("n", [1], "int64")
        i = paddle.zeros([1], "int64")

        def body(k, total):
            return [k + 1, static.nn.cond(paddle.sum(total) > 4, lambda: total - x, lambda: total * 2)]

        _, total = static.nn.while_loop(lambda k, total: k < n, body, [i, x])
        static.save_inference_model(str(tmp_path / "loop"), [x, n], [total])
    executor = static.Executor()
    program, _, fetches = static.load_inference_model(str(tmp_path / "loop"), executor)
    for value, count in ((1.0, 3), (3.0, 1), (1.0, 0)):
        fed = {"x": np.full((1, 2), value, "float32"), "n": np.array([count])}
        found = executor.run(program, feed=fed, fetch_list=fetches)[0]
        np.testing.assert_allclose(found, executor.run(main, feed=fed, fetch_list=[total])[0])
