"""``sampan info``: what this installation is made of and what it found on this machine."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
from pathlib import Path

from sampan import _rt
from sampan.base import flags
from sampan.version import full_version

from .command import Command


def versions() -> dict[str, str]:
    """sampan, Python, and the installed version of every ordinary dependency."""
    found = {"sampan": full_version, "python": platform.python_version()}
    for name, extra in _requirements():
        if not extra:
            found[name] = _installed_version(name) or "not found"
    return found


def optional_parts() -> dict[str, str]:
    """The libraries of the extras: their installed versions, or ``not found``."""
    return {name: _installed_version(name) or "not found" for name, extra in _requirements() if extra}


def _requirements() -> list[tuple[str, bool]]:
    try:
        lines = importlib.metadata.requires("sampan") or []
    except importlib.metadata.PackageNotFoundError:
        return []  # run from the source tree, not installed
    names = {}
    for line in lines:
        match = re.match(r"[\w.-]+", line)
        if match:
            names[match.group()] = "extra ==" in line
    return sorted(names.items())


def _installed_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def cpu() -> dict[str, str]:
    """The processor's name, the cores this process may use, and the instruction sets that the runtime sees."""
    name = platform.processor() or platform.machine()
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        found = re.search(r"^model name\s*:\s*(.*)$", listing.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        name = found.group(1) if found else name
    return {"name": name, "cores": str(len(os.sched_getaffinity(0))), "features": " ".join(_rt.cpu_info()["flags"])}


def kernel_cache() -> dict[str, str]:
    """Where compiled kernels are kept, how many and how large they are."""
    location = flags.kernel_cache_directory()
    if location is None:
        return {"location": "none: this user has no home folder (FLAGS_kernel_cache_dir names another)"}
    directory = Path(location)
    sizes = [p.stat().st_size for p in directory.rglob("*") if p.is_file()] if directory.is_dir() else []
    return {"location": str(directory), "files": str(len(sizes)), "size": f"{sum(sizes) / 2**20:.1f} MiB"}


def runtime() -> dict[str, str]:
    """The compiled runtime's file, its oneDNN, and its threads."""
    found = _rt.cpu_info()
    return {
        "module": str(_rt.__file__),
        "oneDNN": ".".join(map(str, found["onednn_version"])),
        "oneDNN instruction set": found["onednn_isa"],
        "threads": str(found["threads"]),
    }


def collect() -> dict[str, dict[str, str]]:
    """Everything, by section."""
    return {
        "versions": versions(),
        "cpu": cpu(),
        "runtime": runtime(),
        "kernel cache": kernel_cache(),
        "optional parts": optional_parts(),
    }


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _run(parsed: argparse.Namespace) -> int:
    sections = collect()
    if parsed.json:
        print(json.dumps(sections, indent=2))
        return 0
    for title, rows in sections.items():
        print(title)
        width = max((len(n) for n in rows), default=0)
        for name, value in rows.items():
            print(f"  {name:<{width}}  {value}")
    return 0


COMMAND = Command("info", "versions, CPU features, threads, kernel cache, optional parts", _configure, _run)
