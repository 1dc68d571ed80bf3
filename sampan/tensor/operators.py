"""Python's operators on tensors: which operator serves which."""

from __future__ import annotations

from typing import Any

from .. import _rt
from ..ir.program import Value
from ..ops.arguments import dtype_name
from .autograd import tensor_backward
from .build import OPS

#: The Python operator -> the operator's internal name.
OPERATOR_NAMES = {
    "__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__truediv__": "divide", "__floordiv__": "floor_divide", "__mod__": "remainder",
    "__pow__": "pow", "__matmul__": "matmul", "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift", "__neg__": "neg", "__abs__": "abs", "__invert__": "bitwise_not",
    "__eq__": "equal", "__ne__": "not_equal", "__lt__": "less_than", "__le__": "less_equal", "__gt__": "greater_than", "__ge__": "greater_equal",
}  # fmt: skip


def convert_(self: Any, name: str) -> Any:
    """Change the tensor itself to another dtype; its history is lost. Gives the tensor."""
    _rt.rebind(self, _rt.copy(self, dtype_name("convert_", name)))
    return self


def install_operators() -> None:
    """Give the runtime and symbolic Values their operators."""
    for python_name, name in OPERATOR_NAMES.items():
        _rt.set_operator(python_name, OPS[name])
        Value.operators[python_name] = OPS[name]
    _rt.Tensor.__pos__ = lambda self: OPS["positive"](self)  # the runtime has no slot for it
    Value.operators["__pos__"] = OPS["positive"]
    _rt.set_symbolic_type(Value)
    _rt.set_add_op(OPS["add"])
    _rt.Tensor.backward = tensor_backward
    _rt.Tensor.convert_ = convert_
