"""Distribution, the base of all; and how their arguments become tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from .. import tensor as T
from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, describe, message
from ..tensor import Tensor, to_tensor
from ..tensor.functions import dtype_name, get_default_dtype, is_tensor, no_grad
from ..tensor.variable import Variable

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
EULER = 0.57721566490153286061


class Distribution:
    """A probability distribution: a batch of ``batch_shape`` of them, each over values of ``event_shape``.

    Args:
        batch_shape: the shape of the batch.
        event_shape: the shape of one value.
    """

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = ()) -> None:
        self._batch_shape = tuple(int(n) for n in batch_shape)
        self._event_shape = tuple(int(n) for n in event_shape)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} defines no mean")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} defines no variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return T.sqrt(self.variance)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values of shape ``shape + batch_shape + event_shape``, through which no gradient flows."""
        with no_grad():
            return self.rsample(shape)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Values of shape ``shape + batch_shape + event_shape``, differentiable in the parameters."""
        raise NotImplementedError(
            f"{type(self).__name__} defines no rsample(): its values are not differentiable in its parameters"
        )

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        raise NotImplementedError(f"{type(self).__name__} defines no entropy()")

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability, or of its density, of each value."""
        raise NotImplementedError(f"{type(self).__name__} defines no log_prob()")

    def prob(self, value: Tensor) -> Tensor:
        """The probability, or its density, of each value."""
        return T.exp(self.log_prob(value))

    def _probs(self, value: Tensor) -> Tensor:
        """The probability, or its density, of each value."""
        return self.prob(value)

    #: ``prob`` by its older name; the parameter of that name where a distribution has one.
    probs: Any = _probs

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to this one."""
        raise NotImplementedError(f"{type(self).__name__} defines no cdf()")

    def icdf(self, value: Tensor) -> Tensor:
        """The value up to which the probability is this one: the inverse of ``cdf``."""
        raise NotImplementedError(f"{type(self).__name__} defines no icdf()")

    def kl_divergence(self, other: Any) -> Tensor:
        """The Kullback-Leibler divergence of the other distribution from this one, in nats."""
        raise NotImplementedError(f"{type(self).__name__}.kl_divergence(): use distribution.kl_divergence(p, q)")

    def _extend_shape(self, shape: Any) -> list[int]:
        """The shape of samples: the sample shape, the batch's, the event's."""
        return [*sizes(shape), *self._batch_shape, *self._event_shape]


class ExponentialFamily(Distribution):
    """The base of the distributions ``h(x) exp(eta . t(x) - A(eta))``."""


def sizes(shape: Any) -> list[int]:
    """A sample shape as a list of integers."""
    if isinstance(shape, Tensor):
        return [int(n) for n in shape.tolist()]
    if isinstance(shape, int):
        return [shape]
    if not isinstance(shape, (list, tuple)):
        raise ArgumentTypeError(message(f"sample(): shape is {describe(shape)}", "it must be a list or tuple of integers"))
    return [int(n) for n in shape]


def as_tensor(name: str, parameter: str, value: Any) -> Tensor:
    """A parameter as a floating tensor: a number, list or array in the default dtype, a floating tensor as it is."""
    if is_tensor(value):
        return value if dtypes.kind(_type_of(value)) == "f" else value.astype(get_default_dtype())  # type: ignore[no-any-return]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return to_tensor(value)
    if isinstance(value, (Real, list, tuple, np.ndarray)):
        return to_tensor(value, get_default_dtype())
    raise ArgumentTypeError(
        message(f"{name}(): {parameter} is {describe(value)}", "it must be a number, a list, an array or a Tensor")
    )


def as_tensors(name: str, **values: Any) -> list[Tensor]:
    """Parameters as floating tensors of one dtype, broadcast to one shape."""
    found = [as_tensor(name, parameter, value) for parameter, value in values.items()]
    given = [
        _type_of(t) for t, value in zip(found, values.values(), strict=True) if is_tensor(value) or isinstance(value, np.ndarray)
    ]
    dtype = "float64" if "float64" in given else (given or [_type_of(found[0])])[0]
    found = [t if _type_of(t) == dtype else t.astype(dtype) for t in found]
    return list(T.broadcast_tensors(found)) if any(list(t.shape) != list(found[0].shape) for t in found) else found


def _type_of(value: Tensor) -> str:
    return dtype_name("distribution", value.dtype)


def require(name: str, parameter: str, value: Tensor, is_valid: Callable[[Any], Any], wanted: str) -> None:
    """Raise ArgumentError unless all elements of the parameter are valid; those of a Program's Variable nobody knows yet."""
    if isinstance(value, Variable):
        return
    array = value.numpy().reshape(-1)
    bad = array[~is_valid(array)]
    if bad.size:
        raise ArgumentError(message(f"{name}(): {parameter} holds {bad[0].item()}", f"it must be {wanted}"))


def value_like(value: Any, parameter: Tensor) -> Tensor:
    """A value in the dtype of the parameters."""
    if not is_tensor(value):
        return to_tensor(value, parameter.dtype)
    return value if _type_of(value) == _type_of(parameter) else value.astype(parameter.dtype)  # type: ignore[no-any-return]


def uniform_like(shape: Sequence[int], dtype: Any) -> Tensor:
    """Uniform numbers inside (0, 1)."""
    tiny = float(np.finfo(np.float32).tiny)
    return T.clip(T.uniform(list(shape), dtype, 0.0, 1.0), tiny, 1 - 2.0**-24)


def xlogy(x: Tensor, y: Tensor) -> Tensor:
    """x log y, 0 where x is 0."""
    is_zero = x == 0
    return T.where(is_zero, T.zeros_like(x * y), x * T.log(T.where(is_zero, T.ones_like(x * y), y)))


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """The logarithm of the beta function."""
    return T.lgamma(a) + T.lgamma(b) - T.lgamma(a + b)
