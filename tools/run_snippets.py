#!/usr/bin/env python3
"""Runs the Python blocks of Markdown pages, in order, one namespace a page; a ``text`` block right after one is its output.

Usage: ``run_snippets.py README.md docs/guide.md``. What snippets write goes into a folder of its own, which is removed.
A traceback names the page and its line.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Snippet:
    """One block: the line of its first line of code, its language, its text, and the line after its closing fence."""

    line: int
    language: str
    text: str
    end: int


def blocks_of(text: str) -> Iterator[Snippet]:
    """The fenced blocks of a page."""
    lines = text.splitlines()
    begin, language = None, ""
    for number, line in enumerate(lines):
        if line.startswith("```"):
            if begin is None:
                begin, language = number + 1, line[3:].strip()
            else:
                yield Snippet(begin + 1, language, "\n".join(lines[begin:number]) + "\n", number + 1)
                begin = None
    if begin is not None:
        raise ValueError(f"the block that starts at line {begin} is never closed")


def run_page(path: Path) -> list[str]:
    """Run the page's Python blocks; the failures, each a text with the page's line."""
    page = path.read_text(encoding="utf-8")
    lines, blocks = page.splitlines(), list(blocks_of(page))
    namespace: dict[str, object] = {"__name__": "__main__"}
    failures = []
    for position, block in enumerate(blocks):
        if block.language != "python":
            continue
        output = io.StringIO()
        code = "\n" * (block.line - 1) + block.text  # so that line numbers are the page's
        linecache.cache[str(path)] = (
            len(code),
            None,
            code.splitlines(keepends=True),
            str(path),
        )  # what reads functions' sources finds them
        try:
            with contextlib.redirect_stdout(output):
                exec(compile(code, str(path), "exec"), namespace)
        except Exception:
            failures.append(f"{path}:{block.line}: {traceback.format_exc()}")
            break  # later blocks build on this one
        following = blocks[position + 1] if position + 1 < len(blocks) else None
        if following and following.language == "text" and not any(s.strip() for s in lines[block.end : following.line - 2]):
            if output.getvalue().rstrip() != following.text.rstrip():
                failures.append(f"{path}:{following.line}: the page says\n{following.text}\nand it printed\n{output.getvalue()}")
    return failures


def main(paths: list[str]) -> int:
    """Run every page; 1 when a block fails or prints something else than the page says."""
    pages = [Path(path).resolve() for path in paths]
    begun_in = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            failures = [failure for page in pages for failure in run_page(page)]
        finally:
            os.chdir(begun_in)
    print("\n".join(failures) or f"{len(paths)} pages: every snippet runs")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
