"""What attributes of public operators may be, as kinds of ``base.kinds``: by their annotations, else by their defaults and, as one name means one
thing everywhere, by their names."""

from __future__ import annotations

import inspect
from typing import Any

from ..base.errors import ArgumentError, ArgumentTypeError
from ..base.kinds import KINDS, refusal

_NAMES: dict[str, str] = {
    "int": """axis0 axis1 axis2 dim1 dim2 blank col decimals diagonal divisor_override hop_length ignore_index ignore_value index k length n n_fft niter
        num num_classes num_columns num_rows offset r row seed shard_id size start_axis stop_axis win_length""",
    "Count": "chunks deformable_groups downscale_factor groups index_num nshards num_groups seg_num upscale_factor",
    "Integers": """axis dim normalized_shape num_or_indices num_or_sections output_padding output_size output_sizes repeat_times repeats shape shifts
        stride strides""",
    "Counts": "dilation dilations kernel_size kernel_sizes",
    "Sizes": "paddings",
    "Padding": "padding",
    "IntegerList": "dims ends offsets perm s split_sizes starts",
    "float": "alpha beta correction dx end eps high low margin max_norm p padding_value rcond start step stop value",
}  # fmt: skip
_KIND_OF_NAME = {name: kind for kind, names in _NAMES.items() for name in names.split()}
#: Of those lists, the ones in which None stands for what the tensor has.
_WITH_GAPS = frozenset("output_size s".split())


def kind_of(name: str, default: Any, annotation: str | None) -> str:
    """The kind of an attribute; empty for one that takes several."""
    named = (annotation or "").removesuffix(" | None")
    if named in KINDS:
        return named
    if name == "approximate":
        return ""
    if isinstance(default, bool):
        return "bool"
    if isinstance(default, str):
        return "str" if name not in ("p", "dtype") else ""  # a norm's order is a word or a number
    if isinstance(default, float):
        return "float"
    if name == "p" and default is None:
        return ""
    if name in ("equation", "reduce", "act"):
        return "str"
    if name == "axes" and not isinstance(default, int):
        return "IntegerList"
    if name in ("stride", "strides"):  # of a view, and of windows
        return "IntegerList" if default is inspect.Parameter.empty else "Counts"
    return _KIND_OF_NAME.get(name, "")


def checked(operator: str, name: str, kind: str, default: Any, value: Any) -> Any:
    """The value, a list of one element that stands for a number (a tensor's) as that; raises for one of another type, or that is not allowed."""
    wanted = KINDS[kind]
    if not wanted.takes_lists:
        while isinstance(value, (list, tuple)) and len(value) == 1:
            (value,) = value
    if value is None and (kind == "bool" or name == "data_format"):
        return default
    if value is default or wanted.fits(value):
        return bool(value) if kind == "bool" else value
    if name in _WITH_GAPS and isinstance(value, (list, tuple)) and wanted.fits([v for v in value if v is not None]):
        return value
    refused = ArgumentError if wanted.is_type(value) else ArgumentTypeError
    raise refused(refusal(operator, name, value, (wanted,)))
