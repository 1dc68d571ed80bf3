"""Windows as columns and back (unfold, fold), unpooling, power-mean and fractional pooling, shift along time."""

from __future__ import annotations

import math

from ..base.errors import ArgumentError, ShapeError, message
from . import primitives as p
from .convolution import channels_back, channels_first, per_axis, require_format
from .define import op
from .pooling import window_plan
from .samples import real


def _edges(name, paddings):
    """(top, bottom, left, right) of an int, [vertical, horizontal], or [top, left, bottom, right]."""
    values = list(paddings) if isinstance(paddings, (list, tuple)) else [paddings]
    if len(values) == 1:
        values = values * 2
    if len(values) == 2:
        return values[0], values[0], values[1], values[1]
    if len(values) == 4:
        return values[0], values[2], values[1], values[3]
    raise ArgumentError(message(f"{name}(): paddings={paddings!r}", "it must be an integer, or 2 or 4 of them"))


def _layout(name, height, width, kernel_sizes, strides, paddings, dilations):
    """The windows' layout: kernel, padded sizes, counts, edges, and the flat positions [kernel, windows] inside the padded image."""
    kernel = per_axis(name, kernel_sizes, 2, "kernel_sizes")
    steps, gaps = per_axis(name, strides, 2, "strides"), per_axis(name, dilations, 2, "dilations")
    top, bottom, left, right = _edges(name, paddings)
    padded = (height + top + bottom, width + left + right)
    counts = tuple((n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(padded, kernel, steps, gaps, strict=True))
    if min(counts) < 1:
        raise ShapeError(message(f"{name}(): the kernel {list(kernel)} is larger than the padded image {list(padded)}"))
    shape = (*kernel, *counts)
    row = p.add(p.mul(p.iota(shape, 0), gaps[0]), p.mul(p.iota(shape, 2), steps[0]))
    column = p.add(p.mul(p.iota(shape, 1), gaps[1]), p.mul(p.iota(shape, 3), steps[1]))
    index = p.reshape(p.add(p.mul(row, padded[1]), column), (math.prod(kernel), math.prod(counts)))
    return kernel, padded, counts, (top, bottom, left, right), index


@op(
    "nn.functional.unfold",
    operands=("x",),
    samples=[(real(2, 3, 5, 4), 2), (real(1, 2, 6, 5), (3, 2), 2, (1, 0), (1, 2))],
    tests="noempty noscalar",
)
def unfold_windows(x, kernel_sizes, strides=1, paddings=0, dilations=1):
    """The windows of x [N, C, H, W] as columns: [N, C * KH * KW, windows]."""
    if x.ndim != 4:
        raise ShapeError(message(f"unfold(): x has shape {list(x.shape)}", "it must have 4 axes"))
    n, c, height, width = x.shape
    kernel, padded, counts, (top, bottom, left, right), index = _layout(
        "unfold", height, width, kernel_sizes, strides, paddings, dilations
    )
    y = p.reshape(p.pad(x, (0, 0, top, left), (0, 0, bottom, right)), (n, c, math.prod(padded)))
    return p.reshape(p.gather(y, index, 2), (n, c * math.prod(kernel), math.prod(counts)))


@op(
    "nn.functional.fold",
    operands=("x",),
    samples=[(real(2, 12, 12), (5, 4), 2), (real(1, 6, 4), (4, 4), (3, 2), 2, (1, 0))],
    tests="noempty noscalar",
)
def fold(x, output_sizes, kernel_sizes, strides=1, paddings=0, dilations=1):
    """Columns x [N, C * KH * KW, windows] (or without N) added up at their places in an image of ``output_sizes``: the adjoint of unfold."""
    if x.ndim not in (2, 3):
        raise ShapeError(message(f"fold(): x has shape {list(x.shape)}", "it must have 3 axes, or 2 without the batch"))
    height, width = per_axis("fold", output_sizes, 2, "output_sizes")
    kernel, padded, counts, (top, _, left, _), index = _layout("fold", height, width, kernel_sizes, strides, paddings, dilations)
    n = x.shape[0] if x.ndim == 3 else 1
    area = math.prod(kernel)
    if x.shape[-2] % area or x.shape[-1] != math.prod(counts):
        raise ShapeError(
            message(
                f"fold(): x has shape {list(x.shape)}",
                f"for these sizes it must have a multiple of {area} rows and {math.prod(counts)} columns",
            )
        )
    c = x.shape[-2] // area
    columns = p.reshape(x, (n, c, area, math.prod(counts)))
    total = p.scatter(p.full((n, c, math.prod(padded)), 0, x.dtype), index, columns, 2, "add")
    image = p.slice_(p.reshape(total, (n, c, *padded)), (0, 0, top, left), (n, c, height, width), (1, 1, 1, 1))
    return image if x.ndim == 3 else p.reshape(image, (c, height, width))


@op(operands=("x", "indices"), tests="noempty noscalar")
def max_unpool(x, indices, sizes, is_last):
    """x's values at flat positions of spatial axes of these sizes, zeros elsewhere."""
    if x.shape != indices.shape:
        raise ShapeError(message(f"max_unpool(): x is {list(x.shape)} and indices {list(indices.shape)}", "they must be equal"))
    x, indices = channels_first(x, is_last), channels_first(p.cast(indices, "int64"), is_last)
    return channels_back(p.max_unpool(x, indices, (*x.shape[:2], *sizes)), is_last)


@op(operands=("x",), samples=[(real(2, 3, 6), 1, 2.0, 2)], tests="noempty noscalar")
def power_pool(x, rank, norm_type, kernel_size, stride=None, padding=0, ceil_mode=False, data_format=None):
    """The ``norm_type``-norm of every window; the maximum for an infinite one."""
    name = f"lp_pool{rank}d"
    is_last = require_format(name, data_format or {1: "NCL", 2: "NCHW"}[rank], rank)
    x = channels_first(x, is_last)
    plan = window_plan(name, rank, x, kernel_size, stride, padding, ceil_mode, is_last)
    if norm_type == math.inf:
        values, _ = p.max_pool(x, **plan, dilations=(1,) * rank)
        return channels_back(values, is_last)
    if norm_type == 0:
        raise ArgumentError(message(f"{name}(): norm_type=0", "it must not be zero"))
    power = p.mul(x, x) if norm_type == 2 else p.pow(x, float(norm_type))
    total = p.mul(p.avg_pool(power, **plan, count_include_pad=1, divisor_override=1), 1.0)
    is_zero = p.eq(total, 0)
    safe = p.select(is_zero, 1, total)
    root = p.sqrt(safe) if norm_type == 2 else p.pow(safe, 1.0 / norm_type)
    return channels_back(p.select(is_zero, 0, root), is_last)


def _fraction(size, length, window, u):
    """(start, width bound, width) of ``length`` windows over an axis, u in (0, 1) shifting them; float64."""
    if window:
        alpha, limit = ((size - window) / (length - 1) if length > 1 else 0.0), float(window)
    else:
        alpha, limit = size / length, 0.0
        base = size // length
        u = p.mul(u, min((base + 2) / alpha - 1, (size + 1 - base) / alpha - (length - 1)))
    k = p.iota((length,), 0, "float64")
    offset = p.broadcast_to(p.floor(p.mul(u, alpha)), (length,))
    spread = p.broadcast_to(u, (length,))
    start = p.sub(p.floor(p.mul(p.add(k, spread), alpha)), offset)
    if window:
        is_last = p.eq(k, float(length - 1))
        start = p.select(is_last, float(size - window), start)
        end = p.add(start, limit)
    else:
        end = p.sub(p.floor(p.mul(p.add(p.add(k, 1.0), spread), alpha)), offset)
    end = p.minimum(p.maximum(end, p.add(start, 1.0)), float(size))
    return start, end, window or math.ceil(alpha) + 1


@op(operands=("x", "u"), tests="nograd noempty noscalar")
def fractional_max_pool(x, u, sizes, windows):
    """(values, flat positions) of the maxima of windows whose starts follow u; ``windows`` of 0 make them disjoint. https://arxiv.org/abs/1412.6071"""
    rank = len(sizes)
    n, c = x.shape[:2]
    u = p.cast(u, "float64")
    taken, position = x, None
    for k, (length, window) in enumerate(zip(sizes, windows, strict=True)):
        axis = 2 + 2 * k
        size = taken.shape[axis]
        start, end, most = _fraction(size, length, window, u)
        shape = (length, most)
        first = p.broadcast_to(p.reshape(start, (length, 1)), shape)
        last = p.broadcast_to(p.reshape(p.sub(end, 1.0), (length, 1)), shape)
        index = p.cast(p.minimum(p.add(first, p.iota(shape, 1, "float64")), last), "int64")
        taken = p.gather(taken, index, axis)
        spread = [1] * (2 * rank)
        spread[2 * k], spread[2 * k + 1] = shape
        full = tuple(
            m
            for pair in zip(sizes, [_most(x.shape[2 + j], sizes[j], windows[j]) for j in range(rank)], strict=True)
            for m in pair
        )
        part = p.broadcast_to(p.reshape(index, tuple(spread)), full)
        position = part if position is None else p.add(p.mul(position, size), part)
    order = (0, 1, *(2 + 2 * k for k in range(rank)), *(3 + 2 * k for k in range(rank)))
    count = math.prod(taken.shape[3::2])
    flat = p.reshape(p.transpose(taken, order), (n, c, *sizes, count))
    places = p.transpose(position, tuple(2 * k for k in range(rank)) + tuple(2 * k + 1 for k in range(rank)))
    places = p.broadcast_to(p.reshape(places, (1, 1, *sizes, count)), flat.shape)
    best = p.reduce_argmax(flat, (flat.ndim - 1,))
    values = p.gather_elements(flat, best, flat.ndim - 1)
    at = p.gather_elements(places, best, flat.ndim - 1)
    return p.reshape(values, (n, c, *sizes)), p.reshape(at, (n, c, *sizes))


def _most(size, length, window):
    return window or math.ceil(size / length) + 1


@op(
    "nn.functional.temporal_shift",
    operands=("x",),
    keyword_only=("data_format",),
    samples=[(real(6, 4, 2, 3), 3), (real(4, 5, 2, 2), 2, 0.4)],
    tests="noempty noscalar",
)
def temporal_shift(x, seg_num, shift_ratio=0.25, data_format="NCHW"):
    """x [N * T, C, H, W] with a share of channels taken from the step before, an equal share from the step after. https://arxiv.org/abs/1811.08383"""
    is_last = require_format("temporal_shift", data_format, 2)
    x = channels_first(x, is_last)
    if x.ndim != 4 or seg_num < 1 or x.shape[0] % seg_num:
        raise ShapeError(
            message(
                f"temporal_shift(): x has shape {list(x.shape)} and seg_num is {seg_num}",
                "the first axis must be a multiple of it",
            )
        )
    if not 0 < shift_ratio <= 0.5:
        raise ArgumentError(message(f"temporal_shift(): shift_ratio={shift_ratio}", "it must be in (0, 0.5]"))
    nt, c, h, w = x.shape
    y = p.reshape(x, (nt // seg_num, seg_num, c, h, w))
    first, second = int(c * shift_ratio), int(c * 2 * shift_ratio)
    parts = []
    for low, high, reads in ((0, first, -1), (first, second, 1), (second, c, 0)):
        if low == high:
            continue
        part = p.slice_(y, (0, 0, low, 0, 0), (nt // seg_num, seg_num, high - low, h, w), (1,) * 5)
        if reads:
            grown = p.pad(part, (0, int(reads < 0), 0, 0, 0), (0, int(reads > 0), 0, 0, 0))
            part = p.slice_(grown, (0, int(reads > 0), 0, 0, 0), part.shape, (1,) * 5)
        parts.append(part)
    return channels_back(p.reshape(p.concat(parts, 2), (nt, c, h, w)), is_last)
