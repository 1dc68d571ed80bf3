"""Gradient modes, backward and grad, Python-defined operators, and hooks on what the tape saves."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import _rt
from ..base import nest, spans
from ..base.errors import ArgumentError, ArgumentTypeError, AutogradError, UnsupportedError, message
from ..ir.builder import current_builder

Tensor = _rt.Tensor
F = TypeVar("F", bound=Callable[..., Any])


class GradMode:
    """A context manager and decorator that sets gradient recording; re-entrant, and per thread."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._outer: list[bool] = []

    def __enter__(self) -> None:
        self._outer.append(_rt.set_grad_enabled(self._enabled))

    def __exit__(self, *error: Any) -> None:
        _rt.set_grad_enabled(self._outer.pop())

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generator(*args: Any, **kwargs: Any) -> Any:
                steps = function(*args, **kwargs)
                value = None
                while True:
                    with self.clone():
                        try:
                            item = steps.send(value)
                        except StopIteration as stop:
                            return stop.value
                    value = yield item

            return generator  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    def clone(self) -> GradMode:
        """Another one that sets the same."""
        return GradMode(self._enabled)


class no_grad(GradMode):
    """A context manager or decorator under which no operator is recorded for backward.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.ones([2])
        >>> x.stop_gradient = False
        >>> with paddle.no_grad():
        ...     y = x * 2
        >>> y.stop_gradient
        True
    """

    def __new__(cls, func: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if func is None else cls()(func)

    def __init__(self, func: Callable[..., Any] | None = None) -> None:
        super().__init__(False)


class enable_grad(GradMode):
    """A context manager or decorator under which operators are recorded, inside ``no_grad`` too."""

    def __new__(cls, func: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if func is None else cls()(func)

    def __init__(self, func: Callable[..., Any] | None = None) -> None:
        super().__init__(True)


class set_grad_enabled(GradMode):
    """Set gradient recording at once, and until the ``with`` block ends when used as a context manager."""

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._outer.append(_rt.set_grad_enabled(bool(mode)))

    def __enter__(self) -> None:
        return None


def is_grad_enabled() -> bool:
    """Whether operators are recorded for backward in this thread."""
    return bool(_rt.grad_enabled())


def _tensors(name: str, parameter: str, value: Any, none_allowed: bool = False) -> list[Any]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    for v in values:
        if not isinstance(v, Tensor) and not (none_allowed and v is None):
            raise ArgumentTypeError(
                message(f"{name}(): {parameter} holds a {type(v).__name__}", "it must be a Tensor or a list of Tensors")
            )
    return values


@spans.watched("Backward", "Gradient Backward")
def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool = False, *, dump_backward_graph_path: str | None = None
) -> None:
    """Add the gradients of the tensors' sum to the leaves that they depend on.

    Args:
        tensors: a Tensor or a list of them.
        grad_tensors: the gradient of each, None for ones.
        retain_graph: keep the graph for another backward.
        dump_backward_graph_path: None: drawings of the graph are not made.
    """
    _refuse_dump("backward", dump_backward_graph_path)
    roots = _tensors("backward", "tensors", tensors)
    gradients = None if grad_tensors is None else _tensors("backward", "grad_tensors", grad_tensors, none_allowed=True)
    _rt.backward(roots, gradients, retain_graph)


@spans.watched("Backward", "Gradient Backward")
def tensor_backward(
    self: Tensor,
    grad_tensor: Tensor | None = None,
    retain_graph: bool = False,
    *,
    gradient: Tensor | None = None,
    create_graph: bool = False,
    inputs: Any = None,
    dump_backward_graph_path: str | None = None,
) -> None:
    """Add the gradients of this tensor to the leaves that it depends on.

    Args:
        grad_tensor: the gradient of this tensor; ones by default.
        retain_graph: keep the graph for another backward.
        gradient: the same as grad_tensor.
        create_graph: record the computation of the gradients, for gradients of gradients.
        inputs: a Tensor or a list of them, leaves or not: only they receive gradients.
        dump_backward_graph_path: None: drawings of the graph are not made.

    Raises:
        ArgumentError: one of the inputs has ``stop_gradient=True``.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([2.0], stop_gradient=False)
        >>> w = paddle.to_tensor([3.0], stop_gradient=False)
        >>> (x * w).backward(inputs=[w])
        >>> x.grad is None, w.grad.item()
        (True, 2.0)
    """
    _refuse_dump("backward", dump_backward_graph_path)
    given = gradient if grad_tensor is None else grad_tensor
    if given is not None:
        _tensors("backward", "grad_tensor", given)
    gradients = None if given is None else [given]
    if inputs is None:
        _rt.backward([self], gradients, retain_graph or create_graph, create_graph)
    else:
        _accumulate(self, gradients, _tensors("backward", "inputs", inputs), retain_graph or create_graph, create_graph)


def _accumulate(root: Tensor, gradients: Any, inputs: list[Tensor], retain_graph: bool, create_graph: bool) -> None:
    """Add the root's gradient to the inputs' own, and to no others."""
    stopped = next((k for k, t in enumerate(inputs) if t.stop_gradient), None)
    if stopped is not None or not inputs:
        what = "inputs is an empty list" if stopped is None else f"inputs[{stopped}] has stop_gradient=True"
        raise ArgumentError(message(f"backward(): {what}", "", "pass tensors that want a gradient, or None for all leaves"))
    found = _rt.grad([root], inputs, gradients, retain_graph, create_graph, True, None)
    with GradMode(create_graph):
        for tensor, gradient in zip(inputs, found, strict=True):
            if gradient is None:
                continue
            if tensor.grad is None:
                own = gradient if create_graph else _rt.copy(gradient)
            else:
                own = tensor.grad + gradient
            if own.is_leaf:
                own.stop_gradient = False
            tensor.grad = own


def _refuse_dump(name: str, path: Any) -> None:
    if path is not None:
        raise UnsupportedError(
            message(f"{name}(): dump_backward_graph_path={path!r}", "drawings of the graph are not made", "leave it out")
        )


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Any = None,
    *,
    dump_backward_graph_path: str | None = None,
) -> list[Tensor | None]:
    """The gradients of the outputs' sum with respect to the inputs; no ``.grad`` changes.

    Args:
        outputs: a Tensor or a list of them.
        inputs: a Tensor or a list of them.
        grad_outputs: the gradient of each output, None for ones.
        retain_graph: keep the graph; by default as ``create_graph``.
        create_graph: record the computation of the gradients, for gradients of gradients.
        only_inputs: must be True.
        allow_unused: give None for an input that the outputs do not depend on, in place of an error.
        no_grad_vars: tensors through which no gradient flows.
        dump_backward_graph_path: None: drawings of the graph are not made.

    Returns:
        A list with the gradient of each input.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([3.0], stop_gradient=False)
        >>> (dx,) = paddle.grad(x * x, x, create_graph=True)
        >>> paddle.grad(dx, x)[0].item()
        2.0
    """
    if not only_inputs:
        raise ArgumentTypeError("grad(): only_inputs must be True")
    _refuse_dump("grad", dump_backward_graph_path)
    record = getattr(current_builder(), "differentiate", None)
    if record is not None:
        return record(outputs, inputs, grad_outputs, create_graph, allow_unused, no_grad_vars)  # type: ignore[no-any-return]
    targets = _tensors("grad", "inputs", inputs)
    found = _rt.grad(
        _tensors("grad", "outputs", outputs),
        targets,
        None if grad_outputs is None else _tensors("grad", "grad_outputs", grad_outputs, none_allowed=True),
        retain_graph,
        create_graph,
        allow_unused,
        None
        if no_grad_vars is None
        else _tensors("grad", "no_grad_vars", list(no_grad_vars) if isinstance(no_grad_vars, (set, frozenset)) else no_grad_vars),
    )
    return list(found)


class saved_tensors_hooks:
    """Pack and unpack what backward keeps, inside a ``with`` block.

    Args:
        pack_hook: called with each tensor that is saved; what it gives is kept in its place.
        unpack_hook: called with that when backward needs it; gives the tensor.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        if not callable(pack_hook) or not callable(unpack_hook):
            raise ArgumentTypeError("saved_tensors_hooks() takes two callables")
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        _rt.push_saved_tensor_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *error: Any) -> None:
        _rt.pop_saved_tensor_hooks()


class PyLayerContext:
    """What forward hands to backward."""

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self._not_differentiable: tuple[Tensor, ...] = ()
        self._materialize = True
        self._casts = True
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward; at most one call counts, the last."""
        self._saved = tensors

    def saved_tensor(self) -> tuple[Any, ...]:
        """The tensors that were kept."""
        return self._saved

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that were kept."""
        return self._saved

    def mark_not_inplace(self, *args: Any) -> None:
        """Accepted for compatibility: outputs that are inputs get a tensor of their own here."""

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """These outputs carry no gradient."""
        self._not_differentiable = tensors

    def set_grad_in_dtype_consistent(self, flag: bool) -> None:
        """Whether backward sees gradients cast to the dtypes of forward's outputs (the default), or in the dtypes that they arrive in."""
        self._casts = bool(flag)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward sees zeros in place of None for an output that nothing depends on."""
        self._materialize = bool(value)


class PyLayer:
    """An operator with a forward and a backward in Python.

    Subclass it with two static methods, ``forward(ctx, *args)`` and ``backward(ctx, *grads)``, and call ``apply``.

    Example:
        >>> import sampan as paddle
        >>> class Double(paddle.autograd.PyLayer):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     def backward(ctx, dy):
        ...         return dy * 2
        >>> x = paddle.ones([2])
        >>> x.stop_gradient = False
        >>> Double.apply(x).sum().backward()
        >>> x.grad.tolist()
        [2.0, 2.0]
    """

    @staticmethod
    def forward(ctx: PyLayerContext, *args: Any, **kwargs: Any) -> Any:
        """A subclass defines it: the outputs, from the arguments."""
        raise NotImplementedError("a PyLayer must define a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: PyLayerContext, *args: Any) -> Any:
        """A subclass defines it: one gradient for each tensor argument of forward, from one for each output."""
        raise NotImplementedError("a PyLayer must define a static method backward(ctx, ...)")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and record backward when an argument wants a gradient."""
        record = getattr(current_builder(), "call_python_layer", None)
        if record is not None:
            return record(cls, args, kwargs)
        ctx = PyLayerContext()
        leaves = [a for a in nest.flatten([list(args), dict(kwargs)]) if isinstance(a, Tensor)]
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and not a.stop_gradient for a in args)
        with no_grad():
            outputs = cls.forward(ctx, *args, **kwargs)
        if not is_grad_enabled() or all(t.stop_gradient for t in leaves):
            return outputs
        seen = {id(t) for t in leaves}
        fixed = nest.map_structure(lambda o: o.detach() if isinstance(o, Tensor) and id(o) in seen else o, outputs)
        excluded = {id(t) for t in ctx._not_differentiable}
        pairs = [(o, n) for o, n in zip(nest.flatten(outputs), nest.flatten(fixed), strict=True) if isinstance(n, Tensor)]
        carries = [id(o) not in excluded and n.dtype.kind in "fc" for o, n in pairs]
        made = [n for (_, n), carried in zip(pairs, carries, strict=True) if carried]
        if made:
            # the node keeps what was saved, so that no cycle runs through the context, and versions are checked
            saved, ctx._saved = ctx._saved, ()
            _rt.PyNode(
                cls.__name__,
                functools.partial(_run_backward, cls, ctx, made_types([n for _, n in pairs]), carries, len(leaves), bool(saved)),
                leaves,
                made,
                saved,
            )
        return fixed


def made_types(tensors: Sequence[Tensor]) -> list[tuple[list[int], str]]:
    """Shape and dtype of each."""
    return [(list(t.shape), t.dtype.name) for t in tensors]


def _run_backward(
    cls: type[PyLayer],
    ctx: PyLayerContext,
    types: list[tuple[list[int], str]],
    carries: list[bool],
    count: int,
    is_saving: bool,
    *passed: Any,
) -> tuple[Any, ...]:
    """``passed``: the tuple of what forward saved, where it saved something, then the gradients of the outputs that carry one."""
    ctx._saved = passed[0] if is_saving else ()
    present = iter(passed[1:] if is_saving else passed)
    given = [next(present) if carried else None for carried in carries]
    if ctx._casts:
        given = [g if g is None or g.dtype.name == dtype else g.astype(dtype) for g, (_, dtype) in zip(given, types, strict=True)]
    if ctx._materialize:
        given = [zeros_of(shape, dtype) if g is None else g for g, (shape, dtype) in zip(given, types, strict=True)]
    try:
        result = cls.backward(ctx, *given)
    finally:
        ctx._saved = ()
    found = tuple(result) if isinstance(result, (list, tuple)) else (result,)
    if len(found) != count:
        raise AutogradError(
            message(
                f"{cls.__name__}.backward() gave {len(found)} gradients",
                f"its forward took {count} tensors",
                "return one gradient (or None) for each of them, in order",
            )
        )
    return found


def zeros_of(shape: list[int], dtype: str) -> Tensor:
    """A tensor of zeros."""
    made = _rt.empty(shape, dtype)
    _rt.fill(made, 0)
    return made
