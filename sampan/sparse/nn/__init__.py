"""``paddle.sparse.nn``: layers over sparse tensors."""

from __future__ import annotations

import math
from typing import Any

from ...base.errors import ArgumentError, message
from ...base.kinds import Count, Counts, Padding
from ...nn import BatchNorm1D, Layer
from ...nn.initializer import Normal
from ...tensor.sparse_tensor import SparseTensor, ordered, require_sparse
from . import functional
from . import functional as F


class ReLU(Layer):
    """max(x, 0) of the kept values."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: SparseTensor) -> SparseTensor:
        return F.relu(x)


class ReLU6(Layer):
    """min(max(x, 0), 6) of the kept values."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: SparseTensor) -> SparseTensor:
        return F.relu6(x)


class LeakyReLU(Layer):
    """The kept values, the negative ones times ``negative_slope``."""

    def __init__(self, negative_slope: float = 0.01, name: str | None = None) -> None:
        super().__init__()
        self._negative_slope = negative_slope

    def forward(self, x: SparseTensor) -> SparseTensor:
        return F.leaky_relu(x, self._negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self._negative_slope}"


class Softmax(Layer):
    """softmax over the kept values of each row."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self._axis = axis

    def forward(self, x: SparseTensor) -> SparseTensor:
        return F.softmax(x, self._axis)

    def extra_repr(self) -> str:
        return f"axis={self._axis}"


class BatchNorm(BatchNorm1D):
    """Batch normalisation of each channel (the dense last axis) over the kept values of the batch.

    Args:
        num_features: the channels.
        momentum, epsilon, weight_attr, bias_attr, use_global_stats: as in ``nn.BatchNorm1D``.
        data_format: ``"NDHWC"`` or ``"NHWC"``.
        name: accepted for compatibility.
    """

    def __init__(
        self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-05, weight_attr: Any = None, bias_attr: Any = None,
        data_format: str = "NDHWC", use_global_stats: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        if data_format not in ("NDHWC", "NHWC"):
            raise ArgumentError(f"sparse.nn.BatchNorm: data_format is {data_format!r}; it must be 'NDHWC' or 'NHWC'")
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, use_global_stats=use_global_stats)

    def forward(self, x: SparseTensor) -> SparseTensor:  # type: ignore[override]
        kept = ordered(require_sparse("nn.BatchNorm", "x", x))
        return kept.with_values(super().forward(kept.values()))


class SyncBatchNorm(BatchNorm):
    """BatchNorm over the batches of all processes; of one process, the same as it."""


class _Convolution(Layer):
    _rank = 3
    _function: Any = staticmethod(F.conv3d)
    weight: Any

    def __init__(
        self, in_channels: Count, out_channels: Count, kernel_size: Counts, stride: Counts = 1, padding: Padding = 0, dilation: Counts = 1,
        groups: Count = 1, padding_mode: str = "zeros", weight_attr: Any = None, bias_attr: Any = None, data_format: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name, channels_last = type(self).__name__, "NDHWC" if self._rank == 3 else "NHWC"
        if padding_mode != "zeros" or groups != 1 or data_format not in (None, channels_last):
            told = f"{name}(): padding_mode={padding_mode!r}, groups={groups}, data_format={data_format!r}"
            raise ArgumentError(message(told, f"it takes 'zeros', 1 and {channels_last!r}"))
        kernel = F.each_axis(name, "kernel_size", kernel_size, self._rank)
        self._settings = (stride, padding, dilation, groups, channels_last)
        spread = math.sqrt(2.0 / (in_channels * math.prod(kernel)))
        self.weight = self.create_parameter(
            [*kernel, in_channels, out_channels], weight_attr, default_initializer=Normal(0.0, spread)
        )
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x: SparseTensor) -> SparseTensor:
        return type(self)._function(x, self.weight, self.bias, *self._settings)

    def extra_repr(self) -> str:
        *kernel, entered, left = self.weight.shape
        return f"{entered}, {left}, kernel_size={kernel}, stride={self._settings[0]}, padding={self._settings[1]}, data_format={self._settings[4]}"


class Conv3D(_Convolution):
    """A convolution of sparse volumes [N, D, H, W, C]; see ``functional.conv3d``."""


class Conv2D(_Convolution):
    """A convolution of sparse images [N, H, W, C]; see ``functional.conv2d``."""

    _rank = 2
    _function = staticmethod(F.conv2d)


class _Submanifold(_Convolution):
    def __init__(
        self, in_channels: Count, out_channels: Count, kernel_size: Counts, stride: Counts = 1, padding: Padding = 0, dilation: Counts = 1,
        groups: Count = 1, padding_mode: str = "zeros", key: str | None = None, weight_attr: Any = None, bias_attr: Any = None, data_format: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode, weight_attr, bias_attr, data_format
        )  # fmt: skip


class SubmConv3D(_Submanifold):
    """A convolution of sparse volumes that keeps their places; see ``functional.subm_conv3d``."""

    _function = staticmethod(F.subm_conv3d)


class SubmConv2D(_Submanifold):
    """A convolution of sparse images that keeps their places; see ``functional.subm_conv2d``."""

    _rank = 2
    _function = staticmethod(F.subm_conv2d)


class MaxPool3D(Layer):
    """The largest kept value of each channel in each window; see ``functional.max_pool3d``."""

    def __init__(
        self, kernel_size: Counts, stride: Counts | None = None, padding: Padding = 0, return_mask: bool = False, ceil_mode: bool = False,
        data_format: str = "NDHWC", name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if return_mask:
            raise ArgumentError("sparse.nn.MaxPool3D: return_mask is True; it must be False")
        self._settings = (kernel_size, stride, padding, ceil_mode, data_format)

    def forward(self, x: SparseTensor) -> SparseTensor:
        return F.max_pool3d(x, *self._settings)

    def extra_repr(self) -> str:
        return f"kernel_size={self._settings[0]}, stride={self._settings[1]}, padding={self._settings[2]}"


__all__ = [
    "BatchNorm", "Conv2D", "Conv3D", "LeakyReLU", "MaxPool3D", "ReLU", "ReLU6", "Softmax", "SubmConv2D", "SubmConv3D", "SyncBatchNorm", "functional",
]  # fmt: skip
