"""Errors: each derives from the built-in class a caller expects, and says what happened, why, and how to fix it."""

from __future__ import annotations


class SampanError(Exception):
    """The base of all errors that sampan raises on purpose."""


class ShapeError(SampanError, ValueError):
    """Shapes do not fit."""


class DTypeError(SampanError, TypeError):
    """An element type is not supported, or types do not fit."""


class ArgumentError(SampanError, ValueError):
    """An argument's value is outside what is allowed."""


class ArgumentTypeError(SampanError, TypeError):
    """An argument has the wrong Python type."""


class UnknownValueError(ArgumentTypeError):
    """A Program that is being recorded was asked for what only a run knows."""


class IndexRangeError(SampanError, IndexError):
    """An index lies outside its axis."""


class MemoryLimitError(SampanError, MemoryError):
    """Memory could not be had, or would pass the limit that was set."""


class AutogradError(SampanError, RuntimeError):
    """The gradient graph cannot do what was asked."""


class NumericsError(SampanError, FloatingPointError):
    """A checked result holds NaN or infinity."""


class UnsupportedError(SampanError, NotImplementedError):
    """A feature that this build, device or mode does not have."""


class ConversionError(SampanError, RuntimeError):
    """Eager code cannot become part of a Program as it is written."""


class IRError(SampanError):
    """A Program breaks a rule of the IR: a fault in sampan or in hand-written IR, not in a model."""


def describe(value: object) -> str:
    """A short text for a received value: dtype and shape of a tensor, the repr of small things, else the type."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is not None and shape is not None and not isinstance(value, type):
        return f"{getattr(dtype, 'name', dtype)}{list(shape)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{type(value).__name__}({text[:57]}...)"


def message(what: str, why: str = "", fix: str = "") -> str:
    """One error text: what happened; why, on the same line; how to fix it, indented on the next."""
    head = f"{what}; {why}" if why else what
    return f"{head}\n  {fix}" if fix else head
