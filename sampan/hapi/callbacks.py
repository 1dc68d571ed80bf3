"""Callbacks: what happens at the beginnings and ends of ``Model``'s loops."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, UnsupportedError, describe, message
from ..optimizer.lr import LRScheduler as Schedule
from ..optimizer.lr import ReduceOnPlateau
from ..tensor.explained import Explained
from .event_file import EventFile
from .progress import Progress


class Callback(Explained):
    """The base of callbacks: define the methods that are of interest.

    ``self.model`` is the ``Model``, ``self.params`` a dict with ``batch_size``, ``epochs``, ``steps``, ``verbose`` and
    ``metrics``. ``logs`` holds the loss, the metrics, the step and the batch's size.

    Example:
        >>> from sampan.callbacks import Callback
        >>> class Note(Callback):
        ...     def on_epoch_end(self, epoch, logs=None):
        ...         print(epoch, logs["loss"])
    """

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        """Take over the loop's parameters."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Take over the model."""
        self.model = model

    def on_train_begin(self, logs: Any = None) -> None:
        """Before training."""

    def on_train_end(self, logs: Any = None) -> None:
        """After training."""

    def on_eval_begin(self, logs: Any = None) -> None:
        """Before an evaluation; ``logs`` holds ``steps`` and ``metrics``."""

    def on_eval_end(self, logs: Any = None) -> None:
        """After an evaluation."""

    def on_predict_begin(self, logs: Any = None) -> None:
        """Before a prediction."""

    def on_predict_end(self, logs: Any = None) -> None:
        """After a prediction."""

    def on_epoch_begin(self, epoch: int | None = None, logs: Any = None) -> None:
        """Before an epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """After an epoch's training, before its evaluation."""

    def on_train_batch_begin(self, step: int, logs: Any = None) -> None:
        """Before a batch of training."""

    def on_train_batch_end(self, step: int, logs: Any = None) -> None:
        """After a batch of training."""

    def on_eval_batch_begin(self, step: int, logs: Any = None) -> None:
        """Before a batch of evaluation."""

    def on_eval_batch_end(self, step: int, logs: Any = None) -> None:
        """After a batch of evaluation."""

    def on_predict_batch_begin(self, step: int, logs: Any = None) -> None:
        """Before a batch of prediction."""

    def on_predict_batch_end(self, step: int, logs: Any = None) -> None:
        """After a batch of prediction."""


class CallbackList:
    """Callbacks that are called in order, through methods of the same names."""

    def __init__(self, callbacks: Iterable[Callback], model: Any, params: dict[str, Any]) -> None:
        self.callbacks = list(callbacks)
        for callback in self.callbacks:
            callback.set_model(model)
            callback.set_params(params)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda *args: [getattr(callback, name)(*args) for callback in self.callbacks][:0]


class ProgBarLogger(Callback):
    """Shows the progress with loss, metrics, samples a second and the time left.

    Args:
        log_freq: every how many steps.
        verbose: 0 shows nothing, 1 a live bar (plain lines where the output is no terminal), 2 a line every ``log_freq`` steps.

    Example:
        >>> from sampan.callbacks import ProgBarLogger
        >>> bar = ProgBarLogger(log_freq=10, verbose=2)
    """

    def __init__(self, log_freq: int = 1, verbose: int = 2) -> None:
        super().__init__()
        self.log_freq = log_freq
        self.verbose = verbose
        self._progress = Progress(None, is_live=False)
        self._is_training = False

    def _begin(self, steps: int | None) -> None:
        self._progress = Progress(steps, is_live=self.verbose == 1)
        self._step = 0
        self._last: Mapping[str, Any] = {}

    def _batch(self, step: int, logs: Mapping[str, Any] | None) -> None:
        if not self.verbose:
            return
        self._step, self._last = step + 1, logs or {}
        self._progress.samples += int(self._last.get("batch_size") or 0)
        if self._step % self.log_freq == 0 and self._step != self._progress.steps:
            self._progress.show(self._step, self._values())

    def _values(self) -> dict[str, Any]:
        return {k: v for k, v in self._last.items() if k not in ("step", "batch_size")}

    def _end(self) -> None:
        if self.verbose and self._step:
            self._progress.show(self._step, self._values(), is_last=True)

    def _say(self, text: str) -> None:
        if self.verbose:
            print(text, flush=True)

    def on_train_begin(self, logs: Any = None) -> None:
        """Say what the numbers mean."""
        self._say("The loss is that of the last step; the metrics are means over the epoch so far.")

    def on_epoch_begin(self, epoch: int | None = None, logs: Any = None) -> None:
        """Begin the epoch's bar."""
        number, epochs = (epoch or 0) + 1, self.params.get("epochs")
        self._say(f"Epoch {number}/{epochs}" if epochs else f"Epoch {number}")
        self._begin(self.params.get("steps"))

    def on_train_batch_end(self, step: int, logs: Any = None) -> None:
        """Move the bar."""
        self._batch(step, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Close the epoch's bar."""
        self._end()

    def on_eval_begin(self, logs: Any = None) -> None:
        """Begin the evaluation's bar."""
        self._say("Eval begin...")
        self._begin((logs or {}).get("steps"))

    def on_eval_batch_end(self, step: int, logs: Any = None) -> None:
        """Move the bar."""
        self._batch(step, logs)

    def on_eval_end(self, logs: Any = None) -> None:
        """Close the evaluation's bar."""
        self._end()
        self._say(f"Eval samples: {self._progress.samples}")

    def on_predict_begin(self, logs: Any = None) -> None:
        """Begin the prediction's bar."""
        self._say("Predict begin...")
        self._begin((logs or {}).get("steps"))

    def on_predict_batch_end(self, step: int, logs: Any = None) -> None:
        """Move the bar."""
        self._batch(step, {k: v for k, v in (logs or {}).items() if k == "batch_size"})

    def on_predict_end(self, logs: Any = None) -> None:
        """Close the prediction's bar."""
        self._end()
        self._say(f"Predict samples: {self._progress.samples}")


class ModelCheckpoint(Callback):
    """Saves the model every ``save_freq`` epochs as ``save_dir/<epoch>``, and at the end as ``save_dir/final``.

    Args:
        save_freq: every how many epochs.
        save_dir: the folder; nothing is saved when it is None.

    Example:
        >>> from sampan.callbacks import ModelCheckpoint
        >>> checkpoint = ModelCheckpoint(save_freq=1, save_dir="checkpoints")
    """

    def __init__(self, save_freq: int = 1, save_dir: str | None = None) -> None:
        super().__init__()
        self.save_freq = save_freq
        self.save_dir = save_dir

    def on_epoch_begin(self, epoch: int | None = None, logs: Any = None) -> None:
        """Remember the epoch."""
        self.epoch = epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Save, when it is this epoch's turn."""
        if self.save_dir and epoch % self.save_freq == 0:
            self._save(str(epoch))

    def on_train_end(self, logs: Any = None) -> None:
        """Save the final state."""
        if self.save_dir:
            self._save("final")

    def _save(self, name: str) -> None:
        path = os.path.join(os.path.abspath(self.save_dir or "."), name)
        print(f"save checkpoint at {path}", flush=True)
        self.model.save(path)


class LRScheduler(Callback):
    """Steps the optimizer's learning-rate schedule.

    Args:
        by_step: after every batch.
        by_epoch: after every epoch.

    Raises:
        ArgumentError: both are set.

    Example:
        >>> from sampan.callbacks import LRScheduler
        >>> per_epoch = LRScheduler(by_step=False, by_epoch=True)
    """

    def __init__(self, by_step: bool = True, by_epoch: bool = False) -> None:
        super().__init__()
        if by_step and by_epoch:
            raise ArgumentError(
                message("LRScheduler: by_step and by_epoch are both True", "the schedule would step twice", "set one of them")
            )
        self.by_step = by_step
        self.by_epoch = by_epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Step after an epoch."""
        if self.by_epoch:
            self._step()

    def on_train_batch_end(self, step: int, logs: Any = None) -> None:
        """Step after a batch."""
        if self.by_step:
            self._step()

    def _step(self) -> None:
        rate = getattr(self.model._optimizer, "_learning_rate", None)
        if isinstance(rate, Schedule) and not isinstance(rate, ReduceOnPlateau):
            rate.step()


class _Monitor(Callback):
    """Watches a value of the evaluation for improvement."""

    def __init__(self, monitor: str, mode: str, patience: int, verbose: int, min_delta: float) -> None:
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise ArgumentError(message(f"{type(self).__name__}: mode is {mode!r}", "it must be 'auto', 'min' or 'max'"))
        self.monitor = monitor
        self.patience = patience
        self.verbose = verbose
        self.min_delta = abs(min_delta)
        self.is_smaller_better = mode == "min" or (mode == "auto" and "acc" not in monitor)
        self._restart(None)

    def _restart(self, baseline: float | None) -> None:
        self.wait = 0
        self.best_value = (math.inf if self.is_smaller_better else -math.inf) if baseline is None else baseline

    def _value(self, logs: Any) -> float | None:
        if not logs or self.monitor not in logs:
            known = ", ".join(k for k in logs or {} if k not in ("step", "batch_size"))
            print(
                f"{type(self).__name__}: the evaluation has no {self.monitor!r} to watch; it has: {known or 'nothing'}",
                file=sys.stderr,
                flush=True,
            )
            return None
        return float(np.asarray(logs[self.monitor]).reshape(-1)[0])

    def _is_better(self, value: float) -> bool:
        return value < self.best_value - self.min_delta if self.is_smaller_better else value > self.best_value + self.min_delta


class EarlyStopping(_Monitor):
    """Ends the training when a value of the evaluation has not become better.

    Args:
        monitor: the value's name, as in the evaluation's logs.
        mode: ``'min'`` or ``'max'``; ``'auto'`` takes max for accuracies.
        patience: how many evaluations without improvement are let pass.
        verbose: say when the training is ended.
        min_delta: how much better a value must be to count.
        baseline: a value that the first evaluation must be better than.
        save_best_model: save the best model as ``best_model`` in ``fit``'s ``save_dir``.

    Example:
        >>> from sampan.callbacks import EarlyStopping
        >>> stopping = EarlyStopping("loss", patience=2, min_delta=1e-3)
    """

    def __init__(
        self,
        monitor: str = "loss",
        mode: str = "auto",
        patience: int = 0,
        verbose: int = 1,
        min_delta: float = 0,
        baseline: float | None = None,
        save_best_model: bool = True,
    ) -> None:
        super().__init__(monitor, mode, patience, verbose, min_delta)
        self.baseline = baseline
        self.save_best_model = save_best_model
        self.save_dir: str | None = None
        self.stopped_epoch = 0

    def on_train_begin(self, logs: Any = None) -> None:
        """Forget what was seen."""
        self._restart(self.baseline)
        self._evaluations = 0

    def on_eval_end(self, logs: Any = None) -> None:
        """Look at the evaluation's value."""
        value = self._value(logs)
        if value is None:
            return
        self._evaluations += 1
        if self._is_better(value):
            self.best_value, self.wait = value, 0
            if self.save_best_model and self.save_dir:
                self.model.save(os.path.join(self.save_dir, "best_model"))
            return
        self.wait += 1
        if self.wait > self.patience:
            self.model.stop_training = True
            self.stopped_epoch = self._evaluations
            if self.verbose:
                print(
                    f"Epoch {self.stopped_epoch}: early stopping; the best {self.monitor} was {self.best_value:.5f}.", flush=True
                )


class ReduceLROnPlateau(_Monitor):
    """Multiplies the learning rate when a value of the evaluation has not become better.

    Args:
        monitor: the value's name, as in the evaluation's logs.
        factor: what the rate is multiplied by; less than 1.
        patience: how many evaluations without improvement are let pass.
        verbose: say when the rate changes.
        mode: ``'min'`` or ``'max'``; ``'auto'`` takes max for accuracies.
        min_delta: how much better a value must be to count.
        cooldown: evaluations after a change in which nothing is counted.
        min_lr: the lowest rate.

    Raises:
        ArgumentError: ``factor`` is not less than 1.

    Example:
        >>> from sampan.callbacks import ReduceLROnPlateau
        >>> reducing = ReduceLROnPlateau("loss", factor=0.5, patience=3)
    """

    def __init__(
        self,
        monitor: str = "loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 1,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        super().__init__(monitor, mode, patience, verbose, min_delta)
        if factor >= 1.0:
            raise ArgumentError(message(f"ReduceLROnPlateau: factor is {factor}", "it must be less than 1"))
        self.factor = factor
        self.cooldown = cooldown
        self.min_lr = min_lr
        self.cooldown_counter = 0

    def on_train_begin(self, logs: Any = None) -> None:
        """Forget what was seen."""
        self._restart(None)
        self.cooldown_counter = 0

    def in_cooldown(self) -> bool:
        """Whether a change was made so lately that nothing is counted."""
        return self.cooldown_counter > 0

    def on_eval_end(self, logs: Any = None) -> None:
        """Look at the evaluation's value."""
        value = self._value(logs)
        optimizer = self.model._optimizer
        if value is None or optimizer is None:
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self._is_better(value):
            self.best_value, self.wait = value, 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(optimizer)

    def _reduce(self, optimizer: Any) -> None:
        rate = float(optimizer.get_lr())
        if rate <= self.min_lr:
            return
        optimizer.set_lr(max(rate * self.factor, self.min_lr))
        self.cooldown_counter, self.wait = self.cooldown, 0
        if self.verbose:
            print(f"The learning rate goes from {rate:g} to {float(optimizer.get_lr()):g}.", flush=True)


class VisualDL(Callback):
    """Writes the losses and metrics of training and evaluation as TensorBoard event files.

    Args:
        log_dir: the folder to point TensorBoard at.

    Example:
        >>> from sampan.callbacks import VisualDL
        >>> curves = VisualDL(log_dir="runs/first")
    """

    def __init__(self, log_dir: str) -> None:
        super().__init__()
        self.log_dir = log_dir
        self.epoch = 0
        self._events: EventFile | None = None

    def _write(self, group: str, logs: Mapping[str, Any], step: int) -> None:
        if self._events is None:
            self._events = EventFile(self.log_dir)
        for name, value in logs.items():
            if name not in ("step", "batch_size"):
                self._events.add_scalar(f"{group}/{name}", float(np.asarray(value).reshape(-1)[0]), step)

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin to count steps."""
        self._train_step = 0

    def on_epoch_begin(self, epoch: int | None = None, logs: Any = None) -> None:
        """Remember the epoch."""
        self.epoch = epoch or 0

    def on_train_batch_end(self, step: int, logs: Any = None) -> None:
        """Write the batch's loss and metrics."""
        self._train_step += 1
        self._write("train", logs or {}, self._train_step)

    def on_eval_end(self, logs: Any = None) -> None:
        """Write the evaluation's loss and metrics."""
        self._write("eval", logs or {}, self.epoch + 1)

    def on_train_end(self, logs: Any = None) -> None:
        """Close the file."""
        if self._events is not None:
            self._events.close()
            self._events = None


class WandbCallback(Callback):
    """Refused here: it needs the service wandb.ai; ``VisualDL`` writes files that wandb can read (``sync_tensorboard=True``)."""

    #: wandb's object for the run, of which there is none.
    run = None

    def __init__(
        self,
        project: str | None = None,
        entity: str | None = None,
        name: str | None = None,
        dir: str | None = None,
        mode: str | None = None,
        job_type: str | None = None,
        **kwargs: Any,
    ) -> None:
        raise UnsupportedError(
            message(
                "WandbCallback",
                "it sends data to the service wandb.ai",
                "use VisualDL(log_dir), with wandb.init(sync_tensorboard=True)",
            )
        )


def with_defaults(callbacks: Any, log_freq: int, verbose: int, save_freq: int = 1, save_dir: str | None = None) -> list[Callback]:
    """The given callbacks and those that every loop has, each only where none of its kind was given."""
    given = [callbacks] if isinstance(callbacks, Callback) else list(callbacks or [])
    for callback in given:
        if not isinstance(callback, Callback):
            raise ArgumentTypeError(message(f"callbacks holds {describe(callback)}", "each must be a Callback"))
        if isinstance(callback, EarlyStopping):
            callback.save_dir = save_dir
    found: list[Callback] = (
        [] if any(isinstance(c, ProgBarLogger) for c in given) or not verbose else [ProgBarLogger(log_freq, verbose)]
    )
    if not any(isinstance(c, LRScheduler) for c in given):
        found.append(LRScheduler())
    if save_dir and not any(isinstance(c, ModelCheckpoint) for c in given):
        found.append(ModelCheckpoint(save_freq, save_dir))
    return found + given
