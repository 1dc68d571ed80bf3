"""Discrete Fourier transforms without normalisation, so that each one's gradient is another of them."""

from __future__ import annotations

import numpy as np

from ...base import dtypes
from ...base.errors import ShapeError
from ...base.lazy import scipy_fft
from ...ir.builder import Type
from ...ir.program import Op, Value
from .core import Array, Gradients, append, gradient_of, primitive, require_kind
from .maps import bitwise_or, eq, make_complex, mul, real, select
from .moves import pad
from .views import full, iota


def _infer_c2c(op: Op) -> list[Type]:
    x = op.inputs[0]
    if require_kind(op, "fc", x.dtype) in ("float16", "bfloat16"):
        raise ShapeError(f"fft_c2c: {x.dtype} has no transform; cast to float32 first")
    return [(dtypes.complex_of(x.dtype), x.shape)]


@primitive("host", _infer_c2c, name="fft_c2c")
def _c2c(x: Array, axes: tuple[int, ...], inverse: bool) -> Array:
    if not x.size:
        return x.astype(dtypes.complex_of(x.dtype.name))
    if x.dtype.kind == "f":
        return _whole(_half(x, axes, inverse), axes, x.shape[axes[-1]])
    return scipy_fft.ifftn(x, axes=axes, norm="forward") if inverse else scipy_fft.fftn(x, axes=axes)


def _half(x: Array, axes: tuple[int, ...], inverse: bool) -> Array:
    """The first N // 2 + 1 terms along the last of the axes, of a real x."""
    return scipy_fft.ihfftn(x, axes=axes, norm="forward") if inverse else scipy_fft.rfftn(x, axes=axes)


def _whole(half: Array, axes: tuple[int, ...], n: int) -> Array:
    """All n terms along the last axis: those after the half are the conjugates of those at the negative places of every axis.

    SciPy's own filling also conjugates the terms that stand alone, which gives real ones an imaginary part of -0.
    """
    last = axes[-1]
    rest = half.take(range(n - half.shape[last], 0, -1), last)
    for axis in axes[:-1]:
        rest = np.roll(np.flip(rest, axis), 1, axis)
    return np.concatenate([half, rest.conj()], last)


def fft_c2c(x: Value, axes: tuple[int, ...], inverse: bool) -> Value:
    """sum x[n] exp(-2 pi i k n / N) over the axes; with + for the inverse.

    A real x costs half of a complex one; half of the terms along the last axis are the conjugates of the others, to the last bit.
    """
    if not axes:
        return x if dtypes.is_complex(x.dtype) else make_complex(x, mul(x, 0))
    return append("fft_c2c", x, axes=tuple(axes), inverse=inverse)


@gradient_of("fft_c2c")
def _c2c_gradient(op: Op, g: Value) -> Gradients:
    back = fft_c2c(g, op.attributes["axes"], not op.attributes["inverse"])
    return (back if dtypes.is_complex(op.inputs[0].dtype) else real(back),)


def _no_terms(x: Array, axis: int, n: int, dtype: str) -> Array:
    return np.zeros([n if k == axis else size for k, size in enumerate(x.shape)], dtype)


def _infer_r2c(op: Op) -> list[Type]:
    x, axis = op.inputs[0], op.attributes["axis"]
    if require_kind(op, "f", x.dtype) not in ("float32", "float64"):
        raise ShapeError(f"fft_r2c: {x.dtype} has no transform; cast to float32 first")
    return [(dtypes.complex_of(x.dtype), (*x.shape[:axis], x.shape[axis] // 2 + 1, *x.shape[axis + 1 :]))]


@primitive("host", _infer_r2c, name="fft_r2c")
def _r2c(x: Array, axis: int, inverse: bool) -> Array:
    if not x.size:
        return _no_terms(x, axis, x.shape[axis] // 2 + 1, dtypes.complex_of(x.dtype.name))
    return _half(x, (axis,), inverse)


def fft_r2c(x: Value, axis: int, inverse: bool = False) -> Value:
    """The first N // 2 + 1 terms of a real x's transform along the axis; inverse: with + in the exponent."""
    return append("fft_r2c", x, axis=axis, inverse=inverse)


@gradient_of("fft_r2c")
def _r2c_gradient(op: Op, g: Value) -> Gradients:
    x, axis = op.inputs[0], op.attributes["axis"]
    high = tuple(x.shape[axis] - g.shape[axis] if k == axis else 0 for k in range(x.ndim))
    return (real(fft_c2c(pad(g, (0,) * x.ndim, high), (axis,), not op.attributes["inverse"])),)


def _infer_c2r(op: Op) -> list[Type]:
    x, axis, n = op.inputs[0], op.attributes["axis"], op.attributes["n"]
    require_kind(op, "c", x.dtype)
    if x.shape[axis] != n // 2 + 1:
        raise ShapeError(f"fft_c2r: {x.shape[axis]} terms do not give {n} numbers")
    return [(dtypes.real_of(x.dtype), (*x.shape[:axis], n, *x.shape[axis + 1 :]))]


@primitive("host", _infer_c2r, name="fft_c2r")
def _c2r(x: Array, axis: int, n: int) -> Array:
    return scipy_fft.irfft(x, n, axis=axis, norm="forward") if x.size else _no_terms(x, axis, n, dtypes.real_of(x.dtype.name))


def fft_c2r(x: Value, axis: int, n: int) -> Value:
    """The N real numbers whose transform begins with x: the inverse of fft_r2c, times N."""
    return append("fft_c2r", x, axis=axis, n=n)


@gradient_of("fft_c2r")
def _c2r_gradient(op: Op, g: Value) -> Gradients:
    x, axis, n = op.inputs[0], op.attributes["axis"], op.attributes["n"]
    place = iota(x.shape, axis)
    return (_weighted(fft_r2c(g, axis), place, n),)


def _weighted(x: Value, place: Value, n: int) -> Value:
    """Twice the terms that stand for two: all but the first and, of an even N, the last."""
    alone = eq(place, 0)
    if n % 2 == 0:
        alone = bitwise_or(alone, eq(place, n // 2))
    weight = select(alone, full(x.shape, 1, dtypes.real_of(x.dtype)), 2)
    return mul(x, make_complex(weight, mul(weight, 0)))


__all__ = ["fft_c2c", "fft_c2r", "fft_r2c"]
