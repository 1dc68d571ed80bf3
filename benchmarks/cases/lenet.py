"""A whole training step of LeNet, batch 64: the same weights in every framework, so that the losses can be compared.

Source: LeCun et al., "Gradient-Based Learning Applied to Document Recognition", 1998, in the form of Paddle's own LeNet.
"""

from __future__ import annotations

import numpy as np

from .case import Case, random_array

_BATCH = 64


def _arrays():
    labels = np.random.default_rng(3).integers(0, 10, _BATCH)
    return random_array(_BATCH, 1, 28, 28), labels


def _weight(index: int, shape: tuple[int, ...]) -> np.ndarray:
    """Uniform in +-1/sqrt(fan in) for weights, as Paddle lays them out; biases are zero."""
    if len(shape) == 1:
        return np.zeros(shape, "float32")
    bound = 1.0 / np.sqrt(np.prod(shape[1:]) if len(shape) == 4 else shape[0])
    return random_array(*shape, seed=20 + index, low=-bound, high=bound)


def _layers(nn, conv, pool, flatten):
    return nn.Sequential(
        conv(1, 6, 3, stride=1, padding=1),
        nn.ReLU(),
        pool(2, 2),
        conv(6, 16, 5, stride=1, padding=0),
        nn.ReLU(),
        pool(2, 2),
        flatten(),
        nn.Linear(400, 120),
        nn.Linear(120, 84),
        nn.Linear(84, 10),
    )


def _paddle(p):
    nn = p.nn
    model = _layers(nn, nn.Conv2D, nn.MaxPool2D, nn.Flatten)
    for index, parameter in enumerate(model.parameters()):
        parameter.set_value(p.to_tensor(_weight(index, tuple(parameter.shape))))
    images, labels = map(p.to_tensor, _arrays())
    optimizer = p.optimizer.Adam(learning_rate=1e-3, parameters=model.parameters())

    def step():
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return step


def _torch(t):
    nn = t.nn
    model = _layers(nn, nn.Conv2d, nn.MaxPool2d, nn.Flatten)
    with t.no_grad():
        for index, parameter in enumerate(model.parameters()):
            shape = tuple(parameter.shape)
            weight = _weight(index, shape[::-1]).T if len(shape) == 2 else _weight(index, shape)
            parameter.copy_(t.from_numpy(weight.copy()))
    images, labels = map(t.from_numpy, _arrays())
    optimizer = t.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


NAME = "LeNet training step, batch 64, Adam"
CASES = (Case(NAME, "lenet", _paddle, _torch, tolerance=1e-4),)
