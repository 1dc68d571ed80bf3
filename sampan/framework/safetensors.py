"""The safetensors format: uint64 length of a JSON header, the header (name to dtype, shape, place), the raw content.

The format's page: https://github.com/huggingface/safetensors (section "Format").
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.dtypes import numpy_dtype
from ..base.errors import ArgumentError, ArgumentTypeError, describe, message
from .arrays import content, to_array, to_tensor
from .atomic import replacing

_KINDS = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
}  # fmt: skip
_CODES = {name: code for code, name in _KINDS.items()}
_METADATA = "__metadata__"
_HEADER_LIMIT = 100_000_000  # the format's own limit


def save_file(tensors: Mapping[str, Any], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors or arrays to a safetensors file, atomically.

    Args:
        tensors: names to tensors or arrays.
        path: the file; an old one is replaced once the new one is whole.
        metadata: text to keep in the header.

    Raises:
        ArgumentTypeError: a name is no text, or a value is no tensor or array.
        ArgumentError: an element type, or a name, that the format does not have.

    Example:
        >>> import os, tempfile
        >>> import numpy as np
        >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
        >>> save_file({"bias": np.zeros(3, "float32")}, path)
        >>> read_arrays(path)["bias"].shape
        (3,)
    """
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    contents, at = [], 0
    for name, value in tensors.items():
        if not isinstance(name, str) or not hasattr(value, "shape"):
            raise ArgumentTypeError(
                message(f"save(): {name!r} is {describe(value)}", "a safetensors file holds a flat dict of names to tensors")
            )
        if name == _METADATA:
            raise ArgumentError(
                message(f"save(): a tensor is called {name!r}", "the format keeps that name", "give it another one")
            )
        array = to_array(value)
        code = _CODES.get(_kind_of(value, array))
        if code is None:
            raise ArgumentError(
                message(f"save(): {name!r} is {describe(value)}", f"the safetensors format holds {', '.join(_CODES)}")
            )
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        contents.append(array)
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the content is aligned
    with replacing(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in contents:
            file.write(content(array))


def load_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The tensors of a safetensors file, by name.

    Raises:
        ArgumentError: the file breaks the format's rules.
    """
    return {name: to_tensor(array) for name, array in read_arrays(path).items()}


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, by name: read-only views of the mapped file."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _HEADER_LIMIT):
            raise _damaged(path, "its header's length is impossible")
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            raise _damaged(path, f"its header is no JSON ({error})") from error
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[8 + length :]
    if not isinstance(header, dict):
        raise _damaged(path, "its header is no JSON object")
    return {name: _array(path, name, entry, mapped) for name, entry in header.items() if name != _METADATA}


def _array(path: Any, name: str, entry: Any, mapped: memoryview) -> np.ndarray:
    try:
        kind, shape, (start, end) = _KINDS[entry["dtype"]], entry["shape"], entry["data_offsets"]
        dtype = numpy_dtype(kind)
        is_sound = all(isinstance(n, int) and n >= 0 for n in [*shape, start, end])
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"the entry of {name!r} cannot be read ({error!r})") from error
    if not is_sound or not start <= end <= len(mapped) or end - start != math.prod(shape) * dtype.itemsize:
        raise _damaged(path, f"the entry of {name!r} does not fit the content")
    try:
        return np.frombuffer(mapped[start:end], dtype).reshape(shape)
    except ValueError as error:  # of more axes, or larger ones beside an empty one, than an array has
        raise _damaged(path, f"the entry of {name!r} has an impossible shape ({error})") from error


def _damaged(path: Any, why: str) -> ArgumentError:
    return ArgumentError(message(f"load(): {os.fspath(path)} is no whole safetensors file", why, "fetch or save it again"))


def _kind_of(value: Any, array: np.ndarray) -> str:
    """The element type's name; tensors of bfloat16 may come as uint16 arrays."""
    name = str(getattr(value, "dtype", array.dtype)).rpartition(".")[2]
    return "bfloat16" if name == "bfloat16" else array.dtype.name
