"""Sizes that only a run's data knows: reshape and its like in to_static functions and static Programs, with gradients."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import static
from static.programs import floats, fresh_static_mode, held, run


def compare(function, *arrays):
    """Results and gradients in eager mode and converted, the latter also when called with other numbers first."""
    found = []
    for call in (function, paddle.jit.to_static(function, full_graph=True)):
        tensors = [paddle.to_tensor(a, stop_gradient=a.dtype.kind != "f") for a in arrays]
        results = call(*tensors)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        sum((r.astype("float32") ** 2).sum() for r in results).backward()
        found.append([t.numpy() for t in results] + [t.grad.numpy() for t in tensors if t.grad is not None])
    for a, b in zip(*found, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def looped(x, n):
    k, total = paddle.zeros([], "int64"), paddle.zeros([], "float32")
    while k < 3:
        rows = x.reshape([n[0], -1]).sum(1)
        total = total + (rows * paddle.arange(n[0]).astype("float32")).sum()
        k = k + 1
    return total


CASES = {
    "a tensor": lambda x, n: x.reshape(n) * 2,
    "a list": lambda x, n: paddle.reshape(x, [n[0], n[1]]) * 2,
    "one inferred": lambda x, n: paddle.reshape(x, [n[0], -1]).cumsum(0),
    "a kept axis": lambda x, n: x.reshape([4, 6]).reshape([0, n[0] // 2, -1]) * 2,
    "python numbers": lambda x, n: x.reshape([int(n[0]), n[1].item()]) * 2,
    "a count of elements": lambda x, n: (x * 1.5).reshape([(x > -100).sum().astype("int64") // 4, -1]).sum(0),
    "view": lambda x, n: x.view([n[0], n[1]]) * 2,
    "in place": lambda x, n: (x * 1.0).reshape_([n[0], -1]) * 2,
    "unflatten": lambda x, n: x.reshape([2, 12]).unflatten(1, [n[0], -1]).sum(1),
    "split": lambda x, n: [p * 2 for p in paddle.split(x, [n[0], 24 - n[0]])],
    "split, one inferred": lambda x, n: paddle.split(x.reshape([2, 12]), [n[0], -1], axis=1)[1] * 2,
    "then a product": lambda x, n: paddle.matmul(x.reshape(n), x.reshape(n), transpose_y=True),
    "then with known sizes": lambda x, n: x.reshape(n) * paddle.arange(24).astype("float32").reshape([4, 6]),
    "back to known sizes": lambda x, n: (x.reshape(n).tanh().reshape([24]) * x).reshape([2, 12]),
    "flattened": lambda x, n: x.reshape(n).flatten() * x,
    "its sizes as numbers": lambda x, n: x.reshape(n).sum(0) * x.reshape(n).shape[0],
    "windows": lambda x, n: paddle.nn.functional.unfold(x.reshape([1, 1, n[0], n[1]]), 2),
    "a branch": lambda x, n: x.reshape(n) * 2 if x.sum() > 0 else x.reshape([n[1], n[0]]).t(),
    "a loop": looped,
}


@pytest.mark.parametrize("name", CASES)
def test_sizes_of_data_in_converted_functions(name):
    compare(CASES[name], floats(24), np.array([4, 6]))


def test_other_numbers_need_no_other_recording():
    call = paddle.jit.to_static(lambda x, n: x.reshape(n).sum(0), full_graph=True)
    x = floats(24)
    for sizes in ([4, 6], [2, 12], [24, 1], [1, 24]):
        np.testing.assert_allclose(call(paddle.to_tensor(x), paddle.to_tensor(sizes)).numpy(), x.reshape(sizes).sum(0), rtol=1e-5)


def test_sizes_of_data_in_static_programs_that_train():
    with fresh_static_mode():
        x, n = static.data("x", [None]), static.data("n", [2], "int64")
        w = static.create_parameter([6, 1], "float32", name="w")
        y = x.reshape(n)
        assert list(y.shape) == [-1, -1]
        loss = paddle.matmul(paddle.reshape(y, [-1, 6]), w).mean()
        paddle.optimizer.SGD(1.0).minimize(loss)
        a = floats(24)
        run([], {"x": np.zeros(24, "float32"), "n": np.array([12, 2])}, start=True)
        before = held("w").copy()
        shape = run([y.shape[0] if not isinstance(y.shape[0], int) else paddle.shape(y)], {"x": a, "n": np.array([8, 3])})[0]
        assert shape.tolist() == [8, 3]
        np.testing.assert_allclose(held("w"), before - a.reshape(-1, 6).mean(0)[:, None], rtol=1e-5, atol=1e-6)


def test_unknown_sizes_become_known_ones():
    with fresh_static_mode():
        x = static.data("x", [None, None])
        y = x.reshape([4, 6]) * 2
        assert list(y.shape) == [4, 6]
        a = floats(3, 8)
        np.testing.assert_array_equal(run([y], {"x": a})[0], a.reshape(4, 6) * 2)
        with pytest.raises(ValueError, match="cannot become"):
            run([y], {"x": floats(3, 7)})


def test_the_dtype_is_that_of_the_precision():
    def f(x, n):
        with paddle.amp.auto_cast(level="O2", dtype="bfloat16"):
            return x.reshape(n)

    x, n = paddle.to_tensor(floats(24)), paddle.to_tensor([4, 6])
    assert f(x, n).dtype == paddle.jit.to_static(f, full_graph=True)(x, n).dtype == paddle.bfloat16


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, n: x.reshape([n[0] + 1, -1]), "reshape"),
        (lambda x, n: x.reshape([n[0], n[1] + 1]), "reshape"),
        (lambda x, n: x.reshape([n[0], 5, -1]), "reshape"),
        (lambda x, n: x.reshape([n[0], -1, -1]), "reshape"),
        (lambda x, n: x.reshape([n[0], -2]), "reshape"),
        (lambda x, n: paddle.split(x, [n[0], 25]), "split"),
        (lambda x, n: paddle.split(x, [n[0], 3]), "split"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        paddle.jit.to_static(call, full_graph=True)(paddle.to_tensor(floats(24)), paddle.to_tensor([4, 6]))
