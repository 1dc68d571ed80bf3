"""The dispatcher's miss path: an operator call of a new signature becomes a Program, a Plan and an Entry of the runtime's cache."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import _rt
from ..autodiff.partition import Partition, partition
from ..base import dtypes, flags, nest
from ..base.collecting import paused_collector
from ..base.errors import ArgumentError, ArgumentTypeError, SampanError, describe, message
from ..base.locks import new_lock
from ..ir.builder import Builder, current_builder
from ..ir.program import Program, Value
from ..ir.rewrite import inline
from ..ops.define import REQUIRED, OpDef, Parameter, scalar_dtype
from .expander import RULES, Expander, OperandRule, current_rule, set_rule
from .inplace import check_inplace, rebinds
from .location import add_user_location, is_located, name_operator
from .recording import Recorder
from .watching import Watch


@dataclass(frozen=True)
class Context:
    """What tracing depends on beside the arguments. Interned to the number that the runtime keys signatures by."""

    default_float: str
    rule_key: Any = None
    watch: Watch | None = None
    flags: tuple[object, ...] = ()


_contexts: dict[Context, int] = {}
_contexts_lock = new_lock()
_watch: Watch | None = None


def set_operand_rule(key: Any, rule: OperandRule | None) -> None:
    """Trace this thread's operators with the rule from now on (None: without); ``key`` identifies it in signatures."""
    set_rule(key, rule)
    refresh_context()


def set_watch(watch: Watch | None) -> None:
    """Show the results of operators that are called from now on to the watch's observer; None: no more."""
    global _watch
    _watch = watch
    refresh_context()


def refresh_context() -> None:
    """Tell the runtime which context this thread is in."""
    context = Context(dtypes.default_float(), current_rule(), _watch, flags.key())
    with _contexts_lock:
        number = _contexts.setdefault(context, len(_contexts))
    _rt.set_context(number)


@dataclass(frozen=True)
class Traced:
    """A call as a Program: one input for each operand (tensors and scalars, in order), and the result's structure over its outputs."""

    program: Program
    structure: Any


def trace(definition: OpDef, args: Sequence[Any]) -> Traced:
    """The Program of a call with these arguments."""
    builder = Expander(definition.name)
    with builder.active():
        values = [_as_values(builder, parameter, value) for parameter, value in zip(definition.parameters, args, strict=True)]
        rule = None if definition.is_program else RULES.get(current_rule())
        if rule is not None:
            operands = iter(rule(definition, [v for v in nest.flatten(values) if isinstance(v, Value)]))
            values = nest.map_structure(lambda v: next(operands) if isinstance(v, Value) else v, values)
        result = definition.expand(values)
        if _watch is not None and not definition.is_program:
            result = _watch.on_result(definition, result, [v for v in nest.flatten(values) if isinstance(v, Value)])
    leaves = [v for v in nest.flatten(result) if v is not None]
    return Traced(builder.finish(*leaves), _structure(result))


def _as_values(builder: Builder, parameter: Parameter, value: Any) -> Any:
    if parameter.kind == "attr" or value is None:
        return value
    if parameter.kind == "tensors":
        return [None if v is None else _argument(builder, v) for v in value]
    return _argument(builder, value)


def _argument(builder: Builder, operand: Any) -> Value:
    scalar = scalar_dtype(operand)
    if scalar is not None:
        return builder.argument(scalar, (), weak=True)
    return builder.argument(operand.dtype.name, tuple(operand.shape))


def _structure(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        items = [_structure(r) for r in result]
        return ("tuple" if isinstance(result, tuple) else "list", len(items), *(items if any(items) else ()))
    return None


def operands_of(definition: OpDef, args: Sequence[Any]) -> list[Any]:
    """The tensors and scalars of a call, in order: what a Plan's inputs are."""
    found: list[Any] = []
    for parameter, value in zip(definition.parameters, args, strict=True):
        if parameter.kind == "tensors":
            found += value
        elif parameter.kind == "tensor" and value is not None:
            found.append(value)
    return found


def updated_operands(definition: OpDef, args: Sequence[Any]) -> dict[int, int]:
    """Output -> the operand it is written back into, for the operands that the definition updates."""
    found: dict[str, range] = {}
    at = 0
    for parameter, value in zip(definition.parameters, args, strict=True):
        if parameter.kind != "attr":
            count = len(value) if parameter.kind == "tensors" else int(value is not None)
            found[parameter.name] = range(at, at + count)
            at += count
    return dict(enumerate(k for name in definition.updates for k in found[name]))


def compile_program(program: Program, layouts: Sequence[Any], **options: Any) -> Any:
    """The Plan, as ``codegen.compile.compile_program`` gives it; the compiler and LLVM are loaded by the first one."""
    from ..codegen.compile import compile_program as compile_now

    return compile_now(program, layouts, **options)


def layout_of(operand: Any) -> Any:
    """The layout of a Plan's input for a tensor or a Python scalar."""
    scalar = scalar_dtype(operand)
    return operand.layout if scalar is None else _rt.Layout(scalar, (), ())


class Dispatcher:
    """One operator's public callable, and how its misses are served."""

    def __init__(self, definition: OpDef, inplace_name: str = "") -> None:
        self.definition = definition
        self.is_inplace = bool(inplace_name)
        self.op = make_op(definition, inplace_name, self.miss, self.static)

    def static(self, args: Sequence[Any]) -> Any:
        """The call on symbolic Values: appended to the Program being built."""
        builder = current_builder()
        if isinstance(builder, Expander):
            return builder.call(self.definition, args, self.is_inplace)
        if isinstance(builder, Recorder):
            return self._explained(lambda: builder.call(self.definition, args, self.is_inplace), args)
        if self.is_inplace:
            raise SampanError(
                f"{self.op.__name__}() writes in place, which a Program being built cannot express here; use {self.definition.name}()"
            )
        return self.definition.expand(args)

    def miss(self, args: Sequence[Any]) -> Any:
        """The Entry for a call of a new signature."""
        try:
            with paused_collector():  # a large Program is thousands of objects: walking them is up to a fifth of the time
                return self._entry(args)
        except SampanError as error:
            if self.definition.is_program and is_located(error):  # the statement has said what it is
                raise
            name_operator(error, self._name)
            self._add_received(error, args)
            add_user_location(error)
            raise

    @property
    def _name(self) -> str:
        """What the operator is called in messages."""
        return self.definition.title or _public_name(self.definition, self.op.__name__ if self.is_inplace else "")

    def _add_received(self, error: SampanError, args: Sequence[Any]) -> None:
        """Append what was received to an error's text that names none of the tensors."""
        given = [(p, v) for p, v in zip(self.definition.parameters, args, strict=True) if p.kind != "attr" or v != p.default]
        if self.definition.title:  # its settings are no arguments of the user's
            given = [(p, v) for p, v in given if p.kind != "attr" and v is not None]
        text = str(error)
        said = text.removeprefix(self.definition.title)
        if not any(re.search(rf"\b{re.escape(p.name)}\b", said) for p, v in given if p.kind != "attr" and v is not None):
            shown = ", ".join(f"{p.name} = {_received(v)}" for p, v in given if p.name != "key")
            error.args = (f"{text}\n  received: {shown}", *error.args[1:])

    def _entry(self, args: Sequence[Any]) -> Any:
        traced = self._trace(args)
        operands = operands_of(self.definition, args)
        target = self._target() if self.is_inplace else 0
        inplace = {0: target} if self.is_inplace else updated_operands(self.definition, args)
        is_rebound = self.is_inplace and rebinds(self.definition)
        program = traced.program
        if self.is_inplace and not is_rebound:
            check_inplace(self.op.__name__, self.definition, program.inputs[target], program.outputs[0])
            self._require_own_elements(operands[target])
        view = self.definition.is_view if not self.is_inplace else is_rebound
        return make_entry(program, traced.structure, operands, view, inplace, is_rebound)

    def _target(self) -> int:
        """The operand that an in-place form writes into."""
        target = self.definition.inplace_target
        before = itertools.takewhile(lambda p: p.name != target, self.definition.parameters) if target else ()
        return sum(p.kind == "tensor" for p in before)

    def _require_own_elements(self, target: Any) -> None:
        """Writing in place needs one place in memory for every element; an expanded tensor repeats some."""
        layout = layout_of(target)
        if any(step == 0 and size > 1 for size, step in zip(layout.shape, layout.strides, strict=True)):
            raise ArgumentError(
                message(
                    f"{self.op.__name__}(): x repeats elements in memory (shape {list(layout.shape)}, strides {list(layout.strides)})",
                    "writing one would change the others",
                    "call clone() on it first",
                )
            )

    def _trace(self, args: Sequence[Any]) -> Traced:
        return self._explained(lambda: trace(self.definition, args), args)  # type: ignore[no-any-return]

    def _explained(self, call: Callable[[], Any], args: Sequence[Any]) -> Any:
        """What the call gives; what the definition's mathematics raises for wrong arguments as an error about these."""
        try:
            return call()
        except SampanError:
            raise
        except (AttributeError, TypeError, StopIteration, AssertionError) as error:
            raise self._refused(ArgumentTypeError, args, error) from error
        except (ValueError, LookupError, ArithmeticError) as error:
            raise self._refused(ArgumentError, args, error) from error

    def _refused(self, kind: type[SampanError], args: Sequence[Any], error: Exception) -> SampanError:
        """The error for arguments that the definition's own checks let through and its mathematics cannot take."""
        given = zip(self.definition.parameters, args, strict=True)
        missing = next((p.name for p, v in given if p.kind == "tensor" and v is None and p.default is not None), None)
        if missing is not None:
            return ArgumentTypeError(message(f"{self.op.__name__}(): {missing} is None", "it must be a tensor or a number"))
        shown = ", ".join(f"{p.name}={describe(v)}" for p, v in zip(self.definition.parameters, args, strict=True))
        return kind(message(f"{self.op.__name__}({shown}): an argument has a type or value that it does not take", str(error)))


def _received(value: Any) -> str:
    if isinstance(value, (list, tuple)) and any(isinstance(v, (_rt.Tensor, Value)) for v in value):
        return f"[{', '.join(map(describe, value[:4]))}{', ...' if len(value) > 4 else ''}]"
    return describe(value)


def make_entry(
    program: Program,
    structure: Any,
    operands: Sequence[Any],
    view: bool = False,
    inplace: Mapping[int, int] | None = None,
    rebinds: bool = False,
) -> Any:
    """The runtime's Entry: the forward Plan, what backward needs of it, and how backward Plans are made.

    view: the first output shares memory with the first operand where strides can express it. inplace: output -> the operand that it replaces;
    ``rebinds``: by giving it another layout or memory, in place of writing into it.
    """
    written = {} if rebinds else dict(inplace or {})
    replaced = list((inplace or {}).items())
    result_count = len(program.outputs)
    wanted: tuple[int, ...] = ()
    if _rt.grad_enabled():
        wanted = tuple(
            k
            for k, t in enumerate(operands)
            if isinstance(t, _rt.Tensor) and not t.stop_gradient and dtypes.is_differentiable(t.dtype.name)
        )
    layouts = [layout_of(t) for t in operands]
    views = {0: 0} if view else {}
    differentiable = _depends_on(program, wanted)
    if not differentiable:
        plan = compile_program(program, layouts, view_outputs=views, inplace=written)
        return _rt.Entry(plan, structure, [], [], None, replaced)
    cut = partition(program, wanted)
    plan = compile_program(cut.forward, layouts, view_outputs=views, inplace=written)
    backward = Backward(cut, layouts, plan.output_layouts)
    entry = _rt.Entry(
        plan,
        structure,
        list(cut.saved),
        [k for k in differentiable if k < result_count],
        backward.make,
        replaced,
    )
    entry.backward_op = backward.recorded
    return entry


def _depends_on(program: Program, wanted: Sequence[int]) -> list[int]:
    """The outputs that carry gradients to the wanted inputs."""
    if not wanted:
        return []
    active = {id(program.inputs[k]) for k in wanted}
    for op in program.ops:
        if op.name != "detach" and any(id(v) in active for v in op.inputs):
            active.update(id(v) for v in op.outputs if dtypes.is_differentiable(v.dtype))
    return [k for k, v in enumerate(program.outputs) if id(v) in active]


class Backward:
    """Makes the backward Plans of one Entry."""

    def __init__(self, cut: Partition, input_layouts: Sequence[Any], output_layouts: Sequence[Any]) -> None:
        self.cut = cut
        self.watch = _watch
        self.saved_layouts = [input_layouts[k] if where == "input" else output_layouts[k] for where, k in cut.saved]

    def _program(self, grad_mask: int) -> tuple[Program, tuple[int, ...]]:
        program, targets = self.cut.backward([bool(grad_mask >> k & 1) for k in range(len(self.cut.forward.outputs))])
        return (self.watch.on_gradients(program, self.cut.forward.name) if self.watch else program), targets

    def make(self, grad_mask: int, grad_layouts: Sequence[Any]) -> Any:
        """The BackwardPlan for the outputs' gradients that the mask's bits name, of these layouts."""
        program, targets = self._program(grad_mask)
        plan = compile_program(program, [*self.saved_layouts, *grad_layouts], shared_from=len(self.saved_layouts))
        return _rt.BackwardPlan(plan, list(targets))

    def recorded(self, grad_mask: int) -> tuple[Any, list[int]]:
        """The same as an operator over the saved tensors and the present gradients, so that it is recorded itself; and its targets."""
        program, targets = self._program(grad_mask)
        return _program_op(program), list(targets)


def _program_op(program: Program) -> Any:
    def body(*operands: Value) -> tuple[Value, ...]:
        builder = current_builder()
        values = {id(v): p for v, p in zip(program.inputs, operands, strict=True)}
        inline(builder, program.body, values)  # type: ignore[arg-type]
        return tuple(values[id(v)] for v in program.outputs)

    parameters = tuple(Parameter(f"operand_{k}", "tensor") for k in range(len(program.inputs)))
    return Dispatcher(OpDef(program.name, body, parameters, ())).op


def _public_name(definition: OpDef, inplace_name: str) -> str:
    """The name that users call it by; its own where it has none."""
    return inplace_name or (definition.api[0].rpartition(".")[2] if definition.api else definition.name)


def make_op(
    definition: OpDef, inplace_name: str, miss: Callable[[Sequence[Any]], Any], static: Callable[[Sequence[Any]], Any]
) -> Any:
    """The runtime's callable with the definition's parameters, documentation and signature."""
    parameters = [
        (
            p.name,
            "variadic" if p.is_variadic else "rest" if p.takes_rest else p.kind,
            _rt.REQUIRED if p.default is REQUIRED else p.default,
            p.is_keyword_only,
        )
        for p in definition.parameters
    ]
    name = inplace_name or definition.name
    op = _rt.Op(_public_name(definition, inplace_name), parameters, lambda op, args: miss(args), definition.aliases)
    op.__name__ = op.__qualname__ = name
    op.static = lambda op, args: static(args)
    op.takes_positional_out = definition.takes_positional_out and name not in definition.inplace
    op.__doc__ = definition.body.__doc__
    op.definition = definition
    return op


def _signature(op: Any) -> inspect.Signature:
    parameters = op.definition.parameters
    is_variadic = any(p.is_variadic for p in parameters)
    named, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    positional = [
        inspect.Parameter(p.name, inspect.Parameter.VAR_POSITIONAL)
        if p.is_variadic
        else inspect.Parameter(p.name, named, default=p.default)
        for p in parameters
        if not p.is_keyword_only
    ]
    keywords = [inspect.Parameter(p.name, by_name, default=p.default) for p in parameters if p.is_keyword_only]
    name = inspect.Parameter("name", by_name if is_variadic else named, default=None)
    if op.__name__ in op.definition.inplace:
        return inspect.Signature([*positional, name, *keywords])
    if op.takes_positional_out:
        return inspect.Signature([*positional, inspect.Parameter("out", named, default=None), name, *keywords])
    return inspect.Signature([*positional, name, *keywords, inspect.Parameter("out", by_name, default=None)])


_rt.Op.__signature__ = property(_signature)  # made when asked for: there are hundreds of operators
