"""Discrete Fourier transforms (paddle.fft), and short-time ones (paddle.signal)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, DTypeError, ShapeError, message
from ..ir.program import Value
from . import primitives as p
from .arguments import dtype_name, floating, normalized_axis
from .define import OpDef, op
from .samples import positive, real
from .shaping import roll


def _in_numpy(name: str) -> Callable[..., Any]:
    """The function of numpy.fft, which is imported by the first call."""
    return lambda *args, **kwargs: getattr(np.fft, name)(*args, **kwargs)


def _factor(name: str, norm: str, inverse: bool, count: int) -> float:
    """What the plain sum is multiplied by: the inverse carries 1 / N by default."""
    if norm not in ("backward", "ortho", "forward"):
        raise ArgumentError(f"{name}(): norm is {norm!r}; it must be 'backward', 'ortho' or 'forward'")
    if norm == "ortho":
        return 1 / math.sqrt(max(count, 1))
    return 1 / max(count, 1) if (norm == "backward") == inverse else 1.0


def _numeric(x: Value) -> Value:
    """x in single or double precision, real or complex."""
    x = floating(x)
    return p.cast(x, "float32") if dtypes.itemsize(x.dtype) == 2 else x


def _complex(x: Value) -> Value:
    """x as complex numbers of single or double precision."""
    x = _numeric(x)
    return x if dtypes.is_complex(x.dtype) else p.make_complex(x, p.mul(x, 0))


def sized(name: str, x: Value, axis: int, n: int | None) -> Value:
    """x cut or filled with zeros to n elements along the axis."""
    if n is None:
        return x
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ArgumentError(f"{name}(): the length {n!r} must be a positive integer")
    if n < x.shape[axis]:
        return p.slice_(x, (0,) * x.ndim, tuple(n if k == axis else m for k, m in enumerate(x.shape)), (1,) * x.ndim)
    return p.pad(x, (0,) * x.ndim, tuple(n - m if k == axis else 0 for k, m in enumerate(x.shape)))


def _axes(name: str, x: Value, s: Sequence[int] | None, axes: Any) -> tuple[list[int], list[int | None]]:
    """The axes counted from 0, in their order, and the lengths to bring them to."""
    if x.ndim == 0:
        raise ShapeError(f"{name}(): x is 0-D; it must have an axis")
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    found = [normalized_axis(name, a, x.ndim) for a in axes]
    lengths: list[int | None] = list(s) if s is not None else [None] * len(found)
    if not found:
        raise ShapeError(f"{name}(): axes is empty; there must be one axis at least")
    if len(set(found)) != len(found) or len(lengths) != len(found):
        raise ShapeError(f"{name}(): axes {list(axes)} must be different, and s {s} as long as them")
    if not all(x.shape[a] or n for a, n in zip(found, lengths, strict=True)):
        raise ShapeError(f"{name}(): x is {list(x.shape)}; an axis to transform has no elements")
    return found, lengths


def _times(x: Value, factor: float) -> Value:
    """x times a real number: part by part, since infinities and the signs of zeros do not outlive a product with factor + 0j."""
    if factor == 1:
        return x
    if dtypes.is_complex(x.dtype):
        return p.make_complex(p.mul(p.real(x), factor), p.mul(p.imag(x), factor))
    return p.mul(x, factor)


def complex_transform(name: str, x: Value, s: Any, axes: Any, norm: str, inverse: bool) -> Value:
    """The complex transform over axes."""
    x = _numeric(x)
    found, lengths = _axes(name, x, s, axes)
    for a, n in zip(found, lengths, strict=True):
        x = sized(name, x, a, n)
    return _times(p.fft_c2c(x, tuple(found), inverse), _factor(name, norm, inverse, math.prod(x.shape[a] for a in found)))


def real_transform(name: str, x: Value, s: Any, axes: Any, norm: str, inverse: bool) -> Value:
    """Half of a real x's transform over axes, the last of which is halved; inverse: conjugated, normalised as an inverse."""
    if dtypes.is_complex(x.dtype):
        raise DTypeError(
            message(f"{name}() does not take {x.dtype}", "it takes real types", "use the complex transform, or real(x)")
        )
    x = _numeric(x)
    found, lengths = _axes(name, x, s, axes)
    for a, n in zip(found, lengths, strict=True):
        x = sized(name, x, a, n)
    y = p.fft_c2c(p.fft_r2c(x, found[-1], inverse), tuple(found[:-1]), inverse)
    return _times(y, _factor(name, norm, inverse, math.prod(x.shape[a] for a in found)))


def to_real_transform(name: str, x: Value, s: Any, axes: Any, norm: str, inverse: bool) -> Value:
    """The real numbers of half a Hermitian transform over axes, the last of which has 2 * (M - 1) by default; forward: of the conjugate."""
    x = _complex(x)
    found, lengths = _axes(name, x, s, axes)
    for a, n in zip(found[:-1], lengths[:-1], strict=True):
        x = sized(name, x, a, n)
    last = found[-1]
    n = 2 * (x.shape[last] - 1) if lengths[-1] is None else lengths[-1]
    if n < 1:
        raise ShapeError(f"{name}(): {x.shape[last]} terms along axis {last} give no numbers; give the length")
    x = sized(name, x, last, n // 2 + 1)
    x = x if inverse else p.conj(x)
    y = p.fft_c2r(p.fft_c2c(x, tuple(found[:-1]), True), last, n)
    return _times(y, _factor(name, norm, inverse, math.prod(y.shape[a] for a in found)))


_FAMILIES = {
    "fft": (complex_transform, False, "The discrete Fourier transform"),
    "ifft": (complex_transform, True, "The inverse discrete Fourier transform"),
    "rfft": (real_transform, False, "The non-redundant half of a real tensor's discrete Fourier transform"),
    "irfft": (to_real_transform, True, "The real inverse of rfft"),
    "hfft": (to_real_transform, False, "The real discrete Fourier transform of a Hermitian signal given by its half"),
    "ihfft": (real_transform, True, "The half of the inverse discrete Fourier transform of a real tensor, inverse of hfft"),
}
_NORMS = "norm: where 1 / N stands: backward (in the inverse), forward, or ortho (its root in both)."


def _transforms(family: str) -> list[OpDef]:
    """The 1-d, 2-d and n-d members of a family."""
    function, inverse, text = _FAMILIES[family]

    def one(x, n=None, axis=-1, norm="backward"):
        return function(family, x, None if n is None else (n,), (axis,), norm, inverse)

    def two(x, s=None, axes=(-2, -1), norm="backward"):
        return function(f"{family}2", x, s, axes, norm, inverse)

    def many(x, s=None, axes=None, norm="backward"):
        return function(f"{family}n", x, s, axes, norm, inverse)

    one.__doc__ = f"{text} along ``axis``, of n elements (x is cut or filled with zeros).\n\n    {_NORMS}\n    "
    two.__doc__ = f"{text} over two axes, of sizes s (x is cut or filled with zeros).\n\n    {_NORMS}\n    "
    many.__doc__ = f"{text} over ``axes`` (all by default), of sizes s (x is cut or filled with zeros).\n\n    {_NORMS}\n    "
    made = []
    hermitian = family in ("hfft", "ihfft")
    spans: list[list[Any]] = [
        [(real(3, 5),), (real(2, 6), 4, 0, "ortho"), (real(5), 8, -1, "forward")],
        [(real(3, 5),), (real(2, 4, 3), [3, 6], (0, 1), "ortho")],
        [(real(3, 5),), (real(2, 4, 3), [3, 6], (0, 2), "forward")],
    ]
    for body, suffix, samples in zip((one, two, many), ("", "2", "n"), spans, strict=True):
        body.__name__ = family + suffix
        reference = None if hermitian and suffix else _in_numpy(family + suffix)
        made.append(
            op(f"fft.{family}{suffix}", operands=("x",), reference=reference, samples=samples, tolerance=5, tests="noempty")(body)
        )
    return made


DEFINITIONS = [definition for family in _FAMILIES for definition in _transforms(family)]


def _frequencies(name: str, n: Any, d: float, dtype: Any, half: bool) -> Value:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1 or d == 0:
        raise ArgumentError(f"{name}(): n is {n!r} and d {d!r}; n must be a positive integer and d not zero")
    result = dtype_name(name, dtype) if dtype is not None else dtypes.default_float()
    place = p.iota((n // 2 + 1,) if half else (n,), 0, "float64")
    if not half:
        place = p.select(p.ge(place, (n + 1) // 2), p.sub(place, n), place)
    return p.cast(p.div(place, n * float(d)), result)


@op(
    "fft.fftfreq",
    operands=(),
    creates=True,
    reference=lambda n, d=1.0: np.fft.fftfreq(n, d).astype("float32"),
    samples=[(5,), (6, 0.5)],
)
def fftfreq(n, d=1.0, dtype=None):
    """The frequencies of fft's n terms, in cycles per unit of the sample spacing d: 0, 1, ..., -2, -1 over n * d."""
    return _frequencies("fftfreq", n, d, dtype, False)


@op(
    "fft.rfftfreq",
    operands=(),
    creates=True,
    reference=lambda n, d=1.0: np.fft.rfftfreq(n, d).astype("float32"),
    samples=[(5,), (6, 0.5)],
)
def rfftfreq(n, d=1.0, dtype=None):
    """The frequencies of rfft's n // 2 + 1 terms, in cycles per unit of the sample spacing d."""
    return _frequencies("rfftfreq", n, d, dtype, True)


def _shifted(name: str, x: Value, axes: Any, inverse: bool) -> Value:
    given = range(x.ndim) if axes is None else axes if isinstance(axes, (list, tuple)) else [axes]
    found = [normalized_axis(name, a, x.ndim) for a in given]
    halves = [x.shape[a] // 2 for a in found] if x.ndim else []
    return roll.body(x, [-h for h in halves] if inverse else halves, found) if halves else x


@op("fft.fftshift", operands=("x",), reference=_in_numpy("fftshift"), samples=[(real(3, 4),), (real(3, 5), [1])])
def fftshift(x, axes=None):
    """x with the zero-frequency term moved to the middle of each axis."""
    return _shifted("fftshift", x, axes, False)


@op("fft.ifftshift", operands=("x",), reference=_in_numpy("ifftshift"), samples=[(real(3, 4),), (real(3, 5), [1])])
def ifftshift(x, axes=None):
    """The inverse of fftshift."""
    return _shifted("ifftshift", x, axes, True)


# ------------------------------------------------------------------ short-time transforms


def _window(name: str, window: Value | None, win_length: int, n_fft: int, dtype: str) -> Value:
    """The window centred in n_fft elements; ones by default."""
    if not 0 < win_length <= n_fft:
        raise ArgumentError(f"{name}(): win_length is {win_length}; it must be in [1, n_fft = {n_fft}]")
    if window is None:
        window = p.full((win_length,), 1, dtype)
    if window.shape != (win_length,):
        raise ShapeError(f"{name}(): window is {list(window.shape)}; it must have win_length = {win_length} elements")
    if dtypes.is_complex(window.dtype):
        raise DTypeError(f"{name}(): window is {window.dtype}; it must be real")
    left = (n_fft - win_length) // 2
    return p.pad(p.cast(window, dtype), (left,), (n_fft - win_length - left,))


def _hop(name: str, n_fft: Any, hop_length: Any) -> int:
    if not isinstance(n_fft, int) or n_fft < 1:
        raise ArgumentError(f"{name}(): n_fft is {n_fft!r}; it must be a positive integer")
    hop = n_fft // 4 if hop_length is None else hop_length
    if not isinstance(hop, int) or hop < 1:
        raise ArgumentError(f"{name}(): hop_length is {hop!r}; it must be a positive integer")
    return hop


def _stft_reference(
    x, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None
):
    hop = hop_length or n_fft // 4
    window = np.ones(n_fft) if window is None else window
    left = (n_fft - len(window)) // 2
    window = np.pad(window, (left, n_fft - len(window) - left))
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], mode=pad_mode)
    frames = np.stack([x[..., k : k + n_fft] for k in range(0, x.shape[-1] - n_fft + 1, hop)], -2) * window
    whole = np.iscomplexobj(x) or onesided is False
    y = np.swapaxes(np.fft.fft(frames) if whole else np.fft.rfft(frames), -1, -2)
    return y / np.sqrt(n_fft) if normalized else y


@op(
    "signal.stft",
    operands=("x", "window"),
    method="stft",
    reference=_stft_reference,
    samples=[
        (real(2, 20), 8),
        (real(17), 8, 3, 6, positive(6)),
        (real(17), 6, 2, None, None, False, "reflect", True, False),
        (real(17), 8, {"pad_mode": "constant"}),
    ],
    tests="noempty noscalar noshape",
    tolerance=5,
)
def stft(
    x,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided: bool | None = None,
):
    """The short-time Fourier transform of signals [..., T]: complex [..., terms, frames].

    Frames of n_fft elements every hop_length (n_fft // 4 by default) are multiplied by the window, centred in the frame, and transformed.
    center: the signal is first extended by n_fft // 2 at both ends (pad_mode reflect or constant). onesided (the default of real signals):
    n_fft // 2 + 1 terms in place of n_fft. normalized: divided by sqrt(n_fft).
    """
    hop = _hop("stft", n_fft, hop_length)
    is_complex = dtypes.is_complex(x.dtype)
    x = _numeric(x)
    if x.ndim not in (1, 2):
        raise ShapeError(f"stft(): x is {list(x.shape)}; it must be [T] or [N, T]")
    frame = _window("stft", window, n_fft if win_length is None else win_length, n_fft, dtypes.real_of(x.dtype))
    time = x.shape[-1]
    position = np.arange(time)
    if center:
        if pad_mode not in ("reflect", "constant"):
            raise ArgumentError(f"stft(): pad_mode is {pad_mode!r}; it must be 'reflect' or 'constant'")
        if pad_mode == "reflect":
            if n_fft // 2 >= time:
                raise ShapeError(f"stft(): reflecting {n_fft // 2} elements needs a longer signal than {time}")
            position = np.pad(position, n_fft // 2, mode="reflect")
        else:
            edge = (*(0 for _ in x.shape[:-1]), n_fft // 2)
            x = p.pad(x, edge, edge)
            position = np.arange(x.shape[-1])
    if len(position) < n_fft:
        raise ShapeError(f"stft(): a signal of {len(position)} elements is shorter than n_fft = {n_fft}")
    starts = np.arange(0, len(position) - n_fft + 1, hop)
    frames = p.gather(x, p.array(position[starts[:, None] + np.arange(n_fft)], "int64"), x.ndim - 1)
    frames = p.mul(frames, p.broadcast_to(p.cast(frame, frames.dtype), frames.shape))
    half = not is_complex if onesided is None else onesided
    if half and is_complex:
        raise ArgumentError("stft(): onesided=True takes real signals and windows")
    axis = frames.ndim - 1
    y = p.fft_r2c(frames, axis) if half else p.fft_c2c(frames, (axis,), False)
    return p.swap_last(_times(y, 1 / math.sqrt(n_fft) if normalized else 1.0))


@op(
    "signal.istft",
    operands=("x", "window"),
    method="istft",
    samples=[(real(5, 9), 8, {"window": positive(8)}), (real(2, 5, 9), 8, 3, 8, positive(8), True, True, True, 20)],
    tests="noempty noscalar noshape",
)
def istft(
    x,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=True,
    length=None,
    return_complex=False,
):
    """The signals [..., T] whose stft is x [..., terms, frames], by overlapping and adding frames over the sum of squared windows.

    Raises where that sum vanishes (the frames do not cover the signal). length: of the result; by default what the frames cover.
    """
    hop = _hop("istft", n_fft, hop_length)
    x = _complex(x)
    terms = n_fft // 2 + 1 if onesided else n_fft
    if x.ndim not in (2, 3) or x.shape[-2] != terms:
        raise ShapeError(f"istft(): x is {list(x.shape)}; it must be [terms = {terms}, frames], or with a batch axis before")
    if return_complex and onesided:
        raise ArgumentError("istft(): return_complex=True needs onesided=False")
    dtype = dtypes.real_of(x.dtype)
    frame = _window("istft", window, n_fft if win_length is None else win_length, n_fft, dtype)
    x = _times(p.swap_last(x), math.sqrt(n_fft) if normalized else 1.0)
    axis = x.ndim - 1
    y = p.fft_c2r(x, axis, n_fft) if onesided else p.fft_c2c(x, (axis,), True)
    y = y if return_complex or onesided else p.real(y)
    y = p.div(p.mul(y, p.broadcast_to(p.cast(frame, y.dtype), y.shape)), float(n_fft))
    frames, lead = y.shape[-2], y.shape[:-2]
    total = n_fft + hop * (frames - 1)
    place = p.array((np.arange(frames)[:, None] * hop + np.arange(n_fft)).ravel(), "int64")
    joined = p.scatter(p.full((*lead, total), 0, y.dtype), place, p.reshape(y, (*lead, frames * n_fft)), len(lead), "add")
    squares = p.reshape(p.broadcast_to(p.mul(frame, frame), (frames, n_fft)), (frames * n_fft,))
    weight = p.scatter(p.full((total,), 0, dtype), place, squares, 0, "add")
    first = n_fft // 2 if center else 0
    last = total - first if length is None or not center else total
    size = last - first if length is None else min(length, last - first)

    def kept(v: Value) -> Value:
        rank = v.ndim
        return p.slice_(v, (*(0 for _ in range(rank - 1)), first), (*v.shape[:-1], size), (1,) * rank)

    joined, weight = kept(joined), kept(weight)
    weight = p.require(
        weight, p.gt(weight, 1e-11), "istft(): the windows do not cover the whole signal (their squares add up to zero somewhere)"
    )
    result = p.div(joined, p.broadcast_to(p.cast(weight, joined.dtype), joined.shape))
    if length is not None and length > size:
        result = p.pad(result, (0,) * result.ndim, (*(0 for _ in lead), length - size))
    return result
