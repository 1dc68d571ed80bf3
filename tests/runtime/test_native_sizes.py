"""Natives at sizes where they take another path than small operands do, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.native_call import channels_last, run_native, sample

import sampan as paddle


@pytest.mark.parametrize("mode", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_many_entries_scattered_into_few_places(mode, dtype):
    rng = np.random.default_rng(0)
    index, x = rng.integers(-50, 50, 70000), sample(dtype, (50,), 1)
    updates = sample(dtype, (70000,), 2)
    if mode == "mul":
        updates = np.where(rng.random(70000) < 1e-3, -1, 1).astype(dtype)
    want = x.copy()
    {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[mode].at(want, index, updates)
    np.testing.assert_array_equal(run_native("scatter", [x, index, updates], [x], mode=mode)[0], want)


@pytest.mark.parametrize("weights", [None, "float32", "float64", "int64"])
def test_bincount_of_many_entries_in_any_layout(weights):
    x = np.random.default_rng(0).integers(0, 37, (600, 500))
    given = [] if weights is None else [sample(weights, (600, 500), 1)]
    out = np.empty(40, weights or "int64")
    for turn in (np.asarray, np.transpose):
        inputs = [turn(a) for a in [x, *given]]
        want = np.bincount(x.ravel(), None if weights is None else given[0].ravel(), 40)
        np.testing.assert_array_equal(run_native("bincount", inputs, [out], has_weights=int(bool(given)))[0], want)


@pytest.mark.parametrize("bad", [-1, 40])
def test_bincount_names_the_first_bad_entry(bad):
    x = np.zeros((300, 500), "int64")
    x[250, 3] = bad
    with pytest.raises(IndexError, match=rf"x\[250, 3\] is {bad}; 0 to 39 are valid"):
        run_native("bincount", [x], [np.empty(40, "int64")])


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64", "float16", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (20000,), (130, 170), (7, 30, 90)], ids=str)
def test_nonzero_finds_what_numpy_finds(shape, dtype):
    array = sample(dtype, shape, low=-1, high=2)
    for view in (array, array.T):
        found = paddle.nonzero(
            paddle.to_tensor(array).transpose(list(range(array.ndim))[::-1]) if view is not array else paddle.to_tensor(array)
        )
        want = np.stack(np.nonzero(view), 1) if array.ndim else np.zeros((int(bool(array)), 0), np.int64)
        np.testing.assert_array_equal(found.numpy(), want)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_elements_moved_along_long_axes(axis, dtype):
    rng = np.random.default_rng(0)
    x, index = sample(dtype, (90, 300), 1), rng.integers(-90, 90, (90, 300))
    got = run_native("gather_elements", [x, index], [x], axis=axis)[0]
    np.testing.assert_array_equal(got, np.take_along_axis(x, index % x.shape[axis], axis))
    want = x.copy()
    where = [np.arange(90)[:, None], np.arange(300)[None]]
    where[axis] = index
    np.add.at(want, tuple(where), x)
    np.testing.assert_array_equal(run_native("scatter_elements", [x, index, x], [x], axis=axis, mode="add")[0], want)


@pytest.mark.parametrize("arrange", [np.ascontiguousarray, channels_last])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("window", [(3, 2, 1), (2, 2, 0), (9, 4, 4)], ids=str)
def test_maxima_with_equal_entries_and_nan_in_wide_images(arrange, dtype, window):
    k, s, p = window
    x = sample(dtype, (2, 43, 21, 23), low=-2, high=3)
    x[0, ::3, ::5, ::4] = np.nan
    n = [(size + 2 * p - k) // s + 1 for size in (21, 23)]
    padded = np.pad(x, [(0, 0), (0, 0), (p, p), (p, p)], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (2, 3))[:, :, ::s, ::s].reshape(2, 43, *n, k * k)
    # argmax gives the first NaN, else the first of equal entries
    at = windows.argmax(-1)
    rows = at // k + (np.arange(n[0]) * s - p)[:, None]
    want = rows * 23 + at % k + (np.arange(n[1]) * s - p)[None]
    out, indices = np.empty((2, 43, *n), dtype), np.empty((2, 43, *n), "int64")
    attributes = {"kind": "max", "kernel": [k, k], "strides": [s, s], "padding_low": [p, p], "padding_high": [p, p]}
    values, found = run_native("pool_forward", [arrange(x)], [arrange(out), arrange(indices)], with_indices=1, **attributes)
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(values, np.take_along_axis(windows, at[..., None], -1)[..., 0])
    np.testing.assert_array_equal(run_native("pool_forward", [arrange(x)], [arrange(out)], **attributes)[0], values)
    grad = sample(dtype, out.shape, 3)
    sums = np.zeros((2, 43, 21 * 23))
    np.add.at(sums.reshape(86, -1), (np.arange(86)[:, None], want.reshape(86, -1)), grad.reshape(86, -1))
    for operands, with_indices in (([grad, indices * 0 + want], 1), ([grad, x], 0)):
        got = run_native("pool_backward", [arrange(a) for a in operands], [arrange(x)], with_indices=with_indices, **attributes)[
            0
        ]
        np.testing.assert_array_equal(got, sums.reshape(x.shape))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_average_of_whole_planes(dtype):
    x = sample(dtype, (3, 5, 31, 33))
    got = run_native("adaptive_pool_forward", [x], [np.empty((3, 5, 1, 1), dtype)], kind="avg")[0]
    np.testing.assert_allclose(got[..., 0, 0], x.mean((2, 3)), rtol=1e-6)


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize(("shape", "axis"), [((70000,), 0), ((37, 900), 1), ((900, 37), 0), ((5, 900, 7), 1)], ids=str)
def test_scans_of_many_lines(shape, axis, reverse, kind):
    x = sample("float64", shape, low=-3, high=4) if kind != "prod" else np.where(sample("bool", shape), 1.0, -1.0)
    outputs = [np.empty(shape), np.empty(shape, "int64")][: 2 if kind in ("max", "min") else 1]
    got = run_native("scan", [x], outputs, kind=kind, axis=axis, reverse=reverse)
    turned = np.flip(x, axis) if reverse else x
    want = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[kind].accumulate(turned, axis)
    np.testing.assert_array_equal(got[0], np.flip(want, axis) if reverse else want)
    if kind in ("max", "min"):
        np.testing.assert_array_equal(np.take_along_axis(x, got[1], axis), got[0])


# batch, in, out, kernel, stride, padding, dilation, image, groups
@pytest.mark.parametrize(
    "case",
    [(2, 8, 8, 3, 1, 1, 1, 19, 8), (1, 64, 40, 3, 2, 1, 1, 25, 1), (3, 6, 10, 1, 1, 0, 1, 21, 2), (2, 5, 3, 3, 1, 2, 2, 18, 1), (1, 32, 32, 5, 1, 2, 1, 17, 32)],
    ids=str,
)  # fmt: skip
def test_convolutions_of_float64_over_several_tiles(case):
    n, i, o, k, s, p, d, size, groups = case
    out = (size + 2 * p - d * (k - 1) - 1) // s + 1
    x, w, grad = (
        sample("float64", (n, i, size, size)),
        sample("float64", (o, i // groups, k, k), 1),
        sample("float64", (n, o, out, out), 2),
    )
    padded = np.pad(x, [(0, 0), (0, 0), (p, p), (p, p)])
    want, to_x, to_w = np.zeros_like(grad), np.zeros_like(padded), np.zeros_like(w)
    for q in range(groups):
        c, f = slice(q * i // groups, (q + 1) * i // groups), slice(q * o // groups, (q + 1) * o // groups)
        for a in range(k):
            for b in range(k):
                where = (slice(None), c, slice(a * d, a * d + (out - 1) * s + 1, s), slice(b * d, b * d + (out - 1) * s + 1, s))
                want[:, f] += np.einsum("nchw,fc->nfhw", padded[where], w[f, :, a, b])
                to_x[where] += np.einsum("nfhw,fc->nchw", grad[:, f], w[f, :, a, b])
                to_w[f, :, a, b] = np.einsum("nfhw,nchw->fc", grad[:, f], padded[where])
    attributes = {"strides": [s, s], "padding_low": [p, p], "padding_high": [p, p], "dilations": [d, d], "groups": groups}
    for arrange in (np.ascontiguousarray, channels_last):
        operands = [arrange(a) for a in (x, w, grad)]
        np.testing.assert_array_equal(run_native("conv_forward", operands[:2], operands[2:], **attributes)[0], want)
        got = run_native("conv_backward_data", [operands[2], operands[1]], operands[:1], **attributes)[0]
        np.testing.assert_array_equal(got, to_x[:, :, p : p + size, p : p + size])
        np.testing.assert_array_equal(
            run_native("conv_backward_weights", [operands[0], operands[2]], operands[1:2], **attributes)[0], to_w
        )


@pytest.mark.parametrize("shape", [(2304, 2048), (2311, 2064), (2048, 2309)], ids=str)
def test_transposes_that_write_past_the_caches(shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(paddle.to_tensor(x).t().contiguous().numpy(), x.T)
