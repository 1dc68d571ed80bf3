"""Frozen calls: weights become part of the compiled pieces, packed and with what depends on them alone computed once."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import _rt
from sampan.base import nest
from sampan.tensor.traced import Traced, typed

nn = paddle.nn


def convolutions(groups=1):
    return nn.Sequential(
        nn.Conv2D(4, 8, 3, padding=1, bias_attr=False), nn.BatchNorm2D(8), nn.ReLU(), nn.Conv2D(8, 8, 3, stride=2, groups=groups), nn.BatchNorm2D(8),
        nn.Hardswish(), nn.Conv2DTranspose(8, 4, 2), nn.AdaptiveAvgPool2D(2), nn.Flatten(), nn.Linear(16, 5),
    )  # fmt: skip


MODELS = {
    "convolutions": (convolutions, (4, 9, 9)),
    "grouped": (lambda: convolutions(8), (4, 9, 9)),
    "perceptron": (lambda: nn.Sequential(nn.Linear(300, 200), nn.GELU(), nn.Linear(200, 7)), (300,)),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.1), 2), (6, 32)),
    "recurrent": (lambda: nn.LSTM(8, 8), (5, 8)),
}


def randomised(kind):
    paddle.seed(3)
    net = MODELS[kind][0]()
    for layer in net.sublayers():
        if isinstance(layer, nn.BatchNorm2D):
            layer._mean.set_value(paddle.rand(layer._mean.shape))
            layer._variance.set_value(paddle.rand(layer._variance.shape) + 0.5)
    net.eval()
    return net


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kind", MODELS)
def test_frozen_models_compute_what_eager_mode_computes(kind, batch):
    net = randomised(kind)
    x = paddle.randn([batch, *MODELS[kind][1]])
    with paddle.no_grad():
        expected = net(x)
        call = Traced(net, [typed(x)], {}, is_frozen=True)
        for _ in range(2):
            found = call.run([x])
            for a, b in zip(nest.flatten(found), nest.flatten(expected), strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


def test_other_sizes_run_too_and_changed_weights_do_not_count():
    net = randomised("convolutions")
    x = paddle.randn([1, 4, 9, 9])
    with paddle.no_grad():
        expected = net(x).numpy()
        call = Traced(net, [typed(x)], {}, is_frozen=True)
        call.run([x])
        net[0].weight.set_value(paddle.zeros(net[0].weight.shape))
        np.testing.assert_allclose(call.run([x]).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_weights_are_packed_and_scales_folded():
    net = randomised("convolutions")
    x = paddle.randn([1, 4, 9, 9])
    with paddle.no_grad():
        call = Traced(net, [typed(x)], {}, is_frozen=True)
        call.run([x])
        _rt.start_profile(True)
        call.run([x])
        names = [name for name, *_ in _rt.stop_profile()]
    assert not any("rsqrt" in name for name in names), names
    assert names.count("native conv_forward") == 2
