"""L-BFGS: convergence, the line search, resuming, Paddle's counts of evaluations."""

from __future__ import annotations

import numpy as np
import pytest
from front.reference import ask_paddle, needs_paddle

import sampan as paddle
from sampan.base.errors import ArgumentError, ArgumentTypeError

PROBLEM = """
import json, sys
import numpy as np

def bowl(paddle, **options):
    w = paddle.create_parameter([2], "float32", default_initializer=paddle.nn.initializer.Assign(np.array([3.0, 3.0], "float32")))
    target, stretch = paddle.to_tensor([1.0, -2.0]), paddle.to_tensor([1.0, 30.0])
    opt = paddle.optimizer.LBFGS(parameters=[w], **options)
    calls = []
    def closure():
        opt.clear_grad()
        loss = ((w - target) ** 2 * stretch).sum()
        loss.backward()
        calls.append(float(loss))
        return loss
    return w, opt, closure, calls

def traces(paddle):
    found = []
    for search in (None, "strong_wolfe"):
        for rate in (1.0, 0.1):
            for count in (3, 8):
                w, opt, closure, calls = bowl(paddle, learning_rate=rate, max_iter=count, line_search_fn=search)
                opt.step(closure)
                opt.step(closure)
                found.append([len(calls), w.numpy().tolist()])
    return found
"""
problem: dict = {}
exec(PROBLEM, problem)  # the same text runs in Paddle's interpreter


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_a_stretched_bowl_is_solved(search):
    w, opt, closure, _ = problem["bowl"](paddle, line_search_fn=search)
    first = opt.step(closure)
    assert float(first) == 754.0
    np.testing.assert_allclose(w.numpy(), [1.0, -2.0], atol=1e-4)


def test_strong_wolfe_solves_rosenbrock():
    w = paddle.to_tensor([-1.2, 1.0], stop_gradient=False)
    opt = paddle.optimizer.LBFGS(max_iter=60, line_search_fn="strong_wolfe", parameters=[w])

    def closure():
        opt.clear_grad()
        loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        loss.backward()
        return loss

    opt.step(closure)
    np.testing.assert_allclose(w.numpy(), [1.0, 1.0], atol=1e-3)


@needs_paddle
def test_evaluations_and_positions_equal_paddles():
    expected = ask_paddle(PROBLEM + "\nimport paddle\nprint(json.dumps(traces(paddle)))")
    for (count, w), (their_count, their_w) in zip(problem["traces"](paddle), expected, strict=True):
        assert count == their_count
        np.testing.assert_allclose(w, their_w, rtol=1e-4, atol=1e-4)


def test_a_search_resumes_from_its_state():
    options = {"max_iter": 3, "learning_rate": 0.1, "line_search_fn": "strong_wolfe"}
    w, opt, closure, _ = problem["bowl"](paddle, **options)
    opt.step(closure)
    other, second, other_closure, _ = problem["bowl"](paddle, **options)
    other.set_value(w)
    second.set_state_dict(opt.state_dict())
    opt.step(closure)
    second.step(other_closure)
    np.testing.assert_allclose(other.numpy(), w.numpy(), rtol=1e-5)


def test_what_the_method_needs_is_said():
    w, opt, closure, _ = problem["bowl"](paddle)
    with pytest.raises(ArgumentTypeError, match="pass a function that clears the gradients"):
        opt.step()
    with pytest.raises(ArgumentTypeError, match=r"call step\(closure\)"):
        opt.minimize(closure())
    with pytest.raises(ArgumentError, match="strong_wolfe"):
        paddle.optimizer.LBFGS(parameters=[w], line_search_fn="armijo")
