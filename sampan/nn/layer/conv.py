"""Convolution layers, 1-, 2- and 3-d, and their transposes."""

from __future__ import annotations

import math
from typing import Any, Literal

from ...base.errors import ArgumentError, ArgumentTypeError, message
from ...base.kinds import Count, Counts, Format1D, Format2D, Format3D, Padding, Sizes
from ...tensor import Tensor
from .. import functional as F
from ..initializer import Normal, XavierUniform
from .layers import Layer


def _sizes(name: str, value: Any, rank: int, what: str) -> list[int]:
    values = list(value) if isinstance(value, (list, tuple)) else [value] * rank
    if len(values) == 1:
        values = values * rank
    if len(values) != rank or any(isinstance(v, bool) or not hasattr(v, "__index__") for v in values):
        raise ArgumentTypeError(message(f"{name}: {what}={value!r}", f"it must be an integer or a list of {rank} integers"))
    return [int(v) for v in values]


class _Convolution(Layer):
    """What all convolution layers share: sizes, the weight, the bias, and their repr."""

    _rank = 2
    _is_transposed = False

    def __init__(
        self,
        in_channels: Count,
        out_channels: Count,
        kernel_size: Counts,
        stride: Counts,
        padding: Padding,
        dilation: Counts,
        groups: Count,
        padding_mode: Literal["zeros", "reflect", "replicate", "circular"],
        output_padding: Sizes,
        weight_attr: Any,
        bias_attr: Any,
        data_format: str,
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype=dtype or "float32")
        name, rank = type(self).__name__, self._rank
        if in_channels % groups or out_channels % groups:
            raise ArgumentError(
                message(
                    f"{name}: in_channels={in_channels}, out_channels={out_channels}, groups={groups}",
                    "both channel counts must be multiples of groups",
                )
            )
        self._in_channels, self._out_channels, self._groups = in_channels, out_channels, groups
        self._kernel_size = _sizes(name, kernel_size, rank, "kernel_size")
        self._stride = _sizes(name, stride, rank, "stride")
        self._dilation = _sizes(name, dilation, rank, "dilation")
        self._padding, self._padding_mode, self._data_format = padding, padding_mode, data_format
        self.output_padding = output_padding
        if self._is_transposed:
            shape, start = [in_channels, out_channels // groups, *self._kernel_size], XavierUniform()
        else:
            shape = [out_channels, in_channels // groups, *self._kernel_size]
            start = Normal(0.0, math.sqrt(2.0 / (math.prod(self._kernel_size) * in_channels)))
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=start)
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)
        self._edges = self._edge_widths() if padding_mode != "zeros" else None

    def _edge_widths(self) -> list[int]:
        """[low, high] of every spatial axis, the last axis first, as ``F.pad`` takes them."""
        padding, rank = self._padding, self._rank
        if isinstance(padding, str):
            if padding.lower() == "valid":
                return [0] * (2 * rank)
            totals = [d * (k - 1) for d, k in zip(self._dilation, self._kernel_size, strict=True)]
            pairs = [(t // 2, t - t // 2) for t in totals]
        elif isinstance(padding, (list, tuple)) and padding and isinstance(padding[0], (list, tuple)):
            spatial = padding if len(padding) == rank else padding[1:-1] if self._data_format[-1] == "C" else padding[2:]
            pairs = [(low, high) for low, high in spatial]
        elif isinstance(padding, (list, tuple)) and len(padding) == 2 * rank:
            pairs = list(zip(padding[0::2], padding[1::2], strict=True))
        else:
            pairs = [(n, n) for n in _sizes(type(self).__name__, padding, rank, "padding")]
        return [n for pair in reversed(pairs) for n in pair]

    def _padded(self, x: Tensor) -> tuple[Tensor, Any]:
        """The input, with its edges filled unless they are zeros, and the padding left for the convolution itself."""
        if self._edges is None:
            return x, self._padding
        return F.pad(x, self._edges, mode=self._padding_mode, data_format=self._data_format), 0

    def extra_repr(self) -> str:
        parts = [f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"]
        if self._stride != [1] * self._rank:
            parts.append(f"stride={self._stride}")
        if self._padding != 0:
            parts.append(f"padding={self._padding}")
        if self._padding_mode != "zeros":
            parts.append(f"padding_mode={self._padding_mode}")
        if self.output_padding != 0:
            parts.append(f"output_padding={self.output_padding}")
        if self._dilation != [1] * self._rank:
            parts.append(f"dilation={self._dilation}")
        if self._groups != 1:
            parts.append(f"groups={self._groups}")
        return ", ".join([*parts, f"data_format={self._data_format}"])


class Conv1D(_Convolution):
    """The convolution of [N, C, L] by a trained weight [O, C / groups, K], plus a bias.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: an integer, or one for each spatial axis.
        stride: likewise.
        padding: an integer; one, or two, for each spatial axis; pairs; ``"same"`` or ``"valid"``.
        dilation: the distance of the kernel's elements.
        groups: channels are split into this many groups that do not mix.
        bias: False: no bias.
        padding_mode: ``zeros``, ``reflect``, ``replicate`` or ``circular``.
        weight_attr: the weight's ParamAttr.
        bias_attr: the bias's ParamAttr; False: no bias.
        data_format: which axis holds channels.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.Conv1D(3, 8, 3, padding=1)(paddle.ones([2, 3, 16])).shape
        paddle.Size([2, 8, 16])
    """

    _rank = 1

    def __init__(
        self,
        in_channels: Count,
        out_channels: Count,
        kernel_size: Counts,
        stride: Counts = 1,
        padding: Padding = 0,
        dilation: Counts = 1,
        groups: Count = 1,
        *args: Any,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format1D = "NCL",
    ) -> None:
        if args:  # Paddle before 3.3 took these by position
            padding_mode, weight_attr, bias_attr, data_format = (*args, padding_mode, weight_attr, bias_attr, data_format)[:4]
        if not bias:
            bias_attr = False
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            padding_mode,
            0,
            weight_attr,
            bias_attr,
            data_format,
            dtype,
        )

    def forward(self, x: Tensor) -> Tensor:
        x, padding = self._padded(x)
        return F.conv1d(x, self.weight, self.bias, self._stride, padding, self._dilation, self._groups, self._data_format)


class Conv2D(_Convolution):
    """The convolution of [N, C, H, W] by a trained weight [O, C / groups, KH, KW], plus a bias.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: an integer, or one for each spatial axis.
        stride: likewise.
        padding: an integer; one, or two, for each spatial axis; pairs; ``"same"`` or ``"valid"``.
        dilation: the distance of the kernel's elements.
        groups: channels are split into this many groups that do not mix.
        bias: False: no bias.
        padding_mode: ``zeros``, ``reflect``, ``replicate`` or ``circular``.
        weight_attr: the weight's ParamAttr.
        bias_attr: the bias's ParamAttr; False: no bias.
        data_format: which axis holds channels.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.Conv2D(3, 8, 3, padding=1)(paddle.ones([2, 3, 8, 8])).shape
        paddle.Size([2, 8, 8, 8])
    """

    _rank = 2

    def __init__(
        self,
        in_channels: Count,
        out_channels: Count,
        kernel_size: Counts,
        stride: Counts = 1,
        padding: Padding = 0,
        dilation: Counts = 1,
        groups: Count = 1,
        *args: Any,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format2D = "NCHW",
    ) -> None:
        if args:  # Paddle before 3.3 took these by position
            padding_mode, weight_attr, bias_attr, data_format = (*args, padding_mode, weight_attr, bias_attr, data_format)[:4]
        if not bias:
            bias_attr = False
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            padding_mode,
            0,
            weight_attr,
            bias_attr,
            data_format,
            dtype,
        )

    def forward(self, x: Tensor) -> Tensor:
        x, padding = self._padded(x)
        return F.conv2d(x, self.weight, self.bias, self._stride, padding, self._dilation, self._groups, self._data_format)


class Conv3D(_Convolution):
    """The convolution of [N, C, D, H, W] by a trained weight [O, C / groups, KD, KH, KW], plus a bias.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: an integer, or one for each spatial axis.
        stride: likewise.
        padding: an integer; one, or two, for each spatial axis; pairs; ``"same"`` or ``"valid"``.
        dilation: the distance of the kernel's elements.
        groups: channels are split into this many groups that do not mix.
        bias: False: no bias.
        padding_mode: ``zeros``, ``reflect``, ``replicate`` or ``circular``.
        weight_attr: the weight's ParamAttr.
        bias_attr: the bias's ParamAttr; False: no bias.
        data_format: which axis holds channels.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.Conv3D(3, 8, 3, padding=1)(paddle.ones([1, 3, 4, 4, 4])).shape
        paddle.Size([1, 8, 4, 4, 4])
    """

    _rank = 3

    def __init__(
        self,
        in_channels: Count,
        out_channels: Count,
        kernel_size: Counts,
        stride: Counts = 1,
        padding: Padding = 0,
        dilation: Counts = 1,
        groups: Count = 1,
        *args: Any,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format3D = "NCDHW",
    ) -> None:
        if args:  # Paddle before 3.3 took these by position
            padding_mode, weight_attr, bias_attr, data_format = (*args, padding_mode, weight_attr, bias_attr, data_format)[:4]
        if not bias:
            bias_attr = False
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            padding_mode,
            0,
            weight_attr,
            bias_attr,
            data_format,
            dtype,
        )

    def forward(self, x: Tensor) -> Tensor:
        x, padding = self._padded(x)
        return F.conv3d(x, self.weight, self.bias, self._stride, padding, self._dilation, self._groups, self._data_format)


class Conv1DTranspose(_Convolution):
    """The transposed convolution of [N, C, L] by a trained weight [C, O / groups, k...], plus a bias.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: an integer, or one for each spatial axis.
        stride: likewise: the distance of the input's elements in the result.
        padding: what is cut from the result's edges.
        output_padding: what is added to its end.
        groups: channels are split into this many groups that do not mix.
        dilation: the distance of the kernel's elements.
        weight_attr: the weight's ParamAttr.
        bias_attr: the bias's ParamAttr; False: no bias.
        data_format: which axis holds channels.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.Conv1DTranspose(3, 8, 2, stride=2)(paddle.ones([2, 3, 16])).shape
        paddle.Size([2, 8, 32])
    """

    _rank = 1
    _is_transposed = True

    def __init__(
        self,
        in_channels: Count,
        out_channels: Count,
        kernel_size: Counts,
        stride: Counts = 1,
        padding: Padding = 0,
        output_padding: Padding = 0,
        groups: Count = 1,
        dilation: Counts = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format1D = "NCL",
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            "zeros",
            output_padding,
            weight_attr,
            bias_attr,
            data_format,
        )

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        output_padding = self.output_padding if output_size is None else 0
        return F.conv1d_transpose(
            x,
            self.weight,
            self.bias,
            self._stride,
            self._padding,
            output_padding,
            self._groups,
            self._dilation,
            output_size,
            self._data_format,
        )


class Conv2DTranspose(_Convolution):
    """The transposed convolution of [N, C, H, W] by a trained weight [C, O / groups, k...], plus a bias.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: an integer, or one for each spatial axis.
        stride: likewise: the distance of the input's elements in the result.
        padding: what is cut from the result's edges.
        output_padding: what is added to its end.
        groups: channels are split into this many groups that do not mix.
        dilation: the distance of the kernel's elements.
        weight_attr: the weight's ParamAttr.
        bias_attr: the bias's ParamAttr; False: no bias.
        data_format: which axis holds channels.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.Conv2DTranspose(3, 8, 2, stride=2)(paddle.ones([2, 3, 8, 8])).shape
        paddle.Size([2, 8, 16, 16])
    """

    _rank = 2
    _is_transposed = True

    def __init__(
        self,
        in_channels: Count,
        out_channels: Count,
        kernel_size: Counts,
        stride: Counts = 1,
        padding: Padding = 0,
        output_padding: Padding = 0,
        dilation: Counts = 1,
        groups: Count = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format2D = "NCHW",
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            "zeros",
            output_padding,
            weight_attr,
            bias_attr,
            data_format,
        )

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        output_padding = self.output_padding if output_size is None else 0
        return F.conv2d_transpose(
            x,
            self.weight,
            self.bias,
            self._stride,
            self._padding,
            output_padding,
            self._dilation,
            self._groups,
            output_size,
            self._data_format,
        )


class Conv3DTranspose(_Convolution):
    """The transposed convolution of [N, C, D, H, W] by a trained weight [C, O / groups, k...], plus a bias.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: an integer, or one for each spatial axis.
        stride: likewise: the distance of the input's elements in the result.
        padding: what is cut from the result's edges.
        output_padding: what is added to its end.
        groups: channels are split into this many groups that do not mix.
        dilation: the distance of the kernel's elements.
        weight_attr: the weight's ParamAttr.
        bias_attr: the bias's ParamAttr; False: no bias.
        data_format: which axis holds channels.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.Conv3DTranspose(3, 8, 2, stride=2)(paddle.ones([1, 3, 4, 4, 4])).shape
        paddle.Size([1, 8, 8, 8, 8])
    """

    _rank = 3
    _is_transposed = True

    def __init__(
        self,
        in_channels: Count,
        out_channels: Count,
        kernel_size: Counts,
        stride: Counts = 1,
        padding: Padding = 0,
        output_padding: Padding = 0,
        dilation: Counts = 1,
        groups: Count = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format3D = "NCDHW",
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            "zeros",
            output_padding,
            weight_attr,
            bias_attr,
            data_format,
        )

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        output_padding = self.output_padding if output_size is None else 0
        return F.conv3d_transpose(
            x,
            self.weight,
            self.bias,
            self._stride,
            self._padding,
            output_padding,
            self._groups,
            self._dilation,
            output_size,
            self._data_format,
        )


__all__ = ["Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose"]
