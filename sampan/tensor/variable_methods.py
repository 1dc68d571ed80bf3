"""Methods that Tensor has of its own, for Variables: conversions, fresh tensors, writes; and what a Variable knows of its Program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedError, message
from ..base.places import CPU, Device, parse_place
from ..ir.builder import current_builder
from ..ir.program import Value
from ..ops.arguments import dtype_name
from .autograd import no_grad
from .build import OPS
from .conversions import cuda, to
from .methods import VarType, ndimension
from .recording import Recorder, current_recorder
from .scope import global_scope
from .variable import UNKNOWN, Variable


def _here(variable: Variable) -> Recorder:
    """The recorder that calls on the Variable go to."""
    recorder = current_recorder()
    return variable.recorder if recorder is None else recorder  # type: ignore[no-any-return]


def _size(self: Value) -> Any:
    """How many elements it has: a number, or a Variable where sizes are unknown."""
    return OPS["numel"](self) if UNKNOWN in self.shape else math.prod(self.shape)


def detach(self: Value) -> Any:
    """The same elements, through which no gradient flows."""
    with no_grad():
        return OPS["assign"](self)


def cpu(self: Value) -> Value:
    """The Variable itself: Programs run on the CPU."""
    return self


def contiguous(self: Value) -> Value:
    """The Variable itself: Programs lay tensors out as they need."""
    return self


def element_size(self: Value) -> int:
    """Bytes of one element."""
    return int(dtypes.itemsize(self.dtype))


def get_device(self: Variable) -> int:
    """The number of its GPU; -1 for the CPU."""
    return -1


def is_contiguous(self: Value) -> bool:
    """True: a Program's tensors have no strides that a user sees."""
    return True


def is_same_shape(self: Value, y: Any) -> bool:
    """Whether both have the same sizes, unknown ones counted as equal."""
    return list(self.shape) == list(y.shape)


def clear_gradient(self: Variable, set_to_zero: bool = True) -> None:
    """Nothing to do: every run of a Program computes its gradients anew."""


def apply(self: Variable, func: Callable[[Any], Any]) -> Any:
    """``func`` of the Variable."""
    return func(self)


def write(target: Variable, value: Any, what: str) -> Variable:
    """From here on, the target is the value, in its dtype and broadcast to its shape; gives the target."""
    recorder = _here(target)
    source = value if isinstance(value, (Variable, _rt.Tensor)) else np.asarray(value)
    given = tuple(source.shape)
    target_sizes = tuple(target.shape)
    if len(given) > len(target_sizes) or any(
        m != n and UNKNOWN not in (m, n) and m != 1 for m, n in zip(given[::-1], target_sizes[::-1], strict=False)
    ):
        raise ShapeError(
            message(f"{what}(): the value has shape {list(given)} and {target.name} {list(target_sizes)}", "they must be equal")
        )
    with recorder.active(), no_grad():
        made = OPS["assign"](recorder.operand(source))
        if made.dtype != target.dtype:
            made = OPS["cast"](made, target.dtype)
        if len(given) != len(target_sizes) or given != target_sizes:
            made = OPS["expand_as"](made, target)
        recorder.write(target, made)
    return target


def replace(target: Any, value: Value) -> Any:
    """From here on, the target (a Variable, or a tensor that the Program captured) is the value; gives the target."""
    builder: Any = current_builder()
    builder.write(builder.variable_of(target) if isinstance(builder, Recorder) else target, value)
    return target


def write_to(self: Value, function: str, out: Any) -> Value:
    """Take the place of ``out`` of a call, which must be of its dtype and shape."""
    if not isinstance(out, (Value, _rt.Tensor)):
        raise ArgumentTypeError(message(f"{function}(): out is a {type(out).__name__}", "it must be a Tensor or a Variable"))
    own, given = (f"{getattr(v.dtype, 'name', v.dtype)}{list(v.shape)}" for v in (self, out))
    if own != given and (UNKNOWN not in (*self.shape, *out.shape) or own.split("[")[0] != given.split("[")[0]):
        raise ShapeError(message(f"{function}(): out is {given}, and the result {own}", "they must be equal"))
    replace(out, self)
    return self


def set_value(self: Variable, value: Any, scope: Any = None) -> None:
    """From here on, the Variable has these elements: a statement of the Program; with a ``scope``, the elements that it has there."""
    if scope is not None:
        scope.var(self.name).set_value(value)
    else:
        write(self, value, "set_value")


def get_value(self: Variable, scope: Any = None) -> Any:
    """The elements of a persistable Variable in a Scope, by default the global one, as a tensor."""
    found = (scope or global_scope()).get(self.name)
    if found is None:
        raise ArgumentError(
            message(f"get_value(): {self.name} has no value in the scope", "persistable Variables get one by the startup program")
        )
    return found


def copy_(self: Variable, other: Any, blocking: bool = True) -> Variable:
    """Overwrite the elements by another's, broadcast to its shape; gives the Variable."""
    return write(self, other, "copy_")


def fill_(self: Variable, value: Any) -> Variable:
    """Overwrite every element by one value; gives the Variable."""
    return write(self, value, "fill_")


def zero_(self: Variable) -> Variable:
    """Overwrite every element by 0; gives the Variable."""
    return write(self, 0, "zero_")


def requires_grad_(self: Variable, requires_grad: bool = True) -> Variable:
    """Say whether gradients flow to it; gives the Variable."""
    self.stop_gradient = not requires_grad
    return self


def _set_requires_grad(self: Variable, value: bool) -> None:
    self.stop_gradient = not value


def _matrix_transposed(self: Value) -> Any:
    if self.ndim < 2:
        raise ShapeError(message(f"Variable.mT: {self.name} has shape {list(self.shape)}", "it needs at least two axes"))
    return OPS["transpose"](self, [*range(self.ndim - 2), self.ndim - 1, self.ndim - 2])


def append(self: Variable, var: Any) -> None:
    """Raises: only tensor arrays take elements."""
    raise UnsupportedError(
        message(f"{self.name}.append()", "it is no tensor array", "make one with paddle.tensor.create_array(dtype)")
    )


def numel(self: Variable, name: str | None = None) -> Any:
    """How many elements it has, as a 0-D int64 Variable."""
    return OPS["numel"](self)


def backward(self: Variable, retain_graph: bool = False, grad_tensor: Any = None) -> None:
    """Raises: gradients of a Program are statements of it."""
    raise self.unknown(
        "has no backward()",
        "use paddle.grad(loss, inputs) here, static.append_backward(loss) in a Program, or call backward() on what the function gives",
    )


def register_hook(self: Variable, hook: Any) -> None:
    """Raises: what acts on gradients is recorded where they are made."""
    raise self.unknown(
        "takes no hooks", "change the gradients that paddle.static.gradients() gives, or use static.nn.static_pylayer"
    )


def get_defining_op(self: Variable) -> Any:
    """The statement that makes it; None for data and parameters."""
    return self.latest.op


def set_shape(self: Variable, shape: Sequence[int]) -> None:
    """Make unknown sizes known. Raises ShapeError where a known size differs."""
    held, sizes = self.latest, [UNKNOWN if n is None else int(n) for n in shape]
    if len(sizes) != held.ndim or any(n not in (m, UNKNOWN) for m, n in zip(held.sizes, sizes, strict=True) if m != UNKNOWN):
        raise ShapeError(message(f"set_shape(): {self.name} has shape {list(held.sizes)}", f"it cannot become {sizes}"))
    known = tuple(n if m == UNKNOWN else m for m, n in zip(held.sizes, sizes, strict=True))
    if held.probes is not None:
        first, second = (
            tuple(probe if n == UNKNOWN else n for probe, n in zip(held.probe(k), known, strict=True)) for k in range(2)
        )
        held.probes = (first, second) if UNKNOWN in known else None
    held.shape = known


def to_string(self: Variable, throw_on_error: bool = True, with_details: bool = False) -> str:
    """The Variable as text."""
    return repr(self)


def _to(self: Value, *args: Any, **kwargs: Any) -> Any:
    """The Variable in another dtype: ``to(dtype)``, ``to(other)``, ``to(device, dtype)``."""
    others = [a for a in (*args, kwargs.get("other")) if isinstance(a, (Value, _rt.Tensor))]
    if not others:
        return to(self, *args, **kwargs)  # type: ignore[arg-type]
    dtype = others[0].dtype
    return to(self, getattr(dtype, "name", dtype))  # type: ignore[arg-type]


def new_full(
    self: Variable, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:  # fmt: skip
    """A fresh Variable of one value, in this one's dtype unless another is given."""
    return _fresh("new_full", self, size, fill_value, dtype, device, requires_grad)


def _fresh(name: str, like: Variable, size: Any, value: Any, dtype: Any, device: Any, requires_grad: bool) -> Any:
    parse_place(name, device)
    made = OPS["full"](size, value, like.dtype if dtype is None else dtype_name(name, dtype))
    made.stop_gradient = not requires_grad
    return made


def _new(name: str, value: int, what: str) -> Callable[..., Any]:
    def make(
        self: Variable, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
    ) -> Any:
        given = size[0] if len(size) == 1 and not isinstance(size[0], int) else list(size)
        return _fresh(name, self, given, value, dtype, device, requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A fresh Variable of {what}, in this one's dtype unless another is given."
    return make


def _never(name: str, what: str) -> Callable[[Variable], bool]:
    def answer(self: Variable) -> bool:
        return False

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = f"False: a Variable is not {what}."
    return answer


def gradient(self: Variable) -> Any:
    """Raises: gradients of a Program are Variables of their own."""
    raise self.unknown("holds no gradient", "fetch what paddle.static.gradients(targets, inputs) gives")


def attr(self: Variable, name: str) -> Any:
    """What it has under this name: ``stop_gradient``, ``persistable``, ``trainable``, ``need_clip`` ...

    Raises:
        ArgumentError: it has nothing of this name.
    """
    if name not in attr_names(self):
        raise ArgumentError(message(f"{self.name} has no attribute {name!r}", f"it has {', '.join(attr_names(self))}"))
    return getattr(self, name)


def attr_names(self: Variable) -> list[str]:
    """The names that ``attr`` takes."""
    found = ("stop_gradient", "persistable", "trainable", "need_clip", "is_distributed", "optimize_attr", "regularizer")
    return [name for name in found if hasattr(self, name)]


def _refusing(name: str, why: str, fix: str) -> Callable[..., Any]:
    def method(self: Variable, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(message(f"{self.name}.{name}()", why, fix))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Raises UnsupportedError: {why}."
    return method


_REFUSED = {
    "pop": ("it is no tensor array", "use paddle.tensor.array_read"), "values": ("it is not sparse", "use the Variable itself"),
    "indices": ("it is not sparse", "use paddle.nonzero"), "to_dense": ("it is dense", "use the Variable itself"),
    "create_parameter": ("a parameter is a Variable of its own", "use paddle.static.create_parameter"),
    "set_": ("a Program's Variables have no memory that could be replaced", "use set_value, or a new Variable"),
    "resize_": ("a Program's Variables have no memory that could grow", "use reshape, or a new Variable"),
}  # fmt: skip

_NEVER = {
    "is_dist": "spread over processes", "is_selected_row_type": "a set of rows", "is_dense_tensor_array_type": "a tensor array",
    "is_sparse_coo_tensor_type": "sparse in coordinate form", "is_sparse_csr_tensor_type": "sparse in row form",
}  # fmt: skip


def install_variable_methods() -> None:
    """Attach them to Variable; what needs no Program, to every Value, for functions that are expanded."""
    for function in (detach, cpu, contiguous, element_size, is_contiguous, is_same_shape, ndimension, write_to):
        setattr(Value, function.__name__, function)
    plain: Any = Value
    plain.to, plain.dim = _to, ndimension
    plain.size = property(_size, doc=_size.__doc__)
    plain.T = property(lambda self: OPS["transpose"](self, list(range(self.ndim))[::-1]), doc="With axes in reversed order.")
    plain.mT = property(_matrix_transposed, doc="With the last two axes swapped.")
    plain.itemsize = property(element_size, doc=element_size.__doc__)
    for method in (
        get_device, clear_gradient, apply, set_value, get_value, copy_, fill_, zero_, requires_grad_, append, backward, register_hook,
        get_defining_op, set_shape, gradient, attr, attr_names, numel, *(_refusing(name, *told) for name, told in _REFUSED.items()), to_string, cuda, new_full,
        _new("new_zeros", 0, "zeros"), _new("new_ones", 1, "ones"), _new("new_empty", 0, "any values"),
    ):  # fmt: skip
        setattr(Variable, method.__name__, method)  # type: ignore[attr-defined]
    made: Any = Variable
    made.clear_grad = clear_gradient
    made.place = property(lambda self: CPU, doc="Where Programs run.")
    made.device = property(lambda self: Device(CPU.kind), doc="Where Programs run, as a string.")
    made.requires_grad = property(lambda self: not self.stop_gradient, _set_requires_grad, doc="Whether gradients flow to it.")
    made.type = property(lambda self: VarType.DENSE_TENSOR, doc="What kind of variable it is.")
    made.block = property(lambda self: self.recorder.root.program.global_block(), doc="The outermost block of its Program.")
    made.is_parameter = property(lambda self: hasattr(self, "trainable"), doc="Whether it is a trained parameter.")
    made.is_leaf = property(lambda self: self.op is None, doc="Whether no statement makes it.")
    made.data = property(detach, doc=detach.__doc__)
    made.grad_name = property(lambda self: f"{self.name}@GRAD", doc="What its gradient is called.")
    made.lod_level = property(lambda self: 0, doc="0: sizes say where sequences end.")
    for name, what in _NEVER.items():
        setattr(Variable, name, _never(name, what))
    made.is_dense_tensor_type = lambda self: True
    for name in ("process_mesh", "placements", "dist_attr"):
        setattr(Variable, name, property(lambda self: None, doc="None: it is not spread over processes."))
