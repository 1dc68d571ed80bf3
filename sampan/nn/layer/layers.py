"""Layer: the base class of all neural-network layers."""

from __future__ import annotations

import functools
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...base import dtypes, names, spans
from ...base.errors import ArgumentError, ArgumentTypeError, DTypeError, message
from ...base.places import parse_place
from ...tensor import Parameter, Tensor, to_tensor
from ...tensor.convert import around, running_layer
from ...tensor.convert.guards import settings_changed
from ...tensor.explained import Explained
from ...tensor.functions import dtype_name, dtype_named, no_grad
from ...tensor.program import ParameterVariable
from ...tensor.variable import Variable
from ..parameters import ParamAttr, make_parameter
from .hooks import Hook, HookRemoveHelper, run_pre_hooks, run_with_post_hooks
from .moves import DeviceMoves
from .state import LayerState


def _snake_case(name: str) -> str:
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()


class Layer(LayerState, DeviceMoves, Explained):
    """The base of layers: holds parameters, buffers and sub-layers, and calls ``forward``.

    Args:
        name_scope: the prefix of its parameters' names; by default the class's name in snake case.
        dtype: of its parameters.

    Example:
        >>> import sampan as paddle
        >>> class Net(paddle.nn.Layer):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.fc = paddle.nn.Linear(4, 2)
        ...     def forward(self, x):
        ...         return self.fc(x)
        >>> Net()(paddle.ones([3, 4])).shape
        paddle.Size([3, 2])
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _sub_layers: dict[str, Layer | None]
    _buffers: dict[str, Tensor | None]

    def __init__(self, name_scope: str | None = None, dtype: Any = "float32") -> None:
        scope = name_scope if name_scope is not None else _snake_case(type(self).__name__)
        put = object.__setattr__
        put(self, "training", True)
        put(self, "_full_name", names.generate(scope))
        put(self, "_dtype", dtype_name("Layer", dtype))
        put(self, "_parameters", OrderedDict())
        put(self, "_sub_layers", OrderedDict())
        put(self, "_buffers", OrderedDict())
        put(self, "_non_persistable_buffer_names_set", set())
        put(self, "_forward_pre_hooks", OrderedDict())
        put(self, "_forward_post_hooks", OrderedDict())
        put(self, "_state_dict_hooks", OrderedDict())
        put(self, "_parameter_counts", {})

    # ------------------------------------------------------------------ calling

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        if self._forward_pre_hooks:
            inputs, kwargs = run_pre_hooks(self, self._forward_pre_hooks, inputs, kwargs)
        forward = self.forward if around() is None else running_layer(self)
        if self._forward_post_hooks:
            call = functools.partial(spans.within, "Forward", self, forward, inputs, kwargs)
            return run_with_post_hooks(self, self._forward_post_hooks, inputs, kwargs, call)
        if spans.watcher is not None:
            return spans.within("Forward", self, forward, inputs, kwargs)
        return forward(*inputs, **kwargs)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the layer computes; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward()")

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookRemoveHelper:
        """Call ``hook(layer, inputs)`` before forward; what it gives replaces the inputs, unless None.

        Args:
            hook: the function.
            prepend: call it before the hooks that are there; by default after them.
            with_kwargs: call ``hook(layer, inputs, kwargs)``, which gives both or None.
        """
        return self._add_hook(self._forward_pre_hooks, Hook(hook, with_kwargs), prepend)

    def register_forward_post_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> HookRemoveHelper:
        """Call ``hook(layer, inputs, outputs)`` after forward; what it gives replaces the outputs, unless None.

        Args:
            hook: the function.
            prepend: call it before the hooks that are there; by default after them.
            with_kwargs: call ``hook(layer, inputs, kwargs, outputs)``.
            always_call: call it when forward, or a hook, fails too, with None in the place of the outputs.
        """
        return self._add_hook(self._forward_post_hooks, Hook(hook, with_kwargs, always_call), prepend)

    register_forward_hook = register_forward_post_hook

    def register_state_dict_hook(self, hook: Callable[[dict[str, Any]], Any]) -> HookRemoveHelper:
        """Call ``hook(state)`` on every state dict made; what it gives replaces the state, unless None."""
        return self._add_hook(self._state_dict_hooks, Hook(hook))

    @staticmethod
    def _add_hook(hooks: OrderedDict[int, Hook], hook: Hook, prepend: bool = False) -> HookRemoveHelper:
        helper = HookRemoveHelper(hooks)
        hooks[helper._hook_id] = hook
        if prepend:
            hooks.move_to_end(helper._hook_id, last=False)
        return helper

    # ------------------------------------------------------------------ attributes

    def __setattr__(self, name: str, value: Any) -> None:
        settings_changed()
        parameters = self.__dict__.get("_parameters")
        if parameters is None and isinstance(value, (Parameter, ParameterVariable, Layer)):
            raise AttributeError(
                message(
                    f"{type(self).__name__}.{name} was set before Layer.__init__ ran",
                    "the layer cannot register it yet",
                    "call super().__init__() first in your __init__",
                )
            )
        if isinstance(value, (Parameter, ParameterVariable)):
            self._forget(name)
            parameters[name] = value
        elif isinstance(value, Layer):
            self._forget(name)
            self._sub_layers[name] = value
        elif parameters is not None and name in parameters:
            if value is not None:
                raise ArgumentTypeError(
                    f"assignment to parameter '{name}' should be of type Parameter or None, but got '{type(value).__name__}'"
                )
            parameters[name] = None
        elif parameters is not None and name in self._sub_layers:
            if value is not None:
                raise ArgumentTypeError(
                    f"assignment to sublayer '{name}' should be of type Layer or None, but got '{type(value).__name__}'"
                )
            self._sub_layers[name] = None
        elif parameters is not None and name in self._buffers:
            if value is not None and not isinstance(value, (Tensor, Variable)):
                raise ArgumentTypeError(
                    f"assignment to buffers '{name}' should be of type Tensor or None, but got '{type(value).__name__}'"
                )
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str) -> None:
        self.__dict__.pop(name, None)
        for table in (self._parameters, self._sub_layers, self._buffers):
            table.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_sub_layers", "_buffers"):
            found = self.__dict__.get(table)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        settings_changed()
        for table in (self._parameters, self._sub_layers, self._buffers):
            if name in table:
                del table[name]
                self._non_persistable_buffer_names_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._sub_layers, *self._buffers})

    # ------------------------------------------------------------------ making parameters

    def create_parameter(
        self,
        shape: list[int] | tuple[int, ...],
        attr: Any = None,
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Any = None,
        device: Any = None,
    ) -> Parameter | None:
        """A new parameter, not yet registered: assign it to an attribute.

        Args:
            shape: its sizes.
            attr: a ParamAttr, an initializer, a name, or False for none.
            dtype: by default the layer's.
            is_bias: a bias starts at zero, a weight by Xavier's uniform rule, unless an initializer is given.
            default_initializer: used when ``attr`` has none.
            device: refused unless it is the CPU.

        Returns:
            The Parameter; None when ``attr`` is False.
        """
        if device is not None:
            parse_place("create_parameter", device)
        kind = "b" if is_bias else "w"
        number = self._parameter_counts.get(kind, 0)
        made = make_parameter(
            shape,
            ParamAttr._to_attr(attr),
            dtype_name("create_parameter", dtype or self._dtype),
            is_bias,
            default_initializer,
            f"{self._full_name}.{kind}_{number}",
        )
        if made is not None:
            self._parameter_counts[kind] = number + 1
        return made

    def create_tensor(self, name: str | None = None, persistable: bool | None = None, dtype: Any = None) -> Tensor:
        """A new empty tensor of the layer's dtype."""
        made = to_tensor(np.zeros([0], dtypes.numpy_dtype(dtype_name("create_tensor", dtype or self._dtype))))
        made.name = name or names.generate(f"{self._full_name}.tensor")
        made.persistable = bool(persistable)
        return made

    create_variable = create_tensor

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Register the parameter as an attribute; gives it."""
        self._check_name(name, self._parameters)
        if parameter is not None and not isinstance(parameter, (Parameter, ParameterVariable)):
            raise ArgumentTypeError(message(f"add_parameter(): got a {type(parameter).__name__}", "it takes a Parameter or None"))
        self._parameters[name] = parameter
        return parameter

    def register_parameter(self, name: str, param: Parameter | None) -> Parameter | None:
        """Register the parameter as an attribute; gives it."""
        return self.add_parameter(name, param)

    def add_sublayer(self, name: str, sublayer: Layer | None) -> Layer | None:
        """Register the layer as an attribute; gives it. The name may hold dots, which name it in ``state_dict`` too."""
        if sublayer is not None and not isinstance(sublayer, Layer):
            raise ArgumentTypeError(message(f"add_sublayer(): got a {type(sublayer).__name__}", "it takes a Layer or None"))
        self._check_name(name, self._sub_layers, may_be_a_path=True)
        self._sub_layers[str(name)] = sublayer
        return sublayer

    def add_module(self, name: str, module: Layer | None) -> Layer | None:
        """Register the layer as an attribute; gives it. The name may hold dots, which name it in ``state_dict`` too."""
        return self.add_sublayer(name, module)

    register_module = add_module

    def register_buffer(self, name: str, tensor: Tensor | None, persistable: bool = True) -> None:
        """Register a tensor that is part of the state but not trained; a persistable one is saved."""
        self._check_name(name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentTypeError(message(f"register_buffer(): got a {type(tensor).__name__}", "it takes a Tensor or None"))
        self.__dict__.pop(name, None)
        self._buffers[name] = tensor
        if persistable:
            self._non_persistable_buffer_names_set.discard(name)
        else:
            self._non_persistable_buffer_names_set.add(name)

    def _check_name(self, name: str, table: Mapping[str, Any], may_be_a_path: bool = False) -> None:
        settings_changed()
        if "_parameters" not in self.__dict__:
            raise AttributeError("call super().__init__() first in your __init__")
        if not isinstance(name, str):
            raise ArgumentTypeError(f"a name must be a string, got {name!r}")
        if not may_be_a_path and (name == "" or "." in name):
            raise KeyError(f"the name {name!r} must not be empty or contain a dot")
        if name not in table and (name in self.__dict__ or hasattr(type(self), name) or self._has(name)):
            raise KeyError(f"the attribute '{name}' already exists")

    def _has(self, name: str) -> bool:
        return any(name in t for t in (self._parameters, self._sub_layers, self._buffers))

    # ------------------------------------------------------------------ walking

    def children(self) -> Iterator[Layer]:
        """The direct sub-layers."""
        return (layer for _, layer in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        """The direct sub-layers with their names, each once."""
        seen = set()
        for name, layer in self._sub_layers.items():
            if layer is not None and id(layer) not in seen:
                seen.add(id(layer))
                yield name, layer

    def named_sublayers(
        self, prefix: str = "", include_self: bool = False, layers_set: set[Layer] | None = None, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Layer]]:
        """All sub-layers with their dotted names, depth first."""
        seen = layers_set if layers_set is not None else set()
        if self in seen and remove_duplicate:
            return
        seen.add(self)
        if include_self:
            yield prefix, self
        for name, layer in self._sub_layers.items():
            if layer is not None:
                yield from layer.named_sublayers(f"{prefix}{'.' if prefix else ''}{name}", True, seen, remove_duplicate)

    def named_modules(
        self, memo: set[Layer] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Layer]]:
        """This layer and all sub-layers with their dotted names, depth first; those in ``memo`` are left out."""
        return self.named_sublayers(prefix, True, memo, remove_duplicate)

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        """All sub-layers, depth first."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def modules(self) -> Iterator[Layer]:
        """This layer and all sub-layers."""
        return iter(self.sublayers(include_self=True))

    def _named(
        self, table: str, prefix: str, include_sublayers: bool, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        layers = (
            self.named_sublayers(prefix, True, remove_duplicate=remove_duplicate) if include_sublayers else iter([(prefix, self)])
        )
        for path, layer in layers:
            for name, value in layer.__dict__[table].items():
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield f"{path}{'.' if path else ''}{name}", value

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names, each once."""
        return self._named("_parameters", prefix, include_sublayers, remove_duplicate)

    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """The parameters, each once."""
        return [p for _, p in self.named_parameters(include_sublayers=include_sublayers)]

    def named_buffers(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names, each once."""
        return self._named("_buffers", prefix, include_sublayers, remove_duplicate)

    def buffers(self, include_sublayers: bool = True) -> list[Tensor]:
        """The buffers, each once."""
        return [b for _, b in self.named_buffers(include_sublayers=include_sublayers)]

    def get_sublayer(self, target: str) -> Layer:
        """The sub-layer of this dotted name."""
        layer: Any = self
        for part in target.split(".") if target else []:
            layer = getattr(layer, part, None)
            if not isinstance(layer, Layer):
                raise AttributeError(f"{type(self).__name__} has no sub-layer '{target}' (at '{part}')")
        return layer

    get_submodule = get_sublayer

    def set_sublayer(self, target: str, layer: Layer, strict: bool = False) -> None:
        """Put a layer at this dotted name; strict: in the place of one that is there, or AttributeError."""
        parent, _, name = target.rpartition(".")
        if strict:
            self.get_sublayer(target)
        setattr(self.get_sublayer(parent), name, layer)

    set_submodule = set_sublayer

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of this dotted name."""
        return self._lookup(target, "_parameters", "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of this dotted name."""
        return self._lookup(target, "_buffers", "buffer")

    def _lookup(self, target: str, table: str, what: str) -> Any:
        parent, _, name = target.rpartition(".")
        found = self.get_sublayer(parent).__dict__[table].get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__} has no {what} '{target}'")
        return found

    def apply(self, fn: Callable[[Layer], Any]) -> Layer:
        """Call ``fn`` on every sub-layer and on this layer, the inner ones first; gives this layer."""
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self

    # ------------------------------------------------------------------ modes

    def train(self, mode: bool = True) -> Layer:
        """Set training mode (or, by False, evaluation mode) here and below; gives this layer."""
        settings_changed()
        for layer in self.sublayers(include_self=True):
            object.__setattr__(layer, "training", bool(mode))
        return self

    def eval(self) -> Layer:
        """Set evaluation mode here and below; gives this layer."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Layer:
        """Say whether the parameters are trained; gives this layer."""
        for p in self.parameters():
            p.stop_gradient = not requires_grad
        return self

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of all trained parameters."""
        for p in self.parameters():
            if not p.stop_gradient:
                p.clear_gradient(set_to_zero)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all trained parameters."""
        self.clear_gradients(not set_to_none)

    def backward(self, *inputs: Any) -> None:
        """Layers have no backward of their own."""
        raise ArgumentError("Layer.backward() is not for calling: call backward() on the loss")

    # ------------------------------------------------------------------ dtype and place

    def to(self, device: Any = None, dtype: Any = None, blocking: bool | None = None, non_blocking: bool | None = None) -> Layer:
        """Convert floating parameters and buffers to ``dtype``; gives this layer.

        Args:
            device: the CPU.
            dtype: a floating dtype; None: as they are.
            blocking, non_blocking: accepted for compatibility: the conversion is done when this returns.
        """
        parse_place("to", device)
        return self if dtype is None else self._converted(dtype_name("to", dtype))

    @no_grad()
    def _converted(self, name: str, excluded_layers: tuple[type, ...] = (), shown: Any = None) -> Layer:
        if not dtypes.is_floating(name):
            raise DTypeError(
                message(
                    f"a layer cannot become {name}", "its parameters are floating", "use float16, bfloat16, float32 or float64"
                )
            )
        for layer in self.sublayers(include_self=True):
            if isinstance(layer, excluded_layers):
                continue
            object.__setattr__(layer, "_dtype", shown or name)
            for table in (layer._parameters, layer._buffers):
                for value in table.values():
                    if value is not None and dtypes.is_floating(value.dtype.name):
                        value.convert_(name)
        return self

    def astype(self, dtype: Any = None) -> Layer:
        """Convert floating parameters and buffers; gives this layer."""
        return self.to(dtype=dtype)

    def type(self, dst_type: Any) -> Layer:
        """Convert floating parameters and buffers; gives this layer."""
        return self.to(dtype=dst_type)

    def float(self, excluded_layers: Any = None) -> Layer:
        """Convert to float32."""
        return self._converted("float32", _types(excluded_layers), dtype_named("float32"))

    def double(self) -> Layer:
        """Convert to float64."""
        return self._converted("float64", shown=dtype_named("float64"))

    def float16(self, excluded_layers: Any = None) -> Layer:
        """Convert to float16."""
        return self._converted("float16", _types(excluded_layers), dtype_named("float16"))

    half = float16

    def bfloat16(self, excluded_layers: Any = None) -> Layer:
        """Convert to bfloat16."""
        return self._converted("bfloat16", _types(excluded_layers), dtype_named("bfloat16"))

    def cpu(self) -> Layer:
        """The layer in the CPU's memory: itself, in this build."""
        return self

    # ------------------------------------------------------------------ printing

    def full_name(self) -> str:
        """Its unique name, such as ``linear_0``."""
        return str(self._full_name)

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses of its repr; a subclass defines it."""
        return ""

    def __repr__(self) -> str:
        children = [f"({name}): " + _indented(repr(layer)) for name, layer in self._sub_layers.items()]
        text = f"{type(self).__name__}({self.extra_repr()}"
        if children:
            text += "\n  " + "\n  ".join(children) + "\n"
        return text + ")"


def _types(excluded: Any) -> tuple[type, ...]:
    return () if excluded is None else tuple(excluded) if isinstance(excluded, (list, tuple)) else (excluded,)


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
