"""``paddle.nn.initializer``: how parameters start.

Numbers are drawn by NumPy's Philox generator from the framework's own seed stream, so that a seed gives the same parameters everywhere.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from ..base.kinds import Count, Deviation, Finite, Positive
from ..base.lazy import scipy_special as special
from ..tensor import Tensor, to_tensor
from ..tensor.explained import Explained
from ..tensor.functions import no_grad
from ..tensor.random import default_generator

Array = np.ndarray[Any, Any]

#: [weight, bias] that ``set_global_initializer`` set.
global_initializers: list[Any] = [None, None]


def _generator() -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=default_generator.next_key() & ((1 << 64) - 1)))


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    """(fan in, fan out) of a weight: [in, out] of a linear map, [out, in, k...] of a convolution."""
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    if len(shape) == 2:
        return shape[0], shape[1]
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


class Initializer(Explained):
    """The base of initializers: calling one on a parameter fills it. A subclass defines ``values``, or ``forward`` on the parameter itself."""

    def __call__(self, param: Tensor, block: Any = None) -> Tensor:
        """Fill the parameter; gives it."""
        return self.forward(param, block)

    def forward(self, param: Tensor, block: Any = None) -> Tensor:
        """Fill the parameter; gives it."""
        with no_grad():
            param.set_value(self.values(list(param.shape)).astype(dtypes.numpy_dtype(param.dtype.name), copy=False))
        return param

    def values(self, shape: list[int]) -> Array:
        """An array of this shape; cast to the parameter's dtype by the caller."""
        raise NotImplementedError(f"{type(self).__name__} defines neither values() nor forward()")


class Constant(Initializer):
    """One number everywhere.

    Args:
        value: the number.

    Example:
        >>> import sampan as paddle
        >>> paddle.nn.Linear(2, 1, bias_attr=paddle.nn.initializer.Constant(3.0)).bias.item()
        3.0
    """

    def __init__(self, value: float = 0.0) -> None:
        self._value = value

    def values(self, shape: list[int]) -> Array:
        return np.full(shape, self._value)


class Assign(Initializer):
    """Given numbers.

    Args:
        value: an array, a nested list or a Tensor of the parameter's shape. One of another shape gives its own to the parameter, with a
            warning; in a static Program it raises ShapeError.
    """

    def __init__(self, value: Any, name: str | None = None) -> None:
        if not isinstance(value, (np.ndarray, list, tuple, Tensor)):
            raise ArgumentTypeError(
                message(f"Assign(): value is a {type(value).__name__}", "it must be an array, a list or a Tensor")
            )
        self._value = np.asarray(value)

    def forward(self, param: Tensor, block: Any = None) -> Tensor:
        if not isinstance(param, Tensor) or list(self._value.shape) == list(param.shape):
            return super().forward(param, block)
        warnings.warn(
            f"Assign(): value has shape {list(self._value.shape)} and the parameter {param.name!r} {list(param.shape)}; it takes that of the value",
            stacklevel=2,
        )
        param.data = to_tensor(self._value.astype(dtypes.numpy_dtype(param.dtype.name)))
        return param

    def values(self, shape: list[int]) -> Array:
        if list(self._value.shape) != shape:
            raise ShapeError(
                message(f"Assign(): value has shape {list(self._value.shape)} and the parameter {shape}", "they must be equal")
            )
        return self._value


class Uniform(Initializer):
    """Uniform numbers in [low, high)."""

    def __init__(self, low: Finite = -1.0, high: Finite = 1.0, name: str | None = None) -> None:
        if high < low:
            raise ArgumentError(message(f"Uniform(): low={low} is above high={high}", "", "swap them"))
        self._low, self._high = low, high

    def values(self, shape: list[int]) -> Array:
        return _generator().uniform(self._low, self._high, shape)


class Normal(Initializer):
    """Normal numbers of this mean and standard deviation."""

    def __init__(self, mean: Finite = 0.0, std: Deviation = 1.0, name: str | None = None) -> None:
        self._mean, self._std = mean, std

    def values(self, shape: list[int]) -> Array:
        return _generator().normal(self._mean, self._std, shape)


class TruncatedNormal(Initializer):
    """Normal numbers kept in [a, b]: those outside are drawn anew.

    Args:
        mean: of the full distribution.
        std: of the full distribution.
        a: the smallest value.
        b: the largest value.
    """

    def __init__(
        self, mean: Finite = 0.0, std: Deviation = 1.0, a: float = -2.0, b: float = 2.0, name: str | None = None
    ) -> None:
        if not a < b:
            raise ArgumentError(message(f"TruncatedNormal(): a={a} is not below b={b}"))
        self._mean, self._std, self._low, self._high = mean, std, a, b

    def values(self, shape: list[int]) -> Array:
        if self._std == 0:
            return np.full(shape, min(max(self._mean, self._low), self._high))
        low, high = (special.ndtr((edge - self._mean) / self._std) for edge in (self._low, self._high))
        drawn = special.ndtri(_generator().uniform(low, high, shape)) * self._std + self._mean
        return np.clip(drawn, self._low, self._high)


class _Xavier(Initializer):
    def __init__(
        self, fan_in: Deviation | None = None, fan_out: Deviation | None = None, gain: Finite = 1.0, name: str | None = None
    ) -> None:
        self._fan_in, self._fan_out, self._gain = fan_in, fan_out, abs(gain)

    def _deviation(self, shape: list[int]) -> float:
        fan_in, fan_out = _fans(shape)
        total = (fan_in if self._fan_in is None else self._fan_in) + (fan_out if self._fan_out is None else self._fan_out)
        return self._gain * math.sqrt(2.0 / total) if total else 0.0


class XavierUniform(_Xavier):
    """Uniform within gain * sqrt(6 / (fan_in + fan_out)).

    Args:
        fan_in: inputs of a unit; by default from the parameter's shape.
        fan_out: outputs of a unit; by default from the parameter's shape.
        gain: a factor.

    Source: X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
    """

    def values(self, shape: list[int]) -> Array:
        limit = math.sqrt(3.0) * self._deviation(shape)
        return _generator().uniform(-limit, limit, shape)


class XavierNormal(_Xavier):
    """Normal with deviation gain * sqrt(2 / (fan_in + fan_out)); arguments as for ``XavierUniform``."""

    def values(self, shape: list[int]) -> Array:
        return _generator().normal(0.0, self._deviation(shape), shape)


class _Kaiming(Initializer):
    def __init__(
        self,
        fan_in: Positive | None = None,
        negative_slope: float = 0.0,
        nonlinearity: str = "relu",
        mode: Literal["fan_in", "fan_out"] = "fan_in",
    ) -> None:
        self._fan_in, self._mode = fan_in, mode
        self._gain = calculate_gain(nonlinearity, negative_slope)

    def _deviation(self, shape: list[int]) -> float:
        fan = self._fan_in if self._fan_in is not None else _fans(shape)[self._mode == "fan_out"]
        return self._gain / math.sqrt(fan) if fan else 0.0


class KaimingUniform(_Kaiming):
    """Uniform within gain * sqrt(3 / fan).

    Args:
        fan_in: inputs of a unit; by default from the parameter's shape.
        negative_slope: of the leaky relu that follows.
        nonlinearity: what follows, for ``calculate_gain``.
        mode: ``fan_in`` or ``fan_out``.

    Source: K. He et al., "Delving deep into rectifiers", https://arxiv.org/abs/1502.01852
    """

    def values(self, shape: list[int]) -> Array:
        limit = math.sqrt(3.0) * self._deviation(shape)
        return _generator().uniform(-limit, limit, shape)


class KaimingNormal(_Kaiming):
    """Normal with deviation gain / sqrt(fan); arguments as for ``KaimingUniform``."""

    def values(self, shape: list[int]) -> Array:
        return _generator().normal(0.0, self._deviation(shape), shape)


class Orthogonal(Initializer):
    """Rows (or columns, where fewer) that are orthonormal, times gain; axes after the first count as one.

    Source: A. Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", https://arxiv.org/abs/1312.6120
    """

    def __init__(self, gain: Finite = 1.0, name: str | None = None) -> None:
        self._gain = gain

    def values(self, shape: list[int]) -> Array:
        if len(shape) < 2:
            raise ShapeError(message(f"Orthogonal(): the parameter has shape {shape}", "it must have at least 2 axes"))
        rows, columns = shape[0], math.prod(shape[1:])
        drawn = _generator().normal(size=(max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(drawn)
        q = q * np.where(np.diagonal(r) < 0, -1.0, 1.0)
        return self._gain * (q if rows >= columns else q.T).reshape(shape)


class Dirac(Initializer):
    """A convolution's weight that passes its input channels on: 1 at the kernel's centre of channel k to k, in each of ``groups`` groups."""

    def __init__(self, groups: Count = 1, name: str | None = None) -> None:
        self._groups = groups

    def values(self, shape: list[int]) -> Array:
        if len(shape) not in (3, 4, 5) or shape[0] % self._groups:
            raise ShapeError(
                message(
                    f"Dirac(): the parameter has shape {shape}",
                    f"it must have 3 to 5 axes, the first a multiple of groups={self._groups}",
                )
            )
        result = np.zeros(shape)
        per_group = shape[0] // self._groups
        centre = tuple(k // 2 for k in shape[2:])
        for group in range(self._groups):
            for channel in range(min(per_group, shape[1])):
                result[(group * per_group + channel, channel, *centre)] = 1.0
        return result


class Bilinear(Initializer):
    """The weight of a transposed convolution that upsamples bilinearly: [C, 1 or C, K, K], every kernel alike.

    Unlike Paddle's, the kernel is symmetric.
    """

    def values(self, shape: list[int]) -> Array:
        if len(shape) != 4 or shape[2] != shape[3]:
            raise ShapeError(message(f"Bilinear(): the parameter has shape {shape}", "it must have 4 axes, the last two equal"))
        factor = math.ceil(shape[3] / 2)
        centre = (2 * factor - 1 - factor % 2) / (2 * factor)
        line = 1 - np.abs(np.arange(shape[3]) / factor - centre)
        return np.broadcast_to(np.outer(line, line), shape).copy()


def calculate_gain(nonlinearity: str, param: bool | float | None = None) -> float:
    """The factor by which an activation's input may be larger than its output, for Kaiming's and Xavier's rules.

    Args:
        nonlinearity: ``sigmoid``, ``linear``, ``conv1d`` …, ``tanh``, ``relu``, ``leaky_relu`` or ``selu``.
        param: the slope of ``leaky_relu``, 0.01 by default.

    Example:
        >>> import sampan as paddle
        >>> round(paddle.nn.initializer.calculate_gain("tanh"), 4)
        1.6667
    """
    plain = ("sigmoid", "linear", *(f"conv{n}d{t}" for n in (1, 2, 3) for t in ("", "_transpose")))
    slope = 0.01 if param is None else float(param)
    gains = {
        **dict.fromkeys(plain, 1.0),
        "tanh": 5.0 / 3,
        "relu": math.sqrt(2.0),
        "leaky_relu": math.sqrt(2.0 / (1 + slope**2)),
        "selu": 3.0 / 4,
    }
    if nonlinearity not in gains:
        raise ArgumentError(message(f"calculate_gain(): nonlinearity={nonlinearity!r}", f"it must be one of {', '.join(gains)}"))
    return gains[nonlinearity]


def set_global_initializer(weight_init: Initializer | None, bias_init: Initializer | None = None) -> None:
    """Use these initializers for parameters made from now on that have none of their own; None: the layers' defaults again."""
    for initializer in (weight_init, bias_init):
        if initializer is not None and not isinstance(initializer, Initializer):
            raise ArgumentTypeError(
                message(f"set_global_initializer(): got a {type(initializer).__name__}", "it takes an Initializer or None")
            )
    global_initializers[:] = [weight_init, bias_init]


__all__ = [
    "Assign", "Bilinear", "Constant", "Dirac", "Initializer", "KaimingNormal", "KaimingUniform", "Normal", "Orthogonal", "TruncatedNormal", "Uniform",
    "XavierNormal", "XavierUniform", "calculate_gain", "set_global_initializer",
]  # fmt: skip
