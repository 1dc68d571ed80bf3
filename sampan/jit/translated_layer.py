"""TranslatedLayer: a layer that was loaded from files, and runs by the Programs in them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from ..base.errors import ArgumentError, message
from ..nn import Layer
from ..tensor import Parameter, Tensor
from ..tensor.saved_function import SavedFunction


class TranslatedLayer(Layer):
    """A layer that ``jit.load`` made. It can be called, trained further, and saved again by its ``state_dict``.

    Args:
        functions: for every method the recorded functions, by mode: ``eval``, and ``train`` where there is one.
        tensors: by name.
        described: for every tensor its own name, whether it is trained, and whether it is a parameter.
    """

    def __init__(
        self, functions: Mapping[str, Mapping[str, SavedFunction]], tensors: Mapping[str, Tensor], described: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self.training = False
        for name, tensor in tensors.items():
            own_name, is_trained, is_parameter = described[name]
            if is_parameter:
                self._parameters[name] = Parameter(tensor, is_trained, own_name or name)
            else:
                tensor.name = own_name or name
                self._buffers[name] = tensor
            if name.startswith("constant_"):
                self._non_persistable_buffer_names_set.add(name)
        self._functions = functions
        self._saved: Any = None
        self._bind()

    def _bind(self) -> None:
        """Make what is called, over this layer's own tensors."""
        held = {**self._parameters, **self._buffers}
        own: dict[str, Any] = {
            "_calls": {name: {mode: f.bound(held, name) for mode, f in modes.items()} for name, modes in self._functions.items()},
            "_model": None if self._saved is None else self._saved.runner(held),
            **{name: self._method(name) for name in self._functions if name != "forward"},
        }
        vars(self).update(own)

    def __deepcopy__(self, memo: dict[int, Any]) -> TranslatedLayer:
        made = memo[id(self)] = object.__new__(type(self))
        shared = {"_functions", "_saved"}
        bound = {"_calls", "_model", *self._functions}
        vars(made).update({k: v if k in shared else copy.deepcopy(v, memo) for k, v in vars(self).items() if k not in bound})
        made._bind()
        return made

    def _method(self, name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            modes = self._calls[name]
            return modes["train" if self.training and "train" in modes else "eval"](*args)

        call.__name__ = call.__qualname__ = name
        return call

    def run_model(self, saved: Any) -> None:
        """Run this model of PaddlePaddle's in the place of recorded functions."""
        self._saved = saved
        self._bind()

    def forward(self, *args: Any) -> Any:
        """What the saved layer's ``forward`` computes."""
        if self._model is not None:
            results = self._model(*args)
            return results[0] if len(results) == 1 else results
        return self._method("forward")(*args)

    def input_variables(self) -> list[Any]:
        """What ``forward`` takes, as Variables: names, dtypes and sizes, -1 for those that may vary.

        Raises:
            ArgumentError: the layer came from PaddlePaddle's files.
        """
        found = self._functions.get("forward")
        if found is None:
            raise ArgumentError(message("the loaded layer has no recorded forward", "it came from PaddlePaddle's files"))
        return found["eval"].inputs

    def program(self, method_name: str = "forward") -> Any:
        """The Program of a method, as it computes in evaluation.

        Raises:
            ArgumentError: there is no such method, or it came from PaddlePaddle's files.
        """
        found = self._functions.get(method_name)
        if found is None:
            raise ArgumentError(
                message(
                    f"the loaded layer has no method {method_name!r}", f"it has {', '.join(self._functions) or 'none of its own'}"
                )
            )
        return found["eval"].program()
