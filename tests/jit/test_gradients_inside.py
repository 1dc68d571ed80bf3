"""paddle.grad and what is built on it inside to_static functions, TrainStep's loss and static Programs: the values of eager mode."""

from __future__ import annotations

import numpy as np
import pytest
from static.programs import floats, fresh_static_mode, held, run

import sampan as paddle
from sampan import static

F = paddle.nn.functional


def tensor(*shape, seed=0, stop_gradient=False):
    return paddle.to_tensor(floats(*shape, seed=seed), stop_gradient=stop_gradient)


def leaves(value):
    return value if isinstance(value, (list, tuple)) else [value]


def compare(function, *args, rtol=1e-5):
    """Results, and gradients to the arguments where the results have such, in both modes."""
    found = []
    for call in (function, paddle.jit.to_static(function, full_graph=True)):
        for _ in range(2 if call is not function else 1):
            own = [
                paddle.to_tensor(a.numpy(), stop_gradient=a.stop_gradient) if isinstance(a, paddle.Tensor) else a for a in args
            ]
            results = leaves(call(*own))
            flowing = [r for r in results if r is not None and not r.stop_gradient]
            if flowing:
                sum((r**2).sum() for r in flowing).backward()
            gradients = [a.grad for a in own if isinstance(a, paddle.Tensor)]
            found.append([None if t is None else t.numpy() for t in (*results, *gradients)])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(b, a, rtol=rtol, atol=1e-5)


def cube_slope(x):
    return paddle.grad((x**3).sum(), x)[0]


def slope_with_graph(x):
    (g,) = paddle.grad((x**3).sum(), x, create_graph=True)
    return (g**2).sum()


def second(x):
    (g,) = paddle.grad((x**3).sin().sum(), [x], create_graph=True)
    return paddle.grad(g.sum(), [x])[0]


def third(x):
    y = (x**4).sum()
    for _ in range(3):
        (slope,) = paddle.grad(y, x, create_graph=True)
        y = slope.sum()
    return slope


def several_with_given(x, w):
    return paddle.grad([x * w, (w**2).tanh()], [x, w], grad_outputs=[x, None])


def in_a_branch(x):
    y = (x * 2).sum()
    if y > 0:
        g = paddle.grad(y * y, x)[0]
    else:
        g = paddle.grad(-(y**3), x, create_graph=True)[0]
    return g


def nested_branches(x, flag):
    y = x.tanh()
    if flag:
        z = (y**2).sum()
        if z > 0.5:
            g = paddle.grad(z * x.sum(), x, create_graph=True)[0]
        else:
            g = x * 1.0
    else:
        g = x * 0.5
    return g


def descent(x, n):
    t, k = x.detach(), paddle.zeros([], "int64")
    while k < n:
        t = t.detach()
        t.stop_gradient = False
        t = t - 0.1 * paddle.grad((t**2 * x).sum(), t)[0]
        k = k + 1
    return t


def unrolled(x):
    t = x
    for _ in range(3):
        t = t - 0.1 * paddle.grad((t**3).sum(), t, create_graph=True)[0]
    return t


def under_no_grad(x):
    y = (x**2).sum()
    with paddle.no_grad():
        return paddle.grad(y, x)[0]


def of_an_intermediate(x):
    y = x.exp()
    return paddle.grad((y**2).sum(), y)[0]


def after_a_write(x):
    y = x * 2
    y[0] = y[1] * 3
    return paddle.grad((y**2).sum(), x, create_graph=True)[0]


def through_a_detached_copy(x):
    y = (x * 2).detach()
    y.stop_gradient = False
    (g,) = paddle.grad((y**3).sum(), y, create_graph=True)
    return (g * x).sum()


def unused(x, w):
    return paddle.grad((x * 2).sum(), [x, w], allow_unused=True)


def stopped(x, w):
    y = x * w
    return paddle.grad((y * x).sum(), x, no_grad_vars=[y])[0]


def picked(x):
    chosen = paddle.masked_select(x, x > 0)
    (g,) = paddle.grad((chosen**3).sum(), x, create_graph=True)
    return (g**2).sum()


@pytest.mark.parametrize(
    "function",
    [
        cube_slope,
        slope_with_graph,
        second,
        third,
        in_a_branch,
        unrolled,
        under_no_grad,
        through_a_detached_copy,
        of_an_intermediate,
        after_a_write,
        picked,
    ],
)
def test_gradients_inside_are_those_of_eager_mode(function):
    compare(function, tensor(3, 4))


@pytest.mark.parametrize("function", [several_with_given, unused, stopped])
def test_gradients_to_several_inputs(function):
    compare(function, tensor(3, 4), tensor(3, 4, seed=1))


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("scale", [0.01, 1.0])
def test_gradients_inside_of_nested_branches_of_what_was_computed_outside(flag, scale):
    compare(nested_branches, tensor(3, 4) * scale, paddle.to_tensor(flag))


@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_a_gradient_step_in_a_loop_of_unknown_length(rounds):
    compare(descent, tensor(3), paddle.to_tensor(rounds))


def powers(x, n):
    t, k = x * 1.0, paddle.zeros([], "int64")
    while k < n:
        t = t * x
        k = k + 1
    return t


def after_a_loop(x, n):
    return paddle.grad(powers(x, n).sum(), x)[0]


def after_a_loop_with_graph(x, n):
    (g,) = paddle.grad(powers(x, n).sum(), x, create_graph=True)
    return (g**2).sum()


def of_a_list(x, n):
    found, k = [], paddle.zeros([], "int64")
    while k < n:
        found.append(x * k.astype("float32"))
        k = k + 1
    return paddle.grad((paddle.stack(found) ** 2).sum(), x)[0]


def after_a_branch_with_graph(x, n):
    t = x**3 if x.sum() > 0 else x**2
    (g,) = paddle.grad(t.sum(), x, create_graph=True)
    return (g**2).sum() * n.astype("float32")


@pytest.mark.parametrize("function", [after_a_loop, after_a_loop_with_graph, of_a_list, after_a_branch_with_graph])
def test_gradients_of_what_loops_and_branches_gave(function):
    compare(function, tensor(3), paddle.to_tensor(3))


@pytest.mark.parametrize("function", [after_a_branch_with_graph, after_a_loop_with_graph])
def test_gradients_of_gradients_of_control_flow_in_a_train_step(function):
    eager, compiled = (paddle.create_parameter([3], "float32") for _ in range(2))
    for w in (eager, compiled):
        w.set_value(np.array([0.7, 0.4, 0.9], "float32"))
    n, step = (
        paddle.to_tensor(3),
        paddle.jit.TrainStep(lambda n: function(compiled, n), paddle.optimizer.SGD(0.1, parameters=[compiled])),
    )
    if function is after_a_loop_with_graph:
        with pytest.raises(RuntimeError, match=r"through a loop.*\n.*\n  at test_gradients_inside.py:\d+, in powers"):
            step(n)
        return
    loss = function(eager, n)
    loss.backward()
    assert step(n).item() == pytest.approx(loss.item(), rel=1e-5)
    np.testing.assert_allclose(compiled.numpy(), (eager - 0.1 * eager.grad).numpy(), rtol=1e-5)


def test_dropout_inside_is_differentiated_by_the_mask_that_was_drawn():
    def f(x):
        y = F.dropout(x, 0.5)
        (g,) = paddle.grad((y**2).sum(), x)
        return y, g

    x = paddle.ones([100])
    x.stop_gradient = False
    y, g = paddle.jit.to_static(f, full_graph=True)(x)
    np.testing.assert_allclose(g.numpy(), 2 * y.numpy() * (y.numpy() > 0) * 2, rtol=1e-6)


def test_jacobians_hessians_and_products():
    x, v = tensor(4), tensor(4, seed=1)
    compare(lambda x: paddle.autograd.jacobian(x.tanh() * x.sum(), x)[:], x)
    compare(lambda x: paddle.autograd.hessian((x**3).sum() * x[0], x)[:], x)
    compare(lambda x, v: paddle.incubate.autograd.vjp(lambda t: t.tanh() * t.sum(), x, v)[1], x, v)
    compare(lambda x, v: paddle.incubate.autograd.jvp(lambda t: t.tanh() * t.sum(), x, v)[1], x, v)
    compare(lambda x: paddle.incubate.autograd.Hessian(lambda t: (t**3).sum(), x)[:], x)


# ---------------------------------------------------------------------- gradient penalties


def network():
    paddle.seed(3)
    return paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.Tanh(), paddle.nn.Linear(8, 1))


def penalised(net):
    def loss_of(x):
        x = x.detach()
        x.stop_gradient = False
        y = net(x)
        (slope,) = paddle.grad(y.sum(), x, create_graph=True)
        return y.mean() + ((slope.norm(2, axis=1) - 1) ** 2).mean()

    return loss_of


@pytest.mark.parametrize("kind", ["to_static", "TrainStep"])
def test_training_with_a_gradient_penalty_equals_eager_mode(kind):
    def train(kind):
        net = network()
        optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())
        loss_of = penalised(net)
        step = paddle.jit.TrainStep(loss_of, optimizer) if kind == "TrainStep" else None
        call = paddle.jit.to_static(loss_of, full_graph=True) if kind == "to_static" else loss_of
        losses = []
        for k in range(5):
            x = tensor(6, 4, seed=k, stop_gradient=True)
            if step is not None:
                losses.append(step(x).item())
            else:
                loss = call(x)
                loss.backward()
                optimizer.step()
                optimizer.clear_grad()
                losses.append(loss.item())
        return losses, net[0].weight.numpy()

    expected, found = train("eager"), train(kind)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("layer", ["conv", "norm", "attention"])
def test_penalties_of_other_layers_in_a_train_step(layer):
    def build():
        paddle.seed(1)
        if layer == "conv":
            return paddle.nn.Sequential(paddle.nn.Conv2D(2, 3, 3), paddle.nn.Silu(), paddle.nn.Flatten(), paddle.nn.Linear(12, 1))
        if layer == "norm":
            return paddle.nn.Sequential(
                paddle.nn.Linear(4, 6), paddle.nn.LayerNorm(6), paddle.nn.GELU(), paddle.nn.Linear(6, 1), paddle.nn.Flatten(0)
            )
        return paddle.nn.Sequential(paddle.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), paddle.nn.Flatten(0))

    x = tensor(*{"conv": (5, 2, 4, 4), "norm": (5, 4), "attention": (2, 3, 4)}[layer], stop_gradient=True)

    def loss_of(net):
        def f(x):
            x = x.detach()
            x.stop_gradient = False
            y = net(x)
            (slope,) = paddle.grad((y**2).sum(), x, create_graph=True)
            return (slope**2).mean() + y.mean()

        return f

    nets = [build(), build()]
    loss = loss_of(nets[0])(x)
    loss.backward()
    expected = {k: p.numpy() - 0.1 * p.grad.numpy() for k, p in nets[0].named_parameters() if p.grad is not None}
    found = paddle.jit.TrainStep(loss_of(nets[1]), paddle.optimizer.SGD(0.1, parameters=nets[1].parameters()))(x)
    np.testing.assert_allclose(found.item(), loss.item(), rtol=1e-4)
    for name, p in nets[1].named_parameters():
        if name in expected:
            np.testing.assert_allclose(p.numpy(), expected[name], rtol=2e-3, atol=2e-5)


def test_a_penalty_inside_of_a_branch_in_a_train_step():
    def loss_of(w):
        def f(x, flag):
            x = x.detach()
            x.stop_gradient = False
            y = (x * w).tanh()
            if flag:
                (slope,) = paddle.grad((y**2).sum(), x, create_graph=True)
                loss = (slope**2).sum()
            else:
                loss = y.sum()
            return loss

        return f

    x, flag = tensor(3, stop_gradient=True), paddle.to_tensor(True)
    eager, compiled = (
        paddle.create_parameter([3], "float32", default_initializer=paddle.nn.initializer.Constant(0.7)) for _ in range(2)
    )
    loss = loss_of(eager)(x, flag)
    loss.backward()
    found = paddle.jit.TrainStep(loss_of(compiled), paddle.optimizer.SGD(0.1, parameters=[compiled]))(x, flag)
    np.testing.assert_allclose(found.item(), loss.item(), rtol=1e-5)
    np.testing.assert_allclose(compiled.numpy(), eager.numpy() - 0.1 * eager.grad.numpy(), rtol=1e-4)


# ---------------------------------------------------------------------- saving, static Programs


def test_functions_with_gradients_inside_are_saved_and_loaded(tmp_path):
    class Slope(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, x):
            x = x.detach()
            x.stop_gradient = False
            (slope,) = paddle.grad(self.inner(x).sum(), x, create_graph=True)
            return paddle.grad((slope**2).sum(), x)[0]

    layer = Slope()
    x = tensor(5, 4, stop_gradient=True)
    expected = layer(x)
    paddle.jit.save(layer, str(tmp_path / "slope"), input_spec=[static.InputSpec([None, 4], "float32")])
    np.testing.assert_allclose(paddle.jit.load(str(tmp_path / "slope"))(x).numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_gradients_of_gradients_in_static_programs():
    with fresh_static_mode():
        x = static.data("x", [None, 3])
        w = static.create_parameter([3, 1], "float32", name="w", default_initializer=paddle.nn.initializer.Constant(0.5))
        y = paddle.tanh(x @ w)
        (slope,) = static.gradients(y, x)
        (curve,) = static.gradients(slope, x)
        (again,) = paddle.grad(y, x, create_graph=True)
        loss = (again**2).mean()
        paddle.optimizer.SGD(0.1).minimize(loss)
        a = floats(4, 3)
        found = run([slope, curve, again, loss], {"x": a}, start=True)
        moved = held("w").copy()
    v = paddle.to_tensor(a, stop_gradient=False)
    u = paddle.full([3, 1], 0.5)
    u.stop_gradient = False
    (first,) = paddle.grad(paddle.tanh(v @ u), v, create_graph=True)
    (other,) = paddle.grad(first, v, retain_graph=True)
    loss = (first**2).mean()
    loss.backward()
    for ours, theirs in zip(found, (first, other, first, loss), strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(moved, (u - 0.1 * u.grad).numpy(), rtol=1e-5)


# ---------------------------------------------------------------------- refused


def message_of(function, *args):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        paddle.jit.to_static(function, full_graph=True)(*args)
    assert "test_gradients_inside.py" in str(caught.value)
    return type(caught.value), str(caught.value)


def test_what_takes_no_part_is_named_with_the_users_line():
    w = tensor(2)
    kind, text = message_of(lambda x: paddle.grad((x * 2).sum(), w), tensor(3))
    assert issubclass(kind, ValueError)
    assert "input 0 (float32[2]) does not take part" in text
    kind, text = message_of(lambda x: paddle.grad((x * 2).sum(), x), tensor(3, stop_gradient=True))
    assert "it has stop_gradient=True" in text


def test_gradients_through_earlier_rounds_of_a_loop_are_refused():
    def f(x, n):
        t, k = x * 1.0, paddle.zeros([], "int64")
        g = x * 0.0
        while k < n:
            t = t * x
            g = g + paddle.grad(t.sum(), x)[0]
            k = k + 1
        return g

    kind, text = message_of(f, tensor(3), paddle.to_tensor(3))
    assert issubclass(kind, RuntimeError)
    assert "carries from round to round" in text


def test_backward_inside_names_the_line_and_what_to_use():
    def f(x):
        (x**2).sum().backward()
        return x.grad

    kind, text = message_of(f, tensor(3))
    assert issubclass(kind, TypeError)
    assert "paddle.grad(loss, inputs)" in text


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: paddle.grad(x, x, grad_outputs=[x, x]), ValueError, "2 grad_outputs for 1 outputs"),
        (lambda x: paddle.grad(x, x, grad_outputs=x[:2]), ValueError, "must have the shape of its tensor"),
        (lambda x: paddle.grad(3.0, x), TypeError, "outputs holds a float"),
        (lambda x: paddle.grad(x, "x"), TypeError, "inputs holds a str"),
    ],
)
def test_wrong_arguments_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        paddle.jit.to_static(call, full_graph=True)(tensor(3))
