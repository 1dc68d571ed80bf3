"""Integers wrap around in every native that adds or multiplies them, as NumPy's do."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.native_call import plan_of, run_native

TYPES = ["uint8", "int8", "int16", "int32", "int64"]
COMBINE = {"add": np.add, "mul": np.multiply}


def extreme(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Values from the whole range, whose sums and products mostly do not fit."""
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["add", "mul"])
class TestScatters:
    def test_rows(self, dtype, mode):
        x, updates, index = extreme(dtype, (4, 3)), extreme(dtype, (9, 3), 1), np.arange(9) % 4
        want = x.copy()
        COMBINE[mode].at(want, index, updates)
        (got,) = run_native("scatter", [x, index, updates], [np.empty_like(x)], axis=0, mode=mode)
        np.testing.assert_array_equal(got, want)

    def test_points(self, dtype, mode):
        x, updates = extreme(dtype, (4, 3)), extreme(dtype, (9,), 1)
        index = np.stack([np.arange(9) % 4, np.arange(9) % 3], -1)
        want = x.copy()
        COMBINE[mode].at(want, tuple(index.T), updates)
        (got,) = run_native("scatter_nd", [x, index, updates], [np.empty_like(x)], mode=mode)
        np.testing.assert_array_equal(got, want)

    def test_elements(self, dtype, mode):
        x, updates, index = extreme(dtype, (4, 3)), extreme(dtype, (4, 3), 1), np.arange(12).reshape(4, 3) // 5
        want = x.copy()
        COMBINE[mode].at(want, (index, np.arange(3)), updates)
        (got,) = run_native("scatter_elements", [x, index, updates], [np.empty_like(x)], axis=0, mode=mode)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("kind", "accumulate"), [("sum", np.add.accumulate), ("prod", np.multiply.accumulate)])
def test_scans(dtype, kind, accumulate):
    x = extreme(dtype, (20, 7)) | 1  # an even factor would soon leave nothing but zeros
    (got,) = run_native("scan", [x], [np.empty_like(x)], axis=0, kind=kind)
    np.testing.assert_array_equal(got, accumulate(x, axis=0, dtype=dtype))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_products_with_a_bias(dtype):
    a, b, bias, factor = extreme(dtype, (5, 6)), extreme(dtype, (6, 7), 1), extreme(dtype, (7,), 2), extreme(dtype, (5, 1), 3)
    (got,) = run_native("matmul", [a, b, bias, factor], [np.empty((5, 7), dtype)], has_bias=1, epilogue="mul")
    np.testing.assert_array_equal(got, (a @ b + bias) * factor)


def test_bincount_with_integer_weights():
    x, weights = np.arange(50) % 3, extreme("int64", (50,))
    want = np.zeros(3, "int64")
    np.add.at(want, x, weights)
    (got,) = run_native("bincount", [x, weights], [np.empty(3, "int64")], has_weights=1)
    np.testing.assert_array_equal(got, want)


def test_bincount_of_many_entries_with_integer_weights():
    x, weights = np.arange(1 << 18) % 3, extreme("int64", (1 << 18,))
    want = np.zeros(3, "int64")
    np.add.at(want, x, weights)
    for given in (x, np.repeat(x, 2)[::2]):
        (got,) = run_native("bincount", [given, weights], [np.empty(3, "int64")], has_weights=1)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_no_linear_step(dtype):
    """It would go through float64 and lose digits."""
    x = np.ones((2, 2), dtype)
    with pytest.raises(NotImplementedError, match=f"for {dtype} the epilogue has only relu, add and mul"):
        plan_of("matmul", [x, x], [x], epilogue="linear:2:1")
