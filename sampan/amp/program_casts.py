"""Programs and their parameters in 16 bits, by hand: what ``static.amp.decorate`` does at ``minimize`` and ``amp_init``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..tensor import OPS
from ..tensor.functions import dtype_name
from ..tensor.lower_precision import lower_program
from ..tensor.program import Program, running_at_once
from ..tensor.scope import Scope, global_scope
from .program_lists import AutoMixedPrecisionLists


def checked_lists(what: str, lists: Any, dtype: str) -> AutoMixedPrecisionLists:
    """The lists, those of ``auto_cast`` for None."""
    if lists is None:
        return AutoMixedPrecisionLists(dtype=dtype)
    if not isinstance(lists, AutoMixedPrecisionLists):
        raise ArgumentTypeError(
            message(f"{what}(): amp_lists is a {type(lists).__name__}", "it must be an AutoMixedPrecisionLists", "or None")
        )
    return lists


def lower(what: str, program: Any, lists: Any, level: str, dtype: str, only_guarded: bool) -> list[Any]:
    """Let the Program compute in mixed precision; the parameters that became 16-bit Variables, at O2."""
    if not isinstance(program, Program):
        raise ArgumentTypeError(message(f"{what}(): program is a {type(program).__name__}", "it must be a Program"))
    chosen = checked_lists(what, lists, dtype)
    precision = chosen.precision(level, dtype, what)
    if level == "O0":
        return []
    return lower_program(
        program,
        precision,
        full_names=chosen.black_varnames or (),
        only_guarded=only_guarded,
        lowers_parameters=level == "O2",
    )


def lower_first_values(startup: Program, lowered: Iterable[Any]) -> None:
    """Let the startup Program give these parameters, which became 16-bit Variables, 16-bit values in the end."""
    recorder = startup.recorder
    for v in lowered:
        handle = startup.variables.get(v.name)
        if handle is not None:
            with recorder.active():
                recorder.set_version(handle, OPS["cast"](handle, str(v.dtype)))
            handle.dtype = v.dtype


def cast_model_to_fp16(
    program: Program,
    amp_lists: Any = None,
    use_fp16_guard: bool = True,
    dest_type: Any = "float16",
    level: str = "O2",
    use_promote: bool = False,
) -> set[str]:
    """Let a Program compute in 16 bits; the names of the parameters that became 16-bit Variables. ``cast_parameters_to_fp16`` gives them such values.

    Args:
        program: a Program without gradients.
        amp_lists: an AutoMixedPrecisionLists.
        use_fp16_guard: only what was built inside ``fp16_guard()``.
        dest_type: float16 or bfloat16.
        level: O2: all but the operators of the black list, parameters too; O1: those of the white list.
        use_promote: accepted for compatibility: other operators always compute in the widest type of their operands.

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main = paddle.static.Program()
        >>> with paddle.static.program_guard(main, paddle.static.Program()):
        ...     x = paddle.static.data("x", [None, 2])
        ...     w = paddle.static.create_parameter([2, 3], "float32", name="w")
        ...     y = x @ w
        >>> paddle.static.amp.cast_model_to_fp16(main, use_fp16_guard=False), y.dtype
        ({'w'}, 'float16')
        >>> paddle.disable_static()
    """
    dtype = dtype_name("cast_model_to_fp16", dest_type)
    return {v.name for v in lower("cast_model_to_fp16", program, amp_lists, level, dtype, use_fp16_guard)}


def cast_parameters_to_fp16(
    place: Any,
    program: Program,
    scope: Scope | None = None,
    to_fp16_var_names: Collection[str] | None = None,
    dest_type: Any = "float16",
    rewrite_master_weight: bool = False,
    master_weights: Mapping[str, Any] | None = None,
) -> None:
    """Give the Program's 16-bit parameters 16-bit values in the scope.

    Args:
        place: accepted for compatibility.
        program: a Program.
        scope: where the parameters are; the global scope by default.
        to_fp16_var_names: what ``cast_model_to_fp16`` gave; by default all parameters that are 16-bit Variables.
        dest_type: float16 or bfloat16.
        rewrite_master_weight: give the float32 copies the parameters' values first.
        master_weights: Variables of float32 copies by their parameters' names.

    Raises:
        ArgumentError: a parameter has no value in the scope.
    """
    dtype = dtype_name("cast_parameters_to_fp16", dest_type)
    place_of_values = scope or global_scope()
    names: Iterable[str] = (
        [v.name for v in program.all_parameters() if v.dtype == dtype] if to_fp16_var_names is None else to_fp16_var_names
    )
    with running_at_once():
        for name in names:
            held = program.tensor_of(program.var(name), place_of_values)
            if held is None:
                raise ArgumentError(
                    message(
                        f"the parameter {name!r} has no value in the scope",
                        "the startup program gives it one",
                        "run exe.run(paddle.static.default_startup_program()) first",
                    )
                )
            master = (master_weights or {}).get(name)
            if rewrite_master_weight and master is not None:
                place_of_values.put(master.name, OPS["cast"](held, "float32").clone())
            if held.dtype.name == "float32":
                held.convert_(dtype)
