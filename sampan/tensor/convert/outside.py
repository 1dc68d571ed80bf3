"""What reaches past the program: files, clocks, logs, processes. A recorded Program would do it once, where eager mode does it in every call."""

from __future__ import annotations

import builtins
import datetime
import io
import logging
import os
import pathlib
import pickle
import queue
import socket
import subprocess
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import numpy as np

#: Objects whose methods read or change what others see.
_OWNERS = (
    io.IOBase, logging.Logger, logging.LoggerAdapter, queue.Queue, queue.SimpleQueue, socket.socket, subprocess.Popen, os._Environ,
)  # fmt: skip
#: Modules all of whose functions do. Those of an operating system's own names (``posix``) are what ``os`` shows.
_MODULES = frozenset(
    "time os posix nt genericpath shutil subprocess _socket socket logging tempfile secrets uuid glob urllib.request _io io".split()
)
#: Functions of other modules that do.
_FUNCTIONS = frozenset(
    (
        builtins.open,
        builtins.input,
        pickle.dump,
        pickle.load,
        np.save,
        np.savez,
        np.savez_compressed,
        np.savetxt,
        np.load,
        np.loadtxt,
    )
)
#: Methods of objects that are plain values otherwise.
_METHODS: tuple[tuple[type, frozenset[str]], ...] = (
    (np.ndarray, frozenset(("tofile", "dump"))),
    (
        pathlib.Path,
        frozenset(
            "open read_text read_bytes write_text write_bytes exists is_file is_dir stat lstat iterdir glob rglob mkdir rmdir touch unlink rename replace chmod "
            "symlink_to hardlink_to samefile".split()
        ),
    ),
)
_CLOCKS = frozenset(("now", "utcnow", "today"))


def acts_outside(function: Any) -> bool:
    """Whether a call of the function gives or does something that depends on, or changes, what lies outside of the program."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(owner, _OWNERS):
        return True
    if isinstance(owner, type):
        return name in _CLOCKS and issubclass(owner, datetime.date)
    if any(isinstance(owner, kind) and name in names for kind, names in _METHODS):
        return True
    if isinstance(function, type):
        return False
    try:
        if function in _FUNCTIONS:
            return True
    except TypeError:  # not hashable
        return False
    return getattr(function, "__module__", None) in _MODULES


def outer_iterator(function: FunctionType, has_closure: bool) -> str:
    """The variable outside of the function that it names and that holds an iterator, which every call moves on; empty when there is none.

    has_closure: whether the variables of enclosing functions are outside too.
    """
    names = function.__globals__
    found = {n: names[n] for n in _names(function.__code__) if n in names}
    if has_closure:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                found[name] = cell.cell_contents
            except ValueError:  # not set yet
                continue
    return next((name for name, value in found.items() if isinstance(value, Iterator) and not isinstance(value, io.IOBase)), "")


def _names(code: CodeType) -> set[str]:
    """The names that the code and what is defined inside of it read past their own variables."""
    found = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _names(inner)
    return found
