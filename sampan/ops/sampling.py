"""Sampling of images at given places: affine_grid and grid_sample. https://arxiv.org/abs/1506.02025"""

from __future__ import annotations

import itertools
import math

from ..base.errors import ArgumentError, ShapeError, message
from . import primitives as p
from .arguments import promoted
from .define import op
from .samples import real


def _line(length, align_corners, dtype):
    """Coordinates of ``length`` pixels in [-1, 1]: of the outer pixels' centres, or of their edges."""
    k = p.iota((length,), 0, dtype)
    if align_corners:
        return p.sub(p.mul(k, 2.0 / (length - 1)), 1.0) if length > 1 else p.mul(k, 0.0)
    return p.sub(p.mul(p.add(k, 0.5), 2.0 / length), 1.0)


@op(
    operands=("theta",),
    samples=[(real(2, 2, 3), (2, 3, 4, 5)), (real(1, 3, 4), (1, 2, 2, 3, 4), False)],
    tests="noempty noscalar",
)
def affine_grid_op(theta, out_shape, align_corners=True):
    """The places [N, H, W, 2] (or [N, D, H, W, 3]) that the affine maps theta [N, 2, 3] (or [N, 3, 4]) send a regular grid to; x comes first."""
    rank = len(out_shape) - 2
    if theta.ndim != 3 or theta.shape[1:] != (rank, rank + 1) or rank not in (2, 3):
        raise ShapeError(
            message(
                f"affine_grid(): theta is {list(theta.shape)} and out_shape {list(out_shape)}",
                "theta must be [N, 2, 3] for [N, C, H, W], [N, 3, 4] for [N, C, D, H, W]",
            )
        )
    sizes = tuple(out_shape[2:])
    columns = []
    for axis in reversed(range(rank)):
        line = _line(sizes[axis], align_corners, theta.dtype)
        shape = tuple(sizes[axis] if k == axis else 1 for k in range(rank))
        columns.append(p.reshape(p.broadcast_to(p.reshape(line, shape), sizes), (1, math.prod(sizes), 1)))
    columns.append(p.full((1, math.prod(sizes), 1), 1.0, theta.dtype))
    base = p.concat(columns, 2)
    places = p.matmul(base, p.transpose(theta, (0, 2, 1)))
    return p.reshape(places, (theta.shape[0], *sizes, rank))


def _unnormalized(place, size, align_corners):
    if align_corners:
        return p.mul(p.add(place, 1.0), (size - 1) / 2)
    return p.sub(p.mul(p.add(place, 1.0), size / 2), 0.5)


def _reflected(place, size, align_corners):
    """The place folded back into the axis at its ends."""
    low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
    if span == 0:
        return p.mul(place, 0.0)
    distance = p.abs(p.sub(place, low))
    folds = p.floor(p.div(distance, span))
    rest = p.sub(distance, p.mul(folds, span))
    is_even = p.eq(p.sub(folds, p.mul(p.floor(p.mul(folds, 0.5)), 2.0)), 0.0)
    return p.add(p.select(is_even, rest, p.sub(span, rest)), low)


def _limited(place, size, padding_mode, align_corners):
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        place = _reflected(place, size, align_corners)
    return p.minimum(p.maximum(place, 0.0), float(size - 1))


def _taken(flat, corner, sizes):
    """(x at integer places, whether each is inside): flat is [N, C, positions], the places [N, positions] an axis, in floats."""
    inside, index = None, None
    for place, size in zip(corner, sizes, strict=True):
        within = p.bitwise_and(p.ge(place, 0.0), p.le(place, float(size - 1)))
        inside = within if inside is None else p.bitwise_and(inside, within)
        at = p.cast(p.minimum(p.maximum(place, 0.0), float(size - 1)), "int64")
        index = at if index is None else p.add(p.mul(index, size), at)
    n, c = flat.shape[:2]
    spread = p.broadcast_to(p.reshape(index, (n, 1, index.shape[1])), (n, c, index.shape[1]))
    mask = p.broadcast_to(p.reshape(inside, (n, 1, index.shape[1])), (n, c, index.shape[1]))
    return p.select(mask, p.gather_elements(flat, spread, 2), 0)


@op(
    "nn.functional.grid_sample",
    operands=("x", "grid"),
    samples=[
        (real(2, 3, 4, 5), real(2, 3, 2, 2, low=-0.8, high=0.8)),
        (real(1, 2, 3, 4, 3), real(1, 2, 2, 2, 3, low=-0.8, high=0.8), "bilinear", "border", False),
        (real(2, 3, 4, 5), real(2, 3, 2, 2, low=-1.3, high=1.3), "nearest", "reflection"),
    ],
    tests="nograd noempty noscalar",
)
def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=True):
    """x [N, C, H, W] at places grid [N, H', W', 2] in [-1, 1], x first (or the same in 3-d): [N, C, H', W'].

    mode: ``bilinear`` or ``nearest``. padding_mode: what lies outside: ``zeros``, ``border`` or ``reflection``.
    align_corners: -1 and 1 mean the centres of the outer pixels, not their edges.
    """
    rank = x.ndim - 2
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentError(
            message(
                f"grid_sample(): mode={mode!r}, padding_mode={padding_mode!r}",
                "mode is 'bilinear' or 'nearest', padding_mode 'zeros', 'border' or 'reflection'",
            )
        )
    if rank not in (2, 3) or grid.ndim != x.ndim or grid.shape[-1] != rank or grid.shape[0] != x.shape[0]:
        raise ShapeError(
            message(
                f"grid_sample(): x is {list(x.shape)} and grid {list(grid.shape)}",
                "grid must be [N, H, W, 2] for x [N, C, H, W], [N, D, H, W, 3] for [N, C, D, H, W]",
            )
        )
    x, grid = promoted(x, grid)
    n, c = x.shape[:2]
    sizes, out = x.shape[2:], grid.shape[1:-1]
    points = math.prod(out)
    flat = p.reshape(x, (n, c, math.prod(sizes)))
    table = p.reshape(grid, (n, points, rank))
    places = []
    for axis, size in enumerate(sizes):
        column = p.reshape(p.slice_(table, (0, 0, rank - 1 - axis), (n, points, 1), (1, 1, 1)), (n, points))
        places.append(_limited(_unnormalized(column, size, align_corners), size, padding_mode, align_corners))
    if mode == "nearest":
        return p.reshape(_taken(flat, [p.round(v) for v in places], sizes), (n, c, *out))
    lows = [p.detach(p.floor(v)) for v in places]
    total = None
    for corner in itertools.product((0, 1), repeat=rank):
        weight = None
        for place, low, is_high in zip(places, lows, corner, strict=True):
            share = p.sub(place, low)
            share = share if is_high else p.sub(1.0, share)
            weight = share if weight is None else p.mul(weight, share)
        value = _taken(flat, [p.add(low, float(k)) for low, k in zip(lows, corner, strict=True)], sizes)
        part = p.mul(value, p.broadcast_to(p.reshape(weight, (n, 1, points)), value.shape))
        total = part if total is None else p.add(total, part)
    return p.reshape(total, (n, c, *out))
