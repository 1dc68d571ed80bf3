"""SavedFunction: a recorded function apart from the Python that it came from, as data and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base import nest
from ..base.errors import ArgumentError, message
from ..ir.program import Block
from .convert.numbers import DTYPES
from .program import Program
from .program_data import Reader, Writer, damaged, decoded, encoded
from .runner import Runner
from .traced import Items, OptionalResult, Result, TextResult, Traced, filled
from .variable import Variable

_NUMBERS = {kind.__name__: kind for kind in DTYPES}


@dataclass
class SavedFunction:
    """A recorded function.

    Attributes:
        block: its arguments are the inputs, then the held tensors.
        updates: (number of an argument, what it becomes).
        structure: what it returns, a ``Result`` for each tensor.
        held: the names of the tensors that it uses.
        left_out: the Python objects that the function changes and a file does not have.
    """

    block: Block
    updates: list[tuple[int, Any]]
    structure: Any
    held: list[str]
    left_out: list[str] = field(default_factory=list)

    @staticmethod
    def of(traced: Traced, names: Mapping[int, str]) -> SavedFunction:
        """The recording. ``names``: what its tensors are called, by their ids.

        A change of a tensor that the function reads again is kept. Other changes of Python objects (an attention map kept to be looked at, a flag) are
        left out: what the recording computes does not depend on them.
        """
        updates = list(traced.updates)
        left_out = []
        for effect in traced.effects:
            k = next((k for k, t in enumerate(traced.tensors) if t is effect.old), None)
            if k is None or not isinstance(effect.value, Variable):
                left_out.append(str(effect.place))
            else:
                updates.append((len(traced.inputs) + k, traced.program.recorder.operand(effect.value)))
        return SavedFunction(traced.block, updates, traced.structure, [names[id(t)] for t in traced.tensors], left_out)

    @property
    def inputs(self) -> list[Any]:
        """The Variables of its tensor arguments."""
        return self.block.arguments[: len(self.block.arguments) - len(self.held)]

    def data(self) -> dict[str, Any]:
        """Everything as JSON holds it."""
        writer = Writer()
        return {
            "block": writer.block(self.block),
            "updates": [[k, writer.number(v)] for k, v in self.updates],
            "structure": _structure_data(self.structure),
            "held": self.held,
        }

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> SavedFunction:
        """The function of the data.

        Raises:
            ArgumentError: the data is damaged.
        """
        reader = Reader()
        try:
            block = reader.block(data["block"])
            updates = [(k, reader.variables[n]) for k, n in data["updates"]]
            return SavedFunction(block, updates, _structure(data["structure"]), list(data["held"]))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise damaged(f"{type(error).__name__}: {error}") from error

    def bound(self, tensors: Mapping[str, Any], name: str) -> Callable[..., Any]:
        """A Python function over these tensors."""
        runner = Runner(self.block, self.updates, name)
        held = [tensors[k] for k in self.held]
        inputs = self.inputs

        def call(*args: Any) -> Any:
            given = nest.flatten(list(args))
            _check(name, inputs, given)
            results = runner([*given, *held])
            return filled(self.structure, results)

        call.__name__ = call.__qualname__ = name
        return call

    def program(self) -> Program:
        """The function as a Program, to be looked at."""
        program = Program()
        program.recorder.block = self.block
        program.variables = {v.name: v for v in self.block.arguments}  # type: ignore[misc]
        return program


def _check(name: str, inputs: Sequence[Any], given: Sequence[Any]) -> None:
    if len(given) != len(inputs):
        raise ArgumentError(
            message(f"{name}() takes {len(inputs)} tensors, got {len(given)}", f"they are {', '.join(v.name for v in inputs)}")
        )
    for variable, value in zip(inputs, given, strict=True):
        shape = tuple(getattr(value, "shape", ()))
        dtype = getattr(getattr(value, "dtype", None), "name", type(value).__name__)
        sizes = variable.sizes
        if (
            dtype != variable.dtype
            or len(shape) != len(sizes)
            or any(n not in (-1, m) for n, m in zip(sizes, shape, strict=True))
        ):
            raise ArgumentError(
                message(
                    f"{name}(): {variable.name} is {dtype}{list(shape)}",
                    f"it was saved for {variable.dtype}{list(sizes)}",
                    "give a tensor of that dtype and shape; -1 stands for any size",
                )
            )


def _structure_data(tree: Any) -> Any:
    if isinstance(tree, Result):
        return {"result": [tree.index, None if tree.number is None else tree.number.__name__]}
    if isinstance(tree, TextResult):
        return {"text": [p if isinstance(p, str) else list(p) for p in tree.pieces]}
    if isinstance(tree, Items):
        return {"items": _structure_data(tree.item)}
    if isinstance(tree, OptionalResult):
        return {"optional": [_structure_data(tree.present), _structure_data(tree.value)]}
    if isinstance(tree, dict):
        return {"dict": [[encoded(k, "the result"), _structure_data(v)] for k, v in tree.items()]}
    if isinstance(tree, (list, tuple)):
        return {"list" if isinstance(tree, list) else "tuple": [_structure_data(v) for v in tree]}
    return {"value": encoded(tree, "the result")}


def _structure(data: Mapping[str, Any]) -> Any:
    ((kind, of),) = data.items()
    if kind == "result":
        return Result(of[0], None if of[1] is None else _NUMBERS[of[1]])
    if kind == "text":
        return TextResult(tuple(p if isinstance(p, str) else tuple(p) for p in of))
    if kind == "items":
        return Items(_structure(of))
    if kind == "optional":
        return OptionalResult(*map(_structure, of))
    if kind == "dict":
        return {decoded(k): _structure(v) for k, v in of}
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(map(_structure, of))
    return decoded(of)
