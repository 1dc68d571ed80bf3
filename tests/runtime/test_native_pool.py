"""Pooling against a plain loop over windows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from runtime.native_call import channels_last, plan_of, run_native, sample

ARRANGEMENTS = {
    "row-major": np.ascontiguousarray,
    "channels-last": channels_last,
    "reversed": lambda a: np.ascontiguousarray(a.T).T,
}
SIZES = {1: (11,), 2: (9, 12), 3: (6, 7, 5)}
# kernel, stride, padding, dilation, further outputs that run over the end (ceil_mode)
WINDOWS = [(2, 2, 0, 1, 0), (3, 2, 1, 1, 0), (3, 2, 1, 1, 1), (3, 1, 0, 2, 0), (3, 1, 1, 2, 0), (1, 1, 0, 1, 0)]


class Windows:
    """The windows of one pooling, and what they give."""

    def __init__(self, rank, window=None, adaptive=None):
        self.sizes = SIZES[rank]
        self.adaptive = adaptive
        if adaptive is not None:
            self.out = (adaptive,) * rank
            self.attributes = {}
            return
        self.k, self.s, self.p, self.d, ceil = window
        reach = [n + 2 * self.p - self.d * (self.k - 1) - 1 for n in self.sizes]
        self.out = tuple(
            r // self.s + 1 + (1 if ceil and r % self.s and (r // self.s + 1) * self.s < n + self.p else 0)
            for r, n in zip(reach, self.sizes, strict=True)
        )
        self.attributes = {
            "kernel": [self.k] * rank,
            "strides": [self.s] * rank,
            "padding_low": [self.p] * rank,
            "padding_high": [self.p] * rank,
        }

    def axis(self, length, count, o):
        """(positions inside, how many count with padding)."""
        if self.adaptive is not None:
            inside = range(o * length // count, -(-(o + 1) * length // count))
            return list(inside), len(inside)
        positions = [o * self.s - self.p + i * self.d for i in range(self.k)]
        return [q for q in positions if 0 <= q < length], sum(q < length + self.p for q in positions)

    def __iter__(self):
        for o in itertools.product(*map(range, self.out)):
            parts = [self.axis(n, m, at) for n, m, at in zip(self.sizes, self.out, o, strict=True)]
            yield o, np.ix_(*(p for p, _ in parts)), int(np.prod([c for _, c in parts])), int(np.prod([len(p) for p, _ in parts]))

    def maximum(self, x):
        best, at = np.empty((*x.shape[:2], *self.out), x.dtype), np.empty((*x.shape[:2], *self.out), np.int64)
        flat = np.arange(int(np.prod(self.sizes))).reshape(self.sizes)
        for o, where, _, _ in self:
            window = x[(slice(None), slice(None), *where)].reshape(*x.shape[:2], -1)
            i = np.argmax(window, -1)
            best[(slice(None), slice(None), *o)] = np.take_along_axis(window, i[..., None], -1)[..., 0]
            at[(slice(None), slice(None), *o)] = flat[where].reshape(-1)[i]
        return best, at

    def mean(self, x, include_padding=True, divisor=0):
        result = np.empty((*x.shape[:2], *self.out))
        for o, where, counted, inside in self:
            total = x[(slice(None), slice(None), *where)].sum(axis=tuple(range(2, x.ndim)), dtype=np.float64)
            result[(slice(None), slice(None), *o)] = total / (divisor or (counted if include_padding else inside))
        return result

    def spread_mean(self, g, include_padding=True, divisor=0):
        result = np.zeros((*g.shape[:2], *self.sizes))
        for o, where, counted, inside in self:
            part = g[(slice(None), slice(None), *o)].astype(np.float64) / (divisor or (counted if include_padding else inside))
            result[(slice(None), slice(None), *where)] += part.reshape(*part.shape, *[1] * len(self.sizes))
        return result

    def scatter(self, g, at):
        result = np.zeros((*g.shape[:2], int(np.prod(self.sizes))))
        n, c = np.ogrid[: g.shape[0], : g.shape[1]]
        np.add.at(
            result, (n[..., None], c[..., None], at.reshape(*g.shape[:2], -1)), g.reshape(*g.shape[:2], -1).astype(np.float64)
        )
        return result.reshape(*g.shape[:2], *self.sizes)


CASES = [Windows(rank, window) for rank in SIZES for window in WINDOWS]
CASES += [Windows(rank, adaptive=n) for rank in SIZES for n in (1, 3, 5)]


def name_of(windows):
    return ("adaptive_" if windows.adaptive is not None else "") + "pool_"


def close(got, expected):
    np.testing.assert_allclose(
        got.astype(np.float64),
        expected,
        rtol={2: 2e-3, 4: 1e-6, 8: 1e-12}[got.dtype.itemsize],
        atol=1e-2 if got.dtype.itemsize == 2 else 1e-5,
    )


@pytest.mark.parametrize(
    ("arrangement", "dtype"),
    [
        ("row-major", np.float32),
        ("row-major", np.float64),
        ("channels-last", np.float32),
        ("channels-last", np.float16),
        ("reversed", np.float32),
    ],
)
@pytest.mark.parametrize("windows", CASES, ids=lambda w: f"{len(w.sizes)}d-{w.adaptive or (w.k, w.s, w.p, w.d)}")
@pytest.mark.parametrize("channels", [1, 66])
class TestPooling:
    def test_max_with_indices_and_its_gradient(self, windows, arrangement, dtype, channels):
        arrange, name = ARRANGEMENTS[arrangement], name_of(windows)
        more = windows.attributes | ({"dilations": [windows.d] * len(windows.sizes)} if windows.adaptive is None else {})
        x = sample(dtype, (2, channels, *windows.sizes), 1, -40, 40)
        best, at = windows.maximum(x)
        outputs = [arrange(np.empty_like(best)), arrange(np.empty(at.shape, np.int32))]
        got, got_at = run_native(name + "forward", [arrange(x)], outputs, kind="max", with_indices=1, **more)
        np.testing.assert_array_equal(got, best)
        np.testing.assert_array_equal(got_at, at)
        g = sample(dtype, best.shape, 2)
        for operand, with_indices in ((arrange(at), 1), (arrange(x), 0)):
            (got,) = run_native(
                name + "backward",
                [arrange(g), operand],
                [arrange(np.empty_like(x))],
                kind="max",
                with_indices=with_indices,
                **more,
            )
            close(got, windows.scatter(g, at))

    def test_mean_and_its_gradient(self, windows, arrangement, dtype, channels):
        if windows.adaptive is None and windows.d > 1:
            return
        arrange, name = ARRANGEMENTS[arrangement], name_of(windows)
        x = sample(dtype, (2, channels, *windows.sizes), 1)
        for include, divisor in ((1, 0), (0, 0), (1, 5)) if windows.adaptive is None else ((1, 0),):
            more = windows.attributes | (
                {"count_include_pad": include, "divisor_override": divisor} if windows.adaptive is None else {}
            )
            g = sample(dtype, (2, channels, *windows.out), 2)
            (got,) = run_native(name + "forward", [arrange(x)], [arrange(np.empty_like(g))], kind="avg", **more)
            close(got, windows.mean(x, include, divisor))
            (got,) = run_native(name + "backward", [arrange(g)], [arrange(np.empty_like(x))], kind="avg", **more)
            close(got, windows.spread_mean(g, include, divisor))


class TestCorners:
    def test_nan_wins(self):
        x = np.array([[[1, np.nan, 3, 4, 9, 2]]], np.float32)
        got, at = run_native(
            "pool_forward", [x], [np.empty((1, 1, 2), np.float32), np.empty((1, 1, 2), np.int64)], kernel=[3], with_indices=1
        )
        assert np.isnan(got[0, 0, 0])
        assert got[0, 0, 1] == 9
        assert at.tolist() == [[[1, 4]]]

    def test_integers_have_a_maximum(self):
        x = np.array([[[1, -5, 3, 4]]], np.int32)
        (got,) = run_native("pool_forward", [x], [np.empty((1, 1, 2), np.int32)], kernel=[2])
        assert got.tolist() == [[[1, 4]]]

    def test_an_empty_batch(self):
        assert (
            run_native("pool_forward", [np.empty((0, 3, 4, 4), np.float32)], [np.empty((0, 3, 2, 2), np.float32)], kernel=[2, 2])[
                0
            ].size
            == 0
        )

    def test_a_window_outside_is_refused(self):
        with pytest.raises(ValueError, match="lies outside the input"):
            plan_of("pool_forward", [np.empty((1, 1, 4), np.float32)], [np.empty((1, 1, 9), np.float32)], kernel=[2])

    def test_an_index_outside_is_refused(self):
        g, at = np.ones((1, 1, 2), np.float32), np.array([[[0, 4]]])
        with pytest.raises(IndexError, match="an index is 4; 0 to 3 are valid"):
            run_native("pool_backward", [g, at], [np.empty((1, 1, 4), np.float32)], kernel=[2])


@pytest.mark.parametrize("channels", [*range(1, 10), 12, 15, 35])
@pytest.mark.parametrize("with_indices", [0, 1])
def test_every_number_of_channels_gives_the_first_maximum(channels, with_indices):
    """Channels-last, with ties and NaNs; positions are left out where nobody asks for them."""
    rng = np.random.default_rng(channels)
    x = rng.integers(0, 3, (2, channels, 7, 6)).astype("float32")
    x[rng.random(x.shape) < 0.05] = np.nan
    outputs = [channels_last(np.empty((2, channels, 3, 3), "float32")), channels_last(np.empty((2, channels, 3, 3), "int64"))]
    got = run_native(
        "pool_forward", [channels_last(x)], outputs[: 1 + with_indices], kind="max", kernel=[2, 2], with_indices=with_indices
    )
    windows = x[:, :, :6].reshape(2, channels, 3, 2, 3, 2).swapaxes(3, 4).reshape(2, channels, 3, 3, 4)
    best = np.argmax(windows, -1)  # of NaNs, and of equal numbers, the first
    np.testing.assert_array_equal(got[0], np.take_along_axis(windows, best[..., None], -1)[..., 0])
    if with_indices:
        rows, columns = np.arange(3)[:, None] * 2 + best // 2, np.arange(3) * 2 + best % 2
        np.testing.assert_array_equal(got[1], rows * 6 + columns)
