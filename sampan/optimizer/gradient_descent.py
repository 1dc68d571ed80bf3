"""SGD, Momentum, ASGD and Rprop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.errors import ArgumentError, message
from ..base.kinds import Finite
from ..tensor import OPS, Tensor
from ..tensor.variable_methods import replace
from .buckets import Bucket, Run
from .optimizer import Number, Optimizer


class SGD(Optimizer):
    """Stochastic gradient descent: ``w - lr * g``.

    Args:
        learning_rate: a float or an LRScheduler.
        parameters: the tensors to train, or parameter groups.
        weight_decay: a float (L2), L1Decay or L2Decay.
        grad_clip: how gradients are clipped.
        multi_precision: keep float32 copies of 16-bit parameters.
        name: goes into the names of its states.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    _operator = "sgd_step"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, multi_precision)

    def _updates_rows_alone(self, param: Tensor, group: Mapping[str, Any]) -> bool:
        return not any(self._decay_of(param, group))

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        return rate, bucket.l2, bucket.l1


class Momentum(Optimizer):
    """Gradient descent with a velocity: ``v = momentum * v + g; w - lr * v``.

    Args:
        learning_rate: a float or an LRScheduler.
        momentum: how much of the velocity stays.
        parameters: the tensors to train, or parameter groups.
        use_nesterov: step by ``g + momentum * v``.
        weight_decay: a float (L2), L1Decay or L2Decay.
        grad_clip: how gradients are clipped.
        multi_precision: keep float32 copies of 16-bit parameters.
        rescale_grad: a factor on every gradient.
        use_multi_tensor: accepted for compatibility; parameters are always updated many at once.
        name: goes into the names of its states.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.Momentum(0.1, 0.9, parameters=layer.parameters(), use_nesterov=True)
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    _operator = "momentum_step"
    _operands = ("velocity",)

    def __init__(
        self,
        learning_rate: Any = 0.001,
        momentum: Finite = 0.9,
        parameters: Any = None,
        use_nesterov: bool = False,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        rescale_grad: Finite = 1.0,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, multi_precision)
        self._state_starts = {"velocity": 0.0}
        self._momentum = float(momentum)
        self._use_nesterov = bool(use_nesterov)
        self._rescale_grad = float(rescale_grad)

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        options = (self._option(bucket.group, name) for name in ("momentum", "use_nesterov", "rescale_grad"))
        return rate, *options, bucket.l2, bucket.l1


class ASGD(Optimizer):
    """Stochastic average gradient descent: a step along the mean of the last gradients of ``batch_num`` batches, each of which counts once.

    The method is that of https://arxiv.org/abs/1309.2388.

    Args:
        learning_rate: a float or an LRScheduler.
        batch_num: the number of batches in an epoch.
        parameters: the tensors to train, or parameter groups.
        weight_decay: a float (L2), L1Decay or L2Decay.
        grad_clip: how gradients are clipped.
        multi_precision: keep float32 copies of 16-bit parameters.
        name: goes into the names of its states.

    Raises:
        ArgumentError: batch_num is less than 1.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.ASGD(0.1, batch_num=10, parameters=layer.parameters())
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    _operator = "average_step"
    _operands = ("d", "y")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        batch_num: int = 1,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, multi_precision)
        if isinstance(batch_num, bool) or not isinstance(batch_num, int) or batch_num < 1:
            raise ArgumentError(message(f"ASGD(): batch_num={batch_num!r}", "it must be an int of at least 1"))
        self._batch_num = batch_num
        self._state_starts = {"d": 0.0, "y": 0.0}
        self._numbers = {"m": Number(0.0, dtype="int64")}

    def _initial(self, key: str, param: Tensor, dtype: str) -> Tensor:
        if key != "y":
            return super()._initial(key, param, dtype)
        return self._states_made_by.full(self._key(param, key), [self._batch_num, *param.shape], 0.0, dtype)  # type: ignore[no-any-return]

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        return rate, min(bucket.numbers["m"] + 1, self._batch_num), bucket.l2, bucket.l1

    def _positions(self, bucket: Bucket) -> dict[str, Any]:
        return {"batch": int(bucket.numbers["m"]) % self._batch_num}

    def _apply(self, operator: Any, run: Run, grads: Sequence[Any], rates: Sequence[Any], positions: Mapping[str, Any]) -> None:
        totals, seen = run.states
        batch = positions["batch"]
        if isinstance(batch, int):
            operator(run.params, grads, totals, [y[batch] for y in seen], run.masters, *rates)
            return
        oldest = [OPS["squeeze"](OPS["gather"](y, batch, 0), 0) for y in seen]  # a Program has no views to write into
        operator(run.params, grads, totals, oldest, run.masters, *rates)
        for y, newest in zip(seen, oldest, strict=True):
            replace(y, OPS["scatter"](y, batch, OPS["unsqueeze"](newest, 0)))

    def _finish(self, bucket: Bucket) -> None:
        bucket.numbers["m"] += 1


class Rprop(Optimizer):
    """Resilient propagation: only the sign of a gradient counts, and each element has a step size of its own.

    For gradients of the whole data set: https://doi.org/10.1109/ICNN.1993.298623.

    Args:
        learning_rate: the first step size.
        learning_rate_range: the smallest and the largest step size.
        parameters: the tensors to train, or parameter groups.
        etas: the factors on the step size after the gradient changed its sign, and after it did not.
        grad_clip: how gradients are clipped.
        multi_precision: keep float32 copies of 16-bit parameters.
        name: goes into the names of its states.

    Raises:
        ArgumentError: a range or factors out of order.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.Rprop(0.01, parameters=layer.parameters())
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
    """

    _operator = "rprop_step"
    _operands = ("prevs", "learning_rates")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_range: tuple[float, float] = (1e-5, 50.0),
        parameters: Any = None,
        etas: tuple[float, float] = (0.5, 1.2),
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, None, grad_clip, name, multi_precision)
        first = self.get_lr()
        self._range = (float(learning_rate_range[0]), float(learning_rate_range[1]))
        self._etas = (float(etas[0]), float(etas[1]))
        if not 0 < self._range[0] <= first <= self._range[1]:
            raise ArgumentError(
                message(
                    f"Rprop(): learning_rate={first} and learning_rate_range={learning_rate_range!r}",
                    "it takes 0 < smallest <= learning_rate <= largest",
                )
            )
        if not 0 < self._etas[0] < 1 < self._etas[1]:
            raise ArgumentError(message(f"Rprop(): etas={etas!r}", "it takes a factor below 1 and one above"))
        self._state_starts = {"prevs": 0.0, "learning_rates": first}

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        return *self._range, *self._etas
