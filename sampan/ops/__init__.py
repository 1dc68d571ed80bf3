"""Layer 2: the operators, each defined once as mathematics over the primitives."""

from . import elementwise, optimizer_steps, subscript
from .catalog import TABLE
from .define import OPERATORS, OpDef

__all__ = ["OPERATORS", "TABLE", "OpDef", "elementwise", "optimizer_steps", "subscript"]
