"""Recordings of one function: for every kind of arguments, and for every setting of the layers and variables that it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.errors import ConversionError, message
from ..base.locks import new_lock
from ..tensor import Tensor
from ..tensor.convert.guards import Variable, is_plain, settings_version, variables_of
from ..tensor.traced import Traced

#: How many recordings of one kind of arguments are kept, each for other settings of layers and variables.
MOST_RECORDINGS = 16


def settings_of(layer: Any) -> dict[str, Any]:
    """What of a layer a recording depends on: its mode and plain attributes, and which parts it has."""
    found: dict[str, Any] = {k: (type(v), v) for k, v in vars(layer).items() if is_plain(v)}
    for table in (layer._parameters, layer._buffers, layer._sub_layers):
        found.update((k, id(v)) for k, v in table.items())
    return found


class Recording:
    """A recorded function, and what it depends on beside its arguments."""

    def __init__(self, traced: Traced, variables: list[Variable], layers: list[Any], settings: list[dict[str, Any]]) -> None:
        self.traced = traced
        self.variables, self.layers = variables, layers
        # of tensors that the function itself replaces only the type counts
        self._own = {(id(e.place.owner), e.place.attribute) for e in traced.replaced}
        self.settings = [self._without_own(layer, found) for layer, found in zip(layers, settings, strict=True)]
        self._version = -1
        #: What else it depends on: for a training step, how the optimizer updates.
        self.form: Any = None

    def holds(self) -> bool:
        """Whether nothing that it depends on has changed."""
        version = settings_version()
        if version != self._version:
            if any(self._without_own(k, settings_of(k)) != old for k, old in zip(self.layers, self.settings, strict=True)):
                return False
            self._version = version
        return all(v.holds() for v in self.variables) and all(_is_alike(e.place.read(), e.old) for e in self.traced.replaced)

    def _without_own(self, layer: Any, settings: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in settings.items() if (id(layer), k) not in self._own} if self._own else settings


def _is_alike(tensor: Any, old: Any) -> bool:
    return isinstance(tensor, Tensor) and tensor.dtype == old.dtype and tensor.shape == old.shape


def recording_of(name: str, own: Sequence[Any], trace: Callable[[], Traced]) -> Recording:
    """What ``trace`` records, with what it depends on. ``own``: layers that count as used in any case.

    Raises:
        ConversionError: it changes Python objects in ways that later runs cannot repeat.
    """
    before = {id(layer): settings_of(layer) for layer in own}
    traced = trace()
    layers = {id(layer): layer for layer in (*own, *traced.layers)}
    settings = [before.get(key) or settings_of(layer) for key, layer in layers.items()]
    variables = variables_of(traced.functions)
    _require_repeatable(name, traced, layers)
    return Recording(traced, variables, list(layers.values()), settings)


class Recordings:
    """The recordings by kind of arguments. ``name()``: what the function is called."""

    def __init__(self, name: Callable[[], str]) -> None:
        self._name = name
        self.by_key: dict[Any, list[Recording]] = {}
        self._lock = new_lock()

    def find(self, key: Any, form: Any, make: Callable[[], Recording]) -> Recording:
        """The recording for this kind of arguments, that still holds and is of this form; a new one by ``make`` when there is none.

        Raises:
            ConversionError: there are many already: something that is part of a recording changes from call to call.
        """
        for found in self.by_key.get(key, ()):
            if found.form == form and found.holds():
                return found
        with self._lock:
            known = self.by_key.setdefault(key, [])
            if len(known) >= MOST_RECORDINGS:
                raise ConversionError(
                    message(
                        f"{self._name()}() was recorded {len(known)} times for the same kind of arguments",
                        f"{_changing(known)} changes from call to call, and is part of what was recorded",
                        "make it a tensor (a buffer of the layer), or leave this function eager with jit.not_to_static",
                    )
                )
            made = make()
            made.form = form
            known.append(made)
            return made


def _changing(known: list[Recording]) -> str:
    """The name of something that differs between recordings."""
    first, last = known[-2], known[-1]
    for a, b, layer in zip(first.settings, last.settings, last.layers, strict=False):
        for name in b:
            if a.get(name) != b[name]:
                return f"{type(layer).__name__}.{name}"
    return "something that the function reads"


def _require_repeatable(name: str, traced: Traced, layers: dict[int, Any]) -> None:
    """Refuse changes of Python objects that later runs could not make in the same way."""
    for effect in traced.effects:
        if effect.is_repeatable(layers):
            continue
        raise ConversionError(
            message(
                f"{name}() changes {effect.place}",
                "a recorded Program cannot make this change again when it runs",
                "return the value, keep it in a tensor (a buffer of the layer), or leave this function eager with jit.not_to_static",
            )
        )
