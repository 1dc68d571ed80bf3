"""Convolutions of single pixels as products, every pixel or every stride-th: packed or not, with what is added and cut off."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.native_call import channels_last, run_native
from runtime.test_native_conv import Reference, check, like
from runtime.test_native_winograd import packed

# spatial sizes, batch, in, out, groups, kernel, stride, padding low and high, dilation
CASES = [
    ((9, 11), 2, 48, 33, 1, 1, 1, 0, 0, 1),
    ((9, 11), 2, 128, 144, 1, 1, 2, 0, 0, 1),
    ((14, 13), 1, 160, 130, 1, 1, 3, 0, 0, 1),
    ((5, 6, 7), 1, 128, 132, 1, 1, 2, 0, 0, 1),
]


@pytest.mark.parametrize("case", CASES, ids=str)
class TestProduct:
    def test_forward_with_bias_and_residual_also_packed(self, case):
        r = Reference(case)
        x, w, bias = channels_last(r.x.astype("float32")), r.w.astype("float32"), r.bias.astype("float32")
        added = channels_last(np.random.default_rng(2).standard_normal(r.grad.shape).astype("float32"))
        out = like(channels_last, r.grad, np.float32)
        more = {"has_bias": 1, "epilogue": "add;relu"}
        (plain,) = run_native("conv_forward", [x, w, bias, added], [out], **more, **r.attributes)
        check(plain, np.maximum(r.forward() + r.per_channel(r.bias) + added, 0))
        owned = packed(r, x, out, w, "forward", **more)
        if owned is None:
            pytest.skip("whether packing pays depends on the processor")
        operands = [x, owned, bias, added]
        (got,) = run_native("conv_forward", operands, [out], packed=1, weight_shape=list(w.shape), **more, **r.attributes)
        np.testing.assert_array_equal(got, plain)

    def test_backward_data_also_packed(self, case):
        r = Reference(case)
        grad, w = channels_last(r.grad.astype("float32")), r.w.astype("float32")
        out = like(channels_last, r.x, np.float32)
        (plain,) = run_native("conv_backward_data", [grad, w], [out], **r.attributes)
        check(plain, r.backward_data())
        owned = packed(r, grad, out, w, "backward_data")
        if owned is None:
            pytest.skip("whether packing pays depends on the processor")
        (got,) = run_native("conv_backward_data", [grad, owned], [out], packed=1, weight_shape=list(w.shape), **r.attributes)
        np.testing.assert_array_equal(got, plain)

    def test_a_nan_stays_in_its_pixel(self, case):
        r = Reference(case)
        grad = r.grad.astype("float32")
        grad[(0, 0, *[1] * len(r.sizes))] = np.nan
        (got,) = run_native(
            "conv_backward_data",
            [channels_last(grad), r.w.astype("float32")],
            [like(channels_last, r.x, np.float32)],
            **r.attributes,
        )
        expected = np.zeros(r.x.shape, bool)
        expected[(0, slice(None), *[r.stride] * len(r.sizes))] = True
        np.testing.assert_array_equal(np.isnan(got), expected)
