"""Comparisons, tests of numbers, logical and bitwise operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import dtypes
from ..ir.program import Value
from . import primitives as p
from .arguments import matched
from .define import OpDef, op
from .elementwise import PAIRS, SPECIAL
from .samples import boolean, integer, real, values


def _comparison(names: str, primitive: Callable[..., Value], text: str, reference: Any, inplace: str = "") -> OpDef:
    first, *others = names.split()

    def body(x, y):
        return primitive(*matched(x, y))

    body.__name__, body.__doc__ = first, text
    near = (real(3, 4, low=-2, high=3), real(3, 4, low=-2, high=3))
    return op(
        [first, *others],
        method=(first, *others),
        inplace=tuple(inplace.split()),
        reference=reference,
        samples=[near, *PAIRS[1:], SPECIAL],
        tests="nograd",
    )(body)


equal = _comparison("equal eq", p.eq, "Whether x == y, elementwise; NaN equals nothing.", np.equal, "equal_")
not_equal = _comparison("not_equal ne", p.ne, "Whether x != y, elementwise.", np.not_equal, "not_equal_")
less_than = _comparison("less_than less lt", p.lt, "Whether x < y, elementwise.", np.less, "less_than_ less_")
less_equal = _comparison("less_equal le", p.le, "Whether x <= y, elementwise.", np.less_equal, "less_equal_")
greater_than = _comparison("greater_than greater gt", p.gt, "Whether x > y, elementwise.", np.greater, "greater_than_")
greater_equal = _comparison("greater_equal ge", p.ge, "Whether x >= y, elementwise.", np.greater_equal, "greater_equal_")


def truth(x: Value) -> Value:
    """x as bool: whether it is not zero."""
    return x if x.dtype == "bool" else p.ne(x, 0)


def _logical(name: str, primitive: Callable[..., Value], text: str, reference: Any) -> OpDef:
    def body(x, y):
        return primitive(*matched(truth(x), truth(y)))

    body.__name__, body.__doc__ = name, text
    return op(
        name,
        method=True,
        inplace=True,
        reference=reference,
        samples=[(real(3, 4, low=-1, high=2), real(4, low=-1, high=2)), (boolean(3), boolean(2, 3)), SPECIAL],
        tests="nograd",
    )(body)


logical_and = _logical("logical_and", p.bitwise_and, "Whether both are not zero.", np.logical_and)
logical_or = _logical("logical_or", p.bitwise_or, "Whether one at least is not zero.", np.logical_or)
logical_xor = _logical("logical_xor", p.bitwise_xor, "Whether exactly one is not zero.", np.logical_xor)


@op(
    "logical_not",
    method=True,
    inplace=True,
    reference=np.logical_not,
    samples=[(real(3, 4, low=-1, high=2),), (boolean(3),)],
    tests="nograd",
)
def logical_not(x):
    """Whether x is zero."""
    return p.bitwise_not(truth(x))


_BITS = [
    (integer(3, 4, low=-9, high=9), integer(4, low=-9, high=9)),
    (integer(3, dtype="uint8"), integer(2, 1, dtype="uint8")),
    (boolean(3), boolean(3)),
    (integer(3, dtype="int32"), 5),
]


def _bitwise(name: str, primitive: Callable[..., Value], text: str, reference: Any) -> OpDef:
    def body(x, y):
        return primitive(*matched(x, y))

    body.__name__, body.__doc__ = name, text
    return op(name, method=True, inplace=True, reference=reference, samples=_BITS, takes_positional_out=True)(body)


bitwise_and = _bitwise("bitwise_and", p.bitwise_and, "The bits set in both; integers and bool.", np.bitwise_and)
bitwise_or = _bitwise("bitwise_or", p.bitwise_or, "The bits set in one at least; integers and bool.", np.bitwise_or)
bitwise_xor = _bitwise("bitwise_xor", p.bitwise_xor, "The bits set in exactly one; integers and bool.", np.bitwise_xor)


@op(
    ["bitwise_not", "bitwise_invert"],
    method=("bitwise_not", "bitwise_invert"),
    inplace=("bitwise_not_", "bitwise_invert_"),
    reference=np.invert,
    samples=[(b,) for b, _ in _BITS],
    takes_positional_out=True,
)
def bitwise_not(x):
    """x with every bit flipped; the logical not of bool."""
    return p.bitwise_not(x)


_SHIFTS = [
    (integer(3, 4, low=-99, high=99), integer(4, low=0, high=5)),
    (integer(3, low=-99, high=99, dtype="int32"), 2),
    (integer(3, low=0, high=200, dtype="uint8"), integer(3, dtype="uint8")),
]


@op(
    "bitwise_left_shift",
    operands=("x", "y"),
    method=True,
    inplace=True,
    reference=lambda x, y, is_arithmetic=True: np.left_shift(x, y),
    samples=_SHIFTS,
    takes_positional_out=True,
)
def bitwise_left_shift(x, y, is_arithmetic=True):
    """x * 2 ** y, wrapping; 0 where y is negative or not less than the width."""
    return p.shift_left(*matched(x, y))


def _right_shift(x, y, is_arithmetic=True):
    if is_arithmetic:
        return np.right_shift(x, y)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return np.right_shift(x.astype(unsigned), np.asarray(y).astype(unsigned)).astype(x.dtype)


@op(
    "bitwise_right_shift",
    operands=("x", "y"),
    method=True,
    inplace=True,
    reference=_right_shift,
    samples=[*_SHIFTS, (*_SHIFTS[0], False), (values(-8, -8, 5), values(0, 1, 1), False)],
    takes_positional_out=True,
)
def bitwise_right_shift(x, y, is_arithmetic=True):
    """floor(x / 2 ** y). ``is_arithmetic=False`` shifts zeros in where a negative x would keep its sign."""
    x, y = matched(x, y)
    shifted = p.shift_right(x, y)
    if is_arithmetic or dtypes.kind(x.dtype) == "u":
        return shifted
    width = dtypes.itemsize(x.dtype) * 8
    high_bits = p.shift_left(p.full(x.shape, -1, x.dtype), p.sub(width, y))
    return p.bitwise_and(shifted, p.bitwise_not(high_bits))


def _test(name: str, function: Callable[[Value], Value], text: str, reference: Any) -> OpDef:
    def body(x):
        return function(x)

    body.__name__, body.__doc__ = name, text
    return op(name, method=True, reference=reference, samples=[(real(3, 4),), SPECIAL[:1], (real(),)], tests="nograd")(body)


def _infinite(sign_test: Callable[..., Value]) -> Callable[[Value], Value]:
    return lambda x: p.bitwise_and(p.isinf(x), sign_test(x, 0))


isnan = _test("isnan", p.isnan, "Whether x is NaN.", np.isnan)
isinf = _test("isinf", p.isinf, "Whether x is infinite, of either sign.", np.isinf)
isfinite = _test("isfinite", p.isfinite, "Whether x is neither NaN nor infinite.", np.isfinite)
isposinf = _test("isposinf", _infinite(p.gt), "Whether x is +inf.", np.isposinf)
isneginf = _test("isneginf", _infinite(p.lt), "Whether x is -inf.", np.isneginf)
isreal = _test(
    "isreal",
    lambda x: p.eq(p.imag(x), 0) if dtypes.is_complex(x.dtype) else p.full(x.shape, True, "bool"),
    "Whether x has no imaginary part.",
    np.isreal,
)


def _close(x: Value, y: Value, rtol: float, atol: float, equal_nan: bool) -> Value:
    x, y = matched(x, y)
    same = p.eq(x, y)
    if not dtypes.is_differentiable(x.dtype):
        x, y = p.cast(x, "float64"), p.cast(y, "float64")
    distance = p.abs(p.sub(x, y))
    near = p.bitwise_and(p.isfinite(distance), p.le(distance, p.add(p.mul(p.abs(y), rtol), atol)))
    close = p.bitwise_or(same, near)
    return p.bitwise_or(close, p.bitwise_and(p.isnan(x), p.isnan(y))) if equal_nan else close


_NEAR = (values(1.0, 1.0, np.inf, np.nan, 1000.0), values(1.0 + 1e-9, 1.1, np.inf, np.nan, 1000.001))


@op(
    "isclose",
    operands=("x", "y"),
    method=True,
    reference=np.isclose,
    samples=[(*_NEAR, {"equal_nan": True}), _NEAR, (real(3, 4), real(4), 0.5, 0.5)],
    tests="nograd",
)
def isclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether |x - y| <= atol + rtol * |y|, elementwise; equal infinities are close, NaNs with ``equal_nan``."""
    return _close(x, y, float(rtol), float(atol), equal_nan)


@op(
    "allclose",
    operands=("x", "y"),
    method=True,
    reference=lambda *a, **k: np.asarray(np.allclose(*a, **k)),
    samples=[(*_NEAR, {"equal_nan": True}), (real(3, 4), real(4)), (real(3), real(3), 5.0, 5.0)],
    tests="nograd",
)
def allclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether x and y are close everywhere, as a 0-D bool: see isclose."""
    close = _close(x, y, float(rtol), float(atol), equal_nan)
    return p.reshape(p.reduce_all(close, tuple(range(close.ndim))), ())


@op(
    "equal_all",
    method=True,
    reference=lambda x, y: np.asarray(np.array_equal(x, y)),
    samples=[(real(3, 4), real(3, 4)), (boolean(3), boolean(2))],
    tests="nograd",
)
def equal_all(x, y):
    """Whether x and y have one shape and equal elements, as a 0-D bool."""
    if x.shape != y.shape:
        return p.full((), False, "bool")
    same = p.eq(*matched(x, y))
    return p.reshape(p.reduce_all(same, tuple(range(same.ndim))), ())


@op(
    "isin",
    operands=("x", "test_x"),
    method=True,
    reference=lambda x, t, assume_unique=False, invert=False: np.isin(x, t, invert=invert),
    samples=[(real(3, 4, low=0, high=5), real(2, 2, low=0, high=5)), (integer(5), integer(3), False, True)],
    tests="nograd",
    aliases={"elements": "x", "test_elements": "test_x"},
)
def isin(x, test_x, assume_unique=False, invert=False):
    """Whether each element of x is among those of test_x; ``invert`` answers the opposite."""
    shape = x.shape
    x, test_x = matched(p.reshape(x, (*x.shape, 1)), p.reshape(test_x, (*(1 for _ in shape), test_x.numel)))
    found = p.reshape(p.reduce_any(p.eq(x, test_x), (len(shape),)), shape)
    return p.bitwise_not(found) if invert else found
