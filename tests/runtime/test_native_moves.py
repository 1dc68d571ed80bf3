"""Gathers and scatters. NumPy is the oracle; equal indices are applied in order."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.native_call import run_in_place, run_native, sample, spread

from sampan import _rt

DTYPES = [bool, np.int16, np.int64, np.float16, np.float32, np.complex128]
MODES = ["set", "add", "mul", "max", "min"]
# x's shape, axis, index's shape
ROWS = [
    ((5,), 0, (7,)),
    ((5, 4), 0, (3,)),
    ((5, 4), 1, (2, 3)),
    ((3, 4, 5), 1, (6,)),
    ((3, 4, 5), -1, (2, 2)),
    ((3, 4, 5), 0, ()),
    ((4, 0), 0, (3,)),
    ((4, 3), 0, (0,)),
]
MANY = [((100, 33), 0, (500,)), ((2, 50, 3), 1, (9000,)), ((600,), 0, (20_000,))]
ELEMENTS = [
    ((5,), 0, (7,)),
    ((5, 4), 0, (3, 4)),
    ((5, 4), 0, (2, 2)),
    ((3, 4, 5), 1, (2, 9, 4)),
    ((), 0, ()),
    ((3, 4), 0, (0, 4)),
    ((300, 70), 0, (200, 70)),
    ((3,), 0, (20_000,)),
]
TUPLES = [((5, 4), (3, 2)), ((5, 4), (3, 1)), ((5, 4, 3), (2, 3, 2)), ((5, 4), (3, 0)), ((5,), (1,)), ((40, 30), (15_000, 2))]


def index_for(length, shape, dtype=np.int64, seed=5):
    return np.asarray(np.random.default_rng(seed).integers(-length, length, shape), dtype)


def supported(dtype, mode):
    kind = np.dtype(dtype).kind
    return mode == "set" or (kind != "b" and not (kind == "c" and mode in ("max", "min")))


def factors(values, mode):
    """Values that a chain of products keeps small."""
    if mode != "mul":
        return values
    mask = np.random.default_rng(7).random(values.shape) < 0.02
    return np.asarray(np.where(mask, values, 1), values.dtype)


def apply(target, where, updates, mode):
    """One update after another, in the target's dtype or float32 for halves."""
    wide = target.astype(np.float32) if target.dtype == np.float16 else target.copy()
    if mode == "set":
        for at in np.ndindex(where[0].shape if where else updates.shape[:1]):
            wide[tuple(w[at] for w in where)] = updates[at]
    else:
        with np.errstate(all="ignore"):
            {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[mode].at(
                wide, where, updates.astype(wide.dtype)
            )
    return wide.astype(target.dtype)


def check(got, expected):
    if got.dtype.kind in "fc":
        np.testing.assert_allclose(got, expected, rtol=1e-3 if got.dtype == np.float16 else 1e-5)
    else:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
class TestGather:
    @pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
    @pytest.mark.parametrize(("shape", "axis", "index_shape"), ROWS + MANY)
    def test_rows(self, dtype, index_dtype, shape, axis, index_shape):
        index = index_for(shape[axis], index_shape, index_dtype)
        for x in (sample(dtype, shape), spread(sample(dtype, shape)), sample(dtype, shape)[..., ::-1]):
            expected = np.take(x, index, axis)
            (got,) = run_native("gather", [x, spread(index)], [np.empty(expected.shape, dtype)], axis=axis)
            np.testing.assert_array_equal(got, expected)

    @pytest.mark.parametrize(("shape", "axis", "index_shape"), ELEMENTS)
    def test_elements(self, dtype, shape, axis, index_shape):
        x, length = sample(dtype, shape), shape[axis] if shape else 1
        index = index_for(length, index_shape)
        same = x[tuple(slice(None) if d == axis else slice(n) for d, n in enumerate(index_shape))]
        expected = np.take_along_axis(same, index % length, axis) if shape else x
        (got,) = run_native("gather_elements", [spread(x), index], [np.empty(index_shape, dtype)], axis=axis)
        np.testing.assert_array_equal(got, expected)

    @pytest.mark.parametrize(("shape", "index_shape"), TUPLES)
    def test_tuples(self, dtype, shape, index_shape):
        x = sample(dtype, shape)
        index = (
            np.stack([index_for(shape[d], index_shape[:-1], seed=d) for d in range(index_shape[-1])], -1)
            if index_shape[-1]
            else np.empty(index_shape, np.int64)
        )
        expected = x[tuple(np.moveaxis(index, -1, 0))] if index_shape[-1] else np.broadcast_to(x, index_shape[:-1] + shape)
        (got,) = run_native("gather_nd", [spread(x), index], [np.empty(expected.shape, dtype)])
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
class TestScatter:
    @pytest.mark.parametrize(("shape", "axis", "index_shape"), ROWS + MANY)
    def test_rows(self, dtype, mode, shape, axis, index_shape):
        if not supported(dtype, mode):
            return
        axis %= len(shape)
        index = index_for(shape[axis], index_shape, np.int32)
        x = sample(dtype, shape, 1)
        updates = factors(sample(dtype, (*shape[:axis], *index_shape, *shape[axis + 1 :]), 2), mode)
        rows = np.moveaxis(updates.reshape(*shape[:axis], index.size, *shape[axis + 1 :]), axis, 0)

        def expected(start):
            return np.moveaxis(apply(np.moveaxis(start, axis, 0), (index.reshape(-1),), rows, mode), 0, axis)

        (got,) = run_native("scatter", [spread(x), index, spread(updates)], [np.empty(shape, dtype)], axis=axis, mode=mode)
        check(got, expected(x))
        (got,) = run_native("scatter", [index, updates], [np.empty(shape, dtype)], axis=axis, mode=mode, has_x=0)
        check(got, expected(np.zeros_like(x)))
        check(run_in_place("scatter", [x, index, updates], 0, axis=axis, mode=mode), expected(x))

    @pytest.mark.parametrize("include_self", [1, 0])
    @pytest.mark.parametrize(("shape", "axis", "index_shape"), ELEMENTS)
    def test_elements(self, dtype, mode, include_self, shape, axis, index_shape):
        if not supported(dtype, mode):
            return
        x, length = sample(dtype, shape, 1), shape[axis] if shape else 1
        index = index_for(length, index_shape) % length
        updates = factors(sample(dtype, index_shape, 2), mode)
        where = list(np.indices(index_shape, sparse=False)) if index_shape else []
        if where:
            where[axis] = index
        start = np.array(x)
        if not include_self and mode != "set":
            info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else None
            start[tuple(where)] = {"add": 0, "mul": 1, "max": info.min if info else -np.inf, "min": info.max if info else np.inf}[
                mode
            ]
        if index_shape:
            expected = apply(start, tuple(w.reshape(-1) for w in where), updates.reshape(-1), mode)
        else:
            expected = apply(start.reshape(1), (np.zeros(1, int),), updates.reshape(1), mode).reshape(())
        (got,) = run_native(
            "scatter_elements", [x, index, updates], [np.empty(shape, dtype)], axis=axis, mode=mode, include_self=include_self
        )
        check(got, expected)

    @pytest.mark.parametrize(("shape", "index_shape"), [t for t in TUPLES if t[1][-1]])
    def test_tuples(self, dtype, mode, shape, index_shape):
        if not supported(dtype, mode):
            return
        x, depth = sample(dtype, shape, 1), index_shape[-1]
        index = np.stack([index_for(shape[d], index_shape[:-1], seed=d) for d in range(depth)], -1)
        updates = factors(sample(dtype, index_shape[:-1] + shape[depth:], 2), mode)
        flat = index.reshape(-1, depth)
        expected = apply(x, tuple(flat.T), updates.reshape(-1, *shape[depth:]), mode)
        (got,) = run_native("scatter_nd", [x, index, updates], [np.empty(shape, dtype)], mode=mode)
        check(got, expected)


class TestThreads:
    @pytest.mark.parametrize(("shape", "axis", "index_shape"), MANY)
    def test_float_sums_do_not_depend_on_their_number(self, shape, axis, index_shape):
        count, rng = _rt.num_threads(), np.random.default_rng(0)
        index = index_for(shape[axis], index_shape)
        updates = rng.standard_normal((*shape[:axis], *index_shape, *shape[axis + 1 :])).astype(np.float32)
        try:
            results = []
            for n in (1, 2, 5):
                _rt.set_num_threads(n)
                results.append(
                    run_native("scatter", [index, updates], [np.empty(shape, np.float32)], axis=axis, mode="add", has_x=0)[
                        0
                    ].tobytes()
                )
        finally:
            _rt.set_num_threads(count)
        assert results[0] == results[1] == results[2]


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "x", "index", "out", "attributes", "match"),
        [
            (
                "gather",
                (16, 3),
                [[0, 1], [2, -17]],
                (2, 2, 3),
                {},
                r"index\[1, 1\] is -17; axis 0 has 16 entries, so -16 to 15 are valid",
            ),
            (
                "gather",
                (16, 3),
                [[0, 1], [2, -1]],
                (2, 2, 3),
                {"allow_negative": 0},
                r"index\[1, 1\] is -1; axis 0 has 16 entries, so 0 to 15 are valid",
            ),
            ("gather", (0, 3), [1], (1, 3), {}, "0 entries, so no index is valid"),
            ("gather_nd", (4, 3), [[1, 3]], (1,), {}, r"index\[0, 1\] is 3; axis 1 has 3 entries"),
            ("gather_elements", (4, 3), [[0, 5, 0]], (1, 3), {}, r"index\[0, 1\] is 5; axis 0"),
        ],
    )
    def test_an_index_outside(self, name, x, index, out, attributes, match):
        with pytest.raises(IndexError, match=match):
            run_native(name, [np.zeros(x, np.float32), np.array(index)], [np.empty(out, np.float32)], **attributes)

    @pytest.mark.parametrize("name", ["scatter", "scatter_nd", "scatter_elements"])
    def test_nothing_is_written_before_indices_are_checked(self, name):
        x = np.ones((4, 1), np.float32)
        index = np.array([0, 1, 2, 4]) if name == "scatter" else np.array([[0], [1], [2], [4]])
        tensors = [_rt.from_numpy(x), _rt.from_numpy(index), _rt.from_numpy(np.zeros((4, 1), np.float32))]
        layouts = [t.layout for t in tensors]
        instruction = ("native", name, [(0, 0), (1, 0), (2, 0), (0, 0)], layouts, layouts[:1], {})
        plan = _rt.Plan.build(
            input_layouts=layouts, constants=[], slots=[], arena_bytes=0, instructions=[instruction], outputs=[(0, 0, layouts[0])]
        )
        with pytest.raises(IndexError, match="is 4"):
            plan.run(tensors)
        np.testing.assert_array_equal(tensors[0].numpy_view(), 1)

    def test_float_indices(self):
        with pytest.raises(TypeError, match="must be int32 or int64"):
            run_native("gather", [np.ones(3, np.float32), np.ones(2, np.float32)], [np.empty(2, np.float32)])

    def test_modes(self):
        arrays = [np.ones(3, bool), np.zeros(2, np.int64), np.ones(2, bool)]
        with pytest.raises(TypeError, match="mode add is not defined for bool"):
            run_native("scatter", arrays, [np.empty(3, bool)], mode="add")
        with pytest.raises(ValueError, match="mode 'plus' is unknown"):
            run_native("scatter", arrays, [np.empty(3, bool)], mode="plus")
