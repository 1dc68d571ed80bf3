"""``sampan info``: what this installation is made of and what it found on this machine."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
from pathlib import Path

from sampan.base import flags
from sampan.version import full_version

from .command import Command

# Instruction sets that decide which kernels are generated or which oneDNN kernels run.
_CPU_FEATURES = re.compile(r"sse4_2|avx|avx2|fma|f16c|avx512\w+|avx_vnni|amx_\w+")


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
    """The processor's name, its cores for this process, and the instruction sets that matter."""
    name, features = platform.processor() or platform.machine(), ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        text = info.read_text(encoding="utf-8", errors="replace")
        found = dict(re.findall(r"^(model name|flags)\s*:\s*(.*)$", text, re.MULTILINE))
        name = found.get("model name", name)
        features = " ".join(f for f in sorted(set(found.get("flags", "").split())) if _CPU_FEATURES.fullmatch(f))
    return {"name": name, "cores": str(len(os.sched_getaffinity(0))), "features": features or "unknown"}


def kernel_cache() -> dict[str, str]:
    """Where compiled kernels are kept, how many and how large they are."""
    directory = flags.kernel_cache_directory()
    sizes = [p.stat().st_size for p in directory.rglob("*") if p.is_file()] if directory.is_dir() else []
    return {"location": str(directory), "files": str(len(sizes)), "size": f"{sum(sizes) / 2**20:.1f} MiB"}


def runtime() -> dict[str, str]:
    """The compiled runtime's file, and its threads."""
    spec = importlib.util.find_spec("sampan._rt")
    threads = flags.NUM_THREADS.value or len(os.sched_getaffinity(0))
    return {"module": (spec.origin if spec else None) or "not built", "threads": str(threads)}


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
