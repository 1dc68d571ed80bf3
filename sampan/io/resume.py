"""Where a pass over the data stands, as plain values that ``save`` can write."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, describe, message

_KEYS = ("epoch", "batch", "sampler_epoch", "begun", "now")


def generator_states() -> dict[str, Any]:
    """The states of NumPy's and Python's global generators."""
    name, words, position, has_gauss, gauss = np.random.get_state(legacy=True)
    version, numbers, gauss_next = random.getstate()
    return {
        "numpy": [str(name), np.asarray(words, "<u4").tobytes(), int(position), int(has_gauss), float(gauss)],
        "python": [version, np.asarray(numbers, "<u4").tobytes(), gauss_next],
    }


def set_generator_states(states: dict[str, Any]) -> None:
    """Put both generators into these states."""
    name, words, *rest = states["numpy"]
    np.random.set_state((name, np.frombuffer(words, "<u4"), *rest))
    version, numbers, gauss_next = states["python"]
    random.setstate((version, tuple(np.frombuffer(numbers, "<u4").tolist()), gauss_next))


def checked(state: Any) -> dict[str, Any]:
    """``state``, when ``DataLoader.state_dict`` made it."""
    missing = [key for key in _KEYS if key not in state] if isinstance(state, dict) else list(_KEYS)
    if missing:
        raise ArgumentError(
            message(
                f"DataLoader.set_state_dict(): {describe(state)} has no {', '.join(missing)}",
                "it was not made by DataLoader.state_dict()",
            )
        )
    return state
