"""LookAhead, ModelAverage, derivatives and minimisation of functions, masked softmax."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import incubate
from sampan.base.errors import ArgumentError
from sampan.incubate import autograd
from sampan.incubate.optimizer import functional


def trained(count, after_step):
    w = paddle.ones([1])
    w.stop_gradient = False
    step, seen = after_step(paddle.optimizer.SGD(0.1, parameters=[w]), w), []
    for _ in range(count):
        w.grad = paddle.ones([1])
        step()
        seen.append(round(w.item(), 4))
    return seen


def test_lookahead_goes_back_every_k_steps():
    # Paddle's numbers: the slow weights begin after the first step
    found = trained(7, lambda optimizer, w: incubate.LookAhead(optimizer, alpha=0.2, k=3).step)
    assert found == [0.9, 0.8, 0.86, 0.76, 0.66, 0.8, 0.7]


def test_lookahead_passes_other_calls_to_its_optimizer():
    w = paddle.ones([1])
    w.stop_gradient = False
    ahead = incubate.LookAhead(paddle.optimizer.SGD(0.1, parameters=[w]))
    ahead.minimize((w * 2).sum())
    assert ahead.get_lr() == 0.1
    ahead.clear_grad()
    assert w.grad.item() == 0.0
    with pytest.raises(ArgumentError, match="alpha"):
        incubate.LookAhead(ahead.inner_optimizer, alpha=2.0)


def test_model_average_is_over_one_to_two_windows_and_is_restored():
    averages = []

    def after(optimizer, w):
        average = incubate.ModelAverage(0.5, [w], min_average_window=2, max_average_window=4)

        def step():
            optimizer.step()
            average.step()
            with average.apply():
                averages.append(round(w.item(), 4))

        return step

    weights = trained(9, after)
    # Paddle's numbers
    assert averages == [0.9, 0.85, 0.8, 0.65, 0.6, 0.55, 0.4, 0.35, 0.3]
    assert weights == [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]


def test_jacobians_put_all_inputs_side_by_side():
    a, b = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]]), paddle.to_tensor([[1.0, 2.0], [3.0, 5.0]])
    found = autograd.Jacobian(paddle.matmul, [a, b])
    assert found.shape == [4, 8]
    np.testing.assert_allclose(found[0].numpy(), [1, 3, 0, 0, 1, 0, 2, 0])
    batched = autograd.Jacobian(lambda x: x * x, a, is_batched=True)
    np.testing.assert_allclose(batched[:].numpy(), [[[2, 0], [0, 4]], [[6, 0], [0, 8]]])


def test_hessians_and_products():
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    found = autograd.Hessian(lambda v: (v * v * v).sum(1, keepdim=True), x, is_batched=True)
    np.testing.assert_allclose(found[:].numpy(), [[[6, 0], [0, 12]], [[18, 0], [0, 24]]])
    _, product = autograd.vjp(lambda v: v * v, x, paddle.to_tensor([[1.0, 0.0], [0.0, 1.0]]))
    np.testing.assert_allclose(product.numpy(), [[2, 0], [0, 8]])
    _, product = autograd.jvp(lambda v: v * v, x, paddle.ones([2, 2]))
    np.testing.assert_allclose(product.numpy(), [[2, 4], [6, 8]])


@pytest.mark.parametrize("minimize", [functional.minimize_bfgs, functional.minimize_lbfgs])
def test_functions_are_minimised(minimize):
    target, stretch = paddle.to_tensor([1.0, -2.0]), paddle.to_tensor([1.0, 30.0])
    found = minimize(lambda x: ((x - target) ** 2 * stretch).sum(), paddle.full([2], 3.0))
    is_converged, calls, position, value, gradient, *inverse = found
    assert is_converged.tolist() == [True]
    assert calls.item() < 25
    np.testing.assert_allclose(position.numpy(), [1.0, -2.0], atol=1e-5)
    np.testing.assert_allclose([value.item(), *gradient.tolist()], 0.0, atol=1e-4)
    if inverse:
        np.testing.assert_allclose(inverse[0].numpy(), [[0.5, 0.0], [0.0, 1 / 60]], atol=1e-3)


def test_rosenbrocks_valley_is_followed_in_float64():
    def rosenbrock(x):
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    start = paddle.to_tensor([-1.2, 1.0], "float64")
    for minimize in (functional.minimize_bfgs, functional.minimize_lbfgs):
        found = minimize(rosenbrock, start, max_iters=100, dtype="float64")
        np.testing.assert_allclose(found[2].numpy(), [1.0, 1.0], atol=1e-5)
    with pytest.raises(ArgumentError, match="symmetric"):
        functional.minimize_bfgs(rosenbrock, start, initial_inverse_hessian_estimate=-paddle.eye(2))


def test_masked_softmaxes():
    scores = paddle.arange(9, dtype="float32").reshape([1, 1, 3, 3])
    found = incubate.softmax_mask_fuse_upper_triangle(scores).numpy()[0, 0]
    e = np.exp(np.tril(np.arange(9.0).reshape(3, 3) - np.arange(0, 9, 3)[:, None])) * np.tril(np.ones((3, 3)))
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-5)
    mask = paddle.to_tensor(np.where(np.eye(3) > 0, -1e9, 0).astype("float32").reshape(1, 1, 3, 3))
    assert np.diagonal(incubate.softmax_mask_fuse(scores, mask).numpy()[0, 0]).tolist() == [0, 0, 0]
    assert incubate.identity_loss(scores, "mean").item() == 4.0


def test_products_with_jacobians_are_differentiable():
    x = paddle.to_tensor([1.0, 2.0])
    for function in (paddle.incubate.autograd.vjp, paddle.incubate.autograd.jvp):
        _, found = function(lambda t: t * t * t, x)
        assert found.tolist() == [3.0, 12.0]
        assert found.stop_gradient is False


def test_whether_prim_is_enabled_is_remembered():
    paddle.incubate.autograd.enable_prim()
    assert paddle.incubate.autograd.prim_enabled()
    paddle.incubate.autograd.disable_prim()
    assert not paddle.incubate.autograd.prim_enabled()


def test_model_average_clears_gradients():
    weight = paddle.create_parameter([2], "float32")
    average = paddle.incubate.ModelAverage(0.15, [weight], min_average_window=2, max_average_window=10)
    (weight * 2).sum().backward()
    average.clear_grad()
    assert weight.grad is None or not weight.grad.numpy().any()
