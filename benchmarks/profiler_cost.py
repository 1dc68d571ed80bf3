#!/usr/bin/env python3
"""What a recording costs: LeNet's training steps with and without a Profiler, in turn, eager and compiled.

    python benchmarks/profiler_cost.py [--rounds 12] [--steps 40]

Prints the median time of a step of the quietest rounds each way, and the time that handing out the recording takes afterwards, by step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import sampan as paddle

_BATCH = 64


def make_steps() -> dict[str, Callable[[], object]]:
    """One eager and one compiled training step of LeNet."""
    paddle.seed(0)
    x, y = paddle.rand([_BATCH, 1, 28, 28]), paddle.randint(0, 10, [_BATCH])

    def parts() -> tuple[Callable[[], object], object]:
        net = paddle.vision.models.LeNet()
        optimizer = paddle.optimizer.Adam(0.001, parameters=net.parameters())
        return (lambda: paddle.nn.functional.cross_entropy(net(x), y)), optimizer

    loss_function, optimizer = parts()

    def eager() -> None:
        loss_function().backward()
        optimizer.step()
        optimizer.clear_grad()

    compiled_loss, compiled_optimizer = parts()
    compiled = paddle.jit.TrainStep(lambda: compiled_loss(), compiled_optimizer)
    return {"eager": eager, "compiled": compiled}


def timed(step: Callable[[], object], steps: int, after: Callable[[], None] = lambda: None) -> float:
    """The median milliseconds of a step."""
    times = []
    for _ in range(steps):
        began = time.perf_counter()
        step()
        after()
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="the cost of paddle.profiler on LeNet's training steps")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    for name, step in make_steps().items():
        timed(step, arguments.steps)
        off, on, handing_out, events = [], [], [], 0
        for _ in range(arguments.rounds):
            off.append(timed(step, arguments.steps))
            prof = paddle.profiler.Profiler(on_trace_ready=lambda p: None)
            prof.start()
            on.append(timed(step, arguments.steps, prof.step))
            began = time.perf_counter()
            prof.stop()
            handing_out.append(1000 * (time.perf_counter() - began) / arguments.steps)
            events = len(prof.profiler_result.events) // arguments.steps
        quiet_off, quiet_on = (statistics.median(sorted(times)[: arguments.rounds // 2 + 1]) for times in (off, on))
        print(
            f"{name:9} off {quiet_off:7.3f} ms   on {quiet_on:7.3f} ms   cost {100 * (quiet_on / quiet_off - 1):5.2f} %   "
            f"{events} events a step, handed out afterwards in {min(handing_out):.3f} ms a step"
        )


if __name__ == "__main__":
    main()
