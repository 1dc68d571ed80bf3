"""Convolutions in three directions against a plain NumPy one in float64."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from runtime.native_call import channels_last, plan_of, run_native, sample

# spatial sizes, batch, in, out, groups, kernel, stride, padding low and high, dilation
CASES = [
    ((9,), 2, 3, 8, 1, 3, 1, 1, 1, 1),
    ((9,), 2, 12, 6, 3, 2, 3, 2, 0, 2),
    ((9, 11), 2, 3, 8, 1, 3, 2, 0, 1, 1),
    ((9, 11), 2, 8, 16, 1, 1, 1, 0, 0, 1),
    ((9, 11), 1, 8, 8, 8, 3, 1, 1, 1, 1),
    ((9, 11), 2, 8, 16, 8, 5, 1, 2, 2, 1),
    ((9, 11), 2, 12, 6, 3, 3, 2, 1, 1, 1),
    ((9, 11), 2, 32, 32, 1, 3, 1, 1, 1, 2),
    ((5, 6, 7), 2, 4, 8, 1, 3, 2, 1, 1, 1),
    ((5, 6, 7), 2, 12, 6, 3, 2, 1, 0, 1, 2),
    ((9, 11), 2, 128, 144, 1, 1, 2, 0, 0, 1),
    ((14,), 3, 130, 128, 1, 1, 3, 0, 0, 1),
    ((5, 6, 7), 1, 128, 132, 1, 1, 2, 0, 0, 1),
]


def reversed_axes(array):
    """The same values with the axes' order in memory turned round."""
    return np.ascontiguousarray(array.T).T


ARRANGEMENTS = {
    "row-major": (np.ascontiguousarray,) * 3,
    "channels-last": (channels_last,) * 3,
    "mixed": (channels_last, reversed_axes, np.ascontiguousarray),
    "reversed": (reversed_axes,) * 3,
}


class Reference:
    """One convolution by loops over the kernel's positions, and its gradients."""

    def __init__(self, case, seed=0, dtype=np.float64):
        self.sizes, self.n, self.i, self.o, self.g, k, s, low, high, d = case
        rank = len(self.sizes)
        self.kernel, self.stride, self.dilation = (k,) * rank, s, d
        self.low, self.high = low, high
        self.out = tuple((n + low + high - d * (k - 1) - 1) // s + 1 for n in self.sizes)
        self.x = sample(dtype, (self.n, self.i, *self.sizes), seed).astype(np.float64)
        self.w = sample(dtype, (self.o, self.i // self.g, *self.kernel), seed + 1).astype(np.float64)
        self.bias = sample(dtype, (self.o,), seed + 2).astype(np.float64)
        self.grad = sample(dtype, (self.n, self.o, *self.out), seed + 3).astype(np.float64)
        self.attributes = {
            "strides": [s] * rank,
            "padding_low": [low] * rank,
            "padding_high": [high] * rank,
            "dilations": [d] * rank,
            "groups": self.g,
        }

    def _taps(self):
        """(kernel position, the window positions' index into the padded image, input and output channels of a group)."""
        c, f = self.i // self.g, self.o // self.g
        for position in itertools.product(*map(range, self.kernel)):
            where = tuple(
                slice(p * self.dilation, p * self.dilation + (n - 1) * self.stride + 1, self.stride)
                for p, n in zip(position, self.out, strict=True)
            )
            for q in range(self.g):
                yield position, where, slice(q * c, (q + 1) * c), slice(q * f, (q + 1) * f)

    def _padded(self, x):
        return np.pad(x, [(0, 0), (0, 0)] + [(self.low, self.high)] * len(self.sizes))

    def forward(self):
        x, result = self._padded(self.x), np.zeros_like(self.grad)
        for position, where, c, f in self._taps():
            tap = self.w[(f, slice(None), *position)]
            result[:, f] += np.einsum("nc...,fc->nf...", x[(slice(None), c, *where)], tap)
        return result

    def backward_data(self):
        padded = np.zeros_like(self._padded(self.x))
        for position, where, c, f in self._taps():
            tap = self.w[(f, slice(None), *position)]
            padded[(slice(None), c, *where)] += np.einsum("nf...,fc->nc...", self.grad[:, f], tap)
        return padded[(slice(None), slice(None), *(slice(self.low, self.low + n) for n in self.sizes))]

    def backward_weights(self):
        x, result = self._padded(self.x), np.zeros_like(self.w)
        for position, where, c, f in self._taps():
            window, grad = x[(slice(None), c, *where)], self.grad[:, f]
            window, grad = (a.reshape(*a.shape[:2], -1) for a in (window, grad))
            result[(f, slice(None), *position)] += np.einsum("ncp,nfp->fc", window, grad)
        return result

    def per_channel(self, bias):
        return bias.reshape(-1, *[1] * len(self.sizes))


def like(arrange, array, dtype):
    return arrange(np.empty(array.shape, dtype))


def check(got, expected):
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    tolerance = {2: 1e-2, 4: 1e-5, 8: 1e-12}[got.dtype.itemsize]
    np.testing.assert_allclose(got.astype(np.float64) / scale, expected / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("arrangement", "dtype"),
    [
        *((name, np.float32) for name in ARRANGEMENTS),
        ("mixed", np.float64),
        ("channels-last", np.float16),
        ("row-major", ml_dtypes.bfloat16),
    ],
)
@pytest.mark.parametrize("case", CASES, ids=str)
class TestDirections:
    def test_forward(self, case, arrangement, dtype):
        image, weight, result = ARRANGEMENTS[arrangement]
        r = Reference(case)
        x, w = image(r.x.astype(dtype)), weight(r.w.astype(dtype))
        (got,) = run_native(
            "conv_forward", [x, w, r.bias.astype(dtype)], [like(result, r.grad, dtype)], has_bias=1, **r.attributes
        )
        check(got, r.forward() + r.per_channel(r.bias))

    def test_backward_data(self, case, arrangement, dtype):
        image, weight, result = ARRANGEMENTS[arrangement]
        r = Reference(case)
        operands = [image(r.grad.astype(dtype)), weight(r.w.astype(dtype))]
        (got,) = run_native("conv_backward_data", operands, [like(result, r.x, dtype)], **r.attributes)
        check(got, r.backward_data())

    def test_backward_weights(self, case, arrangement, dtype):
        image, weight, result = ARRANGEMENTS[arrangement]
        r = Reference(case)
        operands = [image(r.x.astype(dtype)), result(r.grad.astype(dtype))]
        outputs = [like(weight, r.w, dtype), np.empty(r.o, dtype)]
        got, got_bias = run_native("conv_backward_weights", operands, outputs, has_bias=1, **r.attributes)
        check(got, r.backward_weights())
        check(got_bias, r.grad.sum(axis=(0, *range(2, r.grad.ndim))))


@pytest.mark.parametrize("arrangement", ["row-major", "channels-last"])
@pytest.mark.parametrize("case", CASES[::3], ids=str)
class TestEpilogues:
    def test_residual_and_relu(self, case, arrangement):
        image, weight, _ = ARRANGEMENTS[arrangement]
        r = Reference(case)
        added = sample(np.float32, r.grad.shape, 9)
        operands = [image(r.x.astype(np.float32)), weight(r.w.astype(np.float32)), r.bias.astype(np.float32), image(added)]
        outputs = [like(image, r.grad, np.float32)]
        (got,) = run_native("conv_forward", operands, outputs, has_bias=1, epilogue="add;relu", **r.attributes)
        check(got, np.maximum(r.forward() + r.per_channel(r.bias) + added, 0))

    def test_transposed_convolution_with_bias(self, case, arrangement):
        image, weight, _ = ARRANGEMENTS[arrangement]
        r = Reference(case)
        bias = sample(np.float32, (r.i,), 9)
        operands = [image(r.grad.astype(np.float32)), weight(r.w.astype(np.float32)), bias]
        outputs = [like(image, r.x, np.float32)]
        (got,) = run_native("conv_backward_data", operands, outputs, has_bias=1, epilogue="relu", **r.attributes)
        check(got, np.maximum(r.backward_data() + r.per_channel(bias), 0))


class TestCorners:
    @pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
    def test_gradients_of_16_bits_are_added_up_over_parts_of_the_batch(self, dtype):
        r = Reference(((24, 24), 8, 16, 32, 1, 3, 1, 1, 1, 1))
        operands = [channels_last(a.astype(dtype)) for a in (r.x, r.grad)]
        outputs = [like(np.ascontiguousarray, r.w, dtype), np.empty(r.o, dtype)]
        got, got_bias = run_native("conv_backward_weights", operands, outputs, has_bias=1, **r.attributes)
        check(got, r.backward_weights())
        check(got_bias, r.grad.sum(axis=(0, 2, 3)))

    @pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
    @pytest.mark.parametrize(
        "case",
        [
            ((9, 11), 2, 16, 32, 1, 1, 1, 0, 0, 1),
            ((9, 11), 2, 16, 32, 1, 1, 2, 0, 0, 1),
            ((9, 11), 2, 64, 64, 1, 3, 1, 1, 1, 1),
            ((9, 11), 2, 64, 64, 1, 3, 2, 1, 1, 1),
            ((9, 11), 2, 24, 24, 24, 3, 1, 1, 1, 1),
            ((9, 11), 2, 3, 16, 1, 3, 1, 1, 1, 1),
            ((9, 11), 2, 32, 48, 4, 3, 1, 1, 1, 1),
        ],
        ids=str,
    )
    def test_relu_keeps_a_nan_and_ends_at_zero(self, case, dtype):
        r = Reference(case)
        x = r.x.astype(dtype)
        x[0, 0, 4, 6], x[1, :, 4, 6] = np.nan, -np.inf
        operands = [channels_last(x), np.abs(r.w).astype(dtype)]
        out = like(channels_last, r.grad, dtype)
        (plain,) = run_native("conv_forward", operands, [out], **r.attributes)
        (got,) = run_native("conv_forward", operands, [out], epilogue="relu", **r.attributes)
        plain, got = plain.astype(np.float32), got.astype(np.float32)
        assert np.isnan(plain).any()
        np.testing.assert_array_equal(np.isnan(got), np.isnan(plain))
        np.testing.assert_array_equal(got, np.maximum(plain, 0))
        assert not np.signbit(got[got == 0]).any()

    def test_float64_has_plain_epilogues(self):
        r = Reference(CASES[2])
        added = sample(np.float64, r.grad.shape, 9)
        (got,) = run_native(
            "conv_forward", [r.x, r.w, r.bias, added], [np.empty_like(r.grad)], has_bias=1, epilogue="add;relu", **r.attributes
        )
        check(got, np.maximum(r.forward() + r.per_channel(r.bias) + added, 0))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
    def test_an_empty_batch(self, dtype):
        x, w, grad = np.empty((0, 3, 8, 8), dtype), np.ones((4, 3, 3, 3), dtype), np.empty((0, 4, 6, 6), dtype)
        assert run_native("conv_forward", [x, w], [grad])[0].shape == (0, 4, 6, 6)
        assert run_native("conv_backward_data", [grad, w], [x])[0].shape == (0, 3, 8, 8)
        got, bias = run_native("conv_backward_weights", [x, grad], [w, np.empty(4, dtype)], has_bias=1)
        assert not got.any()
        assert not bias.any()

    def test_no_input_channels_leave_the_bias(self):
        x, w, bias = np.empty((1, 0, 4, 4), np.float32), np.empty((2, 0, 3, 3), np.float32), np.array([1.5, -2], np.float32)
        (got,) = run_native("conv_forward", [x, w, bias], [np.empty((1, 2, 2, 2), np.float32)], has_bias=1)
        np.testing.assert_array_equal(got, np.broadcast_to(bias.reshape(2, 1, 1), (1, 2, 2, 2)))


class TestErrors:
    x, w, out = np.ones((1, 4, 8, 8), np.float32), np.ones((6, 4, 3, 3), np.float32), np.zeros((1, 6, 6, 6), np.float32)

    @pytest.mark.parametrize(
        ("attributes", "match"),
        [
            ({"strides": [2, 2]}, "do not fit together"),
            ({"groups": 3}, "with groups = 3"),
            ({"strides": [0, 1]}, "strides is .*between 1"),
            ({"padding_low": [-1, 0]}, "padding_low is .*between 0"),
            ({"padding_low": [1]}, "needs 2 entries"),
            ({"stride": [1, 1]}, "unknown attribute stride"),
        ],
    )
    def test_attributes(self, attributes, match):
        with pytest.raises(ValueError, match=match):
            plan_of("conv_forward", [self.x, self.w], [self.out], **attributes)

    def test_dtypes(self):
        with pytest.raises(TypeError, match="must have one dtype"):
            plan_of("conv_forward", [self.x, self.w.astype(np.float64)], [self.out])
        with pytest.raises(TypeError, match="floating"):
            plan_of(
                "conv_forward",
                [np.zeros_like(a, dtype=np.int32) for a in (self.x, self.w)],
                [np.zeros_like(self.out, dtype=np.int32)],
            )
