"""Paddle's binary form of one tensor, as ``save(..., use_binary_format=True)`` and ``.pdiparams`` files hold it.

The bytes: uint32 version (0) · uint64 number of level-of-detail rows (0) · uint32 version (0) · int32 length of a protobuf
message · that message (field 1: the element type's number; field 2, repeated: the sizes) · the content, row-major.
"""

from __future__ import annotations

import io
import math
import struct
from typing import BinaryIO

import numpy as np

from ..base.errors import ArgumentError, message
from .arrays import content

#: The numbers that the format gives to element types. bfloat16 (22) is held as uint16, as in every file of Paddle's.
NUMBERS = {
    "bool": 0, "int16": 1, "int32": 2, "int64": 3, "float16": 4, "float32": 5, "float64": 6,
    "uint8": 20, "int8": 21, "uint16": 22, "complex64": 23, "complex128": 24,
}  # fmt: skip
NAMES = {number: name for name, number in NUMBERS.items()}


def write(array: np.ndarray, file: BinaryIO) -> None:
    """Write one array; a uint16 array stands for bfloat16."""
    number = NUMBERS.get(array.dtype.name)
    if number is None:
        raise ArgumentError(message(f"save(): an array of {array.dtype}", f"the binary format holds {', '.join(NUMBERS)}"))
    described = b"\x08" + _varint(number) + b"".join(b"\x10" + _varint(size) for size in array.shape)
    file.write(struct.pack("<IQIi", 0, 0, 0, len(described)) + described)
    file.write(content(array))


def read(file: BinaryIO) -> np.ndarray:
    """The array at the file's position; bfloat16 comes back as uint16.

    Raises:
        ArgumentError: the bytes there are no tensor, or are cut off.
    """
    head = file.read(20)
    if len(head) < 20 or head[:4] + head[12:16] != bytes(8):
        raise _damaged("it does not start as one")
    levels, size = struct.unpack("<4xQ4xi", head)
    if levels or not 0 <= size < 1 << 16:
        raise _damaged(
            "it has level-of-detail rows, which are not supported" if levels else "its description has an impossible size"
        )
    fields = _fields(file.read(size))
    kind = NAMES.get(fields.get(1, [-1])[0])
    if kind is None:
        raise _damaged(f"its element type has the unknown number {fields.get(1, ['(none)'])[0]}")
    shape = fields.get(2, [])
    needed, held = math.prod(shape) * np.dtype(kind).itemsize, _bytes_left(file)
    if needed > held:  # before memory of that size is asked for
        raise _damaged(f"its content is cut off: shape {shape} of {kind} needs {needed} bytes and {held} follow")
    try:
        array = np.empty(shape, kind)
    except ValueError as error:  # of more axes, or larger ones beside an empty one, than an array has
        raise _damaged(f"its shape is impossible ({error})") from error
    if file.readinto(content(array)) != math.prod(shape) * array.itemsize:  # type: ignore[attr-defined]
        raise _damaged("its content is cut off")
    return array


def _bytes_left(file: BinaryIO) -> int:
    at = file.tell()
    end = file.seek(0, io.SEEK_END)
    file.seek(at)
    return end - at


def _damaged(why: str) -> ArgumentError:
    return ArgumentError(message("load(): the file is no tensor in Paddle's binary format", why))


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes(parts) + bytes([number])


def _fields(described: bytes) -> dict[int, list[int]]:
    """The integer fields of a protobuf message: field number to values; sizes may be packed into one field."""
    found: dict[int, list[int]] = {}
    at = 0
    while at < len(described):
        key, at = _read_varint(described, at)
        if key & 7 == 2:
            length, at = _read_varint(described, at)
            end = at + length
            while at < min(end, len(described)):
                value, at = _read_varint(described, at)
                found.setdefault(key >> 3, []).append(value)
        elif key & 7 == 0:
            value, at = _read_varint(described, at)
            found.setdefault(key >> 3, []).append(value)
        else:
            raise _damaged("its description cannot be read")
    return found


def _read_varint(described: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(described) and shift < 64:
        value |= (described[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if described[at - 1] < 128:
            return value, at
    raise _damaged("its description is cut off")
