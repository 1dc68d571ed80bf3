"""Unique names, as ``paddle.utils.unique_name`` gives them: ``linear_0``, ``linear_1`` ..."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator


class NameGenerator:
    """Counts how often each key was asked for, under an optional prefix."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.counts: dict[str, int] = defaultdict(int)

    def __call__(self, key: str) -> str:
        """The next name of this key."""
        number = self.counts[key]
        self.counts[key] += 1
        return f"{self.prefix}{key}_{number}"


_current = NameGenerator()


def generate(key: str) -> str:
    """The next unique name for ``key`` in the current generator."""
    return _current(key)


def switch(new_generator: NameGenerator | None = None) -> NameGenerator:
    """The generator in use until now; ``new_generator`` (a fresh one by default) takes its place."""
    global _current
    old, _current = _current, new_generator or NameGenerator()
    return old


@contextlib.contextmanager
def guard(new_generator: NameGenerator | str | None = None) -> Iterator[None]:
    """Use another generator (or a fresh one with this prefix) inside the ``with`` block."""
    generator = NameGenerator(new_generator) if isinstance(new_generator, str) else new_generator
    old = switch(generator)
    try:
        yield
    finally:
        switch(old)
