"""Static equals eager: every operator with samples as a statement of a Program, with known and unknown sizes, its gradients, and interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.test_definitions import OPERATORS, cases
from ops.test_eager import RUNNABLE, TOLERANCE

import sampan
from sampan import static
from sampan.base import dtypes, nest
from sampan.tensor.build import OPS
from sampan.tensor.variable import Variable

DTYPES = ("float32", "int64", "bool", "complex64")


def first_case(name: str) -> tuple[Any, Any]:
    """The arguments of the operator's first sample, in the first dtype that it takes."""
    return next(iter(cases(OPERATORS[name], DTYPES)))[2:4]


def at_once(name: str, args: Any, keywords: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """The eager results as arrays, the gradients of weighted results, and the weights."""
    tensors: list[Any] = []

    def lift(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        made = sampan.to_tensor(x)
        made.stop_gradient = not dtypes.is_differentiable(made.dtype.name)
        tensors.append(made)
        return made

    args, keywords = nest.map_structure(lift, [args, keywords])
    results = [r for r in nest.flatten(OPS[name](*args, **keywords)) if r is not None]
    rng = np.random.default_rng(5)
    weights = [rng.normal(size=r.shape).astype(r.numpy().dtype) if not r.stop_gradient else None for r in results]
    wanted = [t for t in tensors if not t.stop_gradient]
    pairs = [(r, sampan.to_tensor(w)) for r, w in zip(results, weights, strict=True) if w is not None]
    found = [None] * len(wanted)
    if pairs and wanted and "nograd" not in OPERATORS[name].tests:
        found = sampan.grad([r for r, _ in pairs], wanted, [w for _, w in pairs], allow_unused=True)
    gradients = [np.zeros(t.shape, t.numpy().dtype) if g is None else g.numpy() for g, t in zip(found, wanted, strict=True)]
    return [r.numpy() for r in results], gradients, weights


def recorded(name: str, args: Any, keywords: Any, weights: list[Any], unknown: bool) -> tuple[list[Any], list[Any]]:
    """The same by a Program; ``unknown``: with -1 for the first size of the operands that share it."""
    arrays = [a for a in nest.flatten([args, keywords]) if isinstance(a, np.ndarray)]
    rank = max((a.ndim for a in arrays), default=0)
    rows = next((a.shape[0] for a in arrays if a.ndim == rank and rank), None)
    sampan.enable_static()
    try:
        with static.program_guard(static.Program(), static.Program()):
            feed: dict[str, Any] = {}

            def declare(x: Any) -> Any:
                if not isinstance(x, np.ndarray):
                    return x
                varies = unknown and x.ndim == rank and rank > 0 and x.shape[0] == rows
                made = static.data(f"x{len(feed)}", [None, *x.shape[1:]] if varies else list(x.shape), x.dtype.name)
                made.stop_gradient = not dtypes.is_differentiable(x.dtype.name)
                feed[made.name] = x
                return made

            args, keywords = nest.map_structure(declare, [args, keywords])
            results = [v for v in nest.flatten(OPS[name](*args, **keywords)) if isinstance(v, Variable)]
            wanted = [v for v in nest.flatten([args, keywords]) if isinstance(v, Variable) and not v.stop_gradient]
            roots = [(v, w) for v, w in zip(results, weights, strict=True) if w is not None]
            gradients: list[Any] = [None] * len(wanted)
            if roots and wanted and "nograd" not in OPERATORS[name].tests:
                given = [sampan.assign(w) for _, w in roots]
                gradients = static.gradients([v for v, _ in roots], wanted, given)
            outs = static.Executor().run(feed=feed, fetch_list=[*results, *(g for g in gradients if g is not None)])
            rest = iter(outs[len(results) :])
            return outs[: len(results)], [np.zeros(1) if g is None else next(rest) for g in gradients]
    finally:
        sampan.disable_static()


def check(name: str, got: tuple[list[Any], list[Any]], wanted: tuple[list[Any], list[Any], list[Any]]) -> None:
    for kind, found, expected in (("result", got[0], wanted[0]), ("gradient", got[1], wanted[1])):
        assert len(found) == len(expected)
        for k, (a, b) in enumerate(zip(found, expected, strict=True)):
            if kind == "result":
                assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{name}: result {k}"
            limit = TOLERANCE.get(b.dtype.name, 0.0) * OPERATORS[name].tolerance
            wide = np.complex128 if b.dtype.kind == "c" else np.float64 if limit else b.dtype
            np.testing.assert_allclose(
                np.broadcast_to(a, b.shape).astype(wide), b.astype(wide), rtol=limit, atol=limit, err_msg=f"{name}: {kind} {k}",
                equal_nan=True,
            )  # fmt: skip


@pytest.mark.parametrize("name", RUNNABLE)
def test_programs_compute_what_eager_mode_computes(name: str) -> None:
    args, keywords = first_case(name)
    wanted = at_once(name, args, keywords)
    check(name, recorded(name, args, keywords, wanted[2], False), wanted)


@pytest.mark.parametrize("name", RUNNABLE)
def test_unknown_sizes_change_nothing(name: str) -> None:
    args, keywords = first_case(name)
    wanted = at_once(name, args, keywords)
    try:
        found = recorded(name, args, keywords, wanted[2], True)
    except ValueError as refused:  # the operator needs that size: two operands must agree in it, or there are as many results
        if "-1" not in str(refused) and "size" not in str(refused):
            raise
        return
    check(name, found, wanted)


@pytest.mark.parametrize("name", RUNNABLE[::9])
def test_interpreted_programs_compute_the_same(name: str) -> None:
    args, keywords = first_case(name)
    wanted = at_once(name, args, keywords)
    sampan.set_flags({"FLAGS_interpret": True})
    try:
        check(name, recorded(name, args, keywords, wanted[2], False), wanted)
    finally:
        sampan.set_flags({"FLAGS_interpret": False})


def test_most_operators_take_unknown_sizes() -> None:
    """The refusals above are exceptions: of every seventh operator, seven in eight run."""
    names, refused = RUNNABLE[::7], []
    for name in names:
        args, keywords = first_case(name)
        try:
            recorded(name, args, keywords, at_once(name, args, keywords)[2], True)
        except ValueError:
            refused.append(name)
    assert len(refused) < len(names) / 8, refused
