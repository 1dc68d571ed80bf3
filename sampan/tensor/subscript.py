"""``x[...]`` and ``x[...] = v`` in every NumPy form: ints, slices, ellipsis, None, bool masks, integer arrays, and mixes of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _rt
from ..base import nest
from ..base.errors import ArgumentTypeError, IndexRangeError, ShapeError, message
from ..ir.builder import current_builder
from ..ir.program import Value
from .replay import recordable
from .variable import UNKNOWN


@dataclass
class Subscript:
    """An index taken apart: first the slices, with new axes put in; then index tensors along axes of what is left."""

    starts: list[int]
    sizes: list[int]
    steps: list[int]
    dropped: list[int]
    new_axes: list[int]
    indices: list[Any]
    axes: list[int]
    is_adjacent: bool
    is_whole: bool


def _kind(item: Any) -> str:
    """What an index item is: none, ellipsis, slice, bool, int, mask or integers."""
    if item is None:
        return "none"
    if item is Ellipsis:
        return "ellipsis"
    if isinstance(item, slice):
        return "slice"
    if isinstance(item, (bool, np.bool_)):
        return "bool"
    if isinstance(item, (_rt.Tensor, Value)):
        name = getattr(item.dtype, "name", item.dtype)
        return "mask" if name == "bool" else "integers"
    if isinstance(item, np.ndarray):
        return "mask" if item.dtype == np.bool_ else "integers"
    if isinstance(item, (list, tuple, range)):
        return "mask" if _is_mask(item) else "integers"
    try:
        operator.index(item)
        return "int"
    except TypeError:
        raise ArgumentTypeError(
            message(
                f"a tensor index holds {item!r}, a {type(item).__name__}",
                "it may hold integers, slices, None, ..., and integer or bool arrays, lists and tensors",
            )
        ) from None


def _is_mask(items: Any) -> bool:
    first = next(iter(items), None)
    return _is_mask(first) if isinstance(first, (list, tuple)) else isinstance(first, (bool, np.bool_))


def _bound(value: Any, what: str) -> int | None:
    if value is None:
        return None
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"a slice's {what} must be an integer, got {value!r}") from None


def parse(
    index: Any, shape: tuple[int, ...], to_tensor: Callable[[Any], Any], mask_indices: Callable[[Any], list[Any]]
) -> Subscript:
    """The index of a tensor of this shape, taken apart.

    to_tensor makes an int64 tensor of a list or array; mask_indices gives the index tensors where a mask holds, one for each of its axes.
    """
    items: list[Any] = list(index) if isinstance(index, tuple) else [index]
    kinds = [_kind(item) for item in items]
    if kinds.count("ellipsis") > 1:
        raise IndexRangeError("a tensor index can have only one ellipsis ('...')")
    used = 0
    for item, kind in zip(items, kinds, strict=True):
        used += {"int": 1, "slice": 1, "integers": 1, "mask": 0}.get(kind, 0)
        if kind == "mask":
            used += np.ndim(item) if isinstance(item, (list, tuple)) else len(item.shape)
    rank = len(shape)
    if used > rank:
        raise IndexRangeError(message(f"too many indices: {used} for a tensor of rank {rank}", f"its shape is {list(shape)}"))
    missing = rank - used
    if "ellipsis" in kinds:
        at = kinds.index("ellipsis")
        # an ellipsis that stands for no axis still parts the index arrays around it
        items[at : at + 1] = [slice(None)] * max(missing, 1)
        kinds[at : at + 1] = ["slice"] * missing or ["nothing"]
    else:
        items += [slice(None)] * missing
        kinds += ["slice"] * missing

    found = Subscript([], [], [], [], [], [], [], True, True)
    axis = 0  # of the tensor
    out = 0  # of the slices' result
    last_advanced = -1  # position in items
    for position, (item, kind) in enumerate(zip(items, kinds, strict=True)):
        if kind == "nothing":
            continue
        if kind in ("none", "bool"):
            found.new_axes.append(out)
            if kind == "bool":
                _add_indices(found, [to_tensor(np.zeros(int(item), np.int64))], out, position, last_advanced)
                last_advanced = position
            out += 1
            found.is_whole = False
        elif kind == "slice":
            start, size, step = _slice(item, shape[axis], axis)
            found.starts.append(start)
            found.sizes.append(size)
            found.steps.append(step)
            found.is_whole &= size == shape[axis] and step == 1
            axis += 1
            out += 1
        elif kind == "int" and not any(k in ("mask", "integers", "bool") for k in kinds):
            i = operator.index(item)
            if not -shape[axis] <= i < shape[axis]:
                raise IndexRangeError(
                    message(
                        f"index {i} is out of range for axis {axis} of size {shape[axis]}",
                        f"it must be in [{-shape[axis]}, {shape[axis]})",
                    )
                )
            found.starts.append(i % shape[axis])
            found.sizes.append(1)
            found.steps.append(1)
            found.dropped.append(axis)
            found.is_whole = False
            axis += 1
        else:
            if kind == "mask":
                mask_shape = np.shape(item) if isinstance(item, (list, tuple)) else tuple(item.shape)
                if tuple(mask_shape) != tuple(shape[axis : axis + len(mask_shape)]):
                    raise IndexRangeError(
                        message(
                            f"a bool mask of shape {list(mask_shape)} does not match axes {axis}.. of a tensor of shape {list(shape)}",
                            "the sizes must be equal",
                        )
                    )
                parts = mask_indices(item)
            else:
                parts = [_integers(item, to_tensor, shape[axis], axis)]
            for part in parts:
                _add_indices(found, [part], out, position, last_advanced)
                last_advanced = position
                found.starts.append(0)
                found.sizes.append(shape[axis])
                found.steps.append(1)
                axis += 1
                out += 1
    return found


def _add_indices(found: Subscript, parts: list[Any], out: int, position: int, last: int) -> None:
    if found.indices and position - last > 1:
        found.is_adjacent = False
    found.indices += parts
    found.axes.append(out)


def _integers(item: Any, to_tensor: Callable[[Any], Any], size: int, axis: int) -> Any:
    if isinstance(item, (_rt.Tensor, Value)):
        name = getattr(item.dtype, "name", item.dtype)
        if name not in ("int32", "int64", "uint8", "int8", "int16"):
            raise ArgumentTypeError(
                message(f"an index tensor is {name}", "it must be an integer or bool tensor", "cast it with .astype('int64')")
            )
        return item
    array = np.asarray(nest.settled(item))
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ArgumentTypeError(message(f"an index holds {item!r}", "it must be integers or bools"))
    if array.size and not (-size <= array.min() and array.max() < size):
        worst = array.max() if array.max() >= size else array.min()
        raise IndexRangeError(
            message(f"index {int(worst)} is out of range for axis {axis} of size {size}", f"it must be in [{-size}, {size})")
        )
    return to_tensor(array.astype(np.int64))


def _slice(item: slice, size: int, axis: int) -> tuple[int, int, int]:
    step = _bound(item.step, "step")
    if step == 0:
        raise ShapeError(f"the slice of axis {axis} has step 0")
    bounds = slice(_bound(item.start, "start"), _bound(item.stop, "stop"), step)
    start, stop, step = bounds.indices(size)
    count = len(range(start, stop, step))
    return (start if count else 0), count, (step if count else 1)


def _types_by_data(x: Any, axis: int, *bounds: Any) -> Any:
    """The type of a slice whose bounds depend on data; None where they follow from sizes."""
    if all(getattr(v, "is_derived", not isinstance(v, Value)) for v in bounds):
        return None
    return x.dtype, [UNKNOWN if k == axis else n for k, n in enumerate(x.shape)]


@recordable("slice_by_data", _types_by_data, numbers=frozenset({"start", "stop", "step"}))
def _slice_by_data(x: Any, axis: int, start: Any, stop: Any, step: Any) -> Any:
    """x[start:stop:step] along an axis, where some of these are tensors."""
    return x[(slice(None),) * axis + (slice(_bound(start, "start"), _bound(stop, "stop"), _bound(step, "step")),)]


class Subscripts:
    """Serves ``__getitem__`` and ``__setitem__`` with the operators of ``ops.subscript``."""

    def __init__(self, ops: dict[str, Any], to_tensor: Callable[[Any], Any], nonzero: Callable[[Any], list[Any]]) -> None:
        self.ops = ops
        self.to_tensor = to_tensor
        self.nonzero = nonzero
        self._recorded_get = recordable("getitem")(self._get)
        self._recorded_set = recordable("setitem")(self._set)

    def _parse(self, x: Any, index: Any) -> Subscript:
        return parse(index, tuple(x.shape), self.to_tensor, lambda mask: self.nonzero(self._mask(mask)))

    def _mask(self, mask: Any) -> Any:
        return mask if isinstance(mask, (_rt.Tensor, Value)) else self.to_tensor(np.asarray(nest.settled(mask), np.bool_))

    def _without_masks(self, index: Any) -> Any:
        """The index of a Variable with masks as the positions where they hold, whose count only a run knows."""
        items = index if isinstance(index, tuple) else (index,)
        if not any(_kind(item) == "mask" for item in items):
            return index
        parts: list[Any] = []
        for item in items:
            parts += self.nonzero(self._mask(item)) if _kind(item) == "mask" else [item]
        return tuple(parts)

    def get(self, x: Any, index: Any) -> Any:
        """``x[index]``."""
        if current_builder() is None:
            return self._get(x, index)
        return self._recorded_get(*self._cut(x, self._without_masks(index)))

    def _cut(self, x: Any, index: Any) -> tuple[Any, Any]:
        """x cut where slices end at Variables, whose numbers only a run knows; and the rest of the index."""
        items = list(index) if isinstance(index, tuple) else [index]
        consumed = [0 if item is None or item is Ellipsis or isinstance(item, bool) else 1 for item in items]
        at = next((k for k, item in enumerate(items) if item is Ellipsis), len(items))
        for k, item in enumerate(items):
            if isinstance(item, slice) and any(isinstance(v, Value) for v in (item.start, item.stop, item.step)):
                axis = sum(consumed[:k]) if k < at else len(x.shape) - sum(consumed[k:])
                x = _slice_by_data(x, axis, item.start, item.stop, item.step)
                items[k] = slice(None)
        return x, tuple(items)

    def set(self, x: Any, index: Any, value: Any) -> None:
        """``x[index] = value``, in place."""
        if current_builder() is None:
            self._set(x, index, value)
        else:
            self._recorded_set(x, self._without_masks(index), value)

    def _get(self, x: Any, index: Any) -> Any:
        s = self._parse(x, index)
        y = x
        if not s.is_whole or not s.indices:
            y = self.ops["take_slices"](x, s.starts, s.sizes, s.steps, s.dropped, s.new_axes)
        if s.indices:
            y = self.ops["take_indices"](y, s.indices, s.axes, s.is_adjacent)
        return y

    def _set(self, x: Any, index: Any, value: Any) -> None:
        s = self._parse(x, index)
        if not isinstance(value, (_rt.Tensor, Value, bool, int, float, complex)):
            value = self.to_tensor(np.asarray(nest.settled(value)))
        if not s.indices:
            self.ops["put_slices_"](x, value, s.starts, s.sizes, s.steps, s.dropped, s.new_axes)
        elif s.is_whole:
            self.ops["put_indices_"](x, s.indices, value, s.axes, s.is_adjacent)
        else:
            part = self.ops["take_slices"](x, s.starts, s.sizes, s.steps, s.dropped, s.new_axes)
            changed = self.ops["put_indices"](part, s.indices, value, s.axes, s.is_adjacent)
            self.ops["put_slices_"](x, changed, s.starts, s.sizes, s.steps, s.dropped, s.new_axes)
