"""Scope: named tensors, what persistable Variables are while Programs run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import _rt
from ..base.errors import ArgumentTypeError, message
from ..base.places import parse_place
from .creation import to_array


class Scope:
    """Named tensors: what persistable Variables are while Programs run.

    Example:
        >>> import sampan as paddle
        >>> scope = paddle.static.Scope()
        >>> scope.var("w").set(paddle.ones([2]).numpy(), paddle.CPUPlace())
        >>> scope.find_var("w").get_tensor().shape
        paddle.Size([2])
    """

    def __init__(self) -> None:
        self._tensors: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """The tensor of this name; None when there is none."""
        return self._tensors.get(name)

    def put(self, name: str, tensor: Any) -> None:
        """Give the name this tensor."""
        self._tensors[name] = tensor

    def names(self) -> list[str]:
        """The names of all tensors."""
        return list(self._tensors)

    def var(self, name: str) -> ScopeVariable:
        """The named variable, made when it is not there."""
        self._tensors.setdefault(name, None)
        return ScopeVariable(self, name)

    def find_var(self, name: str) -> ScopeVariable | None:
        """The named variable; None when it is not there."""
        return ScopeVariable(self, name) if name in self._tensors else None

    def erase(self, names: Sequence[str]) -> None:
        """Forget these variables."""
        for name in names:
            self._tensors.pop(name, None)

    def drop_kids(self) -> None:
        """Nothing to do: Programs keep no variables of their own between runs."""

    def local_var_names(self) -> list[str]:
        """The names of all tensors."""
        return self.names()


class ScopeVariable:
    """A place in a Scope."""

    def __init__(self, scope: Scope, name: str) -> None:
        self._scope, self.name = scope, name

    def get_tensor(self) -> Any:
        """The tensor; the place itself while it has none, which takes one by ``set``."""
        held = self._scope.get(self.name)
        return self if held is None else held

    def set(self, array: Any, place: Any = None) -> None:
        """Give it the elements of this array."""
        parse_place("set", place)
        self._scope.put(self.name, _rt.from_numpy(to_array(np.asarray(array), None), True))

    def set_value(self, value: Any) -> None:
        """Give it the elements of this array or tensor."""
        held = self._scope.get(self.name)
        if held is None:
            self.set(value)
        else:
            held.set_value(value)


_scope = Scope()


def global_scope() -> Scope:
    """The Scope that Programs run over."""
    return _scope


@contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Run Programs over this Scope inside the ``with`` block."""
    if not isinstance(scope, Scope):
        raise ArgumentTypeError(message(f"scope_guard(): scope is a {type(scope).__name__}", "it must be a Scope"))
    global _scope
    old, _scope = _scope, scope
    try:
        yield
    finally:
        _scope = old
