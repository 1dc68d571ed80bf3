"""Program: what ``paddle.static`` builds, an ordered list of statements over named Variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from .. import _rt
from ..base.errors import ArgumentError, ArgumentTypeError, UnsupportedError, message
from ..base.modes import in_dynamic_mode, set_dynamic_mode
from ..base.places import parse_place
from ..ir.builder import no_builder, set_outermost
from ..ir.program import Block as OpBlock
from ..ir.program import Op
from .program_block import ProgramBlock
from .program_text import print_recorded
from .recording import Recorder
from .replay import FUNCTIONS, WRITES, Operand, map_attribute
from .scope import Scope, global_scope
from .variable import Variable


class ParameterVariable(Variable):
    """A trained Variable of a Program. Its attributes are those of ``Parameter``."""

    def __init__(self, dtype: str, shape: Sequence[int], name: str, trainable: bool = True) -> None:
        super().__init__(dtype, shape, name, stop_gradient=not trainable, persistable=True)
        self.optimize_attr = {"learning_rate": 1.0}
        self.regularizer: Any = None
        self.do_model_average: Any = None
        self.need_clip = True
        self.is_distributed = False

    @property
    def trainable(self) -> bool:
        """Whether it is trained."""
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.stop_gradient = not value

    def like(self, name: str = "") -> Variable:
        """A new plain Variable of its type."""
        return Variable(self.dtype, self.sizes, name or self.name, stop_gradient=self.stop_gradient)


@dataclass
class Schedule:
    """Numbers that every run of a Program is given afresh: an optimizer's step sizes. ``advance`` gives them, in the order of ``variables``.
    Both functions are told the scope that the run is over, if any.

    settle: is called after the run: what ``advance`` moved on goes back where the run made no step.
    """

    variables: list[Variable]
    advance: Callable[[Scope | None], list[float]]
    optimizer: Any = None
    settle: Callable[[Scope | None], None] | None = None


@dataclass(eq=False)
class Program:
    """Statements over Variables, in order, with nested blocks for control flow.

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main = paddle.static.Program()
        >>> with paddle.static.program_guard(main):
        ...     x = paddle.static.data("x", [None, 2], "float32")
        ...     y = x * 2
        >>> main.num_blocks
        1
        >>> paddle.disable_static()
    """

    random_seed: int = 0
    recorder: Recorder = field(default_factory=lambda: Recorder("program"))
    variables: dict[str, Variable] = field(default_factory=dict)
    schedules: list[Schedule] = field(default_factory=list)

    def __post_init__(self) -> None:
        #: Runners by what they are asked for; see Executor.
        self.runners: dict[Any, Any] = {}
        self.recorder.program = self

    # ------------------------------------------------------------------ Variables

    def add(self, variable: Variable, is_input: bool = True) -> Variable:
        """Make the Variable one of the Program's, under its name."""
        known = self.variables.get(variable.name)
        if known is not None and known is not variable:
            raise ArgumentError(
                message(f"the Program has a Variable {variable.name!r} already", "names are unique", "give it another name")
            )
        self.variables[variable.name] = self.recorder.adopt(variable)
        if is_input:
            self.recorder.block.arguments.append(variable)
        return variable

    def find(self, name: str) -> Variable | None:
        """The Variable of this name, in the outermost block; None when there is none."""
        found = self.variables.get(name)
        if found is None:
            for op in self.recorder.block.ops:
                for v in op.outputs:
                    if v.name == name:
                        return v  # type: ignore[return-value]
            for _, v in self.recorder.tensors.values():
                if v.name == name:
                    return v
        return found

    def var(self, name: str) -> Variable:
        """The Variable of this name.

        Raises:
            ArgumentError: there is none.
        """
        found = self.find(name)
        if found is None:
            raise ArgumentError(
                message(f"the Program has no Variable {name!r}", f"it has {', '.join(list(self.variables)[:20]) or 'none'}")
            )
        return found

    def list_vars(self) -> Iterator[Variable]:
        """Every Variable of every block."""
        yield from self.recorder.block.arguments  # type: ignore[misc]

        def walk(block: OpBlock) -> Iterator[Any]:
            for op in block.ops:
                yield from op.outputs
                for inner in op.blocks:
                    yield from inner.arguments
                    yield from walk(inner)

        yield from walk(self.recorder.block)

    def all_parameters(self) -> list[Any]:
        """The trained Variables, and captured Parameters."""
        own = [v for v in self.variables.values() if isinstance(v, ParameterVariable)]
        return own + [v for t, v in self.recorder.tensors.values() if hasattr(t, "trainable")]

    def updates(self) -> list[tuple[Variable, Variable]]:
        """Persistable Variables that the Program writes, and what they become."""
        held = [
            *self.variables.values(),
            *(v for t, v in self.recorder.tensors.values() if id(t) not in self.recorder.temporaries),
        ]
        versions = self.recorder.versions
        return [(v, versions[id(v)]) for v in held if v.persistable and id(v) in versions]

    def current(self, variable: Variable) -> Variable:
        """What the Variable is at the Program's end."""
        return self.recorder.versions.get(id(variable), variable)

    # ------------------------------------------------------------------ blocks

    @property
    def num_blocks(self) -> int:
        """How many blocks it has, nested ones counted."""
        return len(self.blocks)

    @property
    def blocks(self) -> list[ProgramBlock]:
        """All blocks, the outermost first."""
        found = [(self.recorder.block, -1)]
        for number, (block, _) in enumerate(found):
            found.extend((inner, number) for op in block.ops for inner in op.blocks)
        return [ProgramBlock(self, block, k, parent) for k, (block, parent) in enumerate(found)]

    def block(self, index: int) -> ProgramBlock:
        """The block of this number."""
        return self.blocks[index]

    def global_block(self) -> ProgramBlock:
        """The outermost block."""
        return ProgramBlock(self, self.recorder.block, 0)

    current_block = global_block

    def num_ops(self) -> int:
        """How many statements it has, those of nested blocks counted."""
        return sum(len(block.ops) for block in self.blocks)

    def parameters_num(self) -> int:
        """How many trained Variables it has."""
        return len(self.all_parameters())

    def get_all_parameter_values(self, scope: Any = None) -> dict[str, Any]:
        """The trained Variables' tensors by name."""
        return self.state_dict("param", scope)

    def get_output_value_by_name(self, name: str) -> Variable:
        """The Variable of this name."""
        return self.var(name)

    def get_value_by_op_id(self, op_id: int) -> list[Any]:
        """The Variables that the outermost block's statement of this number makes."""
        ops = self.recorder.block.ops
        if isinstance(op_id, bool) or not isinstance(op_id, int) or not 0 <= op_id < len(ops):
            raise ArgumentError(message(f"get_value_by_op_id(): op_id={op_id!r}", f"the Program has {len(ops)} statements"))
        return list(ops[op_id].outputs)

    def global_seed(self, seed: int) -> None:
        """Start the Program's random numbers from this seed."""
        self.random_seed = seed

    def set_parameters_from(self, other: Program, scope: Any = None) -> None:
        """Give the trained Variables, in this scope, the values that another Program's have in the global one, by name."""
        self.set_state_dict(other.state_dict("param"), scope)

    def set_is_test_attr(self) -> None:
        """Raises UnsupportedError: a Program is not changed by that."""
        raise UnsupportedError(
            message(
                "Program.set_is_test_attr()", "a Program keeps the statements that it was built of", "use clone(for_test=True)"
            )
        )

    def copy_to_block(self, mapping: Any, block: Any) -> None:
        """Raises UnsupportedError: Programs are copied whole."""
        raise UnsupportedError(
            message("Program.copy_to_block()", "a block has names of its own", "use clone(), or build both parts in one Program")
        )

    def get_parameter_value_by_name(self, name: str, scope: Any = None) -> Any:
        """The tensor of a trained Variable."""
        return self.tensor_of(self.var(name), scope or global_scope())

    # ------------------------------------------------------------------ text

    def __str__(self) -> str:
        return self.to_string()

    __repr__ = __str__

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The Program as text: its Variables and statements, one on a line; ``with_details``: also where each was written."""
        return print_recorded(self.recorder.block, self.variables.values(), with_details)

    # ------------------------------------------------------------------ copies

    def clone(self, for_test: bool = False) -> Program:
        """A copy with Variables of the same names.

        Args:
            for_test: without gradients and optimizer; dropout, batch norm and their like compute as in evaluation.
        """
        return copy_program(self, lambda op: not (for_test and op.role), for_test)

    def prune(self, targets: Sequence[Any]) -> Program:
        """A copy with only those statements that the targets (Variables or names) depend on."""
        wanted = [self.current(self.var(t if isinstance(t, str) else t.name)) for t in targets]
        needed = {id(v) for v in wanted}
        kept = set()
        for op in reversed(self.recorder.block.ops):
            if any(id(v) in needed for v in op.outputs):
                kept.add(id(op))
                needed.update(id(v) for v in op.inputs)
        pruned = copy_program(self, lambda op: id(op) in kept, False)
        used = {id(v) for op in pruned.recorder.block.ops for v in op.inputs} | {id(pruned.var(v.name)) for v in wanted}
        pruned.recorder.block.arguments = [v for v in pruned.recorder.block.arguments if id(v) in used]
        pruned.variables = {n: v for n, v in pruned.variables.items() if id(v) in used or v.op is not None}
        return pruned

    def state_dict(self, mode: str = "all", scope: Any = None) -> dict[str, Any]:
        """The persistable Variables' tensors by name.

        Args:
            mode: "all"; "param": those that are trained; "opt": the others.
            scope: where they are; the global scope by default.
        """
        if mode not in ("all", "param", "opt"):
            raise ArgumentError(message(f"Program.state_dict(): mode={mode!r}", "it must be 'all', 'param' or 'opt'"))
        place = scope or global_scope()
        found = {}
        for v in self.list_vars():
            is_parameter = isinstance(v, ParameterVariable)
            if v.persistable and v.op is None and (mode == "all" or (mode == "param") == is_parameter):
                held = self.tensor_of(v, place)
                if held is not None:
                    found[v.name] = held
        return found

    def set_state_dict(self, state_dict: dict[str, Any], scope: Any = None) -> None:
        """Give persistable Variables the values of this dict, by name."""
        place = scope or global_scope()
        for name, value in state_dict.items():
            found = self.find(name)
            if found is not None and found.persistable:
                held = self.tensor_of(found, place)
                if held is None:
                    place.put(name, value if isinstance(value, _rt.Tensor) else _rt.from_numpy(value, True))
                else:
                    held.set_value(value)

    def tensor_of(self, variable: Variable, scope: Any) -> Any:
        """The tensor that holds a persistable Variable's value; None while it has none."""
        for tensor, v in self.recorder.tensors.values():
            if v is variable:
                return tensor
        return scope.get(variable.name)


def copy_program(source: Program, keep: Callable[[Op], bool], for_test: bool) -> Program:
    """A Program with copies of the statements that are kept."""
    made = Program(source.random_seed)
    old, new = source.recorder, made.recorder
    new._name_counts = dict(old._name_counts)
    new.temporaries = set(old.temporaries)
    mapping: dict[int, Variable] = {}

    def copied(v: Any) -> Variable:
        found = mapping.get(id(v))
        if found is None:
            if isinstance(v, ParameterVariable):
                found = ParameterVariable(v.dtype, v.sizes, v.name, v.trainable)
                for name in ("optimize_attr", "regularizer", "do_model_average", "need_clip", "is_distributed"):
                    setattr(found, name, getattr(v, name))
            else:
                found = v.like()
                found.persistable, found.is_severed = v.persistable, v.is_severed
            found.is_rebound = v.is_rebound
            mapping[id(v)] = new.adopt(found)
        return found

    new.block.arguments = [copied(v) for v in old.block.arguments]
    made.variables = {name: copied(v) for name, v in source.variables.items()}
    new.tensors = {k: (t, copied(v)) for k, (t, v) in old.tensors.items()}
    ops: dict[int, Op] = {}
    for op in old.block.ops:
        if not keep(op):
            continue
        inputs = tuple(copied(v) for v in op.inputs)
        if for_test and op.attributes.get("training") is True and op.name in FUNCTIONS:
            _append_evaluation(new, op, inputs, mapping)
            continue
        twin = Op(
            op.name, inputs, op.attributes, (), op.blocks, op.location, op.role, ops.get(id(op.of)) if op.of is not None else None
        )
        twin.outputs = tuple(copied(v) for v in op.outputs)
        for v in twin.outputs:
            v.op = twin
        ops[id(op)] = twin
        new.block.ops.append(twin)
    if for_test:
        used = {id(v) for op in new.block.ops for v in op.inputs}
        new.block.ops[:] = [op for op in new.block.ops if op.name != "random_key" or id(op.outputs[0]) in used]
    produced = {id(v) for v in new.block.arguments} | {id(v) for op in new.block.ops for v in op.outputs}
    made_here = (v for op in old.block.ops for v in op.outputs)
    for handle in (*source.variables.values(), *(v for _, v in old.tensors.values()), *made_here):
        current, twin_handle = old.versions.get(id(handle)), mapping.get(id(handle))
        if current is not None and twin_handle is not None and id(mapping.get(id(current))) in produced:
            new.versions[id(twin_handle)] = twin_handle.latest = mapping[id(current)]
    if not for_test:
        made.schedules = [replace(s, variables=[copied(v) for v in s.variables]) for s in source.schedules]
    return made


def _append_evaluation(recorder: Recorder, op: Op, inputs: tuple[Variable, ...], mapping: dict[int, Variable]) -> None:
    """The Op as it computes outside of training, where it writes nothing; its outputs stand for the old ones."""
    attributes = {k: v for k, v in op.attributes.items() if k != WRITES} | {"training": False}
    used = 0

    def count(value: Any) -> Any:
        nonlocal used
        used = max(used, value.index + 1) if isinstance(value, Operand) else used
        return value

    map_attribute({k: v for k, v in attributes.items() if not k.startswith("@")}, count)
    with recorder.active():
        twin, _ = recorder._append(op.name, inputs[:used], attributes)
    written = [inputs[k] for k in op.attributes.get(WRITES, ())]
    for old, new in zip(op.outputs, (*twin.outputs, *written), strict=True):
        mapping[id(old)] = new  # type: ignore[assignment]
        if new.op is twin:
            new.name = old.name


# ---------------------------------------------------------------------- the Programs that are being built


class _Defaults:
    def __init__(self) -> None:
        self.main, self.startup = Program(), Program()


_defaults = _Defaults()


def default_main_program() -> Program:
    """The Program that operators are appended to."""
    return _defaults.main


def default_startup_program() -> Program:
    """The Program that initialises parameters."""
    return _defaults.startup


def switch_main_program(program: Program) -> Program:
    """Append to this Program from now on; gives the one before."""
    old, _defaults.main = _defaults.main, program
    if not in_dynamic_mode():
        set_outermost(program.recorder, old.recorder)
    return old


def switch_startup_program(program: Program) -> Program:
    """Initialise parameters in this Program from now on; gives the one before."""
    old, _defaults.startup = _defaults.startup, program
    return old


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Build these Programs inside the ``with`` block.

    Args:
        main_program: what operators are appended to.
        startup_program: what initialises parameters; the present one by default.
    """
    for what, program in (("main_program", main_program), ("startup_program", startup_program)):
        if not isinstance(program, Program) and not (what == "startup_program" and program is None):
            raise ArgumentTypeError(message(f"program_guard(): {what} is a {type(program).__name__}", "it must be a Program"))
    old_main = switch_main_program(main_program)
    old_startup = switch_startup_program(startup_program) if startup_program is not None else _defaults.startup
    try:
        yield
    finally:
        switch_main_program(old_main)
        switch_startup_program(old_startup)


def enable_static() -> None:
    """Build Programs from now on, in place of running operators at once."""
    set_dynamic_mode(False)
    set_outermost(_defaults.main.recorder, _defaults.main.recorder)
    _rt.set_tracing(True)


def disable_static(place: Any = None) -> None:
    """Run operators at once from now on."""
    parse_place("disable_static", place)
    set_dynamic_mode(True)
    set_outermost(None, _defaults.main.recorder)
    _rt.set_tracing(False)


# ---------------------------------------------------------------------- persistable Variables


def declare(variable: Variable, initializer: Callable[[Any], Any]) -> Variable:
    """Add a persistable Variable to the main Program, and its first value, by the initializer, to the startup Program."""
    main, startup = _defaults.main, _defaults.startup
    main.add(variable)
    declare_start(startup, variable, initializer)
    return variable


def declare_start(startup: Program, variable: Variable, initializer: Callable[[Any], Any]) -> None:
    """Make the startup Program give the Variable's name its first value."""
    if variable.name in startup.variables:
        return
    handle = Variable(variable.dtype, variable.sizes, variable.name, persistable=True)
    startup.add(handle, is_input=False)
    op = Op("initialize", (), {"initializer": initializer})
    made = startup.recorder.adopt(Variable(variable.dtype, variable.sizes, variable.name, persistable=True))
    made.op = op
    op.outputs = (made,)
    startup.recorder.block.ops.append(op)
    startup.recorder.versions[id(handle)] = made


@contextmanager
def running_at_once() -> Iterator[None]:
    """Inside, operators run at once, whatever is being recorded."""
    was_tracing = _rt.set_tracing(False)
    try:
        with no_builder():
            yield
    finally:
        _rt.set_tracing(was_tracing)
