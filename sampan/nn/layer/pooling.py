"""Pooling layers; each computes the function of its name in ``nn.functional``."""

from __future__ import annotations

from typing import Any

from ...base.kinds import Counts, Format1D, Format2D, Format3D, Fraction, OutputSizes, Padding, Positive, Sizes
from ...tensor import Tensor
from .. import functional as F
from .configured import Configured, also


class _Pool(Configured):
    _shown = ("kernel_size", "stride", "padding")
    kernel_size = also("ksize")  # as the pooling layers of one axis call it


class MaxPool1D(_Pool):
    """The maximum of every window of [N, C, L].

    Args:
        kernel_size: the window's size: an integer, or one for each spatial axis.
        stride: the windows' distance; by default their size.
        padding: an integer; one, or two, for each spatial axis; ``"same"`` or ``"valid"``.
        return_mask: also give where each maximum is, as its flat position in the spatial axes.
        ceil_mode: a last window may reach over the edge.
    """

    def __init__(
        self,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Padding = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name, kernel_size=kernel_size, stride=stride, padding=padding, return_mask=return_mask, ceil_mode=ceil_mode
        )

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.return_mask, self.ceil_mode)


class MaxPool2D(_Pool):
    """The maximum of every window of [N, C, H, W].

    Args:
        kernel_size: the window's size: an integer, or one for each spatial axis.
        stride: the windows' distance; by default their size.
        padding: an integer; one, or two, for each spatial axis; ``"same"`` or ``"valid"``.
        return_mask: also give where each maximum is, as its flat position in the spatial axes.
        ceil_mode: a last window may reach over the edge.
    """

    def __init__(
        self,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Padding = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: Format2D = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            ksize=kernel_size,
            stride=stride,
            padding=padding,
            return_mask=return_mask,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )

    def forward(self, x: Tensor) -> Any:
        return F.max_pool2d(x, self.ksize, self.stride, self.padding, self.return_mask, self.ceil_mode, self.data_format)


class MaxPool3D(_Pool):
    """The maximum of every window of [N, C, D, H, W].

    Args:
        kernel_size: the window's size: an integer, or one for each spatial axis.
        stride: the windows' distance; by default their size.
        padding: an integer; one, or two, for each spatial axis; ``"same"`` or ``"valid"``.
        return_mask: also give where each maximum is, as its flat position in the spatial axes.
        ceil_mode: a last window may reach over the edge.
    """

    def __init__(
        self,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Padding = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: Format3D = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            ksize=kernel_size,
            stride=stride,
            padding=padding,
            return_mask=return_mask,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )

    def forward(self, x: Tensor) -> Any:
        return F.max_pool3d(x, self.ksize, self.stride, self.padding, self.return_mask, self.ceil_mode, self.data_format)


class AvgPool1D(_Pool):
    """The mean of every window of [N, C, L].

    Args:
        kernel_size: the window's size: an integer, or one for each spatial axis.
        stride: the windows' distance; by default their size.
        padding: an integer; one, or two, for each spatial axis; ``"same"`` or ``"valid"``.
        exclusive: padding does not count.
        ceil_mode: a last window may reach over the edge.
    """

    def __init__(
        self,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Padding = 0,
        exclusive: bool = True,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name, kernel_size=kernel_size, stride=stride, padding=padding, exclusive=exclusive, ceil_mode=ceil_mode)

    def forward(self, x: Tensor) -> Any:
        return F.avg_pool1d(x, self.kernel_size, self.stride, self.padding, self.exclusive, self.ceil_mode)


class AvgPool2D(_Pool):
    """The mean of every window of [N, C, H, W].

    Args:
        kernel_size: the window's size: an integer, or one for each spatial axis.
        stride: the windows' distance; by default their size.
        padding: an integer; one, or two, for each spatial axis; ``"same"`` or ``"valid"``.
        exclusive: padding does not count.
        ceil_mode: a last window may reach over the edge.
        divisor_override: divide by this number.
    """

    def __init__(
        self,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        divisor_override: int | None = None,
        data_format: Format2D = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            ksize=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            exclusive=exclusive,
            divisor_override=divisor_override,
            data_format=data_format,
        )

    def forward(self, x: Tensor) -> Any:
        return F.avg_pool2d(
            x,
            self.ksize,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.exclusive,
            self.divisor_override,
            self.data_format,
        )


class AvgPool3D(_Pool):
    """The mean of every window of [N, C, D, H, W].

    Args:
        kernel_size: the window's size: an integer, or one for each spatial axis.
        stride: the windows' distance; by default their size.
        padding: an integer; one, or two, for each spatial axis; ``"same"`` or ``"valid"``.
        exclusive: padding does not count.
        ceil_mode: a last window may reach over the edge.
        divisor_override: divide by this number.
    """

    def __init__(
        self,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        divisor_override: int | None = None,
        data_format: Format3D = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            ksize=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            exclusive=exclusive,
            divisor_override=divisor_override,
            data_format=data_format,
        )

    def forward(self, x: Tensor) -> Any:
        return F.avg_pool3d(
            x,
            self.ksize,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.exclusive,
            self.divisor_override,
            self.data_format,
        )


class AdaptiveAvgPool1D(Configured):
    """The mean of ``output_size`` windows that cover [N, C, L]; None keeps an axis."""

    _shown = ("output_size",)
    output_size: OutputSizes

    def __init__(self, output_size: OutputSizes, name: str | None = None) -> None:
        super().__init__(name, output_size=output_size)

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2D(Configured):
    """The mean of ``output_size`` windows that cover [N, C, H, W]; None keeps an axis."""

    _shown = ("_output_size",)
    output_size: OutputSizes

    def __init__(self, output_size: OutputSizes, data_format: Format2D = "NCHW", name: str | None = None) -> None:
        super().__init__(name, _output_size=output_size, _data_format=data_format)

    def forward(self, x: Tensor) -> Any:
        return F.adaptive_avg_pool2d(x, self._output_size, self._data_format)


class AdaptiveAvgPool3D(Configured):
    """The mean of ``output_size`` windows that cover [N, C, D, H, W]; None keeps an axis."""

    _shown = ("_output_size",)
    output_size: OutputSizes

    def __init__(self, output_size: OutputSizes, data_format: Format3D = "NCDHW", name: str | None = None) -> None:
        super().__init__(name, _output_size=output_size, _data_format=data_format)

    def forward(self, x: Tensor) -> Any:
        return F.adaptive_avg_pool3d(x, self._output_size, self._data_format)


class AdaptiveMaxPool1D(Configured):
    """The maximum of ``output_size`` windows that cover [N, C, L]; None keeps an axis."""

    _shown = (
        "output_size",
        "return_mask",
    )
    return_indices = also("return_mask")

    def __init__(self, output_size: OutputSizes, return_mask: bool = False, name: str | None = None) -> None:
        super().__init__(name, output_size=output_size, return_mask=return_mask)

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_mask)


class AdaptiveMaxPool2D(Configured):
    """The maximum of ``output_size`` windows that cover [N, C, H, W]; None keeps an axis."""

    _shown = (
        "_output_size",
        "_return_mask",
    )
    return_indices = also("_return_mask")

    def __init__(self, output_size: OutputSizes, return_mask: bool = False, name: str | None = None) -> None:
        super().__init__(name, _output_size=output_size, _return_mask=return_mask)

    def forward(self, x: Tensor) -> Any:
        return F.adaptive_max_pool2d(x, self._output_size, self._return_mask)


class AdaptiveMaxPool3D(Configured):
    """The maximum of ``output_size`` windows that cover [N, C, D, H, W]; None keeps an axis."""

    _shown = (
        "_output_size",
        "_return_mask",
    )
    return_indices = also("_return_mask")

    def __init__(self, output_size: OutputSizes, return_mask: bool = False, name: str | None = None) -> None:
        super().__init__(name, _output_size=output_size, _return_mask=return_mask)

    def forward(self, x: Tensor) -> Any:
        return F.adaptive_max_pool3d(x, self._output_size, self._return_mask)


class MaxUnPool1D(Configured):
    """The inverse of ``MaxPool1D``: values at the positions that its mask holds, zeros elsewhere."""

    _shown = ("output_size",)

    def __init__(
        self,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Sizes = 0,
        data_format: Format1D = "NCL",
        output_size: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name, ksize=kernel_size, stride=stride, padding=padding, data_format=data_format, output_size=output_size
        )

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        size = self.output_size if output_size is None else output_size
        return F.max_unpool1d(x, indices, self.ksize, self.stride, self.padding, self.data_format, size)


class MaxUnPool2D(Configured):
    """The inverse of ``MaxPool2D``: values at the positions that its mask holds, zeros elsewhere."""

    _shown = ("output_size",)

    def __init__(
        self,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Sizes = 0,
        data_format: Format2D = "NCHW",
        output_size: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name, ksize=kernel_size, stride=stride, padding=padding, data_format=data_format, output_size=output_size
        )

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        size = self.output_size if output_size is None else output_size
        return F.max_unpool2d(x, indices, self.ksize, self.stride, self.padding, self.data_format, size)


class MaxUnPool3D(Configured):
    """The inverse of ``MaxPool3D``: values at the positions that its mask holds, zeros elsewhere."""

    _shown = ("output_size",)

    def __init__(
        self,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Sizes = 0,
        data_format: Format3D = "NCDHW",
        output_size: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name, ksize=kernel_size, stride=stride, padding=padding, data_format=data_format, output_size=output_size
        )

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        size = self.output_size if output_size is None else output_size
        return F.max_unpool3d(x, indices, self.ksize, self.stride, self.padding, self.data_format, size)


class LPPool1D(Configured):
    """The ``norm_type``-norm of every window of [N, C, L]."""

    _shown = (
        "norm_type",
        "kernel_size",
        "stride",
        "padding",
    )

    def __init__(
        self,
        norm_type: Positive,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        data_format: Format1D = "NCL",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            norm_type=float(norm_type),
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )

    def forward(self, x: Tensor) -> Any:
        return F.lp_pool1d(x, self.norm_type, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.data_format)


class LPPool2D(Configured):
    """The ``norm_type``-norm of every window of [N, C, H, W]."""

    _shown = (
        "norm_type",
        "kernel_size",
        "stride",
        "padding",
    )

    kernel_size = also("ksize")

    def __init__(
        self,
        norm_type: Positive,
        kernel_size: Counts,
        stride: Counts | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        data_format: Format2D = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            norm_type=float(norm_type),
            ksize=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )

    def forward(self, x: Tensor) -> Any:
        return F.lp_pool2d(x, self.norm_type, self.ksize, self.stride, self.padding, self.ceil_mode, self.data_format)


class FractionalMaxPool2D(Configured):
    """The maximum of ``output_size`` windows of [N, C, H, W] whose places are drawn at random."""

    _shown = (
        "_output_size",
        "_return_mask",
    )

    def __init__(
        self,
        output_size: OutputSizes,
        kernel_size: Counts = None,
        random_u: Fraction | None = None,
        return_mask: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name, _output_size=output_size, _kernel_size=kernel_size, _random_u=random_u, _return_mask=return_mask)

    def forward(self, x: Tensor) -> Any:
        return F.fractional_max_pool2d(x, self._output_size, self._kernel_size, self._random_u, self._return_mask)


class FractionalMaxPool3D(Configured):
    """The maximum of ``output_size`` windows of [N, C, D, H, W] whose places are drawn at random."""

    _shown = (
        "_output_size",
        "_return_mask",
    )

    def __init__(
        self,
        output_size: OutputSizes,
        kernel_size: Counts = None,
        random_u: Fraction | None = None,
        return_mask: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name, _output_size=output_size, _kernel_size=kernel_size, _random_u=random_u, _return_mask=return_mask)

    def forward(self, x: Tensor) -> Any:
        return F.fractional_max_pool3d(x, self._output_size, self._kernel_size, self._random_u, self._return_mask)


AdaptiveMaxPool1d = AdaptiveMaxPool1D
AdaptiveMaxPool2d = AdaptiveMaxPool2D
AdaptiveMaxPool3d = AdaptiveMaxPool3D
LPPool1d = LPPool1D
LPPool2d = LPPool2D

__all__ = [
    "AdaptiveAvgPool1D",
    "AdaptiveAvgPool2D",
    "AdaptiveAvgPool3D",
    "AdaptiveMaxPool1D",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2D",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3D",
    "AdaptiveMaxPool3d",
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "FractionalMaxPool2D",
    "FractionalMaxPool3D",
    "LPPool1D",
    "LPPool1d",
    "LPPool2D",
    "LPPool2d",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "MaxUnPool1D",
    "MaxUnPool2D",
    "MaxUnPool3D",
]
