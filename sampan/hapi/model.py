"""``Model``: a network with its loss, optimizer and metrics, and the loops that train, evaluate and predict."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import amp
from ..base.errors import ArgumentError, ArgumentTypeError, SampanError, UnsupportedError, describe, message
from ..framework import load, save
from ..framework.arrays import is_tensor, to_array
from ..io import DataLoader, Dataset
from ..metric import Metric
from ..tensor import autograd, to_tensor
from .callbacks import CallbackList, with_defaults
from .mixed_precision import MixedPrecision
from .summary import summary


class NotPreparedError(SampanError, RuntimeError):
    """A loop was started without what it needs from ``prepare``."""


class Model:
    """A network that can be trained, evaluated and used with one call each.

    Args:
        network: the network, a ``Layer``.
        inputs: what its inputs look like (``InputSpec`` or a list of them); their number says how many of a sample's fields are
            inputs. Without it that is the number of ``forward``'s arguments.
        labels: what its labels look like.

    Raises:
        ArgumentTypeError: ``network`` is no ``Layer``.

    Example:
        >>> import sampan as paddle
        >>> from sampan.hapi import Model
        >>> model = Model(paddle.nn.Linear(4, 2))  # doctest: +SKIP
        >>> model.prepare(paddle.optimizer.Adam(parameters=model.parameters()), paddle.nn.CrossEntropyLoss())  # doctest: +SKIP
        >>> model.fit(train_data, batch_size=32, epochs=2)  # doctest: +SKIP
    """

    def __init__(self, network: Any, inputs: Any = None, labels: Any = None) -> None:
        if not callable(getattr(network, "sublayers", None)) or not callable(getattr(network, "forward", None)):
            raise ArgumentTypeError(message(f"Model: network is {describe(network)}", "it must be a Layer"))
        self.network = network
        self.mode = "train"
        self.stop_training = False
        self._inputs = _listed(inputs)
        self._labels = _listed(labels)
        self._optimizer: Any = None
        self._loss: Any = None
        self._metrics: list[Metric] = []
        self._mixed = MixedPrecision.of(None)

    def prepare(self, optimizer: Any = None, loss: Any = None, metrics: Any = None, amp_configs: Any = None) -> None:
        """Set what the loops need.

        Args:
            optimizer: for training.
            loss: a layer or function of (outputs..., labels...).
            metrics: a ``Metric`` or a list of them.
            amp_configs: mixed precision: a level ("O0", "O1", "O2"), or a dict of ``level`` and of ``auto_cast``'s and ``GradScaler``'s arguments.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            ArgumentError: ``amp_configs`` holds an unknown key or level.
        """
        if optimizer is not None and not callable(getattr(optimizer, "step", None)):
            raise ArgumentTypeError(message(f"Model.prepare(): optimizer is {describe(optimizer)}", "it must be an Optimizer"))
        if loss is not None and not callable(loss):
            raise ArgumentTypeError(message(f"Model.prepare(): loss is {describe(loss)}", "it must be a layer or a function"))
        for metric in _listed(metrics):
            if not isinstance(metric, Metric):
                raise ArgumentTypeError(message(f"Model.prepare(): metrics holds {describe(metric)}", "each must be a Metric"))
        self._mixed = MixedPrecision.of(amp_configs)
        if self._mixed.level == "O2":
            amp.decorate(self.network, optimizer, "O2", self._mixed.dtype)
        self._optimizer = optimizer
        self._loss = loss
        self._metrics = _listed(metrics)

    def parameters(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The network's parameters."""
        return self.network.parameters(*args, **kwargs)  # type: ignore[no-any-return]

    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> Any:
        """One step of training.

        Args:
            inputs: a tensor or array, or a list of them.
            labels: the same, for the loss.
            update: also let the optimizer step; otherwise gradients only add up.

        Returns:
            The list of losses, as arrays; with metrics, (losses, the metrics' values for this batch).

        Raises:
            NotPreparedError: there is no optimizer or no loss.
        """
        self._need("train_batch", self._optimizer, "an optimizer")
        self._need("train_batch", self._loss, "a loss")
        self.network.train()
        self.mode = "train"
        targets = _tensors(labels)
        with self._mixed.cast():
            outputs = _listed(self.network(*_tensors(inputs)))
            losses = _listed(self._loss(*outputs, *targets))
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        scaler = self._mixed.scaler
        scaler.scale(total).backward()
        if update:
            scaler.step(self._optimizer)
            scaler.update()
            self._optimizer.clear_grad()
        return self._report(losses, self._measure(outputs, targets))

    def eval_batch(self, inputs: Any, labels: Any = None) -> Any:
        """The losses (and metrics) of one batch; nothing is learned.

        Args:
            inputs: a tensor or array, or a list of them.
            labels: the same, for the loss and the metrics.

        Returns:
            The list of losses, as arrays; with metrics, (losses, the metrics' values for this batch).
        """
        self.network.eval()
        self.mode = "eval"
        targets = _tensors(labels)
        with autograd.no_grad(), self._mixed.cast():
            outputs = _listed(self.network(*_tensors(inputs)))
            losses = _listed(self._loss(*outputs, *targets)) if self._loss is not None else []
            measured = self._measure(outputs, targets)
        return self._report(losses, measured)

    def predict_batch(self, inputs: Any) -> list[np.ndarray]:
        """The network's outputs for one batch, as arrays.

        Args:
            inputs: a tensor or array, or a list of them.
        """
        self.network.eval()
        self.mode = "test"
        with autograd.no_grad():
            outputs = _listed(self.network(*_tensors(inputs)))
        return [np.array(to_array(output)) for output in outputs]

    def fit(
        self,
        train_data: Any = None,
        eval_data: Any = None,
        batch_size: int | Sequence[int] = 1,
        epochs: int = 1,
        eval_freq: int = 1,
        log_freq: int = 10,
        save_dir: str | None = None,
        save_freq: int = 1,
        verbose: int = 2,
        drop_last: bool = False,
        shuffle: bool = True,
        num_workers: int = 0,
        callbacks: Any = None,
        accumulate_grad_batches: int = 1,
        num_iters: int | None = None,
    ) -> None:
        """Train.

        Args:
            train_data: a ``Dataset``, or a ``DataLoader`` or other iterable of batches.
            eval_data: the same, to be evaluated every ``eval_freq`` epochs.
            batch_size: samples of a batch, when a Dataset is given; or those of training and of evaluation.
            epochs: how often to go through the data.
            eval_freq: evaluate every how many epochs.
            log_freq: show the progress every how many steps.
            save_dir: the folder for checkpoints.
            save_freq: save every how many epochs.
            verbose: 0 shows nothing, 1 a live bar, 2 lines.
            drop_last: leave out a last batch that is not full.
            shuffle: take the samples in random order.
            num_workers: processes that make batches.
            callbacks: a ``Callback`` or a list of them.
            accumulate_grad_batches: let the optimizer step only every how many batches.
            num_iters: stop after this many batches, counted over all epochs.

        Raises:
            NotPreparedError: there is no optimizer or no loss.
            ArgumentError: there is no data.
        """
        self._need("fit", self._optimizer, "an optimizer")
        self._need("fit", self._loss, "a loss")
        if train_data is None:
            raise ArgumentError(message("Model.fit(): no train_data", "there is nothing to learn from"))
        sizes = [batch_size, batch_size] if isinstance(batch_size, int) else list(batch_size)
        batches = _loader(train_data, sizes[0], shuffle, drop_last, num_workers)
        tests = None if eval_data is None else _loader(eval_data, sizes[1], False, False, num_workers)
        steps = _length(batches)
        if num_iters is not None and steps:
            epochs = -(-num_iters // steps)
        shown = min(steps, num_iters) if steps and num_iters is not None else steps
        params = {"batch_size": sizes[0], "epochs": epochs, "steps": shown, "verbose": verbose, "metrics": self._metric_names()}
        calls = CallbackList(with_defaults(callbacks, log_freq, verbose, save_freq, save_dir), self, params)
        self.stop_training = False
        left = [num_iters]
        logs: dict[str, Any] = {}
        calls.on_train_begin()
        for epoch in range(epochs):
            calls.on_epoch_begin(epoch)
            logs = self._run("train", batches, calls, steps, left, max(1, accumulate_grad_batches))
            calls.on_epoch_end(epoch, logs)
            if tests is not None and epoch % eval_freq == 0:
                logs = self._evaluate(tests, calls)
            if self.stop_training or left[0] == 0:
                break
        calls.on_train_end(logs)

    def evaluate(
        self,
        eval_data: Any,
        batch_size: int = 1,
        log_freq: int = 10,
        verbose: int = 2,
        num_workers: int = 0,
        callbacks: Any = None,
        num_iters: int | None = None,
    ) -> dict[str, Any]:
        """The loss of the last batch and the metrics over all data.

        Args:
            eval_data: a ``Dataset``, or a ``DataLoader`` or other iterable of batches.
            batch_size: samples of a batch, when a Dataset is given.
            log_freq: show the progress every how many steps.
            verbose: 0 shows nothing, 1 a live bar, 2 lines.
            num_workers: processes that make batches.
            callbacks: a ``Callback`` or a list of them.
            num_iters: stop after this many batches.

        Returns:
            ``loss`` (a list) and each metric by its name.
        """
        batches = _loader(eval_data, batch_size, False, False, num_workers)
        calls = self._calls(callbacks, log_freq, verbose, batch_size, _length(batches))
        logs = self._evaluate(batches, calls, num_iters)
        return {name: value for name, value in logs.items() if name not in ("step", "batch_size")}

    def predict(
        self,
        test_data: Any,
        batch_size: int = 1,
        num_workers: int = 0,
        stack_outputs: bool = False,
        verbose: int = 1,
        callbacks: Any = None,
    ) -> list[Any]:
        """The network's outputs for all data.

        Args:
            test_data: a ``Dataset``, or a ``DataLoader`` or other iterable of batches; labels in it are left out.
            batch_size: samples of a batch, when a Dataset is given.
            num_workers: processes that make batches.
            stack_outputs: join each output's batches to one array.
            verbose: 0 shows nothing, 1 a live bar, 2 lines.
            callbacks: a ``Callback`` or a list of them.

        Returns:
            For each output of the network, the list of its batches as arrays, or one array.
        """
        batches = _loader(test_data, batch_size, False, False, num_workers)
        steps = _length(batches)
        calls = self._calls(callbacks, 1, verbose, batch_size, steps)
        calls.on_predict_begin({"steps": steps})
        logs: dict[str, Any] = {}
        collected: list[list[np.ndarray]] = []
        for step, batch in enumerate(batches):
            calls.on_predict_batch_begin(step, logs)
            inputs, _ = self._split(batch)
            outputs = self.predict_batch(inputs)
            collected = collected or [[] for _ in outputs]
            for kept, output in zip(collected, outputs, strict=True):
                kept.append(output)
            logs = {"step": step, "batch_size": _batch_size(inputs)}
            calls.on_predict_batch_end(step, logs)
        calls.on_predict_end(logs)
        return [np.concatenate(kept) for kept in collected] if stack_outputs else collected

    def save(self, path: str, training: bool = True) -> None:
        """Write the network's state to ``path.pdparams`` and the optimizer's to ``path.pdopt``.

        Args:
            path: the files' common beginning.
            training: False asks for a program for inference, which ``jit.save`` writes.

        Raises:
            ArgumentError: ``path`` names no file.
            UnsupportedError: ``training`` is False.
        """
        if not os.path.basename(path):
            raise ArgumentError(
                message(
                    f"Model.save(): path is {path!r}", "it must name a file without its ending", "for example 'checkpoints/last'"
                )
            )
        if not training:
            raise UnsupportedError(
                message(
                    "Model.save(training=False)",
                    "a network without its code is a Program",
                    "use jit.save(model.network, path, ...)",
                )
            )
        save(self.network.state_dict(), path + ".pdparams")
        state = self._optimizer.state_dict() if self._optimizer is not None else None
        if state:
            save(state, path + ".pdopt")

    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Read what ``save`` wrote (or Paddle's ``Model.save``), and go on from there.

        Args:
            path: the files' common beginning.
            skip_mismatch: leave out parameters whose shapes differ, and say which; otherwise that is an error.
            reset_optimizer: do not read the optimizer's state.

        Raises:
            MissingFileError: there is no ``path.pdparams``.
            ArgumentError: a parameter is missing or has another shape.
        """
        base = path.removesuffix(".pdparams")
        state = load(base + ".pdparams")
        own = self.network.state_dict()
        missing = [name for name in own if name not in state]
        different = [n for n in own if n in state and tuple(own[n].shape) != tuple(state[n].shape)]
        if (missing or different) and not skip_mismatch:
            shapes = ", ".join(f"{n}: {list(own[n].shape)} here, {list(state[n].shape)} there" for n in different)
            raise ArgumentError(
                message(
                    f"Model.load({path!r}): the network does not fit the file",
                    "; ".join(filter(None, [f"missing: {', '.join(missing)}" if missing else "", shapes])),
                    "build the same network, or pass skip_mismatch=True",
                )
            )
        for name in different:
            print(f"Model.load: {name} is left as it is: {list(own[name].shape)} here, {list(state[name].shape)} there")
            del state[name]
        self.network.set_state_dict(state)
        if self._optimizer is not None and not reset_optimizer and os.path.exists(base + ".pdopt"):
            self._optimizer.set_state_dict(load(base + ".pdopt"))

    def summary(self, input_size: Any = None, dtype: Any = None) -> dict[str, int]:
        """Print a table of the network's layers.

        Args:
            input_size: the input's shape; what ``inputs`` says when it is None.
            dtype: the input's type.

        Returns:
            ``total_params`` and ``trainable_params``.
        """
        return summary(self.network, self._inputs if input_size is None and self._inputs else input_size, dtype)

    def _evaluate(self, batches: Any, calls: CallbackList, num_iters: int | None = None) -> dict[str, Any]:
        steps = _length(batches)
        calls.on_eval_begin({"steps": steps, "metrics": self._metric_names()})
        logs = self._run("eval", batches, calls, steps, [num_iters], 1)
        calls.on_eval_end(logs)
        return logs

    def _run(
        self, mode: str, batches: Any, calls: CallbackList, steps: int | None, left: list[int | None], every: int
    ) -> dict[str, Any]:
        """One pass over the data; ``left`` holds how many batches may still be taken."""
        for metric in self._metrics:
            metric.reset()
        logs: dict[str, Any] = {}
        for step, batch in enumerate(batches):
            if left[0] == 0:
                break
            getattr(calls, f"on_{mode}_batch_begin")(step, logs)
            inputs, labels = self._split(batch)
            is_last = step + 1 == steps or left[0] == 1
            result = (
                self.train_batch(inputs, labels, (step + 1) % every == 0 or is_last)
                if mode == "train"
                else self.eval_batch(inputs, labels)
            )
            losses = result[0] if self._metrics and self._loss is not None else result if self._loss is not None else []
            logs = {"loss": [float(loss) for loss in losses]} if losses else {}
            for metric in self._metrics:
                logs.update(zip(_listed(metric.name()), _listed(metric.accumulate()), strict=True))
            logs |= {"step": step, "batch_size": _batch_size(inputs)}
            if left[0] is not None:
                left[0] -= 1
            getattr(calls, f"on_{mode}_batch_end")(step, logs)
            if mode == "train" and self.stop_training:
                break
        return logs

    def _split(self, batch: Any) -> tuple[list[Any], list[Any]]:
        """The inputs and the labels of a batch."""
        if isinstance(batch, Mapping):
            batch = list(batch.values())
        fields = list(batch) if isinstance(batch, (list, tuple)) else [batch]
        count = len(self._inputs) or self._forward_arguments(len(fields))
        return fields[:count], fields[count:]

    def _forward_arguments(self, available: int) -> int:
        parameters = inspect.signature(self.network.forward).parameters.values()
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return max(1, available - (1 if self._loss is not None else 0))
        return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters) or 1

    def _measure(self, outputs: list[Any], labels: list[Any]) -> list[Any]:
        return [
            metric.update(*(to_array(v) if is_tensor(v) else v for v in _listed(metric.compute(*outputs, *labels))))
            for metric in self._metrics
        ]

    def _report(self, losses: list[Any], measured: list[Any]) -> Any:
        arrays = [np.array(to_array(loss)) for loss in losses]
        if not self._metrics:
            return arrays
        return (arrays, measured) if self._loss is not None else measured

    def _metric_names(self) -> list[str]:
        return (["loss"] if self._loss is not None else []) + [
            name for metric in self._metrics for name in _listed(metric.name())
        ]

    def _calls(self, callbacks: Any, log_freq: int, verbose: int, batch_size: int, steps: int | None) -> CallbackList:
        params = {"batch_size": batch_size, "epochs": None, "steps": steps, "verbose": verbose, "metrics": self._metric_names()}
        return CallbackList(with_defaults(callbacks, log_freq, verbose), self, params)

    def _need(self, method: str, value: Any, what: str) -> None:
        if value is None:
            raise NotPreparedError(
                message(f"Model.{method}(): there is no {what.split()[-1]}", "", f"call model.prepare() with {what} first")
            )


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _tensors(values: Any) -> list[Any]:
    return [value if is_tensor(value) else to_tensor(value) for value in _listed(values)]


def _batch_size(inputs: list[Any]) -> int:
    return int(inputs[0].shape[0]) if inputs and len(getattr(inputs[0], "shape", ())) else 1


def _loader(data: Any, batch_size: int, shuffle: bool, drop_last: bool, num_workers: int) -> Any:
    if isinstance(data, Dataset):
        return DataLoader(data, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last, num_workers=num_workers)
    if not isinstance(data, Iterable):
        raise ArgumentTypeError(
            message(f"the data is {describe(data)}", "it must be a Dataset, a DataLoader or an iterable of batches")
        )
    return data


def _length(batches: Any) -> int | None:
    try:
        return len(batches)
    except TypeError:
        return None
