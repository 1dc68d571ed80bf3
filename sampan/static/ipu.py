"""Names for Graphcore's IPUs, which this build does not serve."""

from __future__ import annotations

from typing import Any, NoReturn

from ..base.places import missing_device


class IpuStrategy:
    """How a Program runs on IPUs. Raises UnsupportedError."""

    def __init__(self) -> None:
        raise missing_device("IPU")


class IpuCompiledProgram:
    """A Program compiled for IPUs. Raises UnsupportedError."""

    def __init__(self, program: Any = None, scope: Any = None, ipu_strategy: Any = None) -> None:
        raise missing_device("IPU")


def ipu_shard_guard(index: int = -1, stage: int = -1) -> NoReturn:
    """Statements for one IPU. Raises UnsupportedError."""
    raise missing_device("IPU")


def set_ipu_shard(call_func: Any, index: int = -1, stage: int = -1) -> NoReturn:
    """A call's statements for one IPU. Raises UnsupportedError."""
    raise missing_device("IPU")
