"""The base of layers without parameters of their own, whose settings are attributes that their repr shows."""

from __future__ import annotations

from typing import Any

from .layers import Layer


def also(name: str) -> Any:
    """Another name of the attribute, to read and to write."""
    return property(
        lambda self: getattr(self, name), lambda self, value: setattr(self, name, value), doc=f"The same as ``{name}``."
    )


class Configured(Layer):
    """A layer whose keyword arguments become attributes; ``_shown`` names those that its repr shows, in order.

    Attributes have PaddlePaddle's spelling, underscores too: subclasses in users' code read them.
    """

    _shown: tuple[str, ...] = ()
    name = also("_name")

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        super().__init__()
        self._name = name
        for key, value in settings.items():
            setattr(self, key, value)

    def extra_repr(self) -> str:
        shown = [f"{key.strip('_')}={getattr(self, key)}" for key in self._shown]
        if self._name is not None:
            shown.append(f"name={self._name}")
        return ", ".join(shown)
