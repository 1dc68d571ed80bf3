"""Programs as text: printing and parsing back.

::

    program softmax(%x: float32[2, 3]) {
      %0: float32[2, 1] = reduce_max(%x) {axes=(1,)}
      return %0
    }
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any

from ..base.errors import IRError
from .program import Block, Op, Program, Value


def name_values(program: Program) -> dict[int, str]:
    """A unique printed name for every Value, by id: arguments keep theirs, results are numbered in order."""
    names: dict[int, str] = {}
    used: set[str] = set()

    def visit(block: Block) -> None:
        for value in block.arguments:
            name = value.name or f"a{len(names)}"
            while name in used:
                name += "_"
            used.add(name)
            names[id(value)] = name
        for op in block.ops:
            for value in op.outputs:
                name = value.name if value.name and value.name not in used else str(len(names))
                used.add(name)
                names[id(value)] = name
            for inner in op.blocks:
                visit(inner)

    visit(program.body)
    return names


def _type(value: Value) -> str:
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]{'~' if value.weak else ''}"


def _attribute(value: Any) -> str:
    if isinstance(value, float) and (math.isinf(value) or math.isnan(value)):
        return f"float({str(value)!r})"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(_attribute, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def print_op(op: Op, names: dict[int, str] | None = None, indent: str = "") -> str:
    """One Op on a line; blocks follow, indented."""

    def ref(value: Value) -> str:
        return "%" + (names[id(value)] if names and id(value) in names else value.name or "?")

    left = ", ".join(f"{ref(v)}: {_type(v)}" for v in op.outputs)
    attributes = ", ".join(f"{k}={_attribute(v)}" for k, v in op.attributes.items())
    line = f"{indent}{left}{' = ' if left else ''}{op.name}({', '.join(map(ref, op.inputs))})"
    if attributes:
        line += f" {{{attributes}}}"
    for block in op.blocks:
        line += f" do {_arguments(block, ref)} {{\n{_body(block, names or {}, indent + '  ')}{indent}}}"
    return line


def _arguments(block: Block, ref: Any) -> str:
    return "(" + ", ".join(f"{ref(v)}: {_type(v)}" for v in block.arguments) + ")"


def _body(block: Block, names: dict[int, str], indent: str) -> str:
    lines = [print_op(op, names, indent) + "\n" for op in block.ops]
    lines.append(f"{indent}return {', '.join('%' + names[id(v)] for v in block.results)}\n")
    return "".join(lines)


def print_program(program: Program) -> str:
    """The whole Program as text; ``parse_program`` gives an equal one back."""
    names = name_values(program)
    head = _arguments(program.body, lambda v: "%" + names[id(v)])
    return f"program {program.name}{head} {{\n{_body(program.body, names, '  ')}}}\n"


_TOKEN = re.compile(
    r"\s*(?:(?P<value>%[\w.@/]+)|(?P<number>-?\d+)|(?P<word>[A-Za-z_][\w.]*)|(?P<mark>[(){}\[\],:=~])|(?P<end>$))"
)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.values: dict[str, Value] = {}

    def fail(self, wanted: str) -> IRError:
        line = self.text.count("\n", 0, self.at) + 1
        around = self.text[self.at : self.at + 40].strip().split("\n")[0]
        return IRError(f"line {line}: expected {wanted}, found {around!r}")

    def peek(self, mark: str) -> bool:
        match = _TOKEN.match(self.text, self.at)
        return bool(match and match.group().strip() == mark)

    def take(self, kind: str, exact: str | None = None) -> str:
        match = _TOKEN.match(self.text, self.at)
        token = match and match.group(kind)
        if not match or token is None or (exact is not None and token != exact):
            raise self.fail(exact or kind)
        self.at = match.end()
        return token

    def mark(self, exact: str) -> None:
        self.take("mark", exact)

    def listed(self, end: str, item: Any) -> list[Any]:
        items: list[Any] = []
        while not self.peek(end):
            items.append(item())
            if not self.peek(end):
                self.mark(",")
        return items

    def typed(self) -> Value:
        name = self.take("value")[1:]
        self.mark(":")
        dtype = self.take("word")
        self.mark("[")
        shape = tuple(self.listed("]", lambda: int(self.take("number"))))
        self.mark("]")
        weak = self.peek("~")
        if weak:
            self.mark("~")
        value = Value(dtype, shape, name="" if name.isdigit() else name, weak=weak)
        self.values[name] = value
        return value

    def used(self) -> Value:
        name = self.take("value")[1:]
        if name not in self.values:
            raise self.fail(f"a value defined before %{name}")
        return self.values[name]

    def attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.peek("}"):
            key = self.take("word")
            self.mark("=")
            found[key] = self.literal()
            if not self.peek("}"):
                self.mark(",")
        return found

    def literal(self) -> Any:
        start, depth, quote, at = self.at, 0, "", self.at
        while at < len(self.text):
            c = self.text[at]
            if quote:
                at += c == "\\"
                quote = "" if c == quote else quote
            elif c in "'\"":
                quote = c
            elif c in "([{":
                depth += 1
            elif c in ")]}" and depth:
                depth -= 1
            elif c in ",}" and not depth:
                break
            at += 1
        self.at = at
        text = re.sub(
            r"float\('(-?inf|nan)'\)",
            lambda m: {"inf": "1e999", "-inf": "-1e999", "nan": "'__nan__'"}[m[1]],
            self.text[start:at].strip(),
        )
        return _restore(ast.literal_eval(text))

    def block(self) -> Block:
        block = Block()
        self.mark("(")
        block.arguments = self.listed(")", self.typed)
        self.mark(")")
        self.mark("{")
        while not self.peek("return"):
            block.ops.append(self.op())
        self.take("word", "return")
        block.results = tuple(self.listed("}", self.used))
        self.mark("}")
        return block

    def op(self) -> Op:
        outputs: list[Value] = []
        while self.peek_value():
            outputs.append(self.typed())
            if self.peek(","):
                self.mark(",")
        if outputs:
            self.mark("=")
        op = Op(self.take("word"), ())
        self.mark("(")
        op.inputs = tuple(self.listed(")", self.used))
        self.mark(")")
        if self.peek("{"):
            self.mark("{")
            op.attributes = self.attributes()
            self.mark("}")
        blocks = []
        while self.peek("do"):
            self.take("word", "do")
            blocks.append(self.block())
        op.blocks = tuple(blocks)
        op.outputs = tuple(outputs)
        for value in outputs:
            value.op = op
        return op

    def peek_value(self) -> bool:
        match = _TOKEN.match(self.text, self.at)
        return bool(match and match.group("value"))


def _restore(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_restore, value))
    return math.nan if value == "__nan__" else value


def parse_program(text: str) -> Program:
    """The Program that the text describes. Raises IRError with the line of what cannot be read."""
    parser = _Parser(text)
    parser.take("word", "program")
    name = parser.take("word")
    program = Program(name, parser.block())
    parser.take("end")
    return program


Op.__repr__ = print_op  # type: ignore[assignment]
Program.__str__ = print_program  # type: ignore[assignment]
