"""3 x 3 convolutions by transformed tiles: the same numbers as the plain ones, in every direction and packing."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from runtime.native_call import channels_last, run_native, sample
from runtime.test_native_conv import Reference, like

# spatial sizes, batch, in, out, groups, kernel, stride, padding low and high, dilation: few tiles and many, odd edges, every padding
CASES = [
    ((9, 11), 2, 32, 48, 1, 3, 1, 1, 1, 1),
    ((6, 7), 1, 48, 32, 1, 3, 1, 0, 2, 1),
    ((8, 5), 3, 32, 32, 1, 3, 1, 2, 1, 1),
    ((40, 39), 2, 32, 64, 1, 3, 1, 1, 1, 1),
    ((10, 10), 1, 272, 32, 1, 3, 1, 1, 0, 1),
]
WEIGHTS = {"row-major": np.ascontiguousarray, "channels-last": channels_last}


def check(got, expected):
    """Sums of quarters are exact: only the transforms of weights round."""
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(got / scale, expected / scale, rtol=0, atol=2e-6)


def packed(reference, x, out, weight, direction, **attributes):
    """The weights as conv_pack_weights gives them."""
    attributes |= reference.attributes
    asked = {
        "x_shape": list(x.shape), "x_strides": [s // 4 for s in x.strides], "out_shape": list(out.shape),
        "out_strides": [s // 4 for s in out.strides], "direction": direction,
    }  # fmt: skip
    (size,) = run_native("conv_packed_size", [weight], [np.empty(1, np.int64)], **asked, **attributes)[0]
    return run_native("conv_pack_weights", [weight], [np.empty(size, np.uint8)], **asked, **attributes)[0] if size else None


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("case", CASES, ids=str)
class TestDirections:
    def test_forward_with_a_residual(self, case, weight):
        r = Reference(case)
        x, w, added = (
            channels_last(r.x.astype("float32")),
            WEIGHTS[weight](r.w.astype("float32")),
            sample(np.float32, r.grad.shape, 9),
        )
        operands = [x, w, r.bias.astype("float32"), channels_last(added)]
        out = like(channels_last, r.grad, np.float32)
        (got,) = run_native("conv_forward", operands, [out], has_bias=1, epilogue="add;relu", **r.attributes)
        check(got, np.maximum(r.forward() + r.per_channel(r.bias) + added, 0))

    def test_backward_data(self, case, weight):
        r = Reference(case)
        operands = [channels_last(r.grad.astype("float32")), WEIGHTS[weight](r.w.astype("float32"))]
        (got,) = run_native("conv_backward_data", operands, [like(channels_last, r.x, np.float32)], **r.attributes)
        check(got, r.backward_data())

    def test_transposed_with_bias(self, case, weight):
        r, bias = Reference(case), sample(np.float32, (case[2],), 9)
        operands = [channels_last(r.grad.astype("float32")), WEIGHTS[weight](r.w.astype("float32")), bias]
        outputs = [like(channels_last, r.x, np.float32)]
        (got,) = run_native("conv_backward_data", operands, outputs, has_bias=1, epilogue="relu", **r.attributes)
        check(got, np.maximum(r.backward_data() + r.per_channel(bias), 0))

    def test_backward_weights(self, case, weight):
        r = Reference(case)
        operands = [channels_last(a.astype("float32")) for a in (r.x, r.grad)]
        outputs = [like(WEIGHTS[weight], r.w, np.float32), np.empty(r.o, np.float32)]
        got, got_bias = run_native("conv_backward_weights", operands, outputs, has_bias=1, **r.attributes)
        check(got, r.backward_weights())
        check(got_bias, r.grad.sum(axis=(0, 2, 3)))

    def test_backward_weights_of_bfloat16_round_once(self, case, weight):
        r, dtype = Reference(case, dtype=ml_dtypes.bfloat16), ml_dtypes.bfloat16
        operands = [channels_last(a.astype(dtype)) for a in (r.x, r.grad)]
        outputs = [like(WEIGHTS[weight], r.w, dtype), np.empty(r.o, dtype)]
        got, got_bias = run_native("conv_backward_weights", operands, outputs, has_bias=1, **r.attributes)
        for found, expected in ((got, r.backward_weights()), (got_bias, r.grad.sum(axis=(0, 2, 3)))):
            slack = 2.0**-8 * np.abs(expected) + 2e-6 * np.abs(expected).max()
            assert (np.abs(found.astype(np.float64) - expected) <= slack).all()

    @pytest.mark.parametrize("direction", ["forward", "backward_data"])
    def test_packed_weights_give_the_same_bits(self, case, weight, direction):
        r = Reference(case)
        rng = np.random.default_rng(1)
        source, result = (r.x, r.grad) if direction == "forward" else (r.grad, r.x)
        x = channels_last(rng.standard_normal(source.shape).astype("float32"))
        w = WEIGHTS[weight](rng.standard_normal(r.w.shape).astype("float32"))
        bias = rng.standard_normal(result.shape[1]).astype("float32")
        attributes = {"has_bias": 1, "epilogue": "relu"}
        out = like(channels_last, result, np.float32)
        owned = packed(r, x, out, w, direction, **attributes)
        if owned is None:
            pytest.skip("whether packing pays depends on the processor")
        more = attributes | r.attributes
        (plain,) = run_native(f"conv_{direction}", [x, w, bias], [out], **more)
        (got,) = run_native(f"conv_{direction}", [x, owned, bias], [out], packed=1, weight_shape=list(w.shape), **more)
        np.testing.assert_array_equal(got, plain)


class TestCorners:
    def test_a_nan_reaches_only_the_windows_that_hold_it(self):
        r = Reference(CASES[0])
        x = channels_last(r.x.astype("float32"))
        x[1, 3, 4, 5] = np.nan
        (got,) = run_native("conv_forward", [x, r.w.astype("float32")], [like(channels_last, r.grad, np.float32)], **r.attributes)
        expected = np.zeros(r.grad.shape, bool)
        expected[1, :, 3:6, 4:7] = True
        np.testing.assert_array_equal(np.isnan(got), expected)

    def test_rounding_stays_near_that_of_plain_sums(self):
        r, rng = Reference(((16, 16), 2, 64, 64, 1, 3, 1, 1, 1, 1)), np.random.default_rng(2)
        r.x, r.w = (rng.standard_normal(a.shape).astype("float32").astype("float64") for a in (r.x, r.w))
        operands = [channels_last(r.x.astype("float32")), r.w.astype("float32")]
        (got,) = run_native("conv_forward", operands, [like(channels_last, r.grad, np.float32)], **r.attributes)
        expected = r.forward()
        assert np.abs(got - expected).max() < 6e-6 * expected.std()
        assert np.abs(got - expected).std() < 1e-6 * expected.std()

    def test_packed_weights_of_another_size_are_refused(self):
        r = Reference(CASES[0])
        x, out = channels_last(r.x.astype("float32")), like(channels_last, r.grad, np.float32)
        with pytest.raises(ValueError, match="do not belong"):
            run_native("conv_forward", [x, np.empty(64, np.uint8)], [out], packed=1, weight_shape=list(r.w.shape), **r.attributes)
