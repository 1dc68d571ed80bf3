"""The public functions of ``paddle.jit`` that mark what is converted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from ..base.errors import ArgumentTypeError, message
from ..nn import Layer
from ..tensor.convert import ignore_modules, leave_alone
from .static_function import StaticFunction, require_callable


def to_static(
    function: Any = None,
    input_spec: Any = None,
    build_strategy: Any = None,
    backend: str | None = "CINN",
    *,
    full_graph: bool = False,
    property: bool = False,
    **kwargs: Any,
) -> Any:
    """The function, method or layer, to run as a Program: recorded when it is first called with arguments of a kind.

    Branches and loops whose conditions are tensors become part of the Program; everything else in the function runs once, while it is recorded.

    Args:
        function: what to convert; None gives a decorator. Of a layer ``forward`` is converted, and the layer given back.
        input_spec: a list of ``InputSpec``, for the first parameters: None in a shape stands for sizes that differ from call to call.
        build_strategy: accepted for compatibility.
        backend: accepted for compatibility: there is one compiler.
        full_graph: what cannot be converted raises; by default such calls run eagerly, as the Python that they are.
        property: accepted for compatibility.

    Returns:
        A ``StaticFunction``; the layer, for a layer.

    Raises:
        ConversionError: with ``full_graph``, when called: the code cannot become a Program; the text names its line.

    Example:
        >>> import sampan as paddle
        >>> @paddle.jit.to_static
        ... def clipped(x):
        ...     if x.sum() > 10:
        ...         x = x / x.sum()
        ...     return x
        >>> clipped(paddle.to_tensor([4.0, 12.0])).tolist()
        [0.25, 0.75]
    """
    if kwargs:
        raise ArgumentTypeError(message(f"to_static() got an unexpected argument '{next(iter(kwargs))}'"))
    for name, value in (("full_graph", full_graph), ("property", property)):
        if not isinstance(value, bool):
            raise ArgumentTypeError(message(f"to_static(): {name}={value!r}", "it must be True or False"))

    def convert(target: Any) -> Any:
        require_callable(target)
        if isinstance(target, Layer):
            forward = target.forward
            if isinstance(forward, StaticFunction):
                forward = forward.dygraph_function
            vars(target)["forward"] = StaticFunction(forward, input_spec, full_graph)
            return target
        if isinstance(target, StaticFunction):
            target = target.dygraph_function
        return StaticFunction(target, input_spec, full_graph)

    return convert if function is None else convert(function)


def not_to_static(func: Callable[..., Any] | None = None) -> Any:
    """Leave the function as it is: its branches and loops stay Python's while functions that call it are recorded.

    Example:
        >>> import sampan as paddle
        >>> @paddle.jit.not_to_static
        ... def shifted(x):
        ...     return x - 1
        >>> shifted(paddle.to_tensor(3)).item()
        2
    """
    if func is None:
        return not_to_static
    require_callable(func)
    if isinstance(func, Layer):
        leave_alone(getattr(func.forward, "__func__", func.forward))
        return func
    return leave_alone(func)


def ignore_module(modules: Iterable[ModuleType]) -> None:
    """Leave the functions of these modules as they are: libraries that have nothing to do with tensors."""
    if isinstance(modules, ModuleType) or not isinstance(modules, Iterable):
        raise ArgumentTypeError(message(f"ignore_module(): got a {type(modules).__name__}", "it takes a list of modules"))
    ignore_modules(modules)
