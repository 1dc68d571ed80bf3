"""pad and zeropad2d: which axes the widths mean."""

from __future__ import annotations

from typing import Any

from ...base.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from ...tensor import OPS, Tensor
from ...tensor.replay import takes_numbers


def integers(name: str, parameter: str, value: Any) -> list[int]:
    """A list of ints from a list, tuple, Tensor or single number."""
    if isinstance(value, Tensor):
        value = value.tolist()
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    values = [v.item() if isinstance(v, Tensor) else v for v in values]
    for v in values:
        if isinstance(v, bool) or not hasattr(v, "__index__"):
            raise ArgumentTypeError(message(f"{name}(): {parameter} holds {v!r}", "it must hold integers"))
    return [int(v) for v in values]


@takes_numbers("pad")
def pad(
    x: Tensor,
    pad: Any,
    mode: str = "constant",
    value: float = 0.0,
    data_format: str | None = None,
    pad_from_left_axis: bool = True,
    name: str | None = None,
) -> Tensor:
    """x made larger at its edges.

    Args:
        x: any tensor.
        pad: [low, high] widths of the last axis, then of the one before it, and so on: [left, right, top, bottom] for an image. Constant padding of
            all axes (2 * rank widths) starts at the first axis instead, unless ``pad_from_left_axis`` is False. A single integer: all spatial axes.
        mode: ``constant``; ``reflect`` (without repeating the edge), ``replicate`` (the edge) or ``circular`` (the other side).
        value: of constant padding.
        data_format: channels-last formats (``NLC``, ``NHWC``, ``NDHWC``) put spatial widths before the channel axis.
        pad_from_left_axis: see ``pad``.

    Raises:
        ShapeError: there are more widths than axes, or a width is larger than the mode can fill.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([[[1.0, 2.0, 3.0]]])
        >>> paddle.nn.functional.pad(x, [1, 2], mode="reflect").tolist()
        [[[2.0, 1.0, 2.0, 3.0, 2.0, 1.0]]]
    """
    rank = len(x.shape)
    widths = integers("pad", "pad", pad)
    if len(widths) == 1 and not isinstance(pad, (list, tuple)):
        widths = widths * (2 * max(rank - 2, 1))
    if len(widths) % 2 or len(widths) > 2 * rank:
        raise ShapeError(
            message(
                f"pad(): pad holds {len(widths)} widths and x has shape {list(x.shape)}",
                f"it must hold a pair for each of at most {rank} axes",
            )
        )
    low, high = [0] * rank, [0] * rank
    count = len(widths) // 2
    if count == rank and mode == "constant" and pad_from_left_axis:
        axes = list(range(rank))
    elif data_format in ("NLC", "NHWC", "NDHWC") and count == rank - 2:
        axes = list(range(rank - 2, 0, -1))
    else:
        axes = list(range(rank - 1, rank - 1 - count, -1))
    for k, axis in enumerate(axes):
        low[axis], high[axis] = widths[2 * k], widths[2 * k + 1]
    return OPS["pad_axes"](x, tuple(low), tuple(high), mode, value)


@takes_numbers("padding")
def zeropad2d(x: Tensor, padding: Any, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """An image [N, C, H, W] with [left, right, top, bottom] zeros around it."""
    if data_format not in ("NCHW", "NHWC"):
        raise ArgumentError(message(f"zeropad2d(): data_format={data_format!r}", "it must be 'NCHW' or 'NHWC'"))
    if len(x.shape) != 4:
        raise ShapeError(message(f"zeropad2d(): x has shape {list(x.shape)}", "it must have 4 axes"))
    return pad(x, padding, data_format=data_format)


__all__ = ["pad", "zeropad2d"]
