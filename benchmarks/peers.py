"""The peers: which interpreter runs each framework, and the environment it runs in. The only place that reads the environment."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

# The peer called "onednn" is oneDNN itself, called through its C interface: what a thin wrapper around it would reach.
# ONNX Runtime's interpreter has PyTorch and onnx too, which write its models.
# Peers that end in "-eager" are the same frameworks without their compilers, for cases that are compiled.
NAMES = ("sampan", "torch", "paddle", "jax", "onednn", "onnxruntime", "sampan-eager", "torch-eager")
_OWN_ENVIRONMENT = ("sampan", "onednn")


@dataclass(frozen=True)
class Peer:
    """One framework and the interpreter of the environment it is installed in."""

    name: str
    python: str


def framework_of(name: str) -> str:
    """The framework that a peer runs."""
    return name.removesuffix("-eager")


def variable(name: str) -> str:
    """The environment variable that names the peer's interpreter."""
    return f"SAMPAN_BENCH_{framework_of(name).upper()}"


def find(name: str, given: str | None) -> Peer | None:
    """The peer, from the argument or its environment variable (sampan and oneDNN: else this interpreter); None when not set."""
    python = given or os.environ.get(variable(name)) or (sys.executable if framework_of(name) in _OWN_ENVIRONMENT else None)
    return Peer(name, python) if python else None


def environment(threads: int, extra: dict[str, str]) -> dict[str, str]:
    """A worker's environment: the same number of threads for every library, no overrides of a BLAS's choice of kernel.

    Python keeps the bytecode of what it imports, as it lies beside every installed package: sampan may run from its sources.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_") and k != "PYTHONDONTWRITEBYTECODE"}
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        env[name] = str(threads)
    env["JAX_PLATFORMS"] = "cpu"
    return {**env, **extra}
