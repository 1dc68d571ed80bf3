"""Running recorded Programs: straight lines of Ops as compiled operators, control flow and what depends on data between them.

Each compiled piece is an operator of the eager runtime: its calls go through the signature cache, so that other sizes make another Plan over the
kernels that are there already, and the tape records it where gradients are wanted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from .. import _rt
from ..base.errors import AutogradError, message
from ..base.locks import new_lock
from ..ir.builder import current_builder, no_builder
from ..ir.program import Block, Op, Value
from ..ops import primitives as p
from ..ops.define import CONTROL_STATEMENTS, OpDef, Parameter, operator_named
from .arrays import TensorArray
from .autocast import current_precision, set_precision
from .autograd import grad
from .build import OPS
from .dispatch import Dispatcher
from .location import add_origin, origin_of
from .program_gradients import CARRIED, copy_ops
from .random import default_generator
from .recording import Recorder, current_recorder
from .replay import DYNAMIC, EFFECT, FORWARD, FUNCTIONS, PRECISION, PRESENT, WANTED, Operand, Replay, map_attribute
from .sizes import with_sizes

Environment = dict[int, Any]
Step = Callable[[Environment], None]


class Runner:
    """A block of recorded Ops, ready to run.

    Args:
        block: its arguments are the inputs, its results the outputs.
        updates: (number of an argument, what it becomes): written back in place.
        name: goes into profiles.
        frozen: arguments, by number, that are these tensors for good: their elements become part of the compiled pieces, weights packed and what
            depends on them alone computed once.
    """

    def __init__(
        self,
        block: Block,
        updates: Sequence[tuple[int, Value]] = (),
        name: str = "program",
        frozen: Mapping[int, Any] | None = None,
    ) -> None:
        self.block = block
        self._frozen = {id(block.arguments[k]): t for k, t in (frozen or {}).items()}
        self.updates = [(k, v) for k, v in updates if v is not block.arguments[k]]
        self.name = name
        self._steps: list[Step] | None = None
        self._lock = new_lock()
        self._written: set[int] = set()
        #: The compiled operator and the numbers of the arguments it takes, when its results are the block's; known once the steps are.
        self.whole: tuple[Any, list[int]] | None = None

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The results for these inputs: tensors, or numbers for weak arguments. Where a Program is being recorded, the block's Ops become part of it."""
        recorder = current_recorder()
        if recorder is not None:
            return self._record(recorder, inputs)
        steps = self._steps
        if steps is None:
            with self._lock:
                steps = self._steps = self._steps or self._build()
        environment: Environment = {id(v): t for v, t in zip(self.block.arguments, inputs, strict=True)}
        if current_builder() is None:
            return self._run(steps, environment, inputs)
        was_tracing = _rt.set_tracing(False)
        try:
            with no_builder():
                return self._run(steps, environment, inputs)
        finally:
            _rt.set_tracing(was_tracing)

    def _record(self, recorder: Recorder, inputs: Sequence[Any]) -> list[Any]:
        known: dict[int, Any] = {id(v): recorder.operand(t) for v, t in zip(self.block.arguments, inputs, strict=True)}
        copy_ops(recorder, self.block.ops, known)
        for k, v in self.updates:
            recorder.write(recorder.variable_of(inputs[k]), known[id(v)])
        return [known[id(v)] for v in self.block.results]

    def _run(self, steps: Sequence[Step], environment: Environment, inputs: Sequence[Any]) -> list[Any]:
        for step in steps:
            step(environment)
        for k, v in self.updates:
            if k not in self._written:
                _overwrite(inputs[k], environment[id(v)])
        return [environment[id(v)] for v in self.block.results]

    # ------------------------------------------------------------------ steps

    def _build(self) -> list[Step]:
        pieces = self._pieces()
        needed_after: list[set[int]] = []
        needed = {id(v) for v in self.block.results} | {id(v) for _, v in self.updates}
        for piece in reversed(pieces):
            needed_after.append(set(needed))
            needed.update(id(v) for op in piece for v in op.inputs)
        needed_after.reverse()
        position = {id(v): n for n, piece in enumerate(pieces) for op in piece for v in op.outputs}
        counts = Counter(id(v) for _, v in self.updates)
        last_reads = self._last_reads(pieces)
        steps: list[Step] = []
        for n, piece in enumerate(pieces):
            if piece[0].name in CONTROL_STATEMENTS:
                steps.append(CONTROL_STEPS[piece[0].name](piece[0]))
            elif _runs_at_once(piece[0]):
                steps.append(_dynamic_gradient_step(piece[0]) if FORWARD in piece[0].attributes else _dynamic_step(piece[0]))
            else:
                own = [
                    (k, v)
                    for k, v in self.updates
                    if position.get(id(v)) == n
                    and last_reads.get(k, -1) <= n
                    and counts[id(v)] == 1
                    and not getattr(self.block.arguments[k], "is_rebound", False)
                ]
                self._written.update(k for k, _ in own)
                steps.append(
                    self._compiled_step(piece, needed_after[n], own, f"{self.name}_{n}" if len(pieces) > 1 else self.name)
                )
        return steps

    def _pieces(self) -> list[list[Op]]:
        """The Ops in lists that run one after the other."""
        return straight_pieces(self.block.ops)

    def _last_reads(self, pieces: list[list[Op]]) -> dict[int, int]:
        """The last piece that reads each argument, by the argument's number; after all of them for one that is a result."""
        numbers = {id(v): k for k, v in enumerate(self.block.arguments)}
        found = {numbers[id(v)]: n for n, piece in enumerate(pieces) for op in piece for v in op.inputs if id(v) in numbers}
        return found | {numbers[id(v)]: len(pieces) for v in self.block.results if id(v) in numbers}

    def _compiled_step(self, ops: list[Op], needed: set[int], updates: list[tuple[int, Value]], name: str) -> Step:
        call, operands, results = self._compiled(ops, needed, updates, name)
        if not self.updates and len(ops) == len(self.block.ops) and list(map(id, results)) == list(map(id, self.block.results)):
            numbers = {id(v): k for k, v in enumerate(self.block.arguments)}
            self.whole = call, [numbers[id(v)] for v in operands]
        return calling_step(call, len(updates), [id(v) for v in operands], [id(v) for v in results])

    def _compiled(
        self, ops: list[Op], needed: set[int], updates: list[tuple[int, Value]], name: str
    ) -> tuple[Any, list[Value], list[Value]]:
        """The operator that the Ops become, its operands (those that it updates come first), and its results."""
        ops = with_sizes(ops)
        made = {id(v) for op in ops for v in op.outputs}
        inputs: dict[int, Value] = {}
        for op in ops:
            for v in op.inputs:
                if id(v) not in made:
                    inputs[id(v)] = v
        targets = [self.block.arguments[k] for k, _ in updates]
        for v in targets:
            inputs[id(v)] = v
        written = {id(v) for _, v in updates}
        returned = {id(v) for v in self.block.results}
        results = [v for op in ops for v in op.outputs if id(v) in needed and (id(v) not in written or id(v) in returned)]
        targets_ids = {id(v) for v in targets}
        frozen = {k: self._frozen[k] for k in inputs if k in self._frozen and k not in targets_ids}
        operands = [*targets, *(v for k, v in inputs.items() if k not in targets_ids and k not in frozen)]

        def body(updated: list[Value], others: list[Value]) -> tuple[Value, ...]:
            values = [*updated, *others]
            for value, operand in zip(values, operands, strict=True):
                value.weak = operand.weak
            known = dict(zip(map(id, operands), values, strict=True))
            known |= {k: p.literal(t.numpy_view()) for k, t in frozen.items()}
            replay = Replay(current_builder(), known)  # type: ignore[arg-type]
            replay.run(ops)
            return tuple(replay.values[id(v)] for v in (*(v for _, v in updates), *results))

        body.__doc__ = f"A compiled piece of {self.name}."
        parameters = (Parameter("updated", "tensors"), Parameter("others", "tensors"))
        call = Dispatcher(OpDef(name, body, parameters, (), updates=("updated",), is_program=True)).op
        return call, operands, results


def calling_step(call: Any, count: int, keys: list[int], result_keys: list[int]) -> Step:
    """The step that calls a compiled operator, whose first ``count`` operands are updated."""

    def step(environment: Environment) -> None:
        values = [environment[k] for k in keys]
        try:
            found = call(values[:count], values[count:])
        except Exception as error:
            explain_failure(error)
            raise
        for key, tensor in zip(result_keys, found[count:], strict=True):
            environment[key] = tensor

    return step


def explain_failure(error: Exception) -> None:
    """Let an error of a compiled piece name the statement that it comes from."""
    origin = _rt.take_failure()
    if origin:
        add_origin(error, origin)


def _overwrite(target: Any, new: Any) -> None:
    """Give the tensor new elements; one of another Program, of another type under the same name, becomes this type."""
    if _rt.grad_enabled() and not target.stop_gradient:
        raise AutogradError(
            message(
                f"{target.name or 'a tensor'} ({target.dtype.name}{list(target.shape)}), which wants a gradient, is written in place by a Program",
                "its value from before is what the gradient belongs to",
                "write into a copy of it, or under paddle.no_grad()",
            )
        )
    with NoGradient():
        if tuple(target.shape) == tuple(new.shape) and target.dtype == new.dtype:
            _rt.copy_into(target, new)
        else:
            _rt.rebind(target, new)


class NoGradient:
    """Inside, nothing is recorded for gradients."""

    def __enter__(self) -> None:
        self.old = _rt.set_grad_enabled(False)

    def __exit__(self, *error: Any) -> None:
        _rt.set_grad_enabled(self.old)


def _runs_at_once(op: Op) -> bool:
    return DYNAMIC in op.attributes


def is_compiled(piece: Sequence[Op]) -> bool:
    """Whether the piece runs as one compiled Program, not by itself between them."""
    return piece[0].name not in CONTROL_STATEMENTS and not _runs_at_once(piece[0])


def straight_pieces(ops: Sequence[Op]) -> list[list[Op]]:
    """The Ops in order, those that are compiled together in one list; keys are drawn before the piece that uses them."""
    pieces: list[list[Op]] = []
    straight: list[Op] = []
    for op in ops:
        if op.name == "random_key":
            pieces.append([op])
        elif op.name in CONTROL_STATEMENTS or _runs_at_once(op):
            if straight:
                pieces.append(straight)
                straight = []
            pieces.append([op])
        else:
            straight.append(op)
    return [*pieces, straight] if straight else pieces


def live_ops(ops: Sequence[Op], wanted: Sequence[Value], given: Collection[int] = ()) -> list[Op]:
    """The Ops that the wanted Values depend on, and those that act outside; Values whose ids are given need none."""
    needed = {id(v) for v in wanted if id(v) not in given}
    kept = []
    for op in reversed(ops):
        if any(id(v) in needed for v in op.outputs) or has_effect(op):
            kept.append(op)
            needed.update(id(v) for v in op.inputs if id(v) not in given)
    return kept[::-1]


def has_effect(op: Op) -> bool:
    """Whether the Op, or one inside its blocks, acts outside of the Program."""
    return bool(op.attributes.get(EFFECT)) or any(has_effect(inner) for block in op.blocks for inner in block.ops)


# ---------------------------------------------------------------------- steps that are no compiled piece


def _key_step(op: Op) -> Step:
    key = id(op.outputs[0])

    def step(environment: Environment) -> None:
        environment[key] = default_generator.next_key()

    return step


def _initialize_step(op: Op) -> Step:
    """A persistable Variable's first value, by an initializer of ``nn.initializer``."""
    made = op.outputs[0]
    key, shape, dtype, initializer = id(made), made.sizes, made.dtype, op.attributes["initializer"]  # type: ignore[attr-defined]

    def step(environment: Environment) -> None:
        tensor = _rt.empty(list(shape), str(dtype))
        tensor.name = made.name
        initializer(tensor)
        environment[key] = tensor

    return step


def _cond_step(op: Op) -> Step:
    branches = [Runner(block, name=f"{op.name}_branch") for block in op.blocks]
    condition, *captured = [id(v) for v in op.inputs]
    results = [id(v) for v in op.outputs]

    def step(environment: Environment) -> None:
        branch = branches[0] if bool(environment[condition]) else branches[1]
        environment.update(zip(results, branch([environment[k] for k in captured]), strict=True))

    return step


def _while_step(op: Op) -> Step:
    condition, body = (Runner(block, name=f"while_{what}") for block, what in zip(op.blocks, ("condition", "body"), strict=True))
    count = op.attributes[CARRIED]
    inputs = [id(v) for v in op.inputs]
    results = [id(v) for v in op.outputs]

    def step(environment: Environment) -> None:
        values = [environment[k] for k in inputs]
        carried, captured = values[:count], values[count:]
        while bool(condition([*carried, *captured])[0]):
            carried = body([*carried, *captured])
        environment.update(zip(results, carried, strict=True))

    return step


def _zeros_like(value: Any) -> Any:
    return TensorArray() if isinstance(value, TensorArray) else OPS["zeros_like"](value)


def _while_grad_step(op: Op) -> Step:
    names = ("condition", "body", "gradient")
    condition, body, gradient = (Runner(block, name=f"while_{what}") for block, what in zip(op.blocks, names, strict=True))
    count, through = op.attributes[CARRIED], op.attributes["through"]
    total = len(op.inputs) - len(op.attributes[PRESENT])
    inputs = [id(v) for v in op.inputs]
    places = {k: n for n, k in enumerate(through)}
    captures = [k for k in op.attributes[WANTED] if k >= count]

    def step(environment: Environment) -> None:
        values = [environment[k] for k in inputs]
        carried, captured, given = values[:count], values[count:total], values[total:]
        history = []
        while bool(condition([*carried, *captured])[0]):
            history.append(carried)
            carried = body([*carried, *captured])
        known = dict(zip(op.attributes[PRESENT], given, strict=True))
        flowing = [known[k] if k in known else _zeros_like(carried[k]) for k in through]
        sums: list[Any] = [None] * len(captures)
        for state in reversed(history):
            found = gradient([*state, *captured, *flowing])
            flowing, parts = found[: len(through)], found[len(through) :]
            sums = [part if old is None else old + part for old, part in zip(sums, parts, strict=True)]
        totals = dict(zip(captures, sums, strict=True))
        for k, v in zip(op.attributes[WANTED], op.outputs, strict=True):
            found_k = flowing[places[k]] if k in places else totals.get(k)
            environment[id(v)] = _zeros_like(values[k]) if found_k is None else found_k

    return step


#: What makes the step of a statement, by the statement's name.
CONTROL_STEPS: dict[str, Callable[[Op], Step]] = {
    "random_key": _key_step,
    "cond": _cond_step,
    "while": _while_step,
    "while_grad": _while_grad_step,
    "initialize": _initialize_step,
}


def _run_at_once(op: Op, name: str, values: list[Any]) -> list[Any]:
    """The results of a call that depends on data, under the precision that it was recorded under; an error names the statement."""
    outer = current_precision()
    set_precision(op.attributes.get(PRECISION))
    try:
        return _call_at_once(op, name, values)
    except Exception as error:
        add_origin(error, origin_of(name, op.location))
        raise
    finally:
        set_precision(outer)


def _call_at_once(op: Op, name: str, values: list[Any]) -> list[Any]:
    own = {k: v for k, v in op.attributes.items() if not k.startswith("@")}
    function = FUNCTIONS.get(name)
    if function is not None:
        arguments = map_attribute(own, lambda v: values[v.index] if isinstance(v, Operand) else v)
        result = function.function(**arguments)
    else:
        definition = operator_named(name)
        if definition is None:
            raise ValueError(f"no operator is called {name!r}")
        own = map_attribute(own, lambda v: _number(values[v.index]) if isinstance(v, Operand) else v)
        tensors = values[: len(values) - op.attributes[DYNAMIC]]
        result = OPS[definition.name](*definition.arguments(Op(name, (), own), tensors))
    return [result] if isinstance(result, _rt.Tensor) else list(result)


def _number(tensor: Any) -> Any:
    return tensor if not isinstance(tensor, _rt.Tensor) else tensor.item() if tensor.size == 1 else tuple(tensor.tolist())


def _dynamic_step(op: Op) -> Step:
    inputs, results = [id(v) for v in op.inputs], [id(v) for v in op.outputs]

    def step(environment: Environment) -> None:
        found = _run_at_once(op, op.name, [environment[k] for k in inputs])
        environment.update(zip(results, found, strict=True))

    return step


def _is_open(value: Any) -> bool:
    return isinstance(value, _rt.Tensor) and not value.stop_gradient


def _dynamic_gradient_step(op: Op) -> Step:
    """The gradient of a call that depends on data: the call again, on the tape."""
    attributes = op.attributes
    count = attributes["@count"]
    inputs, results = [id(v) for v in op.inputs], [id(v) for v in op.outputs]
    has_gradient = any(not v.stop_gradient for v in op.outputs)  # type: ignore[attr-defined]

    def step(environment: Environment) -> None:
        values = [environment[k] for k in inputs]
        is_tracked = _rt.grad_enabled() and has_gradient
        leaves = [v if is_tracked and _is_open(v) else v.detach() if isinstance(v, _rt.Tensor) else v for v in values[:count]]
        wanted = [leaves[k] for k in attributes[WANTED]]
        for v in wanted:
            if v.stop_gradient:
                v.stop_gradient = False
        old = _rt.set_grad_enabled(True)
        try:
            outputs = _run_at_once(op, attributes[FORWARD], leaves)
            found = grad(
                [outputs[k] for k in attributes[PRESENT]], wanted, values[count:], create_graph=is_tracked, allow_unused=True
            )
        finally:
            _rt.set_grad_enabled(old)
        for key, g, v in zip(results, found, wanted, strict=True):
            environment[key] = OPS["zeros_like"](v.detach()) if g is None else g

    return step
