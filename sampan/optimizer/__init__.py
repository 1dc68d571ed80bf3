"""Optimizers and learning-rate schedules."""

from . import lr
from .adam import Adam, AdamW
from .adam_variants import Adamax, Lamb, NAdam, RAdam
from .adaptive import Adadelta, Adagrad, RMSProp
from .gradient_descent import ASGD, SGD, Momentum, Rprop
from .lbfgs import LBFGS
from .optimizer import Optimizer

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lamb",
    "Momentum",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSProp",
    "Rprop",
    "lr",
]
