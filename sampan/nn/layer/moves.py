"""Layers on devices that are not here."""

from __future__ import annotations

from typing import Any, NoReturn

from ...base.places import missing_device


class DeviceMoves:
    """What a Layer says when it is sent to a device that this build does not have."""

    def cuda(self, device: Any = None) -> NoReturn:
        """Raises UnsupportedError: this build has no CUDA devices."""
        raise missing_device("CUDA")

    def xpu(self, device: Any = None) -> NoReturn:
        """Raises UnsupportedError: this build has no XPU devices."""
        raise missing_device("XPU")
