"""One native primitive on NumPy arrays, through a Plan of one instruction."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from sampan import _rt

Strides = tuple[int, ...]


def layout_of(array: np.ndarray) -> Any:
    """The array's layout as the runtime sees it."""
    return _rt.from_numpy(array).layout


def plan_of(name: str, inputs: list[np.ndarray], outputs: list[np.ndarray], **attributes: Any) -> Any:
    """A Plan that runs the native once; outputs are arrays only for their dtype, shape and strides."""
    in_layouts, out_layouts = [layout_of(a) for a in inputs], [layout_of(a) for a in outputs]
    operands = [(slot, 0) for slot in range(len(inputs) + len(outputs))]
    return _rt.Plan.build(
        input_layouts=in_layouts,
        constants=[],
        slots=[(a.size * a.itemsize, -1) for a in outputs],
        arena_bytes=0,
        instructions=[("native", name, operands, in_layouts, out_layouts, attributes)],
        outputs=[(len(inputs) + k, 0, layout) for k, layout in enumerate(out_layouts)],
    )


def run_native(name: str, inputs: list[np.ndarray], outputs: list[np.ndarray], **attributes: Any) -> list[np.ndarray]:
    """What the native writes for these inputs."""
    plan = plan_of(name, inputs, outputs, **attributes)
    return [t.numpy_view() for t in plan.run([_rt.from_numpy(a) for a in inputs])]


def run_in_place(name: str, inputs: list[np.ndarray], target: int, **attributes: Any) -> np.ndarray:
    """The same with input ``target`` as the output too; returns it."""
    tensors = [_rt.from_numpy(a, copy=True) for a in inputs]
    layouts = [t.layout for t in tensors]
    operands = [*((slot, 0) for slot in range(len(inputs))), (target, 0)]
    plan = _rt.Plan.build(
        input_layouts=layouts,
        constants=[],
        slots=[],
        arena_bytes=0,
        instructions=[("native", name, operands, layouts, [layouts[target]], attributes)],
        outputs=[(target, 0, layouts[target])],
    )
    return plan.run(tensors)[0].numpy_view()


def accumulate_native(name: str, inputs: list[np.ndarray], out: np.ndarray, **attributes: Any) -> np.ndarray:
    """What the native leaves in an output that already holds ``out``."""
    tensors = [_rt.from_numpy(a) for a in inputs] + [_rt.from_numpy(out, copy=True)]
    layouts = [t.layout for t in tensors]
    last = len(inputs)
    plan = _rt.Plan.build(
        input_layouts=layouts,
        constants=[],
        slots=[],
        arena_bytes=0,
        instructions=[("native", name, [(slot, 0) for slot in range(last + 1)], layouts[:-1], layouts[-1:], attributes)],
        outputs=[(last, 0, layouts[last])],
    )
    return plan.run(tensors)[0].numpy_view()


def sample(dtype: Any, shape: tuple[int, ...], seed: int = 0, low: int = -8, high: int = 9) -> np.ndarray:
    """Small multiples of a quarter (whole numbers for integers): sums and products of them are exact."""
    rng = np.random.default_rng(seed)
    kind = "f" if dtype == ml_dtypes.bfloat16 else np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    values = np.asarray(rng.integers(0 if kind == "u" else low, high, shape))
    if kind == "c":
        return np.asarray((values + 1j * rng.integers(low, high, shape)) / 4, dtype)
    return np.asarray(values / 4 if kind == "f" else values, dtype)


def channels_last(array: np.ndarray) -> np.ndarray:
    """The same values with axis 1 innermost in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


def spread(array: np.ndarray) -> np.ndarray:
    """The same values with gaps between them."""
    return np.repeat(array, 2, -1)[..., ::2] if array.ndim else array
