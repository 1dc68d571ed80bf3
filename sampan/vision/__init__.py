"""``paddle.vision``: models for images, and the building blocks that they share."""

from __future__ import annotations

from . import models, ops
from .models import *  # noqa: F403

__all__ = ["models", "ops"]
__all__ += models.__all__
