#!/usr/bin/env python3
"""Speed and memory side by side: every framework in its own process of its own environment, commanded in turns.

One round measures each framework once, right after the other, so that a slow moment of the machine hits them all; the order turns
from round to round. The table shows medians, and the ratio of the fastest peer to sampan. Results that differ are marked.

Example:
    python benchmarks/harness.py --torch /path/to/python --paddle /path/to/python --groups eager,matmul --json result.json
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cases
import peers
import report
from cases.case import Case

_WORKER = Path(__file__).with_name("worker.py")
_SETTLE_S = 0.3  # idle threads of the framework that ran before spin for up to 0.2 s, and would take a core from the next
_FIRST_CALLS = 20  # calls after the first one, over which the peak of memory is taken
_MODEL_CALLS = 4  # the same for the larger models


class WorkerProcess:
    """A worker of one peer and the pipe to it."""

    def __init__(self, peer: peers.Peer, threads: int, verbose: bool, extra: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [peer.python, str(_WORKER), peer.name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if verbose else subprocess.DEVNULL,
            text=True,
            env=peers.environment(threads, extra or {}),
        )

    def ask(self, command: str, **arguments: object) -> dict[str, Any]:
        """The answer to one command; an error when the process has died."""
        try:
            self.process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"error": f"the worker ended with status {self.process.wait()}"}

    def close(self) -> None:
        """End the worker."""
        with contextlib.suppress(BrokenPipeError):  # a dead worker never read its last command
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@dataclass
class Outcome:
    """What one row of the table is made of: measurements of each peer, what went wrong, whose results differ."""

    name: str
    group: str
    unit: str = "s"
    target: float | None = None  # least ratio of the fastest peer to sampan
    most: float | None = None  # or: most that sampan may take
    against: tuple[str, ...] = ()
    flops: float = 0.0
    size_bytes: float = 0.0
    library_target: float | None = None  # least ratio of oneDNN to sampan
    samples: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)

    def median(self, peer: str) -> float | None:
        """The peer's median measurement."""
        return statistics.median(self.samples[peer]) if self.samples.get(peer) else None

    def ratio(self) -> float | None:
        """The fastest (or smallest) of the peers it is held against, over sampan: above 1, sampan is better."""
        return self.ratio_of(self.against)

    def ratio_of(self, names: Sequence[str]) -> float | None:
        """The fastest of these peers over sampan; None when one side is missing."""
        others = [m for p in names if (m := self.median(p)) is not None]
        mine = self.median("sampan")
        return min(others) / mine if others and mine else None

    def missed(self) -> list[str] | None:
        """The targets that are not reached, in words; None when none can be told."""
        if self.most is not None:
            mine = self.median("sampan")
            return None if mine is None else [] if mine <= self.most else [f"at most {report.quantity(self.most, self.unit)}"]
        told = [
            (ratio, least, whom)
            for ratio, least, whom in (
                (self.ratio(), self.target, ""),
                (self.ratio_of(("onednn",)), self.library_target, " of oneDNN"),
            )
            if ratio is not None and least is not None
        ]
        return [f"at least {least:g} x{whom}" for ratio, least, whom in told if ratio < least] if told else None

    def is_reached(self) -> bool | None:
        """Whether the target is reached; None when it cannot be told."""
        missed = self.missed()
        return None if missed is None else not missed


def differing_peers(digests: dict[str, list[list[float]]], tolerance: float) -> list[str]:
    """The peers whose results differ from the first one's by more than the tolerance, relative to the results' magnitude."""
    given = {p: d for p, d in digests.items() if any(d)}
    if not given:
        return []
    reference = next(iter(given.values()))

    def differs(other: list[list[float]]) -> bool:
        if [len(d) for d in other] != [len(d) for d in reference]:
            return True
        pairs = [(a, b) for one, two in zip(reference, other, strict=True) for a, b in zip(one, two, strict=True)]
        # Digests alternate sum and sum of magnitudes; the latter is the scale of both.
        scales = [max(abs(pairs[k | 1][0]), 1e-12) for k in range(len(pairs))]
        return any(not abs(a - b) <= tolerance * s for (a, b), s in zip(pairs, scales, strict=True))

    return [p for p, d in given.items() if differs(d)]


def measure(case: Case, workers: dict[str, WorkerProcess], rounds: int) -> Outcome:
    """The case in every worker, in turns."""
    outcome = Outcome(
        case.name, case.group, "s", case.target, None, case.against, case.flops, case.size_bytes, case.library_target
    )
    digests = {}
    for name, worker in workers.items():
        answer = worker.ask("prepare", name=case.name)
        if "error" in answer:
            outcome.errors[name] = answer["error"]
        elif "digests" in answer:
            digests[name] = answer["digests"]
    outcome.differing = differing_peers(digests, case.tolerance)
    order = list(digests)
    for _ in range(rounds):
        for name in order:
            time.sleep(_SETTLE_S)
            answer = workers[name].ask("run")
            if "error" in answer:
                outcome.errors[name] = answer["error"]
            else:
                outcome.samples.setdefault(name, []).append(answer["seconds"])
        order = order[1:] + order[:1]
    return outcome


def measure_start(found: list[peers.Peer], threads: int, rounds: int, verbose: bool) -> list[Outcome]:
    """Fresh processes: import, first training step with a cold and a warm kernel cache, peak memory."""
    everyone = tuple(p.name for p in found if p.name != "sampan")
    outcomes = {
        "import_s": Outcome("import", "start", most=0.5, against=everyone),
        "cold_s": Outcome("first LeNet step, cold kernel cache", "start", most=5.0, against=everyone),
        "warm_s": Outcome("first LeNet step, warm kernel cache", "start", most=1.0, against=everyone),
        **memory_outcomes("LeNet steps"),
    }
    for _ in range(rounds):
        for peer in found:
            with tempfile.TemporaryDirectory() as cache:
                for first in ("cold_s", "warm_s"):
                    extra = kept_in(cache, peer)
                    answer = ask_once(peer, threads, verbose, cases.LENET, _FIRST_CALLS, extra)
                    answer[first] = answer.pop("first_s", None)
                    record(answer, peer, outcomes)
    return list(outcomes.values())


# Where each framework keeps what it compiled, from process to process; JAX keeps nothing.
_CACHES = {"sampan": "FLAGS_kernel_cache_dir", "torch": "TORCHINDUCTOR_CACHE_DIR"}


def kept_in(cache: str, peer: peers.Peer) -> dict[str, str]:
    """The environment in which the peer keeps what it compiles in this folder."""
    return {_CACHES[peer.name]: cache} if peer.name in _CACHES else {}


def measure_compilation(case: Case, found: list[peers.Peer], threads: int, rounds: int, verbose: bool) -> list[Outcome]:
    """Compiling one training step in fresh processes: with an empty cache, again with the cache it left, and the memory it runs in."""
    outcomes = {
        "cold_s": Outcome(f"{case.name}: compilation, cold", "compilation", target=10.0, against=("torch",)),
        "warm_s": Outcome(f"{case.name}: compilation, warm", "compilation", most=1.0, against=("torch",)),
        "peak_mib": Outcome(f"{case.name}: peak memory", "compilation", "MiB", target=1.25, against=("torch-eager",)),
    }
    for _ in range(rounds):
        for peer in found:
            with tempfile.TemporaryDirectory() as cache:
                extra = kept_in(cache, peer)
                for key in ("cold_s", "warm_s"):
                    answer = ask_once(peer, threads, verbose, case.name, _MODEL_CALLS, extra)
                    if peer.name == peers.framework_of(peer.name):
                        answer[key] = answer.pop("compile_s", None)
                    if key == "cold_s":
                        answer.pop("peak_mib", None)  # a compiler's own memory is not the step's
                    record(answer, peer, outcomes)
    return list(outcomes.values())


def measure_memory(case: Case, found: list[peers.Peer], threads: int, rounds: int, verbose: bool) -> list[Outcome]:
    """The peak memory of a few steps of the case, each framework in fresh processes."""
    outcomes = memory_outcomes(f"{case.name.partition(',')[0]}, steps")
    for _ in range(rounds):
        for peer in found:
            record(ask_once(peer, threads, verbose, case.name, _MODEL_CALLS, {}), peer, outcomes)
    return list(outcomes.values())


def memory_outcomes(what: str) -> dict[str, Outcome]:
    """The rows of peak memory, by the key of a worker's answer."""
    return {
        "peak_mib": Outcome(f"peak memory of {what}, whole process", "start", "MiB", 1.0, against=("torch",)),
        "above_import_mib": Outcome(f"peak memory of {what}, above import", "start", "MiB", 1.0, against=("torch",)),
    }


def ask_once(peer: peers.Peer, threads: int, verbose: bool, name: str, calls: int, extra: dict[str, str]) -> dict[str, Any]:
    """A fresh process's answer to ``once``."""
    worker = WorkerProcess(peer, threads, verbose, extra)
    try:
        return worker.ask("once", name=name, calls=calls)
    finally:
        worker.close()


def record(answer: dict[str, Any], peer: peers.Peer, outcomes: dict[str, Outcome]) -> None:
    """Put an answer's numbers, or its error, into the rows."""
    for key, outcome in outcomes.items():
        if "error" in answer:
            outcome.errors[peer.name] = answer["error"]
        elif answer.get(key) is not None:
            outcome.samples.setdefault(peer.name, []).append(answer[key])


def select(groups: str | None, pattern: str | None) -> list[Case]:
    """The cases of these groups whose name holds the pattern."""
    wanted = groups.split(",") if groups else None
    chosen = [c for c in cases.CASES if wanted is None or c.group in wanted]
    return [c for c in chosen if pattern is None or re.search(pattern, c.name)]


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in dict.fromkeys(map(peers.framework_of, peers.NAMES)):
        parser.add_argument(f"--{name}", metavar="PYTHON", help=f"the interpreter that has it (default: {peers.variable(name)})")
    parser.add_argument("--peers", default="sampan,torch,paddle", help=f"which take part, of {', '.join(peers.NAMES)}")
    groups = ", ".join([*dict.fromkeys(c.group for c in cases.CASES), "start", "compilation"])
    parser.add_argument("--groups", help=f"only these, comma separated: {groups}")
    parser.add_argument("--match", metavar="REGEX", help="only cases whose name matches")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each peer")
    parser.add_argument("--threads", type=int, default=2, help="threads and cores of each worker")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement too")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    parser.add_argument("--verbose", action="store_true", help="show what the workers print")
    return parser


def find_peers(parsed: argparse.Namespace) -> list[peers.Peer]:
    """The peers that take part and whose interpreter is known; the others are named on stderr."""
    found = []
    for name in parsed.peers.split(","):
        if name not in peers.NAMES:
            raise SystemExit(f"unknown peer {name!r}; the peers are {', '.join(peers.NAMES)}")
        peer = peers.find(name, getattr(parsed, peers.framework_of(name)))
        if peer is None:
            print(f"{name} is left out: give its interpreter with --{name} or {peers.variable(name)}", file=sys.stderr)
        else:
            found.append(peer)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when a target is missed or a worker of sampan fails."""
    parsed = build_parser().parse_args(arguments)
    chosen = select(parsed.groups, parsed.match)
    if parsed.list:
        print("\n".join(f"{c.group:<12} {c.name}" for c in chosen))
        return 0
    found = find_peers(parsed)
    threads = min(parsed.threads, len(os.sched_getaffinity(0)))
    outcomes = []
    workers = {p.name: WorkerProcess(p, threads, parsed.verbose) for p in found} if chosen else {}
    try:
        for case in chosen:
            outcomes.append(measure(case, workers, parsed.rounds))
            print(report.progress(outcomes[-1]), file=sys.stderr, flush=True)
    finally:
        for worker in workers.values():
            worker.close()
    if not parsed.match and (not parsed.groups or "start" in parsed.groups.split(",")):
        rounds = max(1, parsed.rounds // 2)
        outcomes += measure_start(found, threads, rounds, parsed.verbose)
        for case in select("models", None):
            outcomes += measure_memory(case, found, threads, rounds, parsed.verbose)
            print(report.progress(outcomes[-1]), file=sys.stderr, flush=True)
    if parsed.groups and "compilation" in parsed.groups.split(","):
        for case in select("programs", parsed.match):
            outcomes += measure_compilation(case, found, threads, max(1, parsed.rounds // 2), parsed.verbose)
            for outcome in outcomes[-3:]:
                print(report.progress(outcome), file=sys.stderr, flush=True)
    names = [p.name for p in found]
    print(report.table(outcomes, names))
    print(report.summary(outcomes, names, threads, parsed.rounds))
    if parsed.json:
        parsed.json.write_text(json.dumps(report.as_json(outcomes, names, threads, parsed.rounds), indent=1) + "\n")
    return 1 if any(o.is_reached() is False or "sampan" in o.errors for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
