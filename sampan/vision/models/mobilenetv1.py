"""MobileNet, version 1."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...tensor import Tensor
from ..ops import ConvNormActivation
from .pretrained import refuse_pretrained

#: Name, channels before and after, and stride of each depthwise separable convolution.
_BLOCKS = (
    ("conv2_1", 32, 64, 1),
    ("conv2_2", 64, 128, 2),
    ("conv3_1", 128, 128, 1),
    ("conv3_2", 128, 256, 2),
    ("conv4_1", 256, 256, 1),
    ("conv4_2", 256, 512, 2),
    *((f"conv5_{k}", 512, 512, 1) for k in range(1, 6)),
    ("conv5_6", 512, 1024, 2),
    ("conv6", 1024, 1024, 1),
)


class DepthwiseSeparable(nn.Layer):
    """A convolution of each channel by itself, then one of 1 x 1 over the channels."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self._depthwise_conv = ConvNormActivation(in_channels, in_channels, 3, stride, 1, groups=in_channels)
        self._pointwise_conv = ConvNormActivation(in_channels, out_channels, 1, padding=0)

    def forward(self, x: Tensor) -> Tensor:
        return self._pointwise_conv(self._depthwise_conv(x))


class MobileNetV1(nn.Layer):
    """A net of depthwise separable convolutions.

    Args:
        scale: a factor on all channels.
        num_classes: the width of the result; not positive: no classifier.
        with_pool: average the features over the image.

    Example:
        >>> import sampan as paddle
        >>> model = paddle.vision.models.MobileNetV1(scale=0.25, num_classes=10)
        >>> model(paddle.ones([1, 3, 32, 32])).shape
        paddle.Size([1, 10])

    Source: A. Howard et al., https://arxiv.org/abs/1704.04861
    """

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.scale, self.num_classes, self.with_pool = scale, num_classes, with_pool
        self.dwsl: list[nn.Layer] = []
        self.conv1 = ConvNormActivation(3, int(32 * scale), 3, 2, 1)
        for name, before, after, stride in _BLOCKS:
            block = DepthwiseSeparable(int(before * scale), int(after * scale), stride)
            self.add_sublayer(name, block)
            self.dwsl.append(block)
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.fc = nn.Linear(int(1024 * scale), num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x)
        for block in self.dwsl:
            x = block(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x


def mobilenet_v1(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV1:
    """A ``MobileNetV1``; ``kwargs`` go to it.

    Raises:
        UnsupportedError: pretrained weights.
    """
    refuse_pretrained("mobilenet_v1", pretrained)
    return MobileNetV1(scale=scale, **kwargs)


__all__ = ["MobileNetV1", "mobilenet_v1"]
