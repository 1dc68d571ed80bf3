"""Deformable convolution: a filter whose places are shifted by offsets that data decides. https://arxiv.org/abs/1703.06211, /1811.11168"""

from __future__ import annotations

import itertools

from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from . import primitives as p
from .arguments import promoted
from .define import op
from .samples import real
from .sampling import _taken


def _pair(name, value):
    values = tuple(value) if isinstance(value, (list, tuple)) else (value, value)
    if len(values) != 2 or any(isinstance(v, bool) or not isinstance(v, int) for v in values):
        raise ArgumentTypeError(message(f"deform_conv2d(): {name}={value!r}", "it must be an integer or two"))
    return values


@op(
    "vision.ops.deform_conv2d",
    operands=("x", "offset", "weight", "bias", "mask"),
    samples=[
        (real(2, 2, 4, 5), real(2, 8, 3, 4, low=-0.8, high=0.8), real(3, 2, 2, 2)),
        (real(1, 4, 4, 4), real(1, 16, 5, 5, low=-0.8, high=0.8), real(2, 2, 2, 2), real(2), 1, 1, 1, 2, 2, real(1, 8, 5, 5)),
    ],
    tests="nograd noempty noscalar",
)
def deform_conv2d(x, offset, weight, bias=None, stride=1, padding=0, dilation=1, deformable_groups=1, groups=1, mask=None):
    """The convolution of x [N, C, H, W] by weight [O, C / groups, kh, kw] that reads each place shifted by offset, bilinearly, and weighed by mask.

    offset: [N, 2 * deformable_groups * kh * kw, H', W'], for each place of the filter how far down, then how far right.
    mask: [N, deformable_groups * kh * kw, H', W'], or None for ones. What lies outside of x is 0.
    """
    (down, right), (top, left), (dy, dx) = _pair("stride", stride), _pair("padding", padding), _pair("dilation", dilation)
    if x.ndim != 4 or weight.ndim != 4 or offset.ndim != 4 or x.shape[1] != weight.shape[1] * groups:
        raise ShapeError(
            message(
                f"deform_conv2d(): x is {list(x.shape)}, weight {list(weight.shape)}, offset {list(offset.shape)}, groups={groups}",
                "x must be [N, C, H, W] and weight [O, C / groups, kh, kw]",
            )
        )
    if x.shape[1] % deformable_groups or weight.shape[0] % groups:
        raise ArgumentError(
            message(
                f"deform_conv2d(): deformable_groups={deformable_groups}, groups={groups}",
                "channels must be a multiple of deformable_groups, filters of groups",
            )
        )
    n, c, height, width = x.shape
    filters, _, kh, kw = weight.shape
    rows = (height + 2 * top - dy * (kh - 1) - 1) // down + 1
    columns = (width + 2 * left - dx * (kw - 1) - 1) // right + 1
    places, dg = kh * kw, deformable_groups
    for what, value, channels in (("offset", offset, 2 * dg * places), ("mask", mask, dg * places)):
        if value is not None and tuple(value.shape) != (n, channels, rows, columns):
            raise ShapeError(
                message(f"deform_conv2d(): {what} is {list(value.shape)}", f"it must be {[n, channels, rows, columns]}")
            )
    x, offset, weight = promoted(x, offset, weight)
    points = places * rows * columns
    shifts = p.reshape(offset, (n * dg, places, 2, rows, columns))
    at = []
    for axis, (step, edge, spread, length, inner) in enumerate(((down, top, dy, rows, kh), (right, left, dx, columns, kw))):
        shift = p.slice_(shifts, (0, 0, axis, 0, 0), (n * dg, places, 1, rows, columns), (1, 1, 1, 1, 1))
        start = p.sub(p.mul(p.iota((length,), 0, x.dtype), float(step)), float(edge))
        start = p.reshape(start, (1, 1, length, 1) if axis == 0 else (1, 1, 1, length))
        tap = p.mul(p.iota((inner,), 0, x.dtype), float(spread))
        tap = p.broadcast_to(p.reshape(tap, (kh, 1) if axis == 0 else (1, kw)), (kh, kw))
        shape = (n * dg, places, rows, columns)
        place = p.add(p.broadcast_to(start, shape), p.broadcast_to(p.reshape(tap, (1, places, 1, 1)), shape))
        at.append(p.reshape(p.add(p.reshape(shift, shape), place), (n * dg, points)))
    flat = p.reshape(x, (n * dg, c // dg, height * width))
    lows = [p.detach(p.floor(v)) for v in at]
    total = None
    for corner in itertools.product((0, 1), repeat=2):
        share = None
        for place, low, is_high in zip(at, lows, corner, strict=True):
            part = p.sub(place, low)
            part = part if is_high else p.sub(1.0, part)
            share = part if share is None else p.mul(share, part)
        value = _taken(flat, [p.add(low, float(k)) for low, k in zip(lows, corner, strict=True)], (height, width))
        value = p.mul(value, p.broadcast_to(p.reshape(share, (n * dg, 1, points)), value.shape))
        total = value if total is None else p.add(total, value)
    if mask is not None:
        total = p.mul(total, p.broadcast_to(p.reshape(p.cast(mask, x.dtype), (n * dg, 1, points)), total.shape))
    taken = p.reshape(total, (n, groups, c // groups * places, rows * columns))
    table = p.reshape(weight, (1, groups, filters // groups, c // groups * places))
    made = p.matmul(p.broadcast_to(table, (n, *table.shape[1:])), taken)
    made = p.reshape(made, (n, filters, rows, columns))
    return made if bias is None else p.add(made, p.broadcast_to(p.reshape(bias, (1, filters, 1, 1)), made.shape))
