"""Learning-rate schedules: rates, state, errors, and equality with the real PaddlePaddle where it is installed."""

from __future__ import annotations

import json
import math
import subprocess

import numpy as np
import pytest

from sampan.optimizer import lr

from . import lr_cases
from .reference import needs_paddle, paddle_python


def stepped(schedule, count):
    rates = [schedule()]
    for _ in range(count):
        schedule.step()
        rates.append(schedule())
    return rates


@needs_paddle
def test_every_schedule_gives_paddles_rates_over_sixty_steps_and_with_given_epochs():
    done = subprocess.run([paddle_python(), lr_cases.__file__], capture_output=True, text=True, timeout=120, check=True)
    expected = json.loads(done.stdout.strip().splitlines()[-1])
    received = lr_cases.traces(lr)
    for case in lr_cases.CASES:
        for ours, theirs in zip(received[case], expected[case], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=case)


FORMULAS = {
    "L.NoamDecay(16, 3, 2.0)": lambda t: 2.0 * 0.25 * min(t**-0.5 if t else 1, t * 3**-1.5),
    "L.PiecewiseDecay([2, 5], [1.0, 0.5, 0.1])": lambda t: 1.0 if t < 2 else 0.5 if t < 5 else 0.1,
    "L.NaturalExpDecay(0.5, 0.1)": lambda t: 0.5 * math.exp(-0.1 * t),
    "L.InverseTimeDecay(0.5, 0.3)": lambda t: 0.5 / (1 + 0.3 * t),
    "L.PolynomialDecay(0.5, 8, end_lr=0.1, power=2.0)": lambda t: 0.1 + 0.4 * (1 - min(t, 8) / 8) ** 2,
    "L.PolynomialDecay(0.5, 8, end_lr=0.1, cycle=True)": lambda t: 0.1 + 0.4 * (1 - t / (8 * max(1, math.ceil(t / 8)))),
    "L.ExponentialDecay(0.5, 0.9)": lambda t: 0.5 * 0.9**t,
    "L.MultiStepDecay(0.5, [2, 4], gamma=0.5)": lambda t: 0.5 if t < 2 else 0.25 if t < 4 else 0.125,
    "L.StepDecay(0.5, 3, gamma=0.5)": lambda t: 0.5 * 0.5 ** (t // 3),
    "L.LambdaDecay(0.5, lambda e: 1 / (1 + e))": lambda t: 0.5 / (1 + t),
    "L.MultiplicativeDecay(0.5, lambda e: 1 / e)": lambda t: 0.5 / math.factorial(t),
    "L.CosineAnnealingDecay(0.5, 7, eta_min=0.1)": lambda t: 0.1 + 0.2 * (1 + math.cos(math.pi * t / 7)),
    "L.LinearLR(0.6, 6, start_factor=0.5)": lambda t: 0.3 + 0.3 * min(t, 6) / 6,
    "L.CyclicLR(0.1, 0.5, 4)": lambda t: 0.1 + 0.4 * (1 - abs(t % 8 - 4) / 4),
    "L.CosineAnnealingWarmRestarts(0.5, 5)": lambda t: 0.25 * (1 + math.cos(math.pi * (t % 5) / 5)),
    "L.LinearWarmup(0.5, 4, 0.1, 0.5)": lambda t: 0.1 + 0.4 * min(t, 4) / 4,
}


@pytest.mark.parametrize("expression", FORMULAS)
def test_rates_follow_the_closed_formula_stepped_resumed_and_with_given_epochs(expression):
    formula = FORMULAS[expression]
    expected = [formula(t) for t in range(20)]
    np.testing.assert_allclose(lr_cases.trace(lr, expression, [None] * 19), expected, rtol=1e-12, atol=1e-15)
    backwards = list(range(19, -1, -1))
    np.testing.assert_allclose(lr_cases.trace(lr, expression, backwards)[1:], expected[::-1], rtol=1e-12, atol=1e-15)
    for finished in (0, 4, 11):
        resumed = eval(expression[:-1] + f", last_epoch={finished})", {"L": lr})
        np.testing.assert_allclose(stepped(resumed, 5), expected[finished + 1 : finished + 7], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("case", lr_cases.CASES)
def test_state_taken_over_by_a_fresh_schedule_continues_the_same_rates(case):
    expression = lr_cases.CASES[case]
    whole = lr_cases.trace(lr, expression, [None] * 40)
    first, second = (eval(expression, {"L": lr}) for _ in range(2))
    stepped(first, 22)
    second.set_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second() == whole[22]
    np.testing.assert_allclose(stepped(second, 18), whole[22:], rtol=1e-12, atol=1e-15)


def test_cosine_started_late_equals_cosine_stepped_there():
    for finished in range(-1, 25):
        late = lr.CosineAnnealingDecay(1.0, T_max=10, last_epoch=finished)
        assert late() == pytest.approx((1 + math.cos(math.pi * (finished + 1) / 10)) / 2, abs=1e-12)


def test_warm_restarts_take_a_fractional_epoch_and_go_on_from_its_whole_part():
    schedule = lr.CosineAnnealingWarmRestarts(0.5, 2, T_mult=2)
    schedule.step(1.5)
    assert schedule() == pytest.approx(0.25 * (1 + math.cos(math.pi * 0.75)))
    assert schedule.last_epoch == 1
    schedule.step()
    assert (schedule.last_epoch, schedule()) == (2, 0.5)
    schedule.set_state_dict({"last_epoch": 4, "last_lr": 0.25})
    schedule.step()
    assert schedule() == pytest.approx(0.25 * (1 + math.cos(math.pi * 3 / 4)))


def test_one_cycle_refuses_to_step_past_its_end():
    schedule = lr.OneCycleLR(1.0, total_steps=4)
    stepped(schedule, 4)
    with pytest.raises(ValueError, match=r"step 6 of 4.*the cycle is over"):
        schedule.step()


PLATEAU_METRICS = [1, 0.95, 0.9, 0.8, 0.8, 0.7, 1, 1.2, 1.3, 1.4, 1, 1, 1]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("min", [1.0] * 8 + [0.3] * 4 + [0.09]), ("max", [1.0] * 3 + [0.3] * 9 + [0.09])],
)
def test_plateau_waits_for_patience_then_reduces_then_cools_down(mode, expected):
    schedule = lr.ReduceOnPlateau(1.0, mode=mode, threshold=0.1, patience=2, cooldown=1, factor=0.3)
    rates = []
    for value in PLATEAU_METRICS:
        schedule.step(value)
        rates.append(schedule())
    np.testing.assert_allclose(rates, expected)


def test_plateau_state_is_plain_numbers_and_round_trips():
    schedule = lr.ReduceOnPlateau(1.0, patience=1)
    schedule.step(np.ones(1, np.float32))
    schedule.step(np.float64(2))
    state = schedule.state_dict()
    assert state == {"cooldown_counter": 0, "best": 1.0, "num_bad_epochs": 1, "last_epoch": 2, "last_lr": 1.0}
    assert type(state["best"]) is float
    other = lr.ReduceOnPlateau(1.0, patience=1)
    other.set_state_dict({**state, "best": np.array([1.0])})
    other.step(3)
    assert other() == 0.1
    assert lr.ReduceOnPlateau(0.5).state_dict()["best"] is None


def test_plateau_respects_the_floor_and_epsilon():
    schedule = lr.ReduceOnPlateau(1.0, patience=0, factor=0.1, min_lr=0.05)
    for _ in range(5):
        schedule.step(1.0)
    assert schedule() == 0.05
    still = lr.ReduceOnPlateau(1e-9, patience=0)
    still.step(1.0)
    still.step(1.0)
    assert still() == 1e-9


def test_verbose_prints_every_rate(capsys):
    lr.StepDecay(0.5, 1, gamma=0.5, verbose=True).step()
    assert capsys.readouterr().out.splitlines() == [
        "Epoch 0: StepDecay set learning rate to 0.5.",
        "Epoch 1: StepDecay set learning rate to 0.25.",
    ]


def test_a_schedule_of_ones_own_may_hold_more_state():
    class Mine(lr.LRScheduler):
        def __init__(self):
            self.bias = 4
            super().__init__(0.1)

        def get_lr(self):
            return self.base_lr * self.bias

        def state_keys(self):
            self.keys = ["last_epoch", "last_lr", "bias", "absent"]

    schedule = Mine()
    assert schedule.state_dict() == {"last_epoch": 0, "last_lr": 0.4, "bias": 4}
    assert "Mine(" in repr(schedule)


def test_state_errors_and_warnings_name_what_is_wrong():
    schedule = lr.StepDecay(0.5, 3)
    with pytest.raises(RuntimeError, match=r"no last_lr; it holds last_epoch"):
        schedule.set_state_dict({"last_epoch": 3})
    with pytest.warns(UserWarning, match="not used: gamma_ray"):
        schedule.set_state_dict({"last_epoch": 3, "last_lr": 0.7, "gamma_ray": 1})
    assert (schedule.last_epoch, schedule()) == (3, 0.7)
    with pytest.raises(ValueError, match="LinearWarmup_LR"):
        lr.LinearWarmup(lr.StepDecay(0.5, 2), 3, 0.0, 0.5).set_state_dict({"last_epoch": 3, "last_lr": 0.2})
    with pytest.raises(NotImplementedError, match="define get_lr"):
        lr.LRScheduler(0.1)


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: lr.StepDecay("a", 3), TypeError, "learning_rate is 'a'"),
        (lambda: lr.StepDecay(-1.0, 3), ValueError, "learning_rate is -1.0; it must be at least 0"),
        (lambda: lr.NoamDecay(-4, 3), ValueError, "d_model is -4; it must be greater than 0"),
        (lambda: lr.PiecewiseDecay([], [1.0]), ValueError, "boundaries is empty"),
        (lambda: lr.PiecewiseDecay([2, 5], [1.0, 0.5]), ValueError, "2 values and 2 boundaries; values must have one more: 3"),
        (lambda: lr.NaturalExpDecay(0.5, 0), ValueError, "gamma is 0"),
        (lambda: lr.ExponentialDecay(0.5, 1.5), ValueError, "greater than 0 and less than 1"),
        (lambda: lr.PolynomialDecay(0.5, 5.5), TypeError, "decay_steps is 5.5"),
        (lambda: lr.PolynomialDecay(0.5, 5, power=0), ValueError, "power is 0"),
        (lambda: lr.LinearWarmup("x", 3, 0.0, 0.5), TypeError, "learning_rate is 'x'"),
        (lambda: lr.LinearWarmup(0.5, 3, 1.0, 0.5), ValueError, "start_lr is 1.0 and end_lr is 0.5"),
        (lambda: lr.MultiStepDecay(0.5, [4, 2]), ValueError, "each must be greater"),
        (lambda: lr.MultiStepDecay(0.5, 3), TypeError, "milestones is 3"),
        (lambda: lr.MultiStepDecay(0.5, [2], gamma=1.5), ValueError, "gamma is 1.5; it must be less than 1"),
        (lambda: lr.StepDecay(0.5, 3.0), TypeError, "step_size is 3.0"),
        (lambda: lr.StepDecay(0.5, 0), ValueError, "step_size is 0"),
        (lambda: lr.LambdaDecay(0.5, 3), TypeError, "lr_lambda is 3"),
        (lambda: lr.ReduceOnPlateau(1.0, mode="up"), ValueError, "mode is 'up'; it must be one of 'min', 'max'"),
        (lambda: lr.ReduceOnPlateau(1.0, factor=1.0), ValueError, "factor is 1.0"),
        (lambda: lr.ReduceOnPlateau(1.0).step("a"), TypeError, "metrics is 'a'"),
        (lambda: lr.ReduceOnPlateau(1.0).step(np.ones(3)), ValueError, "pass its mean"),
        (lambda: lr.CosineAnnealingDecay(0.5, 0), ValueError, "T_max is 0"),
        (lambda: lr.OneCycleLR(1.0, 6, phase_pct=2.0), ValueError, "phase_pct is 2.0"),
        (lambda: lr.OneCycleLR(1.0, 6, phase_pct=0.7, three_phase=True), ValueError, "less than 0.5"),
        (lambda: lr.OneCycleLR(1.0, 6, anneal_strategy="x"), ValueError, "anneal_strategy is 'x'"),
        (lambda: lr.CyclicLR(0.1, 1.0, 0), ValueError, "step_size_up is 0"),
        (lambda: lr.CyclicLR(0.1, 1.0, 3, mode="x"), ValueError, "mode is 'x'"),
        (lambda: lr.LinearLR(0.1, 5, start_factor=0), ValueError, "start_factor is 0"),
        (lambda: lr.CosineAnnealingWarmRestarts(0.5, 2, T_mult=0), ValueError, "T_mult is 0"),
        (lambda: lr.CosineAnnealingWarmRestarts(0.5, 2).step(-1), ValueError, "epoch is -1"),
        (lambda: lr.StepDecay(0.5, 2).step("a"), TypeError, "epoch is 'a'"),
    ],
)
def test_bad_arguments_raise_with_the_argument_and_the_value(build, error, text):
    with pytest.raises(error, match=text.replace("(", r"\(")):
        build()
