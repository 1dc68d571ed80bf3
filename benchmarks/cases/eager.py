"""The cost of a call: tiny operands, so that only dispatch and recording count; and a network whose kernels are tiny too."""

from __future__ import annotations

import itertools

from .case import Case, random_array

_WIDTHS = (64, 128, 128, 10)
_BATCH = 8


def _add(with_grad: bool) -> Case:
    def paddle(p):
        x, y = p.to_tensor(random_array(4)), p.to_tensor(random_array(4, seed=1))
        x.stop_gradient = not with_grad
        return lambda: x + y

    def torch(t):
        x, y = t.from_numpy(random_array(4)), t.from_numpy(random_array(4, seed=1))
        x.requires_grad_(with_grad)
        return lambda: x + y

    return Case(f"x + y, 4 elements{', recorded' if with_grad else ''}", "eager", paddle, torch, target=4.0)


def _mlp_arrays():
    pairs = itertools.pairwise(_WIDTHS)
    weights = [random_array(i, o, seed=10 + k, low=-0.1, high=0.1) for k, (i, o) in enumerate(pairs)]
    return random_array(_BATCH, _WIDTHS[0]), weights


def _mlp_paddle(p):
    data, weights = _mlp_arrays()
    layers = []
    for weight in weights:
        linear = p.nn.Linear(*weight.shape)
        linear.weight.set_value(p.to_tensor(weight))
        linear.bias.set_value(p.zeros([weight.shape[1]]))
        layers += [linear, p.nn.ReLU()]
    model = p.nn.Sequential(*layers[:-1])
    x, parameters = p.to_tensor(data), list(model.parameters())

    def step():
        loss = (model(x) ** 2).mean()
        loss.backward()
        for parameter in parameters:
            parameter.clear_gradient(False)
        return loss

    return step


def _mlp_torch(t):
    data, weights = _mlp_arrays()
    layers = []
    for weight in weights:
        linear = t.nn.Linear(*weight.shape)
        with t.no_grad():
            linear.weight.copy_(t.from_numpy(weight.T.copy()))
            linear.bias.zero_()
        layers += [linear, t.nn.ReLU()]
    model = t.nn.Sequential(*layers[:-1])
    x, parameters = t.from_numpy(data), list(model.parameters())

    def step():
        loss = (model(x) ** 2).mean()
        loss.backward()
        for parameter in parameters:
            parameter.grad = None
        return loss

    return step


CASES = (
    _add(False),
    _add(True),
    Case("3-layer MLP, batch 8, forward + backward", "eager", _mlp_paddle, _mlp_torch, target=2.0),
)
