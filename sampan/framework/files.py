"""``save`` and ``load``: the files that PaddlePaddle's ``paddle.save`` and ``paddle.load`` use, and safetensors.

What a file holds, as read off files that PaddlePaddle 2 and 3 write:

- A *state dict* (every value a tensor, or a dict without tensors in it) is a dict of arrays, with one more entry,
  ``StructuredToParameterName@@``, from each key to its tensor's name.
- In any other object each tensor is the pair (its name, its array). Where no such pair is found, all arrays are tensors.
- bfloat16 is uint16.
- Protocols 2 and 3 cannot hold large arrays: a state dict's array above 2^30 - 1 bytes is cut into flat pieces ``key@@.0``,
  ``key@@.1`` ..., with their names and the shape under ``UnpackBigParamInfor@@``.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, describe, message
from . import dense_tensor, pickles, safetensors
from .arrays import bits, from_bits, is_tensor, to_array, to_tensor
from .atomic import replacing

NAME_TABLE = "StructuredToParameterName@@"
PIECE_TABLE = "UnpackBigParamInfor@@"
_PIECE_BYTES = 2**30 - 1


class MissingFileError(ArgumentError, FileNotFoundError):
    """The file to load is not there."""


def save(obj: Any, path: Any, protocol: int = 4, **configs: Any) -> None:
    """Write an object with its tensors to a file that PaddlePaddle can read too.

    A file appears whole or not at all: if anything fails, the old file stays as it was. Folders are made as needed.

    Args:
        obj: a state dict, a tensor, or any nesting of dicts, lists and tuples of tensors, arrays, numbers and text.
        path: the file, or an open binary file such as ``io.BytesIO``. A name that ends in ``.safetensors`` gets that format,
            which holds a flat dict of tensors.
        protocol: the pickle protocol, 2 to 4.
        **configs: ``use_binary_format=True`` writes one tensor in Paddle's binary form; ``pickle_protocol`` is ``protocol``'s
            old name.

    Raises:
        ArgumentError: the path is empty or a folder, or the protocol or a config is unknown.
        ArgumentTypeError: the object is a layer (save its ``state_dict()``), or ``path`` is no path.

    Example:
        >>> import io, numpy as np
        >>> from sampan.framework import load, save
        >>> file = io.BytesIO()
        >>> save({"epoch": 3, "history": [0.5, 0.25]}, file)
        >>> load(file.seek(0) or file)
        {'epoch': 3, 'history': [0.5, 0.25]}
    """
    use_binary_format, protocol = _save_options(protocol, configs)
    if callable(getattr(obj, "state_dict", None)) and callable(getattr(obj, "forward", None)):
        raise ArgumentTypeError(
            message(
                f"save(): obj is a layer ({type(obj).__name__})",
                "a file holds tensors, not code",
                "save layer.state_dict(), and give it to set_state_dict() after load()",
            )
        )
    if not _is_file(path):
        path = _checked_path("save", path)
        if path.endswith(".safetensors"):
            if not isinstance(obj, Mapping):
                raise ArgumentTypeError(
                    message(f"save(): obj is {describe(obj)}", "a safetensors file holds a flat dict of names to tensors")
                )
            safetensors.save_file(obj, path)
            return
    if use_binary_format:
        if not (is_tensor(obj) or isinstance(obj, np.ndarray)):
            raise ArgumentTypeError(
                message(f"save(use_binary_format=True): obj is {describe(obj)}", "the binary format holds one tensor")
            )
        content = bits(to_array(obj))
    else:
        content = _to_arrays(obj, protocol)
    if _is_file(path):
        _write(content, path, protocol, use_binary_format)
    else:
        with replacing(path) as file:
            _write(content, file, protocol, use_binary_format)


def _write(content: Any, file: Any, protocol: int, use_binary_format: bool) -> None:
    if use_binary_format:
        dense_tensor.write(content, file)
    else:
        pickles.write(content, file, protocol)


def load(path: Any, **configs: Any) -> Any:
    """The object in a file that ``save``, PaddlePaddle 1.8 to 3 (``.pdparams``, ``.pdopt`` ...) or safetensors wrote.

    Only containers, numbers, text, arrays and tensors are loaded; a file that names anything else is refused, because
    loading it could run any code.

    Args:
        path: the file, or an open binary file such as ``io.BytesIO``.
        **configs: ``return_numpy=True`` gives arrays in place of tensors (bfloat16 as uint16, as Paddle does);
            ``keep_name_table=True`` keeps the entry ``StructuredToParameterName@@``;
            ``trusted_types=[...]`` lists classes that the file may hold besides.

    Returns:
        The object; arrays that were tensors are tensors again.

    Raises:
        MissingFileError: there is no such file (a FileNotFoundError and a ValueError).
        UnsafeFileError: the file names a class or function that is not on the list.
        ArgumentError: the file is damaged or of another format, or a config is unknown.

    Example:
        >>> import io, numpy as np
        >>> from sampan.framework import load, save
        >>> file = io.BytesIO()
        >>> save({"weight": np.ones((2, 3), "float32")}, file)
        >>> load(file.seek(0) or file, return_numpy=True)["weight"].shape
        (2, 3)
    """
    return_numpy, keep_name_table, trusted = _load_options(configs)
    if _is_file(path):
        return _from_arrays(_read(path, "the file", trusted), return_numpy, keep_name_table)
    path = _checked_path("load", path)
    if not os.path.exists(path):
        raise MissingFileError(message(f"load({path!r}): there is no such file", "", f"the working folder is {os.getcwd()}"))
    if path.endswith(".safetensors"):
        return (
            {k: bits(np.array(v)) for k, v in safetensors.read_arrays(path).items()}
            if return_numpy
            else safetensors.load_file(path)
        )
    with open(path, "rb") as file:
        return _from_arrays(_read(file, repr(path), trusted), return_numpy, keep_name_table)


def _read(file: Any, shown: str, trusted: Iterable[type]) -> Any:
    start = file.tell()
    first = file.read(1)
    file.seek(start)
    if first == b"\x00":
        return _Lone(dense_tensor.read(file))
    try:
        return pickles.read(file, trusted)
    except pickles.UnsafeFileError:
        raise
    except Exception as error:  # a damaged stream can make the unpickler raise anything
        raise ArgumentError(
            message(
                f"load(): {shown} cannot be read ({type(error).__name__}: {error})",
                "it is damaged, cut off, or was not written by save()",
            )
        ) from error


class _Lone(tuple):  # type: ignore[type-arg]
    """The pair (name, array) of a tensor that stood alone in a file."""

    def __new__(cls, array: np.ndarray) -> _Lone:
        return super().__new__(cls, ("", array))


def _is_state_dict(obj: Any) -> bool:
    if not isinstance(obj, dict):
        return False
    return all(not _holds_tensor(v) if isinstance(v, dict) else is_tensor(v) for v in obj.values())


def _holds_tensor(obj: Any) -> bool:
    if isinstance(obj, dict):
        obj = obj.values()
    elif not isinstance(obj, (list, tuple, set, frozenset)):
        return is_tensor(obj)
    return any(map(_holds_tensor, obj))


def _to_arrays(obj: Any, protocol: int) -> Any:
    """What the file holds for this object."""
    if not _is_state_dict(obj):
        return _pairs(obj, ())
    held = {k: bits(to_array(v)) if is_tensor(v) else v for k, v in obj.items()}
    held[NAME_TABLE] = {k: v.name for k, v in obj.items() if is_tensor(v)}
    return _cut(held) if protocol < 4 else held


def _pairs(obj: Any, above: tuple[int, ...]) -> Any:
    """The object with the pair (name, array) in place of each tensor."""
    if is_tensor(obj):
        return obj.name, bits(to_array(obj))
    if not isinstance(obj, (dict, list, tuple)):
        return bits(obj) if isinstance(obj, np.ndarray) else obj
    if id(obj) in above:
        raise ArgumentError(message("save(): a container holds itself", "the file would have no end"))
    above = (*above, id(obj))
    if isinstance(obj, dict):
        return _like(obj, {k: _pairs(v, above) for k, v in obj.items()})
    return _like(obj, [_pairs(v, above) for v in obj])


def _like(obj: Any, items: Any) -> Any:
    """The items in a container that a file can name: subclasses (named tuples, default dicts) become the plain kind."""
    if isinstance(obj, OrderedDict):
        return OrderedDict(items)
    return tuple(items) if isinstance(obj, tuple) else items


def _cut(held: dict[Any, Any]) -> dict[Any, Any]:
    """The same dict with its large arrays in pieces."""
    result, table = {}, {}
    for key, value in held.items():
        if not isinstance(value, np.ndarray) or value.nbytes <= _PIECE_BYTES:
            result[key] = value
            continue
        flat, step = value.reshape(-1), _PIECE_BYTES // value.itemsize
        pieces = {f"{key}@@.{i}": flat[start : start + step] for i, start in enumerate(range(0, flat.size, step))}
        table[key] = {"OriginShape": value.shape, "slices": list(pieces)}
        result.update(pieces)
    return {**result, PIECE_TABLE: table} if table else result


def _join(held: dict[Any, Any]) -> None:
    """Put the pieces of large arrays together again, in place."""
    for key, entry in held.pop(PIECE_TABLE).items():
        try:
            held[key] = np.concatenate([held.pop(name) for name in entry["slices"]]).reshape(entry["OriginShape"])
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(
                message(f"load(): the pieces of {key!r} do not fit together", str(error), "the file is damaged")
            ) from error


def _from_arrays(held: Any, return_numpy: bool, keep_name_table: bool) -> Any:
    """The object that the file's content means."""
    revive = (lambda array: np.array(array)) if return_numpy else (lambda array: to_tensor(from_bits(array)))
    if isinstance(held, dict) and PIECE_TABLE in held:
        _join(held)
    if isinstance(held, dict) and NAME_TABLE in held:
        table = held.pop(NAME_TABLE)
        revived = {k: revive(v) if isinstance(v, np.ndarray) else v for k, v in held.items()}
        return {**revived, NAME_TABLE: table} if keep_name_table else revived
    is_wanted = _is_pair if _holds_pair(held) else lambda value: isinstance(value, np.ndarray)
    return _revive(held, is_wanted, lambda value: revive(value[1] if isinstance(value, tuple) else value))


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], np.ndarray)


def _holds_pair(held: Any) -> bool:
    if _is_pair(held):
        return True
    if isinstance(held, dict):
        held = held.values()
    return isinstance(held, (list, tuple, type({}.values()))) and any(map(_holds_pair, held))


def _revive(held: Any, is_wanted: Any, revive: Any) -> Any:
    if is_wanted(held):
        return revive(held)
    if isinstance(held, dict):
        for key, value in held.items():
            held[key] = _revive(value, is_wanted, revive)
    elif isinstance(held, list):
        held[:] = [_revive(value, is_wanted, revive) for value in held]
    elif isinstance(held, tuple):
        return tuple(_revive(value, is_wanted, revive) for value in held)
    return held


def _is_file(path: Any) -> bool:
    return hasattr(path, "write") or hasattr(path, "read")


def _checked_path(owner: str, path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(
            message(f"{owner}(): path is {describe(path)}", "it must be a path, or an open binary file such as io.BytesIO")
        )
    text = os.fspath(path)
    if not isinstance(text, str):
        text = os.fsdecode(text)
    if not os.path.basename(text) or os.path.isdir(text):
        raise ArgumentError(
            message(
                f"{owner}(): path is {text!r}",
                "it must name a file, not a folder",
                f"for example {os.path.join(text, 'model.pdparams')!r}",
            )
        )
    return text


def _save_options(protocol: Any, configs: dict[str, Any]) -> tuple[bool, int]:
    protocol = configs.pop("pickle_protocol", protocol)
    use_binary_format = bool(configs.pop("use_binary_format", False))
    _refuse("save", configs, "use_binary_format, pickle_protocol")
    if not isinstance(protocol, int) or isinstance(protocol, bool):
        raise _ProtocolError(message(f"save(): protocol is {describe(protocol)}", "it must be an int from 2 to 4"))
    if not 2 <= protocol <= 4:
        raise ArgumentError(
            message(f"save(): protocol is {protocol}", "it must be 2, 3 or 4, which all of PaddlePaddle's versions read")
        )
    return use_binary_format, protocol


class _ProtocolError(ArgumentTypeError, ValueError):
    """A protocol of the wrong type; also a ValueError, which is what Paddle's users catch here."""


def _load_options(configs: dict[str, Any]) -> tuple[bool, bool, list[type]]:
    options = (
        bool(configs.pop("return_numpy", False)),
        bool(configs.pop("keep_name_table", False)),
        list(configs.pop("trusted_types", ())),
    )
    _refuse("load", configs, "return_numpy, keep_name_table, trusted_types")
    return options


def _refuse(owner: str, configs: dict[str, Any], known: str) -> None:
    if configs:
        raise ArgumentError(message(f"{owner}(): unknown option {next(iter(configs))!r}", "", f"the options are: {known}"))


__all__ = ["NAME_TABLE", "MissingFileError", "load", "save"]
