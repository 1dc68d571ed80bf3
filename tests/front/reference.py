"""The real PaddlePaddle as a black box: tests that need it run a script in its interpreter, or are skipped with a message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def paddle_python() -> str | None:
    """The interpreter that has the real PaddlePaddle, from PADDLE_PYTHON; None when that is not set or not there."""
    given = os.environ.get("PADDLE_PYTHON")
    return given if given and Path(given).exists() else None


needs_paddle = pytest.mark.skipif(
    paddle_python() is None, reason="the real PaddlePaddle is not installed here; set PADDLE_PYTHON to its interpreter"
)


def ask_paddle(script: str, *arguments: str) -> Any:
    """What the script, run where ``import paddle`` is the real one, prints as JSON on its last line."""
    done = subprocess.run(
        [paddle_python() or sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])
