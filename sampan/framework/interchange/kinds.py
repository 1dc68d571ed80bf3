"""The numbers that the ProgramDesc format gives to attribute types, variable types and element types."""

from __future__ import annotations

from ..dense_tensor import NAMES, NUMBERS

#: Attribute types, by number. ``FIELDS`` says which field of an attribute's message holds the value.
ATTRIBUTE_KINDS = (
    "int", "float", "string", "ints", "floats", "strings", "bool", "bools", "block", "long", "blocks", "longs", "float64s", "var", "vars",
    "float64", "scalar", "scalars",
)  # fmt: skip
ATTRIBUTE_FIELDS = {
    "int": "i", "float": "f", "string": "s", "ints": "ints", "floats": "floats", "strings": "strings", "bool": "b", "bools": "bools",
    "block": "block_idx", "long": "l", "blocks": "blocks_idx", "longs": "longs", "float64s": "float64s", "var": "var_name",
    "vars": "vars_name", "float64": "float64", "scalar": "scalar", "scalars": "scalars",
}  # fmt: skip

#: Variable types that are no element types.
VARIABLE_KINDS = {
    "tensor": 7, "rows": 8, "feed": 9, "fetch": 10, "scopes": 11, "rank table": 12, "array": 13, "places": 14, "reader": 15, "raw": 17,
    "tuple": 18, "string": 25, "strings": 26, "vocabulary": 27, "feed list": 28, "pstring": 29, "sparse coo": 30, "sparse csr": 31,
}  # fmt: skip
VARIABLE_NAMES = {number: name for name, number in VARIABLE_KINDS.items()}


def dtype_name(number: int) -> str:
    """The element type with this number; "" where there is none of ours."""
    name = NAMES.get(number, "")
    return "bfloat16" if name == "uint16" else name


def dtype_number(name: str) -> int:
    """The number of an element type of ours."""
    return NUMBERS["uint16" if name == "bfloat16" else name]
