"""tools/run_snippets.py runs a page's blocks and compares what they print."""

from pathlib import Path

import pytest
import run_snippets


def failures(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    return run_snippets.run_page(page)


def test_blocks_share_one_namespace(tmp_path):
    assert failures(tmp_path, "```python\nx = 2\n```\ntext\n```python\nif x != 2:\n    raise ValueError\n```\n") == []


def test_other_languages_are_left_alone(tmp_path):
    assert failures(tmp_path, "```sh\nexit 1\n```\n") == []


def test_a_failure_names_the_line_of_the_page(tmp_path):
    (failure,) = failures(tmp_path, "# A page\n\n```python\nx = 1\nx / 0\n```\n")
    assert "page.md:4:" in failure
    assert "line 5" in failure
    assert "ZeroDivisionError" in failure


def test_output_equal_to_the_text_block_passes(tmp_path):
    assert failures(tmp_path, "```python\nprint(3)\n```\n\n```text\n3\n```\n") == []


def test_output_that_differs_fails_at_the_text_block(tmp_path):
    (failure,) = failures(tmp_path, "```python\nprint(4)\n```\n\n```text\n3\n```\n")
    assert "page.md:6:" in failure
    assert "4" in failure


def test_a_text_block_after_prose_is_no_output(tmp_path):
    assert failures(tmp_path, "```python\nprint(4)\n```\nprose\n```text\n3\n```\n") == []


def test_an_open_block_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="line 2 is never closed"):
        failures(tmp_path, "x\n```python\n")


def test_what_snippets_write_is_not_left_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.md").write_text("```python\nopen('written.txt', 'w').close()\n```\n")
    assert run_snippets.main(["page.md"]) == 0
    assert [p.name for p in tmp_path.iterdir()] == ["page.md"]
    assert Path.cwd() == tmp_path
