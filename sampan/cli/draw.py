"""``sampan draw``: a model of a Python file as a picture."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from typing import Any

import sampan
from sampan.base.errors import ArgumentError, SampanError, message

from .command import Command


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``sampan draw``."""
    parser.add_argument("model", help="FILE.py:NAME, a Layer (or what gives one when called), a static Program, or a TrainStep")
    parser.add_argument("path", help="where the picture goes: an .html or .svg file")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="SIZES",
        help="an input's shape, 1,3,224,224, with :DTYPE unless float32; repeat it",
    )
    parser.add_argument("--stage", choices=["recorded", "kernels"], default="recorded", help="as it was written, or kernels")
    parser.add_argument("--times", action="store_true", help="run the Layer and show times")


def run(arguments: argparse.Namespace) -> int:
    """Write the picture."""
    try:
        thing = _named(arguments.model)
        inputs = [_input(text) for text in arguments.input]
        sampan.profiler.draw(thing, arguments.path, inputs, stage=arguments.stage, profile=arguments.times or None)
    except (SampanError, OSError) as error:
        print(f"sampan draw: {error}", file=sys.stderr)
        return 1
    return 0


def _named(text: str) -> Any:
    path, _, name = text.rpartition(":")
    if not path or not name:
        raise ArgumentError(message(f"the model is {text!r}", "a file and a name in it are needed", "write FILE.py:NAME"))
    names = runpy.run_path(path)
    if name not in names:
        raise ArgumentError(message(f"{path} defines no {name!r}", f"it defines {', '.join(n for n in names if n[0] != '_')}"))
    found = names[name]
    return found() if isinstance(found, type) or type(found).__name__ == "function" else found


def _input(text: str) -> Any:
    sizes, _, dtype = text.partition(":")
    try:
        shape: Sequence[int] = [int(n) for n in sizes.split(",") if n.strip()]
    except ValueError as error:
        raise ArgumentError(
            message(f"--input is {text!r}", "sizes are ints, with commas between", "write 1,3,224,224")
        ) from error
    return sampan.zeros(shape, dtype or "float32")


COMMAND = Command("draw", "Draw a model of a Python file as a picture.", configure, run)
