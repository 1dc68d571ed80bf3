"""sort, topk, scan, searchsorted, unique, nonzero and counting. NumPy is the oracle."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from runtime.native_call import plan_of, run_native, sample, spread

from sampan import _rt

REAL = [bool, np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64]
SHAPES = [
    ((), 0),
    ((1,), 0),
    ((7,), 0),
    ((500,), -1),
    ((5, 191), 1),
    ((5, 193), 1),
    ((33, 4), 0),
    ((3, 400, 2), 1),
    ((0, 4), 0),
    ((4, 0), 1),
]


def mixed(dtype, shape, seed=0):
    """Values of the whole range with repetitions; NaN, infinities and both zeros where the dtype has them."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.asarray(rng.choice(rng.integers(info.min, info.max, 100, dtype=dtype, endpoint=True), shape))
    values = np.asarray(rng.standard_normal(shape), dtype)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5], dtype)
    return np.asarray(np.where(rng.random(shape) < 0.3, rng.choice(special, shape), values), dtype)


def order_of(x, axis, descending):
    if x.ndim == 0:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - backwards, axis)


def along(x, order, axis):
    return np.take_along_axis(x, order, axis) if x.ndim else x


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("descending", [0, 1])
class TestSort:
    @pytest.mark.parametrize(("shape", "axis"), SHAPES)
    def test_equals_a_stable_argsort(self, dtype, descending, shape, axis):
        x = mixed(dtype, shape)
        order = order_of(x, axis, descending)
        outputs = [np.empty(shape, dtype), np.empty(shape, np.int64)]
        values, indices = run_native("sort", [spread(x)], outputs, axis=axis, descending=descending)
        np.testing.assert_array_equal(indices, order)
        np.testing.assert_array_equal(values, along(x, order, axis))
        (alone,) = run_native("sort", [x], [np.empty(shape, np.int32)], axis=axis, descending=descending, with_values=0)
        np.testing.assert_array_equal(alone, order)

    def test_one_long_row_with_any_number_of_threads(self, dtype, descending):
        count = _rt.num_threads()
        x = mixed(dtype, (150_001,))
        order = order_of(x, 0, descending)
        try:
            for n in (1, 2, 5):
                _rt.set_num_threads(n)
                (got,) = run_native("sort", [x], [np.empty(x.shape, np.int64)], descending=descending, with_values=0)
                np.testing.assert_array_equal(got, order)
        finally:
            _rt.set_num_threads(count)

    @pytest.mark.parametrize(("shape", "axis"), SHAPES[2:8])
    def test_topk_is_the_start_of_it(self, dtype, descending, shape, axis):
        x = mixed(dtype, shape, 1)
        order, n = order_of(x, axis, descending), shape[axis]
        for k in sorted({0, 1, min(3, n), n // 2, n}):
            winners = np.take(order, range(k), axis)
            outputs = [np.empty(winners.shape, dtype), np.empty(winners.shape, np.int64)]
            values, indices = run_native("topk", [spread(x)], outputs, k=k, axis=axis, largest=descending)
            np.testing.assert_array_equal(indices, winners)
            np.testing.assert_array_equal(values, np.take_along_axis(x, winners, axis))


class TestSortErrors:
    def test_complex_numbers(self):
        with pytest.raises(TypeError, match="no order"):
            plan_of("sort", [np.ones(3, np.complex64)], [np.empty(3, np.int64)], with_values=0)

    def test_too_many(self):
        with pytest.raises(ValueError, match="k is 4; the axis has 3"):
            plan_of("topk", [np.ones(3, np.float32)], [np.empty(4, np.float32), np.empty(4, np.int64)], k=4)

    def test_axis(self):
        with pytest.raises(ValueError, match="axis is 1"):
            plan_of("sort", [np.ones(3, np.float32)], [np.empty(3, np.int64)], axis=1, with_values=0)


def running(x, axis, kind, reverse, exclusive):
    accumulate = {"sum": np.add, "prod": np.multiply, "logaddexp": np.logaddexp}[kind].accumulate
    x = np.flip(x, axis) if reverse else x
    with np.errstate(all="ignore"):
        result = accumulate(x, axis=axis, dtype=x.dtype)
    if exclusive and x.shape[axis]:
        first = np.full_like(np.take(x, [0], axis=axis), {"sum": 0, "prod": 1, "logaddexp": -np.inf}[kind])
        result = np.concatenate([first, np.take(result, range(x.shape[axis] - 1), axis=axis)], axis)
    return np.flip(result, axis) if reverse else result


@pytest.mark.parametrize(("shape", "axis"), SHAPES[1:7] + SHAPES[8:])
@pytest.mark.parametrize("reverse", [0, 1])
class TestScan:
    @pytest.mark.parametrize("exclusive", [0, 1])
    @pytest.mark.parametrize("kind", ["sum", "prod"])
    @pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float16, np.float32, np.float64, np.complex64])
    def test_sums_and_products(self, shape, axis, reverse, exclusive, kind, dtype):
        floating = np.dtype(dtype).kind in "fc"
        x = np.asarray(np.random.default_rng(0).uniform(0.7, 1.3, shape), dtype) if floating else mixed(dtype, shape)
        (got,) = run_native(
            "scan", [spread(x)], [np.empty(shape, dtype)], axis=axis, kind=kind, reverse=reverse, exclusive=exclusive
        )
        wide = {"f": np.float64, "c": np.complex128}.get(np.dtype(dtype).kind, dtype)
        expected = running(x.astype(wide), axis, kind, reverse, exclusive)
        if floating:
            np.testing.assert_allclose(
                got.astype(wide), expected.astype(dtype).astype(wide), rtol=2e-3 if dtype == np.float16 else 1e-6
            )
        else:
            np.testing.assert_array_equal(got, expected)

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_log_sums(self, shape, axis, reverse, dtype):
        x = sample(dtype, shape)
        (got,) = run_native("scan", [x], [np.empty(shape, dtype)], axis=axis, kind="logaddexp", reverse=reverse)
        np.testing.assert_allclose(
            got.astype(np.float64),
            running(x.astype(np.float64), axis, "logaddexp", reverse, 0),
            rtol=2e-3 if dtype == np.float16 else 1e-6,
        )

    @pytest.mark.parametrize("kind", ["max", "min"])
    @pytest.mark.parametrize("dtype", [bool, np.int16, np.float16, np.float32])
    def test_extremes(self, shape, axis, reverse, kind, dtype):
        x = mixed(dtype, shape)
        outputs = [np.empty(shape, dtype), np.empty(shape, np.int64)]
        got, where = run_native("scan", [spread(x)], outputs, axis=axis, kind=kind, reverse=reverse)
        rows = np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0)
        best, at = rows.copy(), np.zeros(rows.shape, np.int64)
        for k in range(1, len(rows)):
            new, old = rows[k], best[k - 1]
            wins = np.isnan(new.astype(float)) | (
                ~np.isnan(old.astype(float)) & ((new >= old) if kind == "max" else (new <= old))
            )
            best[k], at[k] = np.where(wins, new, old), np.where(wins, k, at[k - 1])
        if reverse:
            best, at = best[::-1], len(rows) - 1 - at[::-1]
        np.testing.assert_array_equal(got, np.moveaxis(best, 0, axis))
        np.testing.assert_array_equal(where, np.moveaxis(at, 0, axis))


class TestScanCorners:
    def test_a_wider_output(self):
        x = np.array([True, False, True, True])
        assert run_native("scan", [x], [np.empty(4, np.int64)])[0].tolist() == [1, 1, 2, 3]

    def test_log_sums_of_infinities(self):
        x = np.array([-np.inf, -np.inf, 0, np.inf, 1, np.nan, 2], np.float32)
        (got,) = run_native("scan", [x], [np.empty(7, np.float32)], kind="logaddexp")
        np.testing.assert_array_equal(got, [-np.inf, -np.inf, 0, np.inf, np.inf, np.nan, np.nan])

    def test_long_sums_keep_their_precision(self):
        x = np.full(100_000, 0.1, np.float32)
        (got,) = run_native("scan", [x], [np.empty_like(x)])
        np.testing.assert_allclose(got[-1], 1e4, rtol=1e-6)


@pytest.mark.parametrize("dtype", REAL)
class TestSearch:
    @pytest.mark.parametrize("right", [0, 1])
    @pytest.mark.parametrize("length", [0, 1, 10, 1000])
    def test_one_row(self, dtype, right, length):
        row, values = np.sort(mixed(dtype, (length,))), mixed(dtype, (5, 11), 1)
        for index in (np.int32, np.int64):
            (got,) = run_native("searchsorted", [row, values], [np.empty(values.shape, index)], right=right)
            np.testing.assert_array_equal(got, np.searchsorted(row, values, "right" if right else "left"))

    def test_rows_of_their_own(self, dtype):
        rows, values = np.sort(mixed(dtype, (3, 10))), mixed(dtype, (3, 7), 1)[:, ::-1]
        (got,) = run_native("searchsorted", [rows, values], [np.empty((3, 7), np.int64)])
        np.testing.assert_array_equal(got, [np.searchsorted(r, v) for r, v in zip(rows, values, strict=True)])

    @pytest.mark.parametrize("count", [0, 1, 50, 3000])
    def test_unique(self, dtype, count):
        x = sample(dtype, (count,), 0, -5, 5)
        outputs = [np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64), np.empty(1, np.int64)]
        first, inverse, counts, number = run_native("unique", [spread(x)], outputs)
        _, f, i, c = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        n = number[0]
        assert n == len(f)
        np.testing.assert_array_equal(first[:n], f)
        np.testing.assert_array_equal(inverse, i)
        np.testing.assert_array_equal(counts[:n], c)
        first, inverse, counts, number = run_native("unique", [x], outputs, consecutive=1)
        begins = np.flatnonzero(np.concatenate([[True] * min(count, 1), x[1:] != x[:-1]]))
        np.testing.assert_array_equal(first[: number[0]], begins)
        np.testing.assert_array_equal(counts[: number[0]], np.diff([*begins, count]))

    def test_unique_rows(self, dtype):
        x = sample(dtype, (200, 2), 0, -2, 3)
        outputs = [np.empty(200, np.int64), np.empty(200, np.int64), np.empty(200, np.int64), np.empty(1, np.int64)]
        first, inverse, counts, number = run_native("unique", [x], outputs)
        rows, c = np.unique(x, axis=0, return_counts=True)
        assert number[0] == len(rows)
        np.testing.assert_array_equal(x[first[: len(rows)]], rows)
        np.testing.assert_array_equal(rows[inverse], x)
        np.testing.assert_array_equal(counts[: len(rows)], c)

    @pytest.mark.parametrize("shape", [(), (5,), (3, 4), (200, 300), (0, 3)])
    def test_what_a_mask_picks(self, dtype, shape):
        rng = np.random.default_rng(1)
        x = np.asarray(np.where(rng.random(shape) < 0.4, sample(dtype, shape), np.zeros((), dtype)))
        x = x[..., ::-1] if x.ndim else x
        (number,) = run_native("nonzero_count", [x], [np.empty(1, np.int64)])
        assert number[0] == np.count_nonzero(x)
        (positions,) = run_native("nonzero_fill", [x], [np.empty((number[0], x.ndim), np.int64)])
        np.testing.assert_array_equal(positions, np.argwhere(x))
        mask = np.asarray(rng.random(shape) < 0.3)
        (picked,) = run_native("masked_select", [x, mask], [np.empty(mask.sum(), dtype)])
        np.testing.assert_array_equal(picked, x[mask])
        values = sample(dtype, (int(mask.sum()) + 2,), 3)
        (got,) = run_native("masked_scatter", [x, mask, values], [np.empty(shape, dtype)])
        expected = np.array(x)
        expected[mask] = values[: mask.sum()]
        np.testing.assert_array_equal(got, expected)


class TestCounting:
    @pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64])
    def test_bins(self, dtype):
        x = sample(dtype, (50, 3), 0, 0, 20)
        (got,) = run_native("bincount", [spread(x)], [np.empty(25, np.int64)])
        np.testing.assert_array_equal(got, np.bincount(x.ravel(), minlength=25))
        weights = sample(np.float32, (50, 3), 1)
        (got,) = run_native("bincount", [x, weights], [np.empty(25, np.float32)], has_weights=1)
        np.testing.assert_array_equal(got, np.bincount(x.ravel(), weights.ravel(), 25))

    def test_a_value_outside(self):
        with pytest.raises(IndexError, match=r"x\[1, 1\] is -1; 0 to 3 are valid"):
            run_native("bincount", [np.array([[1, 2], [3, -1]])], [np.empty(4, np.int64)])

    def test_another_number_of_entries_than_counted(self):
        with pytest.raises(ValueError, match="3 entries are set, but the operand holds 2"):
            run_native("nonzero_fill", [np.ones(3, ml_dtypes.bfloat16)], [np.empty((2, 1), np.int64)])
