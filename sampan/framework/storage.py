"""MmapStorage: tensors over a file's bytes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..base.dtypes import numpy_dtype
from ..base.errors import ArgumentError, message
from ..base.kinds import Size
from ..tensor import Tensor, share_array
from ..tensor.explained import Explained, explained
from ..tensor.functions import dtype_name


class MmapStorage(Explained):
    """The first bytes of a file, mapped into memory and not read before they are used.

    Args:
        filename: the file; writes to tensors over it do not reach it.
        nbytes: how many of its bytes.

    Raises:
        OSError: the file cannot be opened.
        ArgumentError: it has fewer bytes.

    Example:
        >>> import numpy, sampan as paddle
        >>> numpy.arange(4, dtype="float32").tofile("numbers.bin")
        >>> paddle.MmapStorage("numbers.bin", 16).get_slice("float32", 1, 3).tolist()
        [1.0, 2.0]
    """

    def __init__(self, filename: str, nbytes: Size) -> None:
        size = os.stat(filename).st_size
        if not 0 <= nbytes <= size:
            raise ArgumentError(message(f"MmapStorage(): nbytes={nbytes!r}", f"{filename} has {size} bytes"))
        self._bytes = np.memmap(filename, np.uint8, "c", shape=(nbytes,)) if nbytes else np.zeros(0, np.uint8)

    @explained
    def get_slice(self, dtype: Any = "uint8", start: int = 0, stop: int = -1, step: int = 1) -> Tensor:
        """The elements of the file from ``start`` up to ``stop`` (-1: the end) by ``step``, as a vector of this dtype.

        Raises:
            ArgumentError: the bytes hold no whole number of elements.
        """
        kind = numpy_dtype(dtype_name("MmapStorage.get_slice", dtype))
        if self._bytes.size % kind.itemsize:
            raise ArgumentError(
                message(
                    f"MmapStorage.get_slice(): {self._bytes.size} bytes hold no whole number of {kind.name}",
                    "",
                    "map fewer bytes",
                )
            )
        return share_array(np.asarray(self._bytes).view(kind)[start : None if stop == -1 else stop : step])
