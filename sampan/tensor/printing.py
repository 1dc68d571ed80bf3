"""How tensors print: Paddle's form, with its options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..base.errors import ArgumentTypeError, message

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class PrintOptions:
    """precision: digits after the point. threshold: more elements than this are summarised. edgeitems: shown at each end then."""

    precision: int = 8
    threshold: int = 1000
    edgeitems: int = 3
    sci_mode: bool = False
    linewidth: int = 80


_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    sci_mode: bool | None = None,
    linewidth: int | None = None,
) -> None:
    """Set how tensors print; None leaves an option as it is.

    Args:
        precision: digits after the point, 8 at first.
        threshold: tensors of more elements are summarised, 1000 at first.
        edgeitems: elements shown at each end of a summarised axis, 3 at first.
        sci_mode: print floats as 1.5e+00.
        linewidth: characters of a line, 80 at first.

    Example:
        >>> import sampan as paddle
        >>> paddle.set_printoptions(precision=3)
        >>> print(paddle.to_tensor([0.123456]))
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.123])
        >>> paddle.set_printoptions(precision=8)
    """
    global _options
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in given.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise ArgumentTypeError(message(f"set_printoptions(): {name}={value!r}", "it must be an integer"))
    if sci_mode is not None and not isinstance(sci_mode, bool):
        raise ArgumentTypeError(message(f"set_printoptions(): sci_mode={sci_mode!r}", "it must be True or False"))
    changes: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    if sci_mode is not None:
        changes["sci_mode"] = sci_mode
    _options = replace(_options, **changes)


def _number(value: Any) -> str:
    if np.iscomplexobj(value):
        sign = "+" if value.imag >= 0 else ""  # also before -0, as Paddle prints it
        return f"({_fixed(value.real)}{sign}{_fixed(value.imag)}j)"
    if isinstance(value, np.floating):
        if np.isnan(value):
            return "nan"
        if _options.sci_mode:
            return f"{value:.{_options.precision}e}"
        return f"{value:.0f}." if value == np.round(value) else _fixed(value)
    return str(value)


def _fixed(value: Any) -> str:
    return f"{value:.{_options.precision}{'e' if _options.sci_mode else 'f'}}"


def _shown(array: Array) -> Array:
    """The elements that will be printed, flat."""
    edge = _options.edgeitems
    if array.size <= _options.threshold:
        return array.reshape(-1)
    index = [np.r_[0:edge, n - edge : n] if n > 2 * edge else np.arange(n) for n in array.shape]
    return array[np.ix_(*index)].reshape(-1)


def _pad(text: str, value: Any, width: int, is_signed: bool) -> str:
    if len(text) < width and is_signed and not value < 0:
        text = " " + text
    return text.ljust(width)


def _format(array: Array, indent: int, width: int, is_signed: bool, summarise: bool) -> str:
    edge = _options.edgeitems
    if array.ndim == 0:
        return _pad(_number(array[()]), array[()], width, is_signed)
    cut = summarise and array.shape[0] > 2 * edge
    rows = [*array[:edge], *array[-edge:]] if cut else list(array)
    parts = [_format(np.asarray(r), indent + 1, width, is_signed, summarise) for r in rows]
    if cut:
        parts.insert(edge, "...")
    if array.ndim > 1:
        return "[" + (",\n" + "\n" * (array.ndim - 2) + " " * (indent + 1)).join(parts) + "]"
    per_line = max(1, (_options.linewidth - indent) // (width + 2))
    lines = [", ".join(parts[k : k + per_line]) for k in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def format_array(array: Array, indent: int = 0) -> str:
    """The elements as Paddle prints them, continuation lines indented."""
    with np.errstate(invalid="ignore"):  # complex numbers with NaN are compared
        return _formatted(array, indent)


def _formatted(array: Array, indent: int) -> str:
    if array.dtype.itemsize == 2 and array.dtype.kind not in "iu":
        array = array.astype(np.float32)
    if array.size == 0:
        return _format(array, indent, 0, False, False)
    shown = _shown(array)
    width = max(len(_number(v)) for v in shown)
    is_signed = array.dtype.kind in "ifc" and bool((shown < 0).any())
    return _format(array, indent, width, is_signed, array.size > _options.threshold)


def format_tensor(tensor: Any) -> str:
    """``Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True, ...)``."""
    rows = f", rows={tensor.rows()}" if tensor.is_selected_rows() else ""
    head = f"Tensor(shape={list(tensor.shape)}, dtype={tensor.dtype.name}, place={tensor.place}, stop_gradient={tensor.stop_gradient}{rows},\n"
    return f"{head}       {format_array(tensor.numpy_view(), 7)})"
