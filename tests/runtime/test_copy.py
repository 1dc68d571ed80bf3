"""Copies between layouts and casts between dtypes. NumPy is the oracle."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from runtime.arrays import DTYPES, NUMPY, bits, sample

from sampan import _rt


class TestCasts:
    @pytest.mark.parametrize(("source", "target"), list(itertools.product(DTYPES, DTYPES)))
    def test_every_pair_follows_numpy_for_common_values(self, source, target):
        array = sample(source, (5, 7))
        if _rt.dtypes[target].kind == "u":
            array = np.abs(array.real).astype(NUMPY[source])
        for a in (array, array.T, array[::-2, 1:6]):
            real = a.real if NUMPY[source].kind == "c" and NUMPY[target].kind != "c" and target != "bool" else a
            expected = real.astype(np.float64 if NUMPY[target].kind == "f" else NUMPY[target]).astype(NUMPY[target])
            got = _rt.copy(_rt.from_numpy(a), target)
            assert got.shape == list(a.shape)
            assert bits(got.numpy_view()) == bits(expected)

    @pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
    @pytest.mark.parametrize("target", ["uint8", "int8", "int16", "int32", "int64"])
    def test_floating_to_integer_saturates_and_nan_gives_zero(self, source, target):
        info = np.iinfo(target)
        values = [
            math.nan,
            math.inf,
            -math.inf,
            1.9,
            -1.9,
            254.7,
            127.9,
            128.0,
            -128.9,
            -129.0,
            32767.5,
            1e4,
            -1e4,
            2.0**31,
            -(2.0**31),
            2.0**63,
            -(2.0**63),
            1e30,
            -0.0,
        ]
        with np.errstate(over="ignore"):
            array = np.array(values).astype(NUMPY[source])
        expected = [
            0
            if math.isnan(v)
            else min(max(math.trunc(v) if math.isfinite(v) else (2**70 if v > 0 else -(2**70)), int(info.min)), int(info.max))
            for v in array.astype(np.float64).tolist()
        ]
        assert _rt.copy(_rt.from_numpy(array), target).tolist() == expected
        strided = np.repeat(array, 2)[::2]
        assert _rt.copy(_rt.from_numpy(strided), target).tolist() == expected

    def test_float64_rounds_once_to_the_16_bit_types(self):
        # A tie of the short type, and the double just above it: through float32 both would round to even.
        for name, tie in (("bfloat16", 1 + 2.0**-8), ("float16", 1 + 2.0**-11)):
            step = 2.0**-7 if name == "bfloat16" else 2.0**-10
            got = _rt.copy(_rt.from_numpy(np.array([tie, np.nextafter(tie, 2), np.nextafter(tie, 0), tie + step])), name)
            assert _rt.copy(got, "float64").tolist() == [1, 1 + step, 1, 1 + 2 * step]

    def test_all_half_values_convert_exactly_and_back(self):
        every = np.arange(65536, dtype=np.uint16)
        for name in ("float16", "bfloat16"):
            array = every.view(NUMPY[name])
            for wide in ("float32", "float64"):
                widened = _rt.copy(_rt.from_numpy(array), wide)
                with np.errstate(invalid="ignore"):
                    assert np.array_equal(widened.numpy_view(), array.astype(wide), equal_nan=True)
                back = _rt.copy(widened, name).numpy_view()
                is_nan = np.isnan(array.astype(np.float32))
                assert np.array_equal(back.view(np.uint16)[~is_nan], every[~is_nan])
                assert np.isnan(back.astype(np.float32))[is_nan].all()

    @pytest.mark.parametrize("source", ["float32", "float64"])
    def test_random_bits_round_to_float16_as_numpy_does(self, source):
        raw = np.random.default_rng(1).integers(0, 2**32, 200_000, dtype=np.uint32)
        with np.errstate(invalid="ignore"):
            array = raw.view(np.float32).astype(source)
        small = np.random.default_rng(2).normal(size=200_000) * 10.0 ** np.random.default_rng(3).integers(-9, 6, 200_000)
        with np.errstate(over="ignore", invalid="ignore"):
            for a in (array, small.astype(source)):
                expected = a.astype(np.float16)
                got = _rt.copy(_rt.from_numpy(a), "float16").numpy_view()
                assert np.array_equal(got, expected, equal_nan=True)

    def test_int64_rounds_once(self):
        values = np.array(
            [2**53 + 1, -(2**53) - 1, 2**62 + 2**54 + 1, 2**62 + 2**54, 2**62 + 3 * 2**54 - 1, 2**63 - 1, -(2**63), 2**24 + 1],
            np.int64,
        )
        assert _rt.copy(_rt.from_numpy(values), "float32").tolist() == values.astype(np.float32).tolist()
        assert _rt.copy(_rt.from_numpy(values), "bfloat16").tolist()[2:5] == [2.0**62 + 2.0**55, 2.0**62, 2.0**62 + 2.0**55]

    def test_anything_but_zero_is_true(self):
        assert _rt.copy(_rt.from_numpy(np.array([0.0, -0.0, math.nan, 1e-300])), "bool").tolist() == [False, False, True, True]
        assert _rt.copy(_rt.from_numpy(np.array([0j, 1j])), "bool").tolist() == [False, True]


class TestCopies:
    @pytest.mark.parametrize("name", ["bool", "float16", "float32", "int64", "complex64", "complex128"])
    @pytest.mark.parametrize("shape", [(37, 53), (64, 64), (128, 70), (5, 4, 33), (3, 70, 9, 20), (2, 3, 4, 5, 6), (1, 7, 1)])
    def test_every_permutation_of_axes(self, name, shape):
        array = sample(name, shape)
        permutations = list(itertools.permutations(range(len(shape))))
        for axes in permutations[:: max(1, len(permutations) // 24)]:
            source = array.transpose(axes)
            assert bits(_rt.copy(_rt.from_numpy(source)).numpy_view()) == bits(source)

    def test_random_layouts_on_both_sides(self):
        random = np.random.default_rng(7)
        for trial in range(150):
            rank = int(random.integers(1, 5))
            name = DTYPES[trial % len(DTYPES)]
            base = sample(name, tuple(int(n) for n in random.integers(1, 20, rank)), trial)
            target = np.zeros([n * 2 for n in base.shape], NUMPY[name])

            def pick(a, random=random, rank=rank):
                index = tuple(slice(None, None, int(random.choice([1, -1]))) for _ in range(rank))
                return a[index]

            axes = random.permutation(rank)
            source = pick(base).transpose(axes)
            window = pick(target[tuple(slice(0, n) for n in base.shape)]).transpose(axes)
            _rt.copy_into(_rt.from_numpy(window), _rt.from_numpy(source))
            assert bits(window) == bits(source)
            assert np.count_nonzero(target) <= np.count_nonzero(source)

    def test_copy_into_broadcasts_and_casts(self):
        target = np.zeros([2, 3, 4], np.float64)
        _rt.copy_into(_rt.from_numpy(target), _rt.from_numpy(np.array([[1], [2], [3]], np.int32)))
        assert np.array_equal(target, np.broadcast_to([[1], [2], [3]], [2, 3, 4]))

    def test_leading_axes_of_length_one_are_dropped(self):
        target = np.zeros(4)
        _rt.copy_into(_rt.from_numpy(target), _rt.from_numpy(np.arange(4.0).reshape(1, 1, 4)))
        assert target.tolist() == [0, 1, 2, 3]

    @pytest.mark.parametrize("shape", [[3], [2, 2, 3], [5, 4], [2, 2, 4]])
    def test_shapes_that_do_not_broadcast_are_value_errors(self, shape):
        with pytest.raises(ValueError, match="broadcast"):
            _rt.copy_into(_rt.empty([2, 4], "float32"), _rt.empty(shape, "float32"))

    def test_overlapping_memory_is_read_before_it_is_written(self):
        array = np.arange(10)
        base = _rt.from_numpy(array)
        _rt.copy_into(_rt.as_view(base, [9], [1], 1), _rt.as_view(base, [9], [1], 0))
        assert array.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
        square = np.arange(16).reshape(4, 4).copy()
        tensor = _rt.from_numpy(square)
        _rt.copy_into(tensor, _rt.as_view(tensor, [4, 4], [1, 4], 0))
        assert square.tolist() == np.arange(16).reshape(4, 4).T.tolist()

    def test_writing_through_a_broadcast_axis_is_a_value_error(self):
        view = _rt.as_view(_rt.empty([3], "float32"), [2, 3], [0, 1])
        with pytest.raises(ValueError, match="share memory"):
            _rt.copy_into(view, _rt.empty([2, 3], "float32"))

    def test_versions_count_in_place_writes_of_the_storage(self):
        tensor = _rt.from_numpy(np.zeros(4, np.float32))
        view = _rt.as_view(tensor, [2], [1])
        _rt.fill(view, 1)
        _rt.copy_into(tensor, tensor)
        assert tensor.inplace_version == view.inplace_version == 2

    @pytest.mark.parametrize("name", DTYPES)
    @pytest.mark.parametrize("shape", [(), (5,), (200, 333), (0, 4)])
    def test_fill(self, name, shape):
        tensor = _rt.empty(list(shape), name)
        _rt.fill(tensor, 1)
        assert (tensor.numpy_view() == 1).all()
        _rt.fill(tensor, 0.0)
        assert (tensor.numpy_view() == 0).all()

    def test_fill_of_strided_memory_leaves_the_rest(self):
        array = np.zeros([4, 6], np.float32)
        _rt.fill(_rt.from_numpy(array[::2, 1::2]), 3)
        assert array.sum() == 3 * 6
        assert array[0].tolist() == [0, 3, 0, 3, 0, 3]

    @pytest.mark.parametrize("value", [np.int64(2**62 + 1), np.float32(1.5), np.complex64(1 + 2j), True, np.bool_(True)])
    def test_fill_takes_numpy_scalars(self, value):
        tensor = _rt.empty([2], {"c": "complex128", "f": "float64"}.get(np.asarray(value).dtype.kind, "int64"))
        _rt.fill(tensor, value)
        assert tensor.tolist() == [value, value]

    def test_fill_refuses_what_is_no_number(self):
        with pytest.raises(TypeError):
            _rt.fill(_rt.empty([2], "float32"), "1")
        with pytest.raises(OverflowError):
            _rt.fill(_rt.empty([2], "int64"), 2**70)

    def test_large_copies_are_equal_on_one_and_two_threads(self):
        array = np.random.default_rng(0).normal(size=(1200, 1100)).astype(np.float32)
        count = _rt.num_threads()
        try:
            for n in (1, 2, 3):
                _rt.set_num_threads(n)
                assert np.array_equal(_rt.copy(_rt.from_numpy(array.T)).numpy_view(), array.T)
                assert np.array_equal(_rt.copy(_rt.from_numpy(array.T), "float64").numpy_view(), array.T)
        finally:
            _rt.set_num_threads(count)
