"""Pooling: maximum and mean over windows, and over adaptive windows."""

from __future__ import annotations

import numpy as np

from ..base.errors import ArgumentError, ShapeError, message
from ..base.kinds import OutputSizes
from . import primitives as p
from .convolution import channels_back, channels_first, paddings, per_axis, require_format
from .define import op
from .samples import real


def window_plan(name, rank, x, kernel_size, stride, padding, ceil_mode, is_last):
    """The window's attributes, the result's sizes among them."""
    if x.ndim != rank + 2:
        raise ShapeError(message(f"{name}(): x has shape {list(x.shape)}", f"it must have {rank + 2} axes"))
    kernel = per_axis(name, kernel_size, rank, "kernel_size")
    strides = kernel if stride is None else per_axis(name, stride, rank, "stride")
    low, high = paddings(name, padding, rank, x.shape[2:], kernel, strides, (1,) * rank, is_last)
    if any(a * 2 > k or b * 2 > k for a, b, k in zip(low, high, kernel, strict=True)) and not isinstance(padding, str):
        raise ArgumentError(
            message(
                f"{name}(): padding={padding!r} with kernel_size={kernel_size!r}", "padding must be at most half of the kernel"
            )
        )
    sizes = []
    for n, k, s, a, b in zip(x.shape[2:], kernel, strides, low, high, strict=True):
        span = n + a + b - k
        count = (-(-span // s) if ceil_mode else span // s) + 1
        if ceil_mode and (count - 1) * s >= n + a:  # a last window must start inside the input or the left padding
            count -= 1
        sizes.append(count)
    return {"sizes": tuple(sizes), "kernel": kernel, "strides": strides, "padding_low": low, "padding_high": high}


def _max(name, rank, x, kernel_size, stride, padding, return_mask, ceil_mode, data_format):
    is_last = require_format(name, data_format, rank)
    x = channels_first(x, is_last)
    values, indices = p.max_pool(
        x, **window_plan(name, rank, x, kernel_size, stride, padding, ceil_mode, is_last), dilations=(1,) * rank
    )
    values = channels_back(values, is_last)
    return (values, channels_back(indices, is_last)) if return_mask else values


def _avg(name, rank, x, kernel_size, stride, padding, exclusive, ceil_mode, divisor_override, data_format):
    is_last = require_format(name, data_format, rank)
    x = channels_first(x, is_last)
    plan = window_plan(name, rank, x, kernel_size, stride, padding, ceil_mode, is_last)
    y = p.avg_pool(x, **plan, count_include_pad=int(not exclusive), divisor_override=int(divisor_override or 0))
    return channels_back(y, is_last)


@op("nn.functional.max_pool1d", operands=("x",), samples=[(real(2, 3, 8), 3, 2, 1)], tests="noempty")
def max_pool1d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False):
    """The maximum of every window of x [N, C, L]; return_mask: also where it is."""
    return _max("max_pool1d", 1, x, kernel_size, stride, padding, return_mask, ceil_mode, "NCL")


@op("nn.functional.max_pool2d", operands=("x",), samples=[(real(2, 3, 6, 5), 2), (real(2, 3, 7, 7), 3, 2, 1)], tests="noempty")
def max_pool2d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCHW"):
    """The maximum of every window of x [N, C, H, W]; return_mask: also its flat position in H x W."""
    return _max("max_pool2d", 2, x, kernel_size, stride, padding, return_mask, ceil_mode, data_format)


@op("nn.functional.max_pool3d", operands=("x",), samples=[(real(1, 2, 4, 4, 4), 2)], tests="noempty")
def max_pool3d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCDHW"):
    """The maximum of every window of x [N, C, D, H, W]; return_mask: also its flat position."""
    return _max("max_pool3d", 3, x, kernel_size, stride, padding, return_mask, ceil_mode, data_format)


@op("nn.functional.avg_pool1d", operands=("x",), samples=[(real(2, 3, 8), 3, 2, 1)], tests="noempty")
def avg_pool1d(x, kernel_size, stride=None, padding=0, exclusive=True, ceil_mode=False):
    """The mean of every window of x [N, C, L]; exclusive: padding does not count."""
    return _avg("avg_pool1d", 1, x, kernel_size, stride, padding, exclusive, ceil_mode, None, "NCL")


@op(
    "nn.functional.avg_pool2d",
    operands=("x",),
    reference=lambda x, k: x.reshape(x.shape[0], x.shape[1], x.shape[2] // k, k, x.shape[3] // k, k).mean((3, 5)),
    samples=[(real(2, 3, 6, 4), 2)],
    tests="noempty",
)
def avg_pool2d(
    x, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None, data_format="NCHW"
):
    """The mean of every window of x [N, C, H, W]; exclusive: padding does not count."""
    return _avg("avg_pool2d", 2, x, kernel_size, stride, padding, exclusive, ceil_mode, divisor_override, data_format)


@op("nn.functional.avg_pool3d", operands=("x",), samples=[(real(1, 2, 4, 4, 4), 2)], tests="noempty")
def avg_pool3d(
    x, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None, data_format="NCDHW"
):
    """The mean of every window of x [N, C, D, H, W]; exclusive: padding does not count."""
    return _avg("avg_pool3d", 3, x, kernel_size, stride, padding, exclusive, ceil_mode, divisor_override, data_format)


def _adaptive_sizes(name, output_size, x, rank):
    values = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * rank
    if len(values) != rank:
        raise ArgumentError(message(f"{name}(): output_size={output_size!r}", f"it must be an integer or {rank} of them"))
    return tuple(n if v is None else int(v) for v, n in zip(values, x.shape[2:], strict=True))


def _adaptive(name, rank, kind, x, output_size, return_mask, data_format):
    is_last = require_format(name, data_format, rank)
    if x.ndim != rank + 2:
        raise ShapeError(message(f"{name}(): x has shape {list(x.shape)}", f"it must have {rank + 2} axes"))
    x = channels_first(x, is_last)
    sizes = _adaptive_sizes(name, output_size, x, rank)
    if kind == "avg":
        return channels_back(p.avg_pool(x, sizes=sizes), is_last)
    values, indices = p.max_pool(x, sizes=sizes)
    values = channels_back(values, is_last)
    return (values, channels_back(indices, is_last)) if return_mask else values


@op(
    "nn.functional.adaptive_avg_pool1d",
    operands=("x",),
    reference=lambda x, o: np.stack(
        [x[..., i * x.shape[-1] // o : -(-(i + 1) * x.shape[-1] // o)].mean(-1) for i in range(o)], -1
    ),
    samples=[(real(2, 3, 8), 3)],
    tests="noempty",
)
def adaptive_avg_pool1d(x, output_size: OutputSizes):
    """The mean of ``output_size`` windows that cover x [N, C, L]."""
    return _adaptive("adaptive_avg_pool1d", 1, "avg", x, output_size, False, "NCL")


@op(
    "nn.functional.adaptive_avg_pool2d",
    operands=("x",),
    samples=[(real(2, 3, 5, 4), (2, 3)), (real(2, 3, 4, 4), 1)],
    tests="noempty",
)
def adaptive_avg_pool2d(x, output_size: OutputSizes, data_format="NCHW"):
    """The mean of ``output_size`` windows that cover x [N, C, H, W]; None keeps an axis."""
    return _adaptive("adaptive_avg_pool2d", 2, "avg", x, output_size, False, data_format)


@op("nn.functional.adaptive_avg_pool3d", operands=("x",), samples=[(real(1, 2, 4, 3, 3), 2)], tests="noempty")
def adaptive_avg_pool3d(x, output_size: OutputSizes, data_format="NCDHW"):
    """The mean of ``output_size`` windows that cover x [N, C, D, H, W]; None keeps an axis."""
    return _adaptive("adaptive_avg_pool3d", 3, "avg", x, output_size, False, data_format)


@op("nn.functional.adaptive_max_pool1d", operands=("x",), samples=[(real(2, 3, 8), 3)], tests="noempty")
def adaptive_max_pool1d(x, output_size: OutputSizes, return_mask=False):
    """The maximum of ``output_size`` windows that cover x [N, C, L]."""
    return _adaptive("adaptive_max_pool1d", 1, "max", x, output_size, return_mask, "NCL")


@op("nn.functional.adaptive_max_pool2d", operands=("x",), samples=[(real(2, 3, 5, 4), (2, 3))], tests="noempty")
def adaptive_max_pool2d(x, output_size: OutputSizes, return_mask=False):
    """The maximum of ``output_size`` windows that cover x [N, C, H, W]."""
    return _adaptive("adaptive_max_pool2d", 2, "max", x, output_size, return_mask, "NCHW")


@op("nn.functional.adaptive_max_pool3d", operands=("x",), samples=[(real(1, 2, 4, 3, 3), 2)], tests="noempty")
def adaptive_max_pool3d(x, output_size: OutputSizes, return_mask=False):
    """The maximum of ``output_size`` windows that cover x [N, C, D, H, W]."""
    return _adaptive("adaptive_max_pool3d", 3, "max", x, output_size, return_mask, "NCDHW")
