"""Normalisation layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...base.errors import ArgumentError, ShapeError, message
from ...base.kinds import Count, Counts, Format, NotNegative, Probability, Size
from ...tensor import OPS, Tensor
from ...tensor.functions import no_grad
from .. import functional as F
from ..initializer import Constant, Normal
from ..parameters import ParamAttr
from .configured import Configured
from .layers import Layer


class _BatchNormBase(Layer):
    """A trained weight and bias, and running statistics that training updates in place."""

    #: Ranks that the input may have; empty: any.
    _ranks: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: Count,
        momentum: Probability = 0.9,
        epsilon: NotNegative = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format = "NCHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_features, self._momentum, self._epsilon = num_features, momentum, epsilon
        self._data_format, self._use_global_stats, self._name = data_format, use_global_stats, name
        shape = [num_features]
        self.weight = self.create_parameter(shape, _fixed_if_false(weight_attr), default_initializer=Constant(1.0))
        self.bias = self.create_parameter(shape, _fixed_if_false(bias_attr), is_bias=True)
        self._mean = self._statistic(0.0)
        self._variance = self._statistic(1.0)

    def _statistic(self, value: float, name: str | None = None) -> Any:
        attr = ParamAttr(name=name, initializer=Constant(value), trainable=False, do_model_average=True)
        return self.create_parameter([self._num_features], attr)

    def _check_rank(self, x: Tensor) -> None:
        if self._ranks and len(x.shape) not in self._ranks:
            ranks = " or ".join(map(str, self._ranks))
            raise ShapeError(message(f"{type(self).__name__}: x has shape {list(x.shape)}", f"it must have {ranks} axes"))

    def forward(self, input: Tensor) -> Tensor:
        self._check_rank(input)
        return F.batch_norm(
            input,
            self._mean,
            self._variance,
            self.weight,
            self.bias,
            self.training,
            self._momentum,
            self._epsilon,
            self._data_format,
            self._use_global_stats,
        )

    def extra_repr(self) -> str:
        shown = f"num_features={self._num_features}, momentum={self._momentum}, epsilon={self._epsilon}"
        if self._data_format != "NCHW":
            shown += f", data_format={self._data_format}"
        return shown + (f", name={self._name}" if self._name is not None else "")


def _fixed_if_false(attr: Any) -> Any:
    """False as a parameter that is there but not trained, so that saved states keep their keys."""
    return ParamAttr(trainable=False) if attr is False else attr


class BatchNorm1D(_BatchNormBase):
    """Batch normalisation of [N, C] or [N, C, L].

    Args:
        num_features: C.
        momentum: how much of the running statistics each training step keeps.
        epsilon: added to the variance.
        weight_attr: the weight's ParamAttr; False: ones, not trained.
        bias_attr: the bias's ParamAttr; False: zeros, not trained.
        data_format: ``NC``, ``NCL`` or ``NLC``.
        use_global_stats: True: normalise by the running statistics also in training; False: by the batch's also in evaluation.

    Source: https://arxiv.org/abs/1502.03167
    """

    _ranks = (2, 3)

    def __init__(
        self,
        num_features: Count,
        momentum: Probability = 0.9,
        epsilon: NotNegative = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format = "NCL",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)


class BatchNorm2D(_BatchNormBase):
    """Batch normalisation of [N, C, H, W]; arguments as for ``BatchNorm1D``.

    Example:
        >>> import sampan as paddle
        >>> norm = paddle.nn.BatchNorm2D(3)
        >>> norm(paddle.ones([2, 3, 4, 4])).shape
        paddle.Size([2, 3, 4, 4])
    """

    _ranks = (4,)


class BatchNorm3D(_BatchNormBase):
    """Batch normalisation of [N, C, D, H, W]; arguments as for ``BatchNorm1D``."""

    _ranks = (5,)

    def __init__(
        self,
        num_features: Count,
        momentum: Probability = 0.9,
        epsilon: NotNegative = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format = "NCDHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)


class BatchNorm(_BatchNormBase):
    """Batch normalisation of a tensor of any rank, in the interface of Paddle 1.

    Args:
        num_channels: C.
        act: the name of an activation that follows.
        is_test: start in evaluation mode.
        param_attr: the weight's ParamAttr.
        data_layout: which axis holds channels.
    """

    def __init__(
        self,
        num_channels: Count,
        act: str | None = None,
        is_test: bool = False,
        momentum: Probability = 0.9,
        epsilon: NotNegative = 1e-05,
        param_attr: Any = None,
        bias_attr: Any = None,
        dtype: Any = "float32",
        data_layout: Format = "NCHW",
        in_place: bool = False,
        moving_mean_name: str | None = None,
        moving_variance_name: str | None = None,
        do_model_average_for_mean_and_var: bool = True,
        use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ) -> None:
        super().__init__(num_channels, momentum, epsilon, param_attr, bias_attr, data_layout, use_global_stats or None)
        self._act = act
        for statistic, given in ((self._mean, moving_mean_name), (self._variance, moving_variance_name)):
            if given is not None:
                statistic.name = given
        if trainable_statistics:
            self._use_global_stats = False
        if is_test:
            self.eval()

    def forward(self, input: Tensor) -> Tensor:
        y = super().forward(input)
        return y if self._act is None else getattr(F, self._act)(y)

    def extra_repr(self) -> str:
        return ""


class SyncBatchNorm(_BatchNormBase):
    """Batch normalisation whose statistics cover the batches of all processes; in one process it is ``BatchNorm2D``."""

    def __init__(
        self,
        num_features: Count,
        momentum: Probability = 0.9,
        epsilon: NotNegative = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, None, name)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """The layer with every batch norm below it replaced by one that shares its parameters and statistics; gives the layer."""
        if isinstance(layer, _BatchNormBase) and not isinstance(layer, SyncBatchNorm):
            made = cls(layer._num_features, layer._momentum, layer._epsilon, data_format=layer._data_format, name=layer._name)
            made.weight, made.bias = layer.weight, layer.bias
            made._mean, made._variance = layer._mean, layer._variance
            made.train(layer.training)
            return made
        for name, child in list(layer.named_children()):
            layer._sub_layers[name] = cls.convert_sync_batchnorm(child)
        return layer


class LayerNorm(Layer):
    """x normalised over its last axes, then weight * x + bias.

    Args:
        normalized_shape: the sizes of those axes; an integer: the last one.
        epsilon: added to the variance.
        elementwise_affine: with a weight and a bias.
        bias: False: no bias.
        weight_attr: the weight's ParamAttr; False: none.
        bias_attr: the bias's ParamAttr; False: none.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.LayerNorm(4)(paddle.ones([2, 4])).tolist()[0]
        [0.0, 0.0, 0.0, 0.0]

    Source: https://arxiv.org/abs/1607.06450
    """

    def __init__(
        self,
        normalized_shape: Counts,
        epsilon: NotNegative = 1e-05,
        *args: Any,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype or "float32")
        if args:  # Paddle before 3.3 took these by position
            weight_attr, bias_attr = (*args, weight_attr, bias_attr)[:2]
        shape = list(normalized_shape) if isinstance(normalized_shape, (list, tuple)) else [int(normalized_shape)]
        self._normalized_shape, self._epsilon = shape, epsilon
        count = [math.prod(shape)]
        self.weight = self.create_parameter(
            count, weight_attr if elementwise_affine else False, default_initializer=Constant(1.0)
        )
        self.bias = self.create_parameter(count, bias_attr if elementwise_affine and bias else False, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self._normalized_shape, self.weight, self.bias, self._epsilon)

    def extra_repr(self) -> str:
        return f"normalized_shape={self._normalized_shape}, epsilon={self._epsilon}"


class GroupNorm(Layer):
    """x normalised over each of ``num_groups`` groups of channels, then weight * x + bias.

    Args:
        num_groups: how many groups.
        num_channels: C, a multiple of the groups.
        epsilon: added to the variance.
        affine: with a weight and a bias.
        weight_attr: the weight's ParamAttr; False: none.
        bias_attr: the bias's ParamAttr; False: none.
        data_format: which axis holds channels.

    Source: https://arxiv.org/abs/1803.08494
    """

    def __init__(
        self,
        num_groups: Count,
        num_channels: Count,
        epsilon: NotNegative = 1e-05,
        *args: Any,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype or "float32")
        if args:  # Paddle before 3.3 took these by position
            weight_attr, bias_attr, data_format = (*args, weight_attr, bias_attr, data_format)[:3]
        if num_channels % num_groups:
            raise ArgumentError(
                message(
                    f"GroupNorm: num_groups={num_groups}, num_channels={num_channels}",
                    "the channels must be a multiple of the groups",
                )
            )
        self._num_groups, self._num_channels, self._epsilon = num_groups, num_channels, epsilon
        self._data_format, self._name = data_format, name
        self.weight = self.create_parameter([num_channels], weight_attr if affine else False, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([num_channels], bias_attr if affine else False, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self._num_groups, self._epsilon, self.weight, self.bias, self._data_format)

    def extra_repr(self) -> str:
        return f"num_groups={self._num_groups}, num_channels={self._num_channels}, epsilon={self._epsilon}"


class _InstanceNormBase(Layer):
    """Every channel of every instance normalised over its positions."""

    def __init__(
        self,
        num_features: Count,
        epsilon: NotNegative = 1e-05,
        momentum: Probability = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_features, self._epsilon, self._data_format = num_features, epsilon, data_format
        both = weight_attr is not False and bias_attr is not False
        self.scale = self.create_parameter([num_features], weight_attr if both else False, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([num_features], bias_attr if both else False, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return F.instance_norm(input, weight=self.scale, bias=self.bias, eps=self._epsilon, data_format=self._data_format)

    def extra_repr(self) -> str:
        return f"num_features={self._num_features}, epsilon={self._epsilon}"


class InstanceNorm1D(_InstanceNormBase):
    """Instance normalisation of [N, C, L].

    Args:
        num_features: C.
        epsilon: added to the variance.
        momentum: accepted for compatibility: there are no running statistics.
        weight_attr: the scale's ParamAttr; False, of either, leaves out both.
        bias_attr: the bias's ParamAttr.
        data_format: which axis holds channels.

    Source: https://arxiv.org/abs/1607.08022
    """

    def __init__(
        self,
        num_features: Count,
        epsilon: NotNegative = 1e-05,
        momentum: Probability = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format = "NCL",
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, epsilon, momentum, weight_attr, bias_attr, data_format, name)


class InstanceNorm2D(_InstanceNormBase):
    """Instance normalisation of [N, C, H, W]; arguments as for ``InstanceNorm1D``."""


class InstanceNorm3D(_InstanceNormBase):
    """Instance normalisation of [N, C, D, H, W]; arguments as for ``InstanceNorm1D``."""

    def __init__(
        self,
        num_features: Count,
        epsilon: NotNegative = 1e-05,
        momentum: Probability = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: Format = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, epsilon, momentum, weight_attr, bias_attr, data_format, name)


class LocalResponseNorm(Configured):
    """x divided by (k + alpha * mean of squares over ``size`` neighbouring channels) ** beta."""

    _shown = ("size", "alpha", "beta", "k")

    def __init__(
        self,
        size: Count,
        alpha: float = 0.0001,
        beta: float = 0.75,
        k: float = 1.0,
        data_format: Format = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(name, size=size, alpha=alpha, beta=beta, k=k, data_format=data_format)

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k, self.data_format)

    def extra_repr(self) -> str:
        shown = super().extra_repr()
        return shown if self.data_format == "NCHW" else f"{shown}, data_format={self.data_format}"


class SpectralNorm(Layer):
    """A weight divided by its largest singular value, found by power iteration; training keeps what the iteration found.

    Args:
        weight_shape: of the weights that will be passed.
        dim: the axis that becomes the matrix's rows; the others become its columns.
        power_iters: iterations a call.
        eps: the smallest norm to divide by.
        dtype: of the vectors kept between calls.

    Source: T. Miyato et al., https://arxiv.org/abs/1802.05957
    """

    def __init__(
        self, weight_shape: Sequence[int], dim: int = 0, power_iters: Size = 1, eps: NotNegative = 1e-12, dtype: Any = "float32"
    ) -> None:
        super().__init__(dtype=dtype)
        shape = [int(n) for n in weight_shape]
        self._dim, self._power_iters, self._epsilon, self._weight_shape = dim, power_iters, eps, shape
        rows = shape[dim]
        frozen = ParamAttr(initializer=Normal(0.0, 1.0), trainable=False)
        self.weight_u = self.create_parameter([rows], frozen)
        self.weight_v = self.create_parameter([math.prod(shape) // rows], frozen)

    def forward(self, x: Tensor) -> Tensor:
        if list(x.shape) != self._weight_shape:
            raise ShapeError(message(f"SpectralNorm: the weight is {list(x.shape)}", f"weight_shape says {self._weight_shape}"))
        return spectrally_normalized(x, self.weight_u, self.weight_v, self._dim, self._power_iters, self._epsilon, self.training)


def spectrally_normalized(
    weight: Tensor, u: Tensor, v: Tensor, dim: int, power_iters: int, eps: float, is_kept: bool = True
) -> Tensor:
    """The weight over u' W v, after ``power_iters`` improvements of the vectors u and v, which are written back when ``is_kept``."""
    first = dim % len(weight.shape)
    order = [first, *(k for k in range(len(weight.shape)) if k != first)]
    matrix = OPS["reshape"](OPS["transpose"](weight, order), [weight.shape[first], -1])
    left, right = u.detach(), v.detach()
    with no_grad():
        for _ in range(power_iters):
            right = F.normalize(OPS["matmul"](matrix, left, transpose_x=True), axis=0, epsilon=eps)
            left = F.normalize(OPS["matmul"](matrix, right), axis=0, epsilon=eps)
        if is_kept and power_iters:
            u.set_value(left)
            v.set_value(right)
    sigma = OPS["sum"](left * OPS["matmul"](matrix, right))
    return weight / sigma


__all__ = [
    "BatchNorm",
    "BatchNorm1D",
    "BatchNorm2D",
    "BatchNorm3D",
    "GroupNorm",
    "InstanceNorm1D",
    "InstanceNorm2D",
    "InstanceNorm3D",
    "LayerNorm",
    "LocalResponseNorm",
    "SpectralNorm",
    "SyncBatchNorm",
]
