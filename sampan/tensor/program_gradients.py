"""Gradients of recorded Programs: more recorded Ops, each the gradient of one (``matmul_grad``), so that a Program with its gradients reads as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base import dtypes
from ..base.errors import AutogradError, message
from ..ir.program import Block, Op
from ..ops.define import OPERATORS
from .arrays import add_gradients, zero_gradient
from .recording import Recorder
from .replay import BACKWARD, COUNT, DYNAMIC, FORWARD, FUNCTIONS, LOWER, PRESENT, WANTED
from .sizes import DERIVED
from .variable import Variable

#: The attribute of ``while`` and ``while_grad``: how many of the first inputs the loop carries.
CARRIED = "carried"


def is_active(variable: Any) -> bool:
    """Whether gradients may flow through the Variable."""
    return dtypes.is_differentiable(variable.dtype) and not variable.stop_gradient


def _passes(variable: Any) -> bool:
    """Whether gradients may flow through the Variable to what it was computed from."""
    return is_active(variable) and not variable.is_severed


def append_gradients(
    recorder: Recorder,
    roots: Sequence[Variable],
    given: Sequence[Variable | None],
    wanted: Sequence[Variable],
    role: str = "backward",
    looks_outside: bool = False,
) -> list[Variable | None]:
    """Append the Ops that compute d(roots)/d(wanted); None for a wanted Variable that no root depends on.

    given: the gradient of each root; None: ones.
    looks_outside: what was recorded in the blocks around the recorder's is differentiated too, here.
    """
    view = _View(recorder, looks_outside)
    ops = view.ops()
    active = {view.key(v) for v in wanted}
    for op in ops:
        if any(view.key(v) in active for v in op.inputs):
            active.update(id(v) for v in op.outputs if _passes(v))
    found: dict[int, Variable] = {}
    old_role, recorder.role = recorder.role, role

    def add(variable: Variable, gradient: Variable) -> None:
        key = view.key(variable)
        old = found.get(key)
        found[key] = gradient if old is None else add_gradients(recorder, old, gradient)

    try:
        for root, gradient in zip(roots, given, strict=True):
            if view.key(root) in active:
                add(root, recorder.call(OPERATORS["ones_like"], [root, None]) if gradient is None else gradient)
            if looks_outside:
                view.require_single_round(root, wanted)
        for op in reversed(ops):
            present = [k for k, v in enumerate(op.outputs) if id(v) in found and _passes(v)]
            if not present:
                continue
            seen: set[int] = set()
            targets = []
            for k, v in enumerate(op.inputs):
                key = view.key(v)
                if key in active and dtypes.is_differentiable(v.dtype) and key not in seen:
                    seen.add(key)
                    targets.append(k)
            if not targets:
                continue
            gradients = [found[id(op.outputs[k])] for k in present]
            here = view.here(op)
            for k, g in zip(targets, _gradients_of(recorder, here, present, gradients, targets), strict=True):
                add(here.inputs[k], g)  # type: ignore[arg-type]
    finally:
        recorder.role = old_role
    return [found.get(view.key(v)) for v in wanted]


class _View:
    """The Ops of a block, seen from inside: with those of the blocks around it first, whose Variables are its captured ones, or alone."""

    def __init__(self, recorder: Recorder, looks_outside: bool) -> None:
        self.recorder = recorder
        self.chain = [recorder]
        while looks_outside and self.chain[0].parent is not None:
            self.chain.insert(0, self.chain[0].parent)
        #: Which outer Variable an argument stands for, by the argument's id.
        self.outer: dict[int, Variable] = {}
        for inner in self.chain[1:]:
            self.outer |= {id(argument): outer for outer, argument in inner.captured.values()}

    def ops(self) -> list[Op]:
        """All Ops, the outermost first."""
        return [op for recorder in self.chain for op in recorder.block.ops]

    def key(self, variable: Any) -> int:
        """What a Variable and the arguments that stand for it share."""
        return id(self._source(variable))

    def here(self, op: Op) -> Op:
        """The Op on Variables of this block."""
        if len(self.chain) == 1 or all(v.recorder is self.recorder for v in op.inputs):  # type: ignore[attr-defined]
            return op
        twin = Op(op.name, tuple(self._seen(v) for v in op.inputs), op.attributes, (), op.blocks, op.location, op.role, op.of)
        twin.outputs = op.outputs
        return twin

    def _seen(self, variable: Any, depth: int = -1) -> Any:
        """The Variable as the recorder at this depth sees it."""
        recorder = self.chain[depth]
        if variable.recorder is recorder or recorder.parent is None:
            return variable
        outer = self._seen(variable, depth - 1)
        argument = recorder.argument_for(outer)
        self.outer[id(argument)] = outer
        return argument

    def require_single_round(self, root: Variable, wanted: Sequence[Variable]) -> None:
        """Refuse what depends on earlier rounds of a loop around it: only the present one is known here."""
        makers = {id(v): op for op in self.ops() for v in op.outputs}
        stops = {self.key(v) for v in wanted}
        carried = {
            id(v): depth
            for depth, inner in enumerate(self.chain)
            if depth
            for v in inner.block.arguments
            if id(v) not in self.outer
        }
        depths = {id(recorder): depth for depth, recorder in enumerate(self.chain)}
        outermost = min((depths.get(id(self._source(v).recorder), 0) for v in wanted), default=0)
        pending: list[Any] = [root]
        seen: set[int] = set()
        while pending:
            variable = pending.pop()
            key = self.key(variable)
            if key in seen or key in stops or not _passes(variable):
                continue
            seen.add(key)
            if outermost < carried.get(key, 0):
                raise AutogradError(
                    message(
                        f"grad(): what is differentiated depends on {variable.name}, which a loop carries from round to round",
                        "the rounds before are not known inside of the loop",
                        "detach it at the beginning of the round, or call grad() after the loop",
                    )
                )
            if key in makers:
                pending.extend(makers[key].inputs)

    def _source(self, variable: Any) -> Any:
        while id(variable) in self.outer:
            variable = self.outer[id(variable)]
        return variable


def _gradients_of(recorder: Recorder, op: Op, present: list[int], given: list[Variable], targets: list[int]) -> list[Variable]:
    if op.name == "cond":
        return _cond_gradients(recorder, op, present, given, targets)
    if op.name == "while":
        return _while_gradients(recorder, op, present, given, targets)
    function = FUNCTIONS.get(op.name)
    rule = op.attributes.get(BACKWARD) or (function and function.backward)
    if rule:
        return rule(recorder, op, present, given, targets)  # type: ignore[no-any-return]
    if op.name == "while_grad" or (FORWARD in op.attributes and DYNAMIC in op.attributes):
        text = message(
            f"{op.name} is a gradient {'through a loop' if op.name == 'while_grad' else 'that depends on data'}",
            "a Program that holds its gradients has no gradient of that",
            "use jit.to_static or eager mode for gradients of gradients",
        )
        raise AutogradError(f"{text}\n  {op.location}" if op.location else text)
    name = op.name.rpartition(".")[2]
    attributes = {k: v for k, v in op.attributes.items() if k != DERIVED}
    if FORWARD in attributes:
        attributes[LOWER] = (*attributes.get(LOWER, ()), tuple(attributes[k] for k in (COUNT, PRESENT, WANTED)))
    else:
        attributes[FORWARD] = op.name
    attributes |= {COUNT: len(op.inputs), PRESENT: tuple(present), WANTED: tuple(targets)}
    return _append(recorder, f"{name}_grad", (*op.inputs, *given), attributes, (), op, targets)


def _append(
    recorder: Recorder,
    name: str,
    inputs: Sequence[Any],
    attributes: dict[str, Any],
    blocks: tuple[Block, ...],
    of: Op,
    targets: list[int],
) -> list[Variable]:
    """A gradient Op, whose outputs are like the forward Op's inputs that ``targets`` names."""
    new = Op(name, tuple(inputs), attributes, (), blocks, of.location, recorder.role, of)
    is_constant = not recorder.root.builds_graph or not any(map(is_active, inputs))
    outputs = []
    for k in targets:
        source: Any = of.inputs[k]
        made = recorder.adopt(source.like(recorder.fresh_gradient_name(source.name)))
        made.op, made.stop_gradient, made.was_constant = new, is_constant, False
        outputs.append(made)
    new.outputs = tuple(outputs)
    recorder.block.ops.append(new)
    return outputs


def _cond_gradients(recorder: Recorder, op: Op, present: list[int], given: list[Variable], targets: list[int]) -> list[Variable]:
    wanted = [k - 1 for k in targets]  # the condition comes first
    blocks = tuple(gradient_block(recorder, block, present, given, wanted) for block in op.blocks)
    return _append(recorder, "cond", (*op.inputs, *given), {}, blocks, op, targets)


def _while_gradients(recorder: Recorder, op: Op, present: list[int], given: list[Variable], targets: list[int]) -> list[Variable]:
    count = op.attributes[CARRIED]
    carried = [k for k in range(count) if is_active(op.outputs[k])]
    captured = [k for k in targets if k >= count]
    kinds: list[Any] = [op.outputs[k] for k in carried]
    body = gradient_block(recorder, op.blocks[1], carried, kinds, [*carried, *captured])
    attributes = {CARRIED: count, PRESENT: tuple(present), "through": tuple(carried), WANTED: tuple(targets)}
    return _append(recorder, "while_grad", (*op.inputs, *given), attributes, (*op.blocks, body), op, targets)


def gradient_block(
    parent: Recorder, block: Block, present: Sequence[int], kinds: Sequence[Variable], wanted: Sequence[int]
) -> Block:
    """The block that computes the gradients of a block's arguments: its arguments, then the gradients of the results ``present``.

    It computes the block's results again; those that are not needed are dropped when it is compiled. ``kinds``: Variables like the gradients.
    """
    inner = Recorder("gradient", parent)
    mapping: dict[int, Variable] = {}
    for v in block.arguments:
        mapping[id(v)] = inner.adopt(v.like())  # type: ignore[attr-defined]
        inner.block.arguments.append(mapping[id(v)])
    targets = [mapping[id(block.arguments[k])] for k in wanted]
    for v in targets:
        v.stop_gradient = False
    for op in block.ops:
        if op.name == "random_key":
            raise AutogradError(
                message(
                    "a branch or loop draws random numbers when it runs, and would draw others when its gradient is computed",
                    "it was recorded by jit.to_static, whose gradients are those of eager mode",
                    "call the function in eager mode, or record it as a part of this Program",
                )
            )
        copied = copy_recorded(op, tuple(mapping[id(v)] for v in op.inputs))
        for old, new in zip(op.outputs, copied.outputs, strict=True):
            mapping[id(old)] = inner.adopt(new)  # type: ignore[arg-type]
        reopen(copied)
        inner.block.ops.append(copied)
    given = [inner.adopt(v.like()) for v in kinds]
    inner.block.arguments += given
    roots = [mapping[id(block.results[k])] for k in present]
    with inner.active():
        found = append_gradients(inner, roots, given, targets)
        results = [zero_gradient(inner, t) if g is None else g for g, t in zip(found, targets, strict=True)]
    inner.block.results = tuple(results)
    return inner.block


def reopen(op: Op) -> None:
    """Let gradients flow from an Op's outputs that were constants only for lack of an operand with a gradient, now that one has one."""
    if any(not v.stop_gradient for v in op.inputs):  # type: ignore[attr-defined]
        for v in op.outputs:
            if v.was_constant:  # type: ignore[attr-defined]
                v.stop_gradient = False  # type: ignore[attr-defined]


def copy_recorded(op: Op, inputs: tuple[Any, ...]) -> Op:
    """The same recorded Op on other inputs, with outputs of its own."""
    new = Op(op.name, inputs, op.attributes, (), op.blocks, op.location, op.role, op.of)
    outputs = []
    for v in op.outputs:
        made = v.like()  # type: ignore[attr-defined]
        made.op, made.is_severed = new, v.is_severed  # type: ignore[attr-defined]
        outputs.append(made)
    new.outputs = tuple(outputs)
    return new


def copy_ops(recorder: Recorder, ops: Sequence[Op], known: dict[int, Any]) -> None:
    """Append copies of recorded Ops. ``known``: the Variables for what they take from elsewhere, by id; it gets those of their outputs."""
    for op in ops:
        if op.name == "random_key":
            known[id(op.outputs[0])] = recorder.random_key()
            continue
        copied = copy_recorded(op, tuple(known[id(v)] for v in op.inputs))
        for old, new in zip(op.outputs, copied.outputs, strict=True):
            new.name = recorder.fresh_name(op.name.rpartition(".")[2])
            known[id(old)] = recorder.adopt(new)  # type: ignore[arg-type]
        copied.role = recorder.role or copied.role
        reopen(copied)
        recorder.block.ops.append(copied)


def copy_block(recorder: Recorder, block: Block, arguments: Sequence[Any]) -> list[Any]:
    """Append copies of a closed block's Ops over these arguments; gives its results."""
    known = dict(zip(map(id, block.arguments), arguments, strict=True))
    copy_ops(recorder, block.ops, known)
    return [known[id(v)] for v in block.results]
