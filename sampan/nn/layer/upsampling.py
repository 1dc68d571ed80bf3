"""Layers that resize."""

from __future__ import annotations

from typing import Literal

from ...base.kinds import Counts, Format2D, Scales
from ...tensor import Tensor
from .. import functional as F
from ..functional.resizing import require_resizing
from .configured import Configured


class Upsample(Configured):
    """Spatial axes resized by interpolation.

    Args:
        size: the spatial sizes of the result.
        scale_factor: in place of ``size``: the factor of each spatial axis, or one for all.
        mode: ``nearest``, ``linear``, ``bilinear``, ``trilinear``, ``bicubic`` or ``area``.
        align_corners: the centres of the outer pixels stay at the ends.
        align_mode: for linear modes without ``align_corners``: 0: pixels are squares, 1: points at their index.
        data_format: which axis holds channels.
        recompute_scale_factor: take distances from the sizes, not from ``scale_factor``.
    """

    def __init__(
        self,
        size: Counts | Tensor | None = None,
        scale_factor: Scales | Tensor | None = None,
        mode: str = "nearest",
        align_corners: bool = False,
        align_mode: Literal[0, 1] = 0,
        data_format: str | None = None,
        recompute_scale_factor: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            size=size,
            scale_factor=scale_factor,
            mode=require_resizing("Upsample", mode, size, scale_factor, align_corners, data_format),
            align_corners=align_corners,
            align_mode=align_mode,
            data_format=data_format,
            recompute_scale_factor=recompute_scale_factor,
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(
            x,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.align_mode,
            self.data_format,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        target = f"scale_factor={self.scale_factor}" if self.scale_factor is not None else f"size={self.size}"
        shown = f"{target}, mode={self.mode}, align_corners={self.align_corners}, align_mode={self.align_mode}"
        return f"{shown}, data_format={self.data_format}" + (f", name={self._name}" if self._name is not None else "")


class _Upsampling2D(Configured):
    _mode = "nearest"
    _align_corners = False

    def __init__(
        self,
        size: Counts | Tensor | None = None,
        scale_factor: Scales | Tensor | None = None,
        data_format: Format2D = "NCHW",
        name: str | None = None,
    ) -> None:
        require_resizing(type(self).__name__, self._mode, size, scale_factor, self._align_corners, data_format)
        super().__init__(name, size=size, scale_factor=scale_factor, data_format=data_format)

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, self.size, self.scale_factor, self._mode, self._align_corners, data_format=self.data_format)

    def extra_repr(self) -> str:
        target = f"scale_factor={self.scale_factor}" if self.scale_factor is not None else f"size={self.size}"
        return f"{target}, data_format={self.data_format}" + (f", name={self._name}" if self._name is not None else "")


class UpsamplingNearest2D(_Upsampling2D):
    """An image [N, C, H, W] resized by its nearest pixels."""


class UpsamplingBilinear2D(_Upsampling2D):
    """An image [N, C, H, W] resized bilinearly, its corners kept."""

    _mode = "bilinear"
    _align_corners = True


__all__ = ["Upsample", "UpsamplingBilinear2D", "UpsamplingNearest2D"]
