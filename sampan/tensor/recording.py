"""Recording: calls of public functions on Variables become Ops of a Program under the names that people know.

An operator is one Op; its definition is expanded when the Program is compiled, for the sizes of that run. Sizes that are unknown are tried with two
numbers: what differs between the two is unknown too.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes, nest
from ..base.errors import ArgumentError, ArgumentTypeError, SampanError, ShapeError, message
from ..ir.builder import Builder, current_builder
from ..ir.program import Block, Op, Value
from ..ops.catalog import TABLE
from ..ops.define import OPERATORS, OpDef, scalar_dtype
from .aliases import Aliases, is_view
from .expander import Expander, current_rule
from .inplace import check_inplace, rebinds
from .location import add_user_location, user_location
from .replay import DYNAMIC, EFFECT, FUNCTIONS, PRECISION, WRITES, Operand, RecordedFunction, expand_call, map_attribute
from .shape_rules import fitting_types
from .sizes import DERIVED, SIZES, constant_of
from .variable import PROBES, UNKNOWN, Variable

#: Numbers that may follow from sizes: of these dtypes, and as many as a tensor has axes.
_NUMBERS = frozenset({"bool", "int32", "int64", "float32", "float64"})
_MOST_NUMBERS = 16
#: What stands for numbers that depend on data where an operator refuses the probes.
_SMALL_NUMBERS = (1, 2)
#: Sizes that one unknown size is tried with, where an operator wants it to be known.
_MOST_GUESSES = 8
#: An input's sizes under either probe.
Probes = tuple[tuple[int, ...], tuple[int, ...]]


class Recorder(Builder):
    """Appends calls on Variables to a Block.

    A recorder inside another records a nested block: what it uses from outside becomes an argument of the block (``captured``), and outer Variables
    that it writes (``written``) are results of the block for control flow to hand on.
    """

    #: Records ``PyLayer.apply``: (layer, args, kwargs) -> what it gives.
    call_python_layer: Any = None
    #: Records ``paddle.grad``.
    differentiate: Any = None

    def __init__(self, name: str = "program", parent: Recorder | None = None) -> None:
        super().__init__(TABLE, name)
        self.parent = parent
        self.root: Recorder = self if parent is None else parent.root
        self.role: str = "" if parent is None else parent.role
        #: What Variables written in place are now, by the id of the Variable that was written.
        self.versions: dict[int, Variable] = {}
        #: Outer Variables and the arguments that stand for them, by id.
        self.captured: dict[int, tuple[Variable, Variable]] = {}
        #: Variables of outer recorders that were written here, by id.
        self.written: dict[int, Variable] = {}
        self._key_base: Variable | None = None
        self._keys_drawn = 0
        if parent is None:
            #: Tensors that calls used, and their arguments, by id.
            self.tensors: dict[int, tuple[Any, Variable]] = {}
            #: Which Variables share memory in eager mode.
            self.aliases = Aliases()
            #: ids of tensors that were made while recording: writes to them end with the run.
            self.temporaries: set[int] = set()
            self._name_counts: dict[str, int] = {}
            #: Nested blocks draw their keys when they run, as eager mode does: they cannot be computed again for gradients.
            self.draws_inside = False
            #: Gradients that are appended have gradients themselves.
            self.builds_graph = False
            #: Stands before the names of results.
            self.name_prefix = ""
            #: The Program that is being recorded, where there is one.
            self.program: Any = None

    # ------------------------------------------------------------------ Variables

    def adopt(self, variable: Variable) -> Variable:
        """Make the Variable one of this recorder's."""
        variable.recorder = self
        return variable

    def append_results(self, op: Op, kinds: Sequence[Variable]) -> list[Variable]:
        """Append a statement whose results are like these Variables; the results."""
        made = [self.adopt(kind.like(self.fresh_name(op.name))) for kind in kinds]
        for v in made:
            v.op = op
            v.was_constant = v.stop_gradient and dtypes.is_differentiable(v.dtype)
        op.outputs = tuple(made)
        self.block.ops.append(op)
        return made

    def input(self, name: str, dtype: str, shape: Sequence[int], **options: Any) -> Variable:
        """A new argument of the block."""
        made = self.adopt(Variable(dtype, shape, name, **options))
        self.block.arguments.append(made)
        return made

    def resolve(self, variable: Variable) -> Variable:
        """What the Variable is at this place of the Program."""
        self.root.aliases.require_fresh(variable)
        found = self.versions.get(id(variable))
        if found is not None:
            return found
        if variable.recorder is self:
            return variable
        if self.parent is None:
            raise ArgumentError(
                message(
                    f"{variable!r} belongs to another Program",
                    "an operator's operands must be of the Program that is being built",
                    "build both under one program_guard, or fetch the value and feed it",
                )
            )
        outer = self.parent.resolve(variable)
        inner = self.captured.get(id(outer), (outer, None))[1]
        if inner is None:
            inner = self.adopt(outer.like(self.root.fresh_name(outer.name)))
            inner.known = outer.known
            self.captured[id(outer)] = (outer, inner)
        self.versions[id(variable)] = inner
        return inner

    def argument_for(self, outer: Variable) -> Variable:
        """The argument of this nested block that stands for an outer Variable, as it was outside when the block began."""
        found = self.captured.get(id(outer))
        if found is None:
            found = self.captured[id(outer)] = (outer, self.adopt(outer.like(self.root.fresh_name(outer.name))))
        return found[1]

    def write(self, target: Variable, new: Variable) -> None:
        """From here on, the target is the new Variable."""
        self.root.aliases.written(target, new, self._again, self.set_version, self._sees)
        self.set_version(target, new)

    def _sees(self, variable: Variable) -> bool:
        """Whether the Variable is of this recorder or one around it."""
        recorder: Recorder | None = self
        while recorder is not None and recorder is not variable.recorder:
            recorder = recorder.parent
        return recorder is not None

    def _again(self, op: Op, operand: Variable) -> Op:
        return self._append(op.name, (operand,), op.attributes)[0]

    def set_version(self, target: Variable, new: Variable) -> None:
        """From here on, the target is the new Variable, and nothing that shares memory with it changes."""
        self.versions[id(target)] = new
        target.latest = new
        if target.recorder is not self:
            self.written[id(target)] = target

    def capture(self, tensor: Any) -> Variable:
        """The argument that stands for an eager tensor."""
        root = self.root
        found = root.tensors.get(id(tensor))
        if found is None:
            made = root.input(
                tensor.name or root.fresh_name("tensor"), tensor.dtype.name, tuple(tensor.shape), stop_gradient=tensor.stop_gradient,
                persistable=True,
            )  # fmt: skip
            found = root.tensors[id(tensor)] = (tensor, made)
        return found[1]

    def fresh_name(self, key: str) -> str:
        """A name that no other Variable of the Program has."""
        root = self.root
        key = f"{root.name_prefix}{key}"
        number = root._name_counts.get(key, 0)
        root._name_counts[key] = number + 1
        return f"{key}_{number}.tmp_0"

    def fresh_gradient_name(self, name: str) -> str:
        """``name@GRAD``, with a number where that is taken."""
        counts, key = self.root._name_counts, f"{name}@GRAD"
        number = counts.get(key, 0)
        counts[key] = number + 1
        return f"{key}@{number}" if number else key

    def variable_of(self, value: Any) -> Variable:
        """The Variable that stands for a tensor or Variable, as writes know it."""
        return value if isinstance(value, Variable) else self.capture(value)

    # ------------------------------------------------------------------ operands

    def operand(self, value: Any) -> Variable:
        """The Variable for an operand: a Variable as it is now, an eager tensor captured, a number as a constant."""
        if isinstance(value, Variable):
            return self.resolve(value)
        if isinstance(value, _rt.Tensor):
            return self.resolve(self.capture(value))
        dtype = scalar_dtype(value)
        if dtype is not None:
            return self.constant(value, dtype, weak=True)  # type: ignore[return-value]
        if isinstance(value, (np.ndarray, np.generic)):
            made = _rt.from_numpy(np.array(value), True)
            self.root.temporaries.add(id(made))
            return self.resolve(self.capture(made))
        if hasattr(value, "as_operand"):
            return self.operand(value.as_operand())
        if isinstance(value, Value):
            raise ArgumentError(message(f"{value!r} is no Variable of the Program that is being recorded"))
        raise ArgumentError(message(f"an operand is a {type(value).__name__}", "it must be a tensor, a Variable or a number"))

    def random_key(self) -> Variable:
        """The key of the next random operator: drawn for each run; inside nested blocks whenever they run, or made of an outer one and a count."""
        if self.parent is None or self.root.draws_inside:
            own = {EFFECT: True} if self.root.draws_inside else {}
            op = Op("random_key", (), own, (), (), user_location(), self.role)
            made = self.adopt(Variable("int64", (), self.fresh_name("random_key"), weak=True))
            op.outputs = (made,)
            made.op = op
            self.block.ops.append(op)
            return made
        if self._key_base is None:
            self._key_base = self.parent.random_key()
        self._keys_drawn += 1
        return self.call(OPERATORS["fold_key"], [self._key_base, self._keys_drawn])  # type: ignore[no-any-return]

    @property
    def key_base(self) -> Variable | None:
        """The outer key that this nested block's keys are made of; None when it draws none."""
        return self._key_base

    # ------------------------------------------------------------------ calls

    def append(self, name: str, inputs: tuple[Value, ...], attributes: dict[str, Any], blocks: tuple[Block, ...] = ()) -> Op:
        """The new Op; its outputs are typed by expanding it on scratch Values."""
        return self._append(name, inputs, attributes)[0]  # type: ignore[arg-type]

    def call(self, definition: OpDef, args: Sequence[Any], is_inplace: bool = False) -> Any:
        """One Op of the operator, on these arguments."""
        bound: list[Any] = []
        read: list[Variable] = []  # Variables in the place of attributes
        for parameter, value in zip(definition.parameters, args, strict=True):
            if parameter.kind == "attr":
                bound.append(map_attribute(value, lambda v: self._read(v, read)))
            elif parameter.kind == "tensors":
                bound.append([self.operand(v) for v in value])
            else:
                bound.append(None if value is None else self.operand(value))
        inputs, attributes = definition.split(bound)
        if read:
            attributes = map_attribute(attributes, lambda v: Operand(len(inputs) + v.index) if isinstance(v, Operand) else v)
            first = len(inputs)
            inputs += read
            if all(v.is_derived for v in read):
                attributes[SIZES] = tuple(range(first, len(inputs)))
            else:
                attributes[DYNAMIC] = len(read)
        op, structure = self._append(definition.ir_name, tuple(inputs), attributes)
        outputs = iter(op.outputs)
        result = nest.map_structure(lambda leaf: None if leaf is None else next(outputs), structure)
        if is_inplace:
            k = definition.inplace_parameter
            if rebinds(definition):
                target = self.variable_of(args[k])
                target.is_rebound = True
                self.root.aliases.reshaped(target)
                self.set_version(target, result)
            else:
                check_inplace(f"{definition.name}_", definition, bound[k], result)
                self.write(self.variable_of(args[k]), result)
            return args[k]
        if definition.is_view:
            viewed = (
                args[0][0] if isinstance(args[0], (list, tuple)) else args[0]
            )  # of several, the first result shares the first's memory
            self.root.aliases.note(self.variable_of(viewed), op)
        for updated, new in zip(definition.updated(args), op.outputs, strict=False):
            self.write(self.variable_of(updated), new)  # type: ignore[arg-type]
        return result

    def _read(self, value: Any, read: list[Variable]) -> Any:
        if not isinstance(value, Variable):
            return value
        if value.ndim > 1:
            raise ArgumentTypeError(
                message(f"{value!r} stands where a number is expected", "only a tensor of one axis or none can", "index it first")
            )
        read.append(self.resolve(value))
        return Operand(len(read) - 1)

    def call_function(self, function: RecordedFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One Op of a public Python function; where its arguments are more than data and tensors, the Ops of what it calls."""
        bound = function.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        handles: list[Any] = []

        def mark(value: Any) -> Any:
            if isinstance(value, (Value, _rt.Tensor, np.ndarray)):
                handles.append(value)
                return Operand(len(handles) - 1)
            return value

        attributes = {}
        listed: set[int] = set()  # in lists of numbers, as sizes are given
        numbers: set[int] = set()  # tensors that hold numbers
        for name, value in bound.arguments.items():
            before = len(handles)
            is_number = name in function.numbers
            attributes[name] = map_attribute(value.tolist() if is_number and isinstance(value, np.ndarray) else value, mark)
            if is_number:
                numbers.update(range(before, len(handles)))
            elif isinstance(value, (list, tuple)):
                listed.update(range(before, len(handles)))
        if not function.takes(attributes) or (not handles and function.rule is None):
            return function.function(*args, **kwargs)
        inputs = [self.operand(v) for v in handles]
        if function.rule is not None:
            bound.arguments.update(map_attribute(attributes, lambda v: inputs[v.index] if isinstance(v, Operand) else v))
        if function.rule is not None and function.rule(*bound.args, **bound.kwargs) is not None:
            attributes[DYNAMIC] = 0
        else:
            sizes = tuple(k for k, v in enumerate(inputs) if k in numbers or (v.is_derived and (v.weak or k in listed)))
            if sizes:
                attributes[SIZES] = sizes
            if not all(inputs[k].is_derived for k in numbers):
                attributes[DYNAMIC] = 0
        op, structure = self._append(function.name, tuple(inputs), attributes)
        outputs = iter(op.outputs)
        result = nest.map_structure(lambda leaf: next(outputs) if isinstance(leaf, Value) else leaf, structure)
        if is_view(op):
            self.root.aliases.note(self.variable_of(handles[0]), op)
        for k, new in zip(op.attributes.get(WRITES, ()), outputs, strict=True):
            self.write(self.variable_of(handles[k]), new)  # type: ignore[arg-type]
        return result

    def _append(self, name: str, inputs: tuple[Variable, ...], attributes: dict[str, Any]) -> tuple[Op, Any]:
        """The new Op, and what its expansion returns: a structure of scratch Values and other things."""
        self.location = user_location()
        for v in inputs:
            if v.is_array:
                raise ArgumentTypeError(
                    message(
                        f"{name}(): an operand is {v!r}", "operators take tensors", "read its elements with array_read(array, i)"
                    )
                )
        rule = current_rule()
        if rule is not None:
            attributes = attributes | {PRECISION: rule}
        try:
            types, known, structure, written, keys = self._types(name, inputs, attributes)
        except SampanError as error:
            error.args = (_without_probes(str(error.args[0])), *error.args[1:])
            add_user_location(error)
            raise
        if keys:
            inputs = (*inputs, *(self.random_key() for _ in range(keys)))
        if written:
            attributes = attributes | {WRITES: tuple(written)}
        op = Op(name, inputs, attributes, (), (), self.location, self.role)
        is_constant = not _rt.grad_enabled() or all(v.stop_gradient for v in inputs)
        op.outputs = tuple(self._output(op, k, t, is_constant) for k, t in enumerate(types))
        is_fixed = all(UNKNOWN not in v.sizes and (v.known is None or v.is_fixed) for v in inputs)
        for output, elements in zip(op.outputs, known, strict=True):
            output.known = elements  # type: ignore[attr-defined]
            output.is_fixed = is_fixed and elements is not None  # type: ignore[attr-defined]
        if None not in known and all(v.is_derived or v.known is None for v in inputs):
            op.attributes = op.attributes | {DERIVED: tuple(k for k, v in enumerate(inputs) if v.known is not None)}
        self.block.ops.append(op)
        return op, structure

    def _output(self, op: Op, number: int, typed: tuple[str, list[tuple[int, ...]], bool], is_constant: bool) -> Variable:
        dtype, shapes, weak = typed
        sizes = shapes[0]
        probes = None
        if len(shapes) > 1 and shapes[0] != shapes[1]:
            sizes = tuple(a if a == b else UNKNOWN for a, b in zip(*shapes, strict=True))
            probes = shapes[0], shapes[1]
        made = Variable(
            dtype, sizes, self.root.fresh_name(op.name.rpartition(".")[2]), weak=weak, probes=probes,
            stop_gradient=is_constant or not dtypes.is_differentiable(dtype),
        )  # fmt: skip
        made.op = op
        made.was_constant = made.stop_gradient and dtypes.is_differentiable(dtype) and _rt.grad_enabled()
        made.is_severed = not _rt.grad_enabled()
        return self.adopt(made)

    def _types(
        self, name: str, inputs: Sequence[Variable], attributes: dict[str, Any]
    ) -> tuple[list[Any], list[Any], Any, list[int], int]:
        """(dtype, shapes under the probes, weak) of each output; elements that follow from sizes alone; the structure; which inputs are
        written; how many keys are drawn.

        Unknown sizes are taken to be free. Where the operator refuses that, they may still be sizes that another operand has, or
        multiples of a number.
        """
        is_dynamic = attributes.get(DYNAMIC) is not None
        if is_dynamic and (fitting := fitting_types(name, inputs, attributes)) is not None:
            return fitting[0], [None] * len(fitting[0]), fitting[1], [], 0
        free = [(v.probe(0), v.probe(1)) for v in inputs]
        try:
            return self._probed(name, inputs, attributes, free)
        except (ShapeError, ArgumentError) as error:
            if is_dynamic:  # the probes stand for numbers too, which may have to be small
                with contextlib.suppress(ShapeError, ArgumentError):
                    return self._probed(name, inputs, attributes, free, _SMALL_NUMBERS)
            if not isinstance(error, ShapeError):
                raise
            for probes in itertools.chain(_agreeing(inputs), _divisible(inputs, attributes)):
                try:
                    return self._probed(name, inputs, attributes, probes)
                except ShapeError:
                    continue
            if any(UNKNOWN in v.sizes for v in inputs) and (fitting := fitting_types(name, inputs, attributes)) is not None:
                return fitting[0], [None] * len(fitting[0]), fitting[1], [], 0
            raise error from None

    def _probed(
        self,
        name: str,
        inputs: Sequence[Variable],
        attributes: dict[str, Any],
        probes: Sequence[Probes],
        numbers: tuple[int, int] = PROBES,
    ) -> tuple[list[Any], list[Any], Any, list[int], int]:
        """``_types`` when the inputs' sizes are these, and what depends on data are these numbers."""
        runs = []
        known: list[list[Any]] = []
        needs_two = attributes.get(DYNAMIC) is not None or any(v.probes is not None or v.known is not None for v in inputs)
        for k in range(2 if needs_two else 1):
            scratch = Expander("scratch")
            values = [scratch.argument(v.dtype, sizes[k], weak=v.weak) for v, sizes in zip(inputs, probes, strict=True)]
            scratch.known = {id(v): i.known[k] for v, i in zip(values, inputs, strict=True) if i.known is not None}
            with scratch.active():
                result = expand_call(scratch, name, attributes, values, numbers[k])
            leaves = [v for v in nest.flatten(result) if isinstance(v, Value)]
            known.append(
                [constant_of(v, scratch.known) if v.dtype in _NUMBERS and v.numel <= _MOST_NUMBERS else None for v in leaves]
            )
            written = [n for n, v in enumerate(values) if scratch.latest(v) is not v] if name in FUNCTIONS else []
            leaves += [scratch.latest(values[n]) for n in written]
            runs.append((leaves, result, written, len(scratch.block.arguments) - len(values)))
        if len({len(run[0]) for run in runs}) > 1:
            raise ShapeError(
                message(
                    f"{name}(): how many results there are depends on a size that only a run knows",
                    f"operands have shapes {', '.join(str(list(v.sizes)) for v in inputs)}",
                    "declare the Variable with that size",
                )
            )
        shapes = [[tuple(leaf.shape) for leaf in run[0]] for run in runs]
        types = [(v.dtype, [s[n] for s in shapes], v.weak) for n, v in enumerate(runs[0][0])]
        elements = [None if a is None or b is None else (a, b) for a, b in zip(known[0], known[-1], strict=True)]
        elements += [None] * (len(types) - len(elements))
        return types, elements, runs[0][1], runs[0][2], runs[0][3]


def _agreeing(inputs: Sequence[Variable]) -> Iterator[list[Probes]]:
    """Sizes for the inputs in which unknown ones are known sizes of the other inputs: those of the axes that broadcasting matches first,
    then one unknown size after the other."""
    unknown = [(n, a) for n, v in enumerate(inputs) for a, size in enumerate(v.sizes) if size == UNKNOWN]
    if not unknown or len(inputs) == 1:
        return

    def with_sizes(chosen: dict[tuple[int, int], int]) -> list[Probes]:
        first, second = (
            [tuple(chosen.get((n, a), size) for a, size in enumerate(v.probe(k))) for n, v in enumerate(inputs)] for k in range(2)
        )
        return list(zip(first, second, strict=True))

    matched = {}
    for n, a in unknown:
        from_end = a - len(inputs[n].sizes)
        others = {v.sizes[from_end] for m, v in enumerate(inputs) if m != n and len(v.sizes) >= -from_end} - {1, UNKNOWN}
        if len(others) == 1:
            matched[n, a] = others.pop()
    # As few as will do: the others stay free.
    for count in range(1, len(matched) + 1):
        for chosen in itertools.islice(itertools.combinations(matched.items(), count), _MOST_GUESSES):
            yield with_sizes(dict(chosen))
    for n, a in unknown:
        for size in sorted({size for m, v in enumerate(inputs) if m != n for size in v.sizes} - {1, UNKNOWN})[:_MOST_GUESSES]:
            yield with_sizes({(n, a): size})


def _divisible(inputs: Sequence[Variable], attributes: Mapping[str, Any]) -> Iterator[list[Probes]]:
    """Sizes for the inputs in which unknown ones divide by the numbers that the call is given, as a reshape may need."""
    numbers = {n for n in nest.flatten(list(attributes.values())) if type(n) is int and n > 1}
    for factor in sorted({*numbers, math.prod(numbers)})[:_MOST_GUESSES]:
        first, second = (
            [tuple(p * factor if n == UNKNOWN else p for n, p in zip(v.sizes, v.probe(k), strict=True)) for v in inputs]
            for k in range(2)
        )
        yield list(zip(first, second, strict=True))


def _without_probes(text: str) -> str:
    return re.sub(rf"\b({PROBES[0]}|{PROBES[1]})\b", str(UNKNOWN), text)


def current_recorder() -> Recorder | None:
    """The recorder that calls of this thread go to; None when they run at once."""
    builder = current_builder()
    return builder if isinstance(builder, Recorder) else None
