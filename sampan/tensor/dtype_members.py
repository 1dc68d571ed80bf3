"""What a dtype has beside its name: the members of Paddle's enumeration of dtypes."""

from __future__ import annotations

from .. import _rt
from ..base.dtypes import ABSENT, AbsentDType

#: The numbers of Paddle's enumeration. NumPy holds bfloat16 as its bits, which Paddle once named UINT16.
_NUMBERS = {
    "undefined": 0, "bool": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "uint32": 6, "int32": 7, "uint64": 8, "int64": 9, "float32": 10,
    "float64": 11, "complex64": 12, "complex128": 13, "pstring": 14, "float16": 15, "bfloat16": 16, "float8_e4m3fn": 17, "float8_e5m2": 18,
}  # fmt: skip


def install_dtype_members() -> None:
    """Give the dtypes ``value``, and their class a member for each."""
    kind = type(_rt.dtypes["float32"])
    kind.value = property(lambda self: _NUMBERS[self.name], doc="Its number in Paddle's enumeration of dtypes.")
    for name in _NUMBERS:
        member = _rt.dtypes.get("bfloat16" if name == "uint16" else name) or ABSENT.get(name)
        setattr(kind, name.upper(), member or AbsentDType(name))
    kind.ALL_DTYPE = kind.UNDEFINED
