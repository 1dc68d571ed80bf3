"""What a Layer saves and loads: its state as a dict of names to tensors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ...base.errors import ArgumentTypeError, ShapeError, UnsupportedError, message
from ...tensor import Tensor
from ...tensor.functions import no_grad


class IncompatibleKeys(NamedTuple):
    """The keys that a state dict lacked, and those that the layer does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


@dataclass
class ShardedWeight:
    """This process's part of a tensor of a layer's state: where ``local_tensor`` lies in the whole of ``global_shape``."""

    key: str
    local_tensor: Tensor
    local_shape: tuple[int, ...]
    global_shape: tuple[int, ...]
    global_offset: tuple[int, ...]
    is_flattened: bool = False
    flattened_range: slice | None = None


class LayerState:
    """The part of Layer that makes and takes state dicts."""

    def state_dict(
        self: Any,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Any]:
        """The parameters and persistable buffers by their dotted names.

        Args:
            destination: a dict to fill; a new one by default.
            include_sublayers: with those of all sub-layers.
            structured_name_prefix: put before every name.
            use_hook: run the state-dict hooks.
            keep_vars: the tensors themselves; False: without their history.
        """
        state = OrderedDict() if destination is None else destination
        layers = self.named_sublayers(include_self=True, remove_duplicate=False) if include_sublayers else iter([("", self)])
        for path, layer in layers:
            prefix = f"{structured_name_prefix}{path}{'.' if path else ''}"
            kept = [
                *layer._parameters.items(),
                *((n, b) for n, b in layer._buffers.items() if n not in layer._non_persistable_buffer_names_set),
            ]
            state.update((f"{prefix}{n}", v if keep_vars else v.detach()) for n, v in kept if v is not None)
        if use_hook:
            for hook in list(self._state_dict_hooks.values()):
                changed = hook.function(state)
                state = state if changed is None else changed
        return state

    def to_static_state_dict(
        self: Any,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Any]:
        """The parameters and all buffers by their dotted names."""
        state = self.state_dict(destination, include_sublayers, structured_name_prefix, use_hook, keep_vars)
        state.update((structured_name_prefix + n, b) for n, b in self.named_buffers(include_sublayers=include_sublayers))
        return state

    def set_state_dict(self: Any, state_dict: Mapping[str, Any], use_structured_name: bool = True) -> tuple[list[str], list[str]]:
        """Take parameters and buffers from a state dict. All are checked before the first is written.

        Args:
            state_dict: names to tensors or arrays.
            use_structured_name: the keys are dotted names; False: the tensors' own names.

        Returns:
            (missing keys, unexpected keys). A key whose shape or dtype kind does not fit raises, and nothing is written: Paddle skips such keys with a warning,
            which hides mistakes.

        Raises:
            ShapeError: a value has another shape, with every such key listed.
        """
        found = self._load("set_state_dict", state_dict, use_structured_name, False)
        return found.missing_keys, found.unexpected_keys

    set_dict = load_dict = set_state_dict

    def load_state_dict(self: Any, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> IncompatibleKeys:
        """Take parameters and buffers from a state dict by their dotted names. All are checked before the first is written.

        Args:
            state_dict: names to tensors or arrays.
            strict: missing or unexpected keys raise RuntimeError, and nothing is written.
            assign: tensors take the memory and the dtype of the given ones; by default their elements are copied, in the layer's dtype.

        Returns:
            The missing and the unexpected keys.

        Raises:
            RuntimeError: strict, and a key is missing or unexpected.
            ShapeError: a value has another shape, with every such key listed.
        """
        return self._load("load_state_dict", state_dict, True, strict, assign)

    @no_grad()
    def _load(
        self: Any, name: str, given: Mapping[str, Any], is_structured: bool, strict: bool, assign: bool = False
    ) -> IncompatibleKeys:
        if not isinstance(given, Mapping):
            raise ArgumentTypeError(
                message(f"{name}(): state_dict is a {type(given).__name__}", "it takes a dict of names to tensors")
            )
        own = self.state_dict(use_hook=False)
        targets = {k if is_structured else v.name: v for k, v in own.items()}
        keys = IncompatibleKeys(
            [k for k, v in own.items() if (k if is_structured else v.name) not in given], [k for k in given if k not in targets]
        )
        if strict and (keys.missing_keys or keys.unexpected_keys):
            raise RuntimeError(
                message(
                    f"{name}(): of the keys of {type(self).__name__}, {keys.missing_keys} are missing, and {keys.unexpected_keys} are unexpected",
                    "nothing was loaded",
                    "pass strict=False to load what fits",
                )
            )
        shapes = {k: list(np.shape(v) if not hasattr(v, "shape") else v.shape) for k, v in given.items() if k in targets}
        wrong = [f"{k}: {shape} for {list(targets[k].shape)}" for k, shape in shapes.items() if shape != list(targets[k].shape)]
        if wrong:
            raise ShapeError(
                message(
                    f"{name}(): {len(wrong)} of the given values do not fit: {'; '.join(wrong)}",
                    "nothing was loaded",
                    "drop those keys from the dict, or build the layer with the sizes of the saved one",
                )
            )
        for key in shapes:
            if assign and isinstance(given[key], Tensor):
                targets[key].data = given[key]
            else:
                targets[key].set_value(given[key])
        return keys

    def sharded_state_dict(self: Any, structured_name_prefix: str = "") -> dict[str, ShardedWeight]:
        """The state as this process's parts of tensors. A layer that is not distributed has all of each.

        Args:
            structured_name_prefix: put before every name.

        Example:
            >>> import sampan as paddle
            >>> parts = paddle.nn.Linear(2, 3).sharded_state_dict()
            >>> parts["weight"].global_shape, parts["weight"].global_offset
            ((2, 3), (0, 0))
        """
        state = self.state_dict(structured_name_prefix=structured_name_prefix)
        shapes = {key: tuple(value.shape) for key, value in state.items()}
        return {key: ShardedWeight(key, value, shapes[key], shapes[key], (0,) * len(shapes[key])) for key, value in state.items()}

    def full(self: Any, aoa_config: Any = None, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """The names and whole tensors of the state, of which a distributed layer holds parts.

        Args:
            aoa_config: rules that rename, split and merge tensors on their way; not in this build, so None.
            kwargs: groups of processes and sizes of buffers for gathering, of which one process has no need.

        Raises:
            UnsupportedError: aoa_config is given.
        """
        if aoa_config is not None:
            raise UnsupportedError(
                message("full(): aoa_config is given", "this build renames and merges no tensors", "change the names yourself")
            )
        return iter(sorted(self.state_dict().items()))

    def get_extra_state(self) -> NoReturn:
        """Raises UnsupportedError: a state dict of Paddle's holds tensors only."""
        raise UnsupportedError(
            message(
                f"{type(self).__name__}.get_extra_state(): a layer has no state beside its tensors",
                "state dicts hold parameters and buffers",
                "register what is to be saved by register_buffer()",
            )
        )
