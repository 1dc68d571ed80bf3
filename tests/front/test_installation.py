"""Where the runtime finds oneDNN's library, and what is said where it does not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
