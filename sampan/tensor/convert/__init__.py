"""Conversion of eager Python: the same functions, whose branches and loops become part of a Program where they depend on symbolic values."""

from __future__ import annotations

from . import helpers  # gives converted code its helpers
from .blocks import around, current, recording, running_parts
from .calls import running_layer
from .functions import convert, converted, converted_source, ignore_modules, leave_alone, wants_conversion
from .journal import Journal
from .numbers import Number

__all__ = [
    "Journal",
    "Number",
    "around",
    "convert",
    "converted",
    "converted_source",
    "current",
    "helpers",
    "ignore_modules",
    "leave_alone",
    "recording",
    "running_layer",
    "running_parts",
    "wants_conversion",
]
