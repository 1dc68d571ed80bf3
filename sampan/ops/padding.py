"""Padding in every mode: constant, and by what stands inside (reflect, replicate, circular)."""

from __future__ import annotations

import numpy as np

from ..base.errors import ArgumentError, ShapeError, message
from . import primitives as p
from .define import op
from .samples import real

MODES = ("constant", "reflect", "replicate", "circular")


def _source(position, size, mode):
    """The index inside the axis that the position, negative or beyond its end, reads."""
    if mode == "replicate":
        return p.minimum(p.maximum(position, 0), size - 1)
    if mode == "circular":
        return p.mod(position, size)
    period = max(2 * (size - 1), 1)
    folded = p.mod(position, period)
    return p.minimum(folded, p.sub(period, folded)) if size > 1 else p.mul(folded, 0)


def _check_widths(x, low, high, mode):
    for axis, (n, a, b) in enumerate(zip(x.shape, low, high, strict=True)):
        if n + a + b < 0:
            raise ShapeError(message(f"pad(): axis {axis} of {list(x.shape)} cannot be cut by {[a, b]}", "nothing would be left"))
        if mode == "constant" or (not a and not b):
            continue
        limit = n - 1 if mode == "reflect" else n
        if n == 0 or (mode != "replicate" and max(a, b) > limit):
            raise ShapeError(
                message(
                    f"pad(): widths {[a, b]} of axis {axis}, which has {n} elements",
                    f"mode {mode!r} takes at most {max(limit, 0)}",
                    "pad by less, or use mode='replicate'",
                )
            )


def _reference(x, low, high, mode="constant", value=0.0):
    words = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    extra = {"constant_values": value} if mode == "constant" else {}
    return np.pad(x, list(zip(low, high, strict=True)), words[mode], **extra)


@op(
    operands=("x",),
    reference=_reference,
    samples=[
        (real(2, 3), (1, 0), (0, 2), "constant", 1.5),
        (real(4, 5), (0, 3), (2, 1), "reflect"),
        (real(3, 2), (4, 0), (1, 2), "replicate"),
        (real(5, 4), (3, 4), (0, 1), "circular"),
    ],
    tests="noempty noscalar",
)
def pad_axes(x, low, high, mode="constant", value=0.0):
    """x with ``low`` elements before and ``high`` after it along every axis; negative widths of a constant padding cut."""
    if mode not in MODES:
        raise ArgumentError(message(f"pad(): mode={mode!r}", f"it must be one of {', '.join(MODES)}"))
    _check_widths(x, low, high, mode)
    if mode == "constant":
        starts = tuple(max(-a, 0) for a in low)
        sizes = tuple(n + min(a, 0) + min(b, 0) for n, a, b in zip(x.shape, low, high, strict=True))
        kept = p.slice_(x, starts, sizes, (1,) * x.ndim)
        return p.pad(kept, tuple(max(a, 0) for a in low), tuple(max(b, 0) for b in high), value)
    for axis, (a, b) in enumerate(zip(low, high, strict=True)):
        if a or b:
            position = p.sub(p.iota((x.shape[axis] + a + b,), 0), a)
            x = p.gather(x, _source(position, x.shape[axis], mode), axis)
    return x
