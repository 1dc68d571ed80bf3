"""interpolate, upsample and affine_grid: sizes and formats of the caller to what the operators take."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base.errors import ArgumentError, ShapeError, message
from ...tensor import OPS, Tensor, to_tensor
from ...tensor.replay import takes_numbers
from .padding import integers

_MODES = {"nearest": (3, 4, 5), "linear": (3,), "bilinear": (4,), "trilinear": (5,), "bicubic": (4,), "area": (3, 4, 5)}
_FORMATS = {3: ("NCW", "NCL", "NWC", "NLC"), 4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}


def _factors(scale_factor: Any, count: int) -> list[float]:
    if isinstance(scale_factor, Tensor):
        scale_factor = scale_factor.tolist()
    given = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * count
    factors = [float(f) for f in (given * count if len(given) == 1 else given)]
    if len(factors) != count or any(not f > 0 for f in factors):
        raise ArgumentError(message(f"interpolate(): scale_factor={scale_factor!r}", f"it must hold {count} positive numbers"))
    return factors


def _target(x: Tensor, is_last: bool, size: Any, scale_factor: Any, recompute: bool) -> tuple[list[int], list[float]]:
    """(the result's spatial sizes, how far apart its elements lie in x)."""
    spatial = list(x.shape[1:-1] if is_last else x.shape[2:])
    if size is not None:
        sizes = integers("interpolate", "size", size)
        sizes = sizes * len(spatial) if len(sizes) == 1 else sizes
        factors = None
    else:
        factors = _factors(scale_factor, len(spatial))
        sizes = [math.floor(n * f) for n, f in zip(spatial, factors, strict=True)]
    if len(sizes) != len(spatial) or any(n < 1 for n in sizes):
        raise ShapeError(
            message(f"interpolate(): the result's spatial sizes would be {sizes}", f"there must be {len(spatial)}, all positive")
        )
    if factors is None or recompute:
        return sizes, [n / m for n, m in zip(spatial, sizes, strict=True)]
    return sizes, [1.0 / f for f in factors]


def require_resizing(called: str, mode: str, size: Any, scale_factor: Any, align_corners: bool, data_format: str | None) -> str:
    """The mode in lower case, when it is one and goes with the other settings."""
    known = str(mode).lower()
    if known not in _MODES:
        raise ArgumentError(message(f"{called}(): mode is {mode!r}", f"it must be one of {', '.join(_MODES)}"))
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            message(f"{called}(): size={size!r}, scale_factor={scale_factor!r}", "exactly one of them must be given")
        )
    if align_corners and known in ("nearest", "area"):
        raise ArgumentError(
            message(f"{called}(): align_corners=True with mode={mode!r}", "it has a meaning for linear and cubic modes only")
        )
    formats = [name for rank in _MODES[known] for name in _FORMATS[rank]]
    if data_format and data_format not in formats:
        raise ArgumentError(
            message(f"{called}(): data_format={data_format!r} with mode={mode!r}", f"it must be one of {', '.join(formats)}")
        )
    return known


@takes_numbers("size", "scale_factor")
def interpolate(
    x: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """x with its spatial axes resized.

    Args:
        x: [N, C, W], [N, C, H, W] or [N, C, D, H, W], or channels-last by ``data_format``.
        size: the spatial sizes of the result.
        scale_factor: in place of ``size``: the factor of each spatial axis, or one for all.
        mode: ``nearest``, ``area``, or by rank ``linear``; ``bilinear``, ``bicubic``; ``trilinear``.
        align_corners: the centres of the outer pixels stay at the ends.
        align_mode: for linear modes without ``align_corners``: 0: pixels are squares, 1: points at their index.
        data_format: which axis holds channels; by default the second.
        recompute_scale_factor: take distances from the sizes, not from ``scale_factor``.
        antialias: where the result is smaller, every element is a mean over all of x that it covers; for bilinear and bicubic.

    Returns:
        The resized tensor. An axis resized to 1 takes its centre, unless ``align_corners``.

    Raises:
        ArgumentError: the mode does not fit the rank, or neither or both of size and scale_factor are given.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> paddle.nn.functional.interpolate(x, scale_factor=2).shape
        paddle.Size([1, 1, 4, 4])
    """
    mode, rank = require_resizing("interpolate", mode, size, scale_factor, align_corners, data_format), len(x.shape)
    if rank not in _MODES[mode]:
        raise ArgumentError(
            message(
                f"interpolate(): mode={mode!r} and x has shape {list(x.shape)}",
                f"the mode takes {' or '.join(map(str, _MODES[mode]))} axes",
                f"modes: {', '.join(_MODES)}",
            )
        )
    if align_mode not in (0, 1):
        raise ArgumentError(message(f"interpolate(): align_mode={align_mode!r}", "it must be 0 or 1"))
    data_format = data_format or _FORMATS[rank][0]
    if data_format not in _FORMATS[rank]:
        raise ArgumentError(
            message(f"interpolate(): data_format={data_format!r}", f"it must be one of {', '.join(_FORMATS[rank])}")
        )
    is_last = data_format[-1] == "C"
    sizes, ratios = _target(x, is_last, size, scale_factor, bool(recompute_scale_factor))
    if antialias:
        if mode not in ("bilinear", "bicubic"):
            raise ArgumentError(
                message(f"interpolate(): antialias=True with mode={mode!r}", "it has a meaning for bilinear and bicubic only")
            )
        return _antialiased(x, sizes, ratios, 1 if is_last else 2, mode, bool(align_corners))
    if mode == "area":
        return _area(x, sizes, is_last)
    kind = {"nearest": "nearest", "bicubic": "cubic"}.get(mode, "linear")
    first = _moved(x, 1, is_last)
    y = OPS["resize"](first, tuple(sizes), tuple(ratios), kind, bool(align_corners), align_mode)
    return _moved(y, -1, is_last)


def _moved(x: Tensor, direction: int, is_last: bool) -> Tensor:
    """Channels of a channels-last tensor to the second axis (direction 1), or back."""
    if not is_last:
        return x
    rank = len(x.shape)
    return OPS["transpose"](x, [0, rank - 1, *range(1, rank - 1)] if direction > 0 else [0, *range(2, rank), 1])


def _area(x: Tensor, sizes: list[int], is_last: bool) -> Tensor:
    y = OPS[f"adaptive_avg_pool{len(sizes)}d"](_moved(x, 1, is_last), sizes[0] if len(sizes) == 1 else sizes)
    return _moved(y, -1, is_last)


def _antialiased(x: Tensor, sizes: list[int], ratios: list[float], axis: int, mode: str, align_corners: bool) -> Tensor:
    for k, (size, ratio) in enumerate(zip(sizes, ratios, strict=True)):
        along, rank = axis + k, len(x.shape)
        length = int(x.shape[along])
        step = (length - 1) / max(size - 1, 1) if align_corners else ratio
        weights = to_tensor(_antialiasing_weights(length, size, step, mode)).astype(x.dtype)
        order = [a for a in range(rank) if a != along] + [along]
        spread = OPS["matmul"](OPS["transpose"](x, order), weights, transpose_y=True)
        x = OPS["transpose"](spread, [order.index(a) for a in range(rank)])
    return x


def _antialiasing_weights(length: int, size: int, step: float, mode: str) -> np.ndarray[Any, Any]:
    """[size, length]: each row a filter over the elements that the result's element covers, as wide as the step between them."""
    width = max(step, 1.0)
    reach = (1.0 if mode == "bilinear" else 2.0) * width
    centres = step * (np.arange(size) + 0.5)
    first = np.maximum((centres - reach + 0.5).astype(int), 0)
    end = np.minimum((centres + reach + 0.5).astype(int), length)
    at = np.arange(length)
    t = np.abs((at[None] - centres[:, None] + 0.5) / width)
    if mode == "bilinear":
        weights = np.maximum(1.0 - t, 0.0)
    else:  # the cubic convolution of Keys with a = -0.5
        near, far = (1.5 * t - 2.5) * t * t + 1.0, ((-0.5 * t + 2.5) * t - 4.0) * t + 2.0
        weights = np.where(t < 1.0, near, np.where(t < 2.0, far, 0.0))
    weights *= (at >= first[:, None]) & (at < end[:, None])
    return (weights / weights.sum(1, keepdims=True)).astype("float32")


@takes_numbers("size", "scale_factor")
def upsample(
    x: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """x with its spatial axes resized: see interpolate."""
    return interpolate(x, size, scale_factor, mode, align_corners, align_mode, data_format)


@takes_numbers("out_shape")
def affine_grid(theta: Tensor, out_shape: Any, align_corners: bool = True, name: str | None = None) -> Tensor:
    """The places [N, H, W, 2] (or [N, D, H, W, 3]) that affine maps send a regular grid to, for ``grid_sample``.

    Args:
        theta: [N, 2, 3], or [N, 3, 4] in 3-d.
        out_shape: [N, C, H, W], or [N, C, D, H, W].
        align_corners: -1 and 1 mean the centres of the outer pixels, not their edges.
    """
    return OPS["affine_grid"](theta, tuple(integers("affine_grid", "out_shape", out_shape)), bool(align_corners))


__all__ = ["affine_grid", "interpolate", "upsample"]
