"""What converted ``for`` loops run over when tensors take part: rows of tensors, ranges with symbolic bounds, enumerate and zip of those."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ... import _rt
from ...ir.program import Value
from ..build import OPS
from . import numbers
from .blocks import current
from .branches import located
from .journal import OpenList
from .numbers import Number


class Symbolic:
    """Items whose number only a run knows. ``length``: a Number; ``item(k)``: the item of a Number k."""

    length: Any

    def item(self, k: Any) -> Any:
        """The item at this position."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise located(
            "something runs over items whose number depends on a tensor, outside of a `for` statement",
            "a list or generator of them would have a length that is not known yet",
            "write a `for` loop, or an operator over the whole tensor",
        )


class SymbolicRange(Symbolic):
    """``range`` with a symbolic bound."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.step = start, step
        if not isinstance(step, Number) and step == 0:
            raise ValueError("range() arg 3 must not be zero")
        if isinstance(step, Number):
            raise step._refuse("the step of range()")
        count = (stop - start + (step - 1 if step > 0 else step + 1)) // step
        self.length = numbers.of(OPS["maximum"](numbers.as_kind(count, int), numbers.as_kind(0, int)))

    def item(self, k: Any) -> Any:
        return k * self.step + self.start if self.step != 1 else k + self.start


class Rows(Symbolic):
    """The rows of a tensor whose first size only a run knows."""

    def __init__(self, tensor: Value) -> None:
        self.tensor = tensor
        self.length = size_of(tensor, 0)

    def item(self, k: Any) -> Any:
        return OPS["gather"](self.tensor, numbers.as_kind(k, int), 0)


class Enumerated(Symbolic):
    """``enumerate`` of symbolic items."""

    def __init__(self, items: Symbolic, start: Any) -> None:
        self.items, self.start, self.length = items, start, items.length

    def item(self, k: Any) -> Any:
        return k + self.start, self.items.item(k)


class Zipped(Symbolic):
    """``zip`` of symbolic items, as long as the shortest."""

    def __init__(self, parts: list[Symbolic]) -> None:
        self.parts = parts
        self.length = parts[0].length
        for part in parts[1:]:
            self.length = numbers.of(OPS["minimum"](numbers.as_kind(self.length, int), numbers.as_kind(part.length, int)))

    def item(self, k: Any) -> Any:
        return tuple(p.item(k) for p in self.parts)


class ListItems(Symbolic):
    """The items of a list of unknown length."""

    def __init__(self, values: Any) -> None:
        self.values, self.length = values, values.length

    def item(self, k: Any) -> Any:
        return self.values.item(k)


class Reversed(Symbolic):
    """``reversed`` of symbolic items."""

    def __init__(self, items: Symbolic) -> None:
        self.items, self.length = items, items.length

    def item(self, k: Any) -> Any:
        return self.items.item(self.length - 1 - k)


def size_of(tensor: Any, axis: int) -> Any:
    """A size of a symbolic tensor as a Number."""
    return numbers.of(OPS["cast"](OPS["reshape"](OPS["shape"](tensor)[axis], []), "int64"))


def items(iterable: Any) -> Any:
    """The iterable for a ``for`` loop: Symbolic when only a run knows how many items it has."""
    if current() is not None and isinstance(iterable, (Value, _rt.Tensor)):
        return _rows(iterable)
    if isinstance(iterable, OpenList) and iterable.grown is not None:
        return ListItems(iterable)
    return iterable


def _rows(tensor: Any) -> Any:
    if tensor.ndim == 0:
        raise TypeError("iteration over a 0-D tensor")
    if isinstance(tensor, Value) and tensor.shape[0] == -1:
        return Rows(tensor)
    return [tensor[k] for k in range(tensor.shape[0])]


def _symbolic(parts: Iterable[Any]) -> list[Any] | None:
    """The parts for a Symbolic of them; None when all are plain."""
    found = [items(p) for p in parts]
    return found if any(isinstance(p, Symbolic) for p in found) else None


def _all_symbolic(name: str, found: list[Any]) -> list[Symbolic]:
    plain = next((p for p in found if not isinstance(p, Symbolic)), None)
    if plain is not None:
        raise located(
            f"{name}() mixes items whose number depends on a tensor with a {type(plain).__name__}",
            "an item of it cannot be chosen by a number that only a run knows",
            "make it a tensor",
        )
    return found


def as_integer(value: Any) -> Any:
    """A bound of range: tensors as Numbers."""
    if isinstance(value, Number):
        return value
    is_tensor = isinstance(value, (Value, _rt.Tensor)) and current() is not None
    return numbers.cast(value, int) if is_tensor else value


def convert_range(*bounds: Any) -> Any:
    """``range`` whose bounds may be tensors."""
    found = [as_integer(b) for b in bounds]
    if not any(isinstance(b, Number) for b in found) or not 1 <= len(found) <= 3:
        return range(*found)
    start, stop, step = (0, found[0], 1) if len(found) == 1 else (*found, 1) if len(found) == 2 else found
    return SymbolicRange(start, stop, step)


def convert_enumerate(iterable: Any, start: Any = 0) -> Any:
    """``enumerate``, also of tensors."""
    found = items(iterable)
    return Enumerated(found, start) if isinstance(found, Symbolic) else enumerate(found, start)


def convert_zip(*iterables: Any, **options: Any) -> Any:
    """``zip``, also of tensors."""
    found = _symbolic(iterables)
    if found is None:
        return zip(*map(items, iterables), **options)
    return Zipped(_all_symbolic("zip", found))


def convert_reversed(iterable: Any) -> Any:
    """``reversed``, also of tensors."""
    found = items(iterable)
    return Reversed(found) if isinstance(found, Symbolic) else reversed(found)


def convert_map(convert: Callable[[Any], Any]) -> Callable[..., Any]:
    """``map`` that converts its function."""
    return lambda function, *iterables: map(convert(function), *map(items, iterables))
