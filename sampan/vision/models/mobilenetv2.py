"""MobileNet, version 2."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...tensor import Tensor
from ..ops import ConvNormActivation
from .pretrained import refuse_pretrained

#: For each stage: the factor of expansion, channels, blocks and the stride of the first block.
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def _rounded(channels: float, divisor: int = 8) -> int:
    """The nearest multiple of the divisor that is not more than a tenth smaller."""
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded


class InvertedResidual(nn.Layer):
    """Channels widened, convolved each by itself and narrowed again; added to the input where shapes allow."""

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int) -> None:
        super().__init__()
        self.use_res_connect = stride == 1 and inp == oup
        hidden = inp * expand_ratio
        layers: list[nn.Layer] = []
        if expand_ratio != 1:
            layers.append(ConvNormActivation(inp, hidden, 1, activation_layer=nn.ReLU6))
        layers += [
            ConvNormActivation(hidden, hidden, stride=stride, groups=hidden, activation_layer=nn.ReLU6),
            nn.Conv2D(hidden, oup, 1, bias_attr=False),
            nn.BatchNorm2D(oup),
        ]
        self.conv = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Layer):
    """A net of inverted residual blocks.

    Args:
        scale: a factor on all channels.
        num_classes: the width of the result; not positive: no classifier.
        with_pool: average the features over the image.

    Example:
        >>> import sampan as paddle
        >>> model = paddle.vision.models.MobileNetV2(scale=0.25, num_classes=10)
        >>> model.eval()
        >>> model(paddle.ones([1, 3, 32, 32])).shape
        paddle.Size([1, 10])

    Source: M. Sandler et al., https://arxiv.org/abs/1801.04381
    """

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        width = _rounded(32 * scale)
        last = _rounded(1280 * max(1.0, scale))
        layers: list[nn.Layer] = [ConvNormActivation(3, width, stride=2, activation_layer=nn.ReLU6)]
        for expansion, channels, blocks, stride in _STAGES:
            after = _rounded(channels * scale)
            for k in range(blocks):
                layers.append(InvertedResidual(width, after, stride if k == 0 else 1, expansion))
                width = after
        layers.append(ConvNormActivation(width, last, 1, activation_layer=nn.ReLU6))
        self.features = nn.Sequential(*layers)
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


def mobilenet_v2(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV2:
    """A ``MobileNetV2``; ``kwargs`` go to it.

    Raises:
        UnsupportedError: pretrained weights.
    """
    refuse_pretrained("mobilenet_v2", pretrained)
    return MobileNetV2(scale=scale, **kwargs)


__all__ = ["MobileNetV2", "mobilenet_v2"]
