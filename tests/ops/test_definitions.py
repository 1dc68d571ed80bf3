"""Tests generated from the definitions:
values, gradients, text form, empty, 0-d and ill-shaped operands of operators with samples.
"""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from typing import Any

import numpy as np
import pytest

from sampan.autodiff.partition import partition
from sampan.base import dtypes, nest
from sampan.base.errors import DTypeError, SampanError
from sampan.ir import interpreter
from sampan.ir.builder import Builder
from sampan.ir.program import Program, Value
from sampan.ir.text import parse_program
from sampan.ir.verify import verify
from sampan.ops import OPERATORS, TABLE, OpDef
from sampan.ops.define import defaults_of
from sampan.ops.samples import Made, Random

#: (relative, absolute) tolerance of a value against its reference.
TOLERANCE = {
    "float64": (1e-9, 1e-10),
    "complex128": (1e-9, 1e-10),
    "float32": (3e-5, 3e-5),
    "complex64": (5e-5, 5e-5),
    "float16": (6e-3, 6e-3),
    "bfloat16": (4e-2, 4e-2),
}
DTYPES = ("float64", "float32", "float16", "bfloat16", "int32", "int64", "uint8", "bool", "complex64", "complex128")
NAMES = sorted(name for name, definition in OPERATORS.items() if definition.samples)


def test_parameters_are_the_signatures():
    for definition in OPERATORS.values():
        signature = inspect.signature(definition.body).parameters
        assert list(defaults_of(definition.body).items()) == [(name, p.default) for name, p in signature.items()], definition.name

    def every_form(a, b=1, *, c, d=2):
        pass

    assert defaults_of(every_form) == {"a": inspect.Parameter.empty, "b": 1, "c": inspect.Parameter.empty, "d": 2}


def is_layer(definition: OpDef) -> bool:
    """Whether it is a part of a neural network only: reached through layers, which check shapes and compute in floating types."""
    return all(path.startswith("nn.") for path in definition.api) and not definition.methods


def is_spec(x: Any) -> bool:
    return isinstance(x, (Random, Made))


def sample_arguments(definition: OpDef, sample: Any, dtype: str, shape: Any = None) -> tuple[list[Any], dict[str, Any]]:
    """The sample's arrays (with ``shape(spec's shape)`` where given) and plain arguments."""
    seeds = iter(range(7, 10_000))

    def make(x: Any) -> Any:
        if isinstance(x, Random) and shape is not None:
            x = dataclasses.replace(x, shape=shape(x.shape))
        return x.make(dtype, next(seeds)) if is_spec(x) else x

    sample = sample if isinstance(sample, tuple) else (sample,)
    keywords = sample[-1] if sample and isinstance(sample[-1], dict) else {}
    plain = sample[:-1] if keywords else sample
    made = [[make(y) for y in x] if isinstance(x, list) and any(map(is_spec, x)) else make(x) for x in plain]
    return made, {k: make(v) for k, v in keywords.items()}


def arrays_of(args: Any) -> list[np.ndarray[Any, Any]]:
    return [a for a in nest.flatten(args) if isinstance(a, np.ndarray)]


def build(definition: OpDef, args: list[Any], keywords: dict[str, Any]) -> Program:
    """The definition's Program over these arguments; kept as one Op where it brings its own gradient rule."""
    builder = Builder(TABLE, definition.name)
    builder.keep = lambda d: d.gradient is not None
    with builder.active():

        def lift(x: Any) -> Any:
            return builder.argument(dtypes_name(x), x.shape) if isinstance(x, np.ndarray) else x

        lifted, lifted_keywords = nest.map_structure(lift, [args, keywords])
        results = definition(*lifted, **lifted_keywords)
    return builder.finish(*(v for v in nest.flatten(results) if isinstance(v, Value)))


def dtypes_name(array: np.ndarray[Any, Any]) -> str:
    return array.dtype.name


def evaluate(program: Program, arrays: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    results = interpreter.run(program, arrays, TABLE)
    for value, result in zip(program.outputs, results, strict=True):
        assert result.shape == value.shape, f"{program.name} said {value!r}, gave shape {result.shape}"
        assert dtypes_name(result) == value.dtype, f"{program.name} said {value!r}, gave {result.dtype}"
    return results


def widened(args: Any, integers: str = "") -> Any:
    """Floating and complex arrays, and integer ones of the dtype ``integers``, in double precision."""

    def widen(a: Any) -> Any:
        if not isinstance(a, np.ndarray):
            return a
        kind = dtypes.kind(a.dtype.name)
        return a.astype(np.float64) if kind == "f" or a.dtype.name == integers else a.astype(np.complex128) if kind == "c" else a

    return nest.map_structure(widen, args)


def expected(
    definition: OpDef, program: Program, args: list[Any], keywords: dict[str, Any], dtype: str
) -> list[np.ndarray[Any, Any]]:
    """The reference's results, in double precision where the operator gives floating ones."""
    integers = dtype if dtypes.kind(dtype) in "iub" and all(dtypes.is_differentiable(v.dtype) for v in program.outputs) else ""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        results = definition.reference(*widened(args, integers), **widened(keywords, integers))
    return [np.asarray(r) for r in nest.flatten(results)]


def check_values(definition: OpDef, program: Program, got: list[Any], wanted: list[Any], where: str) -> None:
    assert len(got) == len(wanted), f"{where}: {len(got)} results, the reference has {len(wanted)}"
    for g, w in zip(got, wanted, strict=True):
        assert g.shape == w.shape, f"{where}: shape {g.shape}, the reference has {w.shape}"
        relative, absolute = TOLERANCE.get(dtypes_name(g), (0, 0))
        if w.dtype.kind == "c" and g.dtype.kind != "c":
            raise AssertionError(f"{where}: real, the reference is complex")
        wide = np.complex128 if g.dtype.kind == "c" else np.float64
        exact = g.dtype.kind in "iub"
        g, w = (g, w.astype(g.dtype)) if exact else (g.astype(wide), w.astype(wide))
        scale = definition.tolerance
        np.testing.assert_allclose(g, w, rtol=relative * scale, atol=absolute * scale, err_msg=where, equal_nan=True)


def cases(definition: OpDef, names: tuple[str, ...]) -> Any:
    """(sample number, dtype, arguments, keywords, program) for every dtype that the operator takes."""
    taken = 0
    if is_layer(definition):
        names = tuple(n for n in names if n.startswith(("float", "bfloat")))  # layers compute in floating types
    if any(path.startswith(("linalg.", "signal.")) for path in definition.api):
        names = tuple(n for n in names if n in ("float64", "float32", "complex64", "complex128"))  # what LAPACK has
    for k, sample in enumerate(definition.samples):
        for dtype in names:
            args, keywords = sample_arguments(definition, sample, dtype)
            if dtype != names[0] and not any(dtypes_name(a) == dtype for a in arrays_of([args, keywords])):
                continue
            try:
                program = build(definition, args, keywords)
            except DTypeError:
                continue
            taken += 1
            yield f"{definition.name} sample {k} {dtype}", dtype, args, keywords, program
    assert taken, f"{definition.name} takes none of {names}"


@pytest.mark.parametrize("name", NAMES)
def test_values_match_the_reference_in_every_dtype(name: str) -> None:
    definition = OPERATORS[name]
    for where, dtype, args, keywords, program in cases(definition, DTYPES):
        verify(program, TABLE)
        if dtype.startswith("complex") and not all(np.isfinite(a).all() for a in arrays_of([args, keywords])):
            continue  # NumPy's complex infinities follow no rule
        got = evaluate(program, arrays_of([args, keywords]))
        if definition.reference is None or "novalue" in definition.tests:
            continue
        try:
            wanted = expected(definition, program, args, keywords, dtype)
        except (TypeError, np.exceptions.DTypePromotionError):
            if dtype.startswith("float"):
                raise
            continue  # NumPy has no such function for bool, unsigned or complex
        except ValueError:
            if dtypes.kind(dtype) not in "iub":
                raise
            continue  # NumPy refuses negative powers of integers
        check_values(definition, program, got, wanted, where)


@pytest.mark.parametrize("name", NAMES)
def test_text_gives_the_same_program_back(name: str) -> None:
    definition = OPERATORS[name]
    for where, _, args, keywords, program in cases(definition, DTYPES[:1]):
        text = str(program)
        again = parse_program(text)
        assert str(again) == text, where
        arrays = arrays_of([args, keywords])
        for a, b in zip(evaluate(program, arrays), evaluate(again, arrays), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=where)


def inner(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    return float(np.sum(np.conj(a) * b).real)


@pytest.mark.parametrize("name", [n for n in NAMES if "nograd" not in OPERATORS[n].tests])
def test_gradients_match_finite_differences(name: str) -> None:
    check_gradients(OPERATORS[name])


def check_gradients(definition: OpDef) -> None:
    """Along a random direction for each operand, in float64 and complex128, for every sample."""
    for where, _, args, keywords, program in cases(definition, ("float64", "complex128")):
        arrays = arrays_of([args, keywords])
        wanted = [k for k, a in enumerate(arrays) if dtypes_name(a) in ("float64", "complex128") and a.size]
        present = [dtypes.is_differentiable(v.dtype) for v in program.outputs]
        if not wanted or not any(present) or not all(np.isfinite(a).all() for a in arrays):
            continue
        rng = np.random.default_rng(3)

        def direction(like: Any, rng: np.random.Generator = rng) -> Any:
            d = rng.normal(size=like.shape)
            return (d + 1j * rng.normal(size=like.shape) if like.dtype.kind == "c" else d).astype(like.dtype)

        outputs = evaluate(program, arrays)
        weights = [direction(o) for o, p in zip(outputs, present, strict=True) if p]
        cut = partition(program, wanted)
        forward = interpreter.run(cut.forward, arrays, TABLE)
        extra = len(cut.forward.outputs) - len(present)
        backward, targets = cut.backward([*present, *(False for _ in range(extra))])
        for a, b in zip(outputs, forward, strict=False):
            np.testing.assert_array_equal(a, b, err_msg=where)
        saved = [arrays[k] if kind == "input" else forward[k] for kind, k in cut.saved]
        found = dict(zip(targets, interpreter.run(backward, saved + weights, TABLE), strict=True))
        for k in wanted:
            step, d = 1e-6, direction(arrays[k])
            sides = []
            for sign in (1, -1):
                moved = [a + sign * step * d if j == k else a for j, a in enumerate(arrays)]
                results = [r for r, p in zip(evaluate(program, moved), present, strict=True) if p]
                sides.append(sum(inner(w, r) for w, r in zip(weights, results, strict=True)))
            if not np.isfinite(sides).all():
                continue
            numeric = (sides[0] - sides[1]) / (2 * step)
            analytic = inner(found[k], d) if k in found else 0.0
            size = max(abs(sides[0]), abs(numeric), 1.0)
            assert abs(numeric - analytic) <= 2e-7 * size * max(definition.tolerance, 10), (
                f"{where}: operand {k}: finite differences {numeric}, gradient {analytic}"
            )


def _emptied(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (0, *shape[1:]) if shape else ()


EDGES = {"noempty": _emptied, "noscalar": lambda shape: (), "noshape": lambda shape: (7, 5, *shape, 3)}


@pytest.mark.parametrize("name", [n for n in NAMES if not is_layer(OPERATORS[n])])
@pytest.mark.parametrize("edge", EDGES)
def test_edge_shapes_match_the_reference_or_raise_a_sampan_error(name: str, edge: str) -> None:
    definition = OPERATORS[name]
    if edge in definition.tests:
        return
    for k, sample in enumerate(definition.samples):
        args, keywords = sample_arguments(definition, sample, "float32", EDGES[edge])
        try:
            program = build(definition, args, keywords)
            got = evaluate(program, arrays_of([args, keywords]))
        except SampanError:
            continue
        if definition.reference is None:
            continue
        try:
            wanted = expected(definition, program, args, keywords, "float32")
        except Exception:
            continue  # NumPy refuses what is defined here
        check_values(definition, program, got, wanted, f"{name} sample {k} {edge}")
