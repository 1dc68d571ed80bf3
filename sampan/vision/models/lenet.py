"""LeNet."""

from __future__ import annotations

from ... import nn
from ...tensor import Tensor


class LeNet(nn.Layer):
    """A small convolution net for images [N, 1, 28, 28].

    Args:
        num_classes: the width of the result; not positive: the features before the classifier.

    Example:
        >>> import sampan as paddle
        >>> paddle.vision.models.LeNet()(paddle.ones([2, 1, 28, 28])).shape
        paddle.Size([2, 10])

    Source: Y. LeCun et al., "Gradient-Based Learning Applied to Document Recognition", 1998.
    """

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.features = nn.Sequential(
            nn.Conv2D(1, 6, 3, stride=1, padding=1),
            nn.ReLU(),
            nn.MaxPool2D(2, 2),
            nn.Conv2D(6, 16, 5, stride=1, padding=0),
            nn.ReLU(),
            nn.MaxPool2D(2, 2),
        )
        if num_classes > 0:
            self.fc = nn.Sequential(nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, num_classes))

    def forward(self, inputs: Tensor) -> Tensor:
        x = self.features(inputs)
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x


__all__ = ["LeNet"]
