"""Devices: this build computes on the CPU. What needs another device says so."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from ..base.errors import ArgumentError, UnsupportedError, message
from ..base.places import CPUPlace, CUDAPlace, Device, IPUPlace, Place, XPUPlace, parse_place
from ..tensor.functions import get_device, set_device
from ..tensor.random import GeneratorState, default_generator
from ..tensor.random import seed as manual_seed
from ..tensor.runtime import cpu_flags, cpu_isa, empty_cache, memory_stats, reset_peak_memory
from ..tensor.typed import *  # noqa: F403
from . import cuda


def _absent(name: str, what: str) -> Callable[[], bool]:
    def is_compiled() -> bool:
        return False

    is_compiled.__name__ = is_compiled.__qualname__ = name
    is_compiled.__doc__ = f"Whether this build supports {what}: False."
    return is_compiled


is_compiled_with_cuda = _absent("is_compiled_with_cuda", "NVIDIA GPUs")
is_compiled_with_rocm = _absent("is_compiled_with_rocm", "AMD GPUs")
is_compiled_with_xpu = _absent("is_compiled_with_xpu", "Kunlun XPUs")
is_compiled_with_ipu = _absent("is_compiled_with_ipu", "Graphcore IPUs")
is_compiled_with_cinn = _absent("is_compiled_with_cinn", "CINN, Paddle's own compiler")


def is_compiled_with_distribute() -> bool:
    """Whether this build can train in several processes."""
    return True


def is_compiled_with_custom_device(device_type: str) -> bool:
    """Whether this build supports the named kind of device: False."""
    return False


def get_all_device_type() -> list[str]:
    """The kinds of devices that this build supports."""
    return ["cpu"]


def get_all_custom_device_type() -> list[str]:
    """The kinds of devices that plug-ins add: none."""
    return []


def get_available_device() -> list[str]:
    """The devices of this machine that can be used."""
    return ["cpu"]


def get_available_custom_device() -> list[str]:
    """The devices of this machine that plug-ins serve: none."""
    return []


def get_cudnn_version() -> None:
    """The version of cuDNN: None, as there is none."""


def device_count() -> int:
    """How many accelerators there are: 0."""
    return 0


def is_available() -> bool:
    """Whether there is an accelerator."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 tensors can be computed with: always; without emulation, whether the CPU has instructions for them."""
    return including_emulation or any("bf16" in flag for flag in cpu_flags())


def get_device_name(device: Any = None) -> str:
    """The name of the instruction set that kernels are made for."""
    _cpu("get_device_name", device)
    return cpu_isa()


def get_device_properties(device: Any = None) -> Any:
    """Raises UnsupportedError: only GPUs have these properties."""
    return cuda.get_device_properties(device)


def get_device_capability(device: Any = None) -> Any:
    """Raises UnsupportedError: only GPUs have a compute capability."""
    return cuda.get_device_capability(device)


def _cpu(name: str, device: Any) -> None:
    if isinstance(device, int) and not isinstance(device, bool):
        raise ArgumentError(message(f"{name}(): device={device}", "there is no GPU", "pass 'cpu' or None"))
    parse_place(name, device)


def synchronize(device: Any = None) -> None:
    """Wait until the device is idle; the CPU's operators end before they return."""
    _cpu("synchronize", device)


def _memory(name: str, device: Any, key: str) -> int:
    _cpu(name, device)
    return int(memory_stats()[key])


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors take now."""
    return _memory("memory_allocated", device, "allocated_bytes")


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds now."""
    return _memory("memory_reserved", device, "reserved_bytes")


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors took since the start, or the last reset."""
    return _memory("max_memory_allocated", device, "peak_allocated_bytes")


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the allocator held since the start, or the last reset."""
    return _memory("max_memory_reserved", device, "peak_reserved_bytes")


def reset_peak_memory_stats(device: Any = None) -> None:
    """Count the peaks from now on."""
    _cpu("reset_peak_memory_stats", device)
    reset_peak_memory()


reset_max_memory_allocated = reset_max_memory_reserved = reset_peak_memory_stats


def get_rng_state(device: Any = None) -> GeneratorState:
    """The state of the device's random generator."""
    _cpu("get_rng_state", device)
    return default_generator.get_state()


def set_rng_state(new_state: GeneratorState, device: Any = None) -> None:
    """Go to a state that ``get_rng_state`` gave."""
    _cpu("set_rng_state", device)
    default_generator.set_state(new_state)


def is_current_stream_capturing() -> bool:
    """Whether operators are being captured into a CUDA graph: False."""
    return False


def ipc_collect() -> None:
    """Accepted for compatibility: there is no shared GPU memory to collect."""


class device_guard:
    """A context manager: operators inside run on the device."""

    def __init__(self, device: Any) -> None:
        _cpu("device_guard", device)

    def __enter__(self) -> None:
        """Nothing changes: the CPU is the device already."""

    def __exit__(self, *error: Any) -> None:
        """Nothing to undo."""


class device(device_guard):
    """A context manager: operators inside run on the device; None changes nothing."""


class Event:
    """A mark in a stream of work. On the CPU work ends before a call returns, so an event has happened once it is recorded."""

    def __init__(
        self, device: Any = None, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:  # fmt: skip
        raise _no_streams("Event")


class Stream:
    """A queue of work on an accelerator. The CPU has none: its operators end before they return."""

    def __init__(self, device: Any = None, priority: int = 2, stream_base: Any = None) -> None:
        raise _no_streams("Stream")


def _no_streams(name: str) -> UnsupportedError:
    return UnsupportedError(message(f"{name}(): the CPU has no streams of work", "operators end before they return"))


def current_stream(device: Any = None) -> Stream:
    """Raises UnsupportedError: the CPU has no streams."""
    raise _no_streams("current_stream")


def set_stream(stream: Any) -> Stream:
    """Raises UnsupportedError: the CPU has no streams."""
    raise _no_streams("set_stream")


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """Raises UnsupportedError: the CPU has no streams."""
    raise _no_streams("get_stream_from_external")


class stream_guard:
    """A context manager of a stream; None changes nothing."""

    def __init__(self, stream: Any = None) -> None:
        if stream is not None:
            raise _no_streams("stream_guard")

    def __enter__(self) -> None:
        """Nothing changes."""

    def __exit__(self, *error: Any) -> None:
        """Nothing to undo."""


StreamContext = stream_guard


class _CallableModule(types.ModuleType):
    """``paddle.device`` is a module, and called with a device string gives a Device."""

    def __call__(self, name: str = "cpu") -> Device:
        _cpu("device", name)
        return Device(name)


sys.modules[__name__].__class__ = _CallableModule

__all__ = [
    "CPUPlace", "CUDAPlace", "Device", "Event", "GeneratorState", "IPUPlace", "Place", "Stream", "StreamContext", "XPUPlace", "cuda",
    "current_stream", "device", "device_count", "device_guard", "empty_cache", "get_all_custom_device_type",
    "get_all_device_type", "get_available_custom_device", "get_available_device", "get_cudnn_version", "get_device",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_stream_from_external",
    "ipc_collect", "is_available", "is_bf16_supported", "is_compiled_with_cinn", "is_compiled_with_cuda",
    "is_compiled_with_custom_device", "is_compiled_with_distribute", "is_compiled_with_ipu", "is_compiled_with_rocm",
    "is_compiled_with_xpu", "is_current_stream_capturing", "manual_seed", "max_memory_allocated", "max_memory_reserved",
    "memory_allocated", "memory_reserved", "reset_max_memory_allocated", "reset_max_memory_reserved",
    "reset_peak_memory_stats", "set_device", "set_rng_state", "set_stream", "stream_guard", "synchronize",
]  # fmt: skip
