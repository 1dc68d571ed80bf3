"""Gradients that hold only some rows of a table: their values, sums, clipping, and the optimizers' updates by them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from front.reference import ask_paddle, needs_paddle

import sampan as paddle
import sampan.nn.functional as F
from sampan import nn
from sampan.base.errors import ShapeError, UnsupportedError
from sampan.tensor.selected_rows import merged, selected_rows, to_dense, unpadded_count

TABLE = np.arange(30, dtype="float32").reshape(10, 3) / 10
BATCHES = [[[1, 2, 1], [5, 1, 2]], [[4, 2, 4]], [[7, 7], [1, 9]]]

CLIPS = {
    "none": lambda: None,
    "norm": lambda: nn.ClipGradByNorm(0.5),
    "global norm": lambda: nn.ClipGradByGlobalNorm(0.5),
    "value": lambda: nn.ClipGradByValue(0.4),
}


def table(is_sparse, **options):
    layer = nn.Embedding(10, 3, sparse=is_sparse, **options)
    layer.weight.set_value(paddle.to_tensor(TABLE))
    return layer


def backward(layer, ids):
    out = layer(paddle.to_tensor(ids))
    (out * out).sum().backward()


def dense(gradient):
    return to_dense(gradient).numpy()


def test_the_gradient_holds_the_ids_rows_in_their_order():
    layer = table(True)
    backward(layer, BATCHES[0])
    gradient = layer.weight.grad
    assert gradient.is_selected_rows()
    assert not gradient.is_dense()
    assert gradient.rows() == [1, 2, 1, 5, 1, 2]
    assert gradient.get_selected_rows().height() == 10
    np.testing.assert_array_equal(gradient.numpy(), 2 * TABLE[[1, 2, 1, 5, 1, 2]])


@pytest.mark.parametrize(
    "options",
    [{}, {"padding_idx": 2}, {"padding_idx": -9}, {"scale_grad_by_freq": True}, {"padding_idx": 1, "scale_grad_by_freq": True}],
)
def test_its_sum_is_the_dense_gradient(options):
    some, whole = table(True, **options), table(False, **options)
    for layer in (some, whole):
        backward(layer, BATCHES[0])
    np.testing.assert_allclose(dense(some.weight.grad), whole.weight.grad.numpy(), rtol=1e-6)


def test_conversions_of_the_gradient_give_the_whole_table():
    some, whole = table(True), table(False)
    for layer in (some, whole):
        backward(layer, BATCHES[0])
    want = whole.weight.grad.numpy()
    gradient = some.weight.grad
    np.testing.assert_allclose(gradient.to_dense().numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(gradient.to_sparse_coo(1).to_dense().numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(gradient.to_sparse_csr().to_dense().numpy(), want, rtol=1e-6)


def test_gradients_of_several_backwards_add_up_and_equal_rows_merge():
    layer, whole = table(True), table(False)
    for ids in BATCHES:
        backward(layer, ids)
        backward(whole, ids)
    assert layer.weight.grad.rows() == [1, 2, 4, 5, 7, 9]
    np.testing.assert_allclose(dense(layer.weight.grad), whole.weight.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("is_dense_first", [False, True])
def test_rows_and_dense_gradients_of_one_weight_add_up(is_dense_first):
    layer = table(True)
    parts = [lambda: layer(paddle.to_tensor([3, 3, 8])).sum(), lambda: (layer.weight * 2).sum()]
    for part in parts[::-1] if is_dense_first else parts:
        part().backward()
    want = np.full((10, 3), 2.0)
    want[3] += 2
    want[8] += 1
    np.testing.assert_array_equal(layer.weight.grad.numpy(), want)
    layer.weight.clear_gradient(False)
    (parts[0]() + parts[1]()).backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy(), want)


def test_a_weight_that_was_computed_gets_a_dense_gradient():
    w = paddle.to_tensor(TABLE, stop_gradient=False)
    F.embedding(paddle.to_tensor([1, 3, 1]), w * 2, sparse=True).sum().backward()
    want = np.zeros((10, 3))
    want[[1, 3]] = [[4], [2]]
    np.testing.assert_array_equal(w.grad.numpy(), want)


def test_a_hook_sees_and_replaces_the_values():
    layer = table(True)
    layer.weight.register_hook(lambda g: g * 2)
    layer(paddle.to_tensor([4, 6])).sum().backward()
    assert layer.weight.grad.rows() == [4, 6]
    np.testing.assert_array_equal(layer.weight.grad.numpy(), np.full((2, 3), 2.0))


def test_clearing_leaves_no_rows():
    layer = table(True)
    backward(layer, BATCHES[0])
    layer.weight.clear_gradient()
    assert layer.weight.grad is None


def test_printing_names_the_rows():
    layer = table(True)
    backward(layer, [[1, 4]])
    assert "stop_gradient=False, rows=[1, 4]," in str(layer.weight.grad)


def test_a_dense_tensor_has_no_rows():
    with pytest.raises(UnsupportedError, match="dense"):
        paddle.ones([2, 2]).rows()


def test_rows_must_fit_their_values():
    with pytest.raises(ShapeError, match="selected rows"):
        selected_rows(paddle.ones([2, 3]), paddle.to_tensor([1, 2, 3]), 5)


def test_merging_keeps_the_sum_and_sorts():
    rows = paddle.to_tensor([6, 2, 6, 6, 0])
    values = paddle.to_tensor(np.arange(10, dtype="float32").reshape(5, 2))
    once = merged(selected_rows(values, rows, 8))
    assert once.rows() == [0, 2, 6]
    np.testing.assert_array_equal(once.numpy(), [[8, 9], [2, 3], [10, 13]])


@pytest.mark.parametrize("count", [1, 3, 8, 9, 100, 1000])
def test_padding_repeats_the_last_row_with_zeros(count):
    values = paddle.randn([count, 2])
    more = merged(selected_rows(values, paddle.arange(count), 2000), is_padded=True)
    extra = more.shape[0] - count
    assert 0 <= extra <= count // 4
    assert more.rows() == [*range(count), *[count - 1] * extra]
    assert unpadded_count(np.array(more.rows())) == count
    np.testing.assert_array_equal(more.numpy()[:count], values.numpy())
    assert not more.numpy()[count:].any()


@pytest.mark.parametrize("ids", [list(range(9)), [8, 9] * 40, list(range(3, 400, 3))])
@pytest.mark.parametrize("clip", CLIPS)
def test_many_rows_are_updated_once(ids, clip):
    results = []
    for is_sparse in (True, False):
        layer = nn.Embedding(400, 2, sparse=is_sparse)
        layer.weight.set_value(paddle.to_tensor(np.linspace(-1, 1, 800, dtype="float32").reshape(400, 2)))
        optimizer = paddle.optimizer.Adagrad(0.1, parameters=layer.parameters(), grad_clip=CLIPS[clip]())
        for _ in range(2):
            backward(layer, [ids])
            optimizer.step()
            optimizer.clear_grad()
        results.append(layer.weight.numpy())
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)


OPTIMIZERS = {
    "SGD": lambda p, **o: paddle.optimizer.SGD(0.1, parameters=p, **o),
    "Momentum": lambda p, **o: paddle.optimizer.Momentum(0.1, parameters=p, **o),
    "Adam": lambda p, **o: paddle.optimizer.Adam(0.1, parameters=p, **o),
    "AdamW": lambda p, **o: paddle.optimizer.AdamW(0.1, parameters=p, **o),
    "Adagrad": lambda p, **o: paddle.optimizer.Adagrad(0.1, parameters=p, **o),
    "RMSProp": lambda p, **o: paddle.optimizer.RMSProp(0.1, parameters=p, **o),
    "Adamax": lambda p, **o: paddle.optimizer.Adamax(0.1, parameters=p, **o),
    "Adadelta": lambda p, **o: paddle.optimizer.Adadelta(0.1, parameters=p, **o),
    "Lamb": lambda p, **o: paddle.optimizer.Lamb(0.1, parameters=p, **o),
    "NAdam": lambda p, **o: paddle.optimizer.NAdam(0.1, parameters=p, **o),
    "RAdam": lambda p, **o: paddle.optimizer.RAdam(0.1, parameters=p, **o),
    "ASGD": lambda p, **o: paddle.optimizer.ASGD(0.1, parameters=p, **o),
    "Rprop": lambda p, **o: paddle.optimizer.Rprop(0.1, parameters=p, **o),
}


def trained(make, is_sparse, clip=None, **options):
    """The table and a layer behind it after a step for each batch."""
    layer, head = table(is_sparse), nn.Linear(3, 1)
    head.weight.set_value(paddle.ones([3, 1]))
    optimizer = make([*layer.parameters(), *head.parameters()], grad_clip=clip, **options)
    for ids in BATCHES:
        out = head(layer(paddle.to_tensor(ids)))
        (out * out).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    return layer.weight.numpy(), head.weight.numpy()


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_by_rows_is_the_dense_step(name, clip):
    some = trained(OPTIMIZERS[name], True, CLIPS[clip]())
    whole = trained(OPTIMIZERS[name], False, CLIPS[clip]())
    for a, b in zip(some, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "Momentum", "Adam"])
def test_decay_reaches_rows_without_a_gradient(name):
    some = trained(OPTIMIZERS[name], True, weight_decay=0.1)
    whole = trained(OPTIMIZERS[name], False, weight_decay=0.1)
    np.testing.assert_allclose(some[0], whole[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_lazy_adamw_moves_only_the_rows_of_a_gradient(decay):
    """By NumPy: each row has moments of its own, which only its own gradients move; the corrections count all steps."""
    layer = table(True)
    optimizer = paddle.optimizer.AdamW(0.1, parameters=layer.parameters(), weight_decay=decay, lazy_mode=True)
    want, m, v = TABLE.astype("float64"), np.zeros((10, 3)), np.zeros((10, 3))
    for step, ids in enumerate(BATCHES, 1):
        gradient = np.zeros((10, 3))
        np.add.at(gradient, np.ravel(ids), 2 * want[np.ravel(ids)])
        rows = np.unique(ids)
        backward(layer, ids)
        optimizer.step()
        optimizer.clear_grad()
        m[rows] = 0.9 * m[rows] + 0.1 * gradient[rows]
        v[rows] = 0.999 * v[rows] + 0.001 * gradient[rows] ** 2
        want[rows] *= 1 - 0.1 * decay
        want[rows] -= 0.1 * (m[rows] / (1 - 0.9**step)) / (np.sqrt(v[rows] / (1 - 0.999**step)) + 1e-8)
        np.testing.assert_allclose(layer.weight.numpy(), want, rtol=1e-4, atol=1e-5)
    assert (layer.weight.numpy()[[0, 3, 6, 8]] == TABLE[[0, 3, 6, 8]]).all()


def test_a_parameter_may_change_between_rows_and_dense_gradients():
    layer = table(True)
    optimizer = paddle.optimizer.Adam(0.1, parameters=layer.parameters(), lazy_mode=True)
    for k in range(4):
        if k % 2:
            (layer.weight**2).sum().backward()
        else:
            backward(layer, BATCHES[0])
        before = layer.weight.numpy().copy()
        optimizer.step()
        optimizer.clear_grad(False)
        moved = (layer.weight.numpy() != before).any(axis=1).nonzero()[0].tolist()
        assert moved == (list(range(10)) if k % 2 else [1, 2, 5])


def test_memory_of_a_step_does_not_depend_on_the_tables_height():
    peaks = []
    for height in (20_000, 400_000):
        layer = nn.Embedding(height, 8, sparse=True)
        optimizer = paddle.optimizer.Adam(0.1, parameters=layer.parameters(), lazy_mode=True)
        ids = paddle.to_tensor(np.arange(0, height, height // 500))
        for _ in range(2):  # the first step makes the moments
            before = paddle._rt.memory_stats()["allocated_bytes"]
            paddle._rt.reset_peak_memory()
            layer(ids).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
        peaks.append(paddle._rt.memory_stats()["peak_allocated_bytes"] - before)
    assert peaks[1] < 1.2 * peaks[0] + 100_000


STEPS_SCRIPT = """
import json, sys, numpy, paddle
table, batches, cases = json.loads(sys.argv[1])
results = []
for name, clip in cases:
    layer, head = paddle.nn.Embedding(10, 3, sparse=True), paddle.nn.Linear(3, 1)
    layer.weight.set_value(numpy.array(table, "float32"))
    head.weight.set_value(numpy.ones((3, 1), "float32"))
    clips = {"none": lambda: None, "norm": lambda: paddle.nn.ClipGradByNorm(0.5), "global norm": lambda: paddle.nn.ClipGradByGlobalNorm(0.5)}
    parameters = [*layer.parameters(), *head.parameters()]
    optimizer = getattr(paddle.optimizer, name)(0.1, parameters=parameters, grad_clip=clips[clip]())
    for ids in batches:
        out = head(layer(paddle.to_tensor(ids)))
        (out * out).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    results.append([layer.weight.numpy().tolist(), head.weight.numpy().tolist()])
print(json.dumps(results))
"""


@needs_paddle
def test_steps_are_paddles():
    cases = [(name, clip) for name in ("SGD", "Momentum", "Adagrad") for clip in ("none", "norm", "global norm")]
    wanted = ask_paddle(STEPS_SCRIPT, json.dumps([TABLE.tolist(), BATCHES, cases]))
    for (name, clip), want in zip(cases, wanted, strict=True):
        got = trained(OPTIMIZERS[name], True, CLIPS[clip]())
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, np.array(b), rtol=1e-5, atol=1e-6, err_msg=f"{name}, clip {clip}")
