"""Layer 1: Programs as data. It does not know which operators exist."""

from .builder import Builder, current_builder
from .program import Block, Op, Program, Value
from .text import parse_program, print_program
from .verify import verify

__all__ = ["Block", "Builder", "Op", "Program", "Value", "current_builder", "parse_program", "print_program", "verify"]
