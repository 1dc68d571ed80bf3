"""Convolutions of few channels straight from the image: the same numbers as the plain ones."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.native_call import channels_last, run_native, sample
from runtime.test_native_conv import Reference, check, like
from runtime.test_native_winograd import packed

from sampan import _rt

# spatial sizes, batch, in, out, groups, kernel, stride, padding low and high, dilation
CASES = [
    ((28, 28), 3, 1, 6, 1, 3, 1, 1, 1, 1),
    ((14, 14), 9, 6, 16, 1, 5, 1, 0, 0, 1),
    ((9, 11), 1, 3, 7, 1, 3, 2, 1, 0, 1),
    ((13, 10), 2, 5, 22, 1, 4, 1, 3, 2, 1),
    ((12, 17), 2, 4, 12, 1, 3, 3, 2, 2, 1),
    ((7, 5), 2, 2, 31, 1, 1, 1, 0, 0, 1),
    ((30, 6), 1, 16, 6, 1, 5, 1, 4, 4, 1),
    ((14, 14), 5, 6, 16, 1, 5, 1, 0, 0, 1),
    ((16, 11), 4, 3, 7, 1, 3, 2, 1, 0, 1),
    ((13, 10), 6, 5, 22, 1, 4, 3, 3, 2, 1),
]


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
            expected = np.maximum(expected, 0) if step == "relu" else expected + added
        check(got, expected)

    def test_forward_without_bias(self, case):
        r = Reference(case)
        operands = [channels_last(r.x.astype("float32")), channels_last(r.w.astype("float32"))]
        (got,) = run_native("conv_forward", operands, [like(channels_last, r.grad, np.float32)], **r.attributes)
        check(got, r.forward())

    def test_backward_data(self, case):
        r = Reference(case)
        operands = [channels_last(r.grad.astype("float32")), r.w.astype("float32")]
        (got,) = run_native("conv_backward_data", operands, [like(channels_last, r.x, np.float32)], **r.attributes)
        check(got, r.backward_data())

    @pytest.mark.parametrize("direction", ["forward", "backward_data"])
    @pytest.mark.parametrize("attributes", [{}, {"has_bias": 1}, {"has_bias": 1, "epilogue": "relu"}], ids=str)
    def test_packed_weights_give_the_same_bits(self, case, direction, attributes):
        r, rng = Reference(case), np.random.default_rng(1)
        source, result = (r.x, r.grad) if direction == "forward" else (r.grad, r.x)
        x, w = (
            channels_last(rng.standard_normal(source.shape).astype("float32")),
            rng.standard_normal(r.w.shape).astype("float32"),
        )
        bias = [rng.standard_normal(result.shape[1]).astype("float32")] if attributes else []
        out, more = like(channels_last, result, np.float32), attributes | r.attributes
        owned = packed(r, x, out, w, direction, **attributes)
        if owned is None:
            pytest.skip("whether packing pays depends on the processor and the shape")
        (plain,) = run_native(f"conv_{direction}", [x, w, *bias], [out], **more)
        (got,) = run_native(f"conv_{direction}", [x, owned, *bias], [out], packed=1, weight_shape=list(w.shape), **more)
        np.testing.assert_array_equal(got, plain)


class TestCorners:
    def test_a_row_dilation_is_kept(self):
        r = Reference(((12, 9), 2, 3, 5, 1, 3, 1, 1, 1, 1))
        r.attributes |= {"dilations": [2, 1], "padding_low": [2, 1], "padding_high": [2, 1]}
        (got,) = run_native(
            "conv_forward",
            [channels_last(r.x.astype("float32")), r.w.astype("float32")],
            [like(channels_last, r.grad, np.float32)],
            **r.attributes,
        )
        x = np.pad(r.x, [(0, 0), (0, 0), (2, 2), (1, 1)])
        expected = sum(
            np.einsum("nchw,fc->nfhw", x[:, :, 2 * i : 2 * i + 12, j : j + 9], r.w[:, :, i, j])
            for i in range(3)
            for j in range(3)
        )
        check(got, expected)

    def test_nothing_is_written_beside_the_result(self):
        """Vectors of channels run over the end of a pixel, never over the end of the result."""
        r = Reference(CASES[0])
        x, w = channels_last(r.x.astype("float32")), r.w.astype("float32")
        (alone,) = run_native("conv_forward", [x[:1], w], [like(channels_last, r.grad[:1], np.float32)], **r.attributes)
        (all_three,) = run_native("conv_forward", [x, w], [like(channels_last, r.grad, np.float32)], **r.attributes)
        np.testing.assert_array_equal(all_three[:1], alone)

    def test_an_infinite_gradient_reaches_its_window_only(self):
        """Runs of a window are added in whole vectors, and what lies beyond a run belongs to other pixels."""
        r = Reference(((14, 14), 5, 6, 16, 1, 5, 1, 0, 0, 1))
        grad = r.grad.astype("float32")
        grad[2, :, 3, 4] = np.inf
        operands = [channels_last(grad), r.w.astype("float32")]
        (got,) = run_native("conv_backward_data", operands, [like(channels_last, r.x, np.float32)], **r.attributes)
        window = np.zeros(got.shape, bool)
        window[2, :, 3:8, 4:9] = True
        assert not np.isfinite(got[window]).any()
        assert np.isfinite(got[~window]).all()

    def test_threads_do_not_change_the_gradient_to_an_image_of_few_channels(self):
        case = ((29, 23), 8, 3, 24, 1, 5, 2, 2, 2, 1)
        r = Reference(case)
        operands = [channels_last(r.grad.astype("float32")), r.w.astype("float32")]
        threads, results = _rt.num_threads(), []
        try:
            for count in (1, 2):
                _rt.set_num_threads(count)
                results += run_native("conv_backward_data", operands, [like(channels_last, r.x, np.float32)], **r.attributes)
        finally:
            _rt.set_num_threads(threads)
        np.testing.assert_array_equal(*results)
        check(results[0], r.backward_data())
