"""Pickle streams of containers and arrays: written without copies, read without running anything a file asks for.

Reading replaces every global that a stream names by an entry of a short list; NumPy's own are replaced by stand-ins that check
sizes and types, so that a damaged or hostile file can raise, and do nothing else.
"""

from __future__ import annotations

import codecs
import collections
import math
import pickle
import re
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

import numpy as np

from ..base.errors import ArgumentError, SampanError, describe, message
from ..tensor import DType
from .arrays import content


class UnsafeFileError(SampanError, pickle.UnpicklingError):
    """A file names something that is not on the list of what may be loaded."""


# Arrays from this size on stand outside a frame, so that readers need not hold them twice; pickle itself uses the same size.
_FRAME_BYTES = 64 * 1024
_DTYPE_TEXT = re.compile(r"[biufcSUV?O]\d*")


class _DType:
    """What a stream's ``numpy.dtype(text, align, copy)`` makes: an element type, once its byte order is known."""

    def __init__(self, text: Any, align: Any = False, copy: Any = False) -> None:
        name = getattr(text, "__name__", text)
        if isinstance(text, type) and issubclass(text, np.generic):
            name = np.dtype(text).str[1:]
        if not isinstance(name, str) or not _DTYPE_TEXT.fullmatch(name):
            raise UnsafeFileError(
                message(
                    f"the file holds an array of the type {describe(text)}", "only plain numbers, text and objects can be read"
                )
            )
        self.dtype = np.dtype(name)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if len(state) > 4 and any(part is not None for part in state[2:5]):
            raise UnsafeFileError(
                message("the file holds a structured array", "only plain numbers, text and objects can be read")
            )
        if state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(state[1])


class _Array(np.ndarray):
    """An array whose state is checked before NumPy sees it."""

    def __new__(cls, *unused: Any) -> _Array:
        return np.ndarray.__new__(cls, (0,), np.int8)

    def __setstate__(self, state: tuple[Any, ...]) -> None:  # type: ignore[override]
        shape, kind, is_fortran, content = state[-4:]
        if not isinstance(kind, _DType) or not isinstance(shape, tuple) or any(not isinstance(n, int) or n < 0 for n in shape):
            raise UnsafeFileError(message("the file holds a damaged array", "its shape or type cannot be read"))
        if isinstance(content, str):  # written by Python 2
            content = content.encode("latin1")
        holds_objects = kind.dtype.hasobject
        expected = math.prod(shape) * (1 if holds_objects else kind.dtype.itemsize)
        if isinstance(content, list) is not holds_objects or not isinstance(content, (list, bytes)) or len(content) != expected:
            raise UnsafeFileError(
                message(f"the file holds a damaged array: shape {list(shape)}, type {kind.dtype}", "its content has another size")
            )
        super().__setstate__((1, shape, kind.dtype, bool(is_fortran), content))  # type: ignore[arg-type]


def _reconstruct(kind: Any, shape: Any, code: Any) -> _Array:
    if kind is not _Array:
        raise UnsafeFileError(message(f"the file holds an array of the class {describe(kind)}", "only plain arrays can be read"))
    return _Array()


def _scalar(kind: Any, content: Any = b"") -> Any:
    if isinstance(content, str):
        content = content.encode("latin1")
    if (
        not isinstance(kind, _DType)
        or kind.dtype.hasobject
        or not isinstance(content, bytes)
        or len(content) != kind.dtype.itemsize
    ):
        raise UnsafeFileError(message("the file holds a damaged NumPy number", "its type or size cannot be read"))
    return np.frombuffer(content, kind.dtype)[0]


def _encode(text: str, codec: str = "latin1") -> bytes:
    """Bytes as protocols 0 to 2 write them."""
    if codec != "latin1" or not isinstance(text, str):
        raise UnsafeFileError(message(f"the file asks for the codec {codec!r}", "only latin1 is used for bytes"))
    return text.encode("latin1")


def _bytearray(content: Any = b"", codec: str = "latin1") -> bytearray:
    return bytearray(content if isinstance(content, bytes) else _encode(content, codec))


def _bytes(*content: Any) -> bytes:
    """No bytes, as protocol 2 writes them."""
    if content:
        raise UnsafeFileError(message(f"the file asks for bytes({describe(content[0])})", "that could take memory of any size"))
    return b""


_BUILTINS: dict[str, Any] = {t.__name__: t for t in (tuple, list, dict, set, frozenset, complex, int, float, bool, str, slice)}
_BUILTINS |= {"bytes": _bytes, "bytearray": _bytearray, "long": int, "unicode": str}
_ARRAYS = {"_reconstruct": _reconstruct, "scalar": _scalar}
_NUMBERS = {
    name: getattr(np, name)
    for name in "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
}
_SAFE: dict[str, dict[str, Any]] = {
    "builtins": _BUILTINS,
    "__builtin__": _BUILTINS,
    "collections": {"OrderedDict": collections.OrderedDict, "defaultdict": collections.defaultdict, "deque": collections.deque},
    "_codecs": {"encode": _encode},
    "numpy": {"ndarray": _Array, "dtype": _DType, **_NUMBERS},
    "numpy.core.multiarray": _ARRAYS,
    "numpy._core.multiarray": _ARRAYS,
    DType.__module__: {"DType": DType},
}


class _Reader(pickle.Unpickler):
    def __init__(self, file: BinaryIO, trusted: Iterable[type]) -> None:
        super().__init__(file, encoding="latin1")
        self._trusted = {(t.__module__, t.__qualname__): t for t in trusted}

    def find_class(self, module: str, name: str) -> Any:
        found = _SAFE.get(module, {}).get(name) or self._trusted.get((module, name))
        if found is None:
            raise UnsafeFileError(
                message(
                    f"load(): the file asks for {module}.{name}",
                    "loading it could run any code, so only containers, numbers, text, arrays and tensors are loaded",
                    f"if you trust the file's origin, import that class and pass load(path, trusted_types=[{name}])",
                )
            )
        return found

    def persistent_load(self, pid: Any) -> Any:
        raise UnsafeFileError(message("load(): the file refers to objects outside itself", "it was not written by save()"))


def read(file: BinaryIO, trusted: Iterable[type] = ()) -> Any:
    """The object in the stream, its arrays and element types as NumPy's own.

    Args:
        file: a binary file; it is read to the end of one object.
        trusted: classes that may be loaded besides containers, numbers, text and arrays.

    Raises:
        UnsafeFileError: the stream names anything else.
        pickle.UnpicklingError, EOFError: it is no pickle stream, or it is cut off.
    """
    return _plain(_Reader(file, trusted).load())


def _plain(value: Any) -> Any:
    """The same value with plain arrays and dtypes in place of the stand-ins; lists, deques and dicts are changed in place."""
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if isinstance(value, _DType):
        return value.dtype
    if isinstance(value, dict):
        for key, item in value.items():
            value[key] = _plain(item)
    elif isinstance(value, (list, collections.deque)):
        for k, item in enumerate(value):
            value[k] = _plain(item)
    elif type(value) is tuple:
        return tuple(_plain(item) for item in value)
    return value


class _Writer(pickle._Pickler):
    """A pickler whose arrays go straight from their memory to the file: no copy of the content is made, or kept until the end."""

    dispatch: dict[type, Callable[..., None]] = dict(pickle._Pickler.dispatch)  # type: ignore[assignment, misc]
    proto: int
    save: Callable[[object], None]
    save_reduce: Callable[..., None]
    write: Callable[[bytes | memoryview], object]
    _write_large_bytes: Callable[[bytes, memoryview], object]

    def save_array(self, array: np.ndarray) -> None:
        """Write one array: a call of ``numpy.ndarray`` (a name every NumPy has; ``_reconstruct`` has moved), then its state."""
        if array.dtype.hasobject or array.dtype.fields is not None:
            self.save_reduce(*array.__reduce__(), obj=array)
            return
        self.save_reduce(np.ndarray, ((0,), "i1"), obj=array)
        is_transposed = array.flags.f_contiguous and not array.flags.c_contiguous
        self.write(pickle.MARK)
        for part in (1, array.shape, array.dtype, is_transposed):
            self.save(part)
        self._save_content(content(array.T if is_transposed else array))
        self.write(pickle.TUPLE + pickle.BUILD)

    dispatch[np.ndarray] = save_array

    def _save_content(self, held: memoryview) -> None:
        if self.proto < 3:
            # Protocol 2 has no bytes: they are text that latin1 encodes, written here so that the memo does not keep it.
            text = str(held, "latin1").encode("utf-8", "surrogatepass")
            self.save(codecs.encode)
            self.write(pickle.BINUNICODE + self._size(text, 4))
            self.write(text)
            self.save("latin1")
            self.write(pickle.TUPLE2 + pickle.REDUCE)
        elif len(held) < _FRAME_BYTES or self.proto < 4:
            self.write(pickle.BINBYTES + self._size(held, 4))
            self.write(held)
        else:
            self._write_large_bytes(pickle.BINBYTES8 + self._size(held, 8), held)

    def _size(self, held: memoryview | bytes, width: int) -> bytes:
        if len(held) >= 1 << 8 * width:
            raise ArgumentError(
                message(
                    f"save(): an array of {len(held):,} bytes with protocol={self.proto}",
                    "that protocol holds at most 4 GiB in one piece",
                    "pass protocol=4",
                )
            )
        return len(held).to_bytes(width, "little")


def write(value: Any, file: Any, protocol: int) -> None:
    """Write one object.

    Args:
        value: containers, numbers, text, arrays; or anything else that can be pickled, if ``read`` is told to trust it.
        file: a binary file, or anything with ``write(bytes)``.
        protocol: the pickle protocol, 2 to 4.
    """
    _Writer(file, protocol).dump(value)
