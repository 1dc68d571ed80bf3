"""The high-level API: ``Model``, its callbacks, and tables of a network's layers and their work."""

from .flops import flops
from .model import Model
from .summary import summary

__all__ = ["Model", "flops", "summary"]
