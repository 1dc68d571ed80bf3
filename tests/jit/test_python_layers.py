"""``autograd.PyLayer`` in recorded Programs: its own backward counts there too, in every form of Program."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan.jit import to_static
from sampan.static import InputSpec


class Scaled(paddle.autograd.PyLayer):
    """A product whose gradients are not those of a product, so that it shows which backward ran."""

    @staticmethod
    def forward(ctx, a, b, power=1):
        ctx.save_for_backward(a, b)
        ctx.power = power
        if a.sum() > 0:
            return a * b, a + 1
        return a - b, a * 2

    @staticmethod
    def backward(ctx, to_first, to_second):
        a, b = ctx.saved_tensor()
        if to_first.sum() > 1:
            return to_first * 3 * a * ctx.power + to_second, to_first * b
        return to_first * b, to_second * 0.5


class Cube(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a**3

    @staticmethod
    def backward(ctx, gradient):
        (a,) = ctx.saved_tensor()
        return gradient * 7 * a * a


def plain(x, y):
    return Scaled.apply(x, y, power=2)[0] * 3


def second_output_unused(x, y):
    return Scaled.apply(x, y)[0] + x


def one_tensor_twice(x, y):
    return Scaled.apply(x * y, x * y)[1] + Scaled.apply(y, y)[0]


def in_a_branch(x, y):
    if x.sum() > 1:
        return Scaled.apply(x, y)[0]
    return Cube.apply(y) - x


def in_a_loop(x, y):
    count = paddle.to_tensor(0)
    while count < 3:
        x, _ = Scaled.apply(x * 0.5, y, power=3)
        count += 1
    return x


def nested(x, y):
    class Outer(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, a):
            ctx.a = a
            return Cube.apply(a) * y

        @staticmethod
        def backward(ctx, gradient):
            return Cube.apply(gradient) + ctx.a

    return Outer.apply(x * 2)


FUNCTIONS = [plain, second_output_unused, one_tensor_twice, in_a_branch, in_a_loop, nested]


def value_and_gradients(function, sign):
    x = paddle.to_tensor(np.array([1.5, -0.25, 0.75], "float32") * sign, stop_gradient=False)
    y = paddle.to_tensor([0.5, 2.0, -1.0], stop_gradient=False)
    out = function(x, y)
    (out * paddle.to_tensor([1.0, 2.0, 4.0])).sum().backward()
    return [v.numpy() if v is not None else np.zeros(3, "float32") for v in (out, x.grad, y.grad)]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_converted_functions_use_its_backward(function, sign):
    static = to_static(function, full_graph=True)
    for _ in range(2):
        for got, want in zip(value_and_gradients(static, sign), value_and_gradients(function, sign), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_training_steps_use_its_backward(function):
    def train(compiled):
        weight = paddle.create_parameter([3], "float32", default_initializer=paddle.nn.initializer.Assign([0.3, -0.2, 0.9]))
        optimizer = paddle.optimizer.SGD(0.01, parameters=[weight])
        x = paddle.to_tensor([0.5, 1.0, -0.25])

        def loss(x):
            return function(weight * 2, x + weight).sum()

        step = paddle.jit.TrainStep(loss, optimizer) if compiled else None
        found = []
        for _ in range(3):
            if step is not None:
                found.append(step(x).item())
                continue
            value = loss(x)
            value.backward()
            optimizer.step()
            optimizer.clear_grad()
            found.append(value.item())
        return found

    np.testing.assert_allclose(train(True), train(False), rtol=1e-5)


def test_static_programs_use_its_backward():
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x = paddle.static.data("x", [None])
            x.stop_gradient = False
            y = paddle.static.nn.cond(x.sum() > 0, lambda: Cube.apply(x), lambda: x * 2)
            (g,) = paddle.static.gradients([y], [x])
        for x_in in ([1.0, 2.0], [-1.0, -3.0, 0.5]):
            value = np.array(x_in, "float32")
            got = paddle.static.Executor().run(main, {"x": value}, [y, g])
            want = (value**3, 7 * value**2) if value.sum() > 0 else (value * 2, np.full_like(value, 2))
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6)
    finally:
        paddle.disable_static()


def test_gradients_of_its_gradients():
    for function in (Cube.apply, to_static(lambda x: Cube.apply(x), full_graph=True)):
        x = paddle.to_tensor([2.0], stop_gradient=False)
        (slope,) = paddle.grad(function(x), x, create_graph=True)
        (curvature,) = paddle.grad(slope, x)
        assert (slope.item(), curvature.item()) == (28.0, 28.0)


def test_a_saved_layer_keeps_its_backward(tmp_path):
    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.linear = paddle.nn.Linear(3, 2)

        def forward(self, x):
            return Cube.apply(self.linear(x))

    net, x = Net(), paddle.rand([4, 3])
    net(x).sum().backward()
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[InputSpec([None, 3])])
    loaded = paddle.jit.load(str(tmp_path / "net"))
    loaded.train()
    out = loaded(x)
    out.sum().backward()
    np.testing.assert_array_equal(out.numpy(), net(x).numpy())
    for got, want in zip(loaded.parameters(), net.parameters(), strict=True):
        np.testing.assert_allclose(got.grad.numpy(), want.grad.numpy(), rtol=1e-6)


def test_outputs_marked_as_constants_carry_no_gradient():
    class Halves(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, a):
            high = a > 0
            rest = a * 0.5
            ctx.mark_non_differentiable(rest)
            return a * 2, rest, high

        @staticmethod
        def backward(ctx, to_first, to_rest, to_high):
            return to_first * 5 + to_rest

    def function(x):
        first, rest, high = Halves.apply(x)
        assert rest.stop_gradient
        assert high.stop_gradient
        return first + rest * high

    for f in (function, to_static(function, full_graph=True)):
        x = paddle.to_tensor([1.0, -1.0], stop_gradient=False)
        f(x).sum().backward()
        assert x.grad.tolist() == [5.0, 5.0]


def test_a_backward_that_does_not_fit_is_refused():
    class Wrong(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return gradient, gradient

    class Summed(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return gradient.sum()

    class Asking(Scaled):
        @staticmethod
        def forward(ctx, a, b):
            ctx.set_materialize_grads(False)
            return a * b, a

    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    for layer, count, error, words in (
        (Wrong, 1, RuntimeError, "gives 2 values; there are 1 tensors"),
        (Summed, 1, ValueError, r"of shape \[\].*has shape \[2\]"),
        (Asking, 2, NotImplementedError, "does not know which of them"),
    ):
        with pytest.raises(error, match=words):
            to_static(lambda v, layer=layer, count=count: layer.apply(*[v] * count), full_graph=True)(x)


def test_errors_name_the_line_of_a_decorated_function():
    @to_static(full_graph=True)
    def chosen(x):
        if x.sum() > 0:
            y = x
        else:
            y = "text"
        return y

    line = chosen.dygraph_function.__code__.co_firstlineno + 2
    with pytest.raises(paddle.base.errors.ConversionError, match=rf"test_python_layers.py:{line}, in chosen"):
        chosen(paddle.ones([2]))
