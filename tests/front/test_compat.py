"""paddle.compat beside NumPy, and its own forms of arguments."""

import numpy as np
import pytest

import sampan as paddle

C = paddle.compat
Y = paddle.to_tensor([[3, 1, 3], [2, 5, 4]])
X = paddle.to_tensor([[3.0, 1.0, 3.0, 0.5], [2.0, 5.0, float("nan"), 1.0]])


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_have_three_forms(name):
    function, reference = getattr(C, name), getattr(np, name)
    assert function(Y).item() == reference(Y.numpy())
    values, indices = function(Y, 1)
    assert values.tolist() == reference(Y.numpy(), 1).tolist()
    assert indices.tolist() == getattr(np, f"arg{name}")(Y.numpy(), 1).tolist()
    kept = function(Y, dim=-2, keepdim=True)
    assert kept.values.shape == kept.indices.shape == [1, 3]
    assert function(Y, Y.flip(0)).tolist() == getattr(np, f"{name}imum")(Y.numpy(), Y.numpy()[::-1]).tolist()
    assert function(Y, other=Y).tolist() == Y.tolist()
    assert function(paddle.to_tensor(2.0), 0) == (paddle.to_tensor(2.0), paddle.to_tensor(0))


def test_gradients_of_extremes_go_to_the_named_elements():
    x = paddle.to_tensor([1.0, 3.0, 3.0], stop_gradient=False)
    C.max(x, 0).values.backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]
    x.clear_grad()
    C.max(x).backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.5]


def test_sort_tells_where_elements_stood():
    values, indices = C.sort(Y, 0, descending=True)
    assert values.tolist() == [[3, 5, 4], [2, 1, 3]]
    assert indices.tolist() == [[0, 1, 1], [1, 0, 0]]
    x = paddle.to_tensor([3.0, 1.0, 2.0], stop_gradient=False)
    (C.sort(x).values * paddle.to_tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("pieces", "dim", "shapes"),
    [(2, 1, [[2, 2], [2, 1]]), (3, -1, [[2, 3]]), (5, 1, [[2, 3]]), (1, 0, [[1, 3]] * 2), ([1, 2], 1, [[2, 1], [2, 2]])],
)
def test_split_by_the_size_of_pieces(pieces, dim, shapes):
    found = C.split(Y, pieces, dim)
    assert [p.shape for p in found] == shapes
    assert paddle.concat(found, dim).tolist() == Y.tolist()


def test_split_of_nothing_is_one_empty_piece():
    assert [p.shape for p in C.split(paddle.zeros([0, 2]), 3)] == [[0, 2]]


def test_medians():
    assert C.median(Y).item() == 3
    assert np.isnan(C.median(X).item())
    assert C.nanmedian(X).item() == 2.0
    values, indices = C.median(X, 1, True)
    np.testing.assert_array_equal(values.numpy(), [[1.0], [np.nan]])
    assert indices.tolist() == [[1], [2]]
    assert C.nanmedian(X, dim=1).values.tolist() == [1.0, 2.0]


def test_unique():
    values, inverse, counts = C.unique(Y, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3, 4, 5]
    assert values[inverse].reshape([2, 3]).tolist() == Y.tolist()
    assert counts.tolist() == [1, 1, 2, 1, 1]
    assert C.unique(paddle.to_tensor([[1, 1], [2, 2]]), dim=1).tolist() == [[1], [2]]


def test_slogdet_and_equal():
    sign, size = C.slogdet(paddle.to_tensor([[2.0, 0.0], [0.0, -3.0]]))
    assert sign.item() == -1.0
    assert size.item() == pytest.approx(np.log(6.0))
    assert C.equal(Y, Y) is True
    assert C.equal(Y, Y[:1]) is False


def test_out_receives_the_results():
    one, pair = paddle.zeros([]), (paddle.zeros([2]), paddle.zeros([2], "int64"))
    C.max(X[:1], out=one)
    values, indices = C.min(Y.astype("float32"), 1, out=pair)
    assert one.item() == 3.0
    assert values is pair[0]
    assert indices is pair[1]
    assert pair[0].tolist() == [1.0, 2.0]
    C.sort(X[0], out=(values, indices))
    assert values.tolist() == [0.5, 1.0, 3.0, 3.0]


def test_seed_gives_the_number_that_repeats_the_draws():
    number = C.seed()
    first = paddle.rand([4])
    paddle.seed(number)
    assert paddle.rand([4]).tolist() == first.tolist()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: C.max(Y, axis=1), "paddle.max"),
        (lambda: C.max(Y, None), "other is None"),
        (lambda: C.min(Y, 0, False, 1), "got 4 arguments"),
        (lambda: C.min(Y, 5), "axis"),
        (lambda: C.max(Y, dim="0"), "dim is '0'"),
        (lambda: C.split(Y, -1), "must be positive"),
        (lambda: C.split(Y, 1, 2), "dim is 2"),
        (lambda: C.split(paddle.to_tensor(1.0), 1), "dim is 0"),
        (lambda: C.max(Y, 0, out=paddle.zeros([1])), "tuple of 2"),
        (lambda: C.max(Y, out=(Y, Y)), "one tensor"),
        (lambda: C.sort(Y, axis=1, dim=0), "axis"),
    ],
)
def test_wrong_arguments(call, told):
    with pytest.raises((TypeError, ValueError, IndexError), match=told):
        call()
