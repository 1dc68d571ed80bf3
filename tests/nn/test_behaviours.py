"""Behaviours that implementations are known to get wrong; the ids are those of the reference list."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import nn
from sampan.base.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from sampan.nn import functional as F


def test_up081_weighted_mean_cross_entropy_divides_by_the_weights():
    logits, labels = paddle.to_tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), paddle.to_tensor([0, 1, 0])
    loss = F.cross_entropy(logits, labels, weight=paddle.to_tensor([1.0, 3.0]))
    assert loss.item() == pytest.approx(1.3519721, abs=1e-6)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_up085_resizing_to_one_takes_the_centre(mode):
    row = paddle.to_tensor([[[[10.0, 20.0, 30.0, 40.0, 50.0]]]])
    assert F.interpolate(row, [1, 1], mode=mode).item() == pytest.approx(30.0, abs=1e-4)


def test_up088_circular_padding_of_one_side():
    x = np.arange(25, dtype="float32").reshape(1, 1, 5, 5)
    y = F.pad(paddle.to_tensor(x), [4, 0, 3, 0], mode="circular")
    np.testing.assert_array_equal(y.numpy(), np.pad(x, [(0, 0), (0, 0), (3, 0), (4, 0)], "wrap"))


@pytest.mark.parametrize("sparse", [False, True])
def test_up092_padding_row_gets_no_gradient(sparse):
    layer = nn.Embedding(4, 3, padding_idx=0, sparse=sparse)
    layer(paddle.to_tensor([0, 2, 2])).sum().backward()
    gradient = layer.weight.grad
    found = np.zeros((4, 3))
    if sparse:
        assert gradient.is_selected_rows()
        rows = gradient.get_selected_rows()
        np.add.at(found, rows.rows(), np.asarray(rows.get_tensor()))
    else:
        found[:] = gradient.numpy()
    np.testing.assert_array_equal(found, [[0] * 3, [0] * 3, [2] * 3, [0] * 3])


def test_up093_running_variance_is_biased():
    norm = nn.BatchNorm1D(1, momentum=0.9)
    norm(paddle.to_tensor([[1.0], [3.0]]))
    assert norm._mean.item() == pytest.approx(0.2)
    assert norm._variance.item() == pytest.approx(1.0)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("use_global_stats", [None, True, False])
def test_up094_which_statistics_normalise(training, use_global_stats):
    norm = nn.BatchNorm1D(1, use_global_stats=use_global_stats)
    norm.train(training)
    y = norm(paddle.to_tensor([[1.0], [3.0]])).numpy().ravel()
    uses_batch = training if use_global_stats is None else not use_global_stats
    expected = [-1.0, 1.0] if uses_batch else [1.0, 3.0]
    np.testing.assert_allclose(y, expected, atol=1e-4)


def test_up096_each_dropout_draws_anew():
    ones = paddle.ones([1000])
    first, second = F.dropout(ones, 0.5).numpy(), F.dropout(ones, 0.5).numpy()
    assert (first != second).any()
    assert set(np.unique(first)) == {0.0, 2.0}
    assert abs(first.mean() - 1) < 5 / np.sqrt(1000)


def test_up042_layer_norm_of_nearly_equal_inputs_has_a_small_gradient():
    x = paddle.to_tensor([[-1.83965693, -1.82964566]], stop_gradient=False)
    nn.LayerNorm(2, 1e-5)(x).sum().backward()
    assert np.abs(x.grad.numpy()).max() < 1e-2


def test_up027_the_norm_of_zeros_has_a_zero_gradient():
    x = paddle.zeros([1, 3])
    x.stop_gradient = False
    F.normalize(x).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    layer = nn.Linear(3, 1)
    layer.weight.set_value(np.zeros([3, 1], "float32"))
    clipped = nn.ClipGradByGlobalNorm(1.0)([(layer.weight, paddle.zeros([3, 1]))])
    np.testing.assert_array_equal(clipped[0][1].numpy(), np.zeros([3, 1]))


def test_running_statistics_change_in_place_and_not_in_evaluation():
    norm = nn.BatchNorm2D(3)
    mean = norm._mean
    x = paddle.to_tensor(np.random.default_rng(0).normal(2, 3, (4, 3, 5, 5)).astype("float32"))
    norm(x)
    assert norm._mean is mean
    np.testing.assert_allclose(mean.numpy(), 0.1 * x.numpy().mean((0, 2, 3)), rtol=1e-5)
    kept = mean.numpy()
    norm.eval()
    norm(x)
    np.testing.assert_array_equal(mean.numpy(), kept)


@pytest.mark.parametrize("ids", [[-1], [4]])
def test_ids_outside_of_the_table_raise(ids):
    with pytest.raises(IndexRangeError, match=rf"embedding\(\): x\[0\] is {ids[0]}; axis 0 has 4 entries, so 0 to 3 are valid"):
        F.embedding(paddle.to_tensor(ids), paddle.ones([4, 2]))
    with pytest.raises(IndexRangeError, match=rf"embedding\(\): x\[1\] is {ids[0]}"):
        F.embedding(paddle.to_tensor([0, *ids]), paddle.ones([4, 2]), padding_idx=0)


#: Every loss over class ids, of scores x [2, 4].
CLASS_LOSSES = {
    "cross_entropy": F.cross_entropy,
    "cross_entropy with an axis of length 1": lambda x, ids: F.cross_entropy(x, ids.unsqueeze(1)),
    "softmax_with_cross_entropy": lambda x, ids: F.softmax_with_cross_entropy(x, ids.unsqueeze(1)),
    "cross_entropy with label_smoothing": lambda x, ids: F.cross_entropy(x, ids, label_smoothing=0.1),
    "cross_entropy with weights": lambda x, ids: F.cross_entropy(x, ids, weight=paddle.ones([4])),
    "nll_loss": F.nll_loss,
    "multi_margin_loss": F.multi_margin_loss,
    "margin_cross_entropy": F.margin_cross_entropy,
    "dice_loss": lambda x, ids: F.dice_loss(x, ids.unsqueeze(1)),
    "one_hot": lambda x, ids: F.one_hot(ids, 4),
    "hsigmoid_loss": lambda x, ids: F.hsigmoid_loss(x, ids, 4, paddle.ones([3, 4])),
}


@pytest.mark.parametrize("name", CLASS_LOSSES)
@pytest.mark.parametrize("ids", [[-1, 0], [4, 0]])
def test_class_ids_outside_of_the_classes_raise_and_do_not_count_from_the_end(name, ids):
    with pytest.raises((IndexError, ValueError), match=r"label|x holds ids"):
        CLASS_LOSSES[name](paddle.ones([2, 4]) * 0.5, paddle.to_tensor(ids))


def test_floating_ids_raise():
    with pytest.raises(DTypeError, match="int32 or int64"):
        F.embedding(paddle.ones([2]), paddle.ones([4, 2]))


def test_a_one_hot_id_outside_raises():
    with pytest.raises(ArgumentError, match="num_classes is 3"):
        F.one_hot(paddle.to_tensor([3]), 3)


def test_max_norm_limits_the_rows_that_are_read():
    table = paddle.to_tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    F.embedding(paddle.to_tensor([0, 1]), table, max_norm=1.0)
    np.testing.assert_allclose(table.numpy(), [[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]], rtol=1e-5)


def test_scale_grad_by_freq_divides_by_the_count():
    table = paddle.ones([3, 2])
    table.stop_gradient = False
    F.embedding(paddle.to_tensor([0, 0, 2]), table, scale_grad_by_freq=True).sum().backward()
    np.testing.assert_array_equal(table.grad.numpy(), [[1, 1], [0, 0], [1, 1]])


@pytest.mark.parametrize(("p", "mode", "expected"), [(1.0, "upscale_in_train", 0.0), (0.0, "upscale_in_train", 1.0)])
def test_dropout_of_everything_or_nothing(p, mode, expected):
    assert F.dropout(paddle.ones([8]), p, mode=mode).tolist() == [expected] * 8


def test_downscaling_dropout_in_evaluation():
    assert F.dropout(paddle.ones([2]), 0.25, training=False, mode="downscale_in_infer").tolist() == [0.75, 0.75]


def test_a_dropout_mask_along_one_axis_is_shared_by_the_others():
    y = F.dropout(paddle.ones([6, 50]), 0.5, axis=1).numpy()
    assert (y == y[0]).all()
    assert len(set(y[0])) == 2


def test_dropout2d_drops_whole_channels():
    y = F.dropout2d(paddle.ones([4, 16, 3, 3]), 0.5).numpy().reshape(64, 9)
    assert (y == y[:, :1]).all()
    assert len(set(y[:, 0])) == 2


def test_alpha_dropout_keeps_mean_and_variance():
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=100_000).astype("float32"))
    y = F.alpha_dropout(x, 0.3).numpy()
    assert abs(y.mean()) < 0.02
    assert abs(y.var() - 1) < 0.03


def test_gumbel_softmax_hard_is_one_hot_and_differentiable():
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(6, 4)).astype("float32"), stop_gradient=False)
    y = F.gumbel_softmax(x, hard=True)
    np.testing.assert_array_equal(np.sort(y.numpy(), 1), [[0, 0, 0, 1]] * 6)
    (y * paddle.to_tensor(np.arange(4, dtype="float32"))).sum().backward()
    assert np.abs(x.grad.numpy()).max() > 0


def test_rrelu_slopes_lie_in_the_interval():
    y = -F.rrelu(paddle.full([1000], -1.0), 0.1, 0.3).numpy()
    assert 0.1 <= y.min() < 0.12
    assert 0.28 < y.max() <= 0.3


def test_reflect_padding_beyond_the_axis_raises():
    with pytest.raises(ShapeError, match="takes at most 2"):
        F.pad(paddle.ones([1, 1, 3]), [3, 0], mode="reflect")


def test_attention_of_a_query_without_keys_is_zero():
    x = paddle.ones([1, 2, 1, 4])
    mask = paddle.to_tensor([[[[True, True], [False, False]]]])
    y = F.scaled_dot_product_attention(x, x, x, mask).numpy()
    np.testing.assert_array_equal(y[0, :, 0, 0], [1.0, 0.0])


def test_unknown_reduction_says_what_is_allowed():
    with pytest.raises(ArgumentError, match="'none', 'mean' or 'sum'"):
        F.mse_loss(paddle.ones([2]), paddle.ones([2]), "avg")


def _cross_entropy(x, label, **settings):
    return F.cross_entropy(x, label, **settings)


def _nll_loss(x, label, **settings):
    return F.nll_loss(F.log_softmax(x), label, **settings)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.5]])
@pytest.mark.parametrize("loss", [_cross_entropy, _nll_loss])
def test_the_mean_over_no_labels_is_zero_and_moves_nothing(loss, weight, compiled):
    """Of a batch that is all padding; a NaN would end the training."""
    settings = {"ignore_index": 2, "weight": None if weight is None else paddle.to_tensor(weight)}
    function = (
        (lambda x, y: loss(x, y, **settings)) if not compiled else paddle.jit.to_static(lambda x, y: loss(x, y, **settings))
    )
    for rows in (2, 0):
        x = paddle.to_tensor(np.random.default_rng(0).normal(size=(rows, 3)).astype("float32"), stop_gradient=False)
        value = function(x, paddle.full([rows], 2, "int64"))
        value.backward()
        assert value.item() == 0
        assert not x.grad.numpy().any()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("loss", [_cross_entropy, _nll_loss])
def test_what_does_not_count_may_be_infinite(loss, reduction):
    """The class that stands in for an ignored label may be ruled out by -inf, as padding is."""
    data = np.array([[-np.inf, 1.0, 2.0], [-np.inf, 0.5, 0.0]], "float32")
    x = paddle.to_tensor(data, stop_gradient=False)
    value = loss(x, paddle.to_tensor([1, -100]), reduction=reduction)
    expected = np.log(np.exp(1.0) + np.exp(2.0)) - 1.0
    np.testing.assert_allclose(value.numpy(), [expected, 0.0] if reduction == "none" else expected, rtol=1e-6)
    value.sum().backward()
    share = np.exp(1.0) / (np.exp(1.0) + np.exp(2.0))
    np.testing.assert_allclose(x.grad.numpy(), [[0, share - 1, 1 - share], [0, 0, 0]], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax, F.gumbel_softmax])
def test_softmax_along_an_empty_axis_is_empty(function):
    for shape, axis in (([0, 3], 0), ([2, 0], -1)):
        x = paddle.zeros(shape)
        x.stop_gradient = False
        y = function(x, axis=axis)
        y.sum().backward()
        assert y.shape == x.grad.shape == shape


def test_batchmean_of_no_rows_is_nan_and_of_one_number_itself():
    assert np.isnan(F.kl_div(paddle.zeros([0, 3]), paddle.zeros([0, 3]), "batchmean").item())
    assert F.kl_div(paddle.to_tensor(0.0), paddle.to_tensor(1.0), "batchmean").item() == 0


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("shape", [[0, 3, 2, 2], [4, 3, 0, 2]])
def test_running_statistics_stay_where_nothing_is_seen(shape, compiled):
    layer = nn.BatchNorm2D(3)
    run = paddle.jit.to_static(layer) if compiled else layer
    run(paddle.to_tensor(np.random.default_rng(0).normal(2, 3, [4, 3, 2, 2]).astype("float32")))
    before = layer._mean.numpy(), layer._variance.numpy()
    assert run(paddle.zeros(shape)).shape == shape
    np.testing.assert_array_equal(layer._mean.numpy(), before[0])
    np.testing.assert_array_equal(layer._variance.numpy(), before[1])


@pytest.mark.parametrize("need_weights", [False, True])
def test_attention_of_empty_batches_and_lengths(need_weights):
    layer = nn.MultiHeadAttention(8, 2, need_weights=need_weights)

    def run(*lengths):
        found = layer(*(paddle.zeros(n) for n in lengths))
        return found[0] if need_weights else found

    assert run([0, 3, 8]).shape == [0, 3, 8]
    assert run([2, 0, 8]).shape == [2, 0, 8]
    without_keys = run([2, 3, 8], [2, 0, 8], [2, 0, 8])
    np.testing.assert_allclose(without_keys.numpy(), np.broadcast_to(layer.out_proj.bias.numpy(), [2, 3, 8]))
    assert nn.TransformerEncoderLayer(8, 2, 16)(paddle.zeros([0, 3, 8])).shape == [0, 3, 8]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: nn.InstanceNorm2D(3)(paddle.ones([2, 4, 4, 4])), r"instance_norm\(\): weight has 3 elements; it must have 4"),
        (lambda: nn.GroupNorm(2, 4)(paddle.ones([2, 6, 4, 4])), r"group_norm\(\): weight has 4 elements; it must have 6"),
        (lambda: F.group_norm(paddle.ones([2, 6]), 2, bias=paddle.ones([3])), r"bias has 3 elements; it must have 6"),
        (lambda: F.rms_norm(paddle.ones([2, 4]), [4], paddle.ones([3])), r"rms_norm\(\): weight has 3 elements; it must have 4"),
        (
            lambda: F.layer_norm(paddle.ones([2, 4]), [4], paddle.ones([3])),
            r"layer_norm\(\): weight has 3 elements; it must have 4",
        ),
    ],
)
def test_scales_of_another_size_are_named(call, says):
    with pytest.raises(ShapeError, match=says):
        call()


def test_a_negative_norm_would_turn_gradients_around():
    layer = nn.Linear(2, 2)
    layer(paddle.ones([1, 2])).sum().backward()
    with pytest.raises(ArgumentError, match="max_norm is -1"):
        nn.utils.clip_grad_norm_(layer.parameters(), -1.0)
