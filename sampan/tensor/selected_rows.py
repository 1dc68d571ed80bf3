"""Gradients that hold only some rows of a table: values [n, ...] with the table's rows that they belong to. A row may occur more than once.

To every operator such a tensor is its values; ``rows()`` and ``height`` say where they belong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _rt
from ..base.errors import UnsupportedError, message
from .autograd import no_grad
from .build import OPS
from .composed import from_array
from .creation import Tensor


def selected_rows(values: Tensor, rows: Tensor, height: int) -> Tensor:
    """A tensor over the memory of values [n, ...] that stands for ``rows`` (int64 [n]) of a table of this height, zero elsewhere."""
    return _rt.make_selected_rows(values, rows, height)


def is_selected_rows(tensor: Tensor) -> bool:
    """Whether the tensor holds only some rows of a table, as the gradient of a sparse embedding does."""
    return _rt.selected_rows_of(tensor) is not None


def selected_places(tensors: Sequence[Any]) -> list[int]:
    """Where in the sequence such tensors stand."""
    return _rt.selected_places(tensors)


def rows_and_height(tensor: Tensor) -> tuple[Tensor, int]:
    """The rows' numbers, int64 [n], and how many rows the table has. Raises UnsupportedError for a dense tensor."""
    found = _rt.selected_rows_of(tensor)
    if found is None:
        raise UnsupportedError(message("rows(): the tensor is dense", "only the gradient of a sparse embedding has rows"))
    return found


@no_grad()
def merged(tensor: Tensor, is_padded: bool = False) -> Tensor:
    """The same with every row once, in ascending order; the values of equal rows are added.

    is_padded: the last row may be repeated, with zeros, until the number of rows is one of few: calls on them then have few signatures.
    """
    rows, height = rows_and_height(tensor)
    ordered, inverse, count = _places(rows.numpy_view())
    padded = _padded_count(count)
    sums = OPS["zeros"]([padded, *tensor.shape[1:]], tensor.dtype.name)
    OPS["index_add_"](sums, from_array(inverse), 0, tensor)
    if is_padded or padded == count:
        return selected_rows(sums, from_array(ordered[np.minimum(np.arange(padded), count - 1)]), height)
    return selected_rows(from_array(sums.numpy_view()[:count]), from_array(ordered), height)


def _places(rows: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]:
    """The distinct rows in order, for each row its place among them, and their number."""
    ordered, inverse = np.unique(rows, return_inverse=True)
    return ordered, inverse.reshape(-1), len(ordered)


def _padded_count(count: int) -> int:
    """The next number of three significant bits."""
    step = 1 << max(0, count.bit_length() - 3)
    return count + -count % step


def unpadded_count(rows: np.ndarray[Any, Any]) -> int:
    """How many rows there are without the repeated last one of a padded tensor."""
    return int(np.searchsorted(rows, rows[-1])) + 1 if len(rows) else 0


@no_grad()
def to_dense(tensor: Tensor) -> Tensor:
    """The whole table [height, ...]: the sum of the values at each row."""
    rows, height = rows_and_height(tensor)
    table = OPS["zeros"]([height, *tensor.shape[1:]], tensor.dtype.name)
    return OPS["index_add_"](table, rows, 0, tensor)


@no_grad()
def add(a: Tensor, b: Tensor) -> Tensor:
    """The sum of two gradients, one of which at least holds only some rows: rows when both do, else dense (``a`` itself, in place, where it is dense)."""
    if not is_selected_rows(b):
        a, b = b, a
    rows, height = rows_and_height(b)
    if not is_selected_rows(a):
        return OPS["index_add_"](a, rows, 0, b)
    both = OPS["concat"]([rows_and_height(a)[0], rows], 0)
    return merged(selected_rows(OPS["concat"]([a, b], 0), both, height))


def with_values(like: Tensor, values: Tensor) -> Tensor:
    """Other values for the rows of ``like``."""
    return selected_rows(values, *rows_and_height(like))


class SelectedRows:
    """What ``get_selected_rows()`` of a sparse embedding's gradient gives."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def rows(self) -> list[int]:
        """The table's rows, one for each row of the values."""
        return _rows(self._tensor)

    def height(self) -> int:
        """How many rows the table has."""
        return rows_and_height(self._tensor)[1]

    def get_tensor(self) -> Tensor:
        """The values [n, ...]."""
        return self._tensor.detach()


def _rows(self: Tensor) -> list[int]:
    """The numbers of the table's rows that the tensor holds."""
    return [int(r) for r in rows_and_height(self)[0].tolist()]


def _get_selected_rows(self: Tensor) -> SelectedRows:
    """Rows, height and values of the gradient of a sparse embedding."""
    rows_and_height(self)
    return SelectedRows(self)


def install_selected_rows() -> None:
    """Attach the methods, and let the runtime's backward add such gradients."""
    _rt.set_rows_functions(add, to_dense)
    for name, function in {"is_selected_rows": is_selected_rows, "rows": _rows, "get_selected_rows": _get_selected_rows}.items():
        setattr(Tensor, name, function)
