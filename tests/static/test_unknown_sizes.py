"""Unknown sizes beside known ones: an operator may want them to agree, which a run checks."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import static
from static.programs import floats, fresh_static_mode, run


def data(**shapes):
    return [static.data(name, shape) for name, shape in shapes.items()]


@pytest.mark.parametrize(
    ("shapes", "function", "expected"),
    [
        ({"x": [None, 1]}, lambda x: paddle.full([10, 1], 2.0) - x, [10, 1]),
        ({"x": [None, 5]}, lambda x: x + paddle.ones([10, 1]), [10, 5]),
        ({"x": [None, None]}, lambda x: x * paddle.ones([10, 5]), [10, 5]),
        ({"x": [None, None]}, lambda x: x * paddle.ones([10, 1, 5]), [10, -1, 5]),
        ({"x": [None, None]}, lambda x: paddle.matmul(x, paddle.ones([4, 3])), [-1, 3]),
        ({"x": [None, None]}, lambda x: paddle.concat([x, paddle.ones([2, 7])]), [-1, 7]),
        ({"x": [None, None], "y": [None, 3]}, lambda x, y: paddle.where(x > y, x, y), [-1, 3]),
    ],
)
def test_known_sizes_decide(shapes, function, expected):
    with fresh_static_mode():
        assert function(*data(**shapes)).shape == expected


def test_a_run_checks_the_sizes_and_gradients_flow():
    with fresh_static_mode():
        (x,) = data(x=[None, 1])
        x.stop_gradient = False
        y = paddle.subtract(paddle.full([4, 1], 2.0), x)
        loss = (y * y).sum()
        (grad,) = static.gradients(loss, x)
        values = floats(4, 1)
        np.testing.assert_allclose(run([grad], {"x": values})[0], 2 * (values - 2), rtol=1e-6)
        one = np.full((1, 1), 0.5, "float32")
        np.testing.assert_allclose(run([grad], {"x": one})[0], [[8 * (0.5 - 2)]], rtol=1e-6)
        with pytest.raises(ValueError, match=r"\[4, 1\] and \[3, 1\] do not broadcast"):
            run([grad], {"x": floats(3, 1)})


def test_an_unknown_size_may_divide_by_any_number():
    with fresh_static_mode():
        (x,) = data(x=[None, 351])
        rows = paddle.reshape(paddle.masked_select(x, x > 0), [-1, 13, 27])
        assert rows.shape == [-1, 13, 27]
        assert run([rows], {"x": np.ones((2, 351), "float32")})[0].shape == (2, 13, 27)
        with pytest.raises(ValueError, match="do not fill"):
            run([rows], {"x": np.eye(2, 351, dtype="float32")})


@pytest.mark.parametrize(("declared", "fed"), [([None, 1], [4]), ([4, 1], [4]), ([None], [4, 1]), ([1, None, 1], [4])])
def test_a_feed_may_leave_out_axes_of_length_1(declared, fed):
    with fresh_static_mode():
        (x,) = data(x=declared)
        values = floats(*fed)
        (got,) = run([x * 2], {"x": values})
        assert list(got.shape) == [4 if n is None else n for n in declared]
        np.testing.assert_array_equal(got.ravel(), 2 * values.ravel())


@pytest.mark.parametrize(
    ("declared", "fed"), [([None, 1], [4, 2]), ([4, 1], [2, 2]), ([None, None], [4]), ([None, 2], [4]), ([0, None], [4])]
)
def test_other_shapes_are_refused(declared, fed):
    with fresh_static_mode():
        (x,) = data(x=declared)
        with pytest.raises(ValueError, match=r"sizes must be equal, save where the Variable's are -1"):
            run([x * 2], {"x": floats(*fed)})


def test_plus_gives_the_tensor():
    with fresh_static_mode():
        (x,) = data(x=[None, 2])
        values = floats(3, 2)
        np.testing.assert_array_equal(run([+x], {"x": values})[0], values)
    np.testing.assert_array_equal((+paddle.to_tensor(values)).numpy(), values)
    with pytest.raises(TypeError, match="bool"):
        +paddle.to_tensor([True])


def test_known_sizes_that_differ_are_refused_when_the_program_is_built():
    with fresh_static_mode():
        (x,) = data(x=[None, 5])
        with pytest.raises(ValueError, match=r"x is \[-1, 5\] and y is \[4, 3\]"):
            paddle.matmul(x, paddle.ones([4, 3]))


def test_metrics_compute_in_a_program():
    with fresh_static_mode():
        scores, label = static.data("scores", [None, 4]), static.data("label", [None, 1], "int64")
        metric = paddle.metric.Accuracy(topk=(1, 2))
        part, correct = paddle.metric.accuracy(scores, label), metric.compute(scores, label)
        rows = static.data("rows", [None, 4])
        of_rows = metric.compute(scores, rows)
        feed = {
            "scores": floats(6, 4),
            "label": np.array([[0], [1], [2], [3], [0], [1]]),
            "rows": np.eye(4, dtype="float32")[[0, 1, 2, 3, 0, 1]],
        }
        got = run([part, correct, of_rows], feed)
        expected = metric.compute(feed["scores"], feed["label"]).numpy()
        np.testing.assert_array_equal(got[1], expected)
        np.testing.assert_array_equal(got[2], expected)
        np.testing.assert_allclose(got[0], expected[:, 0].mean())
        with pytest.raises(ValueError, match="one label a sample"):
            metric.compute(scores, static.data("more", [None, 4, 4, 1], "int64"))
