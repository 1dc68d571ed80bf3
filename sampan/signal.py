"""``paddle.signal``: short-time Fourier transforms."""

from .tensor import public_names

__all__ = sorted(public_names("signal"))  # noqa: PLE0605
globals().update(public_names("signal"))
