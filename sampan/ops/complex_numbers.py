"""Complex numbers: their parts, and making them."""

from __future__ import annotations

import numpy as np

from ..base import dtypes
from ..base.errors import DTypeError, ShapeError, message
from . import primitives as p
from .arguments import floating
from .define import op
from .elementwise import matched_floating
from .samples import real, values


@op("real", method=True, reference=np.real, samples=[(real(3, 4),)])
def real_op(x):
    """The real part; real tensors as they are."""
    return p.real(x)


@op("imag", method=True, reference=np.imag, samples=[(real(3, 4),)])
def imag(x):
    """The imaginary part; zeros of real tensors."""
    return p.imag(x)


@op("conj", method=True, reference=np.conj, samples=[(real(3, 4),)])
def conj(x):
    """The complex conjugate; real tensors as they are."""
    return p.conj(x) if dtypes.is_complex(x.dtype) else x


@op("angle", method=True, reference=np.angle, samples=[(real(3, 4),), (values(-1.0, 0.5, np.nan),)])
def angle(x):
    """The angle in radians, in (-pi, pi]; of real numbers 0, or pi where negative."""
    return p.angle(floating(x))


@op("complex", method=False, reference=lambda a, b: a + 1j * b, samples=[(real(3, 4), real(3, 4)), (real(3, 1), real(4))])
def complex_op(real, imag):
    """real + i * imag, with broadcasting; complex64, or complex128 from float64."""
    return p.make_complex(*_parts("complex", real, imag))


def _parts(name, a, b):
    a, b = matched_floating(a, b)
    if dtypes.is_complex(a.dtype):
        raise DTypeError(message(f"{name}(): an operand is {a.dtype}", "both must be real"))
    wide = "float64" if a.dtype == "float64" else "float32"
    return p.cast(a, wide), p.cast(b, wide)


@op(
    "polar",
    method=False,
    reference=lambda r, t: r * np.exp(1j * t),
    samples=[(real(3, 4, low=0), real(3, 4)), (real(3, 1, low=0), real(4))],
)
def polar(abs, angle):
    """abs * (cos(angle) + i * sin(angle)), with broadcasting."""
    size, angle = _parts("polar", abs, angle)
    return p.make_complex(p.mul(size, p.cos(angle)), p.mul(size, p.sin(angle)))


@op(
    ["as_complex", "view_as_complex"],
    method=("as_complex", "view_as_complex"),
    reference=lambda x: x[..., 0] + 1j * x[..., 1],
    samples=[(real(3, 4, 2),), (real(2),)],
)
def as_complex(x):
    """[..., 2] real to [...] complex: the last axis holds the parts."""
    if not x.ndim or x.shape[-1] != 2:
        raise ShapeError(f"as_complex(): x is {list(x.shape)}; its last axis must hold 2 parts")
    shape = (*x.shape[:-1], 1)

    def part(k):
        return p.reshape(p.slice_(x, (*(0 for _ in shape[1:]), k), shape, (1,) * x.ndim), x.shape[:-1])

    return p.make_complex(*_parts("as_complex", part(0), part(1)))


@op(
    ["as_real", "view_as_real"],
    method=("as_real", "view_as_real"),
    reference=lambda x: np.stack([x.real, x.imag], -1),
    samples=[(values(1 + 2j, 3 - 1j, dtype="complex64"),), (values([[1j, 2.0]], dtype="complex128"),)],
    tests="noempty noscalar noshape",
)
def as_real(x):
    """[...] complex to [..., 2] real: the parts along a new last axis."""
    if not dtypes.is_complex(x.dtype):
        raise DTypeError(message(f"as_real() does not take {x.dtype}", "it takes complex types"))
    return p.concat([p.reshape(part, (*x.shape, 1)) for part in (p.real(x), p.imag(x))], x.ndim)
