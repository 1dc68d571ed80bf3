"""VGG."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...tensor import Tensor
from .pretrained import refuse_pretrained

#: Channels of the convolutions of each block; a pooling of 2 follows every block.
_BLOCKS = {
    11: ((64,), (128,), (256, 256), (512, 512), (512, 512)),
    13: ((64, 64), (128, 128), (256, 256), (512, 512), (512, 512)),
    16: ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512)),
    19: ((64, 64), (128, 128), (256,) * 4, (512,) * 4, (512,) * 4),
}


class VGG(nn.Layer):
    """Convolutions of 3 x 3, and a classifier of three linear layers.

    Args:
        features: the layer of convolutions, which gives 512 channels.
        num_classes: the width of the result; not positive: no classifier.
        with_pool: average the features to 7 x 7 before the classifier.

    Source: K. Simonyan, A. Zisserman, https://arxiv.org/abs/1409.1556
    """

    def __init__(self, features: nn.Layer, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.features = features
        self.num_classes, self.with_pool = num_classes, with_pool
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D((7, 7))
        if num_classes > 0:
            self.classifier = nn.Sequential(
                nn.Linear(512 * 7 * 7, 4096),
                nn.ReLU(),
                nn.Dropout(),
                nn.Linear(4096, 4096),
                nn.ReLU(),
                nn.Dropout(),
                nn.Linear(4096, num_classes),
            )

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        if self.with_pool:
            x = self.avgpool(x)
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


def _vgg(depth: int, pretrained: bool, batch_norm: bool, options: dict[str, Any]) -> VGG:
    refuse_pretrained(f"vgg{depth}", pretrained)
    layers: list[nn.Layer] = []
    width = 3
    for block in _BLOCKS[depth]:
        for channels in block:
            layers.append(nn.Conv2D(width, channels, 3, padding=1))
            layers += [nn.BatchNorm2D(channels), nn.ReLU()] if batch_norm else [nn.ReLU()]
            width = channels
        layers.append(nn.MaxPool2D(2, 2))
    return VGG(nn.Sequential(*layers), **options)


def vgg11(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
    """VGG of 11 layers; ``kwargs`` go to ``VGG``. ``batch_norm``: normalise after each convolution.

    Example:
        >>> import sampan as paddle
        >>> features = paddle.vision.models.vgg11(num_classes=0)
        >>> features(paddle.ones([1, 3, 32, 32])).shape
        paddle.Size([1, 512, 7, 7])
    """
    return _vgg(11, pretrained, batch_norm, kwargs)


def vgg13(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
    """VGG of 13 layers, as ``vgg11``."""
    return _vgg(13, pretrained, batch_norm, kwargs)


def vgg16(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
    """VGG of 16 layers, as ``vgg11``."""
    return _vgg(16, pretrained, batch_norm, kwargs)


def vgg19(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
    """VGG of 19 layers, as ``vgg11``."""
    return _vgg(19, pretrained, batch_norm, kwargs)


__all__ = ["VGG", "vgg11", "vgg13", "vgg16", "vgg19"]
