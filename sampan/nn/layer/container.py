"""Containers of layers and parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...base.errors import ArgumentTypeError, IndexRangeError, message
from ...tensor import Parameter, Tensor
from .layers import Layer


def _position(name: str, index: Any, size: int) -> int:
    """The index counted from the front, as an int. Raises for one outside."""
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise ArgumentTypeError(message(f"{name}: the index is a {type(index).__name__}", "it must be an integer"))
    at = index.__index__()
    if not -size <= at < size:
        raise IndexRangeError(message(f"{name}: index {at} is outside of {size} entries"))
    return at + size if at < 0 else at


class Sequential(Layer):
    """Layers that run one after another.

    Args:
        *layers: layers; or (name, layer) pairs; or one OrderedDict or list of them.

    Example:
        >>> import sampan as paddle
        >>> net = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 2))
        >>> net(paddle.to_tensor([[1.0, 2.0, 3.0, 4.0]])).shape
        paddle.Size([1, 2])
    """

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            layers = tuple(layers[0].items())
        elif len(layers) == 1 and isinstance(layers[0], list):
            layers = tuple(layers[0])
        for k, entry in enumerate(layers):
            if isinstance(entry, (tuple, list)):
                name, layer = entry
                self.add_sublayer(str(name), layer)
            else:
                self.add_sublayer(str(k), entry)

    def forward(self, input: Any) -> Any:
        for layer in self._sub_layers.values():
            input = layer(input)  # type: ignore[misc]
        return input

    def _key(self, index: Any) -> str:
        return list(self._sub_layers)[_position("Sequential", index, len(self._sub_layers))]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(*list(self._sub_layers.items())[index])
        return self._sub_layers[index if isinstance(index, str) else self._key(index)]

    def __setitem__(self, index: Any, layer: Layer) -> None:
        _require_layer("Sequential", layer)
        self._sub_layers[index if isinstance(index, str) else self._key(index)] = layer

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, str):
            del self._sub_layers[index]
            return
        for name in list(self._sub_layers)[index] if isinstance(index, slice) else [self._key(index)]:
            del self._sub_layers[name]
        _renumber(self)

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())

    def append(self, module: Layer) -> Sequential:
        """Add a layer at the end; gives the container."""
        self.add_sublayer(str(len(self)), module)
        return self

    def insert(self, index: int, module: Layer) -> Sequential:
        """Add a layer before the one at ``index``; gives the container."""
        _require_layer("Sequential", module)
        at = index + len(self) if index < 0 else index
        if not 0 <= at <= len(self):
            raise IndexRangeError(message(f"Sequential.insert(): index {index} is outside of {len(self)} layers"))
        items = list(self._sub_layers.items())
        items.insert(at, ("", module))
        _refill(self._sub_layers, items)
        return self

    def extend(self, sequential: Iterable[Layer]) -> Sequential:
        """Add layers at the end; gives the container."""
        for layer in sequential:
            self.append(layer)
        return self


def _require_layer(where: str, layer: Any) -> None:
    if not isinstance(layer, Layer):
        raise ArgumentTypeError(message(f"{where} got a {type(layer).__name__}", "it holds Layers"))


def _refill(table: dict[str, Any], items: Sequence[tuple[str, Any]]) -> None:
    """The entries in this order; numbered names follow the positions, others stay."""
    table.clear()
    for k, (name, value) in enumerate(items):
        table[str(k) if name.isdigit() or not name else name] = value


def _renumber(layer: Layer) -> None:
    _refill(layer._sub_layers, list(layer._sub_layers.items()))


class LayerList(Layer):
    """A list of layers.

    Args:
        sublayers: the layers to start with.

    Example:
        >>> import sampan as paddle
        >>> layers = paddle.nn.LayerList([paddle.nn.Linear(4, 4) for _ in range(3)])
        >>> len(layers)
        3
    """

    def __init__(self, sublayers: Iterable[Layer] | None = None) -> None:
        super().__init__()
        self.extend(sublayers or ())

    def _at(self, index: Any) -> str:
        return str(_position("LayerList", index, len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._sub_layers.values())[index])
        return self._sub_layers[self._at(index)]

    def __setitem__(self, index: int, sublayer: Layer) -> None:
        _require_layer("LayerList", sublayer)
        self._sub_layers[self._at(index)] = sublayer

    def __delitem__(self, index: Any) -> None:
        for name in list(self._sub_layers)[index] if isinstance(index, slice) else [self._at(index)]:
            del self._sub_layers[name]
        _renumber(self)

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())

    def __add__(self, other: Iterable[Layer]) -> LayerList:
        return type(self)([*self, *other])

    def append(self, sublayer: Layer) -> LayerList:
        """Add a layer at the end; gives the list."""
        self.add_sublayer(str(len(self)), sublayer)
        return self

    def insert(self, index: int, sublayer: Layer) -> None:
        """Add a layer before the one at ``index``."""
        _require_layer("LayerList", sublayer)
        if not -len(self) <= index <= len(self):
            raise IndexRangeError(message(f"LayerList.insert(): index {index} is outside of {len(self)} layers"))
        items = list(self._sub_layers.items())
        items.insert(index, ("", sublayer))
        _refill(self._sub_layers, items)

    def extend(self, sublayers: Iterable[Layer]) -> LayerList:
        """Add layers at the end; gives the list."""
        for layer in sublayers:
            self.append(layer)
        return self

    def pop(self, key: int = -1) -> Layer:
        """Remove the layer at this position, by default the last; gives it."""
        layer: Layer = self[key]
        del self[key]
        return layer


class _NamedEntries(Layer):
    """What LayerDict and ParameterDict share: a mapping over one of the layer's tables of registered entries."""

    _entries: dict[str, Any]

    def __getitem__(self, key: str) -> Any:
        return self._entries[key]

    def __delitem__(self, key: str) -> None:
        del self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def keys(self) -> Any:
        """The names."""
        return self._entries.keys()

    def items(self) -> Any:
        """(name, entry) pairs."""
        return self._entries.items()

    def values(self) -> Any:
        """The entries."""
        return self._entries.values()


class LayerDict(_NamedEntries):
    """Layers by name, in order of insertion.

    Args:
        sublayers: a dict, or (name, layer) pairs, to start with.
    """

    _entries = property(lambda self: self._sub_layers)  # type: ignore[assignment]

    def __init__(self, sublayers: Any = None) -> None:
        super().__init__()
        if sublayers is not None:
            self.update(sublayers)

    def __setitem__(self, key: str, sublayer: Layer) -> None:
        self.add_sublayer(key, sublayer)

    def clear(self) -> None:
        """Remove all layers."""
        self._sub_layers.clear()

    def pop(self, key: str) -> Layer:
        """Remove the layer of this name; gives it."""
        return self._sub_layers.pop(key)  # type: ignore[return-value]

    def update(self, sublayers: Any) -> None:
        """Add or replace layers from a dict or (name, layer) pairs."""
        for key, layer in _pairs("LayerDict.update", sublayers):
            self[key] = layer


def _pairs(name: str, given: Any) -> list[tuple[str, Any]]:
    if isinstance(given, Mapping) or hasattr(given, "items"):
        return list(given.items())
    if not isinstance(given, Iterable):
        raise ArgumentTypeError(message(f"{name}(): got a {type(given).__name__}", "it takes a dict or (name, value) pairs"))
    pairs = list(given)
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentTypeError(message(f"{name}(): {pair!r} is no (name, value) pair"))
    return pairs


class ParameterList(Layer):
    """A list of parameters.

    Args:
        parameters: to start with.

    Example:
        >>> import sampan as paddle
        >>> held = paddle.nn.ParameterList([paddle.create_parameter([2, 2], "float32") for _ in range(3)])
        >>> len(held.parameters())
        3
    """

    def __init__(self, parameters: Iterable[Tensor] | None = None) -> None:
        super().__init__()
        for p in parameters or ():
            self.append(p)

    def _at(self, index: Any) -> str:
        return str(_position("ParameterList", index, len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._parameters.values())[index])  # type: ignore[arg-type]
        return self._parameters[self._at(index)]

    def __setitem__(self, index: int, parameter: Parameter) -> None:
        self.add_parameter(self._at(index), parameter)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())  # type: ignore[arg-type]

    def append(self, parameter: Parameter) -> ParameterList:
        """Add a parameter at the end; gives the list."""
        self.add_parameter(str(len(self)), parameter)
        return self


class ParameterDict(_NamedEntries):
    """Parameters by name, in order of insertion.

    Args:
        parameters: a dict, or (name, parameter) pairs, to start with.
    """

    _entries = property(lambda self: self._parameters)  # type: ignore[assignment]

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def __setitem__(self, key: str, parameter: Parameter) -> None:
        self.add_parameter(key, parameter)

    def update(self, parameters: Any) -> None:
        """Add or replace parameters from a dict or (name, parameter) pairs."""
        for key, parameter in _pairs("ParameterDict.update", parameters):
            self[key] = parameter


__all__ = ["LayerDict", "LayerList", "ParameterDict", "ParameterList", "Sequential"]
