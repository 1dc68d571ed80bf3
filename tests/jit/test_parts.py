"""A function that cannot be a Program runs eagerly; the functions and methods that it calls are Programs of their own."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan.jit import to_static

F = paddle.nn.functional
scale = 2.0


def projected(x, weight):
    h = F.relu(paddle.matmul(x, weight)) * scale
    if h.sum() > 1:
        h = h / h.sum()
    return F.softmax(h, axis=-1) * scale + h


def reads_elements(x):
    return x * float(np.median(x.numpy()))


def deeper(x, weight):
    h = projected(x, weight)
    h = reads_elements(h)
    return projected(h, weight)


def small(x):
    return x + 1


def whole(x, weight, seen=None):
    h = projected(x, weight)
    middle = float(np.sort(h.numpy().ravel())[3])  # cannot be recorded
    if seen is not None:
        seen.append(middle)
    for _ in range(2):
        h = deeper(small(h), weight) + middle
    return h


def parts_of(static):
    return {s.__name__: s for s in static.parts if s.__name__ != "forward"}


def results(function, count=2):
    paddle.seed(3)
    found = []
    for k in range(count):
        x, weight = paddle.rand([4, 3]) * (k + 1), paddle.rand([3, 3])
        x.stop_gradient = weight.stop_gradient = False
        out = function(x, weight)
        out.sum().backward()
        found += [out.numpy(), x.grad.numpy(), weight.grad.numpy()]
    return found


def test_values_and_gradients_are_those_of_eager_mode():
    static = to_static(whole)
    for got, want in zip(results(static, 3), results(whole, 3), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert "no elements yet" in static.fallback_reason


def test_the_functions_that_it_calls_are_programs():
    static = to_static(whole)
    results(static)
    parts = parts_of(static)
    assert set(parts) == {"projected", "deeper", "small"}
    assert parts["projected"].get_traced_count() == 1
    assert parts["projected"].fallback_reason == ""
    assert "no elements yet" in parts["deeper"].fallback_reason
    assert set(parts_of(parts["deeper"])) == {"projected", "reads_elements"}
    assert parts_of(parts["deeper"])["projected"].get_traced_count() == 1


def test_what_is_too_small_to_gain_stays_eager():
    static = to_static(whole)
    results(static)
    assert parts_of(static)["small"]._is_small
    assert not parts_of(static)["projected"]._is_small


def test_globals_that_change_count(monkeypatch):
    static = to_static(whole)
    first = results(static)
    monkeypatch.setitem(globals(), "scale", 3.0)
    for got, want in zip(results(static), results(whole), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert not np.allclose(results(static)[0], first[0])


class Model(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(3, 3)
        self.register_buffer("calls", paddle.zeros([]))
        self.factor = 1.0

    def hidden(self, x):
        self.calls = self.calls + 1
        return F.tanh(self.linear(x)) * self.factor + F.sigmoid(x)

    def forward(self, x):
        h = self.hidden(x)
        return self.hidden(h * float(h.numpy().max()))


def test_methods_of_layers_are_parts_with_their_state():
    paddle.seed(0)
    model, twin = Model(), Model()
    twin.set_state_dict(model.state_dict())
    static = to_static(model.forward)
    x = paddle.rand([2, 3])
    for factor in (1.0, 0.5):
        model.factor = twin.factor = factor
        for _ in range(2):
            found = []
            for net, function in ((model, static), (twin, twin.forward)):
                out = function(x)
                out.sum().backward()
                found.append([out.numpy(), net.calls.numpy(), *(p.grad.numpy() for p in net.parameters())])
            for got, want in zip(*found, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert parts_of(static)["hidden"].get_traced_count() >= 1


def test_errors_of_a_part_are_those_of_eager_mode():
    def failing(x, weight):
        h = projected(x, weight)
        h.numpy()
        return projected(h, paddle.ones([7, 2]))

    static = to_static(failing)
    x, weight = paddle.rand([4, 3]), paddle.rand([3, 3])
    for function in (failing, static):
        with pytest.raises(ValueError, match="matmul"):
            function(x, weight)


def written(x, y):
    x.add_(y)
    z = x * y + F.relu(y)
    return F.tanh(z) * 2


def test_a_part_that_writes_its_arguments_sees_shared_memory():
    def function(x):
        x.numpy()
        out = []
        for _ in range(3):
            first = x[0]
            out.append(written(x, first) + first)
        return out

    def run(f):
        x = paddle.to_tensor([[1.0, 2.0], [3.0, -1.0]])
        return [v.numpy() for v in f(x)], x.numpy()

    static = to_static(function)
    for _ in range(2):
        (got, left), (want, right) = run(static), run(function)
        np.testing.assert_allclose(left, right)
        np.testing.assert_allclose(got, want)
