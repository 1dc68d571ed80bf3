"""The table of operators: one row says what an operation of PaddlePaddle's means in public functions here, in both of its formats, and back.

A row is text where names are all that differs::

    leaky_relu | leaky_relu(X) {alpha:f=negative_slope} | leaky_relu(x)

Our operator (``~name``: its operands are brought to one dtype); the ProgramDesc form
``kind(Slot=parameter, List*=parameter) {attribute:type=parameter} -> Out``; the PIR form
``kind(operand, operand) {attribute=parameter}``. ``=`` or nothing: the same name and parameters. A literal in place of a parameter (``'max'``, ``3``)
is a value that the attribute must have for the row to apply, and is written with. Types: ``i l f d b s`` and, for lists, ``I L F D B S``;
``t`` an element type; ``A`` axes, where an empty list means all; ``r`` the value as it is, a known array too.

Where more differs, the row is a Python function whose parameters are the format's own names, and ``writes`` gives the way back.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...ops.define import OPERATORS
from ...tensor import OPS

#: Types of attributes: the letter -> the name that the ProgramDesc format gives to the type.
KINDS = {
    "i": "int", "l": "long", "f": "float", "d": "float64", "b": "bool", "s": "string",
    "I": "ints", "L": "longs", "F": "floats", "D": "float64s", "B": "bools", "S": "strings", "t": "int", "A": "ints",
}  # fmt: skip
REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Binding:
    """One attribute or slot: its name in the format, the row's parameter for it, its type's letter, and whether it is a list of tensors."""

    name: str
    parameter: str
    kind: str = ""
    is_list: bool = False


@dataclass(frozen=True)
class Form:
    """A row in one of the formats. ``fixed``: attributes that must have a value; their types are in ``fixed_kinds``."""

    kind: str
    operands: tuple[Binding, ...]
    attributes: tuple[Binding, ...] = ()
    results: tuple[str, ...] = ("Out",)
    fixed: dict[str, Any] = field(default_factory=dict)
    fixed_kinds: dict[str, str] = field(default_factory=dict)

    def attribute(self, name: str) -> Binding:
        """The binding of an attribute; one that is not listed stands for the parameter of its name."""
        return next((b for b in self.attributes if b.name == name), Binding(name, name))


@dataclass(frozen=True)
class Row:
    """One row. ``tensors``: parameters that are tensors, ``lists``: those that are lists of them; the others are plain values."""

    function: Callable[..., Any]
    parameters: dict[str, Any]
    tensors: frozenset[str]
    lists: frozenset[str]
    forms: dict[str, Form]
    needs_op: bool = False


#: (dialect, kind) -> the rows that read it, in the order to try.
READERS: dict[tuple[str, str], list[Row]] = {}
#: Our operator -> how a recorded one is written as operations of a ProgramDesc.
WRITERS: dict[str, Callable[..., Any]] = {}

_FORM = re.compile(
    r"^\s*(?P<kind>[\w.]+)?\s*(?:\((?P<slots>[^)]*)\))?\s*(?:\{(?P<attributes>[^}]*)\})?\s*(?:->\s*(?P<results>[\w, ]+))?\s*$"
)


def _items(text: str | None) -> Iterator[tuple[str, str, str, bool]]:
    """(name, type's letter, what it stands for, is a list) of each item of a comma-separated list."""
    for item in filter(None, (part.strip() for part in (text or "").split(","))):
        left, _, target = item.partition("=")
        name, _, kind = left.partition(":")
        if ":" in target:
            target, _, kind = target.partition(":")
        yield name.rstrip("*"), kind, target, name.endswith("*")


def _literal(target: str) -> Any:
    """The value of a literal; REQUIRED where the text is a parameter's name."""
    try:
        return ast.literal_eval(target) if target else REQUIRED
    except (ValueError, SyntaxError):
        return REQUIRED


def parse_form(text: str, name: str, operands: tuple[Binding, ...], has_slots: bool) -> Form:
    """The form that the text describes; ``name`` and ``operands`` are what stands for parts that it leaves out."""
    found = _FORM.match("" if text.strip() == "=" else text)
    if found is None:
        raise ValueError(f"the form {text!r} of the row {name} cannot be read")
    if found["slots"] is not None:
        default = (lambda slot: slot.lower()) if has_slots else (lambda slot: slot)
        operands = tuple(Binding(n, target or default(n), kind, many) for n, kind, target, many in _items(found["slots"]))
    attributes, fixed, kinds = [], {}, {}
    for attribute, kind, target, _ in _items(found["attributes"]):
        literal = _literal(target)
        if literal is REQUIRED:
            attributes.append(Binding(attribute, target or attribute, kind))
        else:
            fixed[attribute], kinds[attribute] = literal, kind
    results = tuple(n for n, *_ in _items(found["results"])) or ("Out",)
    return Form(found["kind"] or name, operands, tuple(attributes), results, fixed, kinds)


def _register(row: Row) -> None:
    for dialect, form in row.forms.items():
        READERS.setdefault((dialect, form.kind), []).append(row)


def table(text: str) -> None:
    """Add rows of text, one a line."""
    for line in filter(None, (line.strip() for line in text.splitlines())):
        columns = [column.strip() for column in line.split("|")]
        _add_plain(columns[0], *(columns[1:] + ["="] * (3 - len(columns))))


def _add_plain(name: str, program: str, pir: str) -> None:
    promotes, name = name.startswith("~"), name.removeprefix("~")
    definition = OPERATORS[name]
    tensors = [p for p in definition.parameters if p.kind != "attr"]
    slots = tuple(Binding(p.name[0].upper() + p.name[1:], p.name, is_list=p.kind == "tensors") for p in tensors)
    operands = tuple(Binding(p.name, p.name, is_list=p.kind == "tensors") for p in tensors)
    forms = {}
    if program != "-":
        forms["program"] = parse_form(program, name, slots, True)
    if pir != "-":
        forms["pir"] = parse_form(pir, name, operands, False)
    parameters = {p.name: p.default for p in definition.parameters}
    row = Row(
        OPS[name],
        parameters,
        frozenset(p.name for p in tensors),
        frozenset(p.name for p in definition.parameters if p.kind == "tensors"),
        forms,
    )
    _register(row)
    if "program" in forms and name not in WRITERS:
        WRITERS[name] = _plain_writer(row, forms["program"], promotes)


def _plain_writer(row: Row, form: Form, promotes: bool) -> Callable[..., Any]:
    """Writes a recorded operator as the one operation of its row."""

    said = {b.parameter for b in (*form.operands, *form.attributes)}
    unsaid = {n: default for n, default in row.parameters.items() if n not in said}

    def write(emit: Any, **arguments: Any) -> Any:
        if any(arguments[n] != default for n, default in unsaid.items()):
            return NotImplemented  # the format has no place for it
        inputs = {
            b.name: arguments[b.parameter]
            for b in form.operands
            if b.parameter in row.tensors and arguments[b.parameter] is not None
        }
        attributes = {f"{n}:{form.fixed_kinds[n]}": value for n, value in form.fixed.items()}
        for b in form.attributes:
            attributes[f"{b.name}:{b.kind}"] = arguments[b.parameter]
        return emit(form.kind, inputs, attributes, form.results)

    return write


def row(program: str = "-", pir: str = "-", tensors: str = "", lists: str = "", needs_op: bool = False) -> Callable[..., Any]:
    """Add the decorated function as a row: its parameters are the formats' names, tensors being the ones named in ``tensors`` and ``lists``.

    By default the parameters without a default value are tensors. ``needs_op``: the function also takes the operation as ``op``.
    Several alternatives of a form are separated by ``;``.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = {p.name: p.default for p in inspect.signature(function).parameters.values() if p.name != "op"}
        many = frozenset(lists.split())
        single = frozenset(tensors.split()) if tensors else frozenset(n for n, d in parameters.items() if d is REQUIRED)
        operands = tuple(Binding(n, n, is_list=n in many) for n in parameters if n in single | many)
        slots = tuple(Binding(b.name[0].upper() + b.name[1:], b.parameter, is_list=b.is_list) for b in operands)
        for dialect, text in (("program", program), ("pir", pir)):
            for alternative in text.split(";") if text != "-" else ():
                form = parse_form(
                    alternative, function.__name__.strip("_"), slots if dialect == "program" else operands, dialect == "program"
                )
                _register(Row(function, parameters, single | many, many, {dialect: form}, needs_op))
        return function

    return decorate


def writes(*names: str) -> Callable[..., Any]:
    """The decorated function writes recorded operators of these names: it takes ``emit`` and the operator's parameters by name."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if name in WRITERS:
                raise ValueError(f"the operator {name} is written by two rows")
            WRITERS[name] = function
        return function

    return decorate
