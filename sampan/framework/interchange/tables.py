"""All rows: importing this module fills the table."""

from __future__ import annotations

from . import (
    table_computed,
    table_creation,
    table_layers,
    table_losses,
    table_maps,
    table_products,
    table_random,
    table_reductions,
    table_shapes,
    table_windows,
)
from .structure import STRUCTURE

__all__ = [
    "STRUCTURE",
    "table_computed",
    "table_creation",
    "table_layers",
    "table_losses",
    "table_maps",
    "table_products",
    "table_random",
    "table_reductions",
    "table_shapes",
    "table_windows",
]
