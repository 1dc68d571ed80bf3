"""Resizing of spatial axes: nearest, linear and cubic interpolation, one axis after another.

Source: R. Keys, "Cubic convolution interpolation for digital image processing", 1981 (the cubic kernel, with a = -0.75).
"""

from __future__ import annotations

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, message
from . import primitives as p
from .define import op
from .samples import real

_CUBIC = -0.75


def _positions(size, length, ratio, align_corners, is_half_pixel):
    """Where each of ``length`` results lies on an axis of ``size``, in float64."""
    k = p.iota((length,), 0, "float64")
    if align_corners:
        return p.mul(k, (size - 1) / (length - 1) if length > 1 else 0.0)
    return p.sub(p.mul(p.add(k, 0.5), ratio), 0.5) if is_half_pixel else p.mul(k, ratio)


def _along(weight, x, axis):
    """A vector of weights as long as ``axis``, broadcast over x."""
    shape = tuple(x.shape[k] if k == axis else 1 for k in range(x.ndim))
    return p.broadcast_to(p.reshape(p.cast(weight, x.dtype), shape), x.shape)


def _nearest(x, axis, length, ratio):
    size = x.shape[axis]
    index = p.floor(
        p.add(p.mul(p.iota((length,), 0, "float64"), ratio), 1e-9)
    )  # a product just below an integer means that integer
    return p.gather(x, p.cast(p.minimum(index, float(size - 1)), "int64"), axis)


def _linear(x, axis, length, ratio, align_corners, align_mode):
    size = x.shape[axis]
    place = p.minimum(p.maximum(_positions(size, length, ratio, align_corners, align_mode == 0), 0.0), float(size - 1))
    low = p.floor(place)
    weight = p.sub(place, low)
    first = p.gather(x, p.cast(low, "int64"), axis)
    second = p.gather(x, p.cast(p.minimum(p.add(low, 1.0), float(size - 1)), "int64"), axis)
    share = _along(weight, first, axis)
    return p.add(p.mul(first, p.sub(1.0, share)), p.mul(second, share))


def _near(t):
    """The cubic kernel at distances up to 1."""
    return p.add(p.mul(p.mul(p.sub(p.mul(t, _CUBIC + 2), _CUBIC + 3), t), t), 1.0)


def _far(t):
    """The cubic kernel at distances from 1 to 2."""
    return p.sub(p.mul(p.add(p.mul(p.sub(p.mul(t, _CUBIC), 5 * _CUBIC), t), 8 * _CUBIC), t), 4 * _CUBIC)


def _cubic(x, axis, length, ratio, align_corners):
    size = x.shape[axis]
    place = _positions(size, length, ratio, align_corners, True)
    low = p.floor(place)
    t = p.sub(place, low)
    weights = (_far(p.add(t, 1.0)), _near(t), _near(p.sub(1.0, t)), _far(p.sub(2.0, t)))
    total = None
    for k, weight in enumerate(weights):
        index = p.minimum(p.maximum(p.add(low, float(k - 1)), 0.0), float(size - 1))
        taken = p.gather(x, p.cast(index, "int64"), axis)
        part = p.mul(taken, _along(weight, taken, axis))
        total = part if total is None else p.add(total, part)
    return total


def _linear_reference(x, sizes, ratios, mode, align_corners=False, align_mode=0):
    for axis, (length, ratio) in enumerate(zip(sizes, ratios, strict=True), 2):
        size, k = x.shape[axis], np.arange(length)
        place = k * (size - 1) / max(length - 1, 1) if align_corners else (k + 0.5) * ratio - 0.5
        low = np.clip(place, 0, size - 1).astype(int)
        share = np.clip(place, 0, size - 1) - low
        shape = [-1 if a == axis else 1 for a in range(x.ndim)]
        first, second = np.take(x, low, axis), np.take(x, np.minimum(low + 1, size - 1), axis)
        x = first * (1 - share).reshape(shape) + second * share.reshape(shape)
    return x


@op(
    operands=("x",),
    reference=_linear_reference,
    samples=[(real(2, 3, 4, 5), (7, 3), (4 / 7, 5 / 3), "linear"), (real(1, 2, 5), (9,), (5 / 9,), "linear", True)],
    tests="noempty noscalar",
    tolerance=3,
)
def resize(x, sizes, ratios, mode, align_corners=False, align_mode=0):
    """x [N, C, ...] with spatial axes of these sizes.

    ratios: how far apart neighbours of the result lie in x. mode: nearest, linear or cubic. align_corners: the ends of both stay together.
    align_mode 1: pixels are points at their index, 0: squares with their centre half a pixel further.
    """
    if mode not in ("nearest", "linear", "cubic"):
        raise ArgumentError(message(f"resize(): mode={mode!r}", "it must be 'nearest', 'linear' or 'cubic'"))
    y = p.cast(x, "float32") if dtypes.itemsize(x.dtype) == 2 and mode != "nearest" else x
    for axis, (length, ratio) in enumerate(zip(sizes, ratios, strict=True), 2):
        if length == y.shape[axis] and (align_corners or ratio == 1.0):
            continue
        if mode == "nearest":
            y = _nearest(y, axis, length, ratio)
        elif mode == "linear":
            y = _linear(y, axis, length, ratio, align_corners, align_mode)
        else:
            y = _cubic(y, axis, length, ratio, align_corners)
    return p.cast(y, x.dtype)
