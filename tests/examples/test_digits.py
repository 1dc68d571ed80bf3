"""The main job: the digit recogniser trains, saves, reloads in a new process and draws."""

import re

import pytest
from processes import run_python

pytest.importorskip("sklearn", reason="the digits come with scikit-learn: pip install '.[examples]'")
pytest.importorskip("matplotlib", reason="the picture is drawn by matplotlib: pip install '.[examples]'")


@pytest.mark.slow
def test_the_main_job_reaches_its_accuracy_and_leaves_weights_and_a_picture(tmp_path):
    done = run_python("-m", "sampan", "example", "digits", "--output", str(tmp_path / "out"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    reached = re.search(r"reloaded: test accuracy ([\d.]+)%", done.stdout)
    assert reached, done.stdout
    assert float(reached.group(1)) >= 98.5
    assert re.search(r"loss \d+\.\d+  test accuracy [\d.]+%  [\d,]+ samples/s  ETA \d+ s", done.stdout)
    assert (tmp_path / "out" / "digits.pdparams").stat().st_size > 10_000
    assert (tmp_path / "out" / "digits.png").read_bytes().startswith(b"\x89PNG")


def test_missing_the_target_is_a_failing_exit_status(tmp_path):
    arguments = ("--epochs", "1", "--target", "1.01", "--output", str(tmp_path / "out"))
    done = run_python("-m", "sampan", "example", "digits", *arguments, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "is below the target 101.00%" in done.stderr
