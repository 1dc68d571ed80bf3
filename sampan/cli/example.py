"""``sampan example``: run one of the programs in ``sampan.examples``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

from sampan import examples

from .command import Command


def _names() -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(examples.__path__))


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=_names(), help="the example")
    parser.add_argument(
        "arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="the example's own arguments (--help lists them)"
    )


def _run(parsed: argparse.Namespace) -> int:
    status: int = importlib.import_module(f"sampan.examples.{parsed.name}").main(parsed.arguments)
    return status


COMMAND = Command("example", "run an example: " + ", ".join(_names()), _configure, _run)
