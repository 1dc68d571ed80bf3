"""ResNet, ResNeXt and wide ResNet."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...base.errors import ArgumentError, message
from ...tensor import Tensor
from .pretrained import refuse_pretrained

#: Blocks of the four stages, by depth.
_STAGES = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


class BasicBlock(nn.Layer):
    """Two convolutions of 3 x 3 beside a shortcut."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Layer | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        if groups != 1 or base_width != 64 or dilation > 1:
            raise ArgumentError(
                message(
                    f"BasicBlock: groups={groups}, base_width={base_width}, dilation={dilation}",
                    "only BottleneckBlock has groups, other widths and dilation",
                )
            )
        norm = norm_layer or nn.BatchNorm2D
        self.conv1 = nn.Conv2D(inplanes, planes, 3, padding=1, stride=stride, bias_attr=False)
        self.bn1 = norm(planes)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2D(planes, planes, 3, padding=1, bias_attr=False)
        self.bn2 = norm(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class BottleneckBlock(nn.Layer):
    """Convolutions of 1 x 1, 3 x 3 and 1 x 1, the last with four times the channels, beside a shortcut."""

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Layer | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        norm = norm_layer or nn.BatchNorm2D
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = nn.Conv2D(inplanes, width, 1, bias_attr=False)
        self.bn1 = norm(width)
        self.conv2 = nn.Conv2D(
            width, width, 3, padding=dilation, stride=stride, groups=groups, dilation=dilation, bias_attr=False
        )
        self.bn2 = norm(width)
        self.conv3 = nn.Conv2D(width, planes * self.expansion, 1, bias_attr=False)
        self.bn3 = norm(planes * self.expansion)
        self.relu = nn.ReLU()
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(out)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Layer):
    """A residual net for images [N, 3, H, W].

    Args:
        block: BasicBlock or BottleneckBlock.
        depth: 18, 34, 50, 101 or 152.
        width: the base width of BottleneckBlock's inner convolution.
        num_classes: the width of the result; not positive: no classifier.
        with_pool: average the features over the image.
        groups: of BottleneckBlock's inner convolution.

    Raises:
        ArgumentError: another depth.

    Example:
        >>> import sampan as paddle
        >>> from sampan.vision.models.resnet import BasicBlock, ResNet
        >>> ResNet(BasicBlock, 18, num_classes=10)(paddle.ones([2, 3, 32, 32])).shape
        paddle.Size([2, 10])

    Source: K. He et al., https://arxiv.org/abs/1512.03385
    """

    def __init__(
        self,
        block: type[BasicBlock | BottleneckBlock],
        depth: int = 50,
        width: int = 64,
        num_classes: int = 1000,
        with_pool: bool = True,
        groups: int = 1,
    ) -> None:
        super().__init__()
        if depth not in _STAGES:
            raise ArgumentError(message(f"ResNet(): depth={depth!r}", f"it must be one of {', '.join(map(str, _STAGES))}"))
        self.groups, self.base_width = groups, width
        self.num_classes, self.with_pool = num_classes, with_pool
        self.inplanes, self.dilation = 64, 1
        self.conv1 = nn.Conv2D(3, 64, 7, stride=2, padding=3, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2D(3, 2, 1)
        counts = _STAGES[depth]
        self.layer1 = self._make_layer(block, 64, counts[0])
        self.layer2 = self._make_layer(block, 128, counts[1], stride=2)
        self.layer3 = self._make_layer(block, 256, counts[2], stride=2)
        self.layer4 = self._make_layer(block, 512, counts[3], stride=2)
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D((1, 1))
        if num_classes > 0:
            self.fc = nn.Linear(512 * block.expansion, num_classes)

    def _make_layer(
        self, block: type[BasicBlock | BottleneckBlock], planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> nn.Sequential:
        """A stage, under the name that subclasses in users' code call. ``dilate``: windows are not moved by the stride; the first
        block of the next stage is dilated by it, as in Paddle."""
        before = self.dilation
        if dilate:
            self.dilation, stride = self.dilation * stride, 1
        downsample = None
        width = planes * block.expansion
        if stride != 1 or self.inplanes != width:
            downsample = nn.Sequential(nn.Conv2D(self.inplanes, width, 1, stride=stride, bias_attr=False), nn.BatchNorm2D(width))
        made = [block(self.inplanes, planes, stride, downsample, self.groups, self.base_width, before)]
        self.inplanes = width
        made += [block(width, planes, groups=self.groups, base_width=self.base_width) for _ in range(1, blocks)]
        return nn.Sequential(*made)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        if self.with_pool:
            x = self.avgpool(x)
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x


def _resnet(name: str, depth: int, pretrained: bool, options: dict[str, Any]) -> ResNet:
    refuse_pretrained(name, pretrained)
    return ResNet(BasicBlock if depth < 50 else BottleneckBlock, depth, **options)


def resnet18(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 18 layers; ``kwargs`` go to ``ResNet``.

    Raises:
        UnsupportedError: pretrained weights.

    Example:
        >>> import sampan as paddle
        >>> paddle.vision.models.resnet18(num_classes=10)(paddle.ones([2, 3, 32, 32])).shape
        paddle.Size([2, 10])
    """
    return _resnet("resnet18", 18, pretrained, kwargs)


def resnet34(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 34 layers, as ``resnet18``."""
    return _resnet("resnet34", 34, pretrained, kwargs)


def resnet50(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 50 layers, as ``resnet18``."""
    return _resnet("resnet50", 50, pretrained, kwargs)


def resnet101(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 101 layers, as ``resnet18``."""
    return _resnet("resnet101", 101, pretrained, kwargs)


def resnet152(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 152 layers, as ``resnet18``."""
    return _resnet("resnet152", 152, pretrained, kwargs)


def _resnext(depth: int, groups: int, pretrained: bool, options: dict[str, Any]) -> ResNet:
    name = f"resnext{depth}_{groups}x4d"
    return _resnet(name, depth, pretrained, {"groups": groups, "width": 4} | options)


def resnext50_32x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 50 layers, 32 groups of 4 channels; as ``resnet18``. https://arxiv.org/abs/1611.05431"""
    return _resnext(50, 32, pretrained, kwargs)


def resnext50_64x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 50 layers, 64 groups of 4 channels; as ``resnet18``."""
    return _resnext(50, 64, pretrained, kwargs)


def resnext101_32x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 101 layers, 32 groups of 4 channels; as ``resnet18``."""
    return _resnext(101, 32, pretrained, kwargs)


def resnext101_64x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 101 layers, 64 groups of 4 channels; as ``resnet18``."""
    return _resnext(101, 64, pretrained, kwargs)


def resnext152_32x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 152 layers, 32 groups of 4 channels; as ``resnet18``."""
    return _resnext(152, 32, pretrained, kwargs)


def resnext152_64x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 152 layers, 64 groups of 4 channels; as ``resnet18``."""
    return _resnext(152, 64, pretrained, kwargs)


def wide_resnet50_2(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 50 layers whose inner convolutions are twice as wide; as ``resnet18``. https://arxiv.org/abs/1605.07146"""
    return _resnet("wide_resnet50_2", 50, pretrained, {"width": 128} | kwargs)


def wide_resnet101_2(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 101 layers whose inner convolutions are twice as wide; as ``resnet18``."""
    return _resnet("wide_resnet101_2", 101, pretrained, {"width": 128} | kwargs)


__all__ = [
    "ResNet",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "resnext50_64x4d",
    "resnext101_32x4d",
    "resnext101_64x4d",
    "resnext152_32x4d",
    "resnext152_64x4d",
    "wide_resnet50_2",
    "wide_resnet101_2",
]
