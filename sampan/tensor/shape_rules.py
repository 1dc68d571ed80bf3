"""Types of calls whose numbers must fit each other, as a reshape's sizes must: probes, which are free of each other, would be refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ir.program import Value
from ..ops.define import operator_named
from .expander import RULES, Expander
from .replay import PRECISION, Operand
from .variable import PROBES, UNKNOWN, Variable

#: A number under either probe.
Pair = tuple[int, int]


def fitting_types(name: str, inputs: Sequence[Variable], attributes: Mapping[str, Any]) -> tuple[list[Any], Any] | None:
    """((dtype, shapes under the probes, weak) of each result, the structure of the results) of a call with numbers or sizes that only a run knows; None
    for what has no rule, and for what cannot be right whatever they are: probing says why."""
    rule = _RULES.get(name.removeprefix("op."))
    parts = None if rule is None or not inputs else rule(inputs, attributes)
    if parts is None:
        return None
    dtype = _computing_dtype(name, inputs[0], attributes)
    shapes = [tuple(zip(*part, strict=True)) if part else ((), ()) for part in parts]
    types = [(dtype, list(pair), False) for pair in shapes]
    values = [Value(dtype, pair[0]) for pair in shapes]
    return types, values if name.removeprefix("op.") == "split" else values[0]


def _computing_dtype(name: str, x: Variable, attributes: Mapping[str, Any]) -> str:
    """The dtype of the operand after the casts of the rule that the call is recorded under."""
    rule, definition = RULES.get(attributes.get(PRECISION)), operator_named(name)
    if rule is None or definition is None:
        return x.dtype
    scratch = Expander("scratch")
    with scratch.active():
        return rule(definition, [scratch.argument(x.dtype, x.probe(0), weak=x.weak)])[0].dtype


def _pairs(value: Any, inputs: Sequence[Variable]) -> list[Pair] | None:
    """The numbers of an attribute: a number, a tensor of such, or a list of both."""
    if isinstance(value, int) and not isinstance(value, bool):
        return [(value, value)]
    if isinstance(value, Operand):
        v = inputs[value.index]
        if UNKNOWN in v.sizes or v.ndim > 1:
            return None
        if v.known is not None:
            first, second = (known.reshape(-1).tolist() for known in v.known)
            return list(zip(map(int, first), map(int, second), strict=True))
        return [PROBES] * math.prod(v.sizes)
    if not isinstance(value, (list, tuple)):
        return None
    found: list[Pair] = []
    for item in value:
        part = _pairs(item, inputs)
        if part is None or len(part) != 1:
            return part if len(value) == 1 else None
        found += part
    return found


def _sizes_of(x: Variable) -> list[Pair]:
    return list(zip(x.probe(0), x.probe(1), strict=True))


def _known_product(pairs: Sequence[Pair]) -> tuple[int, bool]:
    """The product of the sizes that are the same in every run, and whether all are."""
    known = [a for a, b in pairs if a == b]
    return math.prod(known), len(known) == len(pairs)


def _reshaped(axes: Sequence[Pair], sizes: Sequence[Pair] | None) -> list[Pair] | None:
    """The axes in the place of which a reshape puts these sizes: one may be -1, and 0 keeps the axis at its place."""
    if sizes is None or sum(s == (-1, -1) for s in sizes) > 1 or any(min(s) < -1 for s in sizes):
        return None
    if any(s == (0, 0) and k >= len(axes) for k, s in enumerate(sizes)):
        return None
    found = [axes[k] if s == (0, 0) else PROBES if s == (-1, -1) else s for k, s in enumerate(sizes)]
    (before, is_known), (after, is_after_known) = _known_product(axes), _known_product(found)
    if (is_known and (is_after_known or not after or before % after)) or (is_after_known and (not before or after % before)):
        return None
    return found


def _reshape(parameter: str) -> Callable[[Sequence[Variable], Mapping[str, Any]], list[list[Pair]] | None]:
    def rule(inputs: Sequence[Variable], attributes: Mapping[str, Any]) -> list[list[Pair]] | None:
        found = _reshaped(_sizes_of(inputs[0]), _pairs(attributes[parameter], inputs))
        return None if found is None else [found]

    return rule


def _axis(x: Variable, axis: Any) -> int | None:
    return axis % x.ndim if isinstance(axis, int) and x.ndim and -x.ndim <= axis < x.ndim else None


def _unflatten(inputs: Sequence[Variable], attributes: Mapping[str, Any]) -> list[list[Pair]] | None:
    axes, axis = _sizes_of(inputs[0]), _axis(inputs[0], attributes["axis"])
    if axis is None:
        return None
    found = _reshaped([axes[axis]], _pairs(attributes["shape"], inputs))
    return None if found is None else [[*axes[:axis], *found, *axes[axis + 1 :]]]


def _split(inputs: Sequence[Variable], attributes: Mapping[str, Any]) -> list[list[Pair]] | None:
    axes, axis = _sizes_of(inputs[0]), _axis(inputs[0], attributes["axis"])
    sections = attributes["num_or_sections"]
    sizes = None if isinstance(sections, int) else _pairs(sections, inputs)
    if axis is None or not sizes or (isinstance(sections, Operand) and not inputs[sections.index].ndim):
        return None
    least = sum(a for a, b in sizes if a == b and a > 0)
    if axes[axis][0] == axes[axis][1] < least:
        return None
    return [[*axes[:axis], PROBES if s == (-1, -1) else s, *axes[axis + 1 :]] for s in sizes]


_RULES: dict[str, Callable[[Sequence[Variable], Mapping[str, Any]], list[list[Pair]] | None]] = {
    "reshape": _reshape("shape"),
    "view": _reshape("shape_or_dtype"),
    "unflatten": _unflatten,
    "split": _split,
}
