"""Size: a tensor's shape as users see it."""

from __future__ import annotations

import math
from typing import Any

from ..base.errors import IndexRangeError


class ElementCount(int):
    """A tensor's ``size``: the number of its elements, and called, its shape or one size of it."""

    _shape: Size

    def __new__(cls, count: int, shape: Size) -> ElementCount:
        """The number, which remembers the shape."""
        made = super().__new__(cls, count)
        made._shape = shape
        return made

    def __call__(self, dim: int | None = None) -> Any:
        """The shape; the size of axis ``dim`` where that is given."""
        if dim is None:
            return self._shape
        if not -len(self._shape) <= dim < len(self._shape):
            raise IndexRangeError(f"size(): dim is {dim}; a tensor of shape {list(self._shape)} has {len(self._shape)} axes")
        return self._shape[dim]

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


class Size(list):  # type: ignore[type-arg]
    """A shape: a list of sizes that prints as ``paddle.Size([2, 3])``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"paddle.Size({list(self)})"

    __str__ = __repr__

    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        return Size(item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Size:
        return Size([*self, *other])

    def __radd__(self, other: Any) -> Size:
        return Size([*other, *self])

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self)
