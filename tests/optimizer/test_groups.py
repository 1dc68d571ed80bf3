"""Parameter groups, weight decay kinds, own factors, clipping, and what constructors refuse."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan.base.errors import ArgumentError, ArgumentTypeError
from sampan.regularizer import L1Decay, L2Decay


def parameter(value, **attributes):
    attr = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(value), **attributes)
    return paddle.create_parameter([1], "float32", attr=attr)


def one_step(optimizer, params, grad=0.0):
    for p in params:
        p.grad = paddle.full([1], grad)
    optimizer.step()
    return [round(p.item(), 6) for p in params]


def test_groups_have_their_own_rate_factor_and_decay():
    a, b, c = parameter(1.0), parameter(1.0), parameter(1.0)
    groups = [{"params": [a]}, {"params": [b], "weight_decay": 0.5}, {"params": [c], "learning_rate": 0.1}]
    optimizer = paddle.optimizer.SGD(0.1, parameters=groups, weight_decay=0.2)
    assert one_step(optimizer, [a, b, c], 1.0) == [0.88, 0.85, 0.988]


def test_groups_have_their_own_options_of_the_method():
    a, b = parameter(0.0), parameter(0.0)
    optimizer = paddle.optimizer.Adam(0.1, parameters=[{"params": [a], "beta1": 0.5}, {"params": [b]}])
    one_step(optimizer, [a, b], 1.0)
    state = optimizer.state_dict()
    assert [round(state[f"{p.name}_moment1_0"].item(), 6) for p in (a, b)] == [0.5, 0.1]
    assert [round(state[f"{p.name}_beta1_pow_acc_0"].item(), 6) for p in (a, b)] == [0.25, 0.81]


def test_l1_and_l2_decay_and_a_parameters_own_regularizer():
    a, b, c = parameter(-2.0), parameter(-2.0, regularizer=L1Decay(0.5)), parameter(-2.0, regularizer=L2Decay(0.25))
    assert one_step(paddle.optimizer.SGD(1.0, parameters=[a], weight_decay=L1Decay(0.1)), [a]) == [-1.9]
    assert one_step(paddle.optimizer.SGD(1.0, parameters=[b, c], weight_decay=L2Decay(10.0)), [b, c]) == [-1.5, -1.5]


def test_a_parameters_own_rate_factor_multiplies():
    a, b = parameter(1.0, learning_rate=0.5), parameter(1.0)
    assert one_step(paddle.optimizer.SGD(0.1, parameters=[a, b]), [a, b], 1.0) == [0.95, 0.9]


def test_adamw_decays_by_the_rate_in_use_and_where_the_function_says():
    # behaviours UP098: 1 - 0.1 * 0.01, then times 1 - 0.05 * 0.01
    w, other = parameter(1.0), parameter(1.0)
    optimizer = paddle.optimizer.AdamW(0.1, parameters=[w, other], apply_decay_param_fun=lambda name: name == w.name)
    assert one_step(optimizer, [w, other]) == [0.999, 1.0]
    optimizer.set_lr(0.05)
    assert one_step(optimizer, [w, other]) == [0.9985, 1.0]  # 0.9985005 in float32


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_adamw_decays_under_mixed_precision(level):
    # behaviours UP098 under AMP
    layer = paddle.nn.Linear(1, 1, bias_attr=False, weight_attr=paddle.nn.initializer.Constant(1.0))
    optimizer = paddle.optimizer.AdamW(0.1, parameters=layer.parameters())
    layer, optimizer = paddle.amp.decorate(layer, optimizer, level=level, dtype="bfloat16")
    with paddle.amp.auto_cast(level=level, dtype="bfloat16"):
        loss = layer(paddle.zeros([2, 1])).sum()
    loss.backward()
    optimizer.step()
    state = optimizer.state_dict()
    kept = state["master_weights"][layer.weight.name] if level == "O2" else layer.weight
    assert round(kept.item(), 6) == 0.999


def test_adamw_lr_ratio_multiplies_the_rate():
    a, b = parameter(1.0), parameter(1.0)
    optimizer = paddle.optimizer.AdamW(0.1, parameters=[a, b], weight_decay=0.1, lr_ratio=lambda p: 0.5 if p is a else 1.0)
    assert one_step(optimizer, [a, b]) == [0.995, 0.99]


def test_lamb_leaves_parameters_out_of_the_decay():
    a, b = parameter(1.0), parameter(1.0)
    optimizer = paddle.optimizer.Lamb(0.1, 0.5, parameters=[a, b], exclude_from_weight_decay_fn=lambda p: p is a)
    assert one_step(optimizer, [a, b]) == [1.0, 0.9]


class Halved:
    """A clipping rule that halves every gradient and notes which parameters came together."""

    def __init__(self):
        self.calls = []

    def __call__(self, pairs):
        self.calls.append([p.name for p, _ in pairs])
        return [(p, g * 0.5) for p, g in pairs]


def test_clipping_sees_the_parameters_of_its_groups_together_and_comes_before_decay():
    a, b, c, d = (parameter(1.0) for _ in range(4))
    common, own = Halved(), Halved()
    groups = [{"params": [a]}, {"params": [b], "grad_clip": own}, {"params": [c, d]}]
    optimizer = paddle.optimizer.SGD(0.1, parameters=groups, grad_clip=common, weight_decay=1.0)
    for p in (a, b, c):
        p.grad = paddle.ones([1])
    optimizer.step()
    assert common.calls == [[a.name, c.name]]
    assert own.calls == [[b.name]]
    np.testing.assert_allclose([p.item() for p in (a, b, c, d)], [0.85, 0.85, 0.85, 1.0], rtol=1e-6)


def test_minimize_updates_the_chosen_parameters():
    a, b = parameter(1.0), parameter(1.0)
    optimizer = paddle.optimizer.SGD(0.1, parameters=[a, b])
    _, pairs = optimizer.minimize((a * 2 + b).sum(), parameters=[a])
    assert [p.name for p, _ in pairs] == [a.name]
    np.testing.assert_allclose([a.item(), b.item()], [0.8, 1.0], rtol=1e-6)


def test_clear_grad_gives_zeros_and_zero_grad_none():
    w = parameter(1.0)
    optimizer = paddle.optimizer.SGD(0.1, parameters=[w])
    w.grad = paddle.ones([1])
    optimizer.clear_grad()
    assert w.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert w.grad is None


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda w: paddle.optimizer.SGD(0.1), ArgumentError, "pass parameters=model.parameters"),
        (lambda w: paddle.optimizer.SGD(0.1, parameters=w), ArgumentTypeError, "pass it inside a list"),
        (lambda w: paddle.optimizer.SGD(0.1, parameters=[w, w]), ArgumentError, "is given twice"),
        (lambda w: paddle.optimizer.SGD(0.1, parameters=[1.0]), ArgumentTypeError, "must hold Tensors"),
        (lambda w: paddle.optimizer.SGD("fast", parameters=[w]), ArgumentTypeError, "float or an LRScheduler"),
        (lambda w: paddle.optimizer.SGD(0.1, parameters=[w], weight_decay="L2"), ArgumentTypeError, "weight_decay is a str"),
        (lambda w: paddle.optimizer.SGD(0.1, parameters=[w], grad_clip=1.0), ArgumentTypeError, "nn.ClipGradBy"),
        (lambda w: paddle.optimizer.Adam(0.1, beta1=1.0, parameters=[w]), ArgumentError, r"beta1=1.0; it must be in \[0, 1\)"),
        (lambda w: paddle.optimizer.AdamW(0.1, parameters=[w], weight_decay=L2Decay(0.1)), ArgumentTypeError, "use Adam for"),
        (lambda w: paddle.optimizer.ASGD(0.1, batch_num=0, parameters=[w]), ArgumentError, "batch_num=0"),
        (lambda w: paddle.optimizer.Rprop(0.1, (1.0, 2.0), [w]), ArgumentError, "learning_rate_range"),
        (lambda w: paddle.optimizer.Rprop(0.1, parameters=[w], etas=(1.5, 1.2)), ArgumentError, "etas"),
        (lambda w: paddle.optimizer.Adam(0.1, parameters=[{"parms": [w]}]), ArgumentError, r"keys \['parms'\]; it must have 'params'"),
        (lambda w: paddle.optimizer.SGD(float("nan"), parameters=[w]), ArgumentError, "learning rate is nan; it must be finite"),
        (lambda w: paddle.optimizer.SGD(0.1, parameters=[w]).set_lr(float("inf")), ArgumentError, "must be finite"),
        (lambda w: paddle.optimizer.AdamW(0.1, parameters=[w], apply_decay_param_fun=3), ArgumentTypeError, "apply_decay_param_fun is 3"),
        (lambda w: paddle.optimizer.LBFGS(0.1, max_iter=0, parameters=[w]), ArgumentError, "max_iter is 0"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        make(parameter(1.0))


def test_set_lr_is_refused_while_a_schedule_drives_the_rate():
    optimizer = paddle.optimizer.SGD(paddle.optimizer.lr.NoamDecay(64, 10), parameters=[parameter(1.0)])
    with pytest.raises(ArgumentError, match="use set_lr_scheduler"):
        optimizer.set_lr(0.1)
