"""Calls made in forked children, so that a crash or a hang is seen and named."""

from __future__ import annotations

import faulthandler
import os
import pickle
import resource
import signal
import struct
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from sampan import _rt

#: What a call may raise; anything else (SystemError, KeyError, AssertionError, RecursionError ...) is a fault of ours.
ALLOWED = (TypeError, ValueError, IndexError, RuntimeError, MemoryError, NotImplementedError, OverflowError, ArithmeticError)

#: report("call", text) before each call, report("fault", text) for one that raised what it must not.
Report = Callable[[str, str], None]

#: A sanitizer's shadow takes terabytes of addresses, and its checks take time.
_IS_SANITIZED = "san.so" in os.environ.get("LD_PRELOAD", "")
_ADDRESS_SPACE = resource.RLIM_INFINITY if _IS_SANITIZED else 6 << 30
_MEMORY_LIMIT = 512 << 20


@dataclass
class Fault:
    """A call that ended the process, hung, or raised what it must not."""

    call: str
    what: str


def faults_of(items: Sequence[tuple[str, Any]], run: Callable[[str, Any, Report], None], limit_s: int = 20) -> list[Fault]:
    """The faults of ``run(name, value, report)`` for each item; a call may take ``limit_s``."""
    faults: list[Fault] = []
    at = 0
    while at < len(items):
        with tempfile.TemporaryFile("w+") as traceback:
            at += _run_until_it_ends(items[at:], run, limit_s, traceback, faults)
    return faults


def _run_until_it_ends(
    items: Sequence[tuple[str, Any]],
    run: Callable[[str, Any, Report], None],
    limit_s: int,
    traceback: TextIO,
    faults: list[Fault],
) -> int:
    """Run the items in one child; gives how many it got through, the one included that ended it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _child(items, run, limit_s, writing, traceback)
    os.close(writing)
    last, last_position, done = "", 0, False
    with os.fdopen(reading, "rb") as pipe:
        while len(head := pipe.read(4)) == 4:
            kind, position, text = pickle.loads(pipe.read(struct.unpack("<I", head)[0]))
            if kind == "call":
                last, last_position = text, position
            elif kind == "fault":
                faults.append(Fault(last, text))
            else:
                done = True
    status = os.waitpid(pid, 0)[1]
    if done:
        return len(items)
    name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {os.waitstatus_to_exitcode(status)}"
    what = "did not return in time" if name == "SIGALRM" else f"ended the process: {name}"
    traceback.seek(0)
    faults.append(Fault(last, f"{what}\n{traceback.read()}"))
    return last_position + 1


def _child(
    items: Sequence[tuple[str, Any]], run: Callable[[str, Any, Report], None], limit_s: int, writing: int, traceback: TextIO
) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.enable(traceback)
    faulthandler.register(signal.SIGALRM, traceback, chain=True)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(traceback.fileno(), 2)  # a sanitizer reports there
    _rt.set_memory_limit(_MEMORY_LIMIT)
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")

    def send(kind: str, position: int, text: str) -> None:
        data = pickle.dumps((kind, position, text))
        os.write(writing, struct.pack("<I", len(data)) + data)

    try:
        for position, (name, value) in enumerate(items):

            def report(kind: str, text: str, position: int = position) -> None:
                signal.alarm(limit_s * 10 if _IS_SANITIZED else limit_s)
                send(kind, position, text)

            run(name, value, report)
        send("done", 0, "")
    finally:
        os._exit(0)
