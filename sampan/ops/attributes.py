"""What attributes of public operators may be: derived from their defaults and, as one name means one thing everywhere, from their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..base.errors import ArgumentTypeError, describe, message

#: One integer.
_INTEGER = frozenset(
    """axis0 axis1 axis2 dim1 dim2 blank chunks col decimals deformable_groups diagonal divisor_override downscale_factor groups hop_length ignore_index ignore_value
    index index_num k length n n_fft niter nshards num num_classes num_columns num_groups num_rows offset r row seed seg_num shard_id size
    start_axis stop_axis upscale_factor win_length""".split()
)
#: An integer, or a list of them: one for each axis.
_INTEGERS = frozenset(
    """axis dilation dilations dim kernel_size kernel_sizes normalized_shape num_or_indices num_or_sections output_padding output_size output_sizes
    paddings repeat_times repeats shape shifts stride strides""".split()
)
#: Of those lists, the ones in which None stands for what the tensor has.
_WITH_GAPS = frozenset("output_size s".split())
#: A list of integers.
_LIST = frozenset("dims ends offsets perm s split_sizes starts".split())
#: Of windows: an integer, a list of them, of pairs, or a word.
_PADDING = frozenset({"padding"})
#: One real number.
_NUMBER = frozenset(
    "alpha beta correction dx end eps high low margin max_norm p padding_value rcond start step stop value".split()
)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_integers(value: Any, depth: int = 1) -> bool:
    if isinstance(value, (list, tuple)):
        return depth > 0 and all(_are_integers(v, depth - 1) for v in value)
    return _is_integer(value)


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "flag": (lambda v: isinstance(v, int), "True or False"),
    "text": (lambda v: isinstance(v, str), "a string"),
    "integer": (_is_integer, "an integer"),
    "integers": (_are_integers, "an integer or a list of integers"),
    "padding": (lambda v: isinstance(v, str) or _are_integers(v, 2), "an integer, a list of integers or of pairs, or a string"),
    "list": (lambda v: isinstance(v, (list, tuple)) and _are_integers(v), "a list of integers"),
    "number": (lambda v: isinstance(v, (int, float)), "a number"),
}


def kind_of(name: str, default: Any) -> str:
    """The kind of an attribute, by its default and its name; empty for one that takes several."""
    if name == "approximate":
        return ""
    if isinstance(default, bool):
        return "flag"
    if isinstance(default, str):
        return "text" if name not in ("p", "dtype") else ""  # a norm's order is a word or a number
    if isinstance(default, float):
        return "number"
    if name == "p" and default is None:
        return ""
    if name in ("equation", "reduce", "act"):
        return "text"
    if (name == "axes" and not isinstance(default, int)) or (
        name in ("stride", "strides") and default is inspect.Parameter.empty
    ):
        return "list"
    kinds = {"integer": _INTEGER, "integers": _INTEGERS, "list": _LIST, "padding": _PADDING, "number": _NUMBER}
    return next((kind for kind, names in kinds.items() if name in names), "")


def checked(operator: str, name: str, kind: str, default: Any, value: Any) -> Any:
    """The value, a list of one element that stands for a number (a tensor's) as that; raises ArgumentTypeError for one of another kind."""
    is_fitting, wanted = _KINDS[kind]
    if kind in ("integer", "number", "flag"):
        while isinstance(value, (list, tuple)) and len(value) == 1:
            (value,) = value
    if value is None and (kind == "flag" or name == "data_format"):
        return default
    if value is default or is_fitting(value):
        return bool(value) if kind == "flag" else value
    if name in _WITH_GAPS and isinstance(value, (list, tuple)) and is_fitting([v for v in value if v is not None]):
        return value
    raise ArgumentTypeError(message(f"{operator}(): {name} is {describe(value)}", f"it must be {wanted}"))
