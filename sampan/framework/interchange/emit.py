"""What rows write with: operations of a ProgramDesc over handles, and the small things that recorded operators do by themselves there.

Recorded operators promote types, take Python numbers and know their results' types; operations of a ProgramDesc do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base import dtypes
from ...base.errors import UnsupportedError, message
from . import kinds
from .model import Attribute, Block, Operation, Variable
from .rows import KINDS


@dataclass(eq=False)
class Handle:
    """A value while it is written: the variable's name, or a number that no variable holds yet.

    A lazy handle's variable has axes of length 1 where its shape says more: elementwise operations repeat them, others cannot take it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    weak: bool = False
    value: Any = None
    is_lazy: bool = False

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """The number of elements; negative where it is not known."""
        return int(np.prod(self.shape)) if -1 not in self.shape else -1


class Writer:
    """A block that is being written; names are unique in the whole model."""

    def __init__(self, block: Block, parent: Writer | None = None, blocks: list[Block] | None = None) -> None:
        self.block = block
        self.parent = parent
        self.root: Writer = self if parent is None else parent.root
        if parent is None:
            #: All blocks of the model.
            self.blocks = [block] if blocks is None else blocks
            self._count = 0
            self._names: set[str] = set()

    def fresh(self, key: str) -> str:
        """A name that the model does not have yet."""
        root = self.root
        while True:
            name = f"{key}_{root._count}.tmp_0"
            root._count += 1
            if name not in root._names:
                return name

    def declare(self, name: str, dtype: str, shape: Sequence[int], **flags: Any) -> Handle:
        """A new variable of the block."""
        self.root._names.add(name)
        self.block.variables[name] = Variable(name, "tensor", dtype, tuple(shape), **flags)
        return Handle(name, dtype, tuple(shape))

    def operation(
        self, kind: str, inputs: Mapping[str, Sequence[str]], outputs: Mapping[str, Sequence[str]], attributes: Mapping[str, Any]
    ) -> None:
        """Append an operation; attributes are named ``name:type's letter``."""
        made = {}
        for key, value in attributes.items():
            name, _, letter = key.partition(":")
            if value is not None:
                made[name] = Attribute(KINDS.get(letter, letter), _typed(value, letter))
        self.block.operations.append(
            Operation(kind, {k: list(v) for k, v in inputs.items()}, {k: list(v) for k, v in outputs.items()}, made)
        )


def _typed(value: Any, letter: str) -> Any:
    """The attribute's value as its type wants it."""
    if letter == "t":
        return kinds.dtype_number(dtypes.name_of(value)) if value else -1
    if letter in ("I", "L", "A"):
        return [int(v) for v in (value if isinstance(value, (list, tuple)) else [value])]
    if letter in ("F", "D"):
        return [float(v) for v in (value if isinstance(value, (list, tuple)) else [value])]
    if letter in ("i", "l"):
        return int(value)
    if letter in ("f", "d"):
        return float(value)
    return bool(value) if letter == "b" else list(value) if letter in ("B", "S") else value


class Emit:
    """Writes one recorded operator: called with an operation's kind, its inputs by slot and its attributes, it gives the handles of the results.

    ``name`` is the operator's.
    """

    def __init__(self, writer: Writer, name: str, outputs: Sequence[Any]) -> None:
        self.writer = writer
        self.name = name
        self._outputs = outputs

    def __call__(
        self,
        kind: str,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        results: Sequence[str] = ("Out",),
        spare: Sequence[str] = (),
        into: Mapping[str, Handle] | None = None,
        dtype: str = "",
        shape: Sequence[int] = (),
        repeats: bool = False,
    ) -> Any:
        """Append the operation.

        Args:
            results: the slots of the results, in order; "" for one that is not wanted.
            spare: slots that must be there and that nobody reads.
            into: slots whose results are written over variables that are there.
            dtype: of the result, where another operation follows; the first operand's by default.
            shape: of the result, where the rows look at it.
            repeats: the operation broadcasts, and takes lazy operands.
        """
        named, own = self._named(inputs, repeats)
        given = dtype or own
        made = {slot: self.writer.declare(self.writer.fresh(kind), given, shape) for slot in (*results, *spare) if slot}
        outputs = {slot: [handle.name] for slot, handle in made.items()}
        for slot, handle in (into or {}).items():
            outputs[slot] = [handle.name]
        self.writer.operation(kind, named, outputs, attributes)
        found = [made[slot] for slot in results if slot]
        return found[0] if len(found) == 1 else tuple(found)

    def many(self, kind: str, inputs: Mapping[str, Any], attributes: Mapping[str, Any], slot: str) -> list[Handle]:
        """An operation with one slot of as many results as the recorded operator has."""
        named, _ = self._named(inputs, False)
        made = [self.writer.declare(self.writer.fresh(kind), v.dtype, ()) for v in self._outputs]
        self.writer.operation(kind, named, {slot: [handle.name for handle in made]}, attributes)
        return made

    def recurrent(self, inputs: Mapping[str, Any], attributes: Mapping[str, Any]) -> tuple[Handle, list[Handle]]:
        """(the outputs, the final states) of the format's recurrent operation, whose states are a slot of several."""
        named, dtype = self._named(inputs, False)
        outputs = self.writer.declare(self.writer.fresh("rnn"), dtype, ())
        finals = [self.writer.declare(self.writer.fresh("rnn_state"), dtype, ()) for _ in named["PreState"]]
        unread = {slot: [self.writer.declare(self.writer.fresh("rnn"), "uint8", ()).name] for slot in ("DropoutState", "Reserve")}
        results = {"Out": [outputs.name], "State": [h.name for h in finals], **unread}
        self.writer.operation("rnn", named, results, attributes)
        return outputs, finals

    def _named(self, inputs: Mapping[str, Any], repeats: bool) -> tuple[dict[str, list[str]], str]:
        """(variables by slot, the dtype of the first tensor), Python numbers as constants of that dtype."""
        lists = {slot: value if isinstance(value, list) else [value] for slot, value in inputs.items()}
        if not repeats and any(v.is_lazy for values in lists.values() for v in values if isinstance(v, Handle)):
            raise UnsupportedError(
                message(f"{self.name} needs a tensor repeated to an unknown size", "the format cannot say that")
            )
        tensors = [v for values in lists.values() for v in values if isinstance(v, Handle) and v.value is None]
        dtype = tensors[0].dtype if tensors else ""
        named = {
            slot: [self.of(v, dtype if getattr(v, "weak", True) else "").name for v in values] for slot, values in lists.items()
        }
        return named, dtype or "float32"

    # ------------------------------------------------------------------ what the recorded operator's results are

    def result_dtype(self) -> str:
        """The dtype of the first result."""
        return str(self._outputs[0].dtype)

    def result_shape(self) -> list[int]:
        """The sizes of the first result, which must be known."""
        sizes = [int(n) for n in self._outputs[0].shape]
        if -1 in sizes:
            raise UnsupportedError(
                message(
                    f"{self.name} makes a tensor of sizes {sizes}", "the format needs to know them", "give the data fixed sizes"
                )
            )
        return sizes

    def result_rank(self) -> int:
        """The number of axes of the first result."""
        return len(self._outputs[0].shape)

    def result_sizes(self, axis: int) -> list[int]:
        """The sizes of all results along an axis; -1 for at most one that is not known."""
        return [int(v.shape[axis]) for v in self._outputs]

    # ------------------------------------------------------------------ operands

    def number(self, value: Any) -> Any:
        """The Python number that an operand is; None for a tensor."""
        return value.value if isinstance(value, Handle) else value

    def of(self, value: Any, dtype: str = "") -> Handle:
        """The operand as a variable: a number becomes a constant of this dtype, its own by default."""
        return self._held(value, dtype, value.shape if isinstance(value, Handle) else ())

    def scalar(self, value: Any) -> Handle:
        """The operand as a variable for an elementwise operation, which broadcasts: a number becomes a 0-D constant."""
        return self._held(value, "", ())

    def _held(self, value: Any, dtype: str, shape: Sequence[int]) -> Handle:
        if isinstance(value, Handle) and value.value is None:
            return value
        number = self.number(value)
        own = value.dtype if isinstance(value, Handle) else "float32" if isinstance(number, float) else "int64"
        if -1 in shape:
            raise UnsupportedError(
                message(f"{self.name} needs a constant of sizes {list(shape)}", "the format has no constant of unknown size")
            )
        return self.constant(number, dtype or own, shape)

    def renumbered(self, value: Handle, shape: Sequence[int]) -> Handle:
        """The number in a tensor of another shape, still without a variable."""
        return Handle("", value.dtype, tuple(shape), value.weak, value.value)

    def lazy(self, value: Handle, shape: Sequence[int]) -> Handle:
        """The same variable, standing for a tensor of this shape that it broadcasts to."""
        return Handle(value.name, value.dtype, tuple(shape), value.weak, None, True)

    def constant(self, number: Any, dtype: str, shape: Sequence[int]) -> Handle:
        """A tensor filled with a number."""
        made = self.writer.declare(self.writer.fresh("fill_constant"), dtype, shape)
        exact = "" if isinstance(number, complex) else repr(int(number)) if dtypes.kind(dtype) in "iub" else repr(float(number))
        attributes = {"shape:L": list(shape), "dtype:t": dtype, "value:f": _in_float32(number), "str_value:s": exact}
        self.writer.operation("fill_constant", {}, {"Out": [made.name]}, attributes)
        return made

    def filled(self, like: Handle, number: float) -> Handle:
        """A tensor of the shape and dtype of another, filled with a number."""
        return self("fill_any_like", {"X": like}, {"value:f": number, "dtype:t": like.dtype})  # type: ignore[no-any-return]

    def cast(self, value: Any, dtype: Any) -> Any:
        """The operand in this dtype; as it is for None."""
        name = dtypes.name_of(dtype) if dtype is not None else ""
        if not name:
            return value
        if self.number(value) is not None:
            shape = value.shape if isinstance(value, Handle) else ()
            return self._held(value, name, () if -1 in shape else shape)
        if value.dtype == name:
            return value
        attributes = {"in_dtype:t": str(value.dtype), "out_dtype:t": name}
        return self("cast", {"X": value}, attributes, dtype=name, shape=value.shape, repeats=True)

    def broadcast(self, *values: Handle) -> list[Handle] | None:
        """The operands repeated to the result's shape, for operations that do not broadcast; None where the format cannot say it."""
        wanted = [int(n) for n in self._outputs[0].shape]
        found = []
        for value in values:
            own = [1] * (len(wanted) - value.ndim) + list(value.shape)
            if own == wanted and value.ndim == len(wanted):
                found.append(value)
                continue
            if any(n == -1 != m for n, m in zip(wanted, own, strict=True)):
                return None
            found.append(self("expand_v2", {"X": value}, {"shape:I": wanted}, dtype=value.dtype, shape=wanted))
        return found

    def promoted(self, *values: Any) -> tuple[Handle, ...]:
        """The operands in the one dtype that recorded operators compute in; numbers as constants of it."""
        handles = [
            v if isinstance(v, Handle) else Handle("", "float64" if isinstance(v, float) else "int64", (), True, v)
            for v in values
        ]
        strong = [h for h in handles if not h.weak]
        found = (strong or handles)[0].dtype
        for handle in strong:
            found = dtypes.promote(found, handle.dtype)
        for handle in handles:
            if handle.weak:
                found = dtypes.promote_scalar(found, dtypes.kind(handle.dtype))
        return tuple(self.cast(h, found) for h in handles)


def _in_float32(number: Any) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(number.real if isinstance(number, complex) else number))
