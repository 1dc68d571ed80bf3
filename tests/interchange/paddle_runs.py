"""Runs of the real PaddlePaddle for these tests, and the comparison with its results."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from front.reference import paddle_python

FOLDER = Path(__file__).parent
#: The suffix of each format's program file -> the value of FLAGS_enable_pir_api that chooses it.
FORMATS = {"pdmodel": "0", "json": "1"}


def run_paddle(script: str, suffix: str, *arguments: str) -> str:
    """The last line that a script of this folder prints, run by the real PaddlePaddle in the mode of the format."""
    environment = os.environ | {"FLAGS_enable_pir_api": FORMATS[suffix]}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(paddle_python()), str(FOLDER / script), *arguments],
        capture_output=True,
        text=True,
        timeout=500,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


def difference(found: Any, expected: np.ndarray, tolerance: float = 1e-5) -> str:
    """How the two differ; empty where they agree, to the tolerance of the largest element."""
    found = np.asarray(found)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{found.dtype}{list(found.shape)} in place of {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind not in "fc":
        return "" if np.array_equal(found, expected) else f"{int((found != expected).sum())} elements differ"
    finite = np.abs(expected[np.isfinite(expected)])
    if np.allclose(found, expected, rtol=tolerance, atol=tolerance * max(1.0, finite.max(initial=0.0)), equal_nan=True):
        return ""
    with np.errstate(invalid="ignore"):
        return f"differs by {np.nanmax(np.abs(found - expected))}"
