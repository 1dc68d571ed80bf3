"""Compiles small Programs and compares them with the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sampan import _rt
from sampan.base import dtypes, flags
from sampan.codegen.compile import compile_program
from sampan.ir import Builder, Program, interpreter
from sampan.ops.catalog import TABLE

Array = np.ndarray[Any, Any]

#: Relative and absolute tolerance by dtype; sums may be added in another order.
TOLERANCES = {
    "float16": (4e-3, 4e-3),
    "bfloat16": (3e-2, 3e-2),
    "float32": (3e-5, 3e-5),
    "complex64": (3e-5, 3e-5),
    "float64": (1e-10, 1e-10),
    "complex128": (1e-10, 1e-10),
}


def build(function: Callable[..., Any], *arrays: Array) -> Program:
    """The Program of a function over Values like these arrays."""
    builder = Builder(TABLE, "case")
    with builder.active():
        result = function(*(builder.argument(a.dtype.name, a.shape) for a in arrays))
    return builder.finish(*(result if isinstance(result, (tuple, list)) else (result,)))


def to_tensor(array: Array) -> Any:
    """A tensor with the array's own strides, over memory that nothing else sees."""
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    fresh = base.copy()
    start = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    moved = (
        np.ndarray(array.shape, array.dtype, fresh.reshape(-1).view(np.uint8), start, array.strides)
        if fresh.size
        else array.copy()
    )
    return _rt.from_numpy(moved)


def run_compiled(program: Program, arrays: list[Array], **options: Any) -> tuple[list[Array], Any, list[Any]]:
    """The outputs, the Plan, and the input tensors after the run."""
    tensors = [to_tensor(a) for a in arrays]
    flags.set_flags({"verify_ir": True})
    plan = compile_program(program, [t.layout for t in tensors], **options)
    return [t.numpy_view() for t in plan.run(tensors)], plan, tensors


def assert_same(got: Array, wanted: Array, scale: float = 1.0) -> None:
    """Equal dtype and shape, and values within the dtype's tolerance."""
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    name = wanted.dtype.name
    if name not in TOLERANCES:
        np.testing.assert_array_equal(got, wanted)
        return
    rtol, atol = (t * scale for t in TOLERANCES[name])
    wide = "complex128" if dtypes.is_complex(name) else "float64"
    np.testing.assert_allclose(got.astype(wide), wanted.astype(wide), rtol=rtol, atol=atol)


def check(function: Callable[..., Any], *arrays: Array, scale: float = 1.0, **options: Any) -> Any:
    """The Plan of the function's Program, whose outputs were found equal to the interpreter's."""
    program = build(function, *arrays)
    wanted = interpreter.run(program, arrays, TABLE)
    got, plan, _ = run_compiled(program, list(arrays), **options)
    for g, w in zip(got, wanted, strict=True):
        assert_same(g, w, scale)
    return plan
