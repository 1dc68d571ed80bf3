"""Recorded statements as a ProgramDesc: each operator by its row, and operators without one by what they are defined by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...base import dtypes, nest
from ...base.errors import SampanError, UnsupportedError, message
from ...ops.define import operator_named
from ...ops.primitives.core import PRIMITIVES
from ...tensor.autocast import operand_dtypes
from ...tensor.expander import Expander
from ...tensor.replay import DYNAMIC, FUNCTIONS, PRECISION, Operand, expand_call, map_attribute, values_of
from ...tensor.sizes import SIZES, as_number
from ...tensor.variable import PROBES
from . import tables, write_control  # noqa: F401  (importing tables fills WRITERS)
from .emit import Emit, Handle, Writer
from .model import Attribute, Block, Model, Operation, Variable
from .program_desc import VERSION
from .rows import WRITERS
from .table_primitives import PRIMITIVE_WRITERS, Copied, FromEnd

#: Arrays above this many elements become parameters; smaller ones are written into the program.
_LARGEST_CONSTANT = 64


class UnwritableError(UnsupportedError):
    """Operators of a Program have no form in PaddlePaddle's format; ``names`` lists them all."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = sorted(set(names))
        super().__init__(
            message(
                f"{len(self.names)} operators have no form in PaddlePaddle's format: {', '.join(self.names)}",
                "neither by a row of the table nor by what they are defined by",
                "save the model with paddle.save, or leave them out of it",
            )
        )


class ProgramWriter:
    """Writes a block of recorded Ops; ``arrays`` get the parameters that constants become."""

    def __init__(self) -> None:
        self.model = Model("program", [Block()], VERSION)
        self.arrays: dict[str, np.ndarray] = {}
        self.unwritable: list[str] = []
        self.top = Writer(self.model.blocks[0], blocks=self.model.blocks)
        self.handles: dict[int, Handle] = {}
        #: Where the one unknown size of the operator that is being expanded can be read: a tensor and its axis.
        self.size_of: tuple[Handle, int] | None = None
        #: Values inside expansions with their shapes under either probe, by id.
        self.probed: dict[int, tuple[Any, tuple[Any, ...]]] = {}

    # ------------------------------------------------------------------ the frame

    def feed(self, value: Any, column: int) -> None:
        """Declare what a run feeds."""
        self._hold("feed", "feed")
        self.handles[id(value)] = self.top.declare(value.name, str(value.dtype), value.shape, stops_gradient=True)
        self.model.blocks[0].operations.append(
            Operation("feed", {"X": ["feed"]}, {"Out": [value.name]}, {"col": Attribute("int", column)})
        )

    def parameter(self, value: Any, name: str, array: np.ndarray, is_trained: bool = True) -> None:
        """Declare a parameter, whose content goes into the parameter file."""
        self.arrays[name] = array
        self.handles[id(value)] = self.top.declare(
            name, array.dtype.name, array.shape, is_persistable=True, is_parameter=is_trained, stops_gradient=not is_trained
        )

    def fetch(self, value: Any, column: int) -> None:
        """Give a value back at the end of a run."""
        self._hold("fetch", "fetch")
        emit = Emit(self.top, "fetch", (value,))
        handle = emit.of(self.handles[id(value)])
        if self.model.blocks[0].variables[handle.name].is_persistable or handle.name in self.model.feeds():
            handle = emit("assign", {"X": handle}, {}, shape=handle.shape)
        self.model.blocks[0].operations.append(
            Operation("fetch", {"X": [handle.name]}, {"Out": ["fetch"]}, {"col": Attribute("int", column)})
        )

    def _hold(self, name: str, kind: str) -> None:
        self.model.blocks[0].variables.setdefault(name, Variable(name, kind, is_persistable=True))

    def finish(self) -> Model:
        """The model.

        Raises:
            UnwritableError: operators could not be written; all of them are named.
        """
        if self.unwritable:
            raise UnwritableError(self.unwritable)
        drop_unused(self.model.blocks[0])
        self.model.check("the program")
        return self.model

    # ------------------------------------------------------------------ operations

    def run(self, ops: Sequence[Any], writer: Writer | None = None) -> None:
        """Write Ops in order."""
        for op in ops:
            self.operation(op, writer or self.top)

    def operation(self, op: Any, writer: Writer) -> None:
        """Write one Op: ``handles`` get its outputs."""
        missing = [v for v in op.inputs if id(v) not in self.handles]
        if missing:  # an operator before it could not be written
            return
        op = _with_numbers(op)
        inputs = [self.handles[id(v)] for v in op.inputs]
        results = self._special(op, inputs, writer)
        if results is None:
            results = self._by_row(op, inputs, writer)
        if results is None:
            results = self._expanded(op, inputs, writer)
        if results is None:
            self.unwritable.append(op.name.removeprefix("op."))
        if not results:
            return
        for value, handle in zip(op.outputs, results, strict=True):
            self._give(value, handle, writer)

    def _give(self, value: Any, handle: Handle, writer: Writer) -> None:
        if handle.value is None and handle.name in writer.block.variables:
            declared = writer.block.variables[handle.name]
            if not declared.is_persistable and handle.name not in self.model.feeds():
                declared.dtype, declared.shape = str(value.dtype), tuple(int(n) for n in value.shape)
                handle.dtype, handle.shape = declared.dtype, declared.shape
        self.handles[id(value)] = handle

    def _special(self, op: Any, inputs: list[Handle], writer: Writer) -> list[Handle] | None:
        if op.name == "constant":
            out = op.outputs[0]
            if isinstance(op.attributes["value"], FromEnd):
                return self._size(op.attributes["value"].offset, str(out.dtype), writer)
            return [Handle("", str(out.dtype), (), out.weak, op.attributes["value"])]
        if op.name in ("choices", "array") and _has_sizes(op.attributes):
            return None  # a table whose numbers depend on an unknown size
        if op.name == "literal":
            return [self._literal(op.attributes["value"].array, writer)]
        if op.name == "choices":
            return [self._literal(PRIMITIVES["choices"].evaluate(**op.attributes), writer)]
        if op.name == "array":
            given = op.attributes
            return [
                self._literal(np.array(given["items"]).astype(dtypes.numpy_dtype(given["dtype"])).reshape(given["shape"]), writer)
            ]
        control = write_control.CONTROL.get(op.name)
        return None if control is None else control(self, op, inputs, writer)

    def _size(self, offset: int | None, dtype: str, writer: Writer) -> list[Handle] | None:
        """The unknown size plus an offset, as a 0-D tensor; None where there are several unknown sizes."""
        if offset is None or self.size_of is None:
            return None
        source, axis = self.size_of
        emit = Emit(writer, "size", ())
        sizes = emit("shape", {"Input": source}, {}, dtype="int32")
        bounds = {"axes:I": [0], "starts:I": [axis], "ends:I": [axis + 1], "infer_flags:I": [1], "decrease_axis:I": [0]}
        size = emit("slice", {"Input": sizes}, bounds, dtype="int32")
        shifted = emit("scale", {"X": size}, {"scale:f": 1.0, "bias:f": float(offset), "bias_after_scale:b": True}, dtype="int32")
        return [emit.cast(shifted, dtype)]

    def _literal(self, array: np.ndarray, writer: Writer) -> Handle:
        if array.size > _LARGEST_CONSTANT or not array.size or array.dtype.kind == "c":
            name = self.top.fresh("constant")
            self.arrays[name] = array
            return self.top.declare(name, array.dtype.name, array.shape, is_persistable=True, stops_gradient=True)
        made = writer.declare(writer.fresh("constant"), array.dtype.name, array.shape)
        plain = [float(v) if array.dtype.kind in "fV" else v.item() for v in array.reshape(-1)]
        writer.operation(
            "assign_value",
            {},
            {"Out": [made.name]},
            {"shape:I": list(array.shape), "dtype:t": array.dtype.name, "values:scalars": plain},
        )
        return made

    def _by_row(self, op: Any, inputs: list[Handle], writer: Writer) -> list[Handle] | None:
        if op.attributes.get(DYNAMIC) is not None:
            return None
        emit = Emit(writer, op.name.removeprefix("op."), op.outputs)
        before = len(writer.block.operations)
        precision = op.attributes.get(PRECISION)
        if precision is not None:  # what the operands are cast to in the expansion, the file's casts do
            definition = None if op.name in PRIMITIVES else operator_named(op.name)
            if definition is None:
                return None
            types = operand_dtypes(precision, definition, op.inputs)
            inputs = [emit.cast(h, dtype) for h, dtype in zip(inputs, types, strict=True)]
        try:
            return self._of_row(op, inputs, emit)
        except (UnsupportedError, TypeError) as error:
            # a TypeError is a size in the place of a number that the row needs to know
            if isinstance(error, TypeError) and not _has_sizes(op.attributes) and SIZES not in op.attributes:
                raise
            del writer.block.operations[before:]
            return None

    @staticmethod
    def _of_row(op: Any, inputs: list[Handle], emit: Emit) -> list[Handle] | None:
        if op.name in PRIMITIVES:
            row = PRIMITIVE_WRITERS.get(op.name)
            result = NotImplemented if row is None else row(emit, *inputs, **op.attributes)
        else:
            definition = operator_named(op.name)
            row = WRITERS.get(emit.name) if definition is not None else None
            if row is None or definition is None:
                return None
            bound = definition.arguments(op, inputs)
            result = row(emit, **{p.name: v for p, v in zip(definition.parameters, bound, strict=True)})
        if result is NotImplemented:
            return None
        found = [h for h in nest.flatten(result) if h is not None]
        return [h if isinstance(h, Handle) else emit.of(h) for h in found] if len(found) == len(op.outputs) else None

    def _probe(self, value: Any, number: int) -> tuple[int, ...] | None:
        """The shape of a Value under one of the probes. The last probe has another size for every axis; None where that cannot be said."""
        known = self.probed.get(id(value))
        if known is not None:
            return known[1][number]
        probe = getattr(value, "probe", None)
        if number < len(PROBES):
            return tuple(probe(number)) if probe is not None else tuple(PROBES[number] if n == -1 else n for n in value.shape)
        if probe is not None and any(p != PROBES[0] for p, n in zip(probe(0), value.sizes, strict=True) if n == -1):
            return None
        return tuple(PROBES[0] * (k + 2) if n == -1 else n for k, n in enumerate(value.shape))

    def _expansions(self, op: Any) -> list[_Expansion]:
        """The Op's expansion under each probe that applies."""
        has_sizes = _has_sizes(op.attributes)
        if not has_sizes and not any(-1 in tuple(v.shape) for v in op.inputs):
            return [_Expansion(op, 0, [tuple(v.shape) for v in op.inputs])]
        found = [_Expansion(op, k, [self._probe(v, k) or () for v in op.inputs]) for k in range(len(PROBES))]
        apart = [self._probe(v, len(PROBES)) for v in op.inputs]
        if not has_sizes and None not in apart:
            try:
                last = _Expansion(op, 0, [shape or () for shape in apart])
            except (SampanError, ValueError, TypeError):  # two unknown sizes that must be equal
                return found
            if [o.name for o in last.ops] == [o.name for o in found[0].ops]:
                found.append(last)
        return found

    def _note(self, values: Sequence[Any]) -> None:
        """Make sizes that differ between the probes -1 in the first probe's Value."""
        shapes = [tuple(v.shape) for v in values]
        first = values[0]
        first.shape = tuple(m if m == n else -1 for m, n in zip(shapes[0], shapes[min(1, len(shapes) - 1)], strict=True))
        if -1 in first.shape:
            self.probed[id(first)] = first, (*shapes, None) if len(shapes) == len(PROBES) else tuple(shapes)

    def _unify(self, ops: Sequence[Any]) -> None:
        """Make numbers of the first probe's Op that differ from the second's depend on the unknown size, and such sizes of results -1."""
        one, other = ops[0], ops[min(1, len(ops) - 1)]
        is_shape = one.name not in PRIMITIVES
        shifts = self._shifts(one.inputs[0]) if one.name in ("slice", "take_slices") else []
        copied = _copied_sizes(ops[-1]) if one.name == "reshape" and len(ops) > len(PROBES) else set()
        for key, value in one.attributes.items():
            merged = _merged(value, other.attributes[key])
            if key == "shape" and copied:
                merged = tuple(Copied(0) if isinstance(n, FromEnd) and k in copied else n for k, n in enumerate(merged))
            if shifts and key in ("starts", "sizes"):  # counted from the end of their own axis
                merged = tuple(_shifted(n, by) for n, by in zip(merged, shifts, strict=True))
            one.attributes[key] = _unknown(merged) if key == "shape" and is_shape else merged
        for values in zip(*(o.outputs for o in ops), strict=True):
            self._note(values)

    def _shifts(self, value: Any) -> list[int | None]:
        """By how much each axis of a Value is longer than the unknown size; None where it is not."""
        first, second = self.probed[id(value)][1][:2] if id(value) in self.probed else (value.shape, value.shape)
        return [
            0 if m == n else m - PROBES[0] if m - PROBES[0] == n - PROBES[1] else None for m, n in zip(first, second, strict=True)
        ]

    def _expanded(self, op: Any, inputs: list[Handle], writer: Writer) -> list[Handle] | None:
        """Write what the operator is defined by; sizes that differ under the two probes are unknown ones."""
        if (
            op.name in PRIMITIVES
            or op.attributes.get(DYNAMIC) is not None
            or (op.name not in FUNCTIONS and operator_named(op.name) is None)
        ):
            return None
        if _has_sizes(op.attributes, only_lost=True):
            return None
        probes = self._expansions(op)
        first = probes[0]
        if any([o.name for o in first.ops] != [o.name for o in p.ops] for p in probes):
            return None
        for values, handle in zip(zip(*(p.arguments for p in probes), strict=True), inputs, strict=True):
            self.handles[id(values[0])] = handle
            self._note(values)
        before, outer = len(self.unwritable), self.size_of
        places = [(h, k) for h, v in zip(inputs, op.inputs, strict=True) for k, n in enumerate(v.shape) if n == -1]
        self.size_of = places[0] if len(places) == 1 else None
        for ops in zip(*(p.ops for p in probes), strict=True):
            try:
                self._unify(ops)
            except _DifferError:
                self.unwritable.append(ops[0].name.removeprefix("op."))
                break
            self.operation(ops[0], writer)
        self.size_of = outer
        if len(self.unwritable) > before:
            inner = self.unwritable[before:]
            self.unwritable[before:] = [f"{op.name.removeprefix('op.')} (for {', '.join(sorted(set(inner)))})"]
            return []  # named already; what follows it is skipped
        if any(id(v) not in self.handles for v in first.outputs):
            return None
        return [self.handles[id(v)] for v in first.outputs]


def drop_unused(block: Block) -> None:
    """Forget operations of a block whose results nothing reads, and variables that nothing names."""
    needed = {name for name, v in block.variables.items() if v.kind == "fetch"}
    kept = []
    for op in reversed(block.operations):
        if op.kind in ("feed", "fetch") or any(name in needed for names in op.outputs.values() for name in names):
            kept.append(op)
            needed.update(name for names in op.inputs.values() for name in names)
    block.operations[:] = reversed(kept)
    named = {n for op in kept for slots in (op.inputs, op.outputs) for names in slots.values() for n in names}
    block.variables = {n: v for n, v in block.variables.items() if n in named or v.is_persistable}


class _Expansion:
    """What an Op is defined by, for sizes of one probe: operators with rows, and primitives."""

    def __init__(self, op: Any, number: int, shapes: Sequence[tuple[int, ...]]) -> None:
        expander = Expander("written")
        own = op.name.removeprefix("op.")
        expander.keep = lambda definition: definition.name in WRITERS and definition.name != own
        self.arguments = [expander.argument(str(v.dtype), s, weak=v.weak) for v, s in zip(op.inputs, shapes, strict=True)]
        attributes = map_attribute(op.attributes, lambda v: PROBES[number] + (v.offset or 0) if isinstance(v, FromEnd) else v)
        sources = zip(self.arguments, op.inputs, strict=True)
        expander.known = {id(a): v.known[number] for a, v in sources if getattr(v, "known", None) is not None}
        with expander.active():
            result = expand_call(expander, op.name, attributes, self.arguments, PROBES[number])
            self.outputs = values_of(expander, attributes, self.arguments, result)
        self.ops = list(expander.block.ops)


def _with_numbers(op: Any) -> Any:
    """The Op with the numbers themselves in the place of Variables that known sizes decide."""
    places = op.attributes.get(SIZES, ())
    if not places or not all(getattr(op.inputs[k], "is_fixed", False) for k in places):
        return op
    numbers = {k: as_number(op.inputs[k].known[0]) for k in places}
    attributes = {name: value for name, value in op.attributes.items() if name != SIZES}
    attributes = map_attribute(attributes, lambda v: numbers.get(v.index, v) if isinstance(v, Operand) else v)
    inputs = op.inputs if op.name in FUNCTIONS else op.inputs[: len(op.inputs) - len(places)]
    return replace(op, inputs=inputs, attributes=attributes)


def _copied_sizes(op: Any) -> set[int]:
    """Where a reshape keeps the size of the same place."""
    pairs = zip(op.inputs[0].shape, op.outputs[0].shape, strict=False)
    return {k for k, (m, n) in enumerate(pairs) if m == n}


def _has_sizes(value: Any, only_lost: bool = False) -> bool:
    """Whether an attribute holds numbers that depend on an unknown size; ``only_lost``: in a way that is not known."""
    if isinstance(value, dict):
        return any(_has_sizes(v, only_lost) for v in value.values())
    if isinstance(value, tuple):
        return any(_has_sizes(v, only_lost) for v in value)
    return isinstance(value, FromEnd) and (value.offset is None or not only_lost)


class _DifferError(Exception):
    """Two expansions differ in more than sizes."""


def _merged(a: Any, b: Any) -> Any:
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(map(_merged, a, b))
    if type(a) is type(b) and (a == b or repr(a) == repr(b)):  # NaN is not equal to itself
        return a
    if type(a) is not int or type(b) is not int:
        raise _DifferError
    return FromEnd(a - PROBES[0] if a - PROBES[0] == b - PROBES[1] else None)


def _shifted(number: Any, by: int | None) -> Any:
    if not isinstance(number, FromEnd) or number.offset is None:
        return number
    return FromEnd(None if by is None else number.offset - by)


def _unknown(sizes: Any) -> Any:
    return tuple(-1 if isinstance(n, FromEnd) else n for n in sizes) if isinstance(sizes, tuple) else sizes


def write_program(
    ops: Sequence[Any],
    feeds: Sequence[Any],
    fetches: Sequence[Any],
    parameters: Mapping[str, tuple[Any, np.ndarray, bool]],
) -> tuple[Model, dict[str, np.ndarray]]:
    """(the model, the arrays of its parameter file) of recorded Ops.

    Args:
        ops: in order.
        feeds: the Variables that runs feed.
        fetches: the Variables that runs give back.
        parameters: name -> (the Variable, its content, whether it is trained).

    Raises:
        UnwritableError: operators have no form in the format; all of them are named.
    """
    writer = ProgramWriter()
    for column, value in enumerate(feeds):
        writer.feed(value, column)
    for name, (value, array, is_trained) in parameters.items():
        writer.parameter(value, name, array, is_trained)
    writer.run(ops)
    if not writer.unwritable:
        for column, value in enumerate(fetches):
            writer.fetch(value, column)
    return writer.finish(), writer.arrays
