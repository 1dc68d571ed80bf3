"""Places to run Programs on, and what statements are marked with: names and devices."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..base.places import CPUPlace, Place, missing_device
from ..tensor.program import default_main_program


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """As many CPU places as are asked for; by default one for each core.

    Example:
        >>> import sampan as paddle
        >>> paddle.static.cpu_places(2)
        [Place(cpu), Place(cpu)]
    """
    count = device_count if device_count is not None else os.cpu_count() or 1
    if isinstance(count, bool) or not isinstance(count, int):
        raise ArgumentTypeError(message(f"cpu_places(): device_count is a {type(count).__name__}", "it must be an integer"))
    if count < 1:
        raise ArgumentError(message(f"cpu_places(): device_count={count}", "it must be positive"))
    return [CPUPlace() for _ in range(count)]


def cuda_places(device_ids: Sequence[int] | None = None) -> list[Place]:
    """Raises UnsupportedError: this build has no CUDA support."""
    raise missing_device("CUDA")


def xpu_places(device_ids: Sequence[int] | None = None) -> list[Place]:
    """Raises UnsupportedError: this build has no XPU support."""
    raise missing_device("XPU")


@contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Results of statements inside the ``with`` block are named under the prefix; scopes nest. It changes no parameter's name.

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program()), paddle.static.name_scope("head"):
        ...     (paddle.static.data("x", [2]) + 1).name
        'head/add_0.tmp_0'
        >>> paddle.disable_static()
    """
    if not isinstance(prefix, str) or not prefix:
        raise ArgumentTypeError(message(f"name_scope(): prefix={prefix!r}", "it must be a string that is not empty"))
    recorder: Any = default_main_program().recorder
    old = recorder.name_prefix
    recorder.name_prefix = f"{old}{prefix}/"
    try:
        yield
    finally:
        recorder.name_prefix = old


@contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Statements inside the ``with`` block run on the device: ``cpu``, or None for the Executor's place.

    Raises:
        ArgumentError: there is no such kind of device.
        UnsupportedError: this build does not have it.
    """
    if device is not None:
        kind = device.split(":")[0] if isinstance(device, str) else device
        if kind not in ("cpu", "gpu", "xpu", "all"):
            raise ArgumentError(message(f"device_guard(): device={device!r}", "it must be 'cpu', 'gpu', 'gpu:x', 'xpu' or None"))
        if kind in ("gpu", "xpu"):
            raise missing_device(kind)
    yield
