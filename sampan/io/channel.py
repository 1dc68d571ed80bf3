"""Messages between the main process and a worker: one socket, one pickled object a message, descriptors alongside."""

from __future__ import annotations

import os
import pickle
import socket
import struct
import weakref
from typing import Any

from .segments import make_memory

_HEADER = struct.Struct("<QII")  # bytes of the body, number of descriptors, whether the body lies in the last of them
# What is larger travels as memory: then a few dozen messages fit the sockets' buffers, and neither side waits for the other.
_INLINE_BYTES = 4096

_main_ends: weakref.WeakSet[Channel] = weakref.WeakSet()


class Channel:
    """One end of the connection."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    @staticmethod
    def pair() -> tuple[Channel, Channel]:
        """The main process's end and the worker's end."""
        main, worker = (Channel(end) for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM))
        _main_ends.add(main)
        return main, worker

    def fileno(self) -> int:
        """The socket's descriptor, for ``select``."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close this end; the other one reads the end of the stream."""
        self._socket.close()

    def send(self, value: Any, descriptors: list[int] = []) -> None:  # noqa: B006
        """Send one object; the descriptors are closed here.

        Raises:
            OSError: the other end is closed.
        """
        descriptors = list(descriptors)
        try:
            body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
            is_memory = len(body) > _INLINE_BYTES
            if is_memory:
                descriptors.append(make_memory(len(body)))
                _write_all(descriptors[-1], body)
            head = _HEADER.pack(len(body), len(descriptors), is_memory)
            sent = socket.send_fds(self._socket, [head], descriptors) if descriptors else self._socket.send(head)
            self._socket.sendall(head[sent:] + (b"" if is_memory else body))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def receive(self) -> tuple[Any, list[int]]:
        """The next object and its descriptors, which the caller closes.

        Raises:
            EOFError: the other end is closed.
        """
        head, descriptors, _, _ = socket.recv_fds(self._socket, _HEADER.size, 64)
        head += self._exactly(_HEADER.size - len(head))
        size, count, is_memory = _HEADER.unpack(head)
        if len(descriptors) != count:
            raise EOFError("descriptors were lost")
        if is_memory:
            with open(descriptors.pop(), "rb") as file:
                file.seek(0)
                body = file.read(size)
        else:
            body = self._exactly(size)
        return pickle.loads(body), descriptors  # noqa: S301 - our own worker's

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._socket.recv(size)
            if not part:
                raise EOFError("the other end is closed")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def close_main_ends() -> None:
    """In a new worker: close the main process's ends, so that a worker sees when the main process is gone."""
    for channel in list(_main_ends):
        channel.close()


def _write_all(descriptor: int, body: bytes) -> None:
    rest = memoryview(body)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
