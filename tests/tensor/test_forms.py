"""Forms of calls that Paddle's signatures allow: separate arguments for a list, keyword-only parameters, ``name``, what may be left out."""

import numpy as np
import pytest

import sampan as paddle
from sampan.base.errors import ArgumentError, ArgumentTypeError, AutogradError, UnsupportedError
from sampan.ops import OPERATORS
from sampan.ops.define import REQUIRED

VARIADIC = {
    "atleast_1d": (paddle.atleast_1d, np.atleast_1d),
    "atleast_2d": (paddle.atleast_2d, np.atleast_2d),
    "atleast_3d": (paddle.atleast_3d, np.atleast_3d),
    "meshgrid": (paddle.meshgrid, lambda *xs: np.meshgrid(*xs, indexing="ij")),
}


def arrays(result):
    return [t.numpy() for t in result] if isinstance(result, (list, tuple)) else [result.numpy()]


@pytest.mark.parametrize("name", VARIADIC)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_tensors_may_be_given_as_separate_arguments_or_as_one_list(name, count):
    function, reference = VARIADIC[name]
    data = [np.arange(k + 1.0, dtype="float32") for k in range(count)]
    tensors = [paddle.to_tensor(a) for a in data]
    expected = reference(*data)
    expected = list(expected) if isinstance(expected, (list, tuple)) else [expected]
    for result in (function(*tensors), function(tensors), function(tuple(tensors)), function(*tensors, name="n")):
        for got, wanted in zip(arrays(result), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_one_tensor_gives_one_result_where_several_give_a_list():
    x = paddle.to_tensor(1.0)
    assert paddle.atleast_2d(x).shape == [1, 1]
    assert isinstance(paddle.atleast_2d(x, x), list)
    assert [t.shape for t in paddle.to_tensor([1.0]).atleast_2d(x)] == [[1, 1], [1, 1]]
    assert isinstance(paddle.meshgrid(paddle.ones([2])), list)


def test_separate_arguments_carry_gradients():
    x, y = (paddle.to_tensor(v, stop_gradient=False) for v in ([1.0, 2.0], [3.0]))
    paddle.einsum("i,j->", x, y).backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert y.grad.tolist() == [3.0]


def test_einsum_takes_operands_one_by_one_or_as_a_list():
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    assert paddle.einsum("ij->", x).item() == paddle.einsum("ij->", [x]).item() == 10.0
    assert paddle.einsum("ij,jk->ik", x, x).tolist() == paddle.einsum("ij,jk->ik", [x, x]).tolist() == [[7.0, 10.0], [15.0, 22.0]]


def test_add_n_takes_one_tensor_as_a_list_of_it():
    x = paddle.to_tensor([1.0, 2.0])
    assert paddle.add_n(x).tolist() == [1.0, 2.0]
    assert paddle.add_n([x, x], "sum").tolist() == [2.0, 4.0]


@pytest.mark.parametrize("name", ["concat", "stack", "hstack", "broadcast_tensors", "block_diag", "multiplex"])
def test_a_list_parameter_refuses_a_lone_tensor_by_its_name(name):
    x = paddle.ones([2, 2])
    arguments = (x, paddle.to_tensor([0, 1])) if name == "multiplex" else (x,)
    with pytest.raises(TypeError, match=rf"{name}\(.*(x|input|inputs) must be a list or tuple of Tensors"):
        getattr(paddle, name)(*arguments)


def test_a_variadic_operator_without_arguments_says_what_is_missing():
    with pytest.raises(TypeError, match="needs a value for 'inputs'"):
        paddle.meshgrid()


# ------------------------------------------------------------------ name, and parameters after it


@pytest.mark.parametrize("name", [None, "sum"])
def test_name_may_follow_the_positional_parameters(name):
    x = paddle.to_tensor([1.0, 2.0])
    assert paddle.add(x, x, name).tolist() == [2.0, 4.0]
    assert paddle.mean(x, 0, False, name).item() == 1.5
    assert paddle.rand_like(x, name).shape == [2]
    assert paddle.divide(x, x, name).tolist() == [1.0, 1.0]


def test_parameters_that_follow_name_are_given_by_name_only():
    x = paddle.to_tensor([1.0, 2.0])
    assert paddle.add(x, x, alpha=3).tolist() == [4.0, 8.0]
    with pytest.raises(TypeError, match=r"add\(x, y, \*, alpha=1\): takes at most 2 positional arguments, and 3 were given"):
        paddle.add(x, x, 3)


def test_signatures_show_both():
    assert str(paddle.add.__signature__) == "(x, y, name=None, *, alpha=1, out=None)"
    assert str(paddle.meshgrid.__signature__) == "(*inputs, name=None, indexing='ij', out=None)"


@pytest.mark.parametrize("name", [n for n, d in OPERATORS.items() if any(p.is_keyword_only for p in d.parameters)])
def test_keyword_only_parameters_have_defaults_or_are_keys(name):
    for parameter in OPERATORS[name].parameters:
        if parameter.is_keyword_only and parameter.name != "key":
            assert parameter.default is not REQUIRED, parameter


# ------------------------------------------------------------------ where and assign


def test_where_of_a_condition_alone_gives_positions():
    condition = paddle.to_tensor([[True, False], [True, True]])
    for result in (paddle.where(condition), condition.where(), paddle.where(condition.astype("int32"))):
        assert isinstance(result, tuple)
        assert [t.tolist() for t in result] == [[0, 1, 1], [0, 0, 1]]
        assert all(t.dtype == paddle.int64 for t in result)


@pytest.mark.parametrize(("arguments", "missing"), [({"x": 1.0}, "y"), ({"y": 1.0}, "x")])
def test_where_with_one_of_two_raises(arguments, missing):
    with pytest.raises(ArgumentError, match=f"and {missing} is not"):
        paddle.where(paddle.to_tensor([True]), **arguments)


def test_where_selects_with_gradients_and_into_out():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    condition = paddle.to_tensor([True, False])
    paddle.where(condition, x, 0.0).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
    out = paddle.zeros([2])
    assert paddle.where(condition, x.detach(), 5.0, out=out) is out
    assert out.tolist() == [1.0, 5.0]


def test_where_in_place_writes_into_x_and_leaves_the_condition():
    condition, x = paddle.to_tensor([True, False]), paddle.to_tensor([1.0, 2.0])
    assert paddle.where_(condition, x, paddle.zeros([2])) is x
    assert x.tolist() == [1.0, 0.0]
    assert condition.tolist() == [True, False]


@pytest.mark.parametrize(
    ("data", "dtype", "expected"),
    [
        (1, "int64", [1]),
        (True, "bool", [True]),
        (1.5, "float64", [1.5]),
        ([1, 2], "int64", [1, 2]),
        ([1.5, 2], "float64", [1.5, 2.0]),
        (np.array([[1.0]], "float32"), "float32", [[1.0]]),
    ],
)
def test_assign_makes_tensors_of_plain_data(data, dtype, expected):
    made = paddle.assign(data)
    assert (made.dtype.name, made.tolist()) == (dtype, expected)


@pytest.mark.parametrize("shape", [[2], [3, 4]])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_assign_gives_the_output_the_shape_dtype_and_history_of_x(shape, dtype):
    output = paddle.zeros(shape, dtype)
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    assert paddle.assign(x, output) is output
    assert (output.dtype.name, output.tolist()) == ("float32", [1.0, 2.0])
    (output * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_assign_refuses_a_leaf_that_wants_a_gradient():
    output = paddle.to_tensor([0.0, 0.0], stop_gradient=False)
    with pytest.raises(ValueError, match="leaf"):
        paddle.assign(paddle.ones([2]), output)
    with pytest.raises(ArgumentTypeError, match="output is a list"):
        paddle.assign(paddle.ones([2]), [0.0])


# ------------------------------------------------------------------ backward


def product():
    x, w = (paddle.to_tensor([v], stop_gradient=False) for v in (2.0, 3.0))
    return x, w, x * w


def test_backward_to_inputs_leaves_other_leaves_alone():
    x, w, y = product()
    (y * 5).backward(inputs=w)
    assert x.grad is None
    assert w.grad.tolist() == [10.0]


def test_backward_to_inputs_accumulates_also_into_what_is_no_leaf():
    x, w, y = product()
    for _ in range(2):
        (y * 5).backward(retain_graph=True, inputs=[y, x])
    assert y.grad.tolist() == [10.0]
    assert x.grad.tolist() == [30.0]
    assert w.grad is None


def test_backward_to_inputs_keeps_apart_from_the_gradient_that_was_given():
    x = paddle.to_tensor([1.0], stop_gradient=False)
    given = paddle.to_tensor([2.0])
    (x * 1).reshape([1]).backward(given, inputs=[x])
    x.grad.set_value([7.0])
    assert given.tolist() == [2.0]


def test_backward_to_inputs_with_create_graph_can_be_differentiated_again():
    x = paddle.to_tensor([3.0], stop_gradient=False)
    (x * x * x).backward(create_graph=True, inputs=[x])
    (second,) = paddle.grad(x.grad, x)
    assert second.tolist() == [18.0]


@pytest.mark.parametrize("inputs", [[], [paddle.to_tensor([1.0])]])
def test_backward_to_inputs_that_want_no_gradient_raises(inputs):
    with pytest.raises(ArgumentError, match=r"inputs(\[0\] has stop_gradient=True| is an empty list)"):
        product()[2].backward(inputs=inputs)


def test_gradients_have_stop_gradient_false_where_they_are_kept_and_true_where_grad_gives_them():
    x, w, y = product()
    y.retain_grads()
    given = paddle.to_tensor([1.0])
    y.backward(given)
    assert not any(t.grad.stop_gradient for t in (x, w, y))
    assert given.stop_gradient
    assert x.grad.is_leaf
    assert paddle.grad(x * w, x)[0].stop_gradient


def test_a_gradient_that_is_kept_is_changed_under_no_grad_only():
    x, _, y = product()
    y.backward()
    with pytest.raises((AutogradError, ValueError), match="no_grad"):
        x.grad.scale_(2.0)
    with paddle.no_grad():
        x.grad.scale_(2.0)
    assert x.grad.tolist() == [6.0]


@pytest.mark.parametrize(
    "call",
    [lambda y: y.backward(dump_backward_graph_path="."), lambda y: paddle.autograd.backward([y], dump_backward_graph_path=".")],
)
def test_drawings_of_the_graph_are_refused(call):
    with pytest.raises(UnsupportedError, match="dump_backward_graph_path"):
        call(product()[2])


@pytest.mark.parametrize(("casts", "seen"), [(None, "float32"), (True, "float32"), (False, "float16")])
def test_a_pylayer_sees_gradients_in_its_outputs_dtype_unless_it_says_otherwise(casts, seen):
    arrived = []

    class First(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            if casts is not None:
                ctx.set_grad_in_dtype_consistent(casts)
            return x * 1

        @staticmethod
        def backward(ctx, dy):
            arrived.append(dy.dtype.name)
            return dy.astype("float32")

    class Narrowing(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, dy):
            return dy.astype("float16")

    x = paddle.to_tensor([1.0], stop_gradient=False)
    Narrowing.apply(First.apply(x)).sum().backward()
    assert arrived == [seen]
    assert x.grad.dtype == paddle.float32
