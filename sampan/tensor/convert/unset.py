"""The error of a variable without a value, in the words of the Python that runs."""

from __future__ import annotations

import sys


def unset(name: str) -> UnboundLocalError:
    """What reading a local variable raises before it has a value."""
    if sys.version_info < (3, 11):
        return UnboundLocalError(f"local variable '{name}' referenced before assignment")
    return UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value")
