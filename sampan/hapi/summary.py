"""``summary``: a table of a network's layers, their shapes and parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base import nest
from ..base.dtypes import numpy_dtype
from ..base.errors import ArgumentError, ArgumentTypeError, describe, message
from ..framework.arrays import is_tensor
from ..nn import GRU, LSTM, LayerList, Sequential, SimpleRNN
from ..tensor import autograd, to_tensor

_BYTES_OF_A_NUMBER = 4
_MIB = 1024.0**2


def summary(net: Any, input_size: Any = None, dtypes: Any = None, input: Any = None) -> dict[str, int]:
    """Run a network once on an input of the given size, and print a table of its layers.

    Args:
        net: the network.
        input_size: the input's shape (with the batch; None and -1 count as 1), an object with ``shape`` and ``dtype``
            (``InputSpec``), or a list of these.
        dtypes: the inputs' types; float32 when it is None.
        input: a tensor, or a list or dict of tensors, in place of ``input_size``.

    Returns:
        ``total_params`` and ``trainable_params``.

    Raises:
        ArgumentError: neither ``input_size`` nor ``input``, or a size that is no shape.
    """
    if input_size is None and input is None:
        raise ArgumentError(
            message(
                "summary(): neither input_size nor input", "the network is run once to see its shapes", "pass input_size=(1, ...)"
            )
        )
    inputs = _inputs(input_size, dtypes) if input is None else [input] if isinstance(input, Mapping) else input
    rows = _rows(net, inputs)
    table, result = _table(rows, sum(math.prod(t.shape) for t in nest.flatten(inputs) if is_tensor(t)))
    print(table)
    return result


def _inputs(input_size: Any, dtypes: Any) -> list[Any]:
    is_one = (
        hasattr(input_size, "shape") or isinstance(input_size, int) or all(isinstance(n, (int, type(None))) for n in input_size)
    )
    sizes = [input_size] if is_one else list(input_size)
    if dtypes is None or isinstance(dtypes, str) or not isinstance(dtypes, (list, tuple)):
        dtypes = [dtypes] * len(sizes)
    return [_input(size, dtype) for size, dtype in zip(sizes, dtypes, strict=True)]


def _input(size: Any, dtype: Any) -> Any:
    dtype = dtype or getattr(size, "dtype", None) or "float32"
    shape = [size] if isinstance(size, int) else list(getattr(size, "shape", size))
    if any(not isinstance(n, (int, type(None))) or (n is not None and n < -1) or n == 0 for n in shape):
        raise ArgumentError(
            message(f"summary(): input_size holds {shape}", "sizes must be positive ints; None and -1 stand for the batch")
        )
    filled = [1 if n in (None, -1) else n for n in shape]
    return to_tensor(np.ones(filled, numpy_dtype(str(getattr(dtype, "name", dtype)).rpartition(".")[2])))


def shapes_of(value: Any) -> Any:
    """The shapes of the tensors in a value, nested like it; None stands for arguments that are None."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [shapes_of(v) for v in value if v is None or is_tensor(v) or isinstance(v, (list, tuple, Mapping))]
    return None if value is None else list(value.shape) if is_tensor(value) else []


def run_with_hooks(net: Any, inputs: Any, hook: Any, layers: Sequence[Any]) -> None:
    """Run the network on the inputs in evaluation mode, without gradients, with a hook after each of the layers."""
    if not callable(getattr(net, "sublayers", None)):
        raise ArgumentTypeError(message(f"net is {describe(net)}", "it must be a Layer"))
    modes = [(layer, layer.training) for layer in net.sublayers(include_self=True)]
    handles = [layer.register_forward_post_hook(hook) for layer in layers]
    try:
        net.eval()
        with autograd.no_grad():
            net(*inputs) if isinstance(inputs, (list, tuple)) else net(inputs)
    finally:
        for handle in handles:
            handle.remove()
        for layer, mode in modes:
            layer.training = mode


def _rows(net: Any, inputs: Any) -> list[dict[str, Any]]:
    rows: dict[Any, dict[str, Any]] = {}
    children = net.sublayers()
    recurrent = [
        layer for layer in children if isinstance(layer, (SimpleRNN, LSTM, GRU))
    ]  # lists of layers, and rows of their own
    inner = {id(child) for layer in recurrent for child in layer.sublayers()}
    layers = [
        layer
        for layer in children
        if id(layer) not in inner and (layer in recurrent or not isinstance(layer, (Sequential, LayerList)))
    ]

    def note(layer: Any, given: Any, result: Any) -> None:
        number = str(layer.full_name()).rpartition("_")[2]
        name = f"{type(layer).__name__}-{int(number) + 1 if number.isdigit() else len(rows) + 1}"
        own = list(layer.parameters(include_sublayers=not layer._sub_layers or _is_closed(layer, rows)))
        kept = list(layer.buffers(include_sublayers=False))
        rows[layer] = {  # a layer that is called again stays in its place, with the shapes of the last call
            "name": name,
            "input": shapes_of(given),
            "output": shapes_of(result),
            "params": sum(math.prod(p.shape) for p in [*own, *kept]),
            "trainable": sum(math.prod(p.shape) for p in own if not p.stop_gradient),
        }

    run_with_hooks(net, inputs, note, layers or [net])
    return list(rows.values())


def _is_closed(layer: Any, rows: Mapping[Any, Any]) -> bool:
    """Whether none of the layer's own layers was called by itself, as in recurrent layers, which compute all at once."""
    return not any(child in rows for child in layer.sublayers())


def _table(rows: list[dict[str, Any]], input_numbers: int) -> tuple[str, dict[str, int]]:
    cells = [(row["name"], str(row["input"]), str(row["output"]), f"{row['params']:,}") for row in rows]
    widths = [max([least, *(len(cell[i]) for cell in cells)]) for i, least in enumerate((15, 20, 20, 15))]
    rule = sum(widths) + 5

    def line(*parts: str) -> str:
        return " ".join(f"{part:^{width}}" for part, width in zip(parts, widths, strict=True))

    total = sum(row["params"] for row in rows)
    trainable = sum(row["trainable"] for row in rows)
    passed = sum(_numbers(row["output"]) for row in rows) * 2 * _BYTES_OF_A_NUMBER / _MIB
    entered = abs(input_numbers * _BYTES_OF_A_NUMBER / _MIB)
    held = total * _BYTES_OF_A_NUMBER / _MIB
    lines = ["-" * rule, line("Layer (type)", "Input Shape", "Output Shape", "Param #"), "=" * rule]
    lines += [line(*cell) for cell in cells]
    lines += [
        "=" * rule,
        f"Total params: {total:,}",
        f"Trainable params: {trainable:,}",
        f"Non-trainable params: {total - trainable:,}",
    ]
    lines += [
        "-" * rule,
        f"Input size (MB): {entered:.2f}",
        f"Forward/backward pass size (MB): {passed:.2f}",
        f"Params size (MB): {held:.2f}",
    ]
    lines += [f"Estimated Total Size (MB): {entered + passed + held:.2f}", "-" * rule, ""]
    return "\n".join(lines), {"total_params": np.int64(total), "trainable_params": np.int64(trainable)}  # type: ignore[dict-item]


def _numbers(shape: Any) -> int:
    if shape is None:
        return 0
    if any(isinstance(n, (list, type(None))) for n in shape):
        return sum(map(_numbers, shape))
    return math.prod(shape)
