"""Stretches of time of the framework's own parts (a layer's forward, a backward, an optimizer's step, the next batch), told to whoever watches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Watcher(Protocol):
    """Is told of every span; ``span`` gives what is entered when it begins and left when it ends."""

    def span(self, kind: str, name: str, owner: Any) -> AbstractContextManager[Any]:
        """A span of ``owner``'s. Kinds: ``Forward``, ``Backward``, ``Optimization``, ``Dataloader``."""


#: None: nobody watches, and a span costs one look at this name.
watcher: Watcher | None = None


def watch(new: Watcher | None) -> Watcher | None:
    """Let ``new`` watch from now on, in all threads; gives who watched before."""
    global watcher
    old, watcher = watcher, new
    return old


def within(
    kind: str, owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str = ""
) -> Any:
    """What the function gives; its call is a span, if somebody watches. Its name is the owner's class unless one is given."""
    found = watcher
    if found is None:
        return function(*args, **kwargs)
    with found.span(kind, name or type(owner).__name__, owner):
        return function(*args, **kwargs)


def watched(kind: str, name: str = "") -> Callable[[Function], Function]:
    """A decorator: each call is a span of this kind. Its name is the class of the first argument unless one is given."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) if watcher is None else within(kind, args[0], function, args, kwargs, name)

        return call  # type: ignore[return-value]

    return decorate
