"""``paddle.utils.unique_name``: names that occur once."""

from ..base.names import generate, guard, switch

__all__ = ["generate", "guard", "switch"]
