"""A model file's content as plain data: blocks of operations over named variables, whichever format it was in.

Nothing here knows what an operation means; ``rows`` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...base.errors import ArgumentError, message


class ModelFileError(ArgumentError):
    """A model or parameter file is damaged, cut off, or of another format."""


def damaged(what: str, why: str) -> ModelFileError:
    """The error for a file that cannot be what its name says."""
    return ModelFileError(message(f"{what} cannot be read", why, "it is damaged, cut off, or was not written by PaddlePaddle"))


@dataclass(frozen=True)
class Attribute:
    """One attribute: its value, and ``kind``, the type that the file gives it (``kinds.py``'s names: "int", "longs", "block" ...)."""

    kind: str
    value: Any


@dataclass
class Variable:
    """One variable of a block. ``kind`` is "tensor", "array" (of tensors), "rows", or what else the format has; sizes that are not known are -1."""

    name: str
    kind: str = "tensor"
    dtype: str = ""
    shape: tuple[int, ...] = ()
    is_persistable: bool = False
    is_parameter: bool = False
    stops_gradient: bool = False


@dataclass
class Operation:
    """One operation: names of variables by slot, in the format's own order, and attributes by name.

    A PIR operation has no slot names; its slots are called "0", "1" ... An absent optional operand is an empty list.
    """

    kind: str
    inputs: dict[str, list[str]] = field(default_factory=dict)
    outputs: dict[str, list[str]] = field(default_factory=dict)
    attributes: dict[str, Attribute] = field(default_factory=dict)

    def value(self, name: str, default: Any = None) -> Any:
        """An attribute's value, or the default where the operation does not have it."""
        found = self.attributes.get(name)
        return default if found is None else found.value

    def sub_blocks(self) -> list[int]:
        """The numbers of the blocks that the operation runs."""
        found: list[int] = []
        for attribute in self.attributes.values():
            if attribute.kind == "block":
                found.append(attribute.value)
            elif attribute.kind == "blocks":
                found += attribute.value
        return found


@dataclass
class Block:
    """A list of operations over variables; names that are not its own are its parent's. ``arguments``: what a PIR region is entered with."""

    parent: int = -1
    variables: dict[str, Variable] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)


@dataclass
class Model:
    """A whole model. ``dialect`` is "program" (ProgramDesc) or "pir"; block 0 is where it starts; ``version`` is the file's own."""

    dialect: str
    blocks: list[Block] = field(default_factory=lambda: [Block()])
    version: int = 0
    operator_versions: dict[str, int] = field(default_factory=dict)

    def operations(self) -> Iterator[Operation]:
        """Every operation of every block."""
        for block in self.blocks:
            yield from block.operations

    def parameters(self) -> dict[str, Variable]:
        """The variables whose content lies in the parameter file, by name."""
        return {
            v.name: v
            for block in self.blocks
            for v in block.variables.values()
            if v.is_persistable and v.kind in ("tensor", "array")
        }

    def feeds(self) -> list[str]:
        """The names that the model is fed by, in order."""
        marks = [
            (op.value("col", 0), name) for op in self.blocks[0].operations if op.kind == "feed" for name in op.outputs["Out"]
        ]
        data = [op.value("name") for op in self.blocks[0].operations if op.kind == "data"]
        return [name for _, name in sorted(marks)] or data

    def fetches(self) -> list[str]:
        """The variables that the model gives back, in order."""
        marks = [
            (op.value("col", 0), k, name)
            for k, op in enumerate(self.blocks[0].operations)
            if op.kind == "fetch"
            for names in op.inputs.values()
            for name in names
        ]
        return [name for _, _, name in sorted(marks)]

    def check(self, what: str) -> None:
        """Raise ModelFileError where blocks refer to blocks that are not there, or to themselves, or what is fed goes nowhere."""
        count = len(self.blocks)
        if not count:
            raise damaged(what, "it has no block")
        for number, block in enumerate(self.blocks):
            if number and not 0 <= block.parent < number and block.parent != -1:
                raise damaged(what, f"block {number} has the parent {block.parent}, which does not come before it")
            for op in block.operations:
                if op.kind == "feed" and "Out" not in op.outputs:
                    raise damaged(what, f"a feed of block {number} has no output Out")
                for inner in op.sub_blocks():
                    if not number < inner < count:
                        raise damaged(
                            what, f"{op.kind} of block {number} runs block {inner}; only {number + 1} to {count - 1} may follow"
                        )
