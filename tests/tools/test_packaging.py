"""What goes into a source distribution."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


def test_what_was_built_stays_out_of_the_source_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of another Python would be installed with the wheel that is made of it."""
    backend = pytest.importorskip("scikit_build_core.build")
    tree = tmp_path / "tree"
    sources = ["csrc/base/a.cpp", "sampan/nn/layer.py", "tests/test_a.py"]
    built = ["build/dev/CMakeFiles/_rt.dir/csrc/base/a.cpp.o", "build/tree/sampan/nn/layer.py", "sampan/_rt.cpython-399.so"]
    for name in [*sources, *built]:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("something")
    copied = ["pyproject.toml", ".gitignore", "README.md", "LICENSE", "CMakeLists.txt", "sampan/version.py"]
    for name in copied:
        shutil.copy(_ROOT / name, tree / name)
    monkeypatch.chdir(tree)
    with tarfile.open(tmp_path / backend.build_sdist(str(tmp_path))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names == {*sources, *copied, "PKG-INFO"}
