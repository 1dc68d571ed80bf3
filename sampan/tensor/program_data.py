"""Recorded blocks as plain data, for files: everything that running them needs, save the tensors."""

from __future__ import annotations

import base64
import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes
from ..base.errors import ArgumentError, UnsupportedError, message
from ..ir.program import Block, Op
from ..ops.primitives.views import ArrayData
from .autocast import Precision, register_precision
from .location import user_location
from .replay import Operand
from .variable import Variable

#: Counts changes of what is written that older readers would misread.
VERSION = 2


class Writer:
    """Numbers the Variables of the blocks that it writes."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._held: list[Any] = []

    def number(self, variable: Any) -> int:
        """The Variable's number."""
        found = self._numbers.get(id(variable))
        if found is None:
            found = self._numbers[id(variable)] = len(self._held)
            self._held.append(variable)
        return found

    def variable(self, variable: Any) -> list[Any]:
        """A Variable where it is made: its number and type."""
        flags = [bool(getattr(variable, n, False)) for n in ("stop_gradient", "weak", "persistable")]
        if getattr(variable, "is_severed", False) and not variable.stop_gradient:
            flags.append(True)
        probes = None if getattr(variable, "probes", None) is None else [list(p) for p in variable.probes]
        return [self.number(variable), variable.name, str(variable.dtype), list(variable.sizes), flags, probes]

    def block(self, block: Block) -> dict[str, Any]:
        """The block as data."""
        return {
            "arguments": [self.variable(v) for v in block.arguments],
            "ops": [self._op(op) for op in block.ops],
            "results": [self.number(v) for v in block.results],
        }

    def _op(self, op: Op) -> list[Any]:
        if op.role:
            raise UnsupportedError(
                message(f"the Program holds {op.name} of its {op.role} part", "only forward computations are saved")
            )
        attributes = {name: encoded(value, op.name) for name, value in op.attributes.items()}
        found: list[Any] = [op.name, [self.number(v) for v in op.inputs], attributes, [self.variable(v) for v in op.outputs]]
        return [*found, [self.block(b) for b in op.blocks]] if op.blocks else found


class Reader:
    """Makes the Variables of the blocks that it reads."""

    def __init__(self) -> None:
        self.variables: dict[int, Variable] = {}

    def _variable(self, data: Sequence[Any]) -> Variable:
        number, name, dtype, sizes, (stop_gradient, weak, persistable, *severed), probes = data
        if dtype not in _rt.dtypes:
            raise damaged(f"it names the dtype {dtype!r}")
        made = Variable(
            dtype, sizes, name, stop_gradient=stop_gradient, weak=weak, persistable=persistable,
            probes=None if probes is None else (tuple(probes[0]), tuple(probes[1])),
        )  # fmt: skip
        made.is_severed = bool(severed)
        self.variables[number] = made
        return made

    def block(self, data: dict[str, Any]) -> Block:
        """The block of the data."""
        block = Block([self._variable(v) for v in data["arguments"]])
        for name, inputs, attributes, outputs, *blocks in data["ops"]:
            own = {k: decoded(v) for k, v in attributes.items()}
            op = Op(name, tuple(self.variables[n] for n in inputs), own, (), (), user_location())
            op.blocks = tuple(self.block(b) for b in (blocks[0] if blocks else ()))
            op.outputs = tuple(self._variable(v) for v in outputs)
            for v in op.outputs:
                v.op = op
            block.ops.append(op)
        block.results = tuple(self.variables[n] for n in data["results"])
        return block


def encoded(value: Any, what: str) -> Any:
    """An attribute as JSON holds it: numbers, texts and None as they are, anything else under its kind."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [encoded(v, what) for v in value]
    kind, data = _tagged(value, what)
    return {"kind": kind, "of": data}


def _tagged(value: Any, what: str) -> tuple[str, Any]:
    if isinstance(value, float):
        return "float", value.hex()
    if isinstance(value, complex):
        return "complex", [value.real.hex(), value.imag.hex()]
    if isinstance(value, dict):
        return "dict", [[encoded(k, what), encoded(v, what)] for k, v in value.items()]
    if isinstance(value, slice):
        return "slice", [encoded(v, what) for v in (value.start, value.stop, value.step)]
    if value is Ellipsis:
        return "ellipsis", None
    if isinstance(value, Operand):
        return "operand", value.index
    if isinstance(value, _rt.DType):
        return "dtype", value.name
    if isinstance(value, ArrayData):
        return "array", [value.array.dtype.name, list(value.array.shape), base64.b64encode(value.array.tobytes()).decode()]
    if isinstance(value, Precision):
        return "precision", [value.level, value.dtype, sorted(value.white), sorted(value.black)]
    if isinstance(value, Exception) and getattr(builtins, type(value).__name__, None) is type(value):
        return "error", [type(value).__name__, encoded(list(value.args), what)]
    raise UnsupportedError(
        message(
            f"{what} has an attribute that is a {type(value).__name__}",
            "a file holds numbers, texts and arrays, but no Python objects",
            "leave that part out of what is saved",
        )
    )


def decoded(data: Any) -> Any:
    """The attribute of its data; lists come back as tuples."""
    if isinstance(data, list):
        return tuple(map(decoded, data))
    if not isinstance(data, dict):
        return data
    kind, of = data["kind"], data["of"]
    if kind not in _READERS:
        raise damaged(f"it has an attribute of the kind {kind!r}")
    return _READERS[kind](of)


def _array(data: Sequence[Any]) -> ArrayData:
    name, shape, content = data
    return ArrayData(np.frombuffer(base64.b64decode(content), dtypes.numpy_dtype(name)).reshape(shape))


def _error(data: Sequence[Any]) -> Exception:
    kind = getattr(builtins, data[0], None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        raise damaged(f"it raises {data[0]!r}")
    return kind(*decoded(data[1]))


_READERS: dict[str, Any] = {
    "float": float.fromhex,
    "complex": lambda d: complex(*map(float.fromhex, d)),
    "dict": lambda d: {decoded(k): decoded(v) for k, v in d},
    "slice": lambda d: slice(*map(decoded, d)),
    "ellipsis": lambda d: Ellipsis,
    "operand": Operand,
    "dtype": lambda d: _rt.dtypes[d],
    "array": _array,
    "precision": lambda d: register_precision(Precision(d[0], d[1], frozenset(d[2]), frozenset(d[3]))),
    "error": _error,
}


def damaged(why: str) -> ArgumentError:
    """The error for data that is no recorded Program."""
    return ArgumentError(message("the data of a saved Program is damaged, or of a later version", why))
