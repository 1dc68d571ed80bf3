"""Activations as layers; each computes the function of its name in ``nn.functional``."""

from __future__ import annotations

from typing import Any, Literal

from ...base.errors import ShapeError, message
from ...base.kinds import AboveOne, Count, Format, NotNegative, NotZero, Probability
from ...tensor import Tensor
from .. import functional as F
from ..functional.compositions import require_slopes
from ..initializer import Constant
from .configured import Configured, also
from .layers import Layer


class ReLU(Configured):
    """max(x, 0).

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.ReLU()(paddle.to_tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x)


class ReLU6(Configured):
    """min(max(x, 0), 6)."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu6(x)


class ELU(Configured):
    """x where x > 0, else alpha * (exp(x) - 1)."""

    _shown = ("_alpha",)

    def __init__(self, alpha: float = 1.0, name: str | None = None) -> None:
        super().__init__(name, _alpha=alpha)

    def forward(self, x: Tensor) -> Tensor:
        return F.elu(x, self._alpha)


class CELU(Configured):
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))."""

    _shown = ("_alpha",)

    def __init__(self, alpha: NotZero = 1.0, name: str | None = None) -> None:
        super().__init__(name, _alpha=alpha)

    def forward(self, x: Tensor) -> Tensor:
        return F.celu(x, self._alpha)


class SELU(Configured):
    """scale * (x where x > 0, else alpha * (exp(x) - 1))."""

    _shown = ("_scale", "_alpha")

    def __init__(
        self,
        scale: AboveOne = 1.0507009873554804934193349852946,
        alpha: NotNegative = 1.6732632423543772848170429916717,
        name: str | None = None,
    ) -> None:
        super().__init__(name, _scale=scale, _alpha=alpha)

    def forward(self, x: Tensor) -> Tensor:
        return F.selu(x, self._scale, self._alpha)


class GELU(Configured):
    """x times the normal distribution function of x; approximate ``True`` or ``"tanh"``: by tanh."""

    _shown = ("_approximate",)

    def __init__(self, approximate: Any = False, name: str | None = None) -> None:
        super().__init__(name, _approximate=approximate)

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x, self._approximate)


class Hardshrink(Configured):
    """x where |x| > threshold, else 0."""

    _shown = ("_threshold",)

    def __init__(self, threshold: float = 0.5, name: str | None = None) -> None:
        super().__init__(name, _threshold=threshold)

    lambd = also("_threshold")

    def forward(self, x: Tensor) -> Tensor:
        return F.hardshrink(x, self._threshold)


class Hardsigmoid(Configured):
    """x / 6 + 0.5 clipped to [0, 1]."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        return F.hardsigmoid(x)


class Hardswish(Configured):
    """x * min(max(x + 3, 0), 6) / 6."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        return F.hardswish(x)


class Hardtanh(Configured):
    """x clipped to [min, max]."""

    _shown = ("_min", "_max")

    def __init__(self, min: float = -1.0, max: float = 1.0, name: str | None = None) -> None:
        super().__init__(name, _min=min, _max=max)

    def forward(self, x: Tensor) -> Tensor:
        return F.hardtanh(x, self._min, self._max)


class LeakyReLU(Configured):
    """x where x > 0, else negative_slope * x."""

    _shown = ("_negative_slope",)

    def __init__(self, negative_slope: float = 0.01, name: str | None = None) -> None:
        super().__init__(name, _negative_slope=negative_slope)

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, self._negative_slope)


class PReLU(Layer):
    """x where x > 0, else weight * x, with a trained weight.

    Args:
        num_parameters: 1, or the number of channels.
        init: the weight's start.
        weight_attr: the weight's ParamAttr.
        data_format: which axis holds channels.
    """

    def __init__(
        self,
        num_parameters: Count = 1,
        init: float = 0.25,
        weight_attr: Any = None,
        data_format: Format = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_parameters, self._init, self._name, self._data_format = num_parameters, init, name, data_format
        self._weight = self.create_parameter([num_parameters], weight_attr, default_initializer=Constant(init))

    def forward(self, x: Tensor) -> Tensor:
        return F.prelu(x, self._weight, data_format=self._data_format)

    def extra_repr(self) -> str:
        shown = f"num_parameters={self._num_parameters}, data_format={self._data_format}, init={self._init}, dtype={self._dtype}"
        return shown + (f", name={self._name}" if self._name else "")


class RReLU(Configured):
    """x where x >= 0, else x times a slope drawn from [lower, upper] in training and their mean in evaluation. https://arxiv.org/abs/1505.00853"""

    def __init__(self, lower: Probability = 1.0 / 8, upper: Probability = 1.0 / 3, name: str | None = None) -> None:
        require_slopes("RReLU", lower, upper)
        super().__init__(name, _lower=lower, _upper=upper)

    def forward(self, x: Tensor) -> Tensor:
        return F.rrelu(x, self._lower, self._upper, self.training)

    def extra_repr(self) -> str:
        shown = f"lower={self._lower}, upper={self._upper}, training={self.training}, dtype={self._dtype}"
        return shown + (f", name={self._name}" if self._name else "")


class Sigmoid(Configured):
    """1 / (1 + exp(-x))."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        return F.sigmoid(x)


class LogSigmoid(Configured):
    """log(1 / (1 + exp(-x)))."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        return F.log_sigmoid(x)


class Softplus(Configured):
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x > threshold."""

    _shown = ("_beta", "_threshold")

    def __init__(self, beta: NotZero = 1, threshold: float = 20, name: str | None = None) -> None:
        super().__init__(name, _beta=beta, _threshold=threshold)

    def forward(self, x: Tensor) -> Tensor:
        return F.softplus(x, self._beta, self._threshold)


class Softshrink(Configured):
    """x moved toward 0 by threshold; 0 inside of it."""

    _shown = ("_threshold",)

    def __init__(self, threshold: NotNegative = 0.5, name: str | None = None) -> None:
        super().__init__(name, _threshold=threshold)

    lambd = also("_threshold")

    def forward(self, x: Tensor) -> Tensor:
        return F.softshrink(x, self._threshold)


class Softsign(Configured):
    """x / (1 + |x|)."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        return F.softsign(x)


class Swish(Configured):
    """x * sigmoid(x)."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        return F.swish(x)


class Silu(Configured):
    """x * sigmoid(x)."""

    _shown = ("_inplace",)

    def __init__(self, inplace: bool = False, name: str | None = None) -> None:
        super().__init__(name, _inplace=inplace)

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(x, self._inplace)


class Mish(Configured):
    """x * tanh(softplus(x))."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        return F.mish(x)


class Tanh(Configured):
    """tanh(x)."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        return F.tanh(x)


class Tanhshrink(Configured):
    """x - tanh(x)."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        return F.tanhshrink(x)


class ThresholdedReLU(Configured):
    """x where x > threshold, else value."""

    _shown = ("_threshold", "_value")

    def __init__(self, threshold: float = 1.0, value: float = 0.0, name: str | None = None) -> None:
        super().__init__(name, _threshold=threshold, _value=value)

    def forward(self, x: Tensor) -> Tensor:
        return F.thresholded_relu(x, self._threshold, self._value)


class Softmax(Configured):
    """exp(x) divided by its sum along ``axis``."""

    _shown = ("_axis",)

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(name, _axis=axis)

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(x, self._axis)


class Softmax2D(Configured):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        if len(x.shape) not in (3, 4):
            raise ShapeError(message(f"Softmax2D: x has shape {list(x.shape)}", "it must have 3 or 4 axes"))
        return F.softmax(x, -3)


class LogSoftmax(Configured):
    """The logarithm of softmax along ``axis``."""

    _shown = ("_axis",)

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(name, _axis=axis)

    def forward(self, x: Tensor) -> Tensor:
        return F.log_softmax(x, self._axis)


class Maxout(Configured):
    """The maximum over each of groups of ``groups`` channels."""

    _shown = ("_groups", "_axis")

    def __init__(self, groups: Count, axis: Literal[1, 3, -1] = 1, name: str | None = None) -> None:
        super().__init__(name, _groups=groups, _axis=axis)

    def forward(self, x: Tensor) -> Tensor:
        return F.maxout(x, self._groups, self._axis)


class GLU(Configured):
    """The first half along ``axis`` times the sigmoid of the second."""

    _shown = ("_axis",)

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(name, _axis=axis)

    dim = also("_axis")

    def forward(self, x: Tensor) -> Tensor:
        return F.glu(x, self._axis)


SiLU = Silu

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Maxout",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Silu",
    "Softmax",
    "Softmax2D",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Swish",
    "Tanh",
    "Tanhshrink",
    "ThresholdedReLU",
]  # fmt: skip
