"""``paddle.signal``: short-time Fourier transforms."""

from .tensor import public_names

__all__ = sorted(public_names("signal"))
globals().update(public_names("signal"))
