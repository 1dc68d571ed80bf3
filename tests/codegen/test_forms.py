"""The three forms of kernels over sizes, strides, blocks and several passes, against the oracle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from codegen.kernel_checks import check_kernel, map_kernel, random_array
from codegen.kernel_reference import numpy_dtype
from codegen.kernel_runner import Call

from sampan.codegen.dtypes import DTYPES as KERNEL_DTYPES
from sampan.codegen.loops import Kernel, KernelBuilder

SIZES = (1, 2, 5, 7, 8, 9, 16, 31, 33, 64, 65, 100, 1000)
EVERY_DTYPE = [d for d in KERNEL_DTYPES if not d.startswith("uint") or d == "uint8"]


@pytest.mark.parametrize("dtype", EVERY_DTYPE)
def test_maps_of_every_length(dtype: str) -> None:
    contiguous, strided = map_kernel("add", dtype, 2, outer=1), map_kernel("add", dtype, 2, "n", outer=1)
    for n in range(71):
        x, y = random_array(dtype, 3 * n + 5), random_array(dtype, n + 2, 1)
        check_kernel(contiguous, [x, y, np.zeros(3 * n + 9, x.dtype)], [[n, 1], [0, 1], [n + 1, 1]], outer=[3], lane=n)
        x, y = random_array(dtype, 6 * n + 5), random_array(dtype, 4, 1)
        out = np.zeros(9 * n + 9, x.dtype)
        check_kernel(strided, [x, y, out], [[n * 2, -2], [1, 0], [n * 3, 3]], outer=[3], lane=n, offsets=[2 * n, 0, 0])


def test_blocked_map_with_several_outer_axes_can_be_run_in_parts() -> None:
    k = KernelBuilder(outer=3, block="lane")
    x, bias, out = k.buffer("x", "float32"), k.buffer("bias", "float32", lane="0"), k.buffer("out", "float32", "out")
    k.store(out, k.map("add", k.load(x), k.load(bias)))
    kernel = k.build()
    x_, b_ = random_array("float32", 2 * 3 * 4 * 50), random_array("float32", 12)
    strides = [[600, 50, 150, 1], [0, 4, 1, 0], [600, 200, 50, 1]]
    whole, parts = np.zeros(1200, np.float32), np.zeros(1200, np.float32)
    check_kernel(kernel, [x_, b_, whole], strides, outer=[2, 3, 4], lane=50, block=16)
    call = Call(kernel, [x_, b_, parts], strides, outer=[2, 3, 4], lane=50, block=16)
    assert call.total == 2 * 3 * 4 * 4
    for begin, end in ((0, 1), (1, 37), (37, 37), (37, 96)):
        call.run(begin, end)
    np.testing.assert_array_equal(whole, parts)


def test_empty_index_spaces_touch_nothing() -> None:
    kernel = map_kernel("neg", "float32", 1, outer=2)
    out = np.full(4, 7, np.float32)
    Call(kernel, [np.zeros(0, np.float32), out], [[1, 1, 1], [1, 1, 1]], outer=[0, 3], lane=4).run()
    Call(kernel, [np.zeros(0, np.float32), out], [[1, 1, 1], [1, 1, 1]], outer=[3, 2], lane=0).run()
    np.testing.assert_array_equal(out, 7)


def _row(kind: str, dtype: str, inner: int = 0, block: str = "none") -> Kernel:
    k = KernelBuilder(outer=1, inner=inner, reduce_lane=True, block=block)
    result = k.reduce(kind, k.load(k.buffer("x", dtype)))
    k.store(k.buffer("y", k.dtype(result), "out", "0", inner=False), result)
    return k.build()


def _column(kind: str, dtype: str, inner: int = 1, block: str = "lane") -> Kernel:
    k = KernelBuilder(outer=1, inner=inner, block=block)
    result = k.reduce(kind, k.load(k.buffer("x", dtype)))
    k.store(k.buffer("y", k.dtype(result), "out", inner=False), result)
    return k.build()


REDUCTIONS = [
    *(
        (kind, dtype)
        for kind in ("sum", "prod", "max", "min", "argmax", "argmin")
        for dtype in ("float32", "float64", "int32", "int64", "uint8", "int8")
    ),
    ("sum", "bfloat16"),
    ("max", "bfloat16"),
    ("sum", "float16"),
    ("sum", "complex64"),
    ("prod", "complex128"),
    ("any", "bool"),
    ("all", "bool"),
]


def _operand(kind: str, dtype: str, size: int) -> np.ndarray:
    x = random_array(dtype, size)
    if kind == "prod" and KERNEL_DTYPES[dtype].kind in "fc":
        x = (1 + x * 0.02).astype(x.dtype)
    if kind in ("any", "all"):
        x = np.random.default_rng(size).random(size) < (0.02 if kind == "any" else 0.98)
    return x


@pytest.mark.parametrize(("kind", "dtype"), REDUCTIONS)
def test_reductions_in_every_form(kind: str, dtype: str) -> None:
    result = numpy_dtype(_row(kind, dtype).buffers[1].dtype)
    for n in (*range(1, 41), 63, 64, 65, 100, 257):
        x = _operand(kind, dtype, 3 * n)
        check_kernel(_row(kind, dtype), [x, np.zeros(3, result)], [[n, 1], [1, 0]], outer=[3], lane=n, tolerance=1e-4)
    for n in (1, 3, 8, 17, 33, 70):
        x = _operand(kind, dtype, 30 * n)

        def check(
            kernel: Kernel, size: int, strides: Sequence[Sequence[int]], n: int = n, x: np.ndarray = x, **sizes: object
        ) -> None:
            sizes = {"lane": n, **sizes}
            check_kernel(kernel, [x, np.zeros(size, result)], strides, outer=[2], tolerance=1e-4, **sizes)  # type: ignore[arg-type]

        check(_row(kind, dtype, 2), 2, [[15 * n, 3 * n, n, 1], [1, 0, 0, 0]], inner=[5, 3])
        check(_row(kind, dtype, 0, "lane"), 200, [[15 * n, 1], [50, 1, 0]], lane=15 * n, block=32)
        check(_row(kind, dtype, 2, "inner0"), 200, [[15 * n, 3 * n, n, 1], [50, 1, 0, 0, 0]], inner=[5, 3], block=2)
        check(_column(kind, dtype), 2 * n, [[15 * n, n, 1], [n, 0, 1]], inner=[15], block=32)
        check(_column(kind, dtype, 2), 2 * n, [[15 * n, 3 * n, n, 1], [n, 0, 0, 1]], inner=[5, 3], block=1000)
        check(_column(kind, dtype, 2, "inner0"), 6 * n, [[15 * n, 3 * n, n, 1], [3 * n, n, 0, 0, 1]], inner=[5, 3], block=2)


@pytest.mark.parametrize("kind", ["max", "min", "argmax", "argmin"])
def test_nan_and_infinities_win_or_lose_as_they_should(kind: str) -> None:
    rows = [
        [1, np.nan, 3, np.nan],
        [-np.inf] * 4,
        [np.inf] * 4,
        [np.nan] * 4,
        [2, 2, 2, 2],
        [-np.inf, np.inf, -np.inf, np.inf],
        [0.0, -0.0, 0.0, -1],
    ]
    for repeat in (1, 3, 25):
        x = np.array([r * repeat for r in rows], np.float32).ravel()
        out = np.zeros(len(rows), np.float32 if kind in ("max", "min") else np.int64)
        check_kernel(_row(kind, "float32"), [x, out], [[4 * repeat, 1], [1, 0]], outer=[len(rows)], lane=4 * repeat)


def _softmax(dtype: str, lane: str = "1") -> Kernel:
    k = KernelBuilder(outer=1, reduce_lane=True)
    x, y = k.buffer("x", dtype, lane=lane), k.buffer("y", dtype, "out", lane)
    value = k.load(x)
    e = k.map("exp", k.map("sub", value, k.reduce("max", value)))
    k.store(y, k.map("div", e, k.reduce("sum", e)))
    return k.build()


def _layer_norm(dtype: str, inner: int = 0) -> Kernel:
    """Also writes the mean, once a row."""
    k = KernelBuilder(outer=1, inner=inner, reduce_lane=True)
    x, w, b, y = (k.buffer(name, dtype, direction) for name, direction in (("x", "in"), ("w", "in"), ("b", "in"), ("y", "out")))
    count, mean_out = k.buffer("count", dtype, lane="0", inner=False), k.buffer("mean", dtype, "out", "0", False)
    value, inverse = k.load(x), k.map("div", k.const(1, dtype), k.load(count))
    mean = k.map("mul", k.reduce("sum", value), inverse)
    centred = k.map("sub", value, mean)
    variance = k.map("mul", k.reduce("sum", k.map("mul", centred, centred)), inverse)
    scale = k.map("rsqrt", k.map("add", variance, k.const(1e-5, dtype)))
    k.store(y, k.map("add", k.map("mul", k.map("mul", centred, scale), k.load(w)), k.load(b)))
    k.store(mean_out, mean)
    return k.build()


LOWERED = [(), ("avx2",), ("avx",), ("sse4.1",)]


@pytest.mark.parametrize("without", LOWERED)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_softmax_and_layer_norm_rows(dtype: str, without: tuple[str, ...]) -> None:
    rows = 4
    for n in SIZES:
        x, out = random_array(dtype, rows * n), np.zeros(rows * n, numpy_dtype(dtype))
        check_kernel(_softmax(dtype), [x, out], [[n, 1], [n, 1]], outer=[rows], lane=n, without=without)
        check_kernel(
            _softmax(dtype, "n"),
            [random_array(dtype, rows * n * 2), np.zeros(rows * n * 2, out.dtype)],
            [[2 * n, 2], [2 * n, 2]],
            outer=[rows],
            lane=n,
            without=without,
        )
        arrays = [
            x,
            random_array(dtype, n, 1),
            random_array(dtype, n, 2),
            out.copy(),
            np.array([n], out.dtype),
            np.zeros(rows, out.dtype),
        ]
        strides = [[n, 1], [0, 1], [0, 1], [n, 1], [0, 0], [1, 0]]
        check_kernel(_layer_norm(dtype), arrays, strides, outer=[rows], lane=n, without=without, tolerance=1e-3)


def test_layer_norm_over_inner_axes() -> None:
    rows = 3
    for n in SIZES:
        arrays = [
            random_array("float32", rows * 4 * n),
            random_array("float32", 4 * n, 1),
            random_array("float32", 4 * n, 2),
            np.zeros(rows * 4 * n, np.float32),
            np.array([4 * n], np.float32),
            np.zeros(rows, np.float32),
        ]
        strides = [[4 * n, n, 1], [0, n, 1], [0, n, 1], [4 * n, n, 1], [0, 0, 0], [1, 0, 0]]
        check_kernel(_layer_norm("float32", 1), arrays, strides, outer=[rows], inner=[4], lane=n, tolerance=1e-3)


def test_column_softmax_takes_three_passes() -> None:
    k = KernelBuilder(outer=1, inner=1, block="lane")
    x, scale, y = k.buffer("x", "float32"), k.buffer("scale", "float32", inner=False), k.buffer("y", "float32", "out")
    value = k.map("mul", k.load(x), k.load(scale))
    e = k.map("exp", k.map("sub", value, k.reduce("max", value)))
    k.store(y, k.map("div", e, k.reduce("sum", e)))
    for n in SIZES:
        arrays = [random_array("float32", 24 * n), random_array("float32", n), np.zeros(24 * n, np.float32)]
        check_kernel(k.build(), arrays, [[6 * n, n, 1], [0, 0, 1], [6 * n, n, 1]], outer=[4], inner=[6], lane=n, block=64)


def test_rows_may_be_overwritten_in_place() -> None:
    for n in SIZES:
        separate, shared = np.zeros(4 * n, np.float32), random_array("float32", 4 * n)
        x = shared.copy()
        Call(_softmax("float32"), [x, separate], [[n, 1], [n, 1]], outer=[4], lane=n).run()
        Call(_softmax("float32"), [shared, shared], [[n, 1], [n, 1]], outer=[4], lane=n).run()
        np.testing.assert_array_equal(shared, separate)


@pytest.mark.parametrize("without", LOWERED)
def test_gathers(without: tuple[str, ...]) -> None:
    rows = 4
    k = KernelBuilder(outer=1)
    table, ids, out = k.buffer("table", "float32"), k.buffer("ids", "int32", lane="0"), k.buffer("out", "float32", "out")
    k.store(out, k.load_at(table, k.cast("int64", k.load(ids))))
    embedding = k.build()
    k = KernelBuilder()
    table, ids, out = k.buffer("table", "complex64", lane="0"), k.buffer("ids", "int64"), k.buffer("out", "complex64", "out")
    k.store(out, k.load_at(table, k.map("add", k.load(ids), k.const(3, "int64")), k.map("mod", k.load(ids), k.const(2, "int64"))))
    take = k.build()
    rng = np.random.default_rng(0)
    for n in SIZES:
        picks = rng.integers(0, 10, rows).astype(np.int32)
        check_kernel(
            embedding,
            [random_array("float32", 10 * n), picks, np.zeros(rows * n, np.float32)],
            [[0, 1, n], [1, 0], [n, 1]],
            outer=[rows],
            lane=n,
            without=without,
        )
        check_kernel(
            take,
            [random_array("complex64", 40), rng.integers(0, 10, n), np.zeros(n, np.complex64)],
            [[0, 2, 1], [1], [1]],
            lane=n,
            without=without,
        )


def test_dead_lanes_never_read_through_a_wild_index() -> None:
    k = KernelBuilder()
    table, ids, out = k.buffer("table", "float32", lane="0"), k.buffer("ids", "int64"), k.buffer("out", "float32", "out")
    far = k.const(1 << 50, "int64")
    k.store(out, k.load_at(table, k.map("sub", far, k.load(ids))))  # a dead lane's zero would become 2**50
    ids_ = np.full(3, (1 << 50) - 2, np.int64)
    out_ = np.zeros(3, np.float32)
    Call(k.build(), [np.arange(5, dtype=np.float32), ids_, out_], [[0, 1], [1], [1]], lane=3).run()
    np.testing.assert_array_equal(out_, 2)


def test_cross_entropy_row_mixes_passes_and_a_gather() -> None:
    k = KernelBuilder(outer=1, reduce_lane=True)
    x, label, out = k.buffer("x", "float32"), k.buffer("label", "int64", lane="0"), k.buffer("out", "float32", "out", "0")
    again = k.buffer("again", "float32", lane="0")
    value = k.load(x)
    peak = k.reduce("max", value)
    total = k.map("log", k.reduce("sum", k.map("exp", k.map("sub", value, peak))))
    k.store(out, k.map("sub", k.map("add", total, peak), k.load_at(again, k.load(label))))
    for n in SIZES:
        logits, labels = random_array("float32", 4 * n), np.random.default_rng(n).integers(0, n, 4)
        check_kernel(
            k.build(), [logits, labels, np.zeros(4, np.float32), logits], [[n, 1], [1, 0], [1, 0], [n, 0, 1]], outer=[4], lane=n
        )


def test_results_do_not_depend_on_how_the_space_is_split() -> None:
    n, rows = 777, 9
    x, a, b = random_array("float32", rows * n), np.zeros(rows, np.float32), np.zeros(rows, np.float32)
    Call(_row("sum", "float32"), [x, a], [[n, 1], [1, 0]], outer=[rows], lane=n).run()
    call = Call(_row("sum", "float32"), [x, b], [[n, 1], [1, 0]], outer=[rows], lane=n)
    for r in reversed(range(rows)):
        call.run(r, r + 1)
    assert a.tobytes() == b.tobytes()


def test_results_do_not_depend_on_alignment() -> None:
    n = 999
    x = random_array("float32", n + 16)
    results = set()
    for shift in range(9):
        room = np.zeros(n + 16, np.float32)
        room[shift : shift + n] = x[:n]
        out = np.zeros(1, np.float32)
        Call(_row("sum", "float32"), [room, out], [[n, 1], [1, 0]], outer=[1], lane=n, offsets=[shift, 0]).run()
        results.add(out.tobytes())
    assert len(results) == 1
