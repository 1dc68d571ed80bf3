"""Layers that most networks use: linear maps, embedding, dropout, flattening, folds, cosine similarity."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal

from ...base.errors import ArgumentError, ArgumentTypeError, describe, message
from ...base.kinds import Count, Counts, Format2D, Format3D, NotNegative, Positive, Probability, Size, Sizes
from ...tensor import OPS, Tensor
from ...tensor.functions import in_dynamic_mode, no_grad
from .. import functional as F
from .configured import Configured, also
from .layers import Layer


class Identity(Layer):
    """Its input; arguments are accepted and not used."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Layer):
    """x @ weight + bias.

    Args:
        in_features: the last axis of x.
        out_features: the last axis of the result.
        weight_attr: the ParamAttr of the weight [in_features, out_features].
        bias_attr: the ParamAttr of the bias [out_features]; False: no bias.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.Linear(4, 2)(paddle.ones([3, 4])).shape
        paddle.Size([3, 2])
    """

    def __init__(
        self, in_features: Size, out_features: Size, weight_attr: Any = None, bias_attr: Any = None, name: str | None = None
    ) -> None:
        super().__init__()
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)
        self.name = name

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        rows, columns = self.weight.shape
        return f"in_features={rows}, out_features={columns}, dtype={self._dtype}" + (f", name={self.name}" if self.name else "")


class Embedding(Layer):
    """The rows of a trained table at integer ids.

    Args:
        num_embeddings: rows.
        embedding_dim: the length of a row.
        padding_idx: the id whose row is zeros and gets no gradient; negative ones count from the end.
        max_norm: rows that are read are first scaled down to at most this norm.
        norm_type: of that norm.
        scale_grad_by_freq: divide a row's gradient by how often its id occurs.
        sparse: the table's gradient holds only the rows of the ids that occur.
        weight_attr: the table's ParamAttr.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.Embedding(10, 4)(paddle.to_tensor([[1, 2, 3]])).shape
        paddle.Size([1, 3, 4])
    """

    def __init__(
        self,
        num_embeddings: Count,
        embedding_dim: Count,
        padding_idx: int | None = None,
        max_norm: Positive | Literal[False, True] | None = None,
        norm_type: Any = 2.0,
        *args: Any,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype or "float32")
        if isinstance(max_norm, bool):  # Paddle before 3.3 took `sparse` here, and the weight's attribute after it
            sparse, weight_attr, max_norm, norm_type = max_norm, norm_type if norm_type != 2.0 else weight_attr, None, 2.0
        if not isinstance(norm_type, Real) or not norm_type > 0:
            raise (ArgumentError if isinstance(norm_type, Real) else ArgumentTypeError)(
                message(f"Embedding(): norm_type is {describe(norm_type)}", "it must be a number above 0")
            )
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentError(
                message(f"Embedding: padding_idx={padding_idx}", f"it must be in [{-num_embeddings}, {num_embeddings - 1}]")
            )
        self._num_embeddings, self._embedding_dim, self._name = num_embeddings, embedding_dim, name
        self._padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self._max_norm, self._norm_type = max_norm, norm_type
        self._scale_grad_by_freq, self._sparse = scale_grad_by_freq, sparse
        self.weight = self.create_parameter([num_embeddings, embedding_dim], weight_attr)
        if _weight is not None:
            self.weight.set_value(_weight)
        if self._padding_idx is not None and in_dynamic_mode():  # reading gives zeros in any case
            with no_grad():
                self.weight[self._padding_idx] = 0.0
        if _freeze:
            self.weight.stop_gradient = True

    padding_idx = also("_padding_idx")

    def forward(self, x: Tensor) -> Tensor:
        return F.embedding(
            x, self.weight, self._padding_idx, self._max_norm, self._norm_type, self._sparse, self._scale_grad_by_freq
        )

    def extra_repr(self) -> str:
        parts = [f"{self._num_embeddings}, {self._embedding_dim}"]
        if self._padding_idx is not None:
            parts.append(f"padding_idx={self._padding_idx}")
        if self._max_norm is not None:
            parts.append(f"max_norm={self._max_norm}")
        parts += [f"sparse={self._sparse}", f"scale_grad_by_freq={self._scale_grad_by_freq}"]
        return ", ".join(parts) + (f", name={self._name}" if self._name is not None else "")


class Bilinear(Layer):
    """x1 W x2 + bias, one matrix W for each output feature.

    Args:
        in1_features: the last axis of x1.
        in2_features: the last axis of x2.
        out_features: the last axis of the result.
        weight_attr: the ParamAttr of the weight [out, in1, in2].
        bias_attr: the ParamAttr of the bias [1, out]; False: none.
    """

    def __init__(
        self,
        in1_features: Size,
        in2_features: Size,
        out_features: Size,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._in1_features, self._in2_features, self._out_features, self._name = in1_features, in2_features, out_features, name
        self.weight = self.create_parameter([out_features, in1_features, in2_features], weight_attr)
        self.bias = self.create_parameter([1, out_features], bias_attr, is_bias=True)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"in1_features={self._in1_features}, in2_features={self._in2_features}, out_features={self._out_features}"
        return f"{sizes}, dtype={self._dtype}" + (f", name={self._name}" if self._name else "")


class Dropout(Configured):
    """In training, elements zeroed with probability p and the others divided by 1 - p.

    Args:
        p: the probability.
        inplace: accepted for compatibility; the result is a new tensor.
        axis: the axes along which the mask varies; None: all.
        mode: ``upscale_in_train`` or ``downscale_in_infer``.

    Source: N. Srivastava et al., "Dropout", JMLR 15, 2014.
    """

    def __init__(
        self,
        p: Probability = 0.5,
        inplace: Any = False,
        axis: Any = None,
        mode: Literal["upscale_in_train", "downscale_in_infer"] = "upscale_in_train",
        name: str | None = None,
    ) -> None:
        super().__init__(name, p=p, axis=axis, mode=mode, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.axis, self.training, self.inplace, self.mode)

    def extra_repr(self) -> str:
        name = f", name={self._name}" if self._name else ""
        return f"p={self.p}, axis={self.axis}, mode={self.mode}{name}, inplace={self.inplace}"


class Dropout2D(Configured):
    """In training, whole channels of [N, C, H, W] zeroed with probability p and the others divided by 1 - p."""

    _shown = ("p", "data_format")

    def __init__(self, p: Probability = 0.5, data_format: Format2D = "NCHW", name: str | None = None) -> None:
        super().__init__(name, p=p, data_format=data_format)

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.data_format)


class Dropout3D(Configured):
    """In training, whole channels of [N, C, D, H, W] zeroed with probability p and the others divided by 1 - p."""

    _shown = ("p", "data_format")

    def __init__(self, p: Probability = 0.5, data_format: Format3D = "NCDHW", name: str | None = None) -> None:
        super().__init__(name, p=p, data_format=data_format)

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.data_format)


class AlphaDropout(Configured):
    """In training, elements set to selu's negative limit with probability p; mean and variance stay. https://arxiv.org/abs/1706.02515"""

    _shown = ("p",)

    def __init__(self, p: Probability = 0.5, name: str | None = None) -> None:
        super().__init__(name, p=p)

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(Configured):
    """As ``AlphaDropout``, whole channels of [N, C, ...] at a time."""

    _shown = ("p",)

    def __init__(self, p: Probability = 0.5, name: str | None = None) -> None:
        super().__init__(name, p=p)

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)


class Flatten(Layer):
    """x with the axes from ``start_axis`` to ``stop_axis`` joined to one."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, input: Tensor) -> Tensor:
        return OPS["flatten"](input, self.start_axis, self.stop_axis)


class Unflatten(Configured):
    """x with one axis split to ``shape``, which may hold one -1."""

    _shown = ("axis", "shape")

    def __init__(self, axis: int, shape: Any, name: str | None = None) -> None:
        super().__init__(name, axis=axis, shape=shape)

    def forward(self, input: Tensor) -> Tensor:
        return OPS["unflatten"](input, self.axis, self.shape)


class _Window(Configured):
    def extra_repr(self) -> str:
        name = f", name={self._name}" if self._name is not None else ""
        return f"kernel_size={self.kernel_sizes}, dilation={self.dilations}, padding={self.paddings}, stride={self.strides}{name}"


class Unfold(_Window):
    """The windows of [N, C, H, W] as columns: [N, C * KH * KW, windows]."""

    def __init__(
        self, kernel_sizes: Counts, dilations: Counts = 1, paddings: Sizes = 0, strides: Counts = 1, name: str | None = None
    ) -> None:
        super().__init__(name, kernel_sizes=kernel_sizes, dilations=dilations, paddings=paddings, strides=strides)

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_sizes, self.strides, self.paddings, self.dilations)


class Fold(_Window):
    """Columns [N, C * KH * KW, windows] added up to [N, C, H, W]."""

    def __init__(
        self,
        output_sizes: Counts,
        kernel_sizes: Counts,
        dilations: Counts = 1,
        paddings: Sizes = 0,
        strides: Counts = 1,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name, output_sizes=output_sizes, kernel_sizes=kernel_sizes, dilations=dilations, paddings=paddings, strides=strides
        )

    output_size = also("output_sizes")
    kernel_size = also("kernel_sizes")
    stride = also("strides")
    padding = also("paddings")
    dilation = also("dilations")

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_sizes, self.kernel_sizes, self.strides, self.paddings, self.dilations)


class CosineSimilarity(Configured):
    """The cosine of the angle between vectors along ``axis``."""

    _shown = ("_axis", "_eps")

    def __init__(self, axis: int = 1, eps: NotNegative = 1e-08) -> None:
        super().__init__(None, _axis=axis, _eps=eps)

    dim = also("_axis")

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self._axis, self._eps)


__all__ = [
    "AlphaDropout",
    "Bilinear",
    "CosineSimilarity",
    "Dropout",
    "Dropout2D",
    "Dropout3D",
    "Embedding",
    "FeatureAlphaDropout",
    "Flatten",
    "Fold",
    "Identity",
    "Linear",
    "Unflatten",
    "Unfold",
]
