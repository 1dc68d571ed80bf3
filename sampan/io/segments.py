"""Memory shared between a worker and the main process: nameless, so that nothing is left behind however either of them ends.

A worker makes a segment, sends its file descriptor once, and fills it again and again. The main process maps it and hands out
arrays over it; when the last of a batch's arrays is gone, the segment's number goes back to the worker with the next task.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
import weakref
from collections import Counter, deque
from typing import Any

import numpy as np

_ALIGNMENT = 64  # bytes: a cache line, and the widest vector
_SMALLEST = 1 << 16


def make_memory(size: int) -> int:
    """The descriptor of new nameless memory of this size."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("sampan-batch")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


class Segment:
    """One piece of shared memory in the worker that made it."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.size = size
        self.descriptor = make_memory(size)  # until it is sent; the mapping stays
        self.mapping = mmap.mmap(self.descriptor, size)
        self.address = np.frombuffer(self.mapping, np.uint8).ctypes.data
        self.used = 0
        self.handed_out: list[weakref.ref[np.ndarray]] = []

    def is_watched(self) -> bool:
        """Whether code in this worker still holds an array over this memory."""
        return any(reference() is not None for reference in self.handed_out)


class Arena:
    """A worker's segments: gives memory to a batch's arrays, and takes it back when the main process is done with them."""

    def __init__(self) -> None:
        self._segments: dict[int, Segment] = {}
        self._free: list[Segment] = []
        self._open: list[Segment] = []
        self._made = 0
        self._usual_bytes = 0

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """An array in shared memory, part of the batch that is being made."""
        size_bytes = math.prod(shape) * dtype.itemsize
        if size_bytes == 0:
            return np.empty(shape, dtype)
        segment = self._with_room(size_bytes)
        array = np.frombuffer(segment.mapping, dtype, math.prod(shape), segment.used).reshape(shape)
        segment.handed_out.append(weakref.ref(array))
        segment.used += -(-size_bytes // _ALIGNMENT) * _ALIGNMENT
        return array

    def place(self, buffer: memoryview) -> tuple[int, int, int]:
        """Where (segment, offset, bytes) the main process finds this content; what lies elsewhere is copied in."""
        content = np.frombuffer(buffer, np.uint8) if buffer.nbytes else np.empty(0, np.uint8)
        if not content.size:
            return -1, 0, 0
        address = content.ctypes.data
        for segment in self._open:
            if segment.address <= address < segment.address + segment.size:
                return segment.number, address - segment.address, content.size
        copy = self.allocate(content.shape, content.dtype)
        copy[:] = content
        return self._open[-1].number, copy.ctypes.data - self._open[-1].address, content.size

    def close_batch(self) -> tuple[list[tuple[int, int]], list[int]]:
        """End the batch: the segments that the main process does not know yet (number and size), and their descriptors."""
        self._usual_bytes = max(self._usual_bytes, sum(segment.used for segment in self._open))
        new = [segment for segment in self._open if segment.descriptor >= 0]
        descriptors = [segment.descriptor for segment in new]
        for segment in new:
            segment.descriptor = -1
        self._open = []
        return [(segment.number, segment.size) for segment in new], descriptors

    def give_back(self, numbers: list[int]) -> None:
        """Take segments back from the main process."""
        for number in numbers:
            segment = self._segments[number]
            segment.used = 0
            self._free.append(segment)

    def abandon_batch(self) -> None:
        """Take back what a batch that failed has used; segments that were never sent stay to be sent later."""
        self.give_back([segment.number for segment in self._open])
        self._open = []

    def _with_room(self, size_bytes: int) -> Segment:
        if self._open and self._open[-1].size - self._open[-1].used >= size_bytes:
            return self._open[-1]
        fitting = [s for s in self._free if s.size >= size_bytes and not s.is_watched()]
        if fitting:
            segment = min(fitting, key=lambda s: s.size)
            self._free.remove(segment)
        else:
            # A power of two, so that batches of slowly growing sizes share segments; untouched pages take no memory.
            wanted = max(size_bytes, self._usual_bytes, _SMALLEST)
            segment = self._segments[self._made] = Segment(self._made, 1 << (wanted - 1).bit_length())
            self._made += 1
        segment.handed_out.clear()
        self._open.append(segment)
        return segment


class Mappings:
    """The main process's view of one worker's segments."""

    def __init__(self) -> None:
        self._maps: dict[int, mmap.mmap] = {}
        self._leases: Counter[int] = Counter()
        self._returned: deque[int] = deque()  # filled by finalizers, which may run in any thread: only atomic operations

    def add(self, number: int, size: int, descriptor: int) -> None:
        """Map a segment that the worker has made; the descriptor is closed."""
        try:
            self._maps[number] = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)

    def lend(self, places: list[tuple[int, int, int]]) -> list[np.ndarray]:
        """Byte arrays over these places; when they, and all made from them, are gone, the places count as returned."""
        lent = []
        for number, offset, size in places:
            if number < 0:
                lent.append(np.empty(0, np.uint8))
                continue
            array = np.frombuffer(self._maps[number], np.uint8, size, offset)
            self._leases[number] += 1
            finalizer = weakref.finalize(array, self._returned.append, number)
            finalizer.atexit = False
            lent.append(array)
        return lent

    def returned(self) -> list[int]:
        """The segments of which no array is left since the last call."""
        empty = []
        while self._returned:
            number = self._returned.popleft()
            self._leases[number] -= 1
            if not self._leases[number]:
                empty.append(number)
        return empty
