"""Positions of the entries of a tensor that are not zero: two natives, between which the size of the result becomes known."""

from __future__ import annotations

import functools
from typing import Any

from .plan_writer import PlanWriter


def nonzero_positions(x: Any) -> Any:
    """int64 [count, rank]: where the entries of the tensor x are not zero, in row-major order."""
    number = int(_plan_of("nonzero_count", x.layout, (1,)).run([x])[0].numpy_view()[0])
    return _plan_of("nonzero_fill", x.layout, (number, x.ndim)).run([x])[0]


@functools.lru_cache(maxsize=256)
def _plan_of(native: str, layout: Any, shape: tuple[int, ...]) -> Any:
    writer = PlanWriter([layout])
    out = writer.allocate("int64", shape)
    writer.native(native, [writer.input_place(0)], [out], {})
    writer.output(out)
    return writer.finish()
