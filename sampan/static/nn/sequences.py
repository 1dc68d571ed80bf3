"""Functions of level-of-detail sequences: rows of many sequences in one tensor, which tensors here do not have."""

from __future__ import annotations

from typing import Any, NoReturn

from ...base.errors import UnsupportedError, message


def _refused(name: str, instead: str) -> NoReturn:
    raise UnsupportedError(
        message(
            f"static.nn.{name}()",
            "tensors carry no levels of detail that say where sequences end",
            f"pad to [N, T, ...] and use {instead}",
        )
    )


def sequence_conv(
    input: Any,
    num_filters: int,
    filter_size: int = 3,
    filter_stride: int = 1,
    padding: bool = True,
    padding_start: int | None = None,
    bias_attr: Any = None,
    param_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> NoReturn:
    """Raises UnsupportedError: pad the sequences, and use ``nn.functional.conv1d``."""
    _refused("sequence_conv", "nn.functional.conv1d")


def sequence_softmax(input: Any, use_cudnn: bool = False, name: str | None = None) -> NoReturn:
    """Raises UnsupportedError: pad the sequences with -inf, and use ``nn.functional.softmax``."""
    _refused("sequence_softmax", "nn.functional.softmax over T, with -inf where nn.functional.sequence_mask is 0")


def sequence_pool(input: Any, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> NoReturn:
    """Raises UnsupportedError: use ``geometric.segment_sum`` and its like, or pad the sequences."""
    _refused("sequence_pool", "a sum over T times nn.functional.sequence_mask; or geometric.segment_sum on rows")


def sequence_first_step(input: Any) -> NoReturn:
    """Raises UnsupportedError: pad the sequences, and use ``x[:, 0]``."""
    _refused("sequence_first_step", "x[:, 0]")


def sequence_last_step(input: Any) -> NoReturn:
    """Raises UnsupportedError: pad the sequences, and take the rows at their lengths - 1."""
    _refused("sequence_last_step", "take_along_axis at lengths - 1")


def sequence_expand(x: Any, y: Any, ref_level: int = -1, name: str | None = None) -> NoReturn:
    """Raises UnsupportedError: use ``repeat_interleave`` by the lengths."""
    _refused("sequence_expand", "repeat_interleave(x, lengths, 0)")
