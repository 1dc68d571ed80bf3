"""LookAhead, ModelAverage, LBFGS, and minimisation of functions."""

from ...optimizer import LBFGS
from . import functional
from .averages import LookAhead, ModelAverage

__all__ = ["LBFGS", "LookAhead", "ModelAverage", "functional"]
