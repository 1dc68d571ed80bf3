"""``paddle.vision.ops``: building blocks of image networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import nn


class ConvNormActivation(nn.Sequential):
    """A 2-d convolution, a normalisation and an activation in a row.

    Args:
        in_channels: the input's channels.
        out_channels: the result's channels.
        kernel_size: the kernel's height and width.
        stride: of the convolution.
        padding: of the convolution; by default what keeps the size at stride 1.
        groups: of the convolution.
        norm_layer: makes the normalisation from the channels; None: none.
        activation_layer: makes the activation; None: none.
        dilation: of the convolution.
        bias: whether the convolution has one; by default only where no normalisation follows.

    Example:
        >>> import sampan as paddle
        >>> block = paddle.vision.ops.ConvNormActivation(3, 8, stride=2)
        >>> block(paddle.ones([1, 3, 8, 8])).shape
        paddle.Size([1, 8, 4, 4])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        stride: int = 1,
        padding: int | None = None,
        groups: int = 1,
        norm_layer: Callable[[int], nn.Layer] | None = nn.BatchNorm2D,
        activation_layer: Callable[[], nn.Layer] | None = nn.ReLU,
        dilation: int = 1,
        bias: Any = None,
    ) -> None:
        if padding is None:
            padding = (kernel_size - 1) // 2 * dilation
        has_bias = norm_layer is None if bias is None else bool(bias)
        layers: list[nn.Layer] = [
            nn.Conv2D(
                in_channels,
                out_channels,
                kernel_size,
                stride,
                padding,
                dilation=dilation,
                groups=groups,
                bias_attr=None if has_bias else False,
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer())
        super().__init__(*layers)


__all__ = ["ConvNormActivation"]
