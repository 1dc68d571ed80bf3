"""Weights that a Plan owns, in the form that its natives read fastest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import _rt
from ..ir.program import Op
from .natives import Native
from .places import Place

#: Natives that take a packed weight, as their second operand: the name of its packing, and the attribute that says the shape it had.
_PACKINGS = {
    "conv_forward": ("conv", "weight_shape"),
    "conv_backward_data": ("conv", "weight_shape"),
    "matmul": ("matmul", "b_shape"),
}


def has_own_weight(op: Op, native: Native) -> bool:
    """Whether the native takes packed weights and the Op's is known."""
    weight = op.inputs[1] if native.name in _PACKINGS else None
    return (
        weight is not None
        and weight is not op.inputs[0]
        and weight.op is not None
        and weight.op.name == "literal"
        and (native.name != "matmul" or weight.ndim == 2)
    )


def packed_weight(
    op: Op, native: Native, operand: Place, output: Place, attributes: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]] | None:
    """The packed form of the Op's own weight, a tensor, and the attributes that tell the native of it; None where packing does not pay."""
    prefix, shape_name = _PACKINGS[native.name]
    weight = op.inputs[1]
    if weight.op is None or (prefix == "matmul" and not (_is_row_major(operand) and _is_row_major(output))):
        return None
    tensor = _rt.from_numpy(weight.op.attributes["value"].array, True)
    given = dict(attributes)
    if prefix == "conv":
        given |= {
            "x_shape": list(operand.shape), "x_strides": list(operand.strides), "out_shape": list(output.shape),
            "out_strides": list(output.strides), "direction": "forward" if native.name == "conv_forward" else "backward_data",
        }  # fmt: skip
    else:
        given |= {"a_shape": list(operand.shape)}
    size = _run(f"{prefix}_packed_size", tensor, "int64", 1, given).item()
    if not size:
        return None
    return _run(f"{prefix}_pack_weights", tensor, "uint8", size, given), {"packed": 1, shape_name: list(weight.shape)}


def _is_row_major(place: Place) -> bool:
    step = 1
    for n, stride in zip(reversed(place.shape), reversed(place.strides), strict=True):
        if n != 1 and stride != step:
            return False
        step *= n
    return True


def _run(name: str, tensor: Any, dtype: str, size: int, attributes: dict[str, Any]) -> Any:
    layout = _rt.Layout(dtype, (size,))
    operands = [(0, 0), (1, 0)]
    instruction = ("native", name, operands, [tensor.layout], [layout], attributes)
    plan = _rt.Plan.build([tensor.layout], [], [(size * _rt.dtypes[dtype].itemsize, -1)], 0, [instruction], [(1, 0, layout)])
    return plan.run([tensor])[0]
