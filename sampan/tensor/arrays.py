"""Tensor arrays: lists of tensors in a Program, which loops write and read at places that are known when it runs.

An array is a value like others: a write makes a new one (it copies references, not tensors), so gradients and nested blocks treat it as they treat tensors.
The gradient of an array is an array, with None where an element has none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes
from ..base.errors import ArgumentTypeError, IndexRangeError, ShapeError, message
from ..ir.program import Op
from ..ops.arguments import dtype_name
from ..ops.define import OPERATORS
from .build import OPS
from .location import user_location
from .recording import Recorder, current_recorder
from .replay import DYNAMIC, EFFECT, FUNCTIONS, Operand, RecordedFunction
from .variable import UNKNOWN, Variable


class TensorArray(list[Any]):
    """The elements of an array while a Program runs; None where nothing was written."""

    def __add__(self, other: Any) -> TensorArray:  # type: ignore[override]
        longest = max(len(self), len(other))
        pairs = [(a[k] if k < len(a) else None, b[k] if k < len(b) else None) for a, b in [(self, other)] for k in range(longest)]
        return TensorArray(a if b is None else b if a is None else a + b for a, b in pairs)

    def numpy(self) -> list[Any]:
        """The elements as arrays."""
        return [None if v is None else v.numpy() for v in self]


class ArrayVariable(Variable):
    """A tensor array of a recorded Program. ``element``: what its elements are like, once one was written."""

    is_array = True

    def __init__(self, dtype: str, name: str = "", element: Variable | None = None, stop_gradient: bool = True) -> None:
        super().__init__(dtype, (), name, stop_gradient=stop_gradient)
        self.element = element

    def like(self, name: str = "") -> Variable:
        """A new array of its type."""
        made = ArrayVariable(self.dtype, name or self.name, self.element, self.stop_gradient)
        made.was_constant = self.was_constant
        return made

    def merged(self, other: Any) -> Variable:
        """An array of both types."""
        element = self.element if other.element is None else other.element if self.element is None else None
        if element is None and self.element is not None:
            element = self.element.merged(other.element)
        return ArrayVariable(self.dtype, "", element, self.stop_gradient and other.stop_gradient)

    @property
    def loop_kind(self) -> Any:
        """What must stay from pass to pass of a loop."""
        return self.stop_gradient, None if self.element is None else self.element.sizes

    def append(self, var: Any) -> None:
        """Write a new last element."""
        array_write(var, array_length(self), self)

    def __repr__(self) -> str:
        return f"Variable({self.name}: an array of {self.dtype}, stop_gradient={self.stop_gradient})"


def _place(index: Any) -> int:
    place = int(index)
    if place < 0:
        raise IndexRangeError(message(f"an array's index is {place}", "it must not be negative"))
    return place


def _write(array: Sequence[Any], index: Any, value: Any) -> list[Any]:
    place = _place(index)
    made = TensorArray(array)
    made.extend([None] * (place + 1 - len(made)))
    made[place] = value
    return [made]


def _read(array: Sequence[Any], index: Any) -> list[Any]:
    place = _place(index)
    if place >= len(array) or array[place] is None:
        raise IndexRangeError(message(f"array_read(): element {place} was not written", f"the array has {len(array)} elements"))
    return [array[place]]


def _pick(array: Sequence[Any], index: Any, like: Any) -> list[Any]:
    place = int(index)
    return [array[place] if place < len(array) and array[place] is not None else OPS["zeros_like"](like)]


def _without(array: Sequence[Any], index: Any) -> list[Any]:
    return _write(array, index, None)


def _cut(array: Sequence[Any], length: Any) -> list[Any]:
    return [TensorArray(list(array)[: _place(length)])]


def _joined(array: Sequence[Any], axis: int, is_stacked: bool) -> list[Any]:
    elements = list(array)
    if not elements or any(v is None for v in elements):
        raise IndexRangeError(message("tensor_array_to_tensor(): an element was not written", f"the array has {len(elements)}"))
    sizes = [1 if is_stacked else v.shape[axis] for v in elements]
    return [OPS["stack" if is_stacked else "concat"](elements, axis), _rt.from_numpy(np.array(sizes, "int32"), False)]


def _split(array: Sequence[Any], axis: int, is_stacked: bool, gradient: Any) -> list[Any]:
    if is_stacked:
        return [TensorArray(OPS["unbind"](gradient, axis))]
    return [TensorArray(OPS["split"](gradient, [v.shape[axis] for v in array], axis))]


def append_statement(
    recorder: Recorder, name: str, operands: dict[str, Any], kinds: Sequence[Variable], **attributes: Any
) -> list[Any]:
    """An Op on arrays and tensors, that runs at once."""
    inputs = list(operands.values())
    attributes = {key: Operand(k) for k, key in enumerate(operands)} | attributes
    attributes[DYNAMIC] = 0
    return recorder.append_results(Op(name, tuple(inputs), attributes, (), (), user_location(), recorder.role), kinds)


def add_arrays(recorder: Recorder, first: Any, second: Any) -> Any:
    """The sum of two gradients of an array."""
    return append_statement(recorder, "array_sum", {"first": first, "second": second}, [first])[0]


def zero_array(recorder: Recorder, like: Any) -> Any:
    """The gradient of an array that nothing depends on."""
    return append_statement(recorder, "array_create", {}, [like])[0]


def _array(function: str, array: Any) -> Any:
    if not isinstance(array, (list, ArrayVariable)):
        raise ArgumentTypeError(
            message(
                f"{function}(): array is a {type(array).__name__}",
                "it must be a tensor array",
                "make one with create_array(dtype)",
            )
        )
    return array


def _index(function: str, i: Any) -> Any:
    if isinstance(i, (Variable, _rt.Tensor)):
        if any(n not in (1, UNKNOWN) for n in i.shape) or dtypes.kind(getattr(i.dtype, "name", i.dtype)) not in "iu":
            raise ShapeError(message(f"{function}(): i is {i.dtype}{list(i.shape)}", "it must be one integer"))
    elif isinstance(i, bool) or not hasattr(i, "__index__"):
        raise ArgumentTypeError(message(f"{function}(): i is a {type(i).__name__}", "it must be an integer or a tensor of one"))
    return i


def create_array(dtype: Any = "float32", initialized_list: Any = None) -> Any:
    """An empty array of tensors of this dtype, or one of these: a list in eager mode.

    Args:
        dtype: of the elements.
        initialized_list: the first elements.

    Example:
        >>> import sampan as paddle
        >>> array = paddle.tensor.create_array("float32")
        >>> array = paddle.tensor.array_write(paddle.ones([2]), paddle.to_tensor(0), array)
        >>> paddle.tensor.array_length(array), paddle.tensor.array_read(array, paddle.to_tensor(0)).tolist()
        (1, [1.0, 1.0])
    """
    name = dtype_name("create_array", dtype)
    first = [] if initialized_list is None else initialized_list
    if not isinstance(first, (list, tuple)) or not all(isinstance(v, (Variable, _rt.Tensor)) for v in first):
        raise ArgumentTypeError(
            message(f"create_array(): initialized_list is {initialized_list!r}", "it must be a list of tensors")
        )
    recorder = current_recorder()
    if recorder is None:
        return list(first)
    made = new_array(recorder, name)
    for k, value in enumerate(first):
        array_write(value, k, made)
    return made


def array_length(array: Any) -> Any:
    """How many elements the array has: an int64 tensor in a Program, a number in eager mode."""
    recorder = current_recorder()
    if isinstance(_array("array_length", array), list) or recorder is None:
        return len(array)
    return append_statement(recorder, "array_length", {"array": recorder.resolve(array)}, [Variable("int64", ())])[0]


def array_read(array: Any, i: Any) -> Any:
    """The element at place i.

    Raises:
        IndexRangeError: that place was not written.
    """
    index = _index("array_read", i)
    recorder = current_recorder()
    if isinstance(_array("array_read", array), list) or recorder is None:
        return array[int(index)]
    source: Any = recorder.resolve(array)
    if source.element is None:
        raise ArgumentTypeError(
            message(
                f"array_read(): {array.name} has no element yet",
                "what its elements are like is not known",
                "write one before, with array_write",
            )
        )
    kind = source.element.like()
    kind.stop_gradient = source.stop_gradient
    kind.was_constant = False
    return append_statement(recorder, "array_read", {"array": source, "index": recorder.operand(index)}, [kind])[0]


def require_element(array: Any, index: Any) -> None:
    """Record that the array must have this element when the Program comes here."""
    recorder: Any = current_recorder()
    operands = {"array": recorder.resolve(array), "index": recorder.operand(index)}
    append_statement(recorder, "array_read", operands, [stopped(array.element)], **{EFFECT: True})


def _read_backward(recorder: Recorder, op: Op, present: list[int], given: list[Any], targets: list[int]) -> list[Any]:
    return append_statement(recorder, "array_alone", {"index": op.inputs[1], "value": given[0]}, [stopped(op.inputs[0])])


def stopped(kind: Any) -> Any:
    """A Variable like this one, through which no gradient flows."""
    made = kind.like()
    made.stop_gradient = True
    return made


def array_write(x: Any, i: Any, array: Any = None) -> Any:
    """The array after x was written to place i, which it remembers: a new array when none is given.

    Example:
        >>> import sampan as paddle
        >>> len(paddle.tensor.array_write(paddle.ones([2]), paddle.to_tensor(0)))
        1
    """
    if not isinstance(x, (Variable, _rt.Tensor)):
        raise ArgumentTypeError(message(f"array_write(): x is a {type(x).__name__}", "it must be a tensor"))
    index = _index("array_write", i)
    dtype = getattr(x.dtype, "name", x.dtype)
    held = create_array(dtype) if array is None else _array("array_write", array)
    recorder = current_recorder()
    if isinstance(held, list) or recorder is None:
        place = int(index)
        if not 0 <= place <= len(held):
            raise IndexRangeError(
                message(f"array_write(): i={place}", f"the array has {len(held)} elements", "write the next one")
            )
        held[place : place + 1] = [x]
        return held
    if held.dtype != dtype:
        raise ArgumentTypeError(message(f"array_write(): x is {dtype} and the array of {held.dtype}", "they must be equal"))
    recorder.write(held, array_with(recorder, held, index, x))
    return held


def new_array(recorder: Recorder, dtype: str, element: Variable | None = None) -> Any:
    """An empty array. ``element``: what its elements will be like."""
    return append_statement(recorder, "array_create", {}, [ArrayVariable(dtype, "", element)])[0]


def array_with(recorder: Recorder, array: Any, index: Any, x: Any) -> Any:
    """A new array: this one with x at the place."""
    value, source = recorder.operand(x), recorder.resolve(array)
    kind: Any = source.like()
    element = getattr(source, "element", None)
    kind.element = value.like() if element is None else element.merged(value)
    kind.stop_gradient = source.stop_gradient and value.stop_gradient
    operands = {"array": source, "index": recorder.operand(index), "value": value}
    return append_statement(recorder, "array_write", operands, [kind])[0]


def array_cut(recorder: Recorder, array: Any, length: Any) -> Any:
    """A new array: the first elements of this one."""
    source = recorder.resolve(array)
    return append_statement(recorder, "array_cut", {"array": source, "length": recorder.operand(length)}, [source])[0]


def _cut_backward(recorder: Recorder, op: Op, present: list[int], given: list[Any], targets: list[int]) -> list[Any]:
    return [given[0]]


def _write_backward(recorder: Recorder, op: Op, present: list[int], given: list[Any], targets: list[int]) -> list[Any]:
    array, index, value = op.inputs
    gradient, found = given[0], []
    for k in targets:
        if k == 0:
            found += append_statement(recorder, "array_without", {"array": gradient, "index": index}, [stopped(array)])
        else:
            operands = {"array": gradient, "index": index, "like": value}
            found += append_statement(recorder, "array_pick", operands, [stopped(value)])
    return found


def tensor_array_to_tensor(input: Any, axis: int = 1, use_stack: bool = False, name: str | None = None) -> tuple[Any, Any]:
    """(the elements joined along the axis, or stacked along a new one; the size of each along it).

    Raises:
        IndexRangeError: the array is empty, or an element was not written.
    """
    recorder = current_recorder()
    if isinstance(_array("tensor_array_to_tensor", input), list) or recorder is None:
        out, sizes = _joined(input, axis, use_stack)
        return out, sizes
    source: Any = recorder.resolve(input)
    if source.element is None:
        raise ArgumentTypeError(message(f"tensor_array_to_tensor(): {input.name} has no element yet", "write one before"))
    own = list(source.element.sizes)
    if not -len(own) - use_stack <= axis < len(own) + use_stack:
        raise ShapeError(message(f"tensor_array_to_tensor(): axis={axis} for elements of shape {own}", "it must be an axis"))
    if use_stack:
        own.insert(axis % (len(own) + 1), UNKNOWN)
    else:
        own[axis] = UNKNOWN
    kind = Variable(source.dtype, own, stop_gradient=source.stop_gradient)
    kinds = [kind, Variable("int32", (UNKNOWN,))]
    out, sizes = append_statement(recorder, "array_join", {"array": source}, kinds, axis=axis, is_stacked=use_stack)
    return out, sizes


def _join_backward(recorder: Recorder, op: Op, present: list[int], given: list[Any], targets: list[int]) -> list[Any]:
    operands = {"array": op.inputs[0], "gradient": given[0]}
    own = {name: op.attributes[name] for name in ("axis", "is_stacked")}
    return append_statement(recorder, "array_split", operands, [stopped(op.inputs[0])], **own)


def add_gradients(recorder: Recorder, first: Any, second: Any) -> Any:
    """The sum of two gradients of one Variable."""
    return add_arrays(recorder, first, second) if first.is_array else recorder.call(OPERATORS["add"], [first, second, 1])


def zero_gradient(recorder: Recorder, like: Any) -> Any:
    """The gradient of a Variable that nothing depends on."""
    return zero_array(recorder, stopped(like)) if like.is_array else recorder.call(OPERATORS["zeros_like"], [like, None])


#: The statements on arrays: what each does at run time, and what appends its gradient.
_STATEMENTS: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]] = {
    "array_create": (lambda: [TensorArray()], None),
    "array_write": (_write, _write_backward),
    "array_read": (_read, _read_backward),
    "array_length": (lambda array: [_rt.from_numpy(np.array(len(array), "int64"), False)], None),
    "array_pick": (_pick, None),
    "array_without": (_without, None),
    "array_cut": (_cut, _cut_backward),
    "array_alone": (lambda index, value: _write((), index, value), None),
    "array_sum": (lambda first, second: [TensorArray(first) + second], None),
    "array_join": (_joined, _join_backward),
    "array_split": (_split, None),
}
for _name, (_function, _backward) in _STATEMENTS.items():
    FUNCTIONS[_name] = RecordedFunction(_name, _function, inspect.signature(_function), None, _backward)
