"""Nested containers: lists, tuples, named tuples and dicts of leaves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any


def flatten(tree: Any) -> list[Any]:
    """The leaves in order; dict values in insertion order."""
    return list(_leaves(tree))


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, (list, tuple)):
        yield tree
        return
    for item in tree:
        yield from _leaves(item)


def map_structure(function: Callable[..., Any], *trees: Any) -> Any:
    """The same containers with ``function`` applied to corresponding leaves."""
    first = trees[0]
    if isinstance(first, dict):
        made = copy.copy(first)  # a defaultdict keeps what makes its values
        made.update((k, map_structure(function, *(t[k] for t in trees))) for k in first)
        return made
    if isinstance(first, (list, tuple)):
        items = [map_structure(function, *parts) for parts in zip(*trees, strict=True)]
        return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)
    return function(*trees)


def pack_like(tree: Any, leaves: list[Any]) -> Any:
    """The containers of ``tree`` filled with ``leaves`` in order."""
    remaining = iter(leaves)
    return map_structure(lambda _: next(remaining), tree)


_NUMBERS = {bool, int, float, complex}


def settled(data: Any) -> Any:
    """Nested lists as lists that nobody else can change while NumPy reads them: an element's own code, such as ``__index__``, may run then."""
    if not isinstance(data, (list, tuple)):
        return data
    items = tuple(data)
    return items if _NUMBERS.issuperset(map(type, items)) else [settled(d) for d in items]
