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


def softmaxed(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attended(weights, query, key, value, hidden, heads):
    """The result and the weights of each head of attention over [N, length, width], in NumPy; hidden: added to the scores."""

    def split(x, name):
        y = x @ weights[f"{name}_proj_weight"].T + weights[f"{name}_proj_bias"]
        return y.reshape(*y.shape[:2], heads, -1).swapaxes(1, 2)

    q, k, v = split(query, "q"), split(key, "k"), split(value, "v")
    shares = softmaxed(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + hidden)
    out = (shares @ v).swapaxes(1, 2)
    return out.reshape(*out.shape[:2], -1) @ weights["out_proj.weight"].T + weights["out_proj.bias"], shares


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("kdim", [None, 6])
def test_multihead_attention_is_attention_of_sequences_first(kdim, need_weights):
    rng = np.random.default_rng(0)
    layer = paddle.compat.nn.MultiheadAttention(8, 2, kdim=kdim)
    layer.set_state_dict({k: paddle.to_tensor(rng.normal(size=v.shape).astype("float32")) for k, v in layer.state_dict().items()})
    query, key, value = (rng.normal(size=(n, 3, w)).astype("float32") for n, w in ((4, 8), (5, kdim or 8), (5, 8)))
    mask, padding = rng.random((4, 5)) > 0.6, rng.random((3, 5)) > 0.6
    mask[:, 0], padding[:, 0] = False, False  # every query sees a key
    out, weights = layer(
        *map(paddle.to_tensor, (query, key, value)),
        key_padding_mask=paddle.to_tensor(padding),
        attn_mask=paddle.to_tensor(mask),
        need_weights=need_weights,
    )
    named = {k: v.numpy() for k, v in layer.state_dict().items()}
    if kdim is None:
        for whole in ("in_proj_weight", "in_proj_bias"):
            named |= {whole.replace("in", name): part for name, part in zip("qkv", np.split(named[whole], 3), strict=True)}
    hidden = np.where(mask | padding[:, None, None], -np.inf, 0.0)
    expected, shares = attended(named, *(x.swapaxes(0, 1) for x in (query, key, value)), hidden, 2)
    np.testing.assert_allclose(out.numpy().swapaxes(0, 1), expected, rtol=1e-4, atol=1e-4)
    assert (weights is None) == (not need_weights)
    if need_weights:
        np.testing.assert_allclose(weights.numpy(), shares.mean(1), rtol=1e-4, atol=1e-5)


def test_multihead_attention_forms():
    x = paddle.rand([3, 5, 8])
    layer = paddle.compat.nn.MultiheadAttention(8, 2, bias=False, add_bias_kv=True, add_zero_attn=True, batch_first=True)
    assert sorted(layer.state_dict()) == ["bias_k", "bias_v", "in_proj_weight", "out_proj.weight"]
    out, weights = layer(x, x, x, average_attn_weights=False)
    assert out.shape == [3, 5, 8]
    assert weights.shape == [3, 2, 5, 7]
    single, shares = layer(x[1], x[1], x[1])
    np.testing.assert_allclose(single.numpy(), out[1].numpy(), atol=1e-5)
    np.testing.assert_allclose(shares.numpy(), weights[1].mean(0).numpy(), atol=1e-5)
    plain = paddle.compat.nn.MultiheadAttention(8, 2, batch_first=True)
    causal = plain(x, x, x, is_causal=True)[1]
    assert not np.triu(causal.numpy(), 1).any()
    causal.sum().backward()
    with pytest.raises(ValueError, match="embed_dim must be a multiple of num_heads"):
        paddle.compat.nn.MultiheadAttention(8, 3)


def test_linear_takes_its_weight_the_other_way_round():
    layer = paddle.compat.nn.Linear(3, 5, dtype="float64")
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(layer(paddle.to_tensor(x)).numpy(), x @ layer.weight.numpy().T + layer.bias.numpy())
    assert abs(layer.bias.numpy()).max() <= 1 / np.sqrt(3)
    assert str(layer) == "Linear(in_features=3, out_features=5, bias=True)"
    assert paddle.compat.nn.Linear(3, 5, bias=False, device="cpu").bias is None
    with pytest.raises(paddle.base.errors.UnsupportedError, match="no gpu support"):
        paddle.compat.nn.Linear(3, 5, device="gpu")
    with pytest.raises(ValueError, match=r"linear\(\): input is \[2, 3\] and weight \[3, 5\]"):
        paddle.compat.nn.functional.linear(paddle.ones([2, 3]), paddle.ones([3, 5]))


def test_attention_of_heads_first_is_causal_from_the_first_key():
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 4, 3, 5)), rng.normal(size=(2, 4, 6, 5))
    attention = paddle.compat.nn.functional.scaled_dot_product_attention
    found = attention(paddle.to_tensor(q), paddle.to_tensor(k), paddle.to_tensor(k), is_causal=True)
    hidden = np.where(np.tri(3, 6, dtype=bool), 0.0, -np.inf)
    np.testing.assert_allclose(found.numpy(), softmaxed(q @ k.swapaxes(-1, -2) / np.sqrt(5) + hidden) @ k, rtol=1e-6)
    few = paddle.to_tensor(k[:, :2])
    shared = attention(paddle.to_tensor(q), few, few, enable_gqa=True)
    np.testing.assert_allclose(
        shared.numpy(), attention(paddle.to_tensor(q), *[paddle.to_tensor(k[:, [0, 0, 1, 1]])] * 2).numpy()
    )
    with pytest.raises(ValueError, match="4 and 2 heads"):
        attention(paddle.to_tensor(q), few, few)
    with pytest.raises(ValueError, match=r"query has shape \[4, 3, 5\]"):
        attention(paddle.to_tensor(q[0]), few, few)


def test_windows_and_widths_in_the_other_order():
    x = paddle.rand([2, 3, 6, 7])
    nn, F = paddle.compat.nn, paddle.nn.functional
    assert nn.AvgPool2d is nn.AvgPool2D
    np.testing.assert_array_equal(nn.AvgPool2D(3, 2, 1)(x), F.avg_pool2d(x, 3, 2, 1, exclusive=False))
    np.testing.assert_array_equal(nn.AvgPool2D(3, 2, 1, True, False)(x), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True))
    np.testing.assert_array_equal(nn.AvgPool1D(3, 2, 1)(x[0]), F.avg_pool1d(x[0], 3, 2, 1, exclusive=False))
    np.testing.assert_array_equal(
        nn.AvgPool3D(2, 2, 1, divisor_override=3)(x[None]), F.avg_pool3d(x[None], 2, 2, 1, divisor_override=3)
    )
    np.testing.assert_array_equal(nn.Unfold([2, 3], 2, 1, 1)(x), F.unfold(x, [2, 3], 1, 1, 2))
    np.testing.assert_array_equal(
        nn.functional.pad(x, [1, 2, 0, 0, 0, 0, 3, 1]), np.pad(x.numpy(), [(3, 1), (0, 0), (0, 0), (1, 2)])
    )
    np.testing.assert_array_equal(nn.Softmax()(x), F.softmax(x, 1))
    np.testing.assert_array_equal(nn.Softmax(dim=-1)(x), F.softmax(x))
