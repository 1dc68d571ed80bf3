"""``paddle.vision.models``: networks for images; parameters have Paddle's names, so that its weight files load."""

from __future__ import annotations

from . import lenet, mobilenetv1, mobilenetv2, resnet, vgg
from .lenet import *  # noqa: F403
from .mobilenetv1 import *  # noqa: F403
from .mobilenetv2 import *  # noqa: F403
from .resnet import *  # noqa: F403
from .vgg import *  # noqa: F403

__all__ = [*lenet.__all__, *mobilenetv1.__all__, *mobilenetv2.__all__, *resnet.__all__, *vgg.__all__]  # noqa: PLE0604
