"""``paddle.jit``: eager code as Programs."""

from .train_step import TrainStep

__all__ = ["TrainStep"]
