"""``paddle.grad`` where a Program is being recorded: the gradients are statements of it, also inside branches and loops, whose operands were computed outside."""

from __future__ import annotations

from typing import Any

from .. import _rt
from ..base.errors import ArgumentError, ArgumentTypeError, AutogradError, ShapeError, message
from ..base.modes import in_dynamic_mode
from .autograd import GradMode
from .location import add_user_location
from .program_gradients import append_gradients, is_active, reopen
from .recording import Recorder
from .variable import UNKNOWN, Variable


def _listed(parameter: str, value: Any, none_allowed: bool = False) -> list[Any]:
    values = list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
    for v in values:
        if not isinstance(v, (Variable, _rt.Tensor)) and not (none_allowed and v is None):
            raise ArgumentTypeError(
                message(f"grad(): {parameter} holds a {type(v).__name__}", "it must be a Tensor or a list of Tensors")
            )
    return values


def _fits(given: Variable, root: Variable) -> bool:
    pairs = zip(given.sizes, root.sizes, strict=False)
    return given.ndim == root.ndim and all(m == n or UNKNOWN in (m, n) for m, n in pairs)


def differentiate(
    recorder: Recorder, outputs: Any, inputs: Any, grad_outputs: Any, create_graph: bool, allow_unused: bool, no_grad_vars: Any
) -> list[Any]:
    """The gradients of the outputs' sum with respect to the inputs, as Variables; see ``paddle.grad``."""
    roots = [recorder.operand(v) for v in _listed("outputs", outputs)]
    wanted = [recorder.operand(v) for v in _listed("inputs", inputs)]
    listed = [None] * len(roots) if grad_outputs is None else _listed("grad_outputs", grad_outputs, none_allowed=True)
    if len(listed) != len(roots):
        raise ArgumentError(message(f"grad(): {len(listed)} grad_outputs for {len(roots)} outputs", "there must be one for each"))
    given = [None if g is None else recorder.operand(g) for g in listed]
    for k, (g, root) in enumerate(zip(given, roots, strict=True)):
        if g is not None and not _fits(g, root):
            raise ShapeError(
                message(
                    f"grad(): the gradient given for output {k} is {g.dtype}{list(g.sizes)}",
                    f"it must have the shape of its tensor, {root.dtype}{list(root.sizes)}",
                )
            )
    excluded = [] if no_grad_vars is None else [recorder.operand(v) for v in _listed("no_grad_vars", no_grad_vars)]
    restored = [(v, v.stop_gradient) for v in (*wanted, *excluded)]
    root_recorder = recorder.root
    was_building, root_recorder.builds_graph = root_recorder.builds_graph, create_graph
    try:
        if not in_dynamic_mode():  # what is declared in a Program wants no gradient until it is asked for
            for v in wanted:
                v.stop_gradient = False
            for op in recorder.block.ops:
                reopen(op)
        for v in excluded:
            v.stop_gradient = True
        with GradMode(create_graph):
            open_ones = [v for v in wanted if is_active(v)]
            found = iter(append_gradients(recorder, roots, given, open_ones, recorder.role, looks_outside=True))
        gradients = [next(found) if is_active(v) else None for v in wanted]
    except AutogradError as error:
        add_user_location(error)
        raise
    finally:
        root_recorder.builds_graph = was_building
        for v, old in restored:
            v.stop_gradient = old
    unused = next((k for k, g in enumerate(gradients) if g is None), None)
    if unused is not None and not allow_unused:
        v = wanted[unused]
        refusal = ArgumentError(
            message(
                f"grad(): input {unused} ({v.dtype}{list(v.sizes)}) does not take part in the outputs"
                f"{': it has stop_gradient=True' if v.stop_gradient else ''}",
                "",
                "pass allow_unused=True to get None for it",
            )
        )
        add_user_location(refusal)
        raise refusal
    return gradients


Recorder.differentiate = differentiate
