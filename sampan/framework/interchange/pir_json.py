"""``.json`` files of PaddlePaddle 3: a program of its newer IR, to a Model.

Values are numbered in the file; a Model calls them "%1", "%2" ... and parameters and fed data by the names that the file gives them.
"""

from __future__ import annotations

import json
from typing import Any

from ...base import dtypes
from .model import Attribute, Block, Model, Operation, Variable, damaged

_BUILTIN, _OPERATORS = "0.", "1."
_TYPES = {
    "bool": "bool", "ui8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16", "bf16": "bfloat16",
    "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128", "index": "int64",
}  # fmt: skip
_SCALARS = {
    "a_bool": "bool",
    "a_str": "string",
    "a_f32": "float",
    "a_f64": "float64",
    "a_i32": "int",
    "a_i64": "long",
    "a_index": "long",
}
_MOST_DEPTH = 64  # of nested regions and lists of attributes


def read_model(content: bytes, what: str = "the model") -> Model:
    """The model in a ``.json`` file's bytes; ``what`` names it in errors.

    Raises:
        ModelFileError: the bytes are no such program.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(what, f"it is no JSON ({error})") from error
    try:
        base = document["base_code"]
        if base["magic"] != "pir":
            raise damaged(what, f"its magic word is {base['magic']!r}, not 'pir'")
        reader = _Reader(what, Model("pir", [], int(base["version"])))
        regions = document["program"]["regions"]
        reader.region(regions[0], -1, 0)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        if isinstance(error, type(damaged("", ""))):
            raise
        raise damaged(what, f"an entry is missing or of the wrong kind ({type(error).__name__}: {error})") from error
    reader.model.check(what)
    return reader.model


class _Reader:
    """Walks the document; ``names`` are the values that parameters and fed data name."""

    def __init__(self, what: str, model: Model) -> None:
        self.what = what
        self.model = model
        self.names: dict[int, str] = {}

    def region(self, region: dict[str, Any], parent: int, depth: int) -> int:
        """Read a region of one block; its number."""
        if depth > _MOST_DEPTH:
            raise damaged(self.what, f"regions are nested more than {_MOST_DEPTH} deep")
        blocks = region["blocks"]
        if len(blocks) != 1:
            raise damaged(self.what, f"a region has {len(blocks)} blocks; one is expected")
        number, made = len(self.model.blocks), Block(parent)
        self.model.blocks.append(made)
        for argument in [*blocks[0].get("args", []), *blocks[0].get("kwargs", [])]:
            made.arguments.append(self.define(argument, made))
        for op in blocks[0]["ops"]:
            self.operation(op, made, number, depth)
        return number

    def define(self, output: dict[str, Any], block: Block) -> str:
        """Declare a value's variable; its name."""
        number = output["%"] if "%" in output else output["#"]  # a region's arguments have negative numbers of their own
        name = self.names.get(number, f"%{number}")
        kind, dtype, shape = _type(output.get("TT") or {})
        block.variables[name] = Variable(name, kind, dtype, shape)
        return name

    def operation(self, op: dict[str, Any], block: Block, number: int, depth: int) -> None:
        """Read one operation into the block."""
        kind = op["#"]
        if kind == "p":
            self.parameter(op, block)
            return
        attributes = {a["N"]: _attribute(a["AT"], 0) for a in op.get("A", [])}
        if kind == f"{_OPERATORS}data":
            self.names[op["O"][0]["%"]] = str(attributes["name"].value)
        outputs = {str(k): [self.define(o, block)] for k, o in enumerate(op["O"])}
        inputs = {str(k): [self.name(i["%"])] if i["%"] else [] for k, i in enumerate(op["I"])}
        made = Operation(_kind(kind), inputs, outputs, attributes)
        block.operations.append(made)
        regions = op.get("regions", [])
        if regions:
            made.attributes["regions"] = Attribute("blocks", [self.region(r, number, depth + 1) for r in regions])

    def parameter(self, op: dict[str, Any], block: Block) -> None:
        """Declare a parameter: three flags and its name."""
        output = op["O"][0] if isinstance(op["O"], list) else op["O"]
        name = op["A"][3]
        if not isinstance(name, str):
            raise damaged(self.what, f"a parameter's name is {name!r}")
        self.names[output["%"]] = name
        self.define(output, block)
        variable = block.variables[name]
        variable.is_parameter = True
        variable.is_persistable = bool(op.get("OA", [1])[0])  # a scratch state of recurrent layers is not in the parameter file

    def name(self, number: int) -> str:
        return self.names.get(number, f"%{number}")


def _kind(code: str) -> str:
    """Operators by their bare name; those of other dialects as "builtin.combine", "control.yield"."""
    dialect, _, name = code.partition(".")
    return {"0": f"builtin.{name}", "1": name, "2": f"control.{name}"}.get(dialect, code)


def _type(described: dict[str, Any]) -> tuple[str, str, tuple[int, ...]]:
    code = described.get("#", "").partition(".")[2].removeprefix("t_")
    if code == "dtensor":
        element, sizes = described["D"][0], described["D"][1]
        return "tensor", _TYPES.get(element["#"].partition(".")[2].removeprefix("t_"), ""), tuple(int(n) for n in sizes)
    if code == "vec":
        return "list", "", ()
    return {"stack": "stack", "dtensor_array": "array", "sr": "rows"}.get(code, code or "none"), "", ()


def _attribute(described: dict[str, Any], depth: int) -> Attribute:
    """An attribute by its type's code; lists become lists of plain values."""
    code, value = described["#"].partition(".")[2], described["D"] if "D" in described else described["VD"]
    if depth > _MOST_DEPTH:
        raise ValueError(f"lists are nested more than {_MOST_DEPTH} deep")
    if code in _SCALARS:
        return Attribute(_SCALARS[code], float(value) if code in ("a_f32", "a_f64") else value)
    if code == "a_array":
        items = [_attribute(item, depth + 1) for item in value]
        return Attribute(f"{items[0].kind}s" if items else "list", [item.value for item in items])
    if code == "a_intarray":
        return Attribute("longs", [int(n) for n in value])
    if code == "a_dtype":
        return Attribute("dtype", dtypes.name_of(value) or None)
    return Attribute(code, value)
