"""The hooks that layers call around forward, and their handles."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

from ...base.errors import ArgumentTypeError, message


class Hook:
    """A function to call, and how."""

    def __init__(self, function: Any, with_kwargs: bool = False, always_call: bool = False) -> None:
        if not callable(function):
            raise ArgumentTypeError(message(f"hook is a {type(function).__name__}", "it must be callable"))
        self.function = function
        self.with_kwargs = with_kwargs
        self.always_call = always_call


class HookRemoveHelper:
    """Removes the hook that it was given for."""

    _next_id = 0

    def __init__(self, hooks: MutableMapping[int, Hook]) -> None:
        self._hooks = hooks
        self._hook_id = HookRemoveHelper._next_id
        HookRemoveHelper._next_id += 1

    def remove(self) -> None:
        """Remove the hook; doing it twice is harmless."""
        self._hooks.pop(self._hook_id, None)


def run_pre_hooks(
    layer: Any, hooks: MutableMapping[int, Hook], inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of forward after its pre-hooks."""
    for hook in list(hooks.values()):
        changed = hook.function(layer, inputs, kwargs) if hook.with_kwargs else hook.function(layer, inputs)
        if changed is None:
            continue
        if hook.with_kwargs:
            if not isinstance(changed, tuple) or len(changed) != 2:
                raise ArgumentTypeError(
                    message(
                        f"a forward pre-hook with kwargs gave a {type(changed).__name__}",
                        "it gives None, or the new inputs and the new keyword arguments",
                        "return (inputs, kwargs)",
                    )
                )
            changed, kwargs = changed
        inputs = changed if isinstance(changed, tuple) else (changed,)
    return inputs, kwargs


def _call(hook: Hook, layer: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> Any:
    return hook.function(layer, inputs, kwargs, outputs) if hook.with_kwargs else hook.function(layer, inputs, outputs)


def run_with_post_hooks(
    layer: Any, hooks: MutableMapping[int, Hook], inputs: tuple[Any, ...], kwargs: dict[str, Any], forward: Callable[[], Any]
) -> Any:
    """The outputs of forward after its post-hooks; when one fails, those that are always called still are, without outputs."""
    called = set()
    try:
        outputs = forward()
        for key, hook in list(hooks.items()):
            called.add(key)
            changed = _call(hook, layer, inputs, kwargs, outputs)
            if changed is not None:
                outputs = changed
    except BaseException:
        for key, hook in list(hooks.items()):
            if hook.always_call and key not in called:
                _call(hook, layer, inputs, kwargs, None)
        raise
    return outputs
