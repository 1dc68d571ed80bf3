"""Gradients to the weights as one product over all pixels: every geometry, cut and layout of the result."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.native_call import channels_last, run_native
from runtime.test_native_conv import ARRANGEMENTS, Reference, like

from sampan import _rt

# spatial sizes, batch, in, out, groups, kernel, stride, padding low and high, dilation
CASES = [
    ((17, 19), 2, 16, 32, 1, 3, 2, 1, 1, 1),
    ((9, 11), 3, 64, 40, 1, 3, 2, 1, 0, 1),
    ((15, 14), 1, 3, 48, 1, 7, 2, 3, 3, 1),
    ((13, 16), 2, 12, 33, 1, 3, 1, 2, 2, 2),
    ((11, 12), 2, 100, 34, 1, 2, 3, 0, 1, 2),
    ((8, 9), 1, 32, 205, 1, 1, 1, 0, 0, 1),
    ((4, 3), 1, 80, 400, 1, 1, 2, 0, 0, 1),
    ((200,), 3, 24, 32, 1, 5, 3, 2, 4, 1),
    ((5, 6, 7), 2, 16, 32, 1, 3, 2, 1, 1, 1),
    ((6, 5, 8), 1, 5, 37, 1, 3, 1, 2, 2, 2),
    ((3, 3), 1, 64, 32, 1, 3, 1, 5, 5, 1),
]


def check(got, expected):
    """Sums of small multiples of a quarter are exact as long as they stay below 2^20."""
    np.testing.assert_array_equal(got, expected.astype(np.float32))


@pytest.mark.parametrize("weight", ARRANGEMENTS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_gradient_is_exact(case, weight):
    r = Reference(case)
    operands = [channels_last(r.x.astype("float32")), channels_last(r.grad.astype("float32"))]
    outputs = [like(ARRANGEMENTS[weight][1], r.w, np.float32), np.empty(r.o, np.float32)]
    got, bias = run_native("conv_backward_weights", operands, outputs, has_bias=1, **r.attributes)
    check(got, r.backward_weights())
    check(bias, r.grad.sum(axis=(0, *range(2, r.grad.ndim))))
    (alone,) = run_native("conv_backward_weights", operands, outputs[:1], **r.attributes)
    check(alone, r.backward_weights())


@pytest.mark.parametrize(
    "case",
    [
        ((56, 56), 4, 32, 64, 1, 3, 2, 1, 1, 1),  # parts of the pixels
        ((14, 14), 2, 256, 384, 1, 1, 1, 0, 0, 1),  # blocks of filters
        ((8, 8), 2, 512, 64, 1, 3, 2, 1, 1, 1),  # blocks of columns
        ((64, 64), 2, 3, 32, 1, 7, 2, 3, 3, 1),  # windows that are gathered whole
    ],
    ids=str,
)
def test_the_number_of_threads_does_not_matter(case):
    r, rng = Reference(case), np.random.default_rng(0)
    x, grad = (channels_last(rng.standard_normal(a.shape).astype("float32")) for a in (r.x, r.grad))
    outputs = [np.empty(r.w.shape, np.float32), np.empty(r.o, np.float32)]
    threads, results = _rt.num_threads(), []
    try:
        for count in (1, 2, 5):
            _rt.set_num_threads(count)
            results.append(run_native("conv_backward_weights", [x, grad], outputs, has_bias=1, **r.attributes))
    finally:
        _rt.set_num_threads(threads)
    r.x, r.grad = x.astype(np.float64), grad.astype(np.float64)
    expected = r.backward_weights()
    np.testing.assert_allclose(results[0][0], expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    for other in results[1:]:
        np.testing.assert_array_equal(other[0], results[0][0])
        np.testing.assert_array_equal(other[1], results[0][1])
