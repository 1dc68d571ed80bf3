"""Values while a model runs: tensors or Variables, and small arrays that are known, which become sizes, axes and other plain arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.errors import UnsupportedError, message
from . import kinds


@dataclass(frozen=True)
class Known:
    """A tensor whose content the model file holds."""

    array: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self.array.shape


def to_plain(value: Any) -> Any:
    """Python numbers, in nested lists, of a known array, a tensor, or a list of such; other values as they are."""
    if isinstance(value, Known):
        return value.array.tolist()
    if isinstance(value, (list, tuple)):
        return [_flat(to_plain(v)) for v in value]
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    if hasattr(value, "shape"):
        raise UnsupportedError(
            message(
                "an operator takes its sizes, axes or bounds from a tensor whose content is known only when the Program runs",
                "this is not supported in a Program being built",
                "run the model eagerly, or export it with fixed sizes",
            )
        )
    return value


def _flat(value: Any) -> Any:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def plain(value: Any, kind: str) -> Any:
    """The plain value of an attribute or operand as the type's letter asks for it (see ``rows``)."""
    value = to_plain(value)
    if kind == "t":
        return kinds.dtype_name(value) or None if isinstance(value, int) else value
    if kind == "A":
        return list(value) or None if isinstance(value, (list, tuple)) else value
    if kind and kind in "ILFDBS":
        return list(value) if isinstance(value, (list, tuple)) else [value]
    if kind and kind in "il":
        return int(_flat(value))
    if kind and kind in "fdbs":
        return _flat(value)
    return value
