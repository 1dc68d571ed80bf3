"""Values while a model runs: tensors or Variables, and small arrays that are known, which become sizes, axes and other plain arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.errors import UnsupportedError, message
from ...tensor import OPS, to_tensor
from ...tensor.recording import current_recorder
from ...tensor.variable import Variable
from . import kinds


@dataclass(frozen=True)
class Known:
    """A tensor whose content the model file holds."""

    array: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self.array.shape


@dataclass(frozen=True)
class Mixed:
    """Sizes of which some are known while a Program is built, and the others are Variables; ``is_single``: a 0-D tensor of one."""

    items: tuple[Any, ...]
    dtype: str
    is_single: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the tensor that it stands for."""
        return () if self.is_single else (len(self.items),)


def joined(values: list[Any], is_stack: bool) -> Mixed | None:
    """Sizes put together to one list of them, where at least one is known; None where the values are tensors like others."""
    if not any(isinstance(v, (Known, Mixed)) for v in values) or not any(isinstance(v, (Mixed, Variable)) for v in values):
        return None
    items: list[Any] = []
    dtype = "int64"
    for value in values:
        wanted = 0 if is_stack else 1
        if len(value.shape) != wanted or (isinstance(value, Variable) and (wanted and list(value.shape) != [1])):
            return None
        dtype = str(value.array.dtype if isinstance(value, Known) else value.dtype)
        if "int" not in dtype:
            return None
        if isinstance(value, Variable):
            items.append(value[0] if wanted else value)  # type: ignore[index]
        else:
            items += value.items if isinstance(value, Mixed) else value.array.reshape(-1).tolist()
    return Mixed(tuple(items), dtype)


def to_plain(value: Any) -> Any:
    """Python numbers, in nested lists, of a known array, a tensor, or a list of such; Variables and other values as they are."""
    if isinstance(value, Known):
        return value.array.tolist()
    if isinstance(value, Mixed):
        return value.items[0] if value.is_single else list(value.items)
    if isinstance(value, (list, tuple)):
        return [_flat(to_plain(v)) for v in value]
    if isinstance(value, Variable) or not callable(getattr(value, "tolist", None)):
        return value
    return value.tolist()


def _flat(value: Any) -> Any:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def plain(value: Any, kind: str) -> Any:
    """The plain value of an attribute or operand as the type's letter asks for it (see ``rows``)."""
    value = to_plain(value)
    if kind == "t":
        return kinds.dtype_name(value) or None if isinstance(value, int) else value
    if isinstance(value, Variable) and kind and kind in "ILFDBSA":
        if not value.ndim:
            return [value]
        if value.ndim == 1 and value.shape[0] >= 0:
            return [value[k] for k in range(value.shape[0])]  # type: ignore[index]
        raise UnsupportedError(
            message(
                "an operator takes a list of sizes, axes or bounds from a tensor whose elements are known only when the Program runs",
                "a Program being built cannot hold that",
                "run the model eagerly, or export it with fixed sizes",
            )
        )
    if kind == "A":
        return list(value) or None if isinstance(value, (list, tuple)) else value
    if kind and kind in "ILFDBS":
        return list(value) if isinstance(value, (list, tuple)) else [value]
    if kind and kind in "il":
        found = _flat(value)
        return found if isinstance(found, Variable) else int(found)
    if kind and kind in "fdbs":
        return _flat(value)
    return value


def as_tensor(value: Any) -> Any:
    """The value as a tensor, or in a Program as a Variable, where it is an array that is known."""
    if isinstance(value, Mixed):
        pieces = [OPS["full"]([], n, value.dtype) if isinstance(n, int) else OPS["cast"](n, value.dtype) for n in value.items]
        return pieces[0] if value.is_single else OPS["stack"](pieces, 0)
    if not isinstance(value, Known):
        return value
    recorder = current_recorder()
    if recorder is None:
        return to_tensor(np.array(value.array))
    if value.array.size and (value.array == value.array.flat[0]).all():
        return OPS["full"](list(value.shape), value.array.flat[0].item(), value.array.dtype.name)
    return recorder.operand(np.array(value.array))
