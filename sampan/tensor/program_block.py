"""Blocks and statements of a Program, seen from outside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..base import names
from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..ir.program import Block as OpBlock
from ..ir.program import Op
from ..ops.arguments import dtype_name
from ..ops.define import operator_named
from .replay import FUNCTIONS, Operand, map_attribute
from .variable import UNKNOWN, Variable


@dataclass(frozen=True, repr=False)
class Operator:
    """A statement of a Program: its ``type``, the names of its Variables by the names of its parameters, and its attributes."""

    op: Op

    @property
    def type(self) -> str:
        """Which operator or function it calls."""
        return self.op.name

    name = type

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The Variables that it takes."""
        return self.op.inputs

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The Variables that it makes."""
        return self.op.outputs

    @property
    def blocks(self) -> tuple[OpBlock, ...]:
        """The blocks inside it."""
        return self.op.blocks

    @property
    def input_arg_names(self) -> list[str]:
        """The names of the Variables that it takes."""
        return [v.name for v in self.op.inputs]

    @property
    def output_arg_names(self) -> list[str]:
        """The names of the Variables that it makes."""
        return [v.name for v in self.op.outputs]

    def _slots(self) -> dict[str, list[str]]:
        """The inputs' names by parameter; what belongs to none, as keys and captured Variables, by number."""
        op, found, used = self.op, dict[str, list[str]](), set[int]()
        if op.name in FUNCTIONS:
            for name, value in op.attributes.items():
                places: list[int] = []
                map_attribute(value, lambda v, places=places: places.append(v.index) if isinstance(v, Operand) else None)  # type: ignore[misc]
                if places and not name.startswith("@"):
                    found[name] = [op.inputs[k].name for k in places]
                    used.update(places)
        elif (definition := operator_named(op.name)) is not None:
            values = definition.arguments(op, list(range(len(op.inputs))))
            for parameter, value in zip(definition.parameters, values, strict=True):
                if parameter.kind != "attr" and value is not None:
                    numbers = value if isinstance(value, (list, tuple)) else [value]
                    found[parameter.name] = [op.inputs[k].name for k in numbers]
                    used.update(numbers)
        return found | {str(k): [v.name] for k, v in enumerate(op.inputs) if k not in used}

    @property
    def input_names(self) -> list[str]:
        """The parameters that take Variables."""
        return list(self._slots())

    @property
    def output_names(self) -> list[str]:
        """The results, by number."""
        return [str(k) for k in range(len(self.op.outputs))]

    def input(self, name: str) -> list[str]:
        """The names of the Variables that this parameter takes.

        Raises:
            ArgumentError: it takes none.
        """
        slots = self._slots()
        if name not in slots:
            raise ArgumentError(message(f"{self.type} takes no Variable as {name!r}", f"it has {', '.join(slots) or 'none'}"))
        return slots[name]

    def output(self, name: str) -> list[str]:
        """The name of the Variable that is the result of this number."""
        if name not in self.output_names:
            raise ArgumentError(message(f"{self.type} has no result {name!r}", f"it has {', '.join(self.output_names)}"))
        return [self.op.outputs[int(name)].name]

    def _attributes(self) -> dict[str, Any]:
        return {k: v for k, v in self.op.attributes.items() if not k.startswith("@") and not isinstance(v, Operand)}

    @property
    def attr_names(self) -> list[str]:
        """The names of its attributes."""
        return list(self._attributes())

    def has_attr(self, name: str) -> bool:
        """Whether it has an attribute of this name."""
        return name in self._attributes()

    def attr(self, name: str) -> Any:
        """The value of an attribute.

        Raises:
            ArgumentError: there is none of this name.
        """
        found = self._attributes()
        if name not in found:
            raise ArgumentError(message(f"{self.type} has no attribute {name!r}", f"it has {', '.join(found) or 'none'}"))
        return found[name]

    def all_attrs(self) -> dict[str, Any]:
        """Its attributes by name."""
        return self._attributes()

    def __str__(self) -> str:
        results = ", ".join(self.output_arg_names)
        return (
            f"{results} = {self.type}({', '.join(self.input_arg_names)})"
            if results
            else f"{self.type}({', '.join(self.input_arg_names)})"
        )

    def __repr__(self) -> str:
        return f"Operator({self})"


@dataclass(frozen=True)
class ProgramBlock:
    """A block of a Program, seen from outside."""

    program: Any
    block: OpBlock
    idx: int
    parent_idx: int = -1

    @property
    def ops(self) -> list[Operator]:
        """Its statements."""
        return [Operator(op) for op in self.block.ops]

    def iter_parameters(self) -> Iterator[Any]:
        """The trained Variables, one after another."""
        return iter(self.all_parameters())

    @property
    def vars(self) -> dict[str, Any]:
        """Its Variables by name."""
        found = {v.name: v for v in self.block.arguments} | {v.name: v for op in self.block.ops for v in op.outputs}
        return {**self.program.variables, **found} if self.idx == 0 else found

    def var(self, name: str) -> Any:
        """The Variable of this name."""
        return self.program.var(name) if self.idx == 0 else self.vars[name]

    def has_var(self, name: str) -> bool:
        """Whether it has a Variable of this name."""
        return name in self.vars

    def all_parameters(self) -> list[Any]:
        """The trained Variables."""
        return self.program.all_parameters()

    def create_var(
        self,
        name: str | None = None,
        shape: Any = (),
        dtype: Any = "float32",
        persistable: bool = False,
        stop_gradient: bool = True,
        **_: Any,
    ) -> Variable:
        """A new Variable without a value: to be assigned to, or fed."""
        made = Variable(
            dtype_name("create_var", dtype), checked_shape("create_var", shape), name or names.generate("tmp_var"), persistable=persistable,
            stop_gradient=stop_gradient,
        )  # fmt: skip
        return self.program.add(made)


def checked_shape(function: str, shape: Any) -> list[int]:
    """The sizes, -1 for None. Raises for what is no shape."""
    if not isinstance(shape, (list, tuple)):
        raise ArgumentTypeError(
            message(f"{function}(): shape is {shape!r}", "it must be a list or tuple of integers, -1 or None for unknown sizes")
        )
    sizes = []
    for n in shape:
        if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < UNKNOWN):
            raise ArgumentTypeError(
                message(f"{function}(): shape holds {n!r}", "sizes are integers from 0 on, -1 or None for unknown ones")
            )
        sizes.append(UNKNOWN if n is None else n)
    return sizes
