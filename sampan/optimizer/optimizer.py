"""Optimizer: parameter groups, regularisation, clipping, state; a subclass is a table row that names its operator, states and step sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import dtypes, spans
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from ..regularizer import L1Decay, WeightDecayRegularizer
from ..static.backward import append_backward
from ..tensor import OPS, Tensor
from ..tensor.explained import Explained
from ..tensor.functions import in_dynamic_mode, no_grad
from ..tensor.program import default_startup_program
from ..tensor.selected_rows import selected_places, to_dense
from ..tensor.variable import Variable
from .buckets import Bucket, Run, State, update_rows
from .compatible import CompatibleNames
from .lr import LRScheduler
from .recorded import EagerStates, append_update, minimize_recorded

#: The ``optimize_attr`` of a Tensor that is no Parameter.
_PLAIN = {"learning_rate": 1.0}


@dataclass(frozen=True)
class Number:
    """A number that an optimizer keeps for each parameter. In files it is a tensor of one element, or one ``like_parameter`` that repeats it.

    start: its first value, or the name of the option that it starts from.
    """

    start: float | str
    like_parameter: bool = False
    dtype: str = "float32"


class Optimizer(CompatibleNames, Explained):
    """The base of optimizers.

    Args:
        learning_rate: a float or an LRScheduler.
        parameters: the tensors to train, or a list of dicts (parameter groups) with ``params`` and, where they differ, ``learning_rate`` (a factor),
            ``weight_decay`` and ``grad_clip``.
        weight_decay: a float (L2), L1Decay or L2Decay; a parameter's own regularizer wins.
        grad_clip: a ClipGradByValue, ClipGradByNorm or ClipGradByGlobalNorm.
        name: goes into the names of its states.

    Raises:
        ArgumentError: no parameters, or a parameter that is in two groups.
        ArgumentTypeError: an argument of the wrong type.

    Example:
        >>> import sampan as paddle
        >>> layer = paddle.nn.Linear(2, 1)
        >>> opt = paddle.optimizer.SGD(0.1, parameters=layer.parameters(), weight_decay=1e-4)
        >>> layer(paddle.ones([4, 2])).mean().backward()
        >>> opt.step()
        >>> opt.clear_grad()
    """

    #: The operator that updates a run of parameters: op(params, grads, *states, masters, *rates).
    _operator = ""
    #: The states that the operator takes, in order.
    _operands: tuple[str, ...] = ()
    #: What makes states: tensors, or Variables of a Program while an update is recorded.
    _states_made_by: Any = EagerStates

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        multi_precision: bool = False,
    ) -> None:
        kind = type(self).__name__
        if parameters is None and in_dynamic_mode():
            raise ArgumentError(
                message(
                    f"{kind}(): parameters is None", "eager mode trains what it is given", "pass parameters=model.parameters()"
                )
            )
        if isinstance(parameters, (Tensor, Mapping)):
            raise ArgumentTypeError(
                message(
                    f"{kind}(): parameters is a {type(parameters).__name__}",
                    "it must be a list of tensors, or of dicts of them",
                    "pass it inside a list",
                )
            )
        if grad_clip is not None and not callable(grad_clip):
            raise ArgumentTypeError(
                message(f"{kind}(): grad_clip is a {type(grad_clip).__name__}", "it must be one of nn.ClipGradBy...")
            )
        self._learning_rate = _checked_rate(kind, learning_rate)
        self._name = name
        self._grad_clip = grad_clip
        self._multi_precision = bool(multi_precision)
        self.regularization = _checked_decay(kind, weight_decay)
        #: State names -> the value that all elements start from.
        self._state_starts: dict[str, float] = {}
        #: Names of the numbers that are kept -> what they start from.
        self._numbers: dict[str, Number] = {}
        self._states: dict[int, State] = {}
        self._pending_state: dict[str, Any] = {}
        self._param_groups: list[dict[str, Any]] = []
        self._buckets: list[Bucket] = []
        self._arranged_for: Any = None
        given = list(parameters or ())
        for group in (
            given if given and isinstance(given[0], Mapping) else [{"params": given}] if given or in_dynamic_mode() else []
        ):
            self._add_param_group(dict(group))

    def _add_param_group(self, group: dict[str, Any]) -> None:
        """Train one more group of parameters."""
        if "params" not in group:
            raise ArgumentError(
                message(
                    f"{type(self).__name__}(): a parameter group has the keys {sorted(map(str, group))}", "it must have 'params'"
                )
            )
        params = group["params"]
        group["params"] = [params] if isinstance(params, Tensor) else list(params or [])
        group["weight_decay"] = _checked_decay(type(self).__name__, group.get("weight_decay", self.regularization))
        known = {id(p) for p in self._parameter_list}
        for p in group["params"]:
            if not isinstance(p, (Tensor, Variable)):
                raise ArgumentTypeError(
                    message(f"{type(self).__name__}(): parameters holds a {type(p).__name__}", "it must hold Tensors")
                )
            if id(p) in known:
                raise ArgumentError(
                    message(
                        f"{type(self).__name__}(): the parameter {p.name!r} is given twice", "it would be updated twice a step"
                    )
                )
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
        """Set the learning rate.

        Raises:
            ArgumentError: a scheduler drives it.
        """
        if isinstance(self._learning_rate, LRScheduler):
            raise ArgumentError(
                message(
                    "set_lr(): an LRScheduler drives this optimizer's learning rate",
                    "its next step would overwrite the value",
                    "use set_lr_scheduler(), or set the scheduler's own values",
                )
            )
        self._learning_rate = _checked_rate("set_lr", value)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Let the scheduler drive the learning rate."""
        if not isinstance(scheduler, LRScheduler):
            raise ArgumentTypeError(message(f"set_lr_scheduler(): got a {type(scheduler).__name__}", "it takes an LRScheduler"))
        self._learning_rate = scheduler

    # ------------------------------------------------------------------ the step

    @no_grad()
    @spans.watched("Optimization", "Optimization Step")
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        params = self._parameter_list
        grads = self._clipped(params, [None if p.stop_gradient else p.grad for p in params])
        places = self._row_places(params, grads)
        settings = (places, *self._settings(params, grads))
        if settings != self._arranged_for:
            self._arrange(params, grads, places)
            self._arranged_for = settings
        self._update(self.get_lr(), grads)

    def _update(self, rate: float, grads: Sequence[Tensor | None]) -> None:
        """Update all buckets' parameters by their gradients, which stand in the order of all parameters."""
        operator = OPS[self._operator]
        for bucket in self._buckets:
            self._advance(bucket)
            rates = self._rates(bucket, rate * self._group_factor(bucket))
            for run in bucket.runs:
                if run.is_of_rows:
                    update_rows(operator, run, run.pick(grads)[0], rates)
                else:
                    self._apply(operator, run, run.pick(grads), rates, self._positions(bucket))
            self._finish(bucket)

    def _row_places(self, params: list[Tensor], grads: list[Tensor | None]) -> list[int]:
        """Where gradients hold only some rows of a table and the method updates those alone; others of that kind are made dense."""
        places = selected_places(grads)
        if places:
            owners = [group for group in self._param_groups for _ in group["params"]]
            for k in places:
                grad = grads[k]
                if grad is not None and not self._updates_rows_alone(params[k], owners[k]):
                    grads[k] = to_dense(grad)
            places = selected_places(grads)
        return places

    def _updates_rows_alone(self, param: Tensor, group: Mapping[str, Any]) -> bool:
        """Whether a row whose gradient is zero stays as it is, or is to be left so."""
        return False

    @staticmethod
    def _group_factor(bucket: Bucket) -> float:
        """The present factor on the learning rate, by the bucket's group and its parameters."""
        factor = bucket.group.get("learning_rate", 1.0)
        return bucket.factor * float(factor() if isinstance(factor, LRScheduler) else factor)

    def _clipped(self, params: list[Tensor], grads: list[Tensor | None]) -> list[Tensor | None]:
        """The gradients after clipping. Groups without a clip of their own are clipped together."""
        clips: dict[int, tuple[Any, list[int]]] = {}
        at = 0
        for group in self._param_groups:
            clip = group.get("grad_clip", self._grad_clip)
            places = range(at, at + len(group["params"]))
            at = places.stop
            if clip is not None:
                clips.setdefault(id(clip), (clip, []))[1].extend(k for k in places if grads[k] is not None)
        for clip, found in clips.values():
            if found:
                for k, (_, grad) in zip(found, clip([(params[k], grads[k]) for k in found]), strict=True):
                    grads[k] = grad
        return grads

    def _settings(self, params: list[Tensor], grads: list[Tensor | None]) -> tuple[Any, ...]:
        """What the arrangement into buckets depends on: while it stays equal, the buckets are used again."""
        return (
            [g is None for g in grads],
            [getattr(p, "optimize_attr", _PLAIN)["learning_rate"] for p in params],
            [getattr(p, "regularizer", None) for p in params],
            [g["weight_decay"] for g in self._param_groups],
            self._multi_precision,
        )

    def _arrange(self, params: list[Tensor], grads: list[Tensor | None], row_places: Sequence[int] = ()) -> None:
        """Put the parameters that have a gradient into buckets; those at ``row_places`` are updated by rows."""
        owners = [group for group in self._param_groups for _ in group["params"]]
        buckets: dict[Any, Bucket] = {}
        for k, (param, group, grad) in enumerate(zip(params, owners, grads, strict=True)):
            if grad is None:
                continue
            state = self._state_of(param, group)
            factor = self._rate_factor(param)
            l2, l1 = self._decay_of(param, group)
            options = self._options(param, group)
            key = (id(group), factor, l2, l1, options, tuple(state.numbers.values()))
            if key not in buckets:
                buckets[key] = Bucket(group, factor, l2, l1, options, dict(state.numbers))
            buckets[key].members.append((k, param, state))
        self._buckets = list(buckets.values())
        for bucket in self._buckets:
            bucket.arrange(self._operands, frozenset(row_places))

    def _decay_of(self, param: Tensor, group: Mapping[str, Any]) -> tuple[float, float]:
        """The L2 and L1 coefficients that are added to the gradient."""
        decay = getattr(param, "regularizer", None) or group["weight_decay"]
        if decay is None:
            return 0.0, 0.0
        if isinstance(decay, float):
            return decay, 0.0
        return (0.0, decay.coeff) if isinstance(decay, L1Decay) else (decay.coeff, 0.0)

    def _rate_factor(self, param: Tensor) -> float:
        """A factor on this parameter's learning rate."""
        return float(getattr(param, "optimize_attr", _PLAIN)["learning_rate"])

    def _options(self, param: Tensor, group: Mapping[str, Any]) -> tuple[Any, ...]:
        """What else a bucket's parameters share."""
        return ()

    def _option(self, group: Mapping[str, Any], name: str) -> Any:
        """An option of the method: the group's own, or that of the optimizer."""
        return group[name] if name in group else getattr(self, "_" + name)

    def _advance(self, bucket: Bucket) -> None:
        """Move the bucket's kept numbers on before a step."""

    def _rates(self, bucket: Bucket, rate: float) -> tuple[Any, ...]:
        """The operator's arguments after the masters; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} defines no _rates()")

    def _positions(self, bucket: Bucket) -> dict[str, Any]:
        """Places in states that this step is about, by name: integers, which ``_apply`` takes."""
        return {}

    def _apply(self, operator: Any, run: Run, grads: Sequence[Any], rates: Sequence[Any], positions: Mapping[str, Any]) -> None:
        """Update the run's parameters. While an update is recorded, all are Variables, the positions too."""
        operator(run.params, grads, *run.states, run.masters, *rates)

    def _finish(self, bucket: Bucket) -> None:
        """Move the bucket's kept numbers on after a step."""

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of all parameters: to zeros, or to None."""
        for p in self._parameter_list:
            if not p.stop_gradient:
                p.clear_gradient(set_to_zero)

    clear_gradients = clear_grad

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters: to None, or to zeros."""
        self.clear_grad(not set_to_none)

    def minimize(
        self, loss: Tensor, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None
    ) -> tuple[list[Any], list[tuple[Tensor, Tensor]]]:
        """One step, after backward from the loss when no parameter has a gradient yet.

        Args:
            loss: what to make small.
            startup_program: accepted for compatibility.
            parameters: the parameters to update; all by default.
            no_grad_set: parameters to leave as they are.

        Returns:
            The statements of the update in a static Program, else an empty list; and the (parameter, gradient) pairs.
        """
        if isinstance(loss, Variable):
            return minimize_recorded(self, loss, startup_program, parameters, no_grad_set)
        if not isinstance(loss, Tensor):
            raise ArgumentTypeError(message(f"minimize(): loss is a {type(loss).__name__}", "it must be a Tensor"))
        if all(p.grad is None for p in self._parameter_list):
            loss.backward()
        chosen = {id(p) for p in (self._parameter_list if parameters is None else parameters)}
        left_out = [p for p in self._parameter_list if id(p) not in chosen] + list(no_grad_set or ())
        frozen = [p for p in left_out if not p.stop_gradient]
        for p in frozen:
            p.stop_gradient = True
        try:
            pairs = self._pairs()
            self.step()
        finally:
            for p in frozen:
                p.stop_gradient = False
        return [], pairs

    def _pairs(self) -> list[tuple[Tensor, Tensor]]:
        return [(p, p.grad) for p in self._parameter_list if not p.stop_gradient and p.grad is not None]

    def backward(
        self, loss: Tensor, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None, callbacks: Any = None
    ) -> list[tuple[Any, Any]]:
        """Run backward from the loss; gives the (parameter, gradient) pairs."""
        if isinstance(loss, Variable):
            return append_backward(loss, parameters, no_grad_set)
        loss.backward()
        return self._pairs()

    def apply_gradients(self, params_grads: Sequence[tuple[Tensor, Tensor]]) -> list[Any]:
        """Take the gradients of these pairs and make one step; gives the statements of the update in a static Program."""
        if any(isinstance(grad, Variable) for _, grad in params_grads):
            return append_update(self, params_grads, default_startup_program())
        for param, grad in params_grads:
            param.grad = grad
        self.step()
        return []

    # ------------------------------------------------------------------ state

    def _state_of(self, param: Tensor, group: Mapping[str, Any]) -> State:
        found = self._states.get(id(param))
        if found is None or (found.master is None and self._wants_master(param)):
            found = self._states[id(param)] = self._new_state(param, group)
            self._load_into(param, found)
        return found

    def _wants_master(self, param: Tensor) -> bool:
        return self._multi_precision and dtypes.itemsize(param.dtype.name) == 2

    def _new_state(self, param: Tensor, group: Mapping[str, Any]) -> State:
        state = State()
        if self._wants_master(param):
            state.master = self._states_made_by.master(param, self._key(param, "fp32_master", is_master=False))
        dtype = "float32" if state.master is not None else param.dtype.name
        state.tensors = {key: self._initial(key, param, dtype) for key in self._state_starts}
        state.numbers = {key: self._first(number, group) for key, number in self._numbers.items()}
        return state

    def _first(self, number: Number, group: Mapping[str, Any]) -> float:
        return float(self._option(group, number.start)) if isinstance(number.start, str) else number.start

    def _initial(self, key: str, param: Tensor, dtype: str) -> Tensor:
        """The first value of a state."""
        return self._states_made_by.full(self._key(param, key), list(param.shape), self._state_starts[key], dtype)

    def _key(self, param: Tensor, state_name: str, is_master: bool | None = None) -> str:
        """The name of a state; of a parameter with a master weight it is called after that, in Paddle as here."""
        owner = param.name + ("_fp32_master_0" if (self._wants_master(param) if is_master is None else is_master) else "")
        return f"{owner}_{self._name + '_' if self._name else ''}{state_name}_0"

    def _given(self, param: Tensor, state_name: str, state_dict: Mapping[str, Any]) -> Any:
        """The state of a state dict, with or without a master weight there; None where there is none."""
        keys = (self._key(param, state_name, is_master) for is_master in (self._wants_master(param), False, True))
        return next((state_dict[k] for k in keys if k in state_dict), None)

    def state_dict(self) -> dict[str, Any]:
        """All states by Paddle's names, with ``LR_Scheduler`` and ``master_weights`` where there are such."""
        found: dict[str, Any] = {}
        with_state = [(p, self._states[id(p)]) for p in self._parameter_list if id(p) in self._states]
        for name in self._state_names():
            for p, state in with_state:
                if name in state.tensors:
                    found[self._key(p, name)] = state.tensors[name]
                else:
                    number = self._numbers[name]
                    shape = list(p.shape) if number.like_parameter else [1]
                    key = self._key(p, name)
                    found[key] = EagerStates.full(key, shape, state.numbers[name], number.dtype)
        masters = {p.name: s.master for p, s in with_state if s.master is not None}
        if masters:
            found["master_weights"] = masters
        if isinstance(self._learning_rate, LRScheduler):
            found["LR_Scheduler"] = self._learning_rate.state_dict()
        return found

    def _state_names(self) -> list[str]:
        """The names of all states, in the order of files."""
        return [*self._state_starts, *self._numbers]

    @no_grad()
    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take all states from a state dict; a parameter that was not updated yet takes its states at its first update.

        Raises:
            ArgumentTypeError: not a dict.
            ShapeError: a state does not fit its parameter.
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentTypeError(
                message(f"set_state_dict(): got a {type(state_dict).__name__}", "it takes what state_dict() gave")
            )
        given = dict(state_dict)
        schedule = given.pop("LR_Scheduler", None)
        if schedule is not None and isinstance(self._learning_rate, LRScheduler):
            self._learning_rate.set_state_dict(schedule)
        self._pending_state = given
        masters = given.get("master_weights", {})
        for group in self._param_groups:
            for param in group["params"]:
                if param.name in masters or any(self._given(param, name, given) is not None for name in self._state_names()):
                    self._load_into(param, self._state_of(param, group))
        self._arranged_for = None

    load_state_dict = set_dict = set_state_dict

    def _load_into(self, param: Tensor, state: State) -> None:
        given = self._pending_state
        for name, target in state.tensors.items():
            value = self._given(param, name, given)
            if value is not None:
                self._fill(self._key(param, name), target, value)
        state.numbers = dict(state.numbers)
        for name in state.numbers:
            value = self._given(param, name, given)
            if value is not None:
                state.numbers[name] = float(np.asarray(value).reshape(-1)[0])
        master = given.get("master_weights", {}).get(param.name)
        if master is not None and state.master is not None:
            self._fill(f"master_weights[{param.name!r}]", state.master, master)

    @staticmethod
    def _fill(key: str, target: Tensor, value: Any) -> None:
        if list(value.shape) != list(target.shape):
            raise ShapeError(
                message(
                    f"set_state_dict(): {key} has shape {list(value.shape)}",
                    f"its parameter needs {list(target.shape)}",
                    "the states are those of another model",
                )
            )
        target.set_value(value)


def _checked_rate(kind: str, rate: Any) -> Any:
    if isinstance(rate, LRScheduler):
        return rate
    if isinstance(rate, bool) or not isinstance(rate, (int, float, np.floating, Tensor)):
        raise ArgumentTypeError(
            message(f"{kind}(): the learning rate is a {type(rate).__name__}", "it must be a float or an LRScheduler")
        )
    if not math.isfinite(rate):
        raise ArgumentError(message(f"{kind}(): the learning rate is {float(rate)}", "it must be finite"))
    return float(rate)


def _checked_decay(kind: str, decay: Any) -> Any:
    if decay is None or isinstance(decay, WeightDecayRegularizer):
        return decay
    if isinstance(decay, bool) or not isinstance(decay, (int, float, np.floating, Tensor)):
        raise ArgumentTypeError(
            message(f"{kind}(): weight_decay is a {type(decay).__name__}", "it must be a float, L1Decay, L2Decay or None")
        )
    if not math.isfinite(decay):
        raise ArgumentError(message(f"{kind}(): weight_decay is {float(decay)}", "it must be finite"))
    return float(decay)


def require_rate(name: str, parameter: str, value: Any, valid: Callable[[float], bool], range_text: str) -> float:
    """A float option inside its range."""
    number = float(value)
    if not valid(number):
        raise ArgumentError(message(f"{name}(): {parameter}={value!r}", f"it must be {range_text}"))
    return number
