"""Schedules to trace, as expressions over a module ``L`` of schedules; run as a script it traces the real PaddlePaddle's."""

from __future__ import annotations

from types import ModuleType

STEPS = 60
CASES = {
    "noam": "L.NoamDecay(64, 7, 2.0)",
    "piecewise": "L.PiecewiseDecay([2, 5, 40], [1.0, 0.5, 0.1, 0.03])",
    "natural_exp": "L.NaturalExpDecay(0.5, 0.1)",
    "inverse_time": "L.InverseTimeDecay(0.5, 0.1)",
    "polynomial": "L.PolynomialDecay(0.5, 25, end_lr=0.01, power=1.7)",
    "polynomial_cycle": "L.PolynomialDecay(0.5, 9, power=2.0, cycle=True)",
    "linear_warmup": "L.LinearWarmup(0.5, 13, 0.1, 0.7)",
    "linear_warmup_over_exp": "L.LinearWarmup(L.ExponentialDecay(0.5, 0.9), 5, 0.0, 0.5)",
    "linear_warmup_over_cosine": "L.LinearWarmup(L.CosineAnnealingDecay(0.5, 11), 4, 0.0, 0.5)",
    "exponential": "L.ExponentialDecay(0.5, 0.93)",
    "multi_step": "L.MultiStepDecay(0.5, [3, 8, 50], gamma=0.3)",
    "step": "L.StepDecay(0.5, 7, gamma=0.7)",
    "lambda": "L.LambdaDecay(0.5, lambda e: 0.95 ** e + 0.1)",
    "multiplicative": "L.MultiplicativeDecay(0.5, lambda e: 1 - 1 / (e + 9))",
    "cosine": "L.CosineAnnealingDecay(0.5, 13, eta_min=0.02)",
    "one_cycle": "L.OneCycleLR(1.0, 60)",
    "one_cycle_linear": "L.OneCycleLR(0.7, 75, divide_factor=10.0, end_learning_rate=0.002, phase_pct=0.4, anneal_strategy='linear')",
    "one_cycle_three": "L.OneCycleLR(1.0, 61, phase_pct=0.3, three_phase=True)",
    "cyclic": "L.CyclicLR(0.1, 1.0, 5)",
    "cyclic_triangular2": "L.CyclicLR(0.1, 1.0, 4, 7, mode='triangular2')",
    "cyclic_exp_range": "L.CyclicLR(0.1, 1.0, 4, 3, mode='exp_range', exp_gamma=0.97)",
    "cyclic_scale_fn": "L.CyclicLR(0.1, 1.0, 6, scale_fn=lambda x: 0.8 ** x, scale_mode='iterations')",
    "linear": "L.LinearLR(0.5, 17, start_factor=0.2, end_factor=0.9)",
    "warm_restarts": "L.CosineAnnealingWarmRestarts(0.5, 5, eta_min=0.01)",
    "warm_restarts_growing": "L.CosineAnnealingWarmRestarts(0.5, 3, T_mult=2)",
}
# Given epochs, forward and back. Schedules whose rates Paddle derives from the previous rate drift there in Paddle itself.
JUMPS = (4, 1, None, 0, 9, None, 3, 3, 27, None)
CLOSED = [k for k in CASES if k != "linear"]


def trace(L: ModuleType, expression: str, epochs: list[int | None]) -> list[float]:
    """The first rate and the rate after each step."""
    schedule = eval(expression, {"L": L})
    rates = [schedule()]
    for epoch in epochs:
        schedule.step() if epoch is None else schedule.step(epoch)
        rates.append(schedule())
    return [float(r) for r in rates]


def traces(L: ModuleType) -> dict[str, list[list[float]]]:
    """The rates of every case: stepped one by one, and with given epochs."""
    jumping = {k: trace(L, CASES[k], list(JUMPS)) for k in CLOSED}
    return {k: [trace(L, e, [None] * STEPS), jumping.get(k, [])] for k, e in CASES.items()}


if __name__ == "__main__":
    import json

    import paddle

    print(json.dumps(traces(paddle.optimizer.lr)))
