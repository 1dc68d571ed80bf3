"""matmul: NumPy is the oracle; every layout, dtype, epilogue and both implementations (own tiles, oneDNN)."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest
from runtime.native_call import accumulate_native, plan_of, run_native, sample, spread

from sampan import _rt

SHAPES = [
    ((3, 4), (4, 5)),
    ((1, 7), (7, 1)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 6)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 1, 9), (9, 33)),
    ((1, 600), (600, 300)),
    ((300, 600), (600, 1)),
    ((70, 300), (300, 50)),
    ((300, 200), (200, 250)),
]
EMPTY = [((5, 0), (0, 3)), ((0, 3), (3, 2)), ((2, 0, 3), (3, 2)), ((0, 2, 3), (0, 3, 4))]
DTYPES = [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.int32, np.int64, np.complex64, np.complex128]


def transposed(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)


def wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) if a.dtype.itemsize == 2 and a.dtype.kind not in "iu" else a


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.matmul(wide(a), wide(b))


def matmul(a: np.ndarray, b: np.ndarray, *more: np.ndarray, out=None, **attributes) -> np.ndarray:
    if out is None:
        out = np.empty(product(a, b).shape, a.dtype)
    return run_native("matmul", [a, b, *more], [out], **attributes)[0]


def check(got: np.ndarray, expected: np.ndarray) -> None:
    if got.dtype.kind in "iu":
        np.testing.assert_array_equal(got, expected.astype(got.dtype))
    else:
        tolerance = {2: 2e-2, 4: 1e-5, 8: 1e-12}[got.real.dtype.itemsize]
        np.testing.assert_allclose(wide(got), expected, rtol=tolerance, atol=tolerance)


class TestProducts:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize(("left", "right"), SHAPES + EMPTY)
    def test_equal_numpy(self, dtype, left, right):
        a, b = sample(dtype, left), sample(dtype, right, 1)
        check(matmul(a, b), product(a, b))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.complex64, np.float16])
    @pytest.mark.parametrize(("left", "right"), [((3, 4), (4, 5)), ((2, 70, 90), (2, 90, 130)), ((300, 200), (200, 250))])
    @pytest.mark.parametrize("arrange_a", [transposed, spread, lambda a: a[..., ::-1, :]])
    @pytest.mark.parametrize("arrange_b", [transposed, spread, lambda b: b[..., ::-1]])
    def test_operands_may_have_any_strides(self, dtype, left, right, arrange_a, arrange_b):
        a, b = arrange_a(sample(dtype, left)), arrange_b(sample(dtype, right, 1))
        check(matmul(a, b), product(a, b))

    @pytest.mark.parametrize(("left", "right"), [((3, 4), (4, 5)), ((300, 200), (200, 250)), ((2, 3, 4), (2, 4, 5))])
    def test_the_output_may_be_transposed(self, left, right):
        a, b = sample(np.float32, left), sample(np.float32, right, 1)
        out = transposed(np.empty(product(a, b).shape, np.float32))
        got = matmul(a, b, out=out)
        assert got.strides == out.strides
        check(got, product(a, b))

    def test_a_broadcast_row_is_read_in_place(self):
        a = np.broadcast_to(sample(np.float32, (1, 64)), (40, 64))
        b = sample(np.float32, (64, 50), 1)
        check(matmul(a, b), product(a, b))

    @pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
    def test_halves_sum_in_float32(self, dtype):
        ones = np.full((1, 5000), 1, dtype)
        assert float(matmul(ones, ones.T)[0, 0]) == 5000 if dtype == np.float16 else 4992
        out = np.empty((1, 1), np.float32)
        assert run_native("matmul", [ones, ones.T], [out])[0][0, 0] == 5000

    def test_small_integers_may_sum_in_int32(self):
        a = np.full((2, 300), 100, np.int8)
        (got,) = run_native("matmul", [a, a.T], [np.empty((2, 2), np.int32)])
        np.testing.assert_array_equal(got, 3_000_000)

    def test_infinity_times_padding_is_not_nan(self):
        a = np.array([[1.0, 2.0, np.inf]], np.float32)
        b = np.ones((3, 70), np.float32)
        assert np.isposinf(matmul(a, b, out=np.empty((1, 70), np.float32))).all()


class TestBiasAndEpilogue:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.complex64])
    @pytest.mark.parametrize(("left", "right"), [((3, 4), (4, 5)), ((300, 200), (200, 250)), ((2, 3, 4), (2, 4, 5))])
    @pytest.mark.parametrize("bias_shape", ["columns", "rows", "full", "one"])
    def test_bias_broadcasts(self, dtype, left, right, bias_shape):
        a, b = sample(dtype, left), sample(dtype, right, 1)
        expected = product(a, b)
        m, n = expected.shape[-2:]
        shape = {"columns": (n,), "rows": (m, 1), "full": expected.shape, "one": (1,)}[bias_shape]
        bias = sample(dtype, shape, 2)
        check(matmul(a, b, bias, has_bias=1), expected + wide(bias))

    @pytest.mark.parametrize(("left", "right"), [((4, 6), (6, 8)), ((200, 220), (220, 240))])
    @pytest.mark.parametrize(
        ("step", "function"),
        [
            ("relu", lambda x: np.maximum(x, 0)),
            ("square", np.square),
            ("square;sqrt", np.abs),
            ("abs", np.abs),
            ("linear:2:1", lambda x: 2 * x + 1),
            ("relu;linear:0.5:0.1;square", lambda x: np.square(0.5 * np.maximum(x, 0) + 0.1)),
        ],
    )
    def test_steps(self, left, right, step, function):
        a, b = sample(np.float32, left) / 4, sample(np.float32, right, 1) / 8
        got = matmul(a, b, epilogue=step)
        np.testing.assert_allclose(got, function(product(a, b).astype(np.float64)), rtol=2e-5, atol=2e-5)

    @pytest.mark.parametrize(("left", "right"), [((3, 4), (4, 5)), ((300, 200), (200, 250)), ((7, 3, 4), (7, 4, 5))])
    def test_steps_with_operands_in_order(self, left, right):
        a, b = sample(np.float32, left), sample(np.float32, right, 1)
        expected = product(a, b)
        bias, added, factor = (
            sample(np.float32, right[-1:], 2),
            sample(np.float32, expected.shape, 3),
            sample(np.float32, (left[-2], 1), 4),
        )
        got = matmul(a, b, bias, added, factor, has_bias=1, epilogue="add;relu;mul")
        check(got, np.maximum(expected + bias + added, 0) * factor)

    @pytest.mark.parametrize("arrange", [np.ascontiguousarray, np.asfortranarray])
    @pytest.mark.parametrize("has_bias", [0, 1])
    @pytest.mark.parametrize("epilogue", ["", "relu", "add", "add;relu"])
    @pytest.mark.parametrize(
        "case", [(1, 9, 8), (1, 300, 100), (5, 40, 7), (13, 300, 33), (40, 0, 20), (100, 520, 48), (30, 16, 1)], ids=str
    )
    def test_bias_addition_and_relu_on_the_way(self, case, epilogue, has_bias, arrange):
        (m, k, n), rng = case, np.random.default_rng(3)
        a, b, bias = (rng.standard_normal(shape).astype("float32") for shape in ((m, k), (k, n), (n,)))
        b, added = arrange(b), rng.standard_normal((m, n)).astype("float32")
        if k:
            a[m // 2, k // 2], a[0, 0] = np.nan, -np.inf
        operands = [bias] * has_bias + [added] * ("add" in epilogue)
        out = np.empty((m, n), np.float32)
        expected = matmul(a, b, out=out, epilogue="linear:1:0")  # loops over the finished product
        expected = expected + bias if has_bias else expected
        expected = expected + added if "add" in epilogue else expected
        expected = np.maximum(expected, 0) if "relu" in epilogue else expected
        got = matmul(a, b, *operands, out=out, has_bias=has_bias, epilogue=epilogue)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex128, np.float16])
    @pytest.mark.parametrize(("left", "right"), [((3, 4), (4, 5)), ((5, 0), (0, 3)), ((300, 200), (200, 250))])
    def test_accumulation_adds_to_what_is_there(self, dtype, left, right):
        a, b = sample(dtype, left), sample(dtype, right, 1)
        out = sample(dtype, (left[0], right[1]), 2)
        check(accumulate_native("matmul", [a, b], out, accumulate=1), wide(out) + product(a, b))


class TestPacking:
    def test_packed_weights_give_the_same_product_or_packing_is_refused(self):
        a, b = sample(np.float32, (256, 320)), sample(np.float32, (320, 384), 1)
        attributes = {"a_shape": list(a.shape)}
        (size,) = run_native("matmul_packed_size", [b], [np.empty(1, np.int64)], **attributes)[0]
        if size == 0:
            with pytest.raises(ValueError, match="packing does not pay"):
                plan_of("matmul_pack_weights", [b], [np.empty(1, np.uint8)], **attributes)
            return
        (packed,) = run_native("matmul_pack_weights", [b], [np.empty(size, np.uint8)], **attributes)
        got = run_native("matmul", [a, packed], [np.empty((256, 384), np.float32)], packed=1, b_shape=[320, 384])[0]
        check(got, product(a, b))

    @pytest.mark.parametrize(
        "case",
        [
            (8, 300, 17),
            (2, 9, 8),
            (100, 520, 40),
            (7, 64, 512),
            (6, 520, 40),
            (12, 300, 23),
            (1, 784, 512),
            (1, 301, 77),
            (1, 9, 8),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("epilogue", ["relu;add", "add;relu"])
    @pytest.mark.parametrize("arrange", [np.ascontiguousarray, np.asfortranarray])
    def test_packed_weights_give_the_same_bits_as_plain_ones(self, case, arrange, epilogue):
        m, k, n = case
        rng = np.random.default_rng(1)
        a, b, bias = (rng.standard_normal(shape).astype("float32") for shape in ((m, k), (k, n), (n,)))
        added, out = rng.standard_normal((m, n)).astype("float32"), np.empty((m, n), np.float32)
        own = {"has_bias": 1, "epilogue": epilogue}
        attributes = {"a_shape": [m, k], **own}
        owned = arrange(b)
        (size,) = run_native("matmul_packed_size", [owned], [np.empty(1, np.int64)], **attributes)[0]
        if not size:
            pytest.skip("whether packing pays depends on the processor")
        (packed,) = run_native("matmul_pack_weights", [owned], [np.empty(size, np.uint8)], **attributes)
        (got,) = run_native("matmul", [a, packed, bias, added], [out], packed=1, b_shape=[k, n], **own)
        (plain,) = run_native("matmul", [a, b, bias, added], [out], **own)
        np.testing.assert_array_equal(got, plain)

    def test_packed_weights_of_another_size_are_refused(self):
        a, packed = np.empty((8, 64), np.float32), np.empty(100, np.uint8)
        with pytest.raises(ValueError, match="do not belong"):
            run_native("matmul", [a, packed], [np.empty((8, 64), np.float32)], packed=1, b_shape=[64, 64])


class TestErrors:
    def test_inner_sizes(self):
        with pytest.raises(ValueError, match=r"last axis of a \(3\) must equal the second-last of b \(4\)"):
            matmul(np.ones((2, 3), np.float32), np.ones((4, 5), np.float32), out=np.empty((2, 5), np.float32))

    @pytest.mark.parametrize(
        ("attributes", "match"),
        [
            ({"colour": 1}, "unknown attribute colour"),
            ({"epilogue": "rleu"}, "'rleu' is unknown"),
            ({"epilogue": "linear:1"}, "needs 2 numbers"),
        ],
    )
    def test_attributes(self, attributes, match):
        with pytest.raises(ValueError, match=match):
            matmul(np.ones((2, 3), np.float32), np.ones((3, 5), np.float32), **attributes)

    def test_bool(self):
        with pytest.raises(TypeError, match="bool"):
            matmul(np.ones((2, 3), bool), np.ones((3, 5), bool), out=np.empty((2, 5), bool))


class TestThreads:
    def test_results_do_not_depend_on_their_number(self):
        count = _rt.num_threads()
        cases = [
            (sample(dtype, shape), sample(dtype, (shape[1], 130), 1))
            for dtype in (np.float32, np.float64)
            for shape in ((150, 170), (1, 9000))
        ]
        try:
            results = []
            for n in (1, 2, 3):
                _rt.set_num_threads(n)
                results.append([matmul(a * 0.3, b * 0.7).tobytes() for a, b in cases])
        finally:
            _rt.set_num_threads(count)
        assert results[0] == results[1] == results[2]

    @pytest.mark.parametrize("shape", [(16, 16), (250, 250)])
    def test_one_plan_runs_in_several_threads_at_once(self, shape):
        inputs = [[sample(np.float32, shape, 2 * k), sample(np.float32, shape, 2 * k + 1)] for k in range(4)]
        plan = plan_of("matmul", inputs[0], [np.empty(shape, np.float32)], epilogue="relu")
        wrong = []

        def work(a, b):
            expected = np.maximum(a @ b, 0)
            for _ in range(20):
                got = plan.run([_rt.from_numpy(a), _rt.from_numpy(b)])[0].numpy_view()
                if not np.allclose(got, expected, rtol=1e-4, atol=1e-4):
                    wrong.append(np.abs(got - expected).max())

        threads = [threading.Thread(target=work, args=pair) for pair in inputs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong

    def test_a_plan_runs_with_another_number_of_threads_than_it_was_made_for(self):
        count = _rt.num_threads()
        a, b = sample(np.float32, (250, 260)), sample(np.float32, (260, 270), 1)
        plan = plan_of("matmul", [a, b], [np.empty((250, 270), np.float32)])
        try:
            for n in (1, 4, 2):
                _rt.set_num_threads(n)
                check(plan.run([_rt.from_numpy(a), _rt.from_numpy(b)])[0].numpy_view(), product(a, b))
        finally:
            _rt.set_num_threads(count)
