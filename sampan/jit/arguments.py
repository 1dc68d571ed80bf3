"""Arguments of a call taken apart: a key for the cache, the tensors, and what a recording gets in their place."""

from __future__ import annotations

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
        typed: the arguments with a ``Typed`` in the place of each tensor.
    """

    def __init__(self, name: str, named: Sequence[tuple[str, Any]], specs: dict[str, Any]) -> None:
        self._name = name
        self._known: dict[int, tuple[int, Typed]] = {}
        self.tensors: list[Any] = []
        keys, typed = [], {}
        for parameter, value in named:
            key, typed[parameter] = self._walk(value, parameter, specs.get(parameter))
            keys.append(key)
        self.key = tuple(keys)
        self.typed = typed

    def _walk(self, value: Any, name: str, spec: Any) -> tuple[Any, Any]:
        if isinstance(value, np.ndarray):
            value = to_tensor(value)
        if isinstance(value, Tensor):
            return self._tensor(value, name, spec)
        if type(value) in (list, tuple) or isinstance(value, tuple):
            parts = self._specs(value, spec, name)
            found = [self._walk(v, f"{name}_{k}", s) for k, (v, s) in enumerate(zip(value, parts, strict=True))]
            items = [t for _, t in found]
            made = type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
            return (type(value), tuple(k for k, _ in found)), made
        if type(value) is dict:
            own = spec if isinstance(spec, dict) else {}
            walked = {k: self._walk(v, f"{name}_{k}", own.get(k)) for k, v in value.items()}
            return (dict, tuple((k, key) for k, (key, _) in walked.items())), {k: t for k, (_, t) in walked.items()}
        if is_plain(value):
            return (type(value), value, repr(value)), value
        return ("object", id(value)), value

    def _specs(self, value: Any, spec: Any, name: str) -> Sequence[Any]:
        if not isinstance(spec, (list, tuple)):
            return [None] * len(value)
        if len(spec) != len(value):
            raise ArgumentError(message(f"{self._name}(): {name} has {len(value)} items", f"its input_spec has {len(spec)}"))
        return spec

    def _tensor(self, tensor: Any, name: str, spec: Any) -> tuple[Any, Typed]:
        found = self._known.get(id(tensor))
        if found is not None:
            return ("again", found[0]), found[1]
        shape = tuple(tensor.shape)
        if isinstance(spec, InputSpec):
            self._require_fits(tensor, name, spec)
            shape, name = spec.shape, spec.name or name
        typed = Typed(tensor.dtype.name, shape, tensor.stop_gradient, name)
        self._known[id(tensor)] = len(self.tensors), typed
        self.tensors.append(tensor)
        return (typed.dtype, shape, typed.stop_gradient), typed

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


def checked_specs(function: str, input_spec: Any, parameters: Sequence[str]) -> dict[str, Any]:
    """The specs by parameter name."""
    if input_spec is None:
        return {}
    if not isinstance(input_spec, (list, tuple)):
        raise ArgumentTypeError(
            message(f"to_static(): input_spec is a {type(input_spec).__name__}", "it must be a list of InputSpec")
        )
    if len(input_spec) > len(parameters):
        raise ArgumentError(
            message(
                f"to_static(): input_spec has {len(input_spec)} items",
                f"{function}() takes {', '.join(parameters) or 'no arguments'}",
            )
        )
    return dict(zip(parameters, input_spec, strict=False))
