"""Clipping: behaviours UP101 and UP102, many tensors, and equality with the real PaddlePaddle's trained weights."""

from __future__ import annotations

import numpy as np
import pytest
from front.reference import ask_paddle, needs_paddle

import sampan as paddle


def clipped(clip, *grads):
    pairs = [(paddle.zeros([len(g)]), paddle.to_tensor(g)) for g in grads]
    return [g.numpy() for _, g in clip(pairs)]


def test_the_norm_of_a_zero_gradient_gives_zeros():
    (found,) = clipped(paddle.nn.ClipGradByNorm(1.0), [0.0, 0.0, 0.0])
    assert found.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("largest", "grads", "expected"),
    [
        (0.0, [0.0, 0.0], [0.0, 0.0]),
        (5.0, [3.0, 4.0], [3.0, 4.0]),
        (1.0, [3.0, 4.0], [0.6, 0.8]),
        (10.0, [3.0, 4.0], [3.0, 4.0]),
    ],
)
def test_the_global_norm_at_its_limits(largest, grads, expected):
    found = clipped(paddle.nn.ClipGradByGlobalNorm(largest), *([g] for g in grads))
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-6)


def test_the_global_norm_spans_more_tensors_than_one_call_takes():
    grads = [[float(k), 1.0] for k in range(40)]
    norm = np.linalg.norm(np.array(grads))
    found = clipped(paddle.nn.ClipGradByGlobalNorm(1.0), *grads)
    np.testing.assert_allclose(np.stack(found), np.array(grads) / norm, rtol=1e-5)


SCRIPT = """
import json
import numpy as np

def trained(paddle):
    found = {}
    for k, make in enumerate([lambda: paddle.nn.ClipGradByValue(0.1), lambda: paddle.nn.ClipGradByNorm(0.5), lambda: paddle.nn.ClipGradByGlobalNorm(0.5)]):
        for place in ("all", "group", "need"):
            params = []
            for j, shape in enumerate(([2, 3], [3])):
                attr = paddle.ParamAttr(name=f"clip{k}{place}{j}", initializer=paddle.nn.initializer.Constant(1.0), need_clip=place != "need" or j == 1)
                params.append(paddle.create_parameter(shape, "float32", attr=attr))
            if place == "group":
                groups = [{"params": [params[0]], "grad_clip": make()}, {"params": [params[1]]}]
                opt = paddle.optimizer.Momentum(0.1, parameters=groups, weight_decay=0.5, grad_clip=make())
            else:
                opt = paddle.optimizer.Momentum(0.1, parameters=params, weight_decay=0.5, grad_clip=make())
            for step in range(5):
                for p in params:
                    size = int(np.prod(p.shape))
                    p.grad = paddle.to_tensor(np.cos(np.arange(size) + step).reshape(p.shape).astype("float32"))
                opt.step()
            found[f"{k} {place}"] = [p.numpy().tolist() for p in params]
    return found
"""


@needs_paddle
def test_training_with_clipping_equals_paddles():
    ours: dict = {}
    exec(SCRIPT, ours)
    expected = ask_paddle(SCRIPT + "\nimport paddle\nprint(json.dumps(trained(paddle)))")
    for key, weights in ours["trained"](paddle).items():
        for a, b in zip(weights, expected[key], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=key)
