"""What a setting may be. A signature names a kind, and the check before the call and the words of the refusal come from here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, get_args

from .errors import describe, message

# The names that signatures use; to a type checker they are these types.
Count = int
Size = int
CountList = Sequence[int]
Counts = int | Sequence[int]
Sizes = int | Sequence[int]
OutputSizes = int | Sequence[int | None]
Padding = int | str | Sequence[Any]
Probability = float
Positive = float
NotNegative = float
NotZero = float
AboveOne = float
Finite = float
Deviation = float
Fraction = float
Cosine = float
Scales = float | Sequence[float]
Integers = int | Sequence[int]
Reduction = Literal["none", "mean", "sum"]
Format1D = Literal["NCL", "NLC"]
Format2D = Literal["NCHW", "NHWC"]
Format3D = Literal["NCDHW", "NDHWC"]
Format = Literal["NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC"]
DistanceMode = Literal["use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"]
PaddingMode = Literal["constant", "reflect", "replicate", "circular"]


class Kind(NamedTuple):
    """One kind: its words, a test of the type, and, of a value of that type, whether it is allowed."""

    wanted: str
    is_type: Callable[[Any], bool]
    is_allowed: Callable[[Any], bool] | None = None
    plural: str = ""

    @property
    def takes_lists(self) -> bool:
        """Whether a list may be of the type."""
        return self.is_type([0]) or self.is_type([0.5])

    def fits(self, value: Any) -> bool:
        """Whether the value is of the type and allowed."""
        return self.is_type(value) and (self.is_allowed is None or self.is_allowed(value))


def refusal(called: str, name: str, value: Any, kinds: Sequence[Kind]) -> str:
    """The text for an argument that is of none of these kinds, or not allowed."""
    return message(f"{called}(): {name} is {describe(value)}", f"it must be {' or '.join(k.wanted for k in kinds)}")


def is_integer(value: Any) -> bool:
    """Whether it is an integer, NumPy's too, and no bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def are_integers(value: Any, depth: int = 1) -> bool:
    """Whether it is an integer, or a list of integers (of lists of them, at a greater depth)."""
    if isinstance(value, (list, tuple)):
        return depth > 0 and all(are_integers(v, depth - 1) for v in value)
    return is_integer(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real)


def _are_numbers(value: Any) -> bool:
    return all(map(_is_number, value)) if isinstance(value, (list, tuple)) else _is_number(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _all(value: Any, test: Callable[[Any], bool]) -> bool:
    """Whether a number, or all numbers of a list, pass; gaps (None) do, an empty list does not."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(_all(v, test) for v in value)
    return value is None or test(value)


def _some(value: Any, least: int) -> bool:
    return _all(value, lambda n: n >= least)


def _is_padding(value: Any) -> bool:
    return isinstance(value, str) or are_integers(value, 2)


def _with_gaps(value: Any) -> bool:
    return are_integers([v for v in value if v is not None]) if isinstance(value, (list, tuple)) else is_integer(value)


def one_of(words: Sequence[Any]) -> Kind:
    """The kind of these words alone."""
    shown = [repr(w) for w in words]
    wanted = f"{', '.join(shown[:-1])} or {shown[-1]}" if len(shown) > 1 else shown[0]
    kinds = tuple({type(w) for w in words})
    return Kind(wanted, lambda v: isinstance(v, kinds), lambda v: v in words)


KINDS: dict[str, Kind] = {
    "int": Kind("an integer", is_integer, plural="integers"),
    "float": Kind("a number", _is_number, plural="numbers"),
    "bool": Kind("True or False", lambda v: isinstance(v, (bool, Integral)) or type(v).__name__ == "bool_", plural="bools"),
    "str": Kind("a string", _is_text, plural="strings"),
    "None": Kind("None", lambda v: v is None),
    "Integers": Kind("an integer or a list of integers", are_integers),
    "IntegerList": Kind("a list of integers", lambda v: isinstance(v, (list, tuple)) and are_integers(v)),
    "Count": Kind("an integer of at least 1", is_integer, lambda v: v >= 1),
    "Size": Kind("an integer of at least 0", is_integer, lambda v: v >= 0),
    "CountList": Kind(
        "a list of integers of at least 1",
        lambda v: isinstance(v, (list, tuple)) and are_integers(v),
        lambda v: _some(v, 1),
    ),
    "Counts": Kind("an integer of at least 1, or a list of such integers", are_integers, lambda v: _some(v, 1)),
    "Sizes": Kind("an integer of at least 0, or a list of such integers", are_integers, lambda v: _some(v, 0)),
    "OutputSizes": Kind("an integer of at least 1, or a list of such integers and None", _with_gaps, lambda v: _some(v, 1)),
    "Padding": Kind(
        "an integer of at least 0, a list of such integers or of pairs, 'same' or 'valid'",
        _is_padding,
        lambda v: v.lower() in ("same", "valid") if isinstance(v, str) else _some(v, 0),
    ),
    "Probability": Kind("a number in [0, 1]", _is_number, lambda v: 0 <= v <= 1),
    "Positive": Kind("a number above 0", _is_number, lambda v: v > 0),
    "NotNegative": Kind("a number of at least 0", _is_number, lambda v: v >= 0),
    "NotZero": Kind("a number other than 0", _is_number, lambda v: v == v and v != 0),
    "AboveOne": Kind("a number above 1", _is_number, lambda v: v > 1),
    "Finite": Kind("a finite number", _is_number, math.isfinite),
    "Deviation": Kind("a finite number of at least 0", _is_number, lambda v: 0 <= v < math.inf),
    "Fraction": Kind("a number between 0 and 1, neither of them", _is_number, lambda v: 0 < v < 1),
    "Cosine": Kind("a number in [-1, 1]", _is_number, lambda v: -1 <= v <= 1),
    "Scales": Kind("a number above 0, or a list of such numbers", _are_numbers, lambda v: _all(v, lambda n: n > 0)),
} | {
    name: one_of(get_args(words))
    for name, words in (
        ("Reduction", Reduction), ("Format1D", Format1D), ("Format2D", Format2D), ("Format3D", Format3D), ("Format", Format),
        ("PaddingMode", PaddingMode), ("DistanceMode", DistanceMode),
    )
}  # fmt: skip
