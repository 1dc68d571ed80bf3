"""Control flow in ``with`` blocks and tensor arrays, with gradients, nested, and out of order."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import static
from sampan.static.nn import IfElse, StaticRNN, Switch, While
from static.programs import floats, fresh_static_mode, run


@pytest.fixture(autouse=True)
def static_mode():
    with fresh_static_mode() as main:
        yield main


# ---------------------------------------------------------------------- arrays


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_arrays_carry_values_and_gradients_through_loops(steps):
    x, n = static.data("x", [None, 3]), static.data("n", [], "int64")
    x.stop_gradient = False
    array = paddle.tensor.create_array("float32")
    paddle.tensor.array_write(x, 0, array)

    def body(i, total):
        before = paddle.tensor.array_read(array, i)
        paddle.tensor.array_write(before * 2, i + 1, array)
        return i + 1, total + before.sum()

    _, total = static.nn.while_loop(lambda i, _: i < n, body, [paddle.zeros([], "int64"), paddle.zeros([])])
    rows, sizes = paddle.tensor.tensor_array_to_tensor(array, 0, use_stack=True)
    (g,) = static.gradients((rows * rows).sum() + total, x)
    given = floats(2, 3)
    outs = run([rows, sizes, paddle.tensor.array_length(array), total, g], {"x": given, "n": np.array(steps)})
    powers = 2.0 ** np.arange(steps + 1)
    np.testing.assert_allclose(outs[0], powers[:, None, None] * given, rtol=1e-6)
    assert (outs[1].tolist(), outs[2].item()) == ([1] * (steps + 1), steps + 1)
    np.testing.assert_allclose(outs[3], given.sum() * powers[:-1].sum(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(outs[4], 2 * given * (powers**2).sum() + powers[:-1].sum(), rtol=1e-5, atol=1e-5)


def test_an_array_filled_in_a_loop_joins_elements_of_different_sizes():
    x, n = static.data("x", [None, 2]), static.data("n", [], "int64")
    x.stop_gradient = False
    array = paddle.tensor.create_array("float32")

    def body(i):
        paddle.tensor.array_write(x[: i + 1] * i.astype("float32"), i, array)
        return (i + 1,)

    static.nn.while_loop(lambda i: i < n, body, [paddle.zeros([], "int64")])
    joined, sizes = paddle.tensor.tensor_array_to_tensor(array, 0)
    (g,) = static.gradients(joined.sum(), x)
    outs = run([joined, sizes, g, array], {"x": np.ones((4, 2), "float32"), "n": np.array(3)})
    assert outs[0][:, 0].tolist() == [0, 1, 1, 2, 2, 2]
    assert outs[1].tolist() == [1, 2, 3]
    assert outs[2][:, 1].tolist() == [3, 3, 2, 0]
    assert [a.shape for a in outs[3]] == [(1, 2), (2, 2), (3, 2)]


def test_arrays_in_branches_and_overwritten_elements():
    x, flag = static.data("x", [2]), static.data("flag", [], "bool")
    x.stop_gradient = False
    array = paddle.tensor.create_array("float32", [x * 2, x * 3])

    def change():
        paddle.tensor.array_write(x * 10, 0, array)

    static.nn.cond(flag, change, None)
    y = paddle.tensor.array_read(array, 0) + paddle.tensor.array_read(array, paddle.ones([1], "int64"))
    (g,) = static.gradients(y.sum(), x)
    for on in (True, False):
        outs = run([y, g], {"x": np.ones(2, "float32"), "flag": np.array(on)})
        assert [o.tolist() for o in outs] == [[13.0 if on else 5.0] * 2] * 2


def test_arrays_are_lists_in_eager_mode():
    paddle.disable_static()
    array = paddle.tensor.array_write(paddle.ones([2]), paddle.to_tensor(0))
    paddle.tensor.array_write(paddle.zeros([2]), 1, array)
    paddle.tensor.array_write(paddle.full([2], 5.0), 0, array)
    assert isinstance(array, list)
    assert paddle.tensor.array_length(array) == 2
    assert paddle.tensor.array_read(array, paddle.to_tensor([0])).tolist() == [5, 5]
    assert paddle.tensor.tensor_array_to_tensor(array, 0)[0].tolist() == [5, 5, 0, 0]
    with pytest.raises(IndexError, match="2 elements"):
        paddle.tensor.array_write(paddle.ones([2]), 5, array)
    paddle.enable_static()


def test_misuse_of_arrays_is_refused():
    x = static.data("x", [2])
    array = paddle.tensor.create_array("float32")
    with pytest.raises(TypeError, match="no element yet"):
        paddle.tensor.array_read(array, 0)
    with pytest.raises(TypeError, match="array_read"):
        array + x
    with pytest.raises(TypeError, match="int64"):
        paddle.tensor.array_write(x.astype("int64"), 0, array)
    with pytest.raises(TypeError, match="tensor array"):
        paddle.tensor.array_length(x)
    with pytest.raises(TypeError, match="integer"):
        paddle.tensor.array_write(x, 1.5, array)
    with pytest.raises(ValueError, match="one integer"):
        paddle.tensor.array_write(x, x, array)
    with pytest.raises(TypeError, match="tensor"):
        paddle.tensor.array_write(3, 0, array)
    with pytest.raises(TypeError, match="list of tensors"):
        paddle.tensor.create_array("float32", [3])
    paddle.tensor.array_write(x, 1, array)
    with pytest.raises(IndexError, match="element 0 was not written"):
        run([paddle.tensor.array_read(array, 0)], {"x": np.ones(2, "float32")})
    with pytest.raises(IndexError, match="element 7 was not written"):
        run([paddle.tensor.array_read(array, 7)], {"x": np.ones(2, "float32")})
    with pytest.raises(ValueError, match="axis=2"):
        paddle.tensor.tensor_array_to_tensor(array, 2)


# ---------------------------------------------------------------------- While


@pytest.mark.parametrize("times", [0, 1, 4])
def test_while_block_with_gradients(times):
    x, n = static.data("x", [2]), static.data("n", [], "int64")
    x.stop_gradient = False
    i, y = paddle.zeros([], "int64"), x + 1
    test = i < n
    with While(test).block():
        paddle.assign(y * x, y)
        paddle.increment(i)
        paddle.assign(i < n, output=test)
    (g,) = static.gradients((y * 1).sum(), x)
    given = np.array([2, 0.5], "float32")
    outs = run([y, g, i], {"x": given, "n": np.array(times)})
    np.testing.assert_allclose(outs[0], (given + 1) * given**times, rtol=1e-6)
    np.testing.assert_allclose(outs[1], given**times + times * (given + 1) * given ** max(times - 1, 0) * (times > 0), rtol=1e-6)
    assert outs[2] == times


def test_while_blocks_nest_with_layers_inside(static_mode):
    x = static.data("x", [None, 2])
    i, total = paddle.zeros([1], "int64"), x * 0
    outer = i < 3
    with While(outer).block():
        j = paddle.zeros([1], "int64")
        inner = j < i
        with While(inner).block():
            total.add_(static.nn.fc(x, 2, weight_attr="w", bias_attr=False))
            j.add_(paddle.ones([1], "int64"))
            paddle.less_than(j, i, out=inner)
        paddle.increment(i)
        paddle.less_than(i, paddle.full([1], 3, "int64"), out=outer)
    loss = (total * 1).sum()
    pairs = static.append_backward(loss)
    given = floats(4, 2)
    got, slope = run([loss, pairs[0][1]], {"x": given}, start=True)
    w = static.global_scope().find_var("w").get_tensor().numpy()
    np.testing.assert_allclose(got, 3 * (given @ w).sum(), rtol=1e-5)
    np.testing.assert_allclose(slope, 3 * np.repeat(given.sum(0)[:, None], 2, 1), rtol=1e-5)


def test_dropout_in_a_while_block_draws_anew():
    x = static.data("x", [64])
    i, first, second = paddle.zeros([1], "int64"), x * 1, x * 1
    test = i < 2
    with While(test).block():
        paddle.assign(second, first)
        paddle.assign(paddle.nn.functional.dropout(x, 0.5), second)
        paddle.increment(i)
        paddle.assign(i < 2, test)
    a, b = run([first, second], {"x": np.ones(64, "float32")})
    assert (a != b).any()


def test_a_while_block_must_write_its_condition():
    test = static.data("x", [1]) > 0
    with pytest.raises(ValueError, match="run for ever"), While(test).block():
        pass
    with pytest.raises(TypeError, match="bool"):
        While(static.data("y", [1]))
    with pytest.raises(TypeError, match="Variable"):
        While(True)
    with pytest.raises(ValueError, match="one element"):
        While(static.data("z", [2]) > 0)
    paddle.disable_static()
    for make in (lambda: While(paddle.ones([1]) > 0), Switch, StaticRNN, lambda: IfElse(paddle.ones([1]) > 0)):
        with pytest.raises(NotImplementedError, match="eager mode"):
            make()
    paddle.enable_static()


# ---------------------------------------------------------------------- Switch


@pytest.mark.parametrize("has_default", [True, False])
def test_switch_runs_the_first_case_that_holds(has_default):
    k, x = static.data("k", [1], "int64"), static.data("x", [2])
    x.stop_gradient = False
    y, seen = x * 1, paddle.zeros([1], "int64")
    with Switch() as switch:
        with switch.case(k < 1):
            paddle.assign(x * 10, y)
        with switch.case(k < 2):
            paddle.assign(x * x, y)
            paddle.increment(seen)
        if has_default:
            with switch.default():
                paddle.assign(x * 100, y)
    (g,) = static.gradients((y * 1).sum(), x)
    for value, factor in ((0, 10), (1, None), (5, 100 if has_default else 1)):
        outs = run([y, g, seen], {"k": np.array([value]), "x": np.array([3, 4], "float32")})
        assert outs[0].tolist() == ([9, 16] if factor is None else [3 * factor, 4 * factor])
        assert outs[1].tolist() == ([6, 8] if factor is None else [factor] * 2)
        assert outs[2].tolist() == [int(value == 1)]


def test_a_switch_out_of_order_is_refused():
    x = static.data("x", [1]) > 0
    with pytest.raises(ValueError, match="no case"), Switch():
        pass
    with pytest.raises(ValueError, match="comes last"), Switch() as switch, switch.default():
        pass
    with pytest.raises(ValueError, match="outside"), Switch().case(x):
        pass
    switch = Switch()
    with switch:
        for part in (switch.case(x), switch.default()):
            with part:
                pass
        with pytest.raises(ValueError, match="after the default"), switch.case(x):
            pass


# ---------------------------------------------------------------------- IfElse


@pytest.mark.parametrize("values", [[1, -2, 3, -4], [1, 2], [-1]])
def test_ifelse_splits_and_joins_rows(values):
    x = static.data("x", [None, 1])
    x.stop_gradient = False
    split = IfElse(x > 0)
    with split.true_block():
        rows = split.input(x)
        split.output(rows * 10, rows + 0)
    with split.false_block():
        rows = split.input(x)
        split.output(-rows, rows * rows)
    y, z = split()
    (g,) = static.gradients(y.sum() + z.sum(), x)
    given = np.array(values, "float32")[:, None]
    outs = run([y, z, g], {"x": given})
    np.testing.assert_allclose(outs[0], np.where(given > 0, given * 10, -given))
    np.testing.assert_allclose(outs[1], np.where(given > 0, given, given**2))
    np.testing.assert_allclose(outs[2], np.where(given > 0, 11, -1 + 2 * given))


def test_ifelse_out_of_order_is_refused():
    x = static.data("x", [None, 1])
    split = IfElse(x > 0)
    with pytest.raises(ValueError, match="outside"):
        split.input(x)
    with split.true_block():
        split.output(split.input(x))
    with pytest.raises(ValueError, match="as many"):
        split()
    with pytest.raises(ValueError, match="twice"), split.true_block():
        pass
    with pytest.raises(TypeError, match="bool"):
        IfElse(x)


# ---------------------------------------------------------------------- StaticRNN


def test_static_rnn_equals_the_steps_by_hand(static_mode):
    x, start = static.data("x", [None, None, 3]), static.data("start", [None, 4])
    rnn = StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        before = rnn.memory(init=start)
        count = rnn.memory(shape=[-1, 1], batch_ref=x, init_value=5.0)
        now = paddle.tanh(static.nn.fc([word, before], 4, weight_attr=["wx", "wh"], bias_attr="b"))
        rnn.update_memory(before, now)
        rnn.update_memory(count, count + 1)
        rnn.output(now, count)
    hidden, counts = rnn()
    loss = (hidden * hidden).sum()
    pairs = static.append_backward(loss)
    assert [p.name for p, _ in pairs] == ["wx", "wh", "b"]
    static.Executor().run(static.default_startup_program())
    scope = static.global_scope()
    for steps, rows in ((1, 2), (4, 3)):
        xs, h0 = floats(steps, rows, 3), floats(rows, 4, seed=1)
        outs = run([hidden, counts, *(g for _, g in pairs)], {"x": xs, "start": h0})
        paddle.disable_static()
        wx, wh, b = (paddle.to_tensor(scope.find_var(n).get_tensor().numpy(), stop_gradient=False) for n in ("wx", "wh", "b"))
        h, all_h = paddle.to_tensor(h0), []
        for k in range(steps):
            h = paddle.tanh(paddle.to_tensor(xs[k]) @ wx + h @ wh + b)
            all_h.append(h)
        wanted = paddle.stack(all_h)
        (wanted * wanted).sum().backward()
        paddle.enable_static()
        np.testing.assert_allclose(outs[0], wanted.numpy(), rtol=1e-5, atol=1e-6)
        assert outs[1][:, 0, 0].tolist() == [5.0 + k for k in range(steps)]
        for got, tensor in zip(outs[2:], (wx, wh, b), strict=True):
            np.testing.assert_allclose(got, tensor.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_a_static_rnn_trains(static_mode):
    x, y = static.data("x", [None, None, 2]), static.data("y", [None, 1])
    rnn = StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        before = rnn.memory(shape=[-1, 8], batch_ref=x)
        now = static.nn.fc([word, before], 8, activation="tanh")
        rnn.update_memory(before, now)
        rnn.step_output(now)
    loss = ((static.nn.fc(rnn()[-1], 1) - y) ** 2).mean()
    paddle.optimizer.Adam(0.02).minimize(loss)
    static.Executor().run(static.default_startup_program())
    given = floats(5, 32, 2)
    feed = {"x": given, "y": np.tanh(given.sum((0, 2)))[:, None].astype("float32")}
    losses = [run([loss], feed)[0].item() for _ in range(60)]
    assert losses[-1] < losses[0] * 0.2


def test_a_static_rnn_out_of_order_is_refused():
    x = static.data("x", [3, 2, 1])
    with pytest.raises(ValueError, match="no step_input"), StaticRNN().step():
        pass
    rnn = StaticRNN()
    with pytest.raises(ValueError, match="no step_output"), rnn.step():
        rnn.step_input(x)
    with pytest.raises(ValueError, match="twice"), rnn.step():
        pass
    rnn = StaticRNN()
    with pytest.raises(ValueError, match="outside"):
        rnn.step_input(x)
    with pytest.raises(ValueError, match="not complete"):
        rnn()
    with rnn.step():
        word = rnn.step_input(x)
        with pytest.raises(ValueError, match="no memory"):
            rnn.update_memory(word, word)
        with pytest.raises(ValueError, match="made in the step"):
            rnn.memory(shape=[-1, 1], batch_ref=word)
        with pytest.raises(ValueError, match="must be given"):
            rnn.memory()
        memory = rnn.memory(shape=[-1, 1], batch_ref=x)
        with pytest.raises(ValueError, match="must stay"):
            rnn.update_memory(memory, memory.sum())
        rnn.step_output(word)
    assert rnn().shape == [-1, 2, 1]


# ---------------------------------------------------------------------- results that are written


def test_out_takes_results_in_programs():
    x = static.data("x", [2])
    y = x * 0
    assert paddle.add(x, x, out=y) is y
    outs = run([y], {"x": np.array([1, 2], "float32")})
    assert outs[0].tolist() == [2, 4]
    with pytest.raises(ValueError, match="out is"):
        paddle.add(x, x, out=paddle.zeros([3]))
    with pytest.raises(TypeError, match="out is a str"):
        paddle.add(x, x, out="y")


def test_numbers_keep_the_type_that_was_recorded():
    v = paddle.full([1], 0.5)
    assert v.dtype == "float32"
    assert run([v])[0].dtype == np.float32
