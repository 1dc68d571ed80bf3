"""``flops``: how many multiplications (with their additions) a network's layers do, by Paddle's rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import ArgumentTypeError, describe, message
from ..tensor import to_tensor
from .summary import run_with_hooks, shapes_of


def _size(shape: Sequence[int]) -> int:
    return math.prod(shape)


def _convolution(layer: Any, entered: list[int], left: list[int]) -> int:
    kernel = _size(layer.weight.shape[2:])
    per_number = (
        layer.weight.shape[1] * kernel
        if "Transpose" not in type(layer).__name__
        else entered[1] // getattr(layer, "_groups", 1) * kernel
    )
    return _size(left) * (per_number + (layer.bias is not None))


def _linear(layer: Any, entered: list[int], left: list[int]) -> int:
    return int(layer.weight.shape[0]) * _size(left)


def _batch_norm(layer: Any, entered: list[int], left: list[int]) -> int:
    return 2 * _size(entered)


def _one_each(layer: Any, entered: list[int], left: list[int]) -> int:
    return _size(left)


def _adaptive_pool(layer: Any, entered: list[int], left: list[int]) -> int:
    window = _size([a // b for a, b in zip(entered[2:], left[2:], strict=True)])
    return _size(left) * (window + 1)


def _none(layer: Any, entered: list[int], left: list[int]) -> int:
    return 0


# The layers that Paddle counts; all others count as nothing.
_RULES: dict[str, Callable[[Any, list[int], list[int]], int]] = {
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"), _convolution),
    **dict.fromkeys(("BatchNorm", "BatchNorm2D"), _batch_norm),
    **dict.fromkeys(("ReLU", "ReLU6", "Dropout"), _none),
    **dict.fromkeys(("LeakyReLU", "AvgPool1D", "AvgPool2D", "AvgPool3D"), _one_each),
    **dict.fromkeys(("AdaptiveAvgPool1D", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D"), _adaptive_pool),
    "Linear": _linear,
}


def flops(net: Any, input_size: Sequence[int], custom_ops: Mapping[type, Any] | None = None, print_detail: bool = False) -> int:
    """How many multiplications a network does for an input of this size.

    Args:
        net: the network.
        input_size: the input's shape, with the batch.
        custom_ops: for layer classes, functions (layer, inputs, output) that add their count to ``layer.total_ops``.
        print_detail: print a table of the layers.

    Returns:
        The count over all layers without layers of their own.

    Raises:
        ArgumentTypeError: ``net`` is no layer.
    """
    if not callable(getattr(net, "sublayers", None)):
        raise ArgumentTypeError(message(f"flops(): net is {describe(net)}", "it must be a Layer"))
    rows: dict[Any, list[Any]] = {}
    leaves = [layer for layer in net.sublayers(include_self=True) if not layer.sublayers()]

    def note(layer: Any, given: Any, result: Any) -> None:
        entered, left = _first(shapes_of(given)), _first(shapes_of(result))
        custom = (custom_ops or {}).get(type(layer))
        if custom is not None:
            layer.total_ops = 0
            custom(layer, given, result)
            count = int(layer.total_ops)
            del layer.total_ops
        else:
            count = _RULES.get(type(layer).__name__, _none)(layer, entered, left)
        params = sum(_size(p.shape) for p in layer.parameters(include_sublayers=False))
        row = rows.setdefault(layer, [layer.full_name(), entered, left, params, 0])
        row[4] += count

    run_with_hooks(net, [to_tensor(np.ones(tuple(input_size), "float32"))], note, leaves)
    total = sum(row[4] for row in rows.values())
    if print_detail:
        print(_table([[str(cell) for cell in row] for row in rows.values()]))
    print(f"Total Flops: {total}     Total Params: {sum(row[3] for row in rows.values())}")
    return total


def _first(shapes: Any) -> list[int]:
    while shapes and isinstance(shapes[0], list):
        shapes = shapes[0]
    return list(shapes or [])


def _table(rows: list[list[str]]) -> str:
    rows = [["Layer Name", "Input Shape", "Output Shape", "Params", "Flops"], *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = ["|" + "|".join(_centred(cell, width + 2) for cell, width in zip(row, widths, strict=True)) + "|" for row in rows]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def _centred(cell: str, width: int) -> str:
    left = (width - len(cell)) // 2
    return " " * left + cell + " " * (width - left - len(cell))
