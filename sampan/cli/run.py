"""``sampan run``: a script that says ``import paddle`` runs unmodified, on sampan."""

from __future__ import annotations

import argparse
import os
import runpy
import sys

from sampan import paddle_alias

from .command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", action="store_true", dest="is_module", help="SCRIPT is a module's name, as in python -m")
    parser.add_argument("script", metavar="SCRIPT", help="the script to run")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="the script's own arguments")


def _run(parsed: argparse.Namespace) -> int:
    if not parsed.is_module and not os.path.exists(parsed.script):
        print(f"sampan run: there is no file {parsed.script!r}", file=sys.stderr)
        return 2
    paddle_alias.install()
    sys.argv = [parsed.script, *parsed.arguments]
    if parsed.is_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(parsed.script, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(parsed.script))
        runpy.run_path(parsed.script, run_name="__main__")
    return 0


COMMAND = Command("run", "run a script that imports paddle, unmodified", _configure, _run)
