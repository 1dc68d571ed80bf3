"""Layers that pad."""

from __future__ import annotations

from ...base.kinds import Format1D, Format2D, Format3D, Integers, PaddingMode
from ...tensor import Tensor
from .. import functional as F
from .configured import Configured


class _Pad(Configured):
    """Padding by fixed widths; an integer means all sides."""

    _rank = 1
    _shown = ("padding", "_mode", "value", "_data_format")

    def __init__(self, padding: Integers | Tensor, mode: str, value: float, data_format: str, name: str | None) -> None:
        widths = [int(padding)] * (2 * self._rank) if isinstance(padding, int) else padding
        super().__init__(name, padding=widths, _mode=mode, value=value, _data_format=data_format)

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self.padding, self._mode, self.value, self._data_format)


class Pad1D(_Pad):
    """The spatial axes of an input padded by [left, right].

    Args:
        padding: the widths, or one integer for all.
        mode: ``constant``, ``reflect``, ``replicate`` or ``circular``.
        value: of constant padding.
        data_format: which axis holds channels.
    """

    _rank = 1

    def __init__(
        self,
        padding: Integers | Tensor,
        mode: PaddingMode = "constant",
        value: float = 0.0,
        data_format: Format1D = "NCL",
        name: str | None = None,
    ) -> None:
        super().__init__(padding, mode, value, data_format, name)


class Pad2D(_Pad):
    """The spatial axes of an input padded by [left, right, top, bottom].

    Args:
        padding: the widths, or one integer for all.
        mode: ``constant``, ``reflect``, ``replicate`` or ``circular``.
        value: of constant padding.
        data_format: which axis holds channels.
    """

    _rank = 2

    def __init__(
        self,
        padding: Integers | Tensor,
        mode: PaddingMode = "constant",
        value: float = 0.0,
        data_format: Format2D = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(padding, mode, value, data_format, name)


class Pad3D(_Pad):
    """The spatial axes of an input padded by [left, right, top, bottom, front, back].

    Args:
        padding: the widths, or one integer for all.
        mode: ``constant``, ``reflect``, ``replicate`` or ``circular``.
        value: of constant padding.
        data_format: which axis holds channels.
    """

    _rank = 3

    def __init__(
        self,
        padding: Integers | Tensor,
        mode: PaddingMode = "constant",
        value: float = 0.0,
        data_format: Format3D = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__(padding, mode, value, data_format, name)


class ZeroPad1D(_Pad):
    """The spatial axes of an input padded by [left, right] with zeros."""

    _rank = 1

    def __init__(self, padding: Integers | Tensor, data_format: Format1D = "NCL", name: str | None = None) -> None:
        super().__init__(padding, "constant", 0.0, data_format, name)


class ZeroPad2D(_Pad):
    """The spatial axes of an input padded by [left, right, top, bottom] with zeros."""

    _rank = 2

    def __init__(self, padding: Integers | Tensor, data_format: Format2D = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, "constant", 0.0, data_format, name)


class ZeroPad3D(_Pad):
    """The spatial axes of an input padded by [left, right, top, bottom, front, back] with zeros."""

    _rank = 3

    def __init__(self, padding: Integers | Tensor, data_format: Format3D = "NCDHW", name: str | None = None) -> None:
        super().__init__(padding, "constant", 0.0, data_format, name)


class ConstantPad1D(_Pad):
    """The spatial axes of an input padded by [left, right] with ``value``."""

    _rank = 1

    def __init__(self, padding: Integers | Tensor, value: float, data_format: Format1D = "NCL", name: str | None = None) -> None:
        super().__init__(padding, "constant", value, data_format, name)


class ConstantPad2D(_Pad):
    """The spatial axes of an input padded by [left, right, top, bottom] with ``value``."""

    _rank = 2

    def __init__(self, padding: Integers | Tensor, value: float, data_format: Format2D = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, "constant", value, data_format, name)


class ConstantPad3D(_Pad):
    """The spatial axes of an input padded by [left, right, top, bottom, front, back] with ``value``."""

    _rank = 3

    def __init__(
        self, padding: Integers | Tensor, value: float, data_format: Format3D = "NCDHW", name: str | None = None
    ) -> None:
        super().__init__(padding, "constant", value, data_format, name)


class ReflectionPad1D(_Pad):
    """The spatial axes of an input padded by [left, right] with what is inside, mirrored without the edge."""

    _rank = 1

    def __init__(self, padding: Integers | Tensor, data_format: Format1D = "NCL", name: str | None = None) -> None:
        super().__init__(padding, "reflect", 0.0, data_format, name)


class ReflectionPad2D(_Pad):
    """The spatial axes of an input padded by [left, right, top, bottom] with what is inside, mirrored without the edge."""

    _rank = 2

    def __init__(self, padding: Integers | Tensor, data_format: Format2D = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, "reflect", 0.0, data_format, name)


class ReflectionPad3D(_Pad):
    """The spatial axes of an input padded by [left, right, top, bottom, front, back] with what is inside, mirrored without the edge."""

    _rank = 3

    def __init__(self, padding: Integers | Tensor, data_format: Format3D = "NCDHW", name: str | None = None) -> None:
        super().__init__(padding, "reflect", 0.0, data_format, name)


class ReplicationPad1D(_Pad):
    """The spatial axes of an input padded by [left, right] with the edge."""

    _rank = 1

    def __init__(self, padding: Integers | Tensor, data_format: Format1D = "NCL", name: str | None = None) -> None:
        super().__init__(padding, "replicate", 0.0, data_format, name)


class ReplicationPad2D(_Pad):
    """The spatial axes of an input padded by [left, right, top, bottom] with the edge."""

    _rank = 2

    def __init__(self, padding: Integers | Tensor, data_format: Format2D = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, "replicate", 0.0, data_format, name)


class ReplicationPad3D(_Pad):
    """The spatial axes of an input padded by [left, right, top, bottom, front, back] with the edge."""

    _rank = 3

    def __init__(self, padding: Integers | Tensor, data_format: Format3D = "NCDHW", name: str | None = None) -> None:
        super().__init__(padding, "replicate", 0.0, data_format, name)


class CircularPad1D(_Pad):
    """The spatial axes of an input padded by [left, right] with the other side."""

    _rank = 1

    def __init__(self, padding: Integers | Tensor, data_format: Format1D = "NCL", name: str | None = None) -> None:
        super().__init__(padding, "circular", 0.0, data_format, name)


class CircularPad2D(_Pad):
    """The spatial axes of an input padded by [left, right, top, bottom] with the other side."""

    _rank = 2

    def __init__(self, padding: Integers | Tensor, data_format: Format2D = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, "circular", 0.0, data_format, name)


class CircularPad3D(_Pad):
    """The spatial axes of an input padded by [left, right, top, bottom, front, back] with the other side."""

    _rank = 3

    def __init__(self, padding: Integers | Tensor, data_format: Format3D = "NCDHW", name: str | None = None) -> None:
        super().__init__(padding, "circular", 0.0, data_format, name)


ConstantPad1d = ConstantPad1D
ConstantPad2d = ConstantPad2D
ConstantPad3d = ConstantPad3D
ReflectionPad1d = ReflectionPad1D
ReflectionPad2d = ReflectionPad2D
ReflectionPad3d = ReflectionPad3D
ReplicationPad1d = ReplicationPad1D
ReplicationPad2d = ReplicationPad2D
ReplicationPad3d = ReplicationPad3D
CircularPad1d = CircularPad1D
CircularPad2d = CircularPad2D
CircularPad3d = CircularPad3D

__all__ = [
    "CircularPad1D",
    "CircularPad1d",
    "CircularPad2D",
    "CircularPad2d",
    "CircularPad3D",
    "CircularPad3d",
    "ConstantPad1D",
    "ConstantPad1d",
    "ConstantPad2D",
    "ConstantPad2d",
    "ConstantPad3D",
    "ConstantPad3d",
    "Pad1D",
    "Pad2D",
    "Pad3D",
    "ReflectionPad1D",
    "ReflectionPad1d",
    "ReflectionPad2D",
    "ReflectionPad2d",
    "ReflectionPad3D",
    "ReflectionPad3d",
    "ReplicationPad1D",
    "ReplicationPad1d",
    "ReplicationPad2D",
    "ReplicationPad2d",
    "ReplicationPad3D",
    "ReplicationPad3d",
    "ZeroPad1D",
    "ZeroPad2D",
    "ZeroPad3D",
]
