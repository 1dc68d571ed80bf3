"""Values of every primitive in every dtype, of casts and of selects, against NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from codegen.kernel_checks import DTYPES, apply, check_kernel, map_kernel, random_array
from codegen.kernel_reference import OPS, numpy_dtype
from codegen.kernel_runner import Call

from sampan.codegen import mathlib
from sampan.codegen.dtypes import DTYPES as KERNEL_DTYPES
from sampan.codegen.loops import KernelBuilder, KernelError

_BETWEEN_ONES = ("asin", "acos", "atanh", "erfinv")
_TOLERANCE = {"float32": 3e-6, "float64": 1e-12, "complex64": 2e-5, "complex128": 1e-12}
_WITHOUT_ORACLE = {"random_bits", "random_bits64"}


def _cases() -> list[tuple[str, str]]:
    cases = []
    for name, by_kind in mathlib.OPS.items():
        for dtype in DTYPES:
            op = by_kind.get(KERNEL_DTYPES[dtype].kind)
            if op and (not op.dtypes or dtype in op.dtypes) and name not in _WITHOUT_ORACLE:
                cases.append((name, dtype))
    return cases


def _arguments(name: str, dtype: str, position: int, size: int) -> np.ndarray:
    """Random numbers, and the special ones of the dtype at places that differ between arguments."""
    target, kind = numpy_dtype(dtype), KERNEL_DTYPES[dtype].kind
    rng = np.random.default_rng(position)
    x = random_array(dtype, size, position)
    if kind == "f":
        x = (x.astype(np.float64) * 3).astype(target)
        x[20:40] = np.rint(x[20:40].astype(np.float64)).astype(target)
        if name in _BETWEEN_ONES:
            x = np.clip(x.astype(np.float64) / 10, -1, 1).astype(target)
        special = [0.0, -0.0, np.nan, 1, -1, 0.5] if name == "lgamma" else [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5]
        x[: len(special)] = np.array(special).astype(target)
    elif kind in "iu":
        info = np.iinfo(target)
        x = rng.integers(info.min, info.max, size, dtype=target, endpoint=True)
        x[:6] = np.array([0, 1, info.min, info.max, 5, info.max], dtype=object).astype(target)
        if name == "pow":
            x = rng.integers(max(-5, info.min), 9, size).astype(target)
        if position:
            x[6:200] = rng.integers(0, 9, 194)
            x[2:6] = [0, 3, 7, 1]
            if kind == "i":
                x[40:60], x[4] = -1, -1
    return np.roll(x, 3) if position and kind == "f" else x


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "dtype"), _cases())
def test_primitive_agrees_with_its_oracle(name: str, dtype: str) -> None:
    arity = mathlib.OPS[name][KERNEL_DTYPES[dtype].kind].arity
    kernel = map_kernel(name, dtype, arity)
    size = 301
    arrays = [_arguments(name, dtype, position, size) for position in range(arity)]
    out = np.zeros(size, numpy_dtype(kernel.buffers[-1].dtype))
    check_kernel(kernel, [*arrays, out], [[1]] * (arity + 1), lane=size, tolerance=_TOLERANCE.get(dtype))


def test_every_primitive_has_an_oracle() -> None:
    assert set(mathlib.OPS) - set(OPS) == _WITHOUT_ORACLE


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("source", DTYPES)
def test_casts_saturate_round_and_wrap(source: str) -> None:
    k = KernelBuilder()
    value = k.load(k.buffer("x", source))
    for target in DTYPES:
        k.store(k.buffer(f"to_{target}", target, "out"), k.cast(target, value))
    x = random_array(source, 70)
    if KERNEL_DTYPES[source].kind == "f":
        x[:9] = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 2.5, -2.5]).astype(x.dtype)
    if x.dtype.kind in "iu":
        x[:2] = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
    check_kernel(
        k.build(), [x, *(np.zeros(70, numpy_dtype(t)) for t in DTYPES)], [[1]] * (len(DTYPES) + 1), lane=70, tolerance=0.0
    )


@pytest.mark.parametrize("without", [(), ("f16c",)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_half_survives_a_round_trip_through_float32(dtype: str, without: tuple[str, ...]) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    got = apply("copysign", bits.view(numpy_dtype(dtype)), bits.view(numpy_dtype(dtype)), dtype=dtype, without=without)
    is_nan = np.isnan(bits.view(numpy_dtype(dtype)).astype(np.float32))
    np.testing.assert_array_equal(got.view(np.uint16)[~is_nan], bits[~is_nan])
    assert np.isnan(got.astype(np.float32)[is_nan]).all()


@pytest.mark.parametrize("without", [(), ("f16c",)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_cast_to_half_rounds_to_nearest_even(dtype: str, without: tuple[str, ...]) -> None:
    k = KernelBuilder()
    k.store(k.buffer("y", dtype, "out"), k.cast(dtype, k.load(k.buffer("x", "float32"))))
    halves = np.arange(0, 0x7C00 if dtype == "float16" else 0x7F80, dtype=np.uint16).view(numpy_dtype(dtype)).astype(np.float32)
    middles = ((halves[:-1].astype(np.float64) + halves[1:]) / 2).astype(np.float32)
    x = np.concatenate(
        [
            middles,
            np.nextafter(middles, np.float32(0)),
            np.nextafter(middles, np.float32(np.inf)),
            np.float32([65519, 65520, 3.4e38]),
        ]
    )
    got = np.zeros(x.size, numpy_dtype(dtype))
    Call(k.build(), [x, got][::-1], [[1], [1]], lane=x.size, without=without).run()
    with np.errstate(over="ignore"):
        want = x.astype(numpy_dtype(dtype))
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


def test_select_and_index_follow_the_lane() -> None:
    k = KernelBuilder(outer=2)
    x, y = k.buffer("x", "complex64"), k.buffer("y", "complex64", "out")
    value = k.load(x)
    condition = k.map("lt", k.index("lane"), k.map("add", k.index("outer1"), k.index("outer0")))
    k.store(y, k.select(condition, value, k.map("neg", value)))
    check_kernel(
        k.build(),
        [random_array("complex64", 150), np.zeros(150, np.complex64)],
        [[75, 25, 1], [75, 25, 1]],
        outer=[2, 3],
        lane=25,
    )


def test_random_bits_match_the_published_philox_vectors() -> None:
    # Known answers of Random123 for philox4x32-10: all zero, all ones in key and in the counter's low half.
    seed, counter = np.array([0, -1], np.int64), np.array([0, -1], np.int64)
    words = apply("random_bits", seed, counter)
    both = apply("random_bits64", seed, counter).view(np.uint32).reshape(-1, 2)
    assert words[0] == 0x6627E8D5
    assert both[0].tolist() == [0x6627E8D5, 0xE169C58D]
    assert both[1, 0] == words[1] == _philox(0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF)[0]


def _philox(seed: int, counter: int) -> list[int]:
    key, c = [seed & 0xFFFFFFFF, seed >> 32], [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(b >> 32) ^ c[1] ^ key[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_undefined_combinations_are_refused_with_what_is_defined() -> None:
    k = KernelBuilder()
    x = k.load(k.buffer("x", "int32"))
    with pytest.raises(KernelError, match="map exp is not defined for"):
        k.map("exp", x)
    with pytest.raises(KernelError, match="no such primitive"):
        k.map("frobnicate", x)
    with pytest.raises(KernelError, match="arguments of one dtype"):
        k.map("add", x, k.load(k.buffer("y", "float32")))
