"""Optimizers and learning-rate schedules."""

from . import lr
from .adam import Adam, AdamW
from .gradient_descent import SGD, Momentum
from .optimizer import Optimizer

__all__ = ["SGD", "Adam", "AdamW", "Momentum", "Optimizer", "lr"]
