"""Views over places against NumPy's, and the arena against its two rules."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sampan.codegen.places import Buffer, Place, axis_order, is_row_major, reshaped_strides, row_major, same_elements, view_of
from sampan.codegen.plan_arena import place_in_arena

SHAPES = [(24,), (4, 6), (2, 3, 4), (2, 1, 12), (1, 24, 1), (2, 2, 2, 3), (24, 1), (8, 3)]


def element_strides(array):
    return tuple(s // array.itemsize for s in array.strides)


@pytest.mark.parametrize("new", SHAPES)
@pytest.mark.parametrize("old", SHAPES)
def test_a_reshape_is_a_view_exactly_where_numpy_makes_one(old, new):
    base = np.arange(math.prod(old) * 2)
    for array in (
        base[: math.prod(old)].reshape(old),
        base[::2].reshape(old),
        base[: math.prod(old)].reshape(old[::-1]).transpose(),
    ):
        strides = reshaped_strides(array.shape, element_strides(array), new)
        viewed = array.reshape(new)
        assert (strides is not None) == np.shares_memory(array, viewed)
        if strides is not None:
            seen = np.lib.stride_tricks.as_strided(array, new, [s * array.itemsize for s in strides])
            np.testing.assert_array_equal(seen, viewed)


def test_a_broadcast_axis_reshapes_with_stride_zero():
    assert reshaped_strides((2, 6), (0, 0), (3, 4)) == (0, 0)
    assert reshaped_strides((2, 6), (0, 1), (12,)) is None


def test_views_of_a_place_follow_numpy():
    array = np.arange(60).reshape(3, 4, 5)
    place = Place(Buffer("input", 0), "int64", (3, 4, 5), row_major((3, 4, 5)))
    place = view_of(place, "slice", {"starts": (2, 1, 0), "steps": (-1, 2, 1)}, (3, 2, 5))
    place = view_of(place, "transpose", {"order": (2, 0, 1)}, (5, 3, 2))
    place = view_of(place, "broadcast_to", {}, (7, 5, 3, 2))
    wanted = np.broadcast_to(array[::-1, 1::2].transpose(2, 0, 1), (7, 5, 3, 2))
    seen = np.lib.stride_tricks.as_strided(
        array.reshape(-1)[place.offset :], place.shape, [s * array.itemsize for s in place.strides]
    )
    np.testing.assert_array_equal(seen, wanted)


def test_row_major_and_axis_orders():
    assert is_row_major((2, 1, 3), (3, 99, 1))
    assert not is_row_major((2, 3), (1, 2))
    assert axis_order((2, 3, 4), (12, 1, 3)) == (0, 2, 1)
    assert axis_order((2, 3), (6, 2)) is None


def test_places_that_show_the_same_elements_are_the_same_whatever_axes_of_length_one_say():
    buffer = Buffer("input", 0)
    assert same_elements(Place(buffer, "int8", (2, 1), (1, 1)), Place(buffer, "int8", (2, 1), (1, 7)))
    assert not same_elements(Place(buffer, "int8", (2, 1), (1, 1)), Place(buffer, "int8", (2, 1), (1, 1), 1))


@pytest.mark.parametrize("seed", range(20))
def test_spans_alive_at_once_do_not_overlap_in_the_arena(seed):
    rng = np.random.default_rng(seed)
    spans = {}
    for k in range(40):
        first = int(rng.integers(0, 50))
        spans[k] = (first, first + int(rng.integers(0, 12)), 64 * int(rng.integers(1, 9)))
    offsets, size = place_in_arena(spans)
    for a, (first, last, length) in spans.items():
        assert 0 <= offsets[a] <= size - length
        for b, (other_first, other_last, other_length) in spans.items():
            if a != b and first <= other_last and other_first <= last:
                assert offsets[a] + length <= offsets[b] or offsets[b] + other_length <= offsets[a]
    assert size < sum(length for _, _, length in spans.values())


def test_a_chain_of_temporaries_takes_the_memory_of_two():
    spans = {k: (k, k + 1, 128) for k in range(100)}
    assert place_in_arena(spans)[1] == 256
