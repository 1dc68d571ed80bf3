"""``paddle.fft``: discrete Fourier transforms."""

from .tensor import public_names

__all__ = sorted(public_names("fft"))  # noqa: PLE0605
globals().update(public_names("fft"))
