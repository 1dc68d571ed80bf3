"""Optimizer: parameter groups, state, regularisation, clipping; subclasses say how a group of parameters is updated."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import tensor
from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from ..tensor import Tensor
from ..tensor.functions import no_grad
from .lr import LRScheduler


@dataclass
class State:
    """What an optimizer keeps for one parameter: tensors by state name, and the powers of decay rates as plain numbers."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    powers: dict[str, float] = field(default_factory=dict)
    master: Tensor | None = None


@dataclass
class Bucket:
    """Parameters that one call updates: they share everything but their tensors."""

    lr: float
    l2: float
    l1: float
    options: tuple[Any, ...]
    params: list[Tensor] = field(default_factory=list)
    grads: list[Tensor] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    def state(self, name: str) -> list[Tensor]:
        """The state tensor of this name, of every parameter."""
        return [s.tensors[name] for s in self.states]

    @property
    def masters(self) -> list[Tensor]:
        """The float32 copies of 16-bit parameters, or nothing."""
        return [s.master for s in self.states if s.master is not None]


class Optimizer:
    """The base of optimizers.

    Args:
        learning_rate: a float or an LRScheduler.
        parameters: the tensors to train, or a list of dicts (parameter groups) with ``params`` and own ``learning_rate`` factors, ``weight_decay`` and ``grad_clip``.
        weight_decay: a float (L2), L1Decay or L2Decay; a parameter's own regularizer wins.
        grad_clip: a ClipGradByValue, ClipGradByNorm or ClipGradByGlobalNorm.
        name: the prefix of its states' names.
    """

    #: State names -> initial value; made like the parameter, in float32 for a 16-bit parameter with a master copy.
    _state_names: Mapping[str, float] = {}
    #: Names of powers of decay rates -> the attribute that holds the rate.
    _power_names: Mapping[str, str] = {}

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        multi_precision: bool = False,
    ) -> None:
        if parameters is None:
            raise ArgumentError(
                message(
                    f"{type(self).__name__}(): parameters is None",
                    "eager mode trains what it is given",
                    "pass parameters=model.parameters()",
                )
            )
        if isinstance(parameters, Tensor):
            raise ArgumentTypeError(
                message(f"{type(self).__name__}(): parameters is a single Tensor", "it must be a list of them", "pass [tensor]")
            )
        self._learning_rate = self._checked_rate(learning_rate)
        self._name = name
        self._grad_clip = grad_clip
        self._multi_precision = multi_precision
        self.regularization = weight_decay
        self._states: dict[int, State] = {}
        self._param_groups: list[dict[str, Any]] = []
        given = list(parameters)
        groups = given if given and isinstance(given[0], dict) else [{"params": given}]
        for group in groups:
            self._add_param_group(dict(group))
        self._pending_state: dict[str, Any] = {}

    @staticmethod
    def _checked_rate(rate: Any) -> Any:
        if isinstance(rate, LRScheduler):
            return rate
        if isinstance(rate, Tensor):
            return float(rate)
        if isinstance(rate, bool) or not isinstance(rate, (int, float)):
            raise ArgumentTypeError(message(f"learning_rate is a {type(rate).__name__}", "it must be a float or an LRScheduler"))
        return float(rate)

    def _add_param_group(self, group: dict[str, Any]) -> None:
        """Train one more group of parameters."""
        params = group.get("params")
        group["params"] = [params] if isinstance(params, Tensor) else list(params or [])
        known = {id(p) for g in self._param_groups for p in g["params"]}
        for p in group["params"]:
            if not isinstance(p, Tensor):
                raise ArgumentTypeError(message(f"parameters holds a {type(p).__name__}", "it must hold Tensors"))
            if id(p) in known:
                raise ArgumentError(f"the parameter {p.name!r} is in two parameter groups")
            known.add(id(p))
        self._param_groups.append(group)

    @property
    def _parameter_list(self) -> list[Tensor]:
        return [p for g in self._param_groups for p in g["params"]]

    # ------------------------------------------------------------------ learning rate

    def get_lr(self) -> float:
        """The learning rate in use."""
        rate = self._learning_rate
        return float(rate()) if isinstance(rate, LRScheduler) else float(rate)

    def set_lr(self, value: float) -> None:
        """Set the learning rate. Raises when a scheduler drives it."""
        if isinstance(self._learning_rate, LRScheduler):
            raise ArgumentError(
                "set_lr(): an LRScheduler drives this optimizer's learning rate; use set_lr_scheduler() or step the scheduler"
            )
        self._learning_rate = self._checked_rate(value)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Let the scheduler drive the learning rate."""
        if not isinstance(scheduler, LRScheduler):
            raise ArgumentTypeError(message(f"set_lr_scheduler(): got a {type(scheduler).__name__}", "it takes an LRScheduler"))
        self._learning_rate = scheduler

    # ------------------------------------------------------------------ the step

    @no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        rate = self.get_lr()
        buckets: OrderedDict[Any, Bucket] = OrderedDict()
        for group, pairs in self._clipped():
            factor = group.get("learning_rate", 1.0)
            factor = float(factor() if isinstance(factor, LRScheduler) else factor)
            for param, grad in pairs:
                self._bucket(buckets, group, rate * factor, param, grad)
        for bucket in buckets.values():
            self._update(bucket)
            for state in bucket.states:
                for name, attribute in self._power_names.items():
                    state.powers[name] *= float(getattr(self, attribute))

    def _clipped(self) -> Iterator[tuple[dict[str, Any], list[tuple[Tensor, Tensor]]]]:
        """Each group with its (parameter, gradient) pairs, clipped. Groups without a clip of their own are clipped together."""
        found = [
            (g, [(p, p.grad) for p in g["params"] if not p.stop_gradient and p.grad is not None]) for g in self._param_groups
        ]
        common = [pairs for g, pairs in found if "grad_clip" not in g]
        joint = [pair for pairs in common for pair in pairs]
        if self._grad_clip is not None and joint:
            joint = self._grad_clip(joint)
        at = 0
        for group, pairs in found:
            if "grad_clip" in group:
                yield group, group["grad_clip"](pairs) if group["grad_clip"] is not None and pairs else pairs
            else:
                yield group, joint[at : at + len(pairs)]
                at += len(pairs)

    def _bucket(self, buckets: dict[Any, Bucket], group: dict[str, Any], rate: float, param: Tensor, grad: Tensor) -> None:
        factor = getattr(param, "optimize_attr", {}).get("learning_rate", 1.0) * self._rate_factor(param)
        l2, l1 = self._decay_of(param, group)
        options = self._options(param, group)
        state = self._state_of(param)
        key = (
            rate * factor,
            l2,
            l1,
            options,
            param.dtype.name,
            grad.dtype.name,
            state.master is None,
            tuple(state.powers.values()),
        )
        bucket = buckets.get(key)
        if bucket is None:
            bucket = buckets[key] = Bucket(rate * factor, l2, l1, options)
        bucket.params.append(param)
        bucket.grads.append(grad)
        bucket.states.append(state)

    def _decay_of(self, param: Tensor, group: Mapping[str, Any]) -> tuple[float, float]:
        """The L2 and L1 coefficients that are added to the gradient."""
        decay = getattr(param, "regularizer", None) or group.get("weight_decay", self.regularization)
        if decay is None:
            return 0.0, 0.0
        if isinstance(decay, (int, float)):
            return float(decay), 0.0
        coefficient = float(decay.coeff)
        return (0.0, coefficient) if type(decay).__name__ == "L1Decay" else (coefficient, 0.0)

    def _rate_factor(self, param: Tensor) -> float:
        """A factor on this parameter's learning rate."""
        return 1.0

    def _options(self, param: Tensor, group: Mapping[str, Any]) -> tuple[Any, ...]:
        """What else a bucket's parameters share."""
        return ()

    def _update(self, bucket: Bucket) -> None:
        """Update the bucket's parameters and states in place; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} defines no _update()")

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of all parameters: to zeros, or to None."""
        for p in self._parameter_list:
            if not p.stop_gradient:
                p.clear_gradient(set_to_zero)

    clear_gradients = clear_grad

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters."""
        self.clear_grad(not set_to_none)

    def minimize(
        self, loss: Tensor, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None
    ) -> tuple[list[Any], list[tuple[Tensor, Tensor]]]:
        """Backward, when no gradient is there yet, and one step. Gives ([], the (parameter, gradient) pairs)."""
        if not isinstance(loss, Tensor):
            raise ArgumentTypeError(message(f"minimize(): loss is a {type(loss).__name__}", "it must be a Tensor"))
        if all(p.grad is None for p in self._parameter_list):
            loss.backward()
        pairs = [(p, p.grad) for p in self._parameter_list if p.grad is not None]
        self.step()
        return [], pairs

    def backward(
        self, loss: Tensor, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None, callbacks: Any = None
    ) -> list[tuple[Tensor, Tensor]]:
        """Run backward from the loss; gives the (parameter, gradient) pairs."""
        loss.backward()
        return [(p, p.grad) for p in self._parameter_list if p.grad is not None]

    def apply_gradients(self, params_grads: Sequence[tuple[Tensor, Tensor]]) -> list[Any]:
        """Take the gradients of these pairs and make one step."""
        for param, grad in params_grads:
            param.grad = grad
        self.step()
        return []

    # ------------------------------------------------------------------ state

    def _state_of(self, param: Tensor) -> State:
        found = self._states.get(id(param))
        if found is None:
            found = self._states[id(param)] = self._new_state(param)
            self._load_into(param, found)
        return found

    def _new_state(self, param: Tensor) -> State:
        name = param.dtype.name
        state = State()
        if self._multi_precision and dtypes.itemsize(name) == 2:
            state.master = param.detach().astype("float32").clone()
        dtype = "float32" if state.master is not None else name
        for key, value in self._state_names.items():
            state.tensors[key] = self._initial(key, param, dtype, value)
        state.powers = {key: float(getattr(self, attribute)) for key, attribute in self._power_names.items()}
        return state

    def _initial(self, key: str, param: Tensor, dtype: str, value: float) -> Tensor:
        """The first value of a state."""
        return tensor.full(list(param.shape), value, dtype)

    def _key(self, param: Tensor, state_name: str) -> str:
        return f"{param.name}_{self._name + '_' if self._name else ''}{state_name}_0"

    def state_dict(self) -> dict[str, Any]:
        """All states by Paddle's names, with ``LR_Scheduler`` and ``master_weights`` where there are such."""
        found: dict[str, Any] = {}
        with_state = [(p, self._states[id(p)]) for p in self._parameter_list if id(p) in self._states]
        for name in self._state_names:
            found.update((self._key(p, name), s.tensors[name]) for p, s in with_state if name in s.tensors)
        for name in self._power_names:
            found.update((self._key(p, name), tensor.full([1], s.powers[name], "float32")) for p, s in with_state)
        masters = {p.name: s.master for p, s in with_state if s.master is not None}
        if masters:
            found["master_weights"] = masters
        if isinstance(self._learning_rate, LRScheduler):
            found["LR_Scheduler"] = self._learning_rate.state_dict()
        return found

    @no_grad()
    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take all states from a state dict; those of parameters that were not updated yet are kept until they are."""
        if not isinstance(state_dict, Mapping):
            raise ArgumentTypeError(
                message(f"set_state_dict(): got a {type(state_dict).__name__}", "it takes what state_dict() gave")
            )
        given = dict(state_dict)
        schedule = given.pop("LR_Scheduler", None)
        if schedule is not None and isinstance(self._learning_rate, LRScheduler):
            self._learning_rate.set_state_dict(schedule)
        self._pending_state = given
        for param in self._parameter_list:
            if any(
                self._key(param, name) in given for name in (*self._state_names, *self._power_names)
            ) or param.name in given.get("master_weights", {}):
                self._load_into(param, self._states.setdefault(id(param), self._new_state(param)))

    load_state_dict = set_dict = set_state_dict

    def _load_into(self, param: Tensor, state: State) -> None:
        given = self._pending_state
        for name, target in state.tensors.items():
            value = given.get(self._key(param, name))
            if value is None:
                continue
            if list(value.shape) != list(target.shape):
                raise ShapeError(
                    message(
                        f"the state {self._key(param, name)} has shape {list(value.shape)}",
                        f"its parameter needs {list(target.shape)}",
                    )
                )
            target.set_value(value)
        for name in state.powers:
            value = given.get(self._key(param, name))
            if value is not None:
                state.powers[name] = float(value)
        master = given.get("master_weights", {}).get(param.name)
        if master is not None and state.master is not None:
            state.master.set_value(master)


def require_rate(name: str, parameter: str, value: Any, valid: Callable[[float], bool], range_text: str) -> float:
    """A float option inside its range."""
    number = float(value)
    if not valid(number):
        raise ArgumentError(message(f"{name}(): {parameter}={value!r}", f"it must be {range_text}"))
    return number
