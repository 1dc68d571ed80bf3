"""Unknown sizes beside known ones: an operator may want them to agree, which a run checks."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
import sampan.nn.functional as F
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


SIZES_OF_ANOTHER = {
    "interpolate": lambda x, y: F.interpolate(x, size=paddle.shape(y)[2:], mode="bilinear"),
    "interpolate by list": lambda x, y: F.interpolate(x, size=[paddle.shape(y)[2], y.shape[3]]),
    "interpolate by factor": lambda x, y: F.interpolate(x, scale_factor=paddle.shape(y)[2:].astype("float32") / 4),
    "upsample": lambda x, y: F.upsample(x, size=paddle.shape(y)[2:]),
    "pad": lambda x, y: F.pad(x, paddle.concat([paddle.shape(y)[2:], paddle.shape(y)[2:] * 2])),
    "pad by list": lambda x, y: F.pad(x, [0, paddle.shape(y)[2] // 2, 0, paddle.shape(y)[3:4]]),
    "zeropad2d": lambda x, y: F.zeropad2d(x, paddle.tile(paddle.shape(y)[2:], [2])),
    "affine_grid": lambda x, y: F.affine_grid(x[:, :2, 0, :3], paddle.shape(y)),
    "sequence_mask": lambda x, y: F.sequence_mask(paddle.full([2], 3, "int64"), maxlen=paddle.shape(y)[2]),
    "one_hot": lambda x, y: F.one_hot(paddle.full([2], 3, "int64"), num_classes=paddle.shape(y)[2]),
    "adaptive pooling": lambda x, y: F.adaptive_avg_pool2d(x, paddle.shape(y)[2:]),
    "topk": lambda x, y: paddle.topk(x.flatten(), paddle.shape(y)[2])[0],
    "slices": lambda x, y: x[:, :, (paddle.shape(y)[2] // 3).reshape([-1]) :, : paddle.shape(y)[3]],
}


@pytest.mark.parametrize("rows", [None, 2])
@pytest.mark.parametrize("name", SIZES_OF_ANOTHER)
def test_functions_take_the_sizes_of_another_tensor(name, rows):
    function = SIZES_OF_ANOTHER[name]
    size = None if rows is None else 8
    other = [rows, 3, None, None] if rows is None else [rows, 3, 5, 7]
    x, y = paddle.rand([2, 3, 8, 8]), paddle.rand([2, 3, 5, 7])
    converted = paddle.jit.to_static(
        function,
        full_graph=True,
        input_spec=[paddle.static.InputSpec([rows, 3, size, size]), paddle.static.InputSpec(other)],
    )
    np.testing.assert_allclose(converted(x, y).numpy(), function(x, y).numpy(), rtol=1e-5, atol=1e-6)
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            made = function(paddle.static.data("x", [2, 3, 8, 8]), paddle.static.data("y", [2, 3, 5, 7]))
    finally:
        paddle.disable_static()
    assert made.shape == list(function(x, y).shape)


SIZES_BY_DATA = {
    "interpolate": lambda x, d: F.interpolate(x, size=d) * 2,
    "interpolate by list": lambda x, d: F.interpolate(x, size=[d[0], d[1]]),
    "pad": lambda x, d: F.pad(x, paddle.concat([d, d])),
    "pad by list": lambda x, d: F.pad(x, [d[0], d[1], 0, 0], mode="reflect"),
    "affine_grid": lambda x, d: F.affine_grid(x[:, :2, 0, :3], paddle.concat([paddle.shape(x)[:2].astype("int32"), d])),
    "sequence_mask": lambda x, d: F.sequence_mask(paddle.full([2], 3, "int64"), maxlen=d[1]) + 1,
    "one_hot": lambda x, d: F.one_hot(paddle.full([2], 3, "int64"), num_classes=d[1]),
    "topk": lambda x, d: paddle.topk(x.flatten(), d[0])[0],
    "expand": lambda x, d: paddle.expand(x[:1, :1, 0, 0], d) * 2,
    "slices": lambda x, d: x[:, :, d[0] :, : d[1]],
}


@pytest.mark.parametrize("name", SIZES_BY_DATA)
def test_functions_take_sizes_that_only_a_run_knows(name):
    function = SIZES_BY_DATA[name]
    x = paddle.rand([2, 3, 8, 8])
    converted = paddle.jit.to_static(function, full_graph=True)
    for sizes in ([4, 6], [5, 7]):
        d = paddle.to_tensor(sizes, dtype="int32")
        np.testing.assert_allclose(converted(x, d).numpy(), function(x, d).numpy(), rtol=1e-5, atol=1e-6)


def test_gradients_flow_through_functions_whose_sizes_only_a_run_knows():
    def function(x, d):
        return (F.interpolate(x, size=d, mode="bilinear") ** 2).sum()

    found = []
    for call in (function, paddle.jit.to_static(function, full_graph=True)):
        x = paddle.to_tensor(floats(1, 1, 4, 4), stop_gradient=False)
        call(x, paddle.to_tensor([3, 5], dtype="int32")).backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)


def test_a_size_of_an_earlier_piece_is_known_where_it_is_data_too():
    def function(x, y):
        sizes = paddle.shape(x)
        columns = sizes[1] * 1
        if y.sum() > 0:
            x = x + 1  # a piece ends here
        rows = sizes[0] + 0
        return paddle.reshape(x, [rows, columns]) + rows.astype("float32") + paddle.zeros([sizes[0], 1])

    x, y = paddle.rand([2, 3]), paddle.ones([1])
    spec = [paddle.static.InputSpec([None, None]), paddle.static.InputSpec([1])]
    for options in ({}, {"input_spec": spec}):
        converted = paddle.jit.to_static(function, full_graph=True, **options)
        np.testing.assert_allclose(converted(x, y).numpy(), function(x, y).numpy(), rtol=1e-6)


def test_known_sizes_decide_branches_while_recording():
    def function(x):
        height = paddle.shape(x)[1]
        missing = paddle.cast(paddle.ceil(height / 4) * 4 - height, "int32")
        if missing > 0 or not height < 100:
            x = F.pad(x, [0, missing])
        step = paddle.zeros([1])
        while step < 300:
            step = step + 1
        return x.reshape([2, -1, 4]) + step, height if missing > 0 else height * 2

    def names(program):
        return [op.type for op in program.global_block().ops]

    for size in (6, 8):
        x = paddle.rand([2, size])
        converted = paddle.jit.to_static(function, full_graph=True, input_spec=[paddle.static.InputSpec([2, size])])
        for found, wanted in zip(converted(x), function(x), strict=True):
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)
        kinds = names(converted.concrete_program.main_program)
        assert ("nn.functional.pad" in kinds) == (size == 6)
        assert "cond" not in kinds
        assert "while" in kinds  # a loop is never unrolled for its first round
    converted = paddle.jit.to_static(function, full_graph=True, input_spec=[paddle.static.InputSpec([2, None])])
    for size in (6, 8):
        x = paddle.rand([2, size])
        for found, wanted in zip(converted(x), function(x), strict=True):
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)
    assert "cond" in names(converted.concrete_program.main_program)
