"""Flags: each is declared once, with its default, its meaning, and whether compiled code depends on it.

A flag is read from the environment as ``FLAGS_<name>`` when the package is imported, and by ``get_flags``/``set_flags`` later.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import ArgumentError, message


@dataclass
class Flag:
    """One flag. ``in_key``: compiled kernels and plans depend on its value. ``on_change`` is told each new value."""

    name: str
    default: bool | int | float | str
    meaning: str
    in_key: bool = False
    value: bool | int | float | str = ""
    on_change: Callable[[Any], None] | None = None

    def follow(self, function: Callable[[Any], None]) -> None:
        """Tell the function each new value, and the present one when it is not the default."""
        self.on_change = function
        if self.value != self.default:
            function(self.value)


_flags: dict[str, Flag] = {}


def _parse(flag: Flag, text: str) -> bool | int | float | str:
    kind = type(flag.default)
    if kind is bool:
        lowered = text.strip().lower()
        if lowered in ("1", "true", "yes", "on"):
            return True
        if lowered in ("0", "false", "no", "off", ""):
            return False
    else:
        try:
            return kind(text)
        except ValueError:
            pass
    raise ArgumentError(message(f"FLAGS_{flag.name}={text!r}", f"it takes a {kind.__name__} ({flag.meaning})"))


def declare(name: str, default: bool | int | float | str, meaning: str, in_key: bool = False) -> Flag:
    """The new flag, its value taken from the environment when it is set there."""
    flag = Flag(name, default, meaning, in_key)
    text = os.environ.get(f"FLAGS_{name}")
    flag.value = default if text is None else _parse(flag, text)
    _flags[name] = flag
    return flag


DUMP = declare(
    "dump",
    os.environ.get("SAMPAN_DUMP", ""),
    "stages to print: program, passes, loops, llvm, plans (comma separated); also SAMPAN_DUMP",
)
VERIFY = declare("verify_ir", False, "verify every Program after every pass")
KERNEL_CACHE = declare("kernel_cache_dir", "", "where compiled kernels are kept; empty: the user's cache folder")
KERNEL_CACHE_MB = declare("kernel_cache_mb", 512, "the kernel cache's size limit in MiB; 0 turns it off")
MAX_ISA = declare(
    "max_isa", "", "the highest instruction set kernels may use: sse4, avx2, avx512; empty: the CPU's own", in_key=True
)
NUM_THREADS = declare("num_threads", 0, "threads for kernels; 0: OMP_NUM_THREADS, else the number of cores")
SIGNATURE_LIMIT = declare("signature_cache_limit", 4096, "how many eager signatures are kept of each operator")
CALL_SITES = declare("record_call_sites", False, "remember the user's line of every recorded operator, for error messages")
NAN_INF = declare("check_nan_inf", False, "check every result for NaN and infinity and raise")
MEMORY_LIMIT_MB = declare("memory_limit_mb", 0, "the most memory tensors may take, in MiB; 0: no limit")
INTERPRET = declare("interpret", False, "run every operator by the NumPy interpreter in place of compiled kernels", in_key=True)


#: Flags of Paddle's that steer parts which are not here: kept and given back, so that programs run, and without effect.
_PADDLE_ONLY = """FLAGS_allocator_strategy FLAGS_benchmark FLAGS_call_stack_level FLAGS_check_nan_inf_level FLAGS_conv_workspace_size_limit
FLAGS_cudnn_batchnorm_spatial_persistent FLAGS_cudnn_deterministic FLAGS_cudnn_exhaustive_search FLAGS_eager_delete_scope
FLAGS_eager_delete_tensor_gb FLAGS_embedding_deterministic FLAGS_enable_auto_parallel_align_mode FLAGS_enable_cublas_tensor_op_math
FLAGS_enable_pir_api FLAGS_enable_pir_in_executor FLAGS_fast_eager_deletion_mode FLAGS_fraction_of_cpu_memory_to_use
FLAGS_fraction_of_gpu_memory_to_use FLAGS_gemm_use_half_precision_compute_type FLAGS_gpu_memory_limit_mb FLAGS_initial_cpu_memory_in_mb
FLAGS_initial_gpu_memory_in_mb FLAGS_low_precision_op_list FLAGS_max_inplace_grad_add FLAGS_memory_fraction_of_eager_deletion
FLAGS_paddle_num_threads FLAGS_prim_all FLAGS_prim_backward FLAGS_prim_forward FLAGS_reallocate_gpu_memory_in_mb FLAGS_selected_gpus
FLAGS_set_to_1d FLAGS_sort_sum_gradient FLAGS_sync_nccl_allreduce FLAGS_use_cinn FLAGS_use_mkldnn FLAGS_use_pinned_memory
FLAGS_use_stride_kernel FLAGS_use_system_allocator"""
_kept: dict[str, object] = dict.fromkeys(_PADDLE_ONLY.split())


def get_flags(flags: str | list[str] | tuple[str, ...]) -> dict[str, object]:
    """The values of the named flags, with or without the ``FLAGS_`` prefix, keyed as they were asked for."""
    asked = [flags] if isinstance(flags, str) else flags
    if not isinstance(asked, (list, tuple)) or not all(isinstance(n, str) for n in asked):
        raise TypeError(f"get_flags() takes a name or a list of names, got {flags!r}")
    return {n: _kept[n] if n in _kept else _find(n).value for n in asked}


def set_flags(flags: Mapping[str, object]) -> None:
    """Set flags by name. All names and values are checked before the first is set."""
    if not isinstance(flags, Mapping):
        raise TypeError(f"set_flags() takes a dict of flag names to values, got {type(flags).__name__}")
    found = []
    kept = {name: value for name, value in flags.items() if name in _kept}
    for name, value in flags.items():
        if name in kept:
            continue
        flag = _find(name)
        fits = isinstance(value, type(flag.default)) or (isinstance(flag.default, bool) and value in (0, 1))
        found.append((flag, type(flag.default)(value) if fits else _parse(flag, str(value))))  # type: ignore[call-overload, arg-type]
    _kept.update(kept)
    for flag, value in found:
        flag.value = value
        if flag.on_change:
            flag.on_change(value)


def key() -> tuple[object, ...]:
    """The values that compiled code depends on."""
    return tuple(f.value for f in _flags.values() if f.in_key)


def _find(name: str) -> Flag:
    flag = _flags.get(name.removeprefix("FLAGS_"))
    if flag is None:
        near = ", ".join(sorted(_flags))
        raise ArgumentError(message(f"unknown flag {name!r}", "", f"the flags are: {near}"))
    return flag


def kernel_cache_directory() -> str | None:
    """The folder in which compiled kernels are kept; None for a user without a home folder, such as a container's bare user id."""
    if KERNEL_CACHE.value:
        return str(KERNEL_CACHE.value)
    root = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(root):  # the XDG specification has relative ones ignored
        root = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "sampan", "kernels") if os.path.isabs(root) else None


def dumps(stage: str) -> bool:
    """Whether the stage is to be printed."""
    return bool(DUMP.value) and stage in str(DUMP.value).split(",")


# How threads of kernels wait for work: libgomp reads it when it is loaded.
_SPINS = "GOMP_SPINCOUNT"
_SETTINGS = (_SPINS, "OMP_WAIT_POLICY")
_COUNT = "10000"


@contextlib.contextmanager
def short_spinning() -> Iterator[None]:
    """libgomp, if it is loaded within, lets waiting threads spin for about 0.2 ms in place of some milliseconds.

    That bridges the gaps between the kernels of a model, and leaves the processor to others soon: beside busy processes a step of a
    small model took a fifth of its time so, on an idle machine the same. A user's own setting stays, and the environment is as before.
    """
    if any(name in os.environ for name in _SETTINGS):
        yield
        return
    os.environ[_SPINS] = _COUNT
    try:
        yield
    finally:
        del os.environ[_SPINS]
