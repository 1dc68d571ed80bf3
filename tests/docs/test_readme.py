"""The README's and the guides' snippets run as they are printed."""

from pathlib import Path

import pytest
from processes import run_python

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_snippets_of_the_page_run(page, tmp_path):
    done = run_python(str(ROOT / "tools" / "run_snippets.py"), str(page), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_names_every_make_target_it_needs():
    text, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    for target in ("digits", "test"):
        assert f"make {target}" in text
        assert f"\n{target}: venv" in makefile
