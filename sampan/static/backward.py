"""``append_backward`` and ``gradients``: the gradients of a Program, as statements of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.errors import ArgumentTypeError, AutogradError, ShapeError, message
from ..tensor.program import Program, default_main_program
from ..tensor.program_gradients import append_gradients, reopen
from ..tensor.recording import Recorder
from ..tensor.variable import Variable


def _recorder_of(name: str, variable: Any) -> Recorder:
    if not isinstance(variable, Variable):
        raise ArgumentTypeError(
            message(
                f"{name}(): got a {type(variable).__name__}",
                "it takes Variables of a Program",
                "use Tensor.backward() in eager mode",
            )
        )
    recorder: Recorder = variable.recorder
    return recorder


def _named(no_grad_set: Any) -> set[str]:
    return {v if isinstance(v, str) else v.name for v in no_grad_set or ()}


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Any] | None = None,
    no_grad_set: Any = None,
    callbacks: Any = None,
    checkpoints: Any = None,
    distop_context: Any = None,
) -> list[tuple[Any, Variable]]:
    """Append the gradients of the loss to its Program.

    Args:
        loss: a Variable of one element.
        parameter_list: the parameters (or names) to give gradients; all trained ones by default.
        no_grad_set: Variables or names that no gradient flows to.
        callbacks, checkpoints, distop_context: accepted for compatibility; what is cheap is computed again in any case.

    Returns:
        (parameter, gradient) pairs of the parameters that the loss depends on.

    Raises:
        ShapeError: the loss has more than one element.

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        ...     x = paddle.static.data("x", [None, 2])
        ...     w = paddle.static.create_parameter([2, 1], "float32", name="w")
        ...     pairs = paddle.static.append_backward((x @ w).mean())
        >>> [(p.name, g.name) for p, g in pairs]
        [('w', 'w@GRAD')]
        >>> paddle.disable_static()
    """
    recorder = _recorder_of("append_backward", loss)
    if any(n != 1 for n in loss.sizes):
        raise ShapeError(
            message(
                f"append_backward(): the loss has shape {list(loss.sizes)}", "it must be one number", "take its mean() or sum()"
            )
        )
    program = _program_of(recorder)
    chosen = (
        program.all_parameters()
        if parameter_list is None
        else [program.var(p) if isinstance(p, str) else p for p in parameter_list]
    )
    left_out = _named(no_grad_set)
    wanted = [recorder.variable_of(p) for p in chosen]
    wanted = [v for v in wanted if v.name not in left_out and not v.stop_gradient]
    with recorder.active():
        found = append_gradients(recorder, [recorder.resolve(loss)], [None], wanted)
    return [(p, g) for p, g in zip(wanted, found, strict=True) if g is not None]


def gradients(targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Any = None) -> list[Any]:
    """Append d(targets)/d(inputs) to the Program.

    Args:
        targets: a Variable or a list of them.
        inputs: a Variable or a list of them.
        target_gradients: the gradient of each target; ones by default.
        no_grad_set: Variables or names that no gradient flows to.

    Returns:
        A Variable for each input; None where no target depends on it.
    """
    roots = list(targets) if isinstance(targets, (list, tuple)) else [targets]
    wanted = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    given: list[Any] = [None] * len(roots)
    if target_gradients is not None:
        given = list(target_gradients) if isinstance(target_gradients, (list, tuple)) else [target_gradients]
    if len(given) != len(roots):
        raise AutogradError(
            message(f"gradients(): {len(given)} target_gradients for {len(roots)} targets", "there must be one for each")
        )
    recorder = _recorder_of("gradients", roots[0])
    stopped = _named(no_grad_set)
    variables = [recorder.resolve(v) for v in wanted]
    restored = [(v, v.stop_gradient) for v in variables]
    was_building, recorder.root.builds_graph = recorder.root.builds_graph, True
    try:
        for v in variables:
            v.stop_gradient = v.name in stopped
        for op in recorder.block.ops:
            reopen(op)
        with recorder.active():
            return append_gradients(
                recorder,
                [recorder.resolve(v) for v in roots],
                [None if g is None else recorder.operand(g) for g in given],
                variables,
            )
    finally:
        recorder.root.builds_graph = was_building
        for v, old in restored:
            v.stop_gradient = old


def _program_of(recorder: Recorder) -> Program:
    program = getattr(recorder.root, "program", None)
    return program if program is not None else default_main_program()
