"""Convolutions of one channel and one filter a group, channels-last: vectors of channels straight from the image."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.native_call import channels_last, run_native, sample
from runtime.test_native_conv import Reference, check, like
from runtime.test_native_winograd import packed

from sampan import _rt

# spatial sizes, batch, channels, kernel, stride, padding low and high, dilation
SHAPES = [
    ((9, 11), 2, 16, 3, 1, 1, 1, 1),
    ((9, 10), 2, 24, 3, 2, 1, 1, 1),
    ((7, 7), 1, 11, 3, 1, 1, 1, 1),  # the last vector overlaps
    ((8, 9), 1, 8, 5, 1, 2, 2, 1),
    ((12, 13), 2, 19, 3, 1, 2, 2, 2),
    ((6, 5), 2, 40, 4, 3, 3, 2, 1),
    ((3, 2), 1, 9, 5, 1, 4, 4, 1),  # windows that reach beyond both sides
    ((5, 6), 3, 32, 1, 2, 0, 0, 1),
    ((4, 4), 1, 16, 3, 1, 3, 3, 1),  # windows that lie outside
    ((9, 16), 1, 520, 3, 1, 1, 1, 1),  # many channels
    ((31, 8), 1, 33, 3, 1, 2, 0, 1),  # two pieces of rows
    ((10, 17), 1, 17, 5, 2, 2, 2, 1),
]
CASES = [(sizes, n, c, c, c, *rest) for sizes, n, c, *rest in SHAPES]


@pytest.mark.parametrize("case", CASES, ids=str)
class TestDirections:
    @pytest.mark.parametrize("epilogue", ["", "relu", "relu;add", "add;relu"])
    def test_forward(self, case, epilogue):
        r = Reference(case)
        added = sample(np.float32, r.grad.shape, 9)
        operands = [channels_last(r.x.astype("float32")), r.w.astype("float32"), r.bias.astype("float32")]
        more = [channels_last(added)] if "add" in epilogue else []
        out = like(channels_last, r.grad, np.float32)
        (got,) = run_native("conv_forward", operands + more, [out], has_bias=1, epilogue=epilogue, **r.attributes)
        expected = r.forward() + r.per_channel(r.bias)
        for step in filter(None, epilogue.split(";")):
            expected = expected + added if step == "add" else np.maximum(expected, 0)
        check(got, expected)

    def test_forward_without_bias_and_with_weights_of_other_strides(self, case):
        r = Reference(case)
        operands = [channels_last(r.x.astype("float32")), r.w.astype("float32").T.copy().T]
        (got,) = run_native("conv_forward", operands, [like(channels_last, r.grad, np.float32)], **r.attributes)
        check(got, r.forward())

    def test_gradients(self, case):
        r = Reference(case)
        grad, w, x = channels_last(r.grad.astype("float32")), r.w.astype("float32"), channels_last(r.x.astype("float32"))
        (to_data,) = run_native("conv_backward_data", [grad, w], [like(channels_last, r.x, np.float32)], **r.attributes)
        check(to_data, r.backward_data())
        (to_weights,) = run_native("conv_backward_weights", [x, grad], [np.empty(w.shape, np.float32)], **r.attributes)
        check(to_weights, r.backward_weights())

    @pytest.mark.parametrize("direction", ["forward", "backward_data"])
    def test_packed_weights_give_the_same_bits(self, case, direction):
        r = Reference(case)
        source, result = (r.x, r.grad) if direction == "forward" else (r.grad, r.x)
        x, w = channels_last(source.astype("float32")), r.w.astype("float32")
        bias = sample(np.float32, (result.shape[1],), 5)
        out, attributes = like(channels_last, result, np.float32), {"has_bias": 1, "epilogue": "relu"}
        owned = packed(r, x, out, w, direction, **attributes)
        if owned is None:
            pytest.skip("whether packing pays depends on the processor and the shape")
        more = attributes | r.attributes
        (plain,) = run_native(f"conv_{direction}", [x, w, bias], [out], **more)
        (got,) = run_native(f"conv_{direction}", [x, owned, bias], [out], packed=1, weight_shape=list(w.shape), **more)
        np.testing.assert_array_equal(got, plain)


def test_a_nan_reaches_its_channel_and_the_windows_that_hold_it():
    r = Reference(((9, 11), 2, 24, 24, 24, 3, 1, 1, 1, 1))
    x = r.x.astype("float32")
    x[1, 5, 4, 6] = np.nan
    operands = [channels_last(x), r.w.astype("float32")]
    (got,) = run_native("conv_forward", operands, [like(channels_last, r.grad, np.float32)], epilogue="relu", **r.attributes)
    holds = np.zeros(got.shape, bool)
    holds[1, 5, 3:6, 5:8] = True
    np.testing.assert_array_equal(np.isnan(got), holds)


def test_the_number_of_threads_does_not_matter():
    r = Reference(((40, 33), 2, 40, 40, 40, 3, 1, 1, 1, 1))
    operands = [channels_last(r.x.astype("float32")), r.w.astype("float32")]
    threads, results = _rt.num_threads(), []
    try:
        for count in (1, 2, 3):
            _rt.set_num_threads(count)
            results += run_native("conv_forward", operands, [like(channels_last, r.grad, np.float32)], **r.attributes)
    finally:
        _rt.set_num_threads(threads)
    check(results[0], r.forward())
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
