"""auto_cast, decorate and Model.prepare(amp_configs): which operators compute in which type."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan.amp import lists
from sampan.base.errors import ArgumentError
from sampan.tensor import OPS


def dtype_of(function, **options):
    with paddle.amp.auto_cast(**options):
        return function(paddle.ones([4, 4])).dtype.name


def product(x):
    return paddle.matmul(x, x)


@pytest.mark.parametrize("level", ["O1", "O2", "OD"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_compute_in_the_16_bit_type(level, dtype):
    assert dtype_of(product, level=level, dtype=dtype) == dtype


@pytest.mark.parametrize(("level", "expected"), [("O0", "float32"), ("O1", "float32"), ("O2", "bfloat16"), ("OD", "float32")])
def test_exp_computes_as_its_level_says(level, expected):
    assert dtype_of(paddle.exp, level=level, dtype="bfloat16") == expected


def test_other_operators_compute_in_the_widest_type_of_their_operands():
    with paddle.amp.auto_cast(dtype="bfloat16"):
        low = paddle.ones([2, 2]).astype("bfloat16")
        assert (low + low).dtype.name == "bfloat16"
        assert (low + paddle.ones([2, 2])).dtype.name == "float32"


def test_the_users_lists_win_also_by_paddles_names():
    assert dtype_of(product, dtype="bfloat16", custom_black_list=["matmul_v2"]) == "float32"
    assert dtype_of(paddle.exp, dtype="bfloat16", custom_white_list={"exp"}) == "bfloat16"
    with pytest.raises(ArgumentError, match="both lists"):
        dtype_of(product, custom_black_list=["mul"], custom_white_list=["matmul"])


def test_a_block_ends_and_nests():
    with paddle.amp.auto_cast(dtype="bfloat16"):
        with paddle.amp.auto_cast(enable=False):
            assert not paddle.amp.is_autocast_enabled()
            assert product(paddle.ones([2, 2])).dtype.name == "float32"
        assert paddle.amp.get_autocast_dtype() == "bfloat16"
    assert product(paddle.ones([2, 2])).dtype.name == "float32"


def test_every_name_in_the_lists_is_an_operator():
    known = set(OPS)
    assert not (lists.WHITE | lists.BLACK | lists.BLACK_O2 | set(lists.ALIASES.values())) - known
    assert not lists.WHITE & lists.BLACK


def test_gradients_of_float32_parameters_are_float32_and_rounded_once():
    x, w = paddle.to_tensor([[1.0, 1 / 3]]), paddle.to_tensor([[2.0], [3.0]], stop_gradient=False)
    with paddle.amp.auto_cast(dtype="bfloat16"):
        y = paddle.matmul(x, w)
    y.sum().backward()
    assert w.grad.dtype.name == "float32"
    # 1/3 to the nearest bfloat16, ties to even
    np.testing.assert_array_equal(w.grad.numpy(), [[1.0], [0.333984375]])


def test_an_optimizers_step_inside_the_block_keeps_its_types():
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    optimizer = paddle.optimizer.Adam(0.1, parameters=[w])
    w.grad = paddle.to_tensor([1.0, -1.0])
    with paddle.amp.auto_cast(level="O2", dtype="bfloat16"):
        optimizer.step()
    np.testing.assert_allclose(w.numpy(), [0.9, 2.1], rtol=1e-6)


def test_decorate_converts_all_but_norms_and_excluded_layers():
    net = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.LayerNorm(2), paddle.nn.Linear(2, 2))
    paddle.amp.decorate(net, level="O2", dtype="bfloat16", excluded_layers=[net[2]])
    assert [net[k].weight.dtype.name for k in range(3)] == ["bfloat16", "float32", "float32"]


@pytest.mark.parametrize(
    "configs", ["O1", "O2", {"level": "O1", "dtype": "bfloat16"}, {"level": "O1", "init_loss_scaling": 128.0}]
)
def test_a_model_trains_in_mixed_precision(configs):
    paddle.seed(1)
    net = paddle.nn.Linear(4, 1)
    model = paddle.Model(net)
    model.prepare(paddle.optimizer.Adam(0.05, parameters=net.parameters()), paddle.nn.MSELoss(), amp_configs=configs)
    x = np.random.default_rng(0).normal(size=(16, 4)).astype("float32")
    losses = [float(np.asarray(model.train_batch([x], [x.sum(1, keepdims=True)])[0]).reshape(-1)[0]) for _ in range(60)]
    assert losses[-1] < 0.2 * losses[0]


def test_unknown_amp_configs_are_refused():
    model = paddle.Model(paddle.nn.Linear(1, 1))
    with pytest.raises(ArgumentError, match="level 'O3'"):
        model.prepare(amp_configs="O3")
    with pytest.raises(ArgumentError, match="scale_by"):
        model.prepare(amp_configs={"level": "O1", "scale_by": 2})
