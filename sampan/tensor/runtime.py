"""What the runtime says about memory and the CPU."""

from __future__ import annotations

from .. import _rt


def memory_stats() -> dict[str, int]:
    """Bytes and counts of the allocator: allocated, reserved, their peaks, how many allocations, the limit."""
    return dict(_rt.memory_stats())


def reset_peak_memory() -> None:
    """Count the peaks from now on."""
    _rt.reset_peak_memory()


def empty_cache() -> None:
    """Give the memory that the allocator keeps back to the system."""
    _rt.empty_cache()


def cpu_flags() -> list[str]:
    """The CPU's features that matter to kernels."""
    return list(_rt.cpu_info()["flags"])


def cpu_isa() -> str:
    """The name of the instruction set that libraries use on this CPU."""
    return str(_rt.cpu_info()["onednn_isa"])
