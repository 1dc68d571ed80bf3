"""Floating-point operations of recorded calls, from what they were given: matrix products and convolutions, a multiplication and an addition each."""

from __future__ import annotations

import math
import re

_TENSOR = re.compile(r"(\w+) \w+\[([\d, ]*)\]")
_SETTING = re.compile(r"(\w+)=(\[[^\]]*\]|\([^)]*\)|[^,]+)")


def flops_of(name: str, operands: str) -> int:
    """The operations of a call of the operator; 0 for those that are not counted.

    Args:
        name: the operator.
        operands: what the call was given: ``x float32[4, 8], y float32[8, 16], transpose_y=False``.
    """
    shapes = {name: [int(n) for n in sizes.split(",") if n.strip()] for name, sizes in _TENSOR.findall(operands)}
    settings = dict(_SETTING.findall(operands))
    if name in ("linear", "matmul", "mm", "bmm"):
        return _product(shapes, settings)
    if name in ("conv1d", "conv2d", "conv3d"):
        return _convolution(shapes, settings)
    return 0


def _product(shapes: dict[str, list[int]], settings: dict[str, str]) -> int:
    tensors = list(shapes.values())
    if len(tensors) < 2 or not tensors[0] or not tensors[1]:
        return 0
    left, right = list(tensors[0]), list(tensors[1])
    if settings.get("transpose_x") == "True" and len(left) > 1:
        left[-1], left[-2] = left[-2], left[-1]
    if settings.get("transpose_y") == "True" and len(right) > 1:
        right[-1], right[-2] = right[-2], right[-1]
    rows = left[-2] if len(left) > 1 else 1
    columns = right[-1] if len(right) > 1 else 1
    batch = max(math.prod(left[:-2]), math.prod(right[:-2]))
    return 2 * batch * rows * left[-1] * columns


def _convolution(shapes: dict[str, list[int]], settings: dict[str, str]) -> int:
    if "x" not in shapes or "weight" not in shapes or "'" in settings.get("padding", ""):
        return 0
    weight, image = shapes["weight"], list(shapes["x"])
    axes = len(weight) - 2
    if settings.get("data_format", "").strip("'").endswith("C"):
        image = [image[0], image[-1], *image[1:-1]]
    strides, dilations, padding = (_numbers(settings.get(k, "")) for k in ("stride", "dilation", "padding"))
    total = 2 * image[0] * math.prod(weight)
    for k in range(axes):
        pads = padding[2 * k : 2 * k + 2] if len(padding) == 2 * axes else [_of_axis(padding, k, 0)] * 2
        reach = _of_axis(dilations, k, 1) * (weight[2 + k] - 1) + 1
        total *= (image[2 + k] + sum(pads) - reach) // _of_axis(strides, k, 1) + 1
    return total


def _numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"-?\d+", text)]


def _of_axis(numbers: list[int], axis: int, default: int) -> int:
    return numbers[axis] if axis < len(numbers) else numbers[0] if numbers else default
