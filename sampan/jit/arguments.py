"""Arguments of a call taken apart: a key for the cache, the tensors, and what a recording gets in their place."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, message
from ..static.input_spec import InputSpec
from ..tensor import Tensor, to_tensor
from ..tensor.convert.guards import is_plain
from ..tensor.traced import Typed


class Arguments:
    """One call's arguments.

    Attributes:
        key: equal for calls that one recording serves.
        tensors: the tensors, each once, in order.
    """

    def __init__(self, name: str, named: Sequence[tuple[str, Any]], specs: dict[str, Any]) -> None:
        self._name, self._named, self._specs_by_name = name, named, specs
        self._known: dict[int, int] = {}
        self.tensors: list[Any] = []
        self.key = tuple([self._key(value, parameter, specs.get(parameter)) for parameter, value in named])

    def typed(self) -> dict[str, Any]:
        """The arguments with a ``Typed`` in the place of each tensor: one for a tensor that is given twice."""
        made: dict[int, Typed] = {}
        return {name: self._typed(value, name, self._specs_by_name.get(name), made) for name, value in self._named}

    def _key(self, value: Any, name: str, spec: Any) -> Any:
        if isinstance(value, Tensor):
            return self._tensor(value, name, spec)
        if is_plain(value):
            return type(value), value, repr(value)
        if isinstance(value, (list, tuple)):
            parts = self._specs(value, spec, name)
            return type(value), tuple([self._key(v, f"{name}_{k}", s) for k, (v, s) in enumerate(zip(value, parts, strict=True))])
        if type(value) is dict:
            own = spec if isinstance(spec, dict) else {}
            return dict, tuple([(k, self._key(v, f"{name}_{k}", own.get(k))) for k, v in value.items()])
        return "object", id(value)

    def _tensor(self, tensor: Any, name: str, spec: Any) -> Any:
        number = self._known.setdefault(id(tensor), len(self.tensors))
        if number < len(self.tensors):
            return "again", number
        self.tensors.append(tensor)
        shape = tuple(tensor.shape)
        if isinstance(spec, InputSpec):
            self._require_fits(tensor, name, spec)
            shape = spec.shape
        return tensor.dtype, shape, tensor.stop_gradient

    def _typed(self, value: Any, name: str, spec: Any, made: dict[int, Typed]) -> Any:
        if isinstance(value, Tensor):
            if id(value) not in made:
                is_given = isinstance(spec, InputSpec)
                shape, own_name = (spec.shape, spec.name or name) if is_given else (tuple(value.shape), name)
                made[id(value)] = Typed(value.dtype.name, shape, value.stop_gradient, own_name)
            return made[id(value)]
        if isinstance(value, (list, tuple)):
            parts = self._specs(value, spec, name)
            items = [self._typed(v, f"{name}_{k}", s, made) for k, (v, s) in enumerate(zip(value, parts, strict=True))]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if type(value) is dict:
            own = spec if isinstance(spec, dict) else {}
            return {k: self._typed(v, f"{name}_{k}", own.get(k), made) for k, v in value.items()}
        return value

    def _specs(self, value: Any, spec: Any, name: str) -> Sequence[Any]:
        if not isinstance(spec, (list, tuple)):
            return [None] * len(value)
        if len(spec) != len(value):
            raise ArgumentError(message(f"{self._name}(): {name} has {len(value)} items", f"its input_spec has {len(spec)}"))
        return spec

    def _require_fits(self, tensor: Any, name: str, spec: InputSpec) -> None:
        if tensor.dtype != spec.dtype:
            raise DTypeError(
                message(
                    f"{self._name}(): {name} is {tensor.dtype.name}",
                    f"its input_spec says {spec.dtype.name}",
                    f"cast it with .astype({spec.dtype.name!r})",
                )
            )
        if len(spec.shape) != tensor.ndim or any(n not in (-1, m) for n, m in zip(spec.shape, tensor.shape, strict=True)):
            raise ShapeError(
                message(
                    f"{self._name}(): {name} has shape {list(tensor.shape)}",
                    f"its input_spec says {list(spec.shape)}",
                    "give a tensor of that shape, or None in the spec for sizes that vary",
                )
            )


def with_tensors(value: Any) -> Any:
    """Arrays as tensors, in containers too."""
    if isinstance(value, np.ndarray):
        return to_tensor(value)
    if type(value) in (list, tuple):
        return type(value)(map(with_tensors, value))
    return {k: with_tensors(v) for k, v in value.items()} if type(value) is dict else value


def is_data(value: Any) -> bool:
    """Whether arguments are tensors, arrays, numbers and texts in containers: recordings tell other objects apart by identity."""
    if isinstance(value, (list, tuple)):
        return all(map(is_data, value))
    if isinstance(value, dict):
        return all(map(is_data, value.values()))
    return isinstance(value, (Tensor, np.ndarray)) or is_plain(value)


def typed_spec(name: str, spec: Any) -> Any:
    """A ``Typed`` for each InputSpec or tensor of a spec; other leaves as they are."""
    if isinstance(spec, InputSpec):
        return Typed(spec.dtype.name, spec.shape, spec.stop_gradient, spec.name or name)
    if isinstance(spec, Tensor):
        return Typed(spec.dtype.name, tuple(spec.shape), spec.stop_gradient, spec.name or name)
    if isinstance(spec, (list, tuple)):
        return type(spec)(typed_spec(f"{name}_{k}", s) for k, s in enumerate(spec))
    if isinstance(spec, dict):
        return {k: typed_spec(f"{name}_{k}", s) for k, s in spec.items()}
    return spec


def checked_specs(function: str, input_spec: Any, parameters: Sequence[inspect.Parameter]) -> dict[str, Any]:
    """The specs by parameter name; those beyond the named parameters are the elements of ``*args``."""
    if input_spec is None:
        return {}
    if not isinstance(input_spec, (list, tuple)):
        raise ArgumentTypeError(
            message(f"to_static(): input_spec is a {type(input_spec).__name__}", "it must be a list of InputSpec")
        )
    rest = next((k for k, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL), len(parameters))
    if rest < len(parameters):
        extra = tuple(input_spec[rest:])
        own = {parameters[rest].name: extra} if extra else {}
    elif len(input_spec) > len(parameters):
        raise ArgumentError(
            message(
                f"to_static(): input_spec has {len(input_spec)} items",
                f"{function}() takes {', '.join(p.name for p in parameters) or 'no arguments'}",
            )
        )
    else:
        own = {}
    return {p.name: spec for p, spec in zip(parameters[:rest], input_spec, strict=False)} | own
