"""Outcomes as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness import Outcome


def quantity(value: float | None, unit: str) -> str:
    """A measurement with three digits and a fitting unit."""
    if value is None:
        return "-"
    if unit != "s":
        return f"{three_digits(value)} {unit}"
    for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{three_digits(value / factor)} {name}"
    return f"{value * 1e9:.0f} ns"


def three_digits(value: float) -> str:
    """The number with three digits, without an exponent."""
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"


def rate(outcome: Outcome) -> str:
    """The rate of sampan (without it: of the fastest), for cases that know their work."""
    medians = [m for p in outcome.samples if (m := outcome.median(p)) is not None]
    seconds = outcome.median("sampan") or min(medians, default=None)
    if seconds is None or outcome.unit != "s":
        return ""
    if outcome.flops:
        return f"{outcome.flops / seconds * 1e-9:.0f} GFLOP/s"
    return f"{outcome.size_bytes / seconds * 1e-9:.1f} GB/s" if outcome.size_bytes else ""


def verdict(outcome: Outcome) -> str:
    """The ratio against its target, and what is wrong."""
    parts = []
    ratio, missed = outcome.ratio(), outcome.missed()
    if ratio is not None:
        parts.append(f"{ratio:.2f} x")
    if (library := outcome.ratio_of(("onednn",))) is not None:
        parts.append(f"{library:.2f} x of oneDNN")
    if missed is not None:
        parts.append(f"MISSED, {' and '.join(missed)}" if missed else "ok")
    parts += [f"{p} differs" for p in outcome.differing]
    parts += [f"{p}: {e}" for p, e in outcome.errors.items()]
    return "; ".join(parts)


def progress(outcome: Outcome) -> str:
    """One line while the run goes on."""
    medians = "  ".join(f"{p} {quantity(outcome.median(p), outcome.unit)}" for p in outcome.samples)
    return f"{outcome.name}: {medians}  {verdict(outcome)}"


def table(outcomes: Sequence[Outcome], names: Sequence[str]) -> str:
    """All rows, grouped, in columns."""
    rows = [["case", *names, "rate", "peer / sampan"]]
    for outcome in outcomes:
        rows.append([outcome.name, *(quantity(outcome.median(n), outcome.unit) for n in names), rate(outcome), verdict(outcome)])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for index, row in enumerate(rows):
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:-1], widths[1:-1], strict=True)), row[-1]]
        lines.append("  ".join(cells).rstrip())
        if index == 0 or (index < len(outcomes) and outcomes[index].group != outcomes[index - 1].group):
            lines.append("-" * (sum(widths) + 2 * len(widths)))
    return "\n".join(lines)


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(outcomes: Sequence[Outcome], names: Sequence[str], threads: int, rounds: int) -> str:
    """The geometric mean of every peer over sampan, by group, and how many targets are reached."""
    lines = [f"{threads} threads, medians of {rounds} rounds; x: the fastest peer's time over sampan's, above 1 sampan is faster"]
    for group in dict.fromkeys(o.group for o in outcomes):
        mine = [o for o in outcomes if o.group == group]
        means = []
        for name in names:
            pairs = [(o.median(name), o.median("sampan")) for o in mine]
            ratios = [theirs / ours for theirs, ours in pairs if theirs and ours]
            if name != "sampan" and ratios:
                means.append(f"{name} {geometric_mean(ratios):.2f} x")
        told = [o.is_reached() for o in mine if o.is_reached() is not None]
        if means or told:
            lines.append(f"{group}: {', '.join(means) or 'no peer'}; {sum(told)} of {len(told)} targets reached")
    return "\n".join(lines)


def as_json(outcomes: Sequence[Outcome], names: Sequence[str], threads: int, rounds: int) -> dict[str, Any]:
    """Everything that was measured."""
    return {
        "threads": threads,
        "rounds": rounds,
        "peers": list(names),
        "cases": [
            {
                "name": o.name,
                "group": o.group,
                "unit": o.unit,
                "medians": {n: o.median(n) for n in names},
                "samples": o.samples,
                "ratio": o.ratio(),
                "target": o.target,
                "most": o.most,
                "reached": o.is_reached(),
                "differing": o.differing,
                "errors": o.errors,
            }
            for o in outcomes
        ],
    }
