"""Host instructions: a primitive's NumPy meaning over a Plan's tensors, for what no kernel and no native does, and for the
interpreter's mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.program import Op
from ..ops.catalog import TABLE

HostFunction = Callable[[list[Any], list[Any]], None]


def host_function(op: Op) -> HostFunction:
    """A function of (input tensors, output tensors) that computes the Op by NumPy and writes the outputs."""

    def run(inputs: list[Any], outputs: list[Any]) -> None:
        results = TABLE.evaluate(op, [t.numpy_view() for t in inputs])
        for target, result in zip(outputs, results, strict=True):
            target.numpy_view()[...] = result

    run.__name__ = op.name
    return run


def copy_elements(inputs: list[Any], outputs: list[Any]) -> None:
    """Write the input's elements to the output."""
    outputs[0].numpy_view()[...] = inputs[0].numpy_view()
