"""Compiled objects on disk, shared by many processes without locks.

An entry is one file, written beside its place and renamed into it, so a reader sees all of it or none. Reading checks a digest
over everything that follows it and the key inside: a damaged, truncated or foreign file is no entry, and its code never runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import struct
import tempfile

_MAGIC = b"sampanK1"
_HEAD = struct.Struct("<8s32s32sIdQ")  # magic, digest of all that follows, key, scratch rows, cost, size of the object
_SUFFIX = ".kernel"
DEFAULT_SIZE_BYTES = 256 * 1024 * 1024
# A sweep for old entries reads the whole directory, so a process makes one in this many writes, and on its first.
_WRITES_BETWEEN_SWEEPS = 64


@dataclasses.dataclass(frozen=True)
class Entry:
    """A compiled kernel: its object file and what the runtime asks about it."""

    code: bytes
    scratch_rows: int
    cost_ns: float


class DiskCache:
    """Entries by 32-byte keys in a directory. Every failure of the file system counts as a miss; nothing here raises."""

    def __init__(self, directory: str | None, size_bytes: int = DEFAULT_SIZE_BYTES) -> None:
        self.directory, self.size_bytes = directory, size_bytes
        self._writes = 0

    def path(self, key: bytes) -> str | None:
        """Where the entry of a key lives; None without a directory."""
        return None if self.directory is None else os.path.join(self.directory, key.hex() + _SUFFIX)

    def read(self, key: bytes) -> Entry | None:
        """The entry of a key if it is there, whole and ours."""
        path = self.path(key)
        if path is None:
            return None
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_uid != os.geteuid():
                    return None
                data = file.read()
        except OSError:
            return None
        entry = unpack(key, data)
        if entry is not None:
            with contextlib.suppress(OSError):
                os.utime(path)  # the sweep removes what was not used for longest
        return entry

    def write(self, key: bytes, entry: Entry) -> None:
        """Keeps an entry, replacing one of the same key."""
        path = self.path(key)
        if path is None or self.directory is None:
            return
        temporary = None
        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.directory, suffix=".tmp")
            with os.fdopen(handle, "wb") as file:
                file.write(pack(key, entry))
            os.replace(temporary, path)
        except OSError:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            return
        if self._writes % _WRITES_BETWEEN_SWEEPS == 0:
            self.sweep()
        self._writes += 1

    def sweep(self) -> None:
        """Removes the entries unused for longest until the rest fit in nine tenths of the size, if together they exceed it."""
        if self.directory is None:
            return
        found: list[tuple[float, int, str]] = []
        with contextlib.suppress(OSError), os.scandir(self.directory) as entries:
            for item in entries:
                if item.name.endswith((_SUFFIX, ".tmp")):
                    with contextlib.suppress(OSError):
                        status = item.stat(follow_symlinks=False)
                        found.append((status.st_mtime, status.st_size, item.path))
        total = sum(size for _, size, _ in found)
        if total <= self.size_bytes:
            return
        for _, size, path in sorted(found):
            if total <= self.size_bytes * 0.9:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                total -= size


def pack(key: bytes, entry: Entry) -> bytes:
    """The file of an entry."""
    body = _HEAD.pack(_MAGIC, b"", key, entry.scratch_rows, entry.cost_ns, len(entry.code))[40:] + entry.code
    return _MAGIC + hashlib.sha256(body).digest() + body


def unpack(key: bytes, data: bytes) -> Entry | None:
    """The entry in a file's bytes; None unless they are whole and belong to the key."""
    if len(data) < _HEAD.size:
        return None
    magic, digest, own_key, scratch_rows, cost_ns, size = _HEAD.unpack_from(data)
    code = data[_HEAD.size :]
    if magic != _MAGIC or own_key != key or len(code) != size or hashlib.sha256(data[40:]).digest() != digest:
        return None
    return Entry(code, scratch_rows, cost_ns)
