"""Variables and results that are None or a value, which of them depends on a tensor: what eager mode gives, or an error with the user's line."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan.base.errors import ConversionError

UP, DOWN = [1.0, 2.0], [-1.0, -2.0]


def returned(x):
    if x.sum() > 0:
        return x * 2
    return None


def end_reached(x):
    if x.sum() > 0:
        return x * 2


def end_reached_after_more(x):
    if x.sum() > 0:
        return x * 2
    x = x + 1
    if x.sum() > -0.5:
        return x


def variable(x):
    y = None
    if x.sum() > 0:
        y = x * 2
    return y


def either_of_two(x):
    a, b = None, None
    if x.sum() > 0:
        a = x * 2
    else:
        b = x * 3
    return a, {"b": b}


def asked(x):
    y = None
    if x.sum() > 0:
        y = x * 2
    if y is None:
        return x - 1
    return y


def used_where_it_is_there(x):
    y = None
    if x.sum() > 0:
        y = x * 2
    if y is not None:
        x = x + y.exp()
        x = paddle.maximum(x, y)
    return x


def combined_tests(x):
    y = z = None
    if x.sum() > 0:
        y = x * 2
    if x[0] > 0.5:
        z = x * 3
    if y is not None and z is not None:
        return y * z
    if y is not None or z is None:
        return x
    return z


def used_without_a_test(x):
    y = None
    if x.sum() > -100:
        y = x * 2
    return y + 1


def unrolled(x):
    best = None
    for k in range(3):
        if x[0] * k > 1:
            best = x * k
    return best


def of_a_dict(x):
    losses = {"main": x.sum(), "extra": None}
    if x.sum() > 0:
        losses["extra"] = x.mean()
    return losses


def conditional_expression(x):
    y = x * 2 if x.sum() > 0 else None
    return x if y is None else y


def numbers(x):
    count = None
    if x.sum() > 0:
        count = 3
    text = "some" if x.sum() > 0 else None
    return count, text


def several(x):
    pair = None
    if x.sum() > 0:
        pair = (x * 2, x * 3)
    if pair is not None:
        a, b = pair
        x = a + b + pair[0]
    return x, pair


def helper(x, mask=None, scale=None):
    if mask is None:
        return x * 5
    if scale is not None:
        x = x * scale
    return x * mask


def passed_on(x):
    mask = None
    if x.sum() > 0:
        mask = (x > 1.5).astype("float32")
    return helper(x, mask) + helper(x, mask=mask, scale=2.0)


class Gated(paddle.nn.Layer):
    def forward(self, x, mask=None):
        return x if mask is None else x * mask.astype("float32")


GATED = Gated()


def into_a_layer(x):
    mask = None
    if x.sum() > 0:
        mask = x > 1.5
    return GATED(x, mask)


def nested(x):
    y = None
    if x.sum() > 0:
        if x[0] > 100:
            y = x
    else:
        y = None if x[1] > -1.5 else x * 7
    return y


def inside_of_a_loop(x):
    total, k = x * 0, paddle.zeros([], "int64")
    while k < 3:
        y = None
        if x.sum() > 0:
            y = x * k.astype("float32")
        if y is not None:
            total = total + y
        k = k + 1
    return total


def summed(x):
    y, k = None, paddle.zeros([], "int64")
    while k < paddle.floor(x[1].abs()).astype("int64"):
        y = x if y is None else y + x
        k = k + 1
    return y


def first_found(x):
    found = None
    for k in range(paddle.shape(x)[0]):
        if x[k] > 0 and found is None:
            found = x[k] * 2
    return found


def left_early(x):
    for k in range(paddle.shape(x)[0]):
        if x[k] > 0.05:
            return x[k] * 2


def forgotten(x):
    y, k = x * 2, paddle.zeros([], "int64")
    while k < 3:
        if k > x[0]:
            y = None
        k = k + 1
    return y


def carried_pair(x):
    pair, k = None, paddle.zeros([], "int64")
    while k < 2:
        if x.sum() > 0:
            pair = (x * 2, 3.0) if pair is None else (pair[0] + x, pair[1] * 2)
        k = k + 1
    return pair


def found_text(x):
    word, k = None, paddle.zeros([], "int64")
    while k < 2:
        if x.sum() > 0:
            word = "up"
        k = k + 1
    return word


def in_nested_loops(x):
    best, i = None, paddle.zeros([], "int64")
    while i < 2:
        j = paddle.zeros([], "int64")
        while j < 2:
            value = x[0] * (i + j).astype("float32")
            if value > 0.6:
                best = value if best is None else paddle.maximum(best, value)
            j = j + 1
        i = i + 1
    return best


def kind_asked(x):
    y = None
    if x.sum() > 0:
        y = x * 2
    return x * 2 if isinstance(y, paddle.Tensor) else x


def into_a_library_function(x):
    mask = None
    if x.sum() > 0:
        mask = paddle.ones([1, 1, 2, 2])
    q = x.reshape([1, 2, 1, 1])
    return paddle.nn.functional.scaled_dot_product_attention(q, q, q, mask) + F.softmax_mask(x, mask)


class F:
    @staticmethod
    def softmax_mask(x, mask):
        return x * (1.0 if mask is None else 2.0)


NORM = paddle.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)


def into_a_library_layer(x):
    mask = None
    if x.sum() > 0:
        mask = paddle.ones([1, 1, 2, 2])
    return NORM(x.reshape([1, 2, 1]).expand([1, 2, 4]) * paddle.arange(4).astype("float32"), src_mask=mask).sum(-1)


def collected(x):
    found = []
    y = None
    if x.sum() > 0:
        y = x
    found.append(y)
    found.append(x)
    return found


FUNCTIONS = [
    returned, end_reached, end_reached_after_more, variable, either_of_two, asked, used_where_it_is_there, combined_tests, used_without_a_test, unrolled,
    of_a_dict, conditional_expression, numbers, several, passed_on, into_a_layer, nested, inside_of_a_loop, summed, first_found, left_early, forgotten,
    carried_pair, found_text, in_nested_loops, kind_asked, into_a_library_function, into_a_library_layer, collected,
]  # fmt: skip


def plain(value):
    if isinstance(value, paddle.Tensor):
        return value.numpy().tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return type(value)(map(plain, value)) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_recording_gives_what_eager_mode_gives(function):
    call = paddle.jit.to_static(function, full_graph=True)
    for values in (UP, DOWN, [0.7, 0.1], [-0.3, -0.1], UP):
        x = paddle.to_tensor(values)
        found, expected = plain(call(x)), plain(function(x))
        if function is into_a_library_layer:
            np.testing.assert_allclose(found, expected, atol=1e-5)
        else:
            assert found == expected


@pytest.mark.parametrize("function", [variable, asked, used_where_it_is_there, several, summed, first_found, carried_pair])
def test_gradients(function):
    call = paddle.jit.to_static(function, full_graph=True)
    for values in (UP, DOWN):
        found = []
        for f in (function, call):
            x = paddle.to_tensor(values, stop_gradient=False)
            result = f(x)
            first = result[0] if isinstance(result, tuple) else result
            if first is not None:
                (first**2).sum().backward()
            found.append(None if x.grad is None else x.grad.numpy())
        assert (found[0] is None) == (found[1] is None)
        if found[0] is not None:
            np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_a_training_step_with_an_optional_part_of_the_loss():
    def train(compiled):
        w = paddle.create_parameter([2], "float32", default_initializer=paddle.nn.initializer.Constant(0.5))
        optimizer = paddle.optimizer.SGD(0.1, parameters=[w])

        def loss_of(x):
            penalty = None
            if x.sum() > 0:
                penalty = (w * w).sum()
            loss = (w * x).sum()
            if penalty is not None:
                loss = loss + penalty
            return loss, penalty

        step = paddle.jit.TrainStep(loss_of, optimizer)
        found = []
        for values in (UP, DOWN, UP):
            x = paddle.to_tensor(values)
            if compiled:
                results = step(x)
            else:
                results = loss_of(x)
                results[0].backward()
                optimizer.step()
                optimizer.clear_grad()
            found.append(plain(results))
        return found, w.numpy()

    (expected, weights), (found, compiled) = train(False), train(True)
    assert [v[1] is None for v in found] == [False, True, False]
    np.testing.assert_allclose([v[0] for v in found], [v[0] for v in expected], rtol=1e-6)
    np.testing.assert_allclose(compiled, weights, rtol=1e-6)


def test_functions_with_optional_results_are_saved_and_loaded(tmp_path):
    class Net(paddle.nn.Layer):
        def forward(self, x):
            return either_of_two(x)

    paddle.jit.save(Net(), str(tmp_path / "net"), input_spec=[paddle.static.InputSpec([2], "float32")])
    loaded = paddle.jit.load(str(tmp_path / "net"))
    for values in (UP, DOWN):
        x = paddle.to_tensor(values)
        assert plain(loaded(x)) == plain(either_of_two(x))


# ---------------------------------------------------------------------- used where it is None, and refused


def added(x):
    y = None
    if x.sum() > 0:
        y = x * 2
    return y + 1


def operand(x):
    y = None
    if x.sum() > 0:
        y = x * 2
    return x + y


def method(x):
    y = None
    if x.sum() > 0:
        y = x * 2
    return y.exp()


@pytest.mark.parametrize("function", [added, operand, method])
def test_using_none_raises_when_the_program_comes_there(function):
    call = paddle.jit.to_static(function, full_graph=True)
    up, down = paddle.to_tensor(UP), paddle.to_tensor(DOWN)
    assert plain(call(up)) == plain(function(up))
    with pytest.raises(TypeError, match=r"None is used as a value, at test_optional_values.py:\d+"):
        call(down)


def test_a_function_that_refuses_none_raises_its_own_error():
    def called(x):
        y = None
        if x.sum() > 0:
            y = x * 2
        return paddle.exp(y)

    call = paddle.jit.to_static(called, full_graph=True)
    assert plain(call(paddle.to_tensor(UP))) == plain(called(paddle.to_tensor(UP)))
    with pytest.raises(TypeError, match="x is None"):
        call(paddle.to_tensor(DOWN))


def truth(x):
    y = None
    if x.sum() > 0:
        y = x * 2
    return x if y else x * 2


def compared(x):
    y = None
    if x.sum() > 0:
        y = x * 2
    return x if y == x else x * 2


def identity(x):
    y = None
    if x.sum() > 0:
        y = x
    return x * 2 if y is x else x


def text(x):
    y = None
    if x.sum() > 0:
        y = x
    return f"{y}"


def matched(x):
    y = None
    if x.sum() > 0:
        y = x
    match y:
        case None:
            return x
        case _:
            return x * 2


class Keeps(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        y = None
        if x.sum() > 0:
            y = x
        self.last = y
        return x


def attribute(x):
    return Keeping(x)


Keeping = Keeps()


@pytest.mark.parametrize("function", [truth, compared, identity, text, matched, attribute])
def test_what_cannot_be_told_is_refused_with_the_line(function):
    with pytest.raises(ConversionError, match=r"test_optional_values.py:\d+|Keeps.last"):
        paddle.jit.to_static(function, full_graph=True)(paddle.to_tensor(UP))
    x = paddle.to_tensor(DOWN)
    assert plain(paddle.jit.to_static(function)(x)) == plain(function(x))
