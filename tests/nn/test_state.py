"""Containers, states, hooks, clipping, utils, initializers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sampan as paddle
from sampan import nn
from sampan.base.errors import ArgumentError, AutogradError, ShapeError
from sampan.nn import functional as F


def test_containers_insert_delete_and_slice():
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    net = nn.Sequential(a, c)
    net.insert(1, b)
    assert list(net) == [a, b, c]
    assert list(net._sub_layers) == ["0", "1", "2"]
    del net[0]
    assert list(net) == [b, c]
    assert net[-1] is c
    assert isinstance(net[:1], nn.Sequential)
    layers = nn.LayerList([a, b])
    layers.insert(0, c)
    assert list(layers) == [c, a, b]
    assert layers.pop() is b
    assert len(layers) == 2
    named = nn.LayerDict({"x": a, "y": b})
    assert list(named) == ["x", "y"]
    assert named.pop("x") is a
    assert "x" not in named


def test_a_failed_set_state_dict_writes_nothing():
    layer = nn.Linear(2, 2)
    before = layer.bias.numpy()
    with pytest.raises(ShapeError, match=r"weight: \[3, 2\] for \[2, 2\]"):
        layer.set_state_dict({"bias": np.ones(2, "float32"), "weight": np.ones((3, 2), "float32")})
    np.testing.assert_array_equal(layer.bias.numpy(), before)


def test_parameter_names_follow_layers():
    with paddle.utils.unique_name.guard():
        layer = nn.Conv1DTranspose(1, 1, 1)
        assert [p.name for p in layer.parameters()] == ["conv1d_transpose_0.w_0", "conv1d_transpose_0.b_0"]
        assert nn.PReLU().full_name() == "p_re_lu_0"


def test_convert_sync_batchnorm_shares_parameters():
    net = nn.Sequential(nn.Conv2D(1, 2, 1), nn.BatchNorm2D(2))
    weight = net[1].weight
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert isinstance(converted[1], nn.SyncBatchNorm)
    assert converted[1].weight is weight


def _pairs():
    layer = nn.Linear(2, 2)
    return [(layer.weight, paddle.to_tensor([[3.0, 0.0], [0.0, 4.0]])), (layer.bias, paddle.to_tensor([0.0, 12.0]))]


def test_clip_by_value_norm_and_global_norm():
    by_value = nn.ClipGradByValue(3.5, -1.0)(_pairs())
    np.testing.assert_allclose(by_value[0][1].numpy(), [[3, 0], [0, 3.5]])
    by_norm = nn.ClipGradByNorm(1.0)(_pairs())
    np.testing.assert_allclose(by_norm[0][1].numpy(), [[0.6, 0], [0, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(by_norm[1][1].numpy(), [0, 1.0], rtol=1e-6)
    by_all = nn.ClipGradByGlobalNorm(6.5)(_pairs())
    np.testing.assert_allclose(by_all[1][1].numpy(), [0, 6.0], rtol=1e-6)
    untouched = nn.ClipGradByGlobalNorm(100.0)(_pairs())
    np.testing.assert_array_equal(untouched[0][1].numpy(), [[3, 0], [0, 4]])


def test_clipping_leaves_parameters_that_need_none():
    pairs = _pairs()
    pairs[0][0].need_clip = False
    clipped = nn.ClipGradByNorm(1.0)([*pairs, (nn.Linear(1, 1).weight, None)])
    np.testing.assert_array_equal(clipped[0][1].numpy(), [[3, 0], [0, 4]])
    assert clipped[2][1] is None


def test_clip_grad_norm_and_value_in_place():
    layer = nn.Linear(2, 1, bias_attr=False)
    layer(paddle.to_tensor([[3.0, 4.0]])).sum().backward()
    assert nn.utils.clip_grad_norm_(layer.parameters(), 1.0).item() == pytest.approx(5.0)
    np.testing.assert_allclose(layer.weight.grad.numpy().ravel(), [0.6, 0.8], rtol=1e-4)
    nn.utils.clip_grad_value_(layer.parameters(), 0.7)
    np.testing.assert_allclose(layer.weight.grad.numpy().ravel(), [0.6, 0.7], rtol=1e-4)
    layer.weight.grad.set_value(np.full((2, 1), np.nan, "float32"))
    with pytest.raises(AutogradError, match="nan"):
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0, error_if_nonfinite=True)


def test_vector_round_trip():
    layer, other = nn.Linear(3, 2), nn.Linear(3, 2)
    nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(layer.parameters()), other.parameters())
    np.testing.assert_array_equal(layer.weight.numpy(), other.weight.numpy())
    with pytest.raises(ShapeError, match="8 elements"):
        nn.utils.vector_to_parameters(paddle.ones([3]), other.parameters())


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_keeps_the_function_and_can_be_removed(dim):
    layer, x = nn.Linear(3, 2), paddle.to_tensor(np.random.default_rng(0).normal(size=(4, 3)).astype("float32"))
    before = layer(x).numpy()
    nn.utils.weight_norm(layer, dim=dim)
    assert sorted(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    np.testing.assert_allclose(layer(x).numpy(), before, rtol=1e-5, atol=1e-6)
    layer(x).sum().backward()
    assert layer.weight_g.grad is not None
    assert layer.weight_v.grad is not None
    nn.utils.remove_weight_norm(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    np.testing.assert_allclose(layer(x).numpy(), before, rtol=1e-5, atol=1e-6)
    with pytest.raises(ArgumentError, match="has no weight norm"):
        nn.utils.remove_weight_norm(layer)


def test_spectral_norm_brings_the_largest_singular_value_to_one():
    layer = nn.utils.spectral_norm(nn.Linear(6, 4), n_power_iterations=30)
    layer(paddle.ones([1, 6]))
    assert np.linalg.svd(layer.weight.numpy(), compute_uv=False)[0] == pytest.approx(1.0, abs=1e-3)


INITIALIZERS = {
    "Constant": (nn.initializer.Constant(0.25), 0.25, 0.0),
    "Normal": (nn.initializer.Normal(1.0, 2.0), 1.0, 2.0),
    "Uniform": (nn.initializer.Uniform(0.0, 3.0), 1.5, 3.0 / math.sqrt(12)),
    "TruncatedNormal": (nn.initializer.TruncatedNormal(), 0.0, 0.8796),
    "XavierUniform": (nn.initializer.XavierUniform(), 0.0, math.sqrt(2 / 300)),
    "XavierNormal": (nn.initializer.XavierNormal(gain=2.0), 0.0, 2 * math.sqrt(2 / 300)),
    "KaimingUniform": (nn.initializer.KaimingUniform(), 0.0, math.sqrt(2 / 100)),
    "KaimingNormal": (nn.initializer.KaimingNormal(mode="fan_out"), 0.0, math.sqrt(2 / 200)),
}


@pytest.mark.parametrize("name", INITIALIZERS)
def test_an_initializer_has_its_mean_and_deviation(name):
    initializer, mean, deviation = INITIALIZERS[name]
    paddle.seed(1)
    a = paddle.create_parameter([100, 200], "float32", default_initializer=initializer).numpy()
    assert a.mean() == pytest.approx(mean, abs=0.03 * max(deviation, 1e-6) + 1e-6)
    assert a.std() == pytest.approx(deviation, rel=0.02, abs=1e-6)


def test_structured_initializers():
    rows = paddle.create_parameter([3, 2, 4], "float32", default_initializer=nn.initializer.Orthogonal(2.0)).numpy().reshape(3, 8)
    np.testing.assert_allclose(rows @ rows.T, 4 * np.eye(3), atol=1e-5)
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(1, 4, 5, 5)).astype("float32"))
    conv = nn.Conv2D(4, 4, 3, padding=1, groups=2, weight_attr=nn.initializer.Dirac(2), bias_attr=False)
    np.testing.assert_allclose(conv(x).numpy(), x.numpy(), atol=1e-6)


def test_seed_fixes_parameters_and_global_initializers_apply():
    paddle.seed(5)
    first = nn.Linear(4, 4).weight.numpy()
    paddle.seed(5)
    np.testing.assert_array_equal(nn.Linear(4, 4).weight.numpy(), first)
    nn.initializer.set_global_initializer(nn.initializer.Constant(2.0), nn.initializer.Constant(3.0))
    try:
        layer = nn.Linear(1, 1)
        assert (layer.weight.item(), layer.bias.item()) == (2.0, 3.0)
    finally:
        nn.initializer.set_global_initializer(None)


def test_sequence_length_stops_states_and_zeroes_outputs():
    paddle.seed(2)
    rnn = nn.GRU(3, 4, direction="bidirect")
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32"))
    outputs, states = rnn(x, sequence_length=paddle.to_tensor([5, 3]))
    short, short_states = rnn(x[1:, :3])
    np.testing.assert_allclose(outputs.numpy()[1:, :3], short.numpy(), atol=1e-6)
    assert (outputs.numpy()[1, 3:] == 0).all()
    np.testing.assert_allclose(states.numpy()[:, 1:], short_states.numpy(), atol=1e-6)


def test_a_cell_in_rnn_equals_the_layer():
    paddle.seed(2)
    layer = nn.LSTM(3, 4)
    cell = nn.LSTMCell(3, 4)
    cell.set_state_dict({k: layer.state_dict()[f"{k}_l0"] for k in cell.state_dict()})
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32"))
    state = cell.get_initial_states(x)
    steps = []
    for t in range(5):
        out, state = cell(x[:, t], state)
        steps.append(out.numpy())
    np.testing.assert_allclose(layer(x)[0].numpy(), np.stack(steps, 1), atol=1e-6)


def test_transformer_decoder_cache_equals_the_whole_pass():
    paddle.seed(2)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0), 2)
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 4, 8)).astype("float32"))
    memory = paddle.to_tensor(np.random.default_rng(1).normal(size=(2, 3, 8)).astype("float32"))
    mask = nn.Transformer(8, 2, 1, 1, 8).generate_square_subsequent_mask(4)
    whole = decoder(x, memory, mask).numpy()
    cache, parts = decoder.gen_cache(memory), []
    for t in range(4):
        out, cache = decoder(x[:, t : t + 1], memory, cache=cache)
        parts.append(out.numpy())
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, atol=1e-5)


def test_beam_search_finds_the_best_sequence_of_a_small_chain():
    """Tokens follow a fixed transition table, so the best path can be listed by hand."""
    chances = np.log(np.array([[0.1, 0.5, 0.4], [0.2, 0.1, 0.7], [0.05, 0.05, 0.9]], "float32"))

    class Chain(nn.RNNCellBase):
        def forward(self, inputs, states):
            return F.embedding(inputs, paddle.to_tensor(chances)), states

    decoder = nn.BeamSearchDecoder(Chain(), start_token=0, end_token=2, beam_size=2)
    ids, states, lengths = nn.dynamic_decode(decoder, paddle.zeros([1, 1]), max_step_num=5, return_length=True)
    best = sorted(zip(states.log_probs.numpy()[0], map(tuple, ids.numpy()[0].T), strict=True), reverse=True)
    assert best[0][1][0] == 2
    assert best[0][0] == pytest.approx(math.log(0.4), abs=1e-5)
    assert best[1][1][:2] == (1, 2)
    assert best[1][0] == pytest.approx(math.log(0.35), abs=1e-5)
    assert sorted(lengths.numpy()[0].tolist()) == [1, 2]


def test_load_state_dict_reports_keys_and_refuses_those_that_do_not_match():
    layer = paddle.nn.Linear(2, 3)
    before = layer.weight.numpy()
    with pytest.raises(RuntimeError, match=r"\['bias'\] are missing, and \['other'\] are unexpected"):
        layer.load_state_dict({"weight": paddle.zeros([2, 3]), "other": paddle.zeros([1])})
    np.testing.assert_array_equal(layer.weight.numpy(), before)
    found = layer.load_state_dict({"weight": paddle.zeros([2, 3]), "other": paddle.zeros([1])}, strict=False)
    assert (found.missing_keys, found.unexpected_keys) == (["bias"], ["other"])
    assert layer.weight.numpy().sum() == 0
    assert repr(layer.load_state_dict(layer.state_dict())) == "<All keys matched successfully>"
    assert repr(layer.set_state_dict(layer.state_dict())) == "([], [])"


def test_load_state_dict_may_take_the_given_tensors_memory_and_dtype():
    layer = paddle.nn.Linear(2, 1, bias_attr=False)
    weight, given = layer.weight, paddle.to_tensor([[1.0], [2.0]], "float64")
    layer.load_state_dict({"weight": given})
    assert weight.dtype == paddle.float32
    layer.load_state_dict({"weight": given}, assign=True)
    assert layer.weight is weight
    assert weight.dtype == paddle.float64
    assert not weight.stop_gradient
    given[0] = 5.0
    assert weight.tolist() == [[5.0], [2.0]]


def test_a_strict_set_sublayer_needs_one_to_replace():
    net = paddle.nn.Sequential(paddle.nn.Linear(1, 1))
    net.set_sublayer("0", paddle.nn.ReLU(), strict=True)
    assert isinstance(net[0], paddle.nn.ReLU)
    with pytest.raises(AttributeError, match="no sub-layer 'other'"):
        net.set_sublayer("other", paddle.nn.ReLU(), strict=True)
    net.set_sublayer("other", paddle.nn.ReLU())
    assert [name for name, _ in net.named_modules(prefix="net")] == ["net", "net.0", "net.other"]


def test_hooks_run_in_order_with_keyword_arguments_and_after_failures():
    class Scaled(paddle.nn.Layer):
        def forward(self, x, factor=1.0):
            if factor == 0:
                raise ValueError("no factor")
            return x * factor

    layer, calls = Scaled(), []
    layer.register_forward_pre_hook(lambda layer, inputs, kwargs: (inputs, {"factor": kwargs["factor"] * 2}), with_kwargs=True)
    layer.register_forward_post_hook(lambda layer, inputs, outputs: calls.append("second"))
    layer.register_forward_post_hook(lambda layer, inputs, outputs: calls.append("first"), prepend=True)
    layer.register_forward_hook(lambda layer, inputs, kwargs, outputs: outputs + kwargs["factor"], with_kwargs=True)
    layer.register_forward_hook(lambda layer, inputs, outputs: calls.append(outputs is None), always_call=True)
    assert layer(paddle.ones([1]), factor=3.0).tolist() == [12.0]
    assert calls == ["first", "second", False]
    calls.clear()
    with pytest.raises(ValueError, match="no factor"):
        layer(paddle.ones([1]), factor=0.0)
    assert calls == [True]
    with pytest.raises(TypeError, match="must be callable"):
        layer.register_forward_hook(3)
    layer.register_forward_pre_hook(lambda layer, inputs, kwargs: inputs, with_kwargs=True)
    with pytest.raises(TypeError, match=r"return \(inputs, kwargs\)"):
        layer(paddle.ones([1]), factor=3.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: paddle.create_parameter([2, -1], "float32"),
        lambda: paddle.nn.Layer().create_parameter([-1]),
    ],
)
def test_parameters_have_no_negative_sizes(make):
    with pytest.raises(ValueError, match=r"a parameter cannot have the shape \[.*-\d.*\]; sizes must be 0 or more"):
        make()
