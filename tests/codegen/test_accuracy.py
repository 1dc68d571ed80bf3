"""Errors of transcendentals in units in the last place: special points against mpmath, many random ones against wider floats."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
import scipy.special
from codegen.kernel_checks import apply

from sampan.codegen.mathlib import OPS

Wide = Callable[[np.ndarray], np.ndarray]

# name: (function on wider floats, the range of dense points, the largest error allowed in float32 and in float64)
FUNCTIONS: dict[str, tuple[Wide, float, float, float, float]] = {
    "exp": (np.exp, -110, 95, 1.1, 1.1),
    "exp2": (np.exp2, -150, 130, 1.2, 1.2),
    "expm1": (np.expm1, -20, 90, 1.5, 1.5),
    "log": (np.log, 0, 1e3, 1.0, 1.0),
    "log2": (np.log2, 0.3, 3, 1.2, 2.0),
    "log10": (np.log10, 0.3, 3, 1.2, 2.0),
    "log1p": (np.log1p, -1, 3, 1.6, 1.6),
    "tanh": (np.tanh, -10, 10, 1.8, 2.0),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -110, 20, 2.0, 2.0),
    "sin": (np.sin, -3e4, 3e4, 1.6, 1.2),
    "cos": (np.cos, -3e4, 3e4, 1.6, 1.2),
    "sinh": (np.sinh, -90, 90, 2.0, 2.0),
    "cosh": (np.cosh, -90, 90, 1.5, 1.5),
    "asinh": (np.arcsinh, -5, 5, 2.0, 2.0),
    "acosh": (np.arccosh, 0.5, 5, 2.0, 2.0),
    "atanh": (np.arctanh, -1, 1, 2.0, 2.0),
    "sqrt": (np.sqrt, 0, 5, 0.5, 0.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 5, 1.5, 1.5),
    "tan": (np.tan, -100, 100, 0.6, 2.0),
    "asin": (np.arcsin, -1, 1, 0.6, 1.0),
    "atan": (np.arctan, -9, 9, 0.6, 1.0),
}


def _points(dtype: type, low: float, high: float) -> np.ndarray:
    info, rng = np.finfo(dtype), np.random.default_rng(7)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        info.tiny,
        -info.tiny,
        info.smallest_subnormal,
        -info.smallest_subnormal,
        info.max,
        -info.max,
        1,
        -1,
        0.5,
        -0.5,
        2,
        -2,
        info.eps,
        -info.eps,
        1 - info.eps / 2,
        1 + info.eps,
        np.pi,
        np.e,
    ]
    any_bits = np.frombuffer(rng.bytes(40000 * np.dtype(dtype).itemsize), dtype)
    dense = [rng.uniform(low, high, 60000), rng.standard_normal(60000), rng.standard_normal(20000) * 1e-3]
    dense.append(rng.choice([-1, 1], 60000) * np.exp(rng.uniform(-8, 2, 60000)))
    return np.concatenate([np.array(special, dtype), any_bits, *(d.astype(dtype) for d in dense)])


def _errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distances in units of the last place of the rounded result; 0 for equal infinities and NaN on both sides."""
    info, rounded = np.finfo(got.dtype), want.astype(got.dtype)
    unit = np.spacing(np.maximum(np.abs(rounded), info.tiny))
    distance = np.abs(got.astype(np.longdouble) - want) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    distance = np.where(same & ~np.isfinite(distance), 0, distance)
    return np.where(np.isnan(distance), np.inf, distance)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_within_its_bound(name: str, dtype: type) -> None:
    function, low, high, bound32, bound64 = FUNCTIONS[name]
    scale = 7.8 if dtype is np.float64 and name in ("exp", "expm1", "sinh", "cosh") else 1.0
    x = _points(dtype, low * scale, high * scale)
    got = apply(name, x)
    want = function(x.astype(np.longdouble))
    error = _errors(got, want)
    worst = int(error.argmax())
    assert error[worst] <= (bound32 if dtype is np.float32 else bound64), (x[worst], got[worst], want[worst])
    zeros = (got == 0) & (want == 0)
    if name not in ("log", "log2", "log10", "exp", "exp2", "sigmoid", "acosh"):
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [name for name, kinds in sorted(OPS.items()) if "f" in kinds and kinds["f"].usual])
def test_a_result_does_not_depend_on_its_neighbours(name: str, dtype: type) -> None:
    x = np.random.default_rng(5).uniform(0.01, 80, 4096).astype(dtype)
    x[::2] *= 1 if name == "log" else -1
    alone = apply(name, x)
    for unusual in (np.inf, np.nan, -1e30, np.finfo(dtype).smallest_subnormal, 100 if dtype is np.float32 else 740, 0):
        mixed = np.stack([x, np.full_like(x, unusual)], axis=1).ravel()
        np.testing.assert_array_equal(apply(name, mixed)[::2], alone)
        mixed = np.concatenate([x[:37], np.full(1, unusual, dtype), x[37:]])
        np.testing.assert_array_equal(np.delete(apply(name, mixed), 37), alone)


@pytest.mark.parametrize("name", ["erf", "erfc", "lgamma", "digamma", "erfinv"])
def test_special_functions_of_float32_are_within_2_ulp(name: str) -> None:
    low, high = {"erf": (-4.5, 4.5), "erfc": (-4, 9), "lgamma": (0.01, 50), "digamma": (0.01, 50), "erfinv": (-1, 1)}[name]
    x = np.random.default_rng(3).uniform(low, high, 60000).astype(np.float32)
    function = {
        "erf": scipy.special.erf,
        "erfc": scipy.special.erfc,
        "lgamma": scipy.special.gammaln,
        "digamma": scipy.special.digamma,
        "erfinv": scipy.special.erfinv,
    }[name]
    assert _errors(apply(name, x), function(x.astype(np.float64)).astype(np.longdouble)).max() <= 2.0


def test_gelu_of_float32_is_near_and_keeps_digits_in_the_tail() -> None:
    x = np.concatenate(
        [np.random.default_rng(3).uniform(-12, 12, 200000), np.random.default_rng(3).normal(size=50000) * 1e-3]
    ).astype(np.float32)
    want = x.astype(np.float64) * scipy.special.ndtr(x.astype(np.float64))
    got = apply("gelu", x)
    errors = _errors(got, want.astype(np.longdouble))
    assert errors[x >= 0].max() <= 5.0
    assert errors[(x > -1) & (x < 0)].max() <= 6.0
    tail = (x <= -1) & (x > -4)
    assert (np.abs(got - want)[tail] / np.abs(want[tail])).max() <= 3e-5
    assert np.abs(got - want)[x <= -4].max() <= 3e-8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu_of_special_values(dtype: type) -> None:
    top, small = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    got = apply("gelu", np.array([0.0, -0.0, np.inf, -np.inf, np.nan, top, -top, 40.0, -40.0, 4 * small, -4 * small], dtype))
    np.testing.assert_array_equal(
        got, np.array([0.0, -0.0, np.inf, 0.0, np.nan, top, 0.0, 40.0, 0.0, 2 * small, -2 * small], dtype)
    )
    assert np.signbit(got[:2]).tolist() == [False, True]


def test_slope_of_gelu_is_within_two_units_of_one() -> None:
    x = np.random.default_rng(4).uniform(-14, 14, 60000)
    for dtype, unit in ((np.float32, 2.0**-23), (np.float64, 2.0**-52)):
        given = x.astype(dtype)
        wide = given.astype(np.longdouble)
        want = scipy.special.ndtr(given.astype(np.float64)) + wide * np.exp(wide * wide * -0.5) / np.sqrt(2 * np.pi)
        assert np.abs(apply("gelu_slope", given) - want).max() <= 2 * unit
    ends = apply("gelu_slope", np.array([0.0, np.inf, -np.inf, np.nan], np.float32))
    np.testing.assert_array_equal(ends, np.array([0.5, 1.0, 0.0, np.nan], np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact_for_short_and_long_quotients(dtype: type) -> None:
    rng, info = np.random.default_rng(8), np.finfo(dtype)
    special = np.array(
        [0.0, -0.0, 1, -1, 3, -3, 0.1, 1e7, -1e30, info.tiny, info.smallest_subnormal, info.max, np.inf, -np.inf, np.nan]
    )
    a, b = (v.ravel() for v in np.meshgrid(special.astype(dtype), special.astype(dtype)))
    whole = rng.integers(-1000, 1000, 3000)
    b = np.concatenate([b, rng.standard_normal(3000), rng.standard_normal(3000)]).astype(dtype)
    a = np.concatenate([a, whole * b[-6000:-3000], rng.standard_normal(3000) * 10 ** rng.uniform(0, 12, 3000)]).astype(dtype)
    with np.errstate(all="ignore"):
        want = np.fmod(a, b)
        moved = want + b
        want = np.where((want != 0) & np.isfinite(want) & (np.signbit(want) != np.signbit(b)), moved, want)
    got = apply("mod", a, b)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "name", ["exp", "log", "log1p", "expm1", "tanh", "sin", "cos", "erf", "sinh", "cosh", "asinh", "atanh", "digamma"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_points_agree_with_mpmath(name: str, dtype: type) -> None:
    x = np.array([1e-30, -1e-30, 1e-5, -1e-5, 0.1, -0.1, 0.4999, 0.5, 0.71, 0.9999, -0.9999, 0.26, -0.34657, 0.34658], dtype)
    exact = {"log1p": mpmath.log1p, "expm1": mpmath.expm1, "digamma": mpmath.digamma, "log": mpmath.log}.get(name) or getattr(
        mpmath, name
    )
    with mpmath.workdps(40):
        if name == "log":
            x = np.abs(x)
        want = np.array([np.longdouble(mpmath.nstr(exact(mpmath.mpf(float(v))), 25)) for v in x])
    assert _errors(apply(name, x), want).max() <= (4.0 if name == "digamma" else 2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_huge_arguments_are_reduced_exactly(name: str, dtype: type) -> None:
    x = np.array([1e5, 3.3e7, -1e10, 1e20, 6.02e23, 3e38, 22.0, 355.0, -0.0, 1e22], dtype)
    with mpmath.workdps(80):
        want = np.array([np.longdouble(mpmath.nstr(getattr(mpmath, name)(mpmath.mpf(float(v))), 25)) for v in x])
    assert _errors(apply(name, x), want).max() <= 1.6


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_pow_of_float32_is_within_one_ulp_and_follows_c_at_special_points() -> None:
    rng = np.random.default_rng(5)
    special = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan, 1e-45, 3e38], np.float32)
    a, b = (v.ravel() for v in np.meshgrid(special, special))
    x = np.concatenate([a, rng.uniform(0, 20, 50000).astype(np.float32)])
    y = np.concatenate([b, rng.uniform(-20, 20, 50000).astype(np.float32)])
    got, want = apply("pow", x, y), np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    assert _errors(got, want).max() <= 1.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("without", [("avx",), ("fma",), ("avx2",)])
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sin", "sigmoid"])
def test_lower_instruction_sets_stay_accurate(name: str, without: tuple[str, ...]) -> None:
    x = np.abs(np.random.default_rng(1).standard_normal(20000)).astype(np.float32)
    function = scipy.special.erf if name == "erf" else FUNCTIONS[name][0]
    assert _errors(apply(name, x, without=without), function(x.astype(np.float64)).astype(np.longdouble)).max() <= 3.0
