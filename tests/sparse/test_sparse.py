"""Sparse tensors beside their dense forms: values, gradients, forms, printing and messages."""

import numpy as np
import pytest

import sampan as paddle
from sampan import sparse
from sampan.sparse.nn import functional as F

RNG = np.random.default_rng(7)


def kept(*shape, share=0.4, seed=0):
    """A dense array of which some elements are zero; none is otherwise."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < share, rng.normal(size=shape) + np.sign(rng.normal(size=shape)) * 2, 0.0).astype(
        "float32"
    )


def coo(array, sparse_dim=None):
    return paddle.to_tensor(array).to_sparse_coo(sparse_dim)


def csr(array):
    return paddle.to_tensor(array).to_sparse_csr()


def check(found, expected, tolerance=1e-6):
    array = found.numpy() if isinstance(found, (sparse.SparseTensor, paddle.Tensor)) else found
    np.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance)


def gradients(function, *arrays):
    """The gradients of sum(function * weights) to dense arrays, and the same by dense means."""
    tensors = [paddle.to_tensor(a, stop_gradient=False) for a in arrays]
    result = function(*tensors)
    result = result.to_dense() if isinstance(result, sparse.SparseTensor) else result
    weights = paddle.to_tensor(np.random.default_rng(3).normal(size=result.shape).astype("float32"))
    (result * weights).sum().backward()
    return [t.grad.numpy() for t in tensors]


# ---------------------------------------------------------------------- parts and forms


def test_coordinates_make_a_tensor():
    x = sparse.sparse_coo_tensor([[0, 1, 2], [1, 2, 0]], [1.0, 2.0, 3.0], [3, 4])
    assert x.shape == [3, 4]
    assert (x.nnz(), x.sparse_dim(), x.dense_dim(), x.ndim, x.size) == (3, 2, 0, 2, 12)
    assert (x.is_sparse(), x.is_sparse_coo(), x.is_sparse_csr(), x.is_dense()) == (True, True, False, False)
    assert x.indices().tolist() == [[0, 1, 2], [1, 2, 0]]
    assert x.values().tolist() == [1.0, 2.0, 3.0]
    check(x, [[0, 1, 0, 0], [0, 0, 2, 0], [3, 0, 0, 0]])
    assert sparse.sparse_coo_tensor([[0, 1, 2], [1, 2, 0]], [1.0, 2.0, 3.0]).shape == [3, 3]
    assert paddle.ones([2]).is_sparse() is False


def test_rows_make_a_tensor():
    x = sparse.sparse_csr_tensor([0, 2, 3, 5], [1, 3, 2, 0, 1], [1.0, 2.0, 3.0, 4.0, 5.0], [3, 4])
    assert (x.is_sparse_csr(), x.is_sparse_coo()) == (True, False)
    assert x.crows().tolist() == [0, 2, 3, 5]
    assert x.cols().tolist() == [1, 3, 2, 0, 1]
    check(x, [[0, 1, 0, 2], [0, 0, 3, 0], [4, 5, 0, 0]])
    batch = sparse.sparse_csr_tensor([0, 1, 2, 0, 1, 2], [0, 1, 1, 0], [1.0, 2.0, 3.0, 4.0], [2, 2, 2])
    check(batch, [[[1, 0], [0, 2]], [[0, 3], [4, 0]]])
    assert batch.crows().tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(3, 4), (5,), (2, 3, 4), (0, 3)])
def test_dense_tensors_go_there_and_back(shape, dtype):
    array = kept(*shape).astype(dtype)
    for k in range(1, len(shape) + 1):
        x = coo(array, k)
        assert x.sparse_dim() == k
        assert x.values().dtype.name == dtype
        check(x.to_dense().astype("complex128"), array.astype("complex128"))
    if len(shape) in (2, 3):
        check(csr(array).to_sparse_coo().to_dense().astype("complex128"), array.astype("complex128"))


def test_equal_places_are_added():
    x = sparse.sparse_coo_tensor([[1, 0, 1], [2, 1, 2]], [1.0, 2.0, 3.0])
    assert not x.is_coalesced()
    check(x, [[0, 2, 0], [0, 0, 4]])
    y = x.coalesce()
    assert y.is_coalesced()
    assert y.indices().tolist() == [[0, 1], [1, 2]]
    assert y.values().tolist() == [2.0, 4.0]
    assert x.to_sparse_csr().values().tolist() == [2.0, 4.0]


def test_printing():
    x = sparse.sparse_coo_tensor([[0, 1], [1, 2]], [1.0, -2.5], [2, 3])
    assert repr(x) == (
        "Tensor(shape=[2, 3], dtype=paddle.float32, place=Place(cpu), stop_gradient=True, \n"
        "       indices=[[0, 1],\n                [1, 2]], \n       values=[ 1.        , -2.50000000])"
    )
    assert repr(x.to_sparse_csr()) == (
        "Tensor(shape=[2, 3], dtype=paddle.float32, place=Place(cpu), stop_gradient=True, \n"
        "       crows=[0, 1, 2], \n       cols=[1, 2], \n       values=[ 1.        , -2.50000000])"
    )


# ---------------------------------------------------------------------- functions


@pytest.mark.parametrize("make", [coo, csr])
@pytest.mark.parametrize(
    "name", "sin tan atan sinh tanh asinh square log1p abs neg deg2rad rad2deg expm1 sqrt asin atanh isnan".split()
)
def test_functions_of_each_value(name, make):
    array = kept(4, 5)
    array = np.abs(array) / 8 if name in ("sqrt", "log1p", "asin", "atanh") else array
    expected = getattr(paddle, name)(paddle.to_tensor(array)).numpy()
    check(getattr(sparse, name)(make(array)), expected)
    if name not in ("isnan", "sqrt"):
        (found,) = gradients(lambda x: getattr(sparse, name)(x.to_sparse_csr() if make is csr else x.to_sparse_coo()), array)
        (dense,) = gradients(getattr(paddle, name), array)
        check(found, np.where(array != 0, dense, 0), 1e-5)


@pytest.mark.parametrize("make", [coo, csr])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_two_sparse_tensors(name, make):
    a, b = kept(4, 5, seed=1), kept(4, 5, seed=2)
    check(getattr(sparse, name)(make(a), make(b)), getattr(np, name)(a, b))
    convert = (lambda t: t.to_sparse_csr()) if make is csr else (lambda t: t.to_sparse_coo())
    found = gradients(lambda x, y: getattr(sparse, name)(convert(x), convert(y)), a, b)
    dense = gradients(lambda x, y: getattr(paddle, name)(x, y), a, b)
    for g, d, kept_there in zip(found, dense, (a != 0, b != 0), strict=True):
        check(g, np.where(kept_there, d, 0), 1e-5)


def test_operators_and_other_operands():
    a, b = kept(3, 4, seed=1), kept(3, 4, share=1.0, seed=2)
    x = coo(a)
    check(x + x, 2 * a)
    check(x - x, 0 * a)
    check(x * 2.5, 2.5 * a)
    check(2.5 * x, 2.5 * a)
    check(x / 2.0, a / 2)
    check(-x, -a)
    check(x / x, (a != 0).astype("float32"))
    check(x * paddle.to_tensor(b), a * b)
    check(sparse.divide(x, paddle.to_tensor(b)), a / b)
    check(x + paddle.to_tensor(b), a + b)
    check(sparse.subtract(x, paddle.to_tensor(b)), a - b)
    check(sparse.pow(x, 2.0), a**2)
    with np.errstate(divide="ignore"):
        y = coo(np.where(np.arange(12).reshape(3, 4) % 2, a, 0).astype("float32"))
        found = sparse.divide(x, y).values().numpy()
    assert np.isinf(found).any()


@pytest.mark.parametrize("make", [coo, csr])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_products(make, batch):
    a, b = kept(*batch, 4, 5, seed=1), RNG.normal(size=(*batch, 5, 2)).astype("float32")
    check(sparse.matmul(make(a), paddle.to_tensor(b)), a @ b, 1e-5)
    convert = (lambda t: t.to_sparse_csr()) if make is csr else (lambda t: t.to_sparse_coo())
    found = gradients(lambda x, y: sparse.matmul(convert(x), y), a, b)
    dense = gradients(paddle.matmul, a, b)
    check(found[0], np.where(a != 0, dense[0], 0), 1e-5)
    check(found[1], dense[1], 1e-5)
    c = kept(*batch, 5, 3, seed=2)
    both = sparse.matmul(make(a), make(c))
    assert both.is_sparse_csr() == (make is csr)
    check(both, a @ c, 1e-5)
    assert both.nnz() < np.prod(both.shape)


def test_products_with_vectors_masks_and_sums():
    a, x, y = kept(4, 5, seed=1), RNG.normal(size=(4, 3)).astype("float32"), RNG.normal(size=(3, 5)).astype("float32")
    vector = RNG.normal(size=5).astype("float32")
    check(sparse.mv(csr(a), paddle.to_tensor(vector)), a @ vector, 1e-5)
    check(sparse.masked_matmul(paddle.to_tensor(x), paddle.to_tensor(y), csr(a)), np.where(a != 0, x @ y, 0), 1e-5)
    found = gradients(lambda p, q: sparse.masked_matmul(p, q, csr(a)), x, y)
    dense = gradients(lambda p, q: paddle.matmul(p, q) * paddle.to_tensor((a != 0).astype("float32")), x, y)
    for g, d in zip(found, dense, strict=True):
        check(g, d, 1e-5)
    check(sparse.addmm(paddle.ones([4, 3]), coo(a), paddle.to_tensor(y.T), 2.0, 3.0), 2 + 3 * (a @ y.T), 1e-5)
    check(sparse.addmm(coo(a), coo(a), coo(kept(5, 5)), 2.0, 3.0), 2 * a + 3 * (a @ kept(5, 5)), 1e-5)
    check(sparse.mask_as(paddle.to_tensor(x @ y), csr(a)), np.where(a != 0, x @ y, 0), 1e-5)


def test_other_orders():
    a = kept(2, 3, 4, seed=1)
    x = coo(a)
    check(sparse.transpose(x, [2, 0, 1]), a.transpose(2, 0, 1))
    check(sparse.transpose(coo(a, 2), [1, 0, -1]), a.transpose(1, 0, 2))
    check(sparse.transpose(csr(a), [0, 2, 1]), a.transpose(0, 2, 1))
    check(sparse.reshape(x, [4, -1]), a.reshape(4, 6))
    check(sparse.reshape(x, [0, 12]), a.reshape(2, 12))
    assert sparse.reshape(csr(a[0]), [2, 6]).is_sparse_csr()
    check(sparse.slice(x, [0, -1], [1, -3], [5, 4]), a[1:5, :, -3:4])
    check(sparse.slice(coo(a, 2), [1], [1], [2]), a[:, 1:2])
    check(sparse.cast(x, "int32", "float64"), a)
    assert sparse.cast(x, "int32", "float64").indices().dtype == paddle.int32
    (g,) = gradients(lambda t: sparse.reshape(sparse.transpose(t.to_sparse_coo(), [2, 0, 1]), [4, 6]), a)
    (d,) = gradients(lambda t: t.transpose([2, 0, 1]).reshape([4, 6]), a)
    check(g, np.where(a != 0, d, 0))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1, [0, 2], None])
@pytest.mark.parametrize("lead", [1, 2, 3])
def test_sums(axis, keepdim, lead):
    a = kept(2, 3, 4, seed=1)
    found = sparse.sum(coo(a, lead), axis, keepdim=keepdim)
    check(
        found.numpy().reshape(-1), a.sum(axis if not isinstance(axis, list) else tuple(axis), keepdims=keepdim).reshape(-1), 1e-5
    )
    assert sparse.sum(coo(a), 0, dtype="float64").dtype == paddle.float64


def test_sums_of_integers_and_bools_are_int64():
    for dtype in ("int32", "bool"):
        x = coo(np.array([[1, 0], [1, 1]], dtype))
        for axis in (0, np.int64(1), None):
            found = sparse.sum(x, axis)
            assert found.dtype == paddle.int64
            check(found.numpy().reshape(-1), np.array([[1, 0], [1, 1]]).sum(axis).reshape(-1))


def test_values_of_equal_places_are_one_element():
    x = sparse.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 1.0, 3.0], [2, 2])
    dense = x.numpy()
    check(sparse.square(x), dense**2)
    check(sparse.pow(x, 3), dense**3)
    check(F.relu6(sparse.multiply(x, 4)), np.minimum(4 * dense, 6))
    check(F.softmax(x), np.where(dense != 0, 1.0, 0.0))
    check(sparse.mask_as(paddle.full([2, 2], 5.0), x), np.where(dense != 0, 5.0, 0.0))
    check(sparse.masked_matmul(paddle.ones([2, 3]), paddle.ones([3, 2]), x), np.where(dense != 0, 3.0, 0.0))
    check(sparse.matmul(x, x), dense @ dense)


def test_products_of_sparse_matrices_need_no_dense_ones():
    x = sparse.sparse_coo_tensor([[0, 7], [5, 5]], [2.0, 3.0], [10**9, 10**9], stop_gradient=False)
    y = sparse.sparse_coo_tensor([[5, 5], [1, 2]], [10.0, 100.0], [10**9, 10**9])
    z = sparse.matmul(x, y)
    assert z.indices().tolist() == [[0, 0, 7, 7], [1, 2, 1, 2]]
    assert z.values().tolist() == [20.0, 200.0, 30.0, 300.0]
    z.values().sum().backward()
    assert x.grad.values().tolist() == [110.0, 110.0]


# ---------------------------------------------------------------------- gradients


def test_gradients_stay_sparse():
    x = sparse.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2], stop_gradient=False)
    assert x.grad is None
    assert (x.is_leaf, x.stop_gradient) == (True, False)
    y = sparse.square(x)
    y.backward(y.detach())
    assert x.grad.is_sparse_coo()
    assert x.grad.values().tolist() == [2.0, 16.0]
    x.clear_grad()
    sparse.square(x).to_dense().sum().backward()
    assert x.grad.values().tolist() == [2.0, 4.0]
    values = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    sparse.sparse_coo_tensor([[0, 1], [1, 0]], values, [2, 2], stop_gradient=False).to_dense().sum().backward()
    assert values.grad.tolist() == [1.0, 1.0]


# ---------------------------------------------------------------------- nn


@pytest.mark.parametrize("make", [coo, csr])
def test_softmax_counts_what_is_kept(make):
    a = kept(4, 5, seed=1)
    a[2] = 0
    with np.errstate(invalid="ignore"):
        grown = np.where(a != 0, np.exp(a - np.where(a != 0, a, -np.inf).max(1, keepdims=True)), 0)
        expected = np.nan_to_num(grown / grown.sum(1, keepdims=True))
    check(F.softmax(make(a)), expected)
    (g,) = gradients(lambda t: F.softmax(t.to_sparse_csr()), a)
    masked = paddle.to_tensor(np.where(a != 0, 0.0, -1e30).astype("float32"))
    (d,) = gradients(lambda t: paddle.nn.functional.softmax(t + masked) * paddle.to_tensor((a != 0).astype("float32")), a)
    check(g, np.where(a != 0, d, 0), 1e-5)


def test_activations():
    a = kept(4, 5, seed=1) * 3
    check(sparse.nn.ReLU()(coo(a)), np.maximum(a, 0))
    check(sparse.nn.ReLU6()(csr(a)), np.clip(a, 0, 6))
    check(sparse.nn.LeakyReLU(0.2)(coo(a)), np.where(a > 0, a, 0.2 * a))
    check(sparse.nn.Softmax()(csr(a)), F.softmax(csr(a)).numpy())


@pytest.mark.parametrize(
    ("rank", "stride", "padding", "dilation"), [(2, 1, 1, 1), (2, (2, 1), 0, 1), (3, 1, "SAME", 1), (3, 2, 1, 1), (2, 1, 2, 2)]
)
def test_convolutions_are_those_of_the_dense_tensor(rank, stride, padding, dilation):
    sites = np.random.default_rng(1).random((2, *(5, 6, 4)[:rank], 1)) < 0.3
    a = np.where(sites, RNG.normal(size=(2, *(5, 6, 4)[:rank], 3)), 0).astype("float32")
    w, b = RNG.normal(size=(*(3, 3, 2)[:rank], 3, 4)).astype("float32"), RNG.normal(size=4).astype("float32")
    name, back = ("conv2d", [3, 2, 0, 1]) if rank == 2 else ("conv3d", [4, 3, 0, 1, 2])
    form = "NHWC" if rank == 2 else "NDHWC"
    settings = {"stride": stride, "padding": padding, "dilation": dilation}

    def of_dense(x, weight):
        return getattr(paddle.nn.functional, name)(x, weight.transpose(back), None, data_format=form, **settings)

    expected = of_dense(paddle.to_tensor(a), paddle.to_tensor(w)).numpy()
    found = getattr(F, name)(coo(a, rank + 1), paddle.to_tensor(w), paddle.to_tensor(b), **settings)
    assert list(found.shape) == list(expected.shape)
    places = tuple(found.indices().numpy())
    check(found.values(), expected[places] + b, 1e-4)
    reached = np.zeros(expected.shape[:-1], bool)
    reached[places] = True
    check(np.where(reached[..., None], 0, expected), np.zeros_like(expected), 1e-6)
    g = gradients(lambda x, weight: getattr(F, name)(x.to_sparse_coo(rank + 1), weight, **settings), a, w)
    d = gradients(of_dense, a, w)
    check(g[0], np.where(sites, d[0], 0), 1e-4)
    check(g[1], d[1], 1e-3)
    if stride == 1 and dilation == 1:
        same = getattr(F, f"subm_{name}")(coo(a, rank + 1), paddle.to_tensor(w))
        middle = of_dense(paddle.to_tensor(a), paddle.to_tensor(w)).numpy()
        assert same.indices().tolist() == coo(a, rank + 1).indices().tolist()
        check(same.values(), middle[tuple(same.indices().numpy())], 1e-4)


def test_pooling_takes_the_largest_kept_value():
    sites = np.random.default_rng(1).random((1, 4, 4, 4, 1)) < 0.3
    a = np.where(sites, RNG.normal(size=(1, 4, 4, 4, 2)), 0).astype("float32")
    x = coo(a, 4)
    y = sparse.nn.MaxPool3D(2)(x)
    windows = np.where(sites, a, -np.inf).reshape(1, 2, 2, 2, 2, 2, 2, 2).max((2, 4, 6))
    check(y, np.where(np.isinf(windows), 0, windows))
    (g,) = gradients(lambda t: F.max_pool3d(t.to_sparse_coo(4), 2), a)
    assert (np.count_nonzero(g.reshape(1, 2, 2, 2, 2, 2, 2, 2), (2, 4, 6)) <= 1).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_pooling_takes_any_number(dtype):
    numbers = [[-np.inf, np.nan], [1, 2], [np.nan, -np.inf]] if dtype != "int64" else [[2**53, -5], [2**53 + 1, -4], [0, -3]]
    x = sparse.sparse_coo_tensor([[0] * 3, [0, 1, 1], [0, 0, 1], [1, 1, 1]], numbers, [1, 2, 2, 2, 2], dtype)
    check(F.max_pool3d(x, 1).values().astype("float64"), x.values().astype("float64"))
    largest = np.max(x.values().astype("float64").numpy(), 0) if dtype != "int64" else [2**53 + 1, -3]
    assert F.max_pool3d(x, 2).values().astype("float64").numpy().reshape(-1).tolist() == pytest.approx(list(largest), nan_ok=True)
    if dtype == "int64":
        assert F.max_pool3d(x, 2).values().tolist() == [largest]


def test_padding_is_given_in_pairs_too():
    a = np.zeros((1, 3, 4, 1), "float32")
    a[0, 1, 2] = 1
    found = F.conv2d(coo(a, 3), paddle.ones([2, 2, 1, 1]), padding=[[0, 0], [1, 0], [0, 2], [0, 0]])
    assert found.shape == [1, 3, 5, 1]
    check(found, F.conv2d(coo(a, 3), paddle.ones([2, 2, 1, 1]), padding=[1, 0, 0, 2]).numpy())


def test_layers_train_and_keep_their_state():
    paddle.seed(1)
    net = paddle.nn.Sequential(
        sparse.nn.SubmConv3D(1, 4, 3, padding=1), sparse.nn.BatchNorm(4), sparse.nn.ReLU(), sparse.nn.Conv3D(4, 2, 2)
    )
    a = np.where(np.random.default_rng(1).random((2, 4, 4, 4, 1)) < 0.3, 1.0, 0).astype("float32")
    optimizer = paddle.optimizer.Adam(0.05, parameters=net.parameters())
    losses = []
    for _ in range(8):
        loss = (net(coo(a, 4)).values() - 1).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert net[0].weight.shape == [3, 3, 3, 1, 4]
    assert net[1]._mean.numpy().any()
    check(sparse.nn.SubmConv2D(1, 1, 3)(coo(a[:, 0], 3)).indices(), coo(a[:, 0], 3).indices().numpy())


def test_attention_over_the_places_of_a_mask():
    q, k, v = (RNG.normal(size=(2, 2, 4, 3)).astype("float32") for _ in range(3))
    mask = np.tril(np.ones((4, 4), "float32"))
    keys, scores = RNG.normal(size=(2, 4)).astype("float32"), RNG.normal(size=(4, 4)).astype("float32")
    pattern = csr(np.broadcast_to(mask, (4, 4, 4)).copy())
    found = F.attention(*map(paddle.to_tensor, (q, k, v)), pattern, paddle.to_tensor(keys), paddle.to_tensor(scores))
    raw = q @ k.swapaxes(-1, -2) / np.sqrt(3) + keys[:, None, None] + scores
    grown = np.exp(raw) * mask
    check(found, grown / grown.sum(-1, keepdims=True) @ v, 1e-5)


# ---------------------------------------------------------------------- refusals

X = [[0.0, 1.0], [2.0, 0.0]]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: sparse.sparse_coo_tensor([[0, 5], [1, 1]], [1.0, 2.0], [3, 3]), "hold 5 for axis 0"),
        (lambda: sparse.sparse_coo_tensor([[0, -1]], [1.0, 2.0], [3]), "hold -1"),
        (lambda: sparse.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0]), "2 places and there are 3 values"),
        (lambda: sparse.sparse_coo_tensor([[0.5, 1]], [1.0, 2.0]), "must hold integers"),
        (lambda: sparse.sparse_coo_tensor([0, 1], [1.0, 2.0]), "must have 2 axes"),
        (lambda: sparse.sparse_coo_tensor([[0, 1]], [1.0, 2.0], [3, 3]), "one size for each row"),
        (lambda: sparse.sparse_csr_tensor([0, 2], [0, 1], [1.0, 2.0], [3, 3]), "needs 4"),
        (lambda: sparse.sparse_csr_tensor([0, 2, 1, 2], [0, 1], [1.0, 2.0], [3, 3]), "crows does not divide"),
        (lambda: sparse.sparse_csr_tensor([0, 1, 2, 2], [0, 3], [1.0, 2.0], [3, 3]), "cols hold 3"),
        (lambda: sparse.sin(paddle.ones([2])), "must be a sparse tensor"),
        (lambda: paddle.sin(coo(X)), "sin"),
        (lambda: sparse.add(coo(X), csr(X)), "different forms"),
        (lambda: sparse.add(coo(X), coo([[1.0]])), "same shape"),
        (lambda: sparse.matmul(coo(X), paddle.ones([3, 2])), "last axis of x"),
        (lambda: csr(X).indices(), "to_sparse_coo"),
        (lambda: coo(X).crows(), "to_sparse_csr"),
        (lambda: paddle.ones([2]).to_sparse_csr(), "must be"),
        (lambda: paddle.ones([2]).to_sparse_coo(2), "sparse_dim is 2"),
        (lambda: paddle.ones([2]).values(), "dense"),
        (lambda: sparse.transpose(coo(X), [0, 0]), "each of the 2 axes once"),
        (lambda: sparse.reshape(coo(X), [3]), "cannot become"),
        (lambda: sparse.slice(coo(X, 1), [1], [0], [1]), "sparse axes"),
        (lambda: sparse.sum(coo(X), 2), "axis 2 is outside"),
        (lambda: sparse.cast(coo(X), "float32"), "int32 or int64"),
        (lambda: F.softmax(coo(X), 0), "last axis"),
        (lambda: F.conv2d(coo(X), paddle.ones([1, 1, 1, 1])), "dense channels"),
        (lambda: F.subm_conv2d(coo(np.ones((1, 2, 2, 1)), 3), paddle.ones([1, 1, 1, 1]), stride=2), "must be 1"),
        (lambda: bool(coo(X)), "to_dense"),
        (lambda: sparse.sparse_coo_tensor([[0], [0]], [1.0], [2**40, 2**40]), "more elements than 64 bits"),
        (lambda: sparse.sparse_coo_tensor([[0], [0]], [1.0], [-1, 3]), "sizes must be at least 0"),
        (lambda: sparse.sparse_coo_tensor([[0, 1], [0]], [1.0], [3, 3]), r"sparse_coo_tensor\(\)"),
        (lambda: sparse.sparse_csr_tensor([], [], []), "crows is empty"),
        (lambda: sparse.slice(coo(X), [0, 1], [0], [1]), "one of each"),
        (lambda: sparse.sum(coo(X), "a"), r"^sum\(\)"),
        (lambda: sparse.masked_matmul([[1.0]], paddle.ones([1, 1]), coo(X)), "x is .* it must be a Tensor"),
        (lambda: coo(X).backward(coo([[1.0, 0.0], [2.0, 0.0]])), "same 2 places"),
        (lambda: F.softmax(coo(X).astype("complex64")), "must be real"),
        (lambda: F.attention(paddle.ones([2, 3]), paddle.ones([2, 3]), paddle.ones([2, 3]), csr(X)), "N, heads, T, width"),
        (lambda: F.max_pool3d(coo(np.ones((1, 2, 2, 2, 1)), 4), 2, 0), "stride is 0"),
        (lambda: F.conv2d(coo(np.ones((1, 2, 2, 1)), 3), paddle.ones([1, 1, 1, 1]), dilation=0), "dilation is 0"),
        (lambda: F.conv2d(coo(np.ones((1, 2, 2, 1)), 3), paddle.ones([1, 1, 1, 1]), paddle.ones([2])), r"bias is \[2\]"),
        (lambda: F.conv2d(coo(np.ones((1, 2, 2, 1)), 3), paddle.ones([1, 1, 1, 1]), padding=[[0, 0]]), "holds 1 pairs"),
        (lambda: sparse.nn.Conv3D(2, 3, 2, stride=0), "stride is 0"),
        (lambda: sparse.nn.Conv3D(2, 3, [2, 2]), "3 of them"),
        (lambda: sparse.nn.Conv2D(0, 3, 2), "in_channels is 0"),
        (lambda: sparse.nn.SubmConv2D(2, 3, 2, data_format="NCHW"), "'NHWC'"),
        (lambda: sparse.nn.MaxPool3D(0), "kernel_size is 0"),
    ],
)
def test_messages(call, told):
    with pytest.raises((TypeError, ValueError, IndexError, NotImplementedError, RuntimeError), match=told):
        call()
