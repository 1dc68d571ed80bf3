"""Other orders and spellings of arguments: each call equals one in Paddle's own order."""

import numpy as np
import pytest

import sampan as paddle

F = paddle.nn.functional


def tensor(*shape, dtype="float32"):
    return paddle.arange(int(np.prod(shape)), dtype=dtype).reshape(list(shape))


def same(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


X = tensor(2, 1, 3)
ROWS = paddle.to_tensor([1, 0])
ALONG = paddle.to_tensor([[[0, 1, 0]]])
SOURCE = paddle.to_tensor([[[5.0, 6.0, 7.0]]])

EQUAL = {
    "sizes of reshape": (lambda: X.reshape(3, 2), lambda: X.reshape([3, 2])),
    "sizes of reshape, one of a tensor": (lambda: X.reshape(paddle.to_tensor(3), -1), lambda: X.reshape([3, 2])),
    "one size": (lambda: X.view(-1), lambda: X.reshape([6])),
    "sizes of view": (lambda: X.view(3, 2), lambda: X.view([3, 2])),
    "view by dtype": (lambda: X.view(dtype="int32"), lambda: X.view("int32")),
    "view by size": (lambda: X.view(size=[6]), lambda: X.view([6])),
    "sizes of expand": (lambda: X.expand(2, 4, -1), lambda: X.expand([2, 4, 3])),
    "expand by size": (lambda: paddle.expand(X, size=[2, 4, 3]), lambda: X.expand([2, 4, 3])),
    "sizes of tile": (lambda: X.tile(2, 1, 2), lambda: X.tile([2, 1, 2])),
    "tile by dims": (lambda: paddle.tile(X, dims=[2]), lambda: X.tile([2])),
    "permute": (lambda: X.permute(2, 0, 1), lambda: X.transpose([2, 0, 1])),
    "two axes of transpose": (lambda: X.transpose(0, -1), lambda: X.transpose([2, 1, 0])),
    "two axes by name": (lambda: paddle.transpose(X, dim0=0, dim1=2), lambda: X.transpose([2, 1, 0])),
    "two axes of a matrix": (lambda: X[:, 0].transpose(0, 1), lambda: X[:, 0].t()),
    "roll": (lambda: X.roll(shifts=1, dims=2), lambda: X.roll(1, 2)),
    "unfold": (lambda: X.unfold(dimension=2, size=2, step=1), lambda: X.unfold(2, 2, 1)),
    "unflatten": (lambda: X.unflatten(dim=2, sizes=[3, 1]), lambda: X.unflatten(2, [3, 1])),
    "diagonal": (lambda: X.diagonal(dim1=0, dim2=2), lambda: X.diagonal(0, 0, 2)),
    "index_select": (lambda: X.index_select(0, ROWS), lambda: X.index_select(ROWS, 0)),
    "index_select by names": (lambda: X.index_select(0, index=ROWS), lambda: X.index_select(ROWS, 0)),
    "index_add": (lambda: X.index_add(0, ROWS, X, alpha=2), lambda: X.index_add(ROWS, 0, X, 2)),
    "index_add by names": (lambda: X.index_add(dim=0, index=ROWS, source=X), lambda: X.index_add(ROWS, 0, X)),
    "index_fill": (lambda: X.index_fill(0, ROWS, 2.0), lambda: X.index_fill(ROWS, 0, 2.0)),
    "index_put": (
        lambda: X.index_put(indices=(ROWS,), values=paddle.to_tensor(1.0)),
        lambda: X.index_put((ROWS,), paddle.to_tensor(1.0)),
    ),
    "gather of elements": (lambda: X.gather(0, ALONG), lambda: X.take_along_axis(ALONG, 0, False)),
    "gather of elements by names": (lambda: paddle.gather(X, dim=0, index=ALONG), lambda: X.take_along_axis(ALONG, 0, False)),
    "gather of slices": (lambda: X.gather(ROWS, 0), lambda: X.index_select(ROWS, 0)),
    "gather of slices, by dim": (lambda: X.gather(ROWS, dim=0), lambda: X.index_select(ROWS, 0)),
    "scatter": (lambda: X.scatter(0, ALONG, SOURCE), lambda: X.put_along_axis(ALONG, SOURCE, 0, broadcast=False)),
    "scatter by names": (
        lambda: X.scatter(dim=0, index=ALONG, src=SOURCE),
        lambda: X.put_along_axis(ALONG, SOURCE, 0, broadcast=False),
    ),
    "scatter of a number": (lambda: X.scatter(0, ALONG, 2.0), lambda: X.put_along_axis(ALONG, 2.0, 0, broadcast=False)),
    "scatter that adds": (
        lambda: X.scatter(0, ALONG, SOURCE, reduce="add"),
        lambda: X.put_along_axis(ALONG, SOURCE, 0, "add", broadcast=False),
    ),
    "scatter that multiplies": (
        lambda: X.scatter(0, ALONG, SOURCE, "multiply"),
        lambda: X.put_along_axis(ALONG, SOURCE, 0, "mul", broadcast=False),
    ),
    "sum": (lambda: X.sum(0, True), lambda: X.sum(axis=0, keepdim=True)),
    "sum with a dtype": (lambda: X.sum((0, 1), False, dtype="int64"), lambda: X.sum(axis=[0, 1], dtype="int64")),
    "sum with a dtype by position": (lambda: X.sum(0, True, "int64"), lambda: X.sum(axis=0, dtype="int64", keepdim=True)),
    "lower median": (lambda: X.median(dim=0)[0], lambda: X.median(axis=0, mode="min")[0]),
    "place of the lower median": (lambda: paddle.median(X, dim=0, keepdim=True)[1], lambda: X.median(0, True, "min")[1]),
    "topk": (lambda: X.topk(2).values, lambda: X.topk(2)[0]),
    "places of topk": (lambda: paddle.topk(X, k=2, dim=-1).indices, lambda: X.topk(2)[1]),
    "pow": (lambda: X.pow(exponent=2), lambda: X**2),
    "dot": (lambda: ROWS.dot(tensor=ROWS), lambda: ROWS.dot(ROWS)),
    "nonzero": (lambda: paddle.nonzero(input=X), lambda: X.nonzero()),
    "where": (lambda: paddle.where(X > 1, input=X, other=SOURCE), lambda: paddle.where(X > 1, X, SOURCE)),
    "isin": (lambda: paddle.isin(elements=ROWS, test_elements=ROWS), lambda: paddle.isin(ROWS, ROWS)),
    "searchsorted": (
        lambda: paddle.searchsorted(paddle.to_tensor([0, 1]), input=ROWS),
        lambda: paddle.searchsorted(paddle.to_tensor([0, 1]), ROWS),
    ),
    "bucketize": (
        lambda: paddle.bucketize(ROWS, boundaries=paddle.to_tensor([0, 1])),
        lambda: paddle.bucketize(ROWS, paddle.to_tensor([0, 1])),
    ),
    "new_zeros": (lambda: X.new_zeros(size=[2, 3]), lambda: X.new_zeros([2, 3])),
    "full": (lambda: paddle.full(size=[2, 3], fill_value=1.0), lambda: paddle.ones([2, 3])),
    "zeros": (lambda: paddle.zeros(size=[2, 3]), lambda: paddle.zeros([2, 3])),
    "linspace": (lambda: paddle.linspace(0, end=1, steps=3), lambda: paddle.linspace(0, 1, 3)),
    "logspace": (lambda: paddle.logspace(0, end=1, steps=3), lambda: paddle.logspace(0, 1, 3)),
    "eye": (lambda: paddle.eye(n=2, m=3), lambda: paddle.eye(2, 3)),
    "meshgrid": (
        lambda: paddle.meshgrid(ROWS, paddle.arange(3), indexing="xy")[1],
        lambda: paddle.meshgrid(ROWS, paddle.arange(3))[1].t(),
    ),
    "broadcast_to": (lambda: paddle.broadcast_to(X, size=[2, 2, 3]), lambda: X.expand([2, 2, 3])),
    "gelu by a word": (lambda: F.gelu(X, approximate="tanh"), lambda: F.gelu(X, True)),
    "gelu by the other word": (lambda: F.gelu(X, approximate="none"), lambda: F.gelu(X)),
    "pad": (lambda: F.pad(input=X, pad=[1, 1], value=2.0), lambda: F.pad(X, [1, 1], value=2.0)),
    "embedding": (lambda: F.embedding(input=ROWS, weight=X[:, 0]), lambda: F.embedding(ROWS, X[:, 0])),
    "layer_norm": (lambda: F.layer_norm(input=X, normalized_shape=[3], eps=0.1), lambda: F.layer_norm(X, [3], epsilon=0.1)),
    "cross_entropy": (lambda: F.cross_entropy(input=X[:, 0], target=ROWS), lambda: F.cross_entropy(X[:, 0], ROWS)),
    "interpolate": (
        lambda: F.interpolate(input=tensor(1, 1, 4, 4), size=[2, 2]),
        lambda: F.interpolate(tensor(1, 1, 4, 4), [2, 2]),
    ),
    "normalize": (lambda: F.normalize(X, dim=0, eps=0.1), lambda: F.normalize(X, axis=0, epsilon=0.1)),
    "LayerNorm": (lambda: paddle.nn.LayerNorm(3, eps=0.1)(X), lambda: paddle.nn.LayerNorm(3, epsilon=0.1)(X)),
    "sigmoid of the root": (lambda: paddle.sigmoid(X), lambda: F.sigmoid(X)),
}


@pytest.mark.parametrize("name", EQUAL)
def test_two_forms_of_a_call_are_one(name):
    found, expected = EQUAL[name]
    same(found(), expected())


def test_in_place_forms_take_them_too():
    x = X.clone()
    assert x.scatter_(0, ALONG, SOURCE) is x
    same(x, X.scatter(0, ALONG, SOURCE))
    y = X.clone()
    y.transpose_(0, 2)
    same(y, X.transpose([2, 1, 0]))
    z = X.clone()
    z.index_add_(0, ROWS, X)
    same(z, X.index_add(ROWS, 0, X))


def test_gradients_flow_through_them():
    x = paddle.to_tensor(X.numpy(), stop_gradient=False)
    (x.gather(0, ALONG) * SOURCE).sum(0, True).transpose(0, 2).reshape(-1).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[[5.0, 0.0, 7.0]], [[0.0, 6.0, 0.0]]])


def test_converted_functions_take_them():
    static = paddle.jit.to_static(lambda x, i: x.gather(0, i).sum(0, True).transpose(0, 2).reshape(3, -1), full_graph=True)
    same(static(X, ALONG), X.gather(0, ALONG).sum(axis=0, keepdim=True).transpose([2, 1, 0]).reshape([3, 1]))


def test_the_size_of_a_tensor_is_a_number_and_a_function():
    assert X.size == 6
    assert X.size + 1 == 7
    assert X.size() == [2, 1, 3]
    assert X.size(-1) == X.size(dim=2) == 3
    with pytest.raises(IndexError, match="dim is 3"):
        X.size(3)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: X.flip(0, 1), "at most 2 positional"),
        (lambda: X.unsqueeze(0, 1), "at most 2 positional"),
        (lambda: X.scatter(0, ALONG), "src is missing"),
        (lambda: X.scatter(0, ALONG, SOURCE, "divide"), "must be None, 'add' or 'multiply'"),
        (lambda: X.transpose(0, 3), "dim1 is 3"),
        (lambda: paddle.meshgrid(ROWS, ROWS, indexing="yx"), "must be 'ij' or 'xy'"),
        (lambda: F.gelu(X, approximate="erf"), "approximate is 'erf'"),
        (lambda: X.gather(0), "index"),
        (lambda: F.pad(input=X, x=X, pad=[1, 1]), "input"),
    ],
)
def test_what_fits_no_form_is_refused(call, told):
    with pytest.raises((TypeError, ValueError), match=told):
        call()


@pytest.mark.parametrize("parents", [[[0, 2], [1, 0]], [[0, -1], [1, 0]]])
def test_gather_tree_names_the_parent_that_is_no_beam(parents):
    beams = paddle.to_tensor([parents])
    with pytest.raises(IndexError, match=r"parents\[0, 0, 1\] is"):
        F.gather_tree(beams, beams)


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (lambda: [np.float64(1.0)], "float32"),
        (lambda: [[paddle.to_tensor(1.0), 2.0], [3, 4]], "float32"),
        (lambda: [2.5, paddle.to_tensor(1.0, dtype="float64")], "float64"),
        (lambda: [[2.5], [paddle.to_tensor(1.0, dtype="float64")]], "float64"),
        (lambda: [np.array([1.0, 2.0]), [3, 4]], "float32"),
        (lambda: np.array([1.0]), "float64"),
    ],
)
def test_the_dtype_of_lists_of_tensors_arrays_and_numbers(data, dtype):
    assert paddle.to_tensor(data()).dtype == getattr(paddle, dtype)
