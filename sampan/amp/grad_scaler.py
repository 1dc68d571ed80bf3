"""GradScaler: keeps float16 gradients inside their range by scaling the loss."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace
from typing import Any

from .. import tensor
from ..base.errors import ArgumentError, AutogradError, message
from ..base.kinds import Positive
from ..optimizer import Optimizer
from ..tensor import OPS, Tensor
from ..tensor.explained import Explained
from ..tensor.functions import no_grad
from ..tensor.replay import recordable
from ..tensor.runs import unscale

#: The largest float32: a scale that would be larger stays as it is.
_LARGEST = 3.4028234663852886e38


@dataclass(frozen=True)
class ScaleRule:
    """How the scale follows from the steps."""

    incr_ratio: float
    decr_ratio: float
    incr_every_n_steps: int
    decr_every_n_nan_or_inf: int

    def __post_init__(self) -> None:
        if not self.incr_ratio > 1.0:
            raise ArgumentError(message(f"incr_ratio={self.incr_ratio!r}", "it must be above 1"))
        if not 0 < self.decr_ratio < 1.0:
            raise ArgumentError(message(f"decr_ratio={self.decr_ratio!r}", "it must be between 0 and 1"))

    def next(self, scale: Any, good: Any, bad: Any, is_finite: Any) -> tuple[Any, Any, Any]:
        """The scale and the counts of steps after one more. All are numbers, or all are Variables."""
        return update_loss_scaling(scale, good, bad, is_finite, *astuple(self))  # type: ignore[no-any-return]


@recordable("update_loss_scaling")
def update_loss_scaling(
    scale: Any,
    good_steps: Any,
    bad_steps: Any,
    is_finite: Any,
    incr_ratio: float,
    decr_ratio: float,
    incr_every_n_steps: int,
    decr_every_n_nan_or_inf: int,
) -> Any:
    """The scale, the count of finite steps and that of others after one more step."""
    choose = (lambda c, x, y: x if c else y) if isinstance(is_finite, bool) else OPS["where"]
    good, bad = choose(is_finite, good_steps + 1, good_steps * 0), choose(is_finite, bad_steps * 0, bad_steps + 1)
    is_full, is_low = good >= incr_every_n_steps, bad >= decr_every_n_nan_or_inf
    larger, smaller = scale * incr_ratio, scale * decr_ratio
    larger = choose(larger <= _LARGEST, larger, scale)
    smaller = choose(smaller < 1.0, smaller * 0.0 + 1.0, smaller)
    scale = choose(is_full, larger, choose(is_low, smaller, scale))
    return scale, choose(is_full, good * 0, good), choose(is_low, bad * 0, bad)


class AmpScaler(Explained):
    """Scales losses, unscales gradients, skips steps whose gradients are not finite, and adapts the scale.

    Args:
        enable: False: every method passes through.
        init_loss_scaling: the first scale.
        incr_ratio: the scale grows by this after ``incr_every_n_steps`` finite steps in a row.
        decr_ratio: it shrinks by this after ``decr_every_n_nan_or_inf`` steps that were not finite.
        use_dynamic_loss_scaling: False: the scale stays.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
        >>> scaler = paddle.amp.GradScaler(init_loss_scaling=1024)
        >>> scaler.scale(layer(paddle.ones([1, 2])).sum()).backward()
        >>> scaler.step(opt)
        >>> scaler.update()
    """

    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: Positive = 65536.0,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.5,
        incr_every_n_steps: int = 2000,
        decr_every_n_nan_or_inf: int = 1,
        use_dynamic_loss_scaling: bool = True,
    ) -> None:
        self._enable = bool(enable)
        self._scale = float(init_loss_scaling)
        self._rule = ScaleRule(float(incr_ratio), float(decr_ratio), int(incr_every_n_steps), int(decr_every_n_nan_or_inf))
        self._use_dynamic = bool(use_dynamic_loss_scaling)
        self._good_steps = self._bad_steps = 0
        self._unscaled: dict[int, bool] = {}
        self._stepped: set[int] = set()

    def scale(self, var: Tensor) -> Tensor:
        """The loss times the scale."""
        return OPS["multiply"](var, self._scale) if self._enable else var

    @no_grad()
    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the optimizer's gradients by the scale, once before each step."""
        if not self._enable:
            return
        if id(optimizer) in self._unscaled:
            raise AutogradError("unscale_() was already called on this optimizer since the last update()")
        grads = [p.grad for p in optimizer._parameter_list if not p.stop_gradient and p.grad is not None]
        self._unscaled[id(optimizer)] = bool(unscale(grads, 1.0 / self._scale).item())

    def step(self, optimizer: Optimizer) -> None:
        """Unscale, unless that was done, and step where all gradients are finite. Call ``update`` after it."""
        if not self._enable:
            optimizer.step()
            return
        if id(optimizer) in self._stepped:
            raise AutogradError("step() was already called on this optimizer since the last update()")
        if id(optimizer) not in self._unscaled:
            self.unscale_(optimizer)
        if self._unscaled[id(optimizer)]:
            optimizer.step()
        self._stepped.add(id(optimizer))

    def update(self) -> None:
        """Adapt the scale to how the steps since the last update went."""
        if not self._enable:
            return
        if self._use_dynamic and self._unscaled:
            self._scale, self._good_steps, self._bad_steps = self._rule.next(
                self._scale, self._good_steps, self._bad_steps, all(self._unscaled.values())
            )
        self._unscaled.clear()
        self._stepped.clear()

    def minimize(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> tuple[list[Any], list[Any]]:
        """``step`` and ``update``."""
        self.step(optimizer)
        self.update()
        return [], [(p, p.grad) for p in optimizer._parameter_list if p.grad is not None]

    def is_enable(self) -> bool:
        """Whether the scaler does anything."""
        return self._enable

    def is_use_dynamic_loss_scaling(self) -> bool:
        """Whether the scale adapts."""
        return self._use_dynamic

    def get_init_loss_scaling(self) -> float:
        """The scale in use."""
        return self._scale

    def set_init_loss_scaling(self, new_init_loss_scaling: float) -> None:
        """Set the scale."""
        self._scale = float(new_init_loss_scaling)

    def get_incr_ratio(self) -> float:
        """The factor by which the scale grows."""
        return self._rule.incr_ratio

    def set_incr_ratio(self, new_incr_ratio: float) -> None:
        """Set the factor by which the scale grows; above 1."""
        self._rule = replace(self._rule, incr_ratio=float(new_incr_ratio))

    def get_decr_ratio(self) -> float:
        """The factor by which the scale shrinks."""
        return self._rule.decr_ratio

    def set_decr_ratio(self, new_decr_ratio: float) -> None:
        """Set the factor by which the scale shrinks; below 1."""
        self._rule = replace(self._rule, decr_ratio=float(new_decr_ratio))

    def get_incr_every_n_steps(self) -> int:
        """After how many finite steps in a row the scale grows."""
        return self._rule.incr_every_n_steps

    def set_incr_every_n_steps(self, new_incr_every_n_steps: int) -> None:
        """Set after how many finite steps in a row the scale grows."""
        self._rule = replace(self._rule, incr_every_n_steps=int(new_incr_every_n_steps))

    def get_decr_every_n_nan_or_inf(self) -> int:
        """After how many steps that were not finite the scale shrinks."""
        return self._rule.decr_every_n_nan_or_inf

    def set_decr_every_n_nan_or_inf(self, new_decr_every_n_nan_or_inf: int) -> None:
        """Set after how many steps that were not finite the scale shrinks."""
        self._rule = replace(self._rule, decr_every_n_nan_or_inf=int(new_decr_every_n_nan_or_inf))

    def state_dict(self) -> dict[str, Any]:
        """The scale, its rules and counts; empty for a scaler that is off."""
        if not self._enable:
            return {}
        return {
            "scale": tensor.full([1], self._scale, "float32").numpy(),
            "incr_ratio": self._rule.incr_ratio,
            "decr_ratio": self._rule.decr_ratio,
            "incr_every_n_steps": self._rule.incr_every_n_steps,
            "decr_every_n_nan_or_inf": self._rule.decr_every_n_nan_or_inf,
            "incr_count": self._good_steps,
            "decr_count": self._bad_steps,
            "use_dynamic_loss_scaling": self._use_dynamic,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what ``state_dict`` gave."""
        if not self._enable:
            return
        if not state_dict:
            raise ArgumentError("load_state_dict(): the state is empty: it came from a scaler that was off")
        scale = state_dict["scale"]
        self._scale = float(scale[0] if hasattr(scale, "__len__") else scale)
        self._rule = ScaleRule(*(state_dict[f.name] for f in fields(ScaleRule)))
        self._good_steps, self._bad_steps = state_dict["incr_count"], state_dict["decr_count"]
        self._use_dynamic = state_dict["use_dynamic_loss_scaling"]


class GradScaler(AmpScaler):
    """Scales losses, unscales gradients, skips steps whose gradients are not finite, and adapts the scale.

    Args:
        enable: False: every method passes through.
        init_loss_scaling: the first scale.
        incr_ratio: the scale grows by this after ``incr_every_n_steps`` finite steps in a row.
        decr_ratio: it shrinks by this after ``decr_every_n_nan_or_inf`` steps that were not finite.
        incr_every_n_steps: see above.
        decr_every_n_nan_or_inf: see above.
        use_dynamic_loss_scaling: False: the scale stays.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
        >>> scaler = paddle.amp.GradScaler(init_loss_scaling=1024)
        >>> scaler.scale(layer(paddle.ones([1, 2])).sum()).backward()
        >>> scaler.step(opt)
        >>> scaler.update()
    """
