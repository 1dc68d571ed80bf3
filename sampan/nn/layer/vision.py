"""Layers that move pixels and channels."""

from __future__ import annotations

from typing import Any

from ...base.kinds import Count, Format2D
from ...tensor import Tensor
from .. import functional as F
from .configured import Configured


class PixelShuffle(Configured):
    """[N, C r^2, H, W] as [N, C, H r, W r]. https://arxiv.org/abs/1609.05158"""

    def __init__(self, upscale_factor: Count, data_format: Format2D = "NCHW", name: str | None = None) -> None:
        super().__init__(name, _upscale_factor=upscale_factor, _data_format=data_format)

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(x, self._upscale_factor, self._data_format)

    def extra_repr(self) -> str:
        return _with_format(self, f"upscale_factor={self._upscale_factor}")


class PixelUnshuffle(Configured):
    """[N, C, H r, W r] as [N, C r^2, H, W]."""

    def __init__(self, downscale_factor: Count, data_format: Format2D = "NCHW", name: str | None = None) -> None:
        super().__init__(name, _downscale_factor=downscale_factor, _data_format=data_format)

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_unshuffle(x, self._downscale_factor, self._data_format)

    def extra_repr(self) -> str:
        return _with_format(self, f"downscale_factor={self._downscale_factor}")


class ChannelShuffle(Configured):
    """Channels regrouped: [N, g, C / g, ...] as [N, C / g, g, ...]. https://arxiv.org/abs/1707.01083"""

    def __init__(self, groups: Count, data_format: Format2D = "NCHW", name: str | None = None) -> None:
        super().__init__(name, _groups=groups, _data_format=data_format)

    def forward(self, x: Tensor) -> Tensor:
        return F.channel_shuffle(x, self._groups, self._data_format)

    def extra_repr(self) -> str:
        return _with_format(self, f"groups={self._groups}")


def _with_format(layer: Any, shown: str) -> str:
    shown += f", data_format={layer._data_format}" if layer._data_format != "NCHW" else ""
    return shown + (f", name={layer._name}" if layer._name is not None else "")


__all__ = ["ChannelShuffle", "PixelShuffle", "PixelUnshuffle"]
