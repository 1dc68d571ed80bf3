"""Names for Graphcore's IPUs, which this build does not serve."""

from __future__ import annotations

from typing import Any, NoReturn

from ..base.places import missing_device


def _missing(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise missing_device("IPU")

    method.__name__ = name
    method.__doc__ = "Raises UnsupportedError: this build serves no IPUs."
    return method


class IpuStrategy:
    """How a Program runs on IPUs. Raises UnsupportedError."""

    #: What can be read of one.
    num_ipus, is_training, enable_pipelining, enable_fp16 = 1, True, False, False

    def __init__(self) -> None:
        raise missing_device("IPU")


for _name in """register_patch release_patch set_optimizer parse_optimizer set_graph_config set_pipelining_config set_precision_config add_custom_op set_options
get_option enable_pattern disable_pattern""".split():
    setattr(IpuStrategy, _name, _missing(_name))


class IpuCompiledProgram:
    """A Program compiled for IPUs. Raises UnsupportedError."""

    def __init__(self, program: Any = None, scope: Any = None, ipu_strategy: Any = None) -> None:
        raise missing_device("IPU")

    def compile(self, feed_list: Any, fetch_list: Any) -> NoReturn:
        """Raises UnsupportedError: this build serves no IPUs."""
        raise missing_device("IPU")


def ipu_shard_guard(index: int = -1, stage: int = -1) -> NoReturn:
    """Statements for one IPU. Raises UnsupportedError."""
    raise missing_device("IPU")


def set_ipu_shard(call_func: Any, index: int = -1, stage: int = -1) -> NoReturn:
    """A call's statements for one IPU. Raises UnsupportedError."""
    raise missing_device("IPU")
