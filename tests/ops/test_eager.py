"""Every operator with samples through eager tensors: compiled results and gradients against the interpreter's, on dense and strided operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.test_definitions import NAMES, OPERATORS, arrays_of, cases, evaluate

import sampan
from sampan.autodiff.partition import partition
from sampan.base import dtypes, nest
from sampan.ir import interpreter
from sampan.ops import TABLE
from sampan.tensor.build import OPS

DTYPES = ("float32", "bfloat16", "int64", "bool", "complex64")
TOLERANCE = {"float32": 2e-5, "complex64": 5e-5, "float64": 1e-9, "complex128": 1e-9, "float16": 1e-2, "bfloat16": 8e-2}


def tensor(array: np.ndarray[Any, Any], dense: bool = True) -> Any:
    """The array as a tensor, or as every second element of a larger one."""
    if dense or not array.ndim:
        return sampan.to_tensor(array)
    return sampan.to_tensor(np.repeat(array, 2, -1))[..., ::2]


def call(name: str, args: Any, keywords: Any, dense: bool, tracked: bool) -> tuple[list[Any], list[Any]]:
    """The results, and the tensors made of the arrays, in order."""
    tensors: list[Any] = []

    def lift(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        made = tensor(x, dense)
        made.stop_gradient = not (tracked and dtypes.is_differentiable(x.dtype.name))
        tensors.append(made)
        return made

    args, keywords = nest.map_structure(lift, [args, keywords])
    results = OPS[name](*args, **keywords)
    return [r for r in nest.flatten(results) if r is not None], tensors


def compare(got: list[Any], wanted: list[Any], tolerance: float, where: str) -> None:
    assert len(got) == len(wanted), f"{where}: {len(got)} results, the interpreter has {len(wanted)}"
    for tensor_result, w in zip(got, wanted, strict=True):
        g = tensor_result.numpy_view()
        assert tensor_result.dtype.name == w.dtype.name, f"{where}: {tensor_result.dtype.name}, the interpreter has {w.dtype}"
        assert g.shape == w.shape, f"{where}: shape {g.shape}, the interpreter has {w.shape}"
        limit = TOLERANCE.get(w.dtype.name, 0.0) * tolerance
        wide = np.complex128 if w.dtype.kind == "c" else np.float64 if limit else w.dtype
        np.testing.assert_allclose(g.astype(wide), w.astype(wide), rtol=limit, atol=limit, err_msg=where, equal_nan=True)


RUNNABLE = [n for n in NAMES if not any(q.name == "key" for q in OPERATORS[n].parameters) and not OPERATORS[n].updates]


@pytest.mark.parametrize("name", RUNNABLE)
def test_eager_results_equal_the_interpreter(name: str) -> None:
    definition = OPERATORS[name]
    for where, dtype, args, keywords, program in cases(definition, DTYPES):
        if dtype.startswith("complex") and not all(np.isfinite(a).all() for a in arrays_of([args, keywords])):
            continue
        wanted = evaluate(program, arrays_of([args, keywords]))
        for dense in (True, False) if dtype == "float32" else (True,):
            got, _ = call(name, args, keywords, dense, False)
            compare(got, wanted, definition.tolerance, f"{where}{'' if dense else ' strided'}")


@pytest.mark.parametrize("name", [n for n in RUNNABLE if "nograd" not in OPERATORS[n].tests])
def test_eager_gradients_equal_the_interpreter(name: str) -> None:
    definition = OPERATORS[name]
    for where, _, args, keywords, program in cases(definition, ("float64",)):
        arrays = arrays_of([args, keywords])
        wanted = [k for k, a in enumerate(arrays) if dtypes.is_differentiable(a.dtype.name)]
        present = [dtypes.is_differentiable(v.dtype) for v in program.outputs]
        if not wanted or not any(present) or not all(np.isfinite(a).all() for a in arrays):
            continue
        rng = np.random.default_rng(5)
        cut = partition(program, wanted)
        forward = interpreter.run(cut.forward, arrays, TABLE)
        weights = [rng.normal(size=o.shape).astype(o.dtype) if p else None for o, p in zip(forward, present, strict=False)]
        backward, targets = cut.backward([*present, *(False for _ in range(len(forward) - len(present)))])
        saved = [arrays[k] if kind == "input" else forward[k] for kind, k in cut.saved]
        expected = dict(
            zip(targets, interpreter.run(backward, saved + [w for w in weights if w is not None], TABLE), strict=True)
        )
        results, tensors = call(name, args, keywords, True, True)
        roots = [(r, w) for r, w in zip(results, weights, strict=True) if w is not None and not r.stop_gradient]
        if not roots:
            assert not expected or all(not np.any(v) for v in expected.values()), f"{where}: no gradient was recorded"
            continue
        sampan.autograd.backward([r for r, _ in roots], [sampan.to_tensor(w) for _, w in roots])
        for k in wanted:
            gradient = tensors[k].grad
            value = expected.get(k, np.zeros(arrays[k].shape))
            found = np.zeros(arrays[k].shape) if gradient is None else gradient.numpy()
            np.testing.assert_allclose(found, value, rtol=1e-7, atol=1e-8, err_msg=f"{where}: gradient of operand {k}")
