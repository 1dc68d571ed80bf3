"""Threads that wait for work sleep soon, and leave the processor to others."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# The processor time that this process uses while its kernels' threads have nothing to do, and what the import left in the environment.
PROGRAM = """
import os, time
import sampan as paddle
left = {k: v for k, v in os.environ.items() if k in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
paddle.set_flags({"FLAGS_num_threads": 2})
x = paddle.ones([1 << 20])
least = 1.0
for _ in range(9):
    x + x
    begin = time.process_time()
    time.sleep(0.05)
    least = min(least, time.process_time() - begin)
print(least, left)
"""


def idle_seconds(**settings: str) -> tuple[float, str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment | settings, capture_output=True, text=True, check=True, timeout=120
    )
    least, left = found.stdout.split(maxsplit=1)
    return float(least), left.strip()


def test_waiting_threads_sleep_after_a_moment():
    least, left = idle_seconds()
    assert least < 0.002
    assert left == "{}"


@pytest.mark.parametrize("settings", [{"GOMP_SPINCOUNT": "123"}, {"OMP_WAIT_POLICY": "passive"}], ids=str)
def test_a_users_setting_stays(settings):
    assert idle_seconds(**settings)[1] == str(settings)
