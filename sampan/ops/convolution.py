"""Convolutions and transposed convolutions, 1-, 2- and 3-d."""

from __future__ import annotations

import numpy as np

from ..base.errors import ArgumentError, ShapeError, message
from . import primitives as p
from .arguments import promoted
from .define import op
from .samples import real


def per_axis(name, value, rank, what):
    """One integer for each spatial axis."""
    values = list(value) if isinstance(value, (list, tuple)) else [value] * rank
    if len(values) == 1:
        values = values * rank
    if len(values) != rank or any(isinstance(v, bool) or not isinstance(v, int) for v in values):
        raise ArgumentError(message(f"{name}(): {what}={value!r}", f"it must be an integer or a list of {rank} integers"))
    return tuple(values)


def _same_padding(size, kernel, stride, dilation):
    total = max((-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
    return total // 2, total - total // 2


def paddings(name, padding, rank, sizes, kernel, strides, dilations, is_last):
    """(low, high) of every form of padding: an int, one per axis, two per axis, [[a, b], ...] per tensor axis, "same", "valid"."""
    if isinstance(padding, str):
        word = padding.lower()
        if word == "valid":
            return (0,) * rank, (0,) * rank
        if word == "same":
            pairs = [_same_padding(n, k, s, d) for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True)]
            return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
        raise ArgumentError(message(f"{name}(): padding={padding!r}", "a padding word is 'same' or 'valid'"))
    if isinstance(padding, (list, tuple)) and padding and isinstance(padding[0], (list, tuple)):
        pairs = [tuple(q) for q in padding]
        if len(pairs) == rank + 2:
            outer = (pairs[0], pairs[-1]) if is_last else (pairs[0], pairs[1])
            if any(q != (0, 0) for q in outer):
                raise ArgumentError(message(f"{name}(): padding={padding!r}", "the batch and channel axes cannot be padded"))
            pairs = pairs[1:-1] if is_last else pairs[2:]
        if len(pairs) != rank or any(len(q) != 2 for q in pairs):
            raise ArgumentError(message(f"{name}(): padding={padding!r}", f"it must hold a pair for each of {rank} spatial axes"))
        return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    values = list(padding) if isinstance(padding, (list, tuple)) else [padding]
    if len(values) == 2 * rank and rank > 0 and len(values) != rank:
        return tuple(values[0::2]), tuple(values[1::2])
    both = per_axis(name, padding, rank, "padding")
    return both, both


def channels_first(x, is_last):
    """x as [N, C, s...]."""
    return p.transpose(x, (0, x.ndim - 1, *range(1, x.ndim - 1))) if is_last else x


def channels_back(y, is_last):
    """The result in the caller's format."""
    return p.transpose(y, (0, *range(2, y.ndim), 1)) if is_last else y


def require_format(name, data_format, rank):
    """Whether the format is channels-last; raises for one of another rank."""
    first, last = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[rank]
    if data_format not in (first, last):
        raise ArgumentError(message(f"{name}(): data_format={data_format!r}", f"it must be {first!r} or {last!r}"))
    return data_format == last


def _convolve(name, rank, x, weight, bias, stride, padding, dilation, groups, data_format):
    is_last = require_format(name, data_format, rank)
    if x.ndim != rank + 2:
        raise ShapeError(message(f"{name}(): x has shape {list(x.shape)}", f"it must have {rank + 2} axes, {data_format}"))
    x, weight = promoted(x, weight)
    x = channels_first(x, is_last)
    strides, dilations = per_axis(name, stride, rank, "stride"), per_axis(name, dilation, rank, "dilation")
    low, high = paddings(name, padding, rank, x.shape[2:], weight.shape[2:], strides, dilations, is_last)
    y = p.conv(x, weight, strides, low, high, dilations, groups)
    if bias is not None:
        y = p.add(y, p.reshape(p.cast(bias, y.dtype), (1, bias.numel, *(1,) * rank)))
    return channels_back(y, is_last)


@op(
    "nn.functional.conv1d",
    operands=("x", "weight", "bias"),
    reference=lambda x, w, b=None: np.stack(
        [sum(np.array([np.correlate(xi, wi, "valid") for xi, wi in zip(xn, wo, strict=True)])) for xn in x for wo in w]
    ).reshape(x.shape[0], w.shape[0], -1),
    samples=[(real(2, 3, 8), real(4, 3, 3))],
    tests="noempty",
)
def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCL"):
    """x [N, C, L] by weight [O, C / groups, K], plus bias [O]: [N, O, L']."""
    return _convolve("conv1d", 1, x, weight, bias, stride, padding, dilation, groups, data_format)


@op(
    "nn.functional.conv2d",
    operands=("x", "weight", "bias"),
    samples=[(real(2, 3, 6, 5), real(4, 3, 3, 2), real(4)), (real(2, 4, 6, 5), real(4, 2, 3, 2), None, 2, 1, 1, 2)],
    tests="noempty",
)
def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCHW"):
    """x [N, C, H, W] by weight [O, C / groups, KH, KW], plus bias [O]: [N, O, H', W']."""
    return _convolve("conv2d", 2, x, weight, bias, stride, padding, dilation, groups, data_format)


@op(
    "nn.functional.conv3d",
    operands=("x", "weight", "bias"),
    samples=[(real(1, 2, 4, 4, 3), real(3, 2, 2, 2, 2), real(3))],
    tests="noempty",
)
def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCDHW"):
    """x [N, C, D, H, W] by weight [O, C / groups, KD, KH, KW], plus bias [O]: [N, O, D', H', W']."""
    return _convolve("conv3d", 3, x, weight, bias, stride, padding, dilation, groups, data_format)


def _transposed(name, rank, x, weight, bias, stride, padding, output_padding, dilation, groups, output_size, data_format):
    is_last = require_format(name, data_format, rank)
    if x.ndim != rank + 2 or weight.ndim != rank + 2:
        raise ShapeError(
            message(f"{name}(): x has shape {list(x.shape)} and weight {list(weight.shape)}", f"both must have {rank + 2} axes")
        )
    x, weight = promoted(x, weight)
    x = channels_first(x, is_last)
    if x.shape[1] != weight.shape[0] or groups < 1 or x.shape[1] % groups:
        raise ShapeError(
            message(
                f"{name}(): x has {x.shape[1]} channels and weight is {list(weight.shape)} with groups={groups}",
                "the weight is [in_channels, out_channels / groups, k...]",
            )
        )
    strides, dilations = per_axis(name, stride, rank, "stride"), per_axis(name, dilation, rank, "dilation")
    kernel = weight.shape[2:]
    low, high = paddings(name, padding, rank, x.shape[2:], kernel, strides, dilations, is_last)
    smallest = tuple(
        (n - 1) * s - a - b + d * (k - 1) + 1
        for n, s, a, b, d, k in zip(x.shape[2:], strides, low, high, dilations, kernel, strict=True)
    )
    if output_size is not None:
        if any(v != 0 for v in per_axis(name, output_padding, rank, "output_padding")):
            raise ArgumentError(f"{name}(): output_padding and output_size cannot both be given")
        sizes = per_axis(name, output_size, rank, "output_size")
    else:
        sizes = tuple(n + e for n, e in zip(smallest, per_axis(name, output_padding, rank, "output_padding"), strict=True))
    if min(sizes) < 0:
        raise ShapeError(
            message(
                f"{name}(): the result would have spatial sizes {list(sizes)}, from x {list(x.shape)} and weight {list(weight.shape)}",
                "sizes are 0 or more: padding is too large, or a stride or dilation is below 1",
            )
        )
    for n, least, s, d in zip(sizes, smallest, strides, dilations, strict=True):
        if not least <= n < least + max(s, d):
            raise ArgumentError(
                message(
                    f"{name}(): the result would have spatial sizes {list(sizes)}",
                    f"each must be in [{least}, {least + max(s, d) - 1}] for this input",
                )
            )
    shape = (x.shape[0], weight.shape[1] * groups, *sizes)
    y = p.conv_backward_data(x, weight, shape, strides, low, high, dilations, groups)
    if bias is not None:
        y = p.add(y, p.reshape(p.cast(bias, y.dtype), (1, bias.numel, *(1,) * rank)))
    return channels_back(y, is_last)


@op(
    "nn.functional.conv1d_transpose",
    operands=("x", "weight", "bias"),
    samples=[(real(2, 3, 5), real(3, 4, 3), None, 2, 1, 1)],
    tests="noempty",
)
def conv1d_transpose(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, output_size=None, data_format="NCL"
):
    """The transposed convolution of x [N, C, L] by weight [C, O / groups, K]: [N, O, L']."""
    return _transposed(
        "conv1d_transpose", 1, x, weight, bias, stride, padding, output_padding, dilation, groups, output_size, data_format
    )


@op(
    "nn.functional.conv2d_transpose",
    operands=("x", "weight", "bias"),
    samples=[(real(2, 4, 4, 3), real(4, 3, 3, 2), real(6), 2, 1, 1, 1, 2)],
    tests="noempty",
)
def conv2d_transpose(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1, output_size=None, data_format="NCHW"
):
    """The transposed convolution of x [N, C, H, W] by weight [C, O / groups, KH, KW]: [N, O, H', W']."""
    return _transposed(
        "conv2d_transpose", 2, x, weight, bias, stride, padding, output_padding, dilation, groups, output_size, data_format
    )


@op(
    "nn.functional.conv3d_transpose",
    operands=("x", "weight", "bias"),
    samples=[(real(1, 2, 3, 3, 2), real(2, 3, 2, 2, 2))],
    tests="noempty",
)
def conv3d_transpose(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, output_size=None, data_format="NCDHW"
):
    """The transposed convolution of x [N, C, D, H, W] by weight [C, O / groups, KD, KH, KW]: [N, O, D', H', W']."""
    return _transposed(
        "conv3d_transpose", 3, x, weight, bias, stride, padding, output_padding, dilation, groups, output_size, data_format
    )
