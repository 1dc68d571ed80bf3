"""Finding where numbers go wrong: checks for NaN and infinity, and which operators ran in which precision."""

from __future__ import annotations

import contextlib
import functools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, NumericsError, message
from ..nn import Layer
from ..tensor import Tensor, to_tensor
from ..tensor.dispatch import set_watch
from ..tensor.numerics import Counts, counted, is_inexact, not_finite_error
from ..tensor.watching import Watch, register
from .accuracy import compare_accuracy
from .lists import resolved

__all__ = [
    "DebugMode",
    "TensorCheckerConfig",
    "check_layer_numerics",
    "check_numerics",
    "collect_operator_stats",
    "compare_accuracy",
    "disable_operator_stats_collection",
    "disable_tensor_checker",
    "enable_operator_stats_collection",
    "enable_tensor_checker",
]

_SHORT_NAMES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}


class DebugMode(Enum):
    """What a check does.

    CHECK_NAN_INF_AND_ABORT prints a line about a result that is not finite and raises; CHECK_NAN_INF prints only. CHECK_ALL_FOR_OVERFLOW prints a line
    about every float32 result that float16 cannot hold; CHECK_ALL about every result.
    """

    CHECK_NAN_INF_AND_ABORT = 0
    CHECK_NAN_INF = 1
    CHECK_ALL_FOR_OVERFLOW = 2
    CHECK_ALL = 3


def _line(operator: str, name: str, dtype: str, counts: Counts) -> str:
    kind = "" if counts.is_finite else " [ERROR]"
    return (
        f"[PRECISION]{kind} in [device=cpu, op={operator}, tensor={name}, dtype={_SHORT_NAMES.get(dtype, dtype)}], numel={counts.numel}, "
        f"num_nan={counts.num_nan}, num_inf={counts.num_inf}, num_zero={counts.num_zero}, max={counts.max:.6e}, min={counts.min:.6e}, "
        f"mean={counts.mean:.6e}"
    )


def _is_reported(mode: DebugMode, array: Any, counts: Counts) -> bool:
    if mode is DebugMode.CHECK_ALL:
        return True
    if mode is DebugMode.CHECK_ALL_FOR_OVERFLOW:
        return bool(array.dtype == np.float32 and max(abs(counts.max), abs(counts.min)) > np.finfo(np.float16).max)
    return not counts.is_finite


def check_numerics(
    tensor: Tensor, op_type: str, var_name: str, debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT
) -> tuple[Tensor, Tensor]:
    """Count what is not finite in a tensor.

    Args:
        tensor: a tensor of floating or complex numbers.
        op_type: the operator's name for the report.
        var_name: the tensor's name for the report.
        debug_mode: what to do about NaN and infinity.

    Returns:
        int64 [3]: the numbers of NaNs, infinities and zeros; and float32 [3]: maximum, minimum, mean.

    Raises:
        NumericsError: the tensor is not finite, and the mode is CHECK_NAN_INF_AND_ABORT.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([1.0, 0.0, -1.0])
        >>> counts, values = paddle.amp.debugging.check_numerics(x, "my_op", "x")
        >>> counts.tolist(), values.tolist()
        ([0, 0, 1], [1.0, -1.0, 0.0])
    """
    if not isinstance(tensor, Tensor) or tensor.dtype.kind not in "fc":
        found = tensor.dtype.name if isinstance(tensor, Tensor) else type(tensor).__name__
        raise ArgumentTypeError(message(f"check_numerics(): tensor is {found}", "only floating and complex tensors hold NaN"))
    array = tensor.numpy_view()
    counts = counted(array)
    if _is_reported(debug_mode, array, counts):
        print(_line(op_type, var_name, tensor.dtype.name, counts))
    if debug_mode is DebugMode.CHECK_NAN_INF_AND_ABORT and not counts.is_finite:
        raise not_finite_error(f"{op_type}, tensor {var_name}", array, (), counts)
    return (
        to_tensor([counts.num_nan, counts.num_inf, counts.num_zero], "int64"),
        to_tensor([counts.max, counts.min, counts.mean], "float32"),
    )


class TensorCheckerConfig:
    """Which results ``enable_tensor_checker`` checks, and what it does about them.

    Args:
        enable: False: nothing is checked.
        debug_mode: see DebugMode.
        output_dir: append the lines to a file in this folder in place of printing them.
        checked_op_list: only these operators.
        skipped_op_list: all but these.
        debug_step: (first, end): only the steps of this range, counted by calls of ``enable_tensor_checker``.
        stack_height_limit: accepted for compatibility; an error names the user's line.

    Raises:
        ArgumentError: ``debug_step`` is no range.
    """

    #: How many steps were counted.
    current_step_id = 0

    def __init__(
        self,
        enable: bool,
        debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT,
        output_dir: str | None = None,
        checked_op_list: Sequence[str] | None = None,
        skipped_op_list: Sequence[str] | None = None,
        debug_step: Sequence[int] | None = None,
        stack_height_limit: int = 1,
    ) -> None:
        if debug_step is not None and (len(debug_step) != 2 or not 0 <= debug_step[0] < debug_step[1]):
            raise ArgumentError(
                message(f"TensorCheckerConfig(): debug_step={debug_step!r}", "it must be (first, end), first < end")
            )
        if not isinstance(debug_mode, DebugMode):
            raise ArgumentTypeError(message(f"TensorCheckerConfig(): debug_mode={debug_mode!r}", "it must be a DebugMode"))
        self.enable = bool(enable)
        self.debug_mode = debug_mode
        self.output_dir = output_dir
        self.checked_op_list = checked_op_list
        self.skipped_op_list = skipped_op_list
        self.debug_step = debug_step
        self.stack_height_limit = stack_height_limit

    def update_and_check_step_id(self) -> bool:
        """Count one more step; whether it is to be checked."""
        step = self.current_step_id
        self.current_step_id += 1
        return self.enable and (self.debug_step is None or self.debug_step[0] <= step < self.debug_step[1])

    def start_check_nan_inf(self) -> None:
        """Check the results of the operators that are called from now on."""
        register("tensor_checker", self._observe)
        chosen = None if self.checked_op_list is None else resolved(self.checked_op_list)
        set_watch(Watch("tensor_checker", chosen, resolved(self.skipped_op_list)))

    def stop_check_nan_inf(self) -> None:
        """Check no more."""
        set_watch(None)

    def _observe(self, operator: str, array: Any, operands: Sequence[Any]) -> None:
        if not is_inexact(array):
            return
        counts = counted(array)
        if _is_reported(self.debug_mode, array, counts):
            self._report(_line(operator, "", array.dtype.name, counts))
        if self.debug_mode is DebugMode.CHECK_NAN_INF_AND_ABORT and not counts.is_finite:
            raise not_finite_error(operator, array, operands, counts)

    def _report(self, line: str) -> None:
        if self.output_dir is None:
            print(line)
            return
        folder = Path(self.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"worker_cpu.{os.getpid()}").open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def enable_tensor_checker(checker_config: TensorCheckerConfig) -> None:
    """Check the results of all operators, forward and backward, from now on, as the config says. Call it at the beginning of every step.

    Example:
        >>> import sampan as paddle
        >>> config = paddle.amp.debugging.TensorCheckerConfig(enable=True)
        >>> paddle.amp.debugging.enable_tensor_checker(config)
        >>> try:
        ...     paddle.log(paddle.to_tensor([-1.0]))
        ... except FloatingPointError:
        ...     print("found")
        ... finally:
        ...     paddle.amp.debugging.disable_tensor_checker()
        [PRECISION] [ERROR] in [device=cpu, op=log, tensor=, dtype=fp32], numel=1, num_nan=1, num_inf=0, num_zero=0, max=nan, min=nan, mean=nan
        found
    """
    if checker_config.update_and_check_step_id():
        checker_config.start_check_nan_inf()
    else:
        checker_config.stop_check_nan_inf()


def disable_tensor_checker() -> None:
    """Check no more."""
    set_watch(None)


def check_layer_numerics(func: Callable[..., Any]) -> Callable[..., Any]:
    """A layer's ``forward`` with its tensors checked for NaN and infinity before and after.

    Args:
        func: the ``forward`` method that is decorated.

    Raises:
        NumericsError: a tensor that goes in or comes out is not finite.
    """

    @functools.wraps(func)
    def checked(self: Layer, *args: Any, **kwargs: Any) -> Any:
        for k, value in enumerate(args):
            _require_finite(self, f"argument {k}", value)
        result = func(self, *args, **kwargs)
        for k, value in enumerate(result if isinstance(result, (list, tuple)) else [result]):
            _require_finite(self, f"result {k}", value)
        return result

    return checked


def _require_finite(layer: Layer, what: str, value: Any) -> None:
    if not isinstance(value, Tensor) or value.dtype.kind not in "fc":
        return
    counts = counted(value.numpy_view())
    if not counts.is_finite:
        name = f"{type(layer).__name__} ({layer.full_name()})"
        raise NumericsError(
            message(
                f"{name}: {what} holds {counts.num_nan} NaN and {counts.num_inf} infinite elements", f"shape {list(value.shape)}"
            )
        )


# ------------------------------------------------------------------ statistics

_calls: Counter[tuple[str, str]] = Counter()
_COLUMNS = (("FP16 Calls", "float16"), ("BF16 Calls", "bfloat16"), ("FP32 Calls", "float32"))


def enable_operator_stats_collection() -> None:
    """Count the operators that are called from now on, forward and backward, by the dtype of their results. Views, which compute nothing, do not count."""
    _calls.clear()
    register("operator_stats", lambda operator, array, operands: _calls.update([(operator, array.dtype.name)]))
    set_watch(Watch("operator_stats"))


def disable_operator_stats_collection() -> None:
    """Count no more, and print the table of what was counted."""
    set_watch(None)
    print_operator_table(_calls)


def print_operator_table(calls: Counter[tuple[str, str]]) -> None:
    """Print how often each operator stands in which precision; ``calls`` counts names and dtypes."""
    names = sorted({name for name, _ in calls})
    width = max([40, *map(len, names)])
    print(f"<{' op list ':-^{width + 80}}>")
    print(f"<{' Op Name ':-^{width}}" + "".join(f"|{f' {title} ':-^19}" for title, _ in _COLUMNS) + f"|{' Other Calls ':-^19}>")
    for name in names:
        counts = [calls[name, dtype] for _, dtype in _COLUMNS]
        other = sum(count for (op, _), count in calls.items() if op == name) - sum(counts)
        print(f"  {name:<{width}}" + "".join(f"|  {c:<17}" for c in (*counts, other)))
    print(f"<{f' op count: {len(names)} ':-^{width + 80}}>\n")


@contextlib.contextmanager
def collect_operator_stats() -> Iterator[None]:
    """Count the operators inside the ``with`` block, and print the table at its end.

    Example:
        >>> import sampan as paddle
        >>> with paddle.amp.debugging.collect_operator_stats(), paddle.amp.auto_cast(dtype="bfloat16"):
        ...     y = paddle.matmul(paddle.ones([2, 2]), paddle.ones([2, 2]))  # doctest: +ELLIPSIS
        <--... op list ...
    """
    enable_operator_stats_collection()
    try:
        yield
    finally:
        disable_operator_stats_collection()
