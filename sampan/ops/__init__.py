"""Layer 2: the operators, each defined once as mathematics over the primitives."""

from . import activation, common, convolution, elementwise, loss, normalization, optimizer_steps, pooling, subscript
from .catalog import TABLE
from .define import OPERATORS, OpDef

__all__ = [
    "OPERATORS",
    "TABLE",
    "OpDef",
    "activation",
    "common",
    "convolution",
    "elementwise",
    "loss",
    "normalization",
    "optimizer_steps",
    "pooling",
    "subscript",
]
