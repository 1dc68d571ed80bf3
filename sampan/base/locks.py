"""Locks that a fork finds free, and properties that are computed once without a lock.

A child has only the thread that forked: a lock that another thread held at that moment would stay held in the child for ever.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_locks_lock = threading.RLock()
_thread = threading.local()


def new_lock() -> Any:
    """A re-entrant lock. Whoever forks waits until it is free."""
    lock = threading.RLock()
    with _locks_lock:
        _locks.add(lock)
    return lock


def _every_lock() -> Iterator[Any]:
    yield _locks_lock  # held when the others are looked up
    yield from tuple(_locks)


def _acquire_all() -> None:
    # One is waited for while none is held, and the others are only tried: whoever holds one of them may wait for another.
    awaited: Any = _locks_lock
    while awaited is not None:
        awaited.acquire()
        held, awaited = [awaited], None
        for lock in _every_lock():
            if not lock.acquire(blocking=False):
                awaited = lock
                break
            held.append(lock)
        _thread.held = held
        if awaited is not None:
            _release_all()


def _release_all() -> None:
    for lock in reversed(_thread.held):
        lock.release()
    _thread.held = []


os.register_at_fork(before=_acquire_all, after_in_parent=_release_all, after_in_child=_release_all)


class lazy(Generic[T]):
    """A property that is computed when it is first asked for. Unlike ``functools.cached_property`` of Python 3.10 and 3.11 it holds no lock:
    threads that ask at the same time may compute it twice."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> lazy[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
