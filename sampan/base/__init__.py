"""Layer 0: errors, flags, dtypes, places, names and nested containers; knows no other sampan package."""

from .flags import get_flags, set_flags

__all__ = ["get_flags", "set_flags"]
