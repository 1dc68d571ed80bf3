"""static.nn: values against NumPy and the real PaddlePaddle, parameters, gradients, bad input."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from front.reference import ask_paddle, needs_paddle

import sampan as paddle
from sampan import static
from sampan.static import nn
from static.programs import floats, fresh_static_mode, held, put, run


@pytest.fixture(autouse=True)
def static_mode():
    with fresh_static_mode() as main:
        yield main


def data(name, shape, dtype="float32"):
    return static.data(name, shape, dtype)


ATTR = paddle.ParamAttr()  # of the real one's norms: without it they have no parameters in spite of their documentation
CALLS = {
    "fc": "nn.fc(data('x', [None, 4, 3]), 5, num_flatten_dims=2, activation='relu')",
    "fc_flattens": "nn.fc(data('x', [None, 4, 3]), 5)",
    "fc_of_two": "nn.fc([data('x', [None, 4]), data('y', [None, 2])], 5, bias_attr=False)",
    "conv2d": "nn.conv2d(data('x', [None, 4, 8, 9]), 6, (3, 2), stride=2, padding=[1, 0], dilation=1, groups=2, act='tanh')",
    "conv2d_same": "nn.conv2d(data('x', [None, 8, 9, 3]), 4, 3, stride=2, padding='SAME', data_format='NHWC', bias_attr=False)",
    "conv3d": "nn.conv3d(data('x', [None, 2, 5, 6, 7]), 3, 2, padding=1)",
    "conv2d_transpose": "nn.conv2d_transpose(data('x', [None, 3, 4, 5]), 2, filter_size=3, stride=2, padding=1)",
    "conv2d_transpose_by_size": "nn.conv2d_transpose(data('x', [None, 3, 4, 5]), 2, output_size=[9, 11], stride=2)",
    "conv3d_transpose": "nn.conv3d_transpose(data('x', [None, 2, 3, 4, 3]), 2, filter_size=2, stride=2)",
    "batch_norm": "nn.batch_norm(data('x', [None, 3, 4, 4]), act='relu')",
    "batch_norm_last": "nn.batch_norm(data('x', [None, 4, 3]), data_layout='NHWC', momentum=0.7, epsilon=1e-3)",
    "layer_norm": "nn.layer_norm(data('x', [None, 3, 4]), begin_norm_axis=1)",
    "layer_norm_plain": "nn.layer_norm(data('x', [None, 3, 4]), begin_norm_axis=2, scale=False, shift=False)",
    "group_norm": "nn.group_norm(data('x', [None, 4, 3, 3]), 2, 1e-5, ATTR, ATTR)",
    "instance_norm": "nn.instance_norm(data('x', [None, 4, 3, 3]), 1e-5, ATTR, ATTR)",
    "embedding": "nn.embedding(data('i', [None, 4], 'int64'), [10, 3], padding_idx=2)",
    "prelu_channel": "nn.prelu(data('x', [None, 4, 2, 2]), 'channel')",
    "prelu_element": "nn.prelu(data('x', [None, 4, 2, 2]), 'element')",
    "prelu_all": "nn.prelu(data('x', [None, 4, 2, 2]), 'all')",
    "bilinear_tensor_product": "nn.bilinear_tensor_product(data('x', [None, 4]), data('y', [None, 3]), 7, act='sigmoid')",
    "row_conv": "nn.row_conv(data('x', [None, 7, 4]), 2)",
    "spectral_norm": "nn.spectral_norm(data('x', [3, 4, 2, 2]), dim=1, power_iters=2)",
    "deform_conv2d": "nn.deform_conv2d(data('x', [None, 4, 8, 8]), data('o', [None, 18, 6, 6]), data('m', [None, 9, 6, 6]), 5, 3)",
}  # fmt: skip


def feeds_of(main, rows=3):
    feeds = {}
    for k, v in enumerate(v for v in main.global_block().vars.values() if not v.persistable and v.op is None):
        sizes = [rows if n == -1 else n for n in v.shape]
        whole = np.random.default_rng(k).integers(0, 3, sizes) if "int" in str(v.dtype) else floats(*sizes, seed=k)
        feeds[v.name] = whole
    return feeds


_REAL = """
import json, os, sys
os.environ["FLAGS_enable_pir_api"] = "0"
import numpy as np
import paddle
from paddle import static
from paddle.static import nn
paddle.enable_static()
path, calls = sys.argv[1], json.loads(sys.argv[2])
given = np.load(path)
ATTR = paddle.ParamAttr()
def data(name, shape, dtype="float32"):
    return static.data(name, shape, dtype)
results = {}
for name, text in calls.items():
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup), paddle.utils.unique_name.guard(), static.scope_guard(static.Scope()):
        out = eval(text)
        exe = static.Executor()
        exe.run(startup)
        for p in [p for p in main.list_vars() if p.persistable]:
            key = f"{name}/parameter/{p.name}"
            if key in given.files:
                static.global_scope().find_var(p.name).get_tensor().set(given[key], paddle.CPUPlace())
        feed = {k.split("/")[2]: given[k] for k in given.files if k.startswith(f"{name}/feed/")}
        results[name] = exe.run(main, feed=feed, fetch_list=[out])[0]
np.savez(path + ".out.npz", **results)
print(json.dumps(sorted(results)))
"""


@needs_paddle
def test_values_are_those_of_the_real_one(tmp_path):
    given, ours = {}, {}
    for name, text in CALLS.items():
        with fresh_static_mode() as main:
            out = eval(text)
            static.Executor().run(static.default_startup_program())
            for p in main.all_parameters():
                put(p.name, np.abs(floats(*p.shape, seed=len(p.name))) * 0.3 + 0.05)
                given[f"{name}/parameter/{p.name}"] = held(p.name)
            feeds = feeds_of(main)
            given |= {f"{name}/feed/{k}": v for k, v in feeds.items()}
            ours[name] = run([out], feeds)[0]
    path = os.fspath(tmp_path / "given.npz")
    np.savez(path, **given)
    assert ask_paddle(_REAL, path, json.dumps(CALLS)) == sorted(CALLS)
    real = np.load(path + ".out.npz")
    for name, value in ours.items():
        np.testing.assert_allclose(value, real[name], rtol=2e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("name", [n for n in CALLS if n not in ("layer_norm_plain", "spectral_norm")])
def test_every_parameter_gets_a_finite_gradient_for_any_batch(name, static_mode):
    out = eval(CALLS[name])
    assert out.shape[0] == -1
    pairs = static.append_backward((out * out).sum())
    assert {p.name for p, _ in pairs} == {p.name for p in static_mode.all_parameters() if p.trainable}
    static.Executor().run(static.default_startup_program())
    for rows in (1, 3):
        results = run([out, *(g for _, g in pairs)], feeds_of(static_mode, rows))
        assert results[0].shape[0] == rows
        assert all(np.isfinite(r).all() for r in results)
        assert [list(r.shape) for r in results[1:]] == [list(p.shape) for p, _ in pairs]


def test_fc_is_the_sum_of_products(static_mode):
    x, y = data("x", [None, 2, 3]), data("y", [None, 2])
    out = nn.fc([x, y], 4, weight_attr=[None, paddle.ParamAttr(name="own")], activation="relu", name="head")
    assert [p.name for p in static_mode.all_parameters()] == ["head.w_0", "own", "head.b_0"]
    a, b = floats(5, 2, 3), floats(5, 2, seed=1)
    (got,) = run([out], {"x": a, "y": b}, start=True)
    wanted = a.reshape(5, 6) @ held("head.w_0") + b @ held("own") + held("head.b_0")
    np.testing.assert_allclose(got, np.maximum(wanted, 0), rtol=1e-5, atol=1e-6)


def test_parameters_of_one_name_are_shared_and_must_agree(static_mode):
    x = data("x", [None, 3])
    attr = paddle.ParamAttr(name="w")
    a, b = nn.fc(x, 4, weight_attr=attr, bias_attr=False), nn.fc(x * 2, 4, weight_attr=attr, bias_attr=False)
    assert len(static_mode.all_parameters()) == 1
    first, second = run([a, b], {"x": floats(2, 3)}, start=True)
    np.testing.assert_allclose(second, first * 2, rtol=1e-6)
    with pytest.raises(ValueError, match="shared by its name"):
        nn.fc(x, 5, weight_attr=attr)
    with pytest.raises(ValueError, match="shared by its name"):
        nn.fc(x, 3, weight_attr=paddle.ParamAttr(name="x"))


def test_a_later_program_may_give_a_name_another_shape():
    exe = static.Executor()
    for width in (3, 5):
        with static.program_guard(static.Program(), static.Program()):
            out = nn.fc(data("x", [None, width]), 2, weight_attr="w", bias_attr=False)
            exe.run(static.default_startup_program())
            assert run([out], {"x": floats(4, width)})[0].shape == (4, 2)
            assert held("w").shape == (width, 2)


def test_batch_norm_keeps_statistics_and_evaluates_by_them(static_mode):
    x = data("x", [None, 2])
    out = nn.batch_norm(x, momentum=0.5, moving_mean_name="mean", moving_variance_name="variance")
    test = static_mode.clone(for_test=True)
    given = floats(6, 2) * 3 + 1
    run([out], {"x": given}, start=True)
    np.testing.assert_allclose(held("mean"), given.mean(0) * 0.5, rtol=1e-5)
    np.testing.assert_allclose(held("variance"), 0.5 + given.var(0) * 0.5, rtol=1e-5)
    (got,) = run([out.name], {"x": given}, test)
    np.testing.assert_allclose(got, (given - held("mean")) / np.sqrt(held("variance") + 1e-5), rtol=1e-4, atol=1e-5)


def test_data_norm_summarizes_what_it_has_seen(static_mode):
    x = data("x", [None, 2])
    out = nn.data_norm(
        x, name="dn", param_attr={"batch_size": 10.0, "batch_sum": 5.0, "batch_square": 40.0}, summary_decay_rate=0.5
    )
    test = static_mode.clone(for_test=True)
    given = floats(3, 2)
    (got,) = run([out], {"x": given}, start=True)
    np.testing.assert_allclose(got, (given - 0.5) * 0.5, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(held("dn.batch_size"), [8.0, 8.0])
    np.testing.assert_allclose(held("dn.batch_sum"), 2.5 + given.sum(0), rtol=1e-5)
    np.testing.assert_allclose(held("dn.batch_square_sum"), 20 + ((given - 0.5) ** 2).sum(0) + 3e-5, rtol=1e-5)
    before = held("dn.batch_sum").copy()
    run([out.name], {"x": given}, test)
    np.testing.assert_array_equal(held("dn.batch_sum"), before)


@pytest.mark.parametrize("sampler", ["uniform", "log_uniform", "custom_dist"])
def test_nce_costs_what_its_formula_says(sampler):
    shares = np.array([0.5, 0.25, 0.125, 0.125])
    x, label = data("x", [None, 2]), data("label", [None, 1], "int64")
    custom = {"custom_dist": shares.tolist()} if sampler == "custom_dist" else {}
    cost = nn.nce(x, label, 4, num_neg_samples=3, sampler=sampler, name="n", **custom)
    given, labels = floats(400, 2), np.random.default_rng(1).integers(0, 4, (400, 1))
    (got,) = run([cost], {"x": given, "label": labels}, start=True)
    k = np.arange(4)
    noise = {"uniform": np.full(4, 0.25), "log_uniform": np.log((k + 2) / (k + 1)) / np.log(5), "custom_dist": shares}[sampler]
    logits = given @ held("n.w_0").T + held("n.b_0")[:, 0]
    model = 1 / (1 + np.exp(-logits))
    rows = np.arange(400)
    hit = -np.log(model / (model + 3 * noise))[rows, labels[:, 0]]
    miss = (-np.log(3 * noise / (model + 3 * noise)) * noise).sum(1) * 3
    assert got.shape == (400, 1)
    assert (got[:, 0] > hit).all()
    np.testing.assert_allclose(got.mean(), (hit + miss).mean(), rtol=0.05)


def test_sparse_embedding_is_dense_without_servers():
    ids = data("ids", [None, 2], "int64")
    out = nn.sparse_embedding(ids, [6, 3], padding_idx=0, param_attr=paddle.ParamAttr(name="table"))
    (got,) = run([out], {"ids": np.array([[0, 5], [1, 1]])}, start=True)
    table = held("table").copy()
    table[0] = 0
    np.testing.assert_array_equal(got, table[[[0, 5], [1, 1]]])
    with pytest.raises(ValueError, match="table_class"):
        nn.sparse_embedding(ids, [6, 3], table_class="Other")


BAD = {
    "nn.fc(data('x', [None, None]), 3)": (ValueError, "must be known"),
    "nn.fc(data('x', [None, 3]), 0)": (ValueError, "positive"),
    "nn.fc(data('x', [None, 3]), 2.5)": (TypeError, "integer"),
    "nn.fc(data('x', [None, 3]), 2, num_flatten_dims=2)": (ValueError, "num_flatten_dims"),
    "nn.fc(data('x', [None, 3]), 2, activation='nothing')": (ValueError, "nothing"),
    "nn.fc(3, 2)": (TypeError, "Variable"),
    "nn.fc([], 2)": (ValueError, "empty"),
    "nn.fc([data('x', [None, 3])], 2, weight_attr=[None, None])": (ValueError, "one for each"),
    "nn.conv2d(data('x', [None, 3, 4]), 2, 3)": (ValueError, "4 axes"),
    "nn.conv2d(data('x', [None, 3, 4, 4]), 2, 3, groups=2)": (ValueError, "groups"),
    "nn.conv2d(data('x', [None, 3, 4, 4]), 2, [3, 3, 3])": (ValueError, "filter_size"),
    "nn.conv2d(data('x', [None, 3, 4, 4]), 2, 3, data_format='CHWN')": (ValueError, "data_format"),
    "nn.conv2d_transpose(data('x', [None, 3, 4, 4]), 2)": (ValueError, "one must be given"),
    "nn.conv2d_transpose(data('x', [None, 3, None, 4]), 2, output_size=9)": (ValueError, "must be known"),
    "nn.conv2d_transpose(data('x', [None, 3, 9, 9]), 2, output_size=3)": (ValueError, "no filter"),
    "nn.batch_norm(data('x', [None, None, 3]))": (ValueError, "must be known"),
    "nn.batch_norm(data('x', [3]))": (ValueError, "axes"),
    "nn.layer_norm(data('x', [None, 3]), begin_norm_axis=2)": (ValueError, "begin_norm_axis"),
    "nn.layer_norm(data('x', [None, None]))": (ValueError, "must be known"),
    "nn.group_norm(data('x', [None, 3, 4]), 2)": (ValueError, "multiple"),
    "nn.instance_norm(data('x', [None, 3, 4]), param_attr=False)": (ValueError, "both or neither"),
    "nn.embedding(data('x', [None], 'int64'), [3])": (ValueError, "rows, width"),
    "nn.embedding(data('x', [None], 'int64'), [3, 2], padding_idx=3)": (ValueError, "padding_idx"),
    "nn.prelu(data('x', [None, 3]), 'some')": (ValueError, "mode"),
    "nn.prelu(data('x', [None, None]), 'element')": (ValueError, "must be known"),
    "nn.prelu(data('x', [3]), 'channel')": (ValueError, "no channels"),
    "nn.row_conv(data('x', [None, 3]), 2)": (ValueError, "3 axes"),
    "nn.row_conv(data('x', [None, 3, 2]), 0)": (ValueError, "positive"),
    "nn.nce(data('x', [None, 3]), data('l', [None, 1], 'int64'), 4, sampler='custom_dist')": (ValueError, "go together"),
    "nn.nce(data('x', [None, 3]), data('l', [None, 1], 'int64'), 2, sampler='custom_dist', custom_dist=[1, 1])": (ValueError, "sum 1"),
    "nn.nce(data('x', [None, 3]), data('l', [None, 1], 'int64'), 4, seed=3)": (NotImplementedError, "seed"),
    "nn.spectral_norm(data('x', [3]))": (ValueError, "dim"),
    "nn.bilinear_tensor_product(data('x', [3]), data('y', [3, 2]), 2)": (ValueError, "2 axes"),
    "nn.deform_conv2d(data('x', [1, 2, 4, 4]), data('o', [1, 8, 2, 3]), None, 2, 2)": (ValueError, "offset"),
    "nn.data_norm(data('x', [None, 3, 2]))": (ValueError, "2 axes"),
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_input_is_refused_by_name(text):
    kind, words = BAD[text]
    with pytest.raises(kind, match=words):
        eval(text)


@pytest.mark.parametrize("text", ["nn.fc(x, 3)", "nn.conv2d(x, 3, 3)", "nn.batch_norm(x)", "nn.embedding(x, [3, 2])"])
def test_eager_mode_is_told_what_to_use(text):
    paddle.disable_static()
    x = paddle.ones([2, 3, 4, 4])
    with pytest.raises(NotImplementedError, match=r"use paddle\.nn\."):
        eval(text, {"nn": nn, "x": x})
    paddle.enable_static()
