"""Recording, backward and its edges, on the public operators."""

import gc
import threading

import numpy as np
import pytest

import sampan as paddle


def leaf(value, dtype="float32"):
    return paddle.to_tensor(value, dtype=dtype, stop_gradient=False)


def test_no_grad_and_enable_grad_nest_as_contexts_and_decorators():
    x = leaf([1.0])

    @paddle.no_grad()
    def silent():
        with paddle.enable_grad():
            inner = x * 2
        return x * 2, inner

    @paddle.no_grad
    def bare():
        return x * 2

    outer, inner = silent()
    assert outer.stop_gradient
    assert not inner.stop_gradient
    assert bare().stop_gradient
    assert paddle.is_grad_enabled()


def test_no_grad_holds_inside_a_generator_and_not_between_its_steps():
    x = leaf([1.0])

    @paddle.no_grad()
    def steps():
        received = yield x * 2
        yield x * received

    generator = steps()
    assert next(generator).stop_gradient
    assert not (x * 2).stop_gradient
    assert generator.send(3.0).stop_gradient


def test_recording_is_restored_when_a_block_raises():
    with pytest.raises(KeyError), paddle.no_grad():
        raise KeyError
    assert paddle.is_grad_enabled()


def test_set_grad_enabled_acts_at_once_and_as_a_context():
    paddle.set_grad_enabled(False)
    assert not paddle.is_grad_enabled()
    paddle.set_grad_enabled(True)
    with paddle.set_grad_enabled(False):
        assert not paddle.is_grad_enabled()
    assert paddle.is_grad_enabled()


def test_recording_is_a_matter_of_the_thread():
    seen = []
    with paddle.no_grad():
        thread = threading.Thread(target=lambda: seen.append(paddle.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_gradients_accumulate_until_cleared():
    x = leaf([1.0, 2.0])
    for _ in range(2):
        (x * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    x.clear_gradient()
    assert x.grad is None or not x.grad.any()
    (x * 3).sum().backward()
    assert x.gradient().tolist() == [3.0, 3.0]


def test_several_roots_that_depend_on_each_other():
    a, b = leaf([1.0]), leaf([2.0])
    c = a + b
    d = c + c
    e = d + d
    ones = paddle.to_tensor([1.0])
    paddle.autograd.backward([e, c, d], [ones, ones, ones])
    assert a.grad.tolist() == b.grad.tolist() == [7.0]


def test_a_second_backward_needs_retain_graph():
    x = leaf([2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()


def test_grad_leaves_the_tensors_gradients_alone():
    x = leaf([3.0])
    y = x * x
    (found,) = paddle.grad(y, x)
    assert found.tolist() == [6.0]
    assert x.grad is None


def test_unused_inputs_raise_or_give_none():
    x, unused = leaf([1.0]), leaf([1.0])
    with pytest.raises((RuntimeError, ValueError), match="allow_unused"):
        paddle.grad(x * 2, [x, unused])
    found = paddle.grad(x * 2, [x, unused], allow_unused=True)
    assert found[0].tolist() == [2.0]
    assert found[1] is None


def test_no_grad_vars_stop_the_flow():
    x = leaf([2.0])
    y = x * x
    (found,) = paddle.grad(x + y, x, no_grad_vars=[y])
    assert found.tolist() == [1.0]


@pytest.mark.parametrize("order", [2, 3])
def test_higher_derivatives(order):
    x = leaf([1.5], "float64")
    y = paddle.exp(x) * x**3
    for _ in range(order):
        (y,) = paddle.grad(y.sum(), x, create_graph=True)
    v = 1.5
    expected = {2: v**3 + 6 * v**2 + 6 * v, 3: v**3 + 9 * v**2 + 18 * v + 6}[order] * np.exp(v)
    np.testing.assert_allclose(y.numpy(), [expected], rtol=1e-12)


def test_double_backward_reaches_the_leaf():
    x = leaf([2.0])
    (first,) = paddle.grad((x**3).sum(), x, create_graph=True)
    (first * first).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [2 * 12.0 * 12.0])


def test_given_gradients_must_fit():
    x = leaf([1.0, 2.0])
    y = x * 2
    with pytest.raises((ValueError, RuntimeError), match="shape"):
        y.backward(paddle.to_tensor([1.0, 2.0, 3.0]), retain_graph=True)
    y.backward(paddle.to_tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 20.0]


@pytest.mark.parametrize(
    "call", [lambda: paddle.autograd.backward("x"), lambda: paddle.grad(1, leaf([1.0])), lambda: paddle.grad(leaf([1.0]), None)]
)
def test_what_is_no_tensor_raises(call):
    with pytest.raises(TypeError, match="Tensor"):
        call()


def test_backward_of_a_non_scalar_starts_from_ones():
    x = leaf([1.0, 2.0])
    (x * x).backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_hooks_see_and_replace_gradients_and_can_be_removed():
    x = leaf([1.0])
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    handle = y.register_hook(lambda g: g * 10)
    removed = y.register_hook(lambda g: g * 100)
    removed.remove()
    (y * 3).sum().backward()
    assert seen == [3.0]
    assert x.grad.tolist() == [60.0]
    handle.remove()


def test_hooks_of_a_leaf_run_before_it_accumulates():
    x = leaf([1.0])
    x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_an_exception_in_a_hook_reaches_the_caller():
    x = leaf([1.0])
    y = x * 2
    y.register_hook(lambda g: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()


def test_retained_gradients_of_results():
    x = leaf([1.0])
    y = x * 2
    y.retain_grads()
    (y * y).sum().backward()
    assert y.grad.tolist() == [4.0]


def test_a_change_of_a_saved_value_is_found_by_backward():
    x = leaf([1.0, 2.0, 3.0])
    y = x**2
    z = y**2
    y[1:2] = 3.3
    with pytest.raises(RuntimeError, match=r"version|modified|changed"):
        z.sum().backward()


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.add_(paddle.to_tensor([1.0, 1.0])),
        lambda y: y.detach().zero_(),
        lambda y: y.set_value(np.zeros(2, "float32")),
        lambda y: y[0].fill_(0.0),
        lambda y: y.reshape([2, 1]).zero_(),
    ],
)
def test_every_kind_of_write_is_found_by_backward(change):
    x = leaf([1.0, 2.0])
    y = x * 1.0
    z = y * y
    change(y)
    with pytest.raises(RuntimeError, match=r"version|modified|changed"):
        z.sum().backward()


def test_a_write_to_what_backward_does_not_need_is_allowed():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    z = y + 1.0
    y.add_(paddle.to_tensor([5.0, 5.0]))
    (z.sum() + (y * y).sum()).backward()
    assert x.grad.tolist() == [2.0 + 2 * 7 * 2, 2.0 + 2 * 9 * 2]


def test_in_place_operators_on_a_leaf_raise_and_change_nothing():
    x = leaf([1.0])
    for call in (lambda: x.add_(x), lambda: x.zero_(), lambda: x.exp_(), lambda: x.fill_(x)):
        with pytest.raises(ValueError, match="leaf"):
            call()
    assert x.tolist() == [1.0]


def test_augmented_assignment_makes_a_new_tensor_as_in_paddle():
    x = leaf([1.0])
    y = x
    y += 1.0
    assert x.tolist() == [1.0]
    assert y.tolist() == [2.0]
    assert not y.is_leaf


def test_in_place_writes_through_views_reach_the_base_with_gradients_of_the_view():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1.0
    y[0].add_(paddle.to_tensor([10.0, 10.0]))
    assert y.tolist() == [[11.0, 12.0], [3.0, 4.0]]


class Cube(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensor()
        return grad * 3 * x * x


def test_pylayer_and_its_second_derivative():
    x = leaf([2.0])
    y = Cube.apply(x)
    (first,) = paddle.grad(y, x, create_graph=True)
    assert first.tolist() == [12.0]
    (second,) = paddle.grad(first, x)
    assert second.tolist() == [12.0]


def test_pylayer_of_several_inputs_and_outputs_with_missing_gradients():
    class Split(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x, factor, y):
            ctx.factor = factor
            return x * factor, y * 2

        @staticmethod
        def backward(ctx, dx, dy):
            assert dy.tolist() == [0.0]
            return dx * ctx.factor, None

    x, y = leaf([1.0]), leaf([5.0])
    first, _ = Split.apply(x, 4.0, y)
    first.sum().backward()
    assert x.grad.tolist() == [4.0]
    assert y.grad is None


def test_pylayer_must_give_one_gradient_for_each_tensor():
    class Wrong(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match=r"gave 1 gradients.*took 2"):
        Wrong.apply(leaf([1.0]), leaf([1.0])).backward()


def test_pylayer_finds_a_change_of_what_it_saved():
    x = leaf([2.0]) * 1.0
    y = Cube.apply(x)
    x.zero_()
    with pytest.raises(RuntimeError, match=r"version|modified|changed"):
        y.backward()


def test_saved_tensor_hooks_pack_and_unpack():
    packed = []
    x = leaf([3.0])
    with paddle.autograd.saved_tensors_hooks(
        lambda t: packed.append(t.numpy()) or len(packed) - 1, lambda k: paddle.to_tensor(packed[k])
    ):
        y = x * x
    y.backward()
    assert packed
    assert x.grad.tolist() == [6.0]


def test_a_chain_of_100000_operators_goes_backward_and_away():
    x = leaf([1.0])
    y = x
    for _ in range(100_000):
        y = y + 1.0
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y
    z = x
    for _ in range(100_000):
        z = z * 1.0
    del z
    gc.collect()


def test_threads_record_and_go_backward_at_once():
    results = [None] * 4

    def work(k):
        x = leaf([float(k + 1)] * 50)
        for _ in range(100):
            y = (x * x).sum() + paddle.exp(x * 0.0).sum()
            x.clear_gradient()
            y.backward()
        results[k] = x.grad.tolist()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [[2.0 * (k + 1)] * 50 for k in range(4)]


def test_integer_results_carry_no_gradient():
    x = leaf([1.5, 2.5])
    assert x.astype("int64").stop_gradient
    assert (x > 2).stop_gradient
    assert paddle.argmax(x).stop_gradient


def test_unused_results_of_an_operator_cost_no_gradient():
    x = leaf([3.0, 1.0, 2.0])
    _, second, _ = paddle.split(x, 3)
    second.backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_gradients_at_edges_follow_the_subgradient_conventions():
    zero = leaf([0.0, 0.0, 0.0])
    paddle.linalg.norm(zero, p=2).backward()
    assert zero.grad.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("shape", [[0], [2, 0], []])
def test_empty_and_0d_tensors_go_backward(shape):
    x = paddle.to_tensor(np.ones(shape, "float32"), stop_gradient=False)
    (x * 2).sum().backward()
    assert x.grad.shape == shape
    np.testing.assert_array_equal(x.grad.numpy(), np.full(shape, 2.0))


def test_broadcast_operands_get_summed_gradients():
    x, y = leaf(np.ones([3, 1])), leaf(np.ones([2, 1, 4]))
    (x * y).sum().backward()
    assert x.grad.tolist() == [[8.0]] * 3
    assert y.grad.tolist() == [[[3.0] * 4]] * 2


def test_matmul_with_a_transposed_vector():
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = leaf([1.0, 0.0, -1.0])
    out = paddle.matmul(x, y, transpose_y=True)
    out.sum().backward()
    assert out.tolist() == [-2.0, -2.0]
    assert x.grad.tolist() == [[1.0, 0.0, -1.0]] * 2
    assert y.grad.tolist() == [5.0, 7.0, 9.0]


def test_pylayer_backward_takes_a_gradient_for_every_output():
    class Tanh(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            y, doubled = paddle.tanh(x), x * 2
            ctx.mark_non_differentiable(doubled)
            ctx.save_for_backward(y)
            return y, doubled, x.astype("int64")

        @staticmethod
        def backward(ctx, dy, d_doubled, d_integer):
            assert d_doubled.tolist() == [0.0]
            assert d_integer.dtype.name == "int64"
            (y,) = ctx.saved_tensor()
            return dy * (1 - y * y)

    x = leaf([0.5])
    y, doubled, integer = Tanh.apply(x)
    assert doubled.stop_gradient
    assert integer.stop_gradient
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 - np.tanh(0.5) ** 2], rtol=1e-6)
