"""The command ``sampan``: one sub-command a module, all of them listed in ``COMMANDS``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sampan.version import full_version

from . import draw, example, info, run
from .command import Command

__all__ = ["COMMANDS", "Command", "main"]

COMMANDS: tuple[Command, ...] = (run.COMMAND, info.COMMAND, draw.COMMAND, example.COMMAND)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(prog="sampan", description="A deep-learning framework with PaddlePaddle's API.")
    parser.add_argument("--version", action="version", version=f"sampan {full_version}")
    subparsers = parser.add_subparsers(title="commands", metavar="command", required=True)
    for command in COMMANDS:
        subparser = subparsers.add_parser(command.name, help=command.summary, description=command.summary)
        command.configure(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (``sys.argv``'s by default); the process's exit status."""
    parsed = build_parser().parse_args(arguments)
    status: int = parsed.run(parsed)
    return status
