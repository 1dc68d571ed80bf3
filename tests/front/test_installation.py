"""Where the runtime finds oneDNN's library, and what is said where it does not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import is_sanitized

from sampan import _rt
from sampan.base.shared_libraries import load_missing_library

_MODULE = Path(_rt.__file__)
_IN_SOURCES = (_MODULE.parents[1] / "csrc").is_dir()


def _missing(name: str) -> ImportError:
    return ImportError(f"{name}: cannot open shared object file: No such file or directory")


def test_a_package_that_was_moved_finds_the_library_of_its_environment(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "deep" / "folder"
    shutil.copytree(_MODULE.parent, folder / "sampan", ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sampan; print(sampan.__file__); print(float(sampan.matmul(sampan.ones([2, 3]), sampan.ones([3, 2])).sum()))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(folder)},
        timeout=300,
    )
    assert run.stdout.splitlines() == [str(folder / "sampan" / "__init__.py"), "12.0"], run.stderr


def test_the_library_of_the_installed_package_is_loaded() -> None:
    load_missing_library(_missing("libdnnl.so.3"))


def test_a_library_that_nobody_brings_is_named_with_its_package() -> None:
    with pytest.raises(ImportError, match=r"libdnnl\.so\.999, which was not found(.|\n)*pip install onednn-cpu-gomp"):
        load_missing_library(_missing("libdnnl.so.999"))


@pytest.mark.parametrize("text", ["libgomp.so.1: cannot open shared object file: No such file or directory", "no libdnnl.so.3"])
def test_other_failures_of_the_import_are_raised_as_they_were(text: str) -> None:
    error = ImportError(text)
    with pytest.raises(ImportError) as found:
        load_missing_library(error)
    assert found.value is error


@pytest.mark.skipif(_IN_SOURCES, reason="a development build names the environment that it was built in")
def test_an_installed_runtime_looks_beside_itself_only() -> None:
    text = subprocess.run(["readelf", "-d", str(_MODULE)], capture_output=True, text=True, check=True).stdout
    folders = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text)
    assert folders
    assert all(folder.startswith("$ORIGIN/") for line in folders for folder in filter(None, line.split(":"))), folders


def _on_processor(model: str, code: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(_MODULE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "FLAGS_kernel_cache_mb": "0",
        "OMP_NUM_THREADS": "1",
    }
    command = ["qemu-x86_64", "-cpu", model, sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=600)


_needs_emulator = pytest.mark.skipif(
    shutil.which("qemu-x86_64") is None or is_sanitized(), reason="runs on emulated processors where there is qemu-user"
)

_TRAINING = """
import sampan as paddle
paddle.seed(0)
layers = [paddle.nn.Conv2D(1, 4, 3), paddle.nn.BatchNorm2D(4), paddle.nn.GELU(), paddle.nn.MaxPool2D(2), paddle.nn.Flatten()]
net = paddle.nn.Sequential(*layers, paddle.nn.Linear(36, 5))
optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())
x, y = paddle.rand([8, 1, 8, 8]), paddle.arange(8) % 5
losses = []
for step in range(3):
    loss = paddle.nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    losses.append(float(loss))
outputs, _ = paddle.nn.LSTM(4, 8)(paddle.rand([2, 5, 4]))
outputs.sum().backward()
paddle.rand([9]).astype("float16").astype("float32").sort().cumsum()
print("learns" if losses[0] > losses[1] > losses[2] else losses)
"""


@_needs_emulator
@pytest.mark.parametrize("model", ["Nehalem", "SandyBridge", "Haswell"])
def test_training_uses_no_instruction_that_the_processor_lacks(model: str) -> None:
    run = _on_processor(model, _TRAINING)
    assert (run.returncode, run.stdout) == (0, "learns\n"), run.stderr


@_needs_emulator
def test_a_processor_without_what_onednn_needs_is_refused_at_the_import() -> None:
    code = f"""
import importlib.util
spec = importlib.util.spec_from_file_location("_rt", {str(_MODULE)!r})
spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""
    run = _on_processor("core2duo", code)
    assert run.returncode == 1
    assert "ImportError: sampan needs a processor with SSE4.1" in run.stderr
