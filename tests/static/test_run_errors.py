"""Errors that only a run can find name the operator and the user's line that recorded it."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

import sampan as paddle
import sampan.nn.functional as F
from sampan.base.errors import SampanError
from sampan.static import InputSpec


@pytest.fixture
def static_mode():
    paddle.enable_static()
    yield
    paddle.disable_static()


THREE = np.ones((3, 2), "float32")


def add_shapes(x, y):
    doubled = x * 2
    return doubled + y  # fails


def gather_outside(x, i):
    rows = paddle.gather(x, i)  # fails
    return rows * 2


def divide_by_zero(i, k):
    return i // (k - k) + 1  # fails


def look_up(x, i):
    return F.embedding(i, x).sum()  # fails


def factorise(x):
    return paddle.linalg.cholesky(paddle.matmul(x, x, transpose_x=True) * -1)  # fails


def size_from_data(x, i):
    return x.reshape([i.sum() * 5, -1])  # fails


def after_data(x, i):
    found = paddle.nonzero(x)
    return paddle.gather(found, i)  # fails


def in_branch(x, i):
    return paddle.static.nn.cond(
        x.sum() > 0,
        lambda: paddle.gather(x, i),  # fails
        lambda: x,
    )


def in_loop(x, i):
    def body(k, x):
        return k + 1, x + paddle.gather(x, i + k)  # fails

    return paddle.static.nn.while_loop(lambda k, x: k < 9, body, [paddle.zeros([1], "int64"), x])[1]


def in_branch_of_loop(x, i):
    def body(k, x):
        rows = paddle.static.nn.cond(
            k.sum() > 2,
            lambda: paddle.gather(x, i + k),  # fails
            lambda: x[:1],
        )
        return k + 1, x + rows

    return paddle.static.nn.while_loop(lambda k, x: k < 9, body, [paddle.zeros([1], "int64"), x])[1]


#: The function, what it gets, the class and the operator of the error.
CASES = [
    (add_shapes, {"x": THREE, "y": np.ones((4, 2), "float32")}, ValueError, "add"),
    (gather_outside, {"x": THREE, "i": np.array([7])}, IndexError, "gather"),
    (divide_by_zero, {"i": np.array([7]), "k": np.array([7])}, ValueError, "floor_divide"),
    (look_up, {"x": THREE, "i": np.array([9])}, IndexError, "embedding"),
    (factorise, {"x": THREE}, ValueError, "cholesky"),
    (size_from_data, {"x": THREE, "i": np.array([1])}, ValueError, "reshape"),
    (after_data, {"x": THREE, "i": np.array([9])}, IndexError, "gather"),
    (in_branch, {"x": THREE, "i": np.array([9])}, IndexError, "gather"),
    (in_loop, {"x": THREE, "i": np.array([0])}, IndexError, "gather"),
    (in_branch_of_loop, {"x": THREE, "i": np.array([0])}, IndexError, "gather"),
]

each = pytest.mark.parametrize(("function", "given", "kind", "operator"), CASES, ids=[c[0].__name__ for c in CASES])


def failing_line(function):
    """(the number, the text) of the function's line that the operator is called on."""
    with open(__file__) as file:
        lines = file.readlines()
    start = function.__code__.co_firstlineno
    return next((n, text.strip()) for n, text in enumerate(lines[start - 1 :], start) if "# fails" in text)


def check(error, function, operator):
    number, text = failing_line(function)
    said = str(error)
    assert said.startswith(f"{operator}(): "), said
    assert re.search(rf"\n  at test_run_errors\.py:{number}, in \S+\n    {re.escape(text)}$", said), said
    assert said.count("\n  at ") == 1
    assert "updated" not in said


def unknown(value):
    return InputSpec([None, *value.shape[1:]], value.dtype.name)


@each
def test_executor_names_the_line_that_built_the_statement(static_mode, function, given, kind, operator):
    main = paddle.static.Program()
    with paddle.static.program_guard(main):
        data = {k: paddle.static.data(k, [None, *v.shape[1:]], v.dtype.name) for k, v in given.items()}
        result = function(**data)
    executor = paddle.static.Executor()
    for _ in range(2):  # from the cache too
        with pytest.raises(kind) as caught:
            executor.run(main, feed=given, fetch_list=[result])
        assert isinstance(caught.value, SampanError)
        check(caught.value, function, operator)


@each
def test_to_static_names_the_line(function, given, kind, operator):
    converted = paddle.jit.to_static(function, full_graph=True, input_spec=[unknown(v) for v in given.values()])
    for _ in range(2):
        with pytest.raises(kind) as caught:
            converted(*map(paddle.to_tensor, given.values()))
        check(caught.value, function, operator)


@each
def test_the_interpreter_names_the_line(monkeypatch, function, given, kind, operator):
    monkeypatch.setattr(paddle.base.flags.INTERPRET, "value", True)
    converted = paddle.jit.to_static(
        lambda *args: function(*args), full_graph=True, input_spec=[unknown(v) for v in given.values()]
    )
    with pytest.raises(kind) as caught:
        converted(*map(paddle.to_tensor, given.values()))
    check(caught.value, function, operator)


@each
def test_loaded_functions_name_the_operator_and_the_model(tmp_path, function, given, kind, operator):
    path = str(tmp_path / "model")
    paddle.jit.save(paddle.jit.to_static(function, full_graph=True), path, input_spec=[unknown(v) for v in given.values()])
    with pytest.raises(kind) as caught:
        paddle.jit.load(path)(*map(paddle.to_tensor, given.values()))
    said = str(caught.value)
    assert said.startswith(f"{operator}(): "), said
    assert said.endswith(f"\n  in the model {path!r}"), said


def test_loaded_programs_name_the_operator_and_the_model(static_mode, tmp_path):
    path = str(tmp_path / "model")
    main = paddle.static.Program()
    with paddle.static.program_guard(main):
        x, i = paddle.static.data("x", [None, 2], "float32"), paddle.static.data("i", [None], "int64")
        result = gather_outside(x, i)
    executor = paddle.static.Executor()
    paddle.static.save_inference_model(path, [x, i], [result], executor, program=main)
    program, _, fetched = paddle.static.load_inference_model(path, executor)
    with pytest.raises(IndexError) as caught:
        executor.run(program, feed={"x": THREE, "i": np.array([7])}, fetch_list=fetched)
    assert str(caught.value).startswith("gather(): ")
    assert "in the model" in str(caught.value)
    assert path in str(caught.value)


def test_training_steps_name_the_line():
    layer = paddle.nn.Linear(2, 2)
    optimizer = paddle.optimizer.SGD(parameters=layer.parameters())

    def loss(x, i):
        return paddle.gather(layer(x), i).mean()  # fails

    before = layer.weight.numpy()
    with pytest.raises(IndexError) as caught:
        paddle.jit.TrainStep(loss, optimizer)(paddle.to_tensor(THREE), paddle.to_tensor([7]))
    check(caught.value, loss, "gather")
    assert np.array_equal(layer.weight.numpy(), before)


def test_data_parallel_programs_name_the_line(static_mode):
    main, startup = paddle.static.Program(), paddle.static.Program()

    def build():
        x, i = paddle.static.data("x", [None, 2], "float32"), paddle.static.data("i", [None], "int64")
        loss = paddle.gather(paddle.static.nn.fc(x, 3), i).mean()  # fails
        paddle.optimizer.SGD().minimize(loss)
        return loss

    with paddle.static.program_guard(main, startup):
        loss = build()
    executor = paddle.static.Executor()
    executor.run(startup)
    both = paddle.static.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=[paddle.CPUPlace()] * 2)
    with pytest.raises(IndexError) as caught:
        executor.run(both, feed={"x": np.ones((4, 2), "float32"), "i": np.array([7] * 4)}, fetch_list=[loss])
    check(caught.value, build, "gather")


def test_errors_of_eager_calls_do_not_name_statements_that_failed_before():
    converted = paddle.jit.to_static(gather_outside, full_graph=True)
    with pytest.raises(IndexError):
        converted(paddle.to_tensor(THREE), paddle.to_tensor([7]))
    with pytest.raises(IndexError) as caught:
        paddle.gather(paddle.to_tensor(THREE), paddle.to_tensor([8]))
    assert "index[0] is 8" in str(caught.value)
    assert "rows = " not in str(caught.value)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have notes since Python 3.11")
def test_asserts_keep_their_text_and_note_their_line():
    @paddle.jit.to_static(full_graph=True)
    def checked(x):
        assert x.sum() < 0, f"the sum is {x.sum()}"
        return x

    for _ in range(2):
        with pytest.raises(AssertionError) as caught:
            checked(paddle.to_tensor(THREE))
        assert str(caught.value) == "the sum is 6.0"
        (note,) = caught.value.__notes__
        assert re.match(r"assert at test_run_errors\.py:\d+, in checked\n    assert x\.sum\(\) < 0", note)


def test_raised_exceptions_are_the_users_own():
    @paddle.jit.to_static(full_graph=True)
    def refused(x):
        if x.sum() > 0:
            raise KeyError("positive")
        return x

    for _ in range(3):
        with pytest.raises(KeyError) as caught:
            refused(paddle.to_tensor(THREE))
        assert caught.value.args == ("positive",)
        assert not getattr(caught.value, "__notes__", [])
