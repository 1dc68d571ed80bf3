"""Layer 2: the operators, each defined once as mathematics over the primitives."""

from . import elementwise, subscript
from .catalog import TABLE
from .define import OPERATORS, OpDef

__all__ = ["OPERATORS", "TABLE", "OpDef", "elementwise", "subscript"]
