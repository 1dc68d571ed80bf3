"""Unpooling, power-mean pooling and fractional pooling."""

from __future__ import annotations

from typing import Any

from ...base.errors import ArgumentError, ShapeError, message
from ...base.kinds import Counts, Format1D, Format2D, Format3D, Fraction, OutputSizes, Padding, Positive, Sizes
from ...tensor import OPS, Tensor
from ...tensor.random import default_generator
from ...tensor.replay import decided_by_data, takes_numbers
from .padding import integers


def _per_axis(name: str, parameter: str, value: Any, rank: int) -> list[int]:
    values = integers(name, parameter, value)
    values = values * rank if len(values) == 1 else values
    if len(values) != rank:
        raise ArgumentError(message(f"{name}(): {parameter}={value!r}", f"it must be an integer or {rank} of them"))
    return values


def _unpool(
    rank: int, x: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, data_format: str, output_size: Any
) -> Tensor:
    name = f"max_unpool{rank}d"
    if len(x.shape) != rank + 2:
        raise ShapeError(message(f"{name}(): x has shape {list(x.shape)}", f"it must have {rank + 2} axes"))
    kernel = _per_axis(name, "kernel_size", kernel_size, rank)
    steps = kernel if stride is None else _per_axis(name, "stride", stride, rank)
    edges = _per_axis(name, "padding", padding, rank)
    is_last = data_format[-1] == "C"
    spatial = x.shape[1:-1] if is_last else x.shape[2:]
    sizes = [(n - 1) * s - 2 * e + k for n, s, e, k in zip(spatial, steps, edges, kernel, strict=True)]
    if output_size is not None:
        wanted = integers(name, "output_size", output_size)
        wanted = (wanted[1:-1] if is_last else wanted[2:]) if len(wanted) == rank + 2 else wanted
        if len(wanted) != rank or any(abs(w - n) >= s for w, n, s in zip(wanted, sizes, steps, strict=True)):
            raise ShapeError(
                message(
                    f"{name}(): output_size={list(wanted)}",
                    f"each size must be less than a stride away from {sizes}, what the windows cover",
                )
            )
        sizes = wanted
    return OPS["max_unpool"](x, indices, tuple(sizes), is_last)


@takes_numbers("output_size")
def max_unpool1d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Counts,
    stride: Counts | None = None,
    padding: Sizes = 0,
    data_format: Format1D = "NCL",
    output_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """x's values at the flat positions that ``max_pool1d`` gave with ``return_mask``, zeros elsewhere.

    Args:
        x: [N, C, L].
        indices: int positions of x's shape.
        kernel_size: of the pooling.
        stride: of the pooling; by default the kernel's size.
        padding: of the pooling.
        output_size: the spatial sizes (or the shape) of the result, where several pool to x's.
    """
    return _unpool(1, x, indices, kernel_size, stride, padding, data_format, output_size)


@takes_numbers("output_size")
def max_unpool2d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Counts,
    stride: Counts | None = None,
    padding: Sizes = 0,
    data_format: Format2D = "NCHW",
    output_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """The 2-d form of ``max_unpool1d``.

    Example:
        >>> import sampan as paddle
        >>> F = paddle.nn.functional
        >>> values, places = F.max_pool2d(paddle.to_tensor([[[[1.0, 2.0], [4.0, 3.0]]]]), 2, return_mask=True)
        >>> F.max_unpool2d(values, places, 2).tolist()
        [[[[0.0, 0.0], [4.0, 0.0]]]]
    """
    return _unpool(2, x, indices, kernel_size, stride, padding, data_format, output_size)


@takes_numbers("output_size")
def max_unpool3d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Counts,
    stride: Counts | None = None,
    padding: Sizes = 0,
    data_format: Format3D = "NCDHW",
    output_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """The 3-d form of ``max_unpool1d``."""
    return _unpool(3, x, indices, kernel_size, stride, padding, data_format, output_size)


def lp_pool1d(
    x: Tensor,
    norm_type: Positive,
    kernel_size: Counts,
    stride: Counts | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    data_format: Format1D = "NCL",
    name: str | None = None,
) -> Tensor:
    """(sum of x ** norm_type) ** (1 / norm_type) over every window of x [N, C, L]; the maximum for an infinite norm."""
    return OPS["power_pool"](x, 1, float(norm_type), kernel_size, stride, padding, ceil_mode, data_format)


def lp_pool2d(
    x: Tensor,
    norm_type: Positive,
    kernel_size: Counts,
    stride: Counts | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    data_format: Format2D = "NCHW",
    name: str | None = None,
) -> Tensor:
    """(sum of x ** norm_type) ** (1 / norm_type) over every window of x [N, C, H, W]; the maximum for an infinite norm."""
    return OPS["power_pool"](x, 2, float(norm_type), kernel_size, stride, padding, ceil_mode, data_format)


def _fractional(rank: int, x: Tensor, output_size: Any, kernel_size: Any, random_u: float | None, return_mask: bool) -> Any:
    name = f"fractional_max_pool{rank}d"
    if len(x.shape) != rank + 2:
        raise ShapeError(message(f"{name}(): x has shape {list(x.shape)}", f"it must have {rank + 2} axes"))
    given = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * rank
    if len(given) != rank:
        raise ArgumentError(message(f"{name}(): output_size={output_size!r}", f"it must be an integer or {rank} of them"))
    sizes = [n if s is None else int(s) for s, n in zip(given, x.shape[2:], strict=True)]
    windows = [0] * rank if kernel_size is None else _per_axis(name, "kernel_size", kernel_size, rank)
    if any(not 1 <= s <= n or w > n for s, n, w in zip(sizes, x.shape[2:], windows, strict=True)):
        raise ShapeError(
            message(
                f"{name}(): output_size={sizes}, kernel_size={windows} for x {list(x.shape)}",
                "neither may be larger than the axis",
            )
        )
    if random_u is None:
        random_u = (default_generator.next_key() % (1 << 53) + 0.5) / (1 << 53)
    values, places = OPS["fractional_max_pool"](x, float(random_u), tuple(sizes), tuple(windows))
    return (values, places) if return_mask else values


def _drawn_sizes(rank: int) -> Any:
    """The types of a fractional pool whose windows are drawn; None where ``random_u`` fixes them."""

    def types(
        x: Any, output_size: Any, kernel_size: Any = None, random_u: Any = None, return_mask: bool = False, name: Any = None
    ) -> Any:
        if random_u is not None or len(x.shape) != rank + 2:
            return None
        given = output_size if isinstance(output_size, (list, tuple)) else [output_size] * rank
        shape = (*x.shape[:2], *(n if s is None else s for s, n in zip(given, x.shape[2:], strict=True)))
        return ((x.dtype, shape), ("int32", shape)) if return_mask else (x.dtype, shape)

    return types


@decided_by_data(_drawn_sizes(2))
def fractional_max_pool2d(
    x: Tensor,
    output_size: OutputSizes,
    kernel_size: Counts | None = None,
    random_u: Fraction | None = None,
    return_mask: bool = False,
    name: str | None = None,
) -> Any:
    """The maximum of ``output_size`` windows of x [N, C, H, W] whose sizes vary at random around the ratio of the sizes.

    Args:
        output_size: of the result; None keeps an axis.
        kernel_size: overlapping windows of this size in place of disjoint ones.
        random_u: a number in (0, 1) that fixes the windows; drawn when None.
        return_mask: also give where each maximum is, as its flat position.

    Source: B. Graham, https://arxiv.org/abs/1412.6071
    """
    return _fractional(2, x, output_size, kernel_size, random_u, return_mask)


@decided_by_data(_drawn_sizes(3))
def fractional_max_pool3d(
    x: Tensor,
    output_size: OutputSizes,
    kernel_size: Counts | None = None,
    random_u: Fraction | None = None,
    return_mask: bool = False,
    name: str | None = None,
) -> Any:
    """The 3-d form of ``fractional_max_pool2d``."""
    return _fractional(3, x, output_size, kernel_size, random_u, return_mask)


__all__ = [
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]
