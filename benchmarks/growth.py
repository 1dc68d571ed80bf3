#!/usr/bin/env python3
"""Memory over many training steps: each small example is trained in a process of its own, and its resident memory must not grow.

Memory is read after the first tenth of the steps, when caches are full, and at the end.

Example:
    python benchmarks/growth.py --steps 10000
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_MOST_GROWTH = 0.01


def _perceptron(p: Any) -> tuple[Any, Callable[[Any], Any], Callable[[int], tuple[Any, ...]]]:
    model = p.nn.Sequential(p.nn.Linear(16, 32), p.nn.ReLU(), p.nn.Linear(32, 4))
    return model, model, lambda n: (n, 16)


def _convolutions(p: Any) -> tuple[Any, Callable[[Any], Any], Callable[[int], tuple[Any, ...]]]:
    nn = p.nn
    model = nn.Sequential(
        nn.Conv2D(1, 4, 3, padding=1),
        nn.BatchNorm2D(4),
        nn.ReLU(),
        nn.MaxPool2D(2),
        nn.Dropout(0.1),
        nn.Flatten(),
        nn.Linear(64, 4),
    )
    return model, model, lambda n: (n, 1, 8, 8)


def _recurrent(p: Any) -> tuple[Any, Callable[[Any], Any], Callable[[int], tuple[Any, ...]]]:
    lstm, head = p.nn.LSTM(6, 12, direction="bidirect"), p.nn.Linear(24, 4)
    model = p.nn.LayerList([lstm, head])
    return model, lambda x: head(lstm(x)[0][:, -1]), lambda n: (n, 7, 6)


def _transformer(p: Any) -> tuple[Any, Callable[[Any], Any], Callable[[int], tuple[Any, ...]]]:
    encoder = p.nn.TransformerEncoder(p.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1), 1)
    head = p.nn.Linear(16, 4)
    return p.nn.LayerList([encoder, head]), lambda x: head(encoder(x).mean(1)), lambda n: (n, 5, 16)


def _sparse(p: Any) -> tuple[Any, Callable[[Any], Any], Callable[[int], tuple[Any, ...]]]:
    table, head = p.nn.Embedding(500, 8, sparse=True), p.nn.Linear(8, 4)

    def run(x: Any) -> Any:
        return head(table((x.abs() * 100).astype("int64")).mean(1))

    return p.nn.LayerList([table, head]), run, lambda n: (n, 6)


EXAMPLES = {
    "perceptron": _perceptron,
    "convolutions": _convolutions,
    "recurrent": _recurrent,
    "transformer": _transformer,
    "sparse embedding": _sparse,
}
_BATCHES = (8, 8, 8, 5)  # the last batch of an epoch is a smaller one


def resident_kib() -> int:
    """This process's resident memory."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def train(name: str, steps: int) -> dict[str, float]:
    """Resident memory after a tenth of the steps and at their end, and the losses there."""
    import sampan as paddle

    paddle.seed(0)
    rng = np.random.default_rng(0)
    model, run, shape_of = EXAMPLES[name](paddle)
    optimizer = paddle.optimizer.Adam(
        1e-3, parameters=model.parameters(), grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0), lazy_mode=True
    )
    measured = []
    for step in range(1, steps + 1):
        count = _BATCHES[step % len(_BATCHES)]
        x = paddle.to_tensor(rng.normal(size=shape_of(count)).astype("float32"))
        y = paddle.to_tensor(rng.integers(0, 4, count))
        loss = paddle.nn.functional.cross_entropy(run(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if step in (max(steps // 10, 1), steps):
            gc.collect()
            measured.append({"kib": resident_kib(), "loss": float(loss)})
    return {"before_kib": measured[0]["kib"], "after_kib": measured[-1]["kib"], "loss": measured[-1]["loss"]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and print; 1 when the memory of an example grows by more than 1 %."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--only", choices=EXAMPLES, help="one example, in this process")
    parsed = parser.parse_args(arguments)
    if parsed.only:
        print(json.dumps(train(parsed.only, parsed.steps)))
        return 0
    status = 0
    for name in EXAMPLES:
        command = [sys.executable, __file__, "--only", name, "--steps", str(parsed.steps)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        growth = found["after_kib"] / found["before_kib"] - 1
        verdict = "ok" if growth < _MOST_GROWTH else f"MISSED, less than {_MOST_GROWTH:.0%}"
        status |= growth >= _MOST_GROWTH
        print(
            f"{name:<18} {found['before_kib'] / 1024:7.1f} MiB  {found['after_kib'] / 1024:7.1f} MiB  {growth:+.2%}  {verdict}",
            flush=True,
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
