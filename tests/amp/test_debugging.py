"""Checks for NaN and infinity that name operator, layer and line; operator statistics; comparing two runs."""

from __future__ import annotations

import csv
import zipfile

import numpy as np
import pytest

import sampan as paddle
from sampan.amp import debugging
from sampan.base.errors import ArgumentError, ArgumentTypeError

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def checked():
    paddle.set_flags({"FLAGS_check_nan_inf": True})
    yield
    paddle.set_flags({"FLAGS_check_nan_inf": False})


class Risky(paddle.nn.Layer):
    def forward(self, x):
        return paddle.log(x)


def test_a_bad_result_names_operator_position_layer_and_line(checked):
    layer = Risky()
    for _ in range(2):  # the second call comes from the signature cache
        with pytest.raises(FloatingPointError) as error:
            layer(paddle.to_tensor([[1.0, -1.0, 0.0]]))
        text = str(error.value)
        assert text.startswith("log: the result float32[1, 3] holds 1 NaN and 1 infinite elements, at [0, 1], [0, 2]")
        assert "its operands are finite: they first appear here" in text
        assert "in Risky (risky_" in text
        assert "at test_debugging.py:" in text


def test_an_operand_that_was_bad_already_is_blamed(checked):
    with pytest.raises(FloatingPointError, match="its operand 1 held some already"):
        paddle.add(paddle.ones([2]), paddle.to_tensor([1.0, INF]))


def test_gradients_are_checked(checked):
    x = paddle.to_tensor([0.0, 1.0], stop_gradient=False)
    y = paddle.sqrt(x).sum()
    with pytest.raises(FloatingPointError, match="the gradient of sqrt"):
        y.backward()


def test_nothing_is_checked_when_the_flag_is_off():
    assert np.isnan(paddle.log(paddle.to_tensor([-1.0])).item())


def test_views_and_integers_pass(checked):
    x = paddle.to_tensor([[1, 2], [3, 4]])
    assert (x.reshape([4]) + 1).tolist() == [2, 3, 4, 5]
    y = paddle.zeros([2, 2])
    y.reshape([4])[0:1].add_(paddle.ones([1]))
    assert y.sum().item() == 1.0


def test_check_numerics_counts_and_raises(capsys):
    counts, values = debugging.check_numerics(
        paddle.to_tensor([1.0, NAN, -INF, 0.0]), "my_op", "x", debugging.DebugMode.CHECK_NAN_INF
    )
    assert counts.tolist() == [1, 1, 1]
    assert np.isnan(values.numpy()).all()
    assert "op=my_op, tensor=x, dtype=fp32], numel=4, num_nan=1, num_inf=1, num_zero=1" in capsys.readouterr().out
    with pytest.raises(FloatingPointError, match="my_op, tensor x"):
        debugging.check_numerics(paddle.to_tensor([NAN]), "my_op", "x")
    with pytest.raises(ArgumentTypeError, match="int64"):
        debugging.check_numerics(paddle.to_tensor([1]), "my_op", "x")


def test_the_tensor_checker_keeps_to_its_operators_and_steps(capsys):
    bad = paddle.to_tensor([-1.0])
    config = debugging.TensorCheckerConfig(True, checked_op_list=["log"], debug_step=(1, 2))
    try:
        debugging.enable_tensor_checker(config)
        paddle.log(bad)
        debugging.enable_tensor_checker(config)
        paddle.sqrt(bad)
        with pytest.raises(FloatingPointError, match="log"):
            paddle.log(bad)
        debugging.enable_tensor_checker(config)
        paddle.log(bad)
    finally:
        debugging.disable_tensor_checker()
    assert capsys.readouterr().out.count("[PRECISION] [ERROR]") == 1
    with pytest.raises(ArgumentError, match="debug_step"):
        debugging.TensorCheckerConfig(True, debug_step=(3, 3))


def test_operator_stats_count_calls_by_type(capsys):
    x = paddle.ones([2, 2])
    with debugging.collect_operator_stats():
        with paddle.amp.auto_cast(dtype="bfloat16"):
            paddle.matmul(x, x)
        for _ in range(3):
            paddle.add(x, x)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["matmul", "|", "0", "|", "1", "|", "0", "|", "0"] in rows
    assert ["add", "|", "0", "|", "0", "|", "3", "|", "0"] in rows


def test_check_layer_numerics_checks_what_goes_in_and_comes_out():
    class Checked(Risky):
        @debugging.check_layer_numerics
        def forward(self, x):
            return super().forward(x)

    layer = Checked()
    assert layer(paddle.ones([2])).tolist() == [0.0, 0.0]
    with pytest.raises(FloatingPointError, match=r"Checked \(checked_\d+\): argument 0 holds 1 NaN"):
        layer(paddle.to_tensor([NAN]))
    with pytest.raises(FloatingPointError, match="result 0 holds 0 NaN and 1 infinite"):
        layer(paddle.zeros([1]))


def test_two_runs_are_compared_in_a_table(tmp_path):
    for name, value in (("a", 1.0), ("b", 0.0)):
        config = debugging.TensorCheckerConfig(True, debugging.DebugMode.CHECK_ALL, output_dir=str(tmp_path / name))
        debugging.enable_tensor_checker(config)
        try:
            paddle.log(paddle.full([2], value))
        finally:
            debugging.disable_tensor_checker()
    debugging.compare_accuracy(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "t.csv"))
    with open(tmp_path / "t.csv", newline="") as file:
        rows = {row["op"]: row for row in csv.DictReader(file)}
    assert rows["log"]["num_inf 2"] == "2.0"
    assert rows["log"]["remark"] == "not finite in run 2"
    debugging.compare_accuracy(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "t.xlsx"))
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
        assert "not finite in run 2" in archive.read("xl/worksheets/sheet1.xml").decode()
    with pytest.raises(ArgumentError, match="holds no lines"):
        debugging.compare_accuracy(str(tmp_path / "none"), str(tmp_path / "b"), "t.csv")
