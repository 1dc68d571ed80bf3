"""Optimizers and learning-rate schedules."""

from . import lr

__all__ = ["lr"]
