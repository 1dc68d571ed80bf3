"""auto_cast: run operators in 16-bit floats where it pays and is safe; decorate: models and optimizers for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..nn import Layer
from ..optimizer import Optimizer
from ..tensor.autocast import current_precision, set_precision
from ..tensor.functions import dtype_name, in_dynamic_mode
from .lists import precision_of
from .program_optimizer import decorate_for_programs


@contextmanager
def auto_cast(
    enable: bool = True,
    custom_white_list: Any = None,
    custom_black_list: Any = None,
    level: str = "O1",
    dtype: str = "float16",
    use_promote: bool = True,
) -> Iterator[None]:
    """Run the operators inside the ``with`` block in mixed precision.

    Args:
        enable: False: as if the block were not there.
        custom_white_list: names of further operators that compute in ``dtype``.
        custom_black_list: names of further operators that compute in float32.
        level: O0 (off), OD, O1 or O2.
        dtype: float16 or bfloat16.
        use_promote: accepted for compatibility: other operators always compute in the widest type of their operands.

    Raises:
        ArgumentError: an unknown level or dtype, or a name in both lists.

    Example:
        >>> import sampan as paddle
        >>> with paddle.amp.auto_cast(dtype="bfloat16"):
        ...     y = paddle.matmul(paddle.ones([2, 3]), paddle.ones([3, 2]))
        >>> y.dtype.name
        'bfloat16'
    """
    precision = precision_of("auto_cast", level, dtype, custom_white_list, custom_black_list)
    outer = current_precision()
    set_precision(precision if enable and level != "O0" else None)
    try:
        yield
    finally:
        set_precision(outer)


amp_guard = auto_cast


def autocast(device_type: str | None = None, dtype: str = "float16", enabled: bool = True, cache_enabled: bool = True) -> Any:
    """``auto_cast`` at O1, with the argument order of other frameworks.

    Args:
        device_type: accepted for compatibility: there is the CPU.
        dtype: float16 or bfloat16.
        enabled: False: as if the block were not there.
        cache_enabled: accepted for compatibility: casts are part of the kernels, so there is nothing to cache.
    """
    return auto_cast(enabled, dtype=dtype)


def is_autocast_enabled(device_type: Any = None) -> bool:
    """Whether this thread is inside an ``auto_cast`` block."""
    return current_precision() is not None


def get_autocast_dtype(device_type: Any = None) -> str:
    """The dtype of the ``auto_cast`` block, float32 outside of one."""
    precision = current_precision()
    return "float32" if precision is None else precision.dtype


get_autocast_cpu_dtype = get_autocast_gpu_dtype = get_autocast_dtype


def is_float16_supported(device: str | None = None) -> bool:
    """Whether the device computes in float16: the CPU does, through float32 where it has no instructions for it."""
    return True


def is_bfloat16_supported(device: str | None = None) -> bool:
    """Whether the device computes in bfloat16: the CPU does, through float32 where it has no instructions for it."""
    return True


def decorate(
    models: Any,
    optimizers: Any = None,
    level: str = "O1",
    dtype: str = "float16",
    master_weight: bool | None = None,
    save_dtype: str | None = None,
    master_grad: bool = False,
    excluded_layers: Any = None,
) -> Any:
    """Prepare models and optimizers for ``auto_cast``: at O2, parameters become ``dtype`` (not those of norms), and optimizers keep float32 copies.

    Args:
        models: a Layer or a list of them.
        optimizers: an Optimizer, a list of them, or None.
        level: O1 leaves everything as it is.
        dtype: float16 or bfloat16.
        master_weight: float32 copies in the optimizers; by default at O2.
        save_dtype: the dtype of floating tensors in ``state_dict()``; None: as they are.
        master_grad: accepted: gradients are summed in float32 inside the kernels.
        excluded_layers: layers, or classes of them, whose parameters stay as they are.

    Returns:
        models, or (models, optimizers). In static mode models stay as they are, and optimizers are those of ``static.amp.decorate``, whose ``minimize``
        lowers the Program.
    """
    if level not in ("O1", "O2"):
        raise ArgumentError(message(f"decorate(): level={level!r}", "it must be 'O1' or 'O2'"))
    layers = list(models) if isinstance(models, (list, tuple)) else [models]
    if not all(isinstance(m, Layer) for m in layers):
        raise ArgumentTypeError("decorate(): models must be a Layer or a list of them")
    chosen = [] if optimizers is None else list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]
    if not all(isinstance(o, Optimizer) for o in chosen):
        raise ArgumentTypeError("decorate(): optimizers must be an Optimizer or a list of them")
    if not in_dynamic_mode():
        made = [
            decorate_for_programs("decorate", o, level=level, dtype=dtype, master_weight=master_weight, master_grad=master_grad)
            for o in chosen
        ]
        optimizers = made if isinstance(optimizers, (list, tuple)) else made[0] if made else None
    elif level == "O2":
        for model in layers:
            _convert(model, dtype_name("decorate", dtype), excluded_layers)
        for optimizer in chosen:
            optimizer._multi_precision = master_weight is not False
    if save_dtype is not None:
        target = dtype_name("decorate", save_dtype)
        for model in layers:
            model.register_state_dict_hook(
                lambda state: {k: v.astype(target) if v.dtype.kind == "f" else v for k, v in state.items()}
            )
    return models if optimizers is None else (models, optimizers)


amp_decorate = decorate


def _convert(model: Layer, dtype: str, excluded: Any) -> None:
    given = [] if excluded is None else list(excluded) if isinstance(excluded, (list, tuple)) else [excluded]
    kinds = tuple(e for e in given if isinstance(e, type))
    kept = {id(s) for e in given if isinstance(e, Layer) for s in e.sublayers(include_self=True)}
    for layer in model.sublayers(include_self=True):
        if id(layer) in kept or isinstance(layer, kinds) or "Norm" in type(layer).__name__:
            continue
        for parameter in layer._parameters.values():
            if parameter is not None and parameter.dtype.name == "float32":
                parameter.convert_(dtype)
