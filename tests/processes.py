"""Fresh Python processes that import the same sampan as the tests do, from whatever folder they start in; and what kind of build that is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import sampan.version
from sampan import _rt

_PACKAGE_FOLDER = str(Path(sampan.version.__file__).resolve().parents[1])


def run_python(*arguments: str, cwd: str | Path | None = None, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
    """A finished ``python ARGUMENTS``, with its exit status and what it printed."""
    paths = [_PACKAGE_FOLDER, *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=env, timeout=timeout_s)


def is_sanitized() -> bool:
    """Whether the runtime is built with the address sanitizer: blocks then come from the system and go back at once, and it holds them for a while."""
    held = _rt.empty([1], "uint8")
    return _rt.memory_stats()["reserved_bytes"] < held.nbytes
