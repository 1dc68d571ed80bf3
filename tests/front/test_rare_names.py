"""Names of the front that few programs call: what they do here."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sampan as paddle
from front.reference import ask_paddle, needs_paddle
from sampan.nn import functional as F

X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("float32")


@pytest.mark.parametrize(("shape", "axis"), [((4,), 0), ((3, 4), 1), ((2, 3, 4), 0), ((2, 3, 4, 1), 1)])
def test_softmax_of_the_root_chooses_its_axis_by_rank(shape, axis):
    x = paddle.to_tensor(X.reshape(-1)[: int(np.prod(shape))].reshape(shape))
    for got in (paddle.softmax(x), x.softmax(), paddle.softmax(input=x, dim=axis), paddle.softmax(x=x, axis=axis)):
        np.testing.assert_array_equal(got.numpy(), F.softmax(x, axis).numpy())
    with pytest.raises(TypeError, match="input"):
        paddle.softmax(3.0)


def test_out_may_stand_after_the_parameters_where_paddle_has_it_there():
    x, y = paddle.to_tensor([6, 3]), paddle.to_tensor([3, 5])
    for call, wanted in [
        (lambda out: paddle.bitwise_and(x, y, out), [2, 1]),
        (lambda out: paddle.bitwise_not(x, out), [-7, -4]),
        (lambda out: paddle.bitwise_left_shift(x, y, True, out), [48, 96]),
        (lambda out: paddle.gather(x, paddle.to_tensor([1, 1]), 0, None, out), [3, 3]),
        (lambda out: paddle.scatter(x, paddle.to_tensor([0]), paddle.to_tensor([9]), True, None, out), [9, 3]),
        (lambda out: paddle.prod(paddle.stack([x, y]), 0, False, None, out, "a name"), [18, 15]),
    ]:
        out = paddle.zeros([2], "int64")
        assert call(out) is out
        assert out.tolist() == wanted
    with pytest.raises(TypeError, match="at most 1 positional"):
        paddle.abs(x, y)


@pytest.mark.parametrize("name", ["nonzero", "masked_select"])
def test_functions_whose_sizes_depend_on_data_take_out(name):
    x = paddle.to_tensor([0.0, 2.0, 3.0])
    args = (x,) if name == "nonzero" else (x, x > 0)
    wanted = getattr(paddle, name)(*args)
    out = paddle.zeros_like(wanted)
    assert getattr(paddle, name)(*args, out=out) is out
    assert out.tolist() == wanted.tolist()
    with pytest.raises(ValueError, match="out is"):
        getattr(paddle, name)(*args, out=paddle.zeros([5], wanted.dtype))


def test_repeat_takes_integers_or_a_list():
    x = paddle.to_tensor([1, 2])
    assert x.repeat(2).tolist() == x.repeat([2]).tolist() == [1, 2, 1, 2]
    assert x.repeat(2, 1).tolist() == [[1, 2], [1, 2]]


def test_bernoulli_in_place_does_not_look_at_the_old_elements():
    paddle.seed(0)
    x = paddle.full([4000], 7.5)
    assert x.bernoulli_() is x
    assert set(x.tolist()) == {0.0, 1.0}
    assert abs(float(x.mean()) - 0.5) < 0.05
    assert paddle.zeros([3, 2]).bernoulli_(paddle.to_tensor([[0.0], [1.0], [0.0]])).tolist() == [
        [0.0, 0.0],
        [1.0, 1.0],
        [0.0, 0.0],
    ]
    with pytest.raises(ValueError, match=r"bernoulli_\(\): p holds 1.5"):
        x.bernoulli_(1.5)


def test_assign_of_another_shape_warns_and_gives_the_parameter_the_values_shape():
    with pytest.warns(UserWarning, match=r"value has shape \[2\] and the parameter .* \[2, 2\]"):
        layer = paddle.nn.Linear(2, 2, weight_attr=paddle.nn.initializer.Assign([2, 3]), bias_attr=False)
    assert layer.weight.tolist() == [2.0, 3.0]
    assert layer.weight.dtype == paddle.float32
    assert layer(paddle.ones([1, 2])).tolist() == [5.0]


def test_members_of_the_class_of_dtypes():
    assert paddle.dtype.FLOAT32 is paddle.float32
    assert paddle.dtype.UINT16 is paddle.bfloat16
    assert (paddle.bool.value, paddle.int64.value, paddle.float32.value, paddle.bfloat16.value) == (1, 9, 10, 16)
    with pytest.raises(NotImplementedError, match="uint32 is no dtype"):
        paddle.zeros([1], paddle.dtype.UINT32)


def test_parameters_from_tensors():
    made = paddle.nn.Parameter.from_tensor(paddle.ones([2]), trainable=False, name="mine", need_clip=False)
    assert (made.name, made.trainable, made.need_clip, made.tolist()) == ("mine", False, False, [1.0, 1.0])


def test_gradient_modes_are_classes_and_decorate_with_and_without_parentheses():
    x = paddle.ones([1])
    x.stop_gradient = False

    @paddle.no_grad
    def bare(x):
        return x * 2

    @paddle.no_grad()
    def called(x):
        with paddle.enable_grad():
            return x * 2

    assert bare(x).stop_gradient
    assert not called(x).stop_gradient
    assert isinstance(paddle.no_grad(), paddle.no_grad)
    with paddle.no_grad().clone():
        assert (x * 2).stop_gradient


def test_a_layer_for_several_processes_is_the_layer_itself_in_one():
    layer = paddle.nn.Linear(2, 3)
    net = paddle.DataParallel(layer)
    x = paddle.ones([1, 2])
    with net.no_sync():
        loss = net.scale_loss(net(x).sum())
    loss.backward()
    net.apply_collective_grads()
    assert layer.weight.grad.tolist() == [[1.0] * 3] * 2
    assert len(net.parameters()) == 2
    state = {k: v.numpy() * 0 for k, v in net.state_dict().items()}
    assert list(state) == ["weight", "bias"]
    net.set_state_dict(state)
    assert net(x).tolist() == [[0.0, 0.0, 0.0]]
    with pytest.raises(TypeError, match="layers is a int"):
        paddle.DataParallel(3)


def test_names_of_optimizers_that_training_does_not_need():
    weight = paddle.create_parameter([2], "float32", name="weight_of_names")
    opt = paddle.optimizer.Momentum(0.1, parameters=[weight])
    weight.sum().backward()
    opt.use_fusion_storage()
    opt.step()
    assert opt.get_opti_var_name_list() == ["weight_of_names_velocity_0"]
    assert opt.fused_states_buffer is None
    part = opt.sharded_state_dict()["weight_of_names_velocity_0"]
    assert (part.global_shape, part.global_offset, part.local_tensor.tolist()) == ((2,), (0,), [1.0, 1.0])
    grad = paddle.to_tensor([1.0, 1.0])
    weight.set_value([2.0, -3.0])
    for decay, wanted in [(paddle.regularizer.L2Decay(0.5), [2.0, -0.5]), (paddle.regularizer.L1Decay(0.5), [1.5, 0.5])]:
        (_, got), (_, none) = opt.append_regularization_ops([(weight, grad), (weight, None)], decay)
        assert got.tolist() == wanted
        assert none is None


def _smaller(mode, size, align_corners):
    x = np.random.default_rng(1).standard_normal((2, 3, 9, 7)).astype("float32")
    return F.interpolate(paddle.to_tensor(x), size=size, mode=mode, align_corners=align_corners, antialias=True)


ANTIALIAS = [("bilinear", [4, 3], False), ("bicubic", [4, 3], False), ("bilinear", [5, 10], False), ("bicubic", [4, 5], True)]


@needs_paddle
@pytest.mark.parametrize(("mode", "size", "align_corners"), ANTIALIAS)
def test_antialiasing_is_that_of_paddle(mode, size, align_corners):
    script = """
import json, sys, numpy as np, paddle
mode, size, corners = json.loads(sys.argv[1])
x = paddle.to_tensor(np.random.default_rng(1).standard_normal((2, 3, 9, 7)).astype("float32"))
print(json.dumps(paddle.nn.functional.interpolate(x, size=size, mode=mode, align_corners=corners, antialias=True).tolist()))
"""
    theirs = ask_paddle(script, json.dumps([mode, size, align_corners]))
    np.testing.assert_allclose(_smaller(mode, size, align_corners).numpy(), theirs, rtol=1e-4, atol=1e-5)


def test_antialiasing_covers_every_element_and_is_refused_where_it_means_nothing():
    x = paddle.zeros([1, 1, 1, 9])
    x[0, 0, 0, 4] = 1.0
    plain = F.interpolate(x, size=[1, 2], mode="bilinear")
    smooth = F.interpolate(x, size=[1, 2], mode="bilinear", antialias=True)
    assert plain.sum().item() == 0.0
    assert smooth.sum().item() > 0.1
    with pytest.raises(ValueError, match="antialias=True with mode='nearest'"):
        F.interpolate(x, size=[1, 2], mode="nearest", antialias=True)


def test_attributes_by_their_other_names():
    nn = paddle.nn
    assert nn.Hardshrink(0.25).lambd == nn.Softshrink(0.25).lambd == 0.25
    assert nn.GLU(1).dim == nn.CosineSimilarity(axis=1).dim == 1
    assert (nn.PairwiseDistance(p=3.0).norm, nn.PairwiseDistance(epsilon=0.5).eps) == (3.0, 0.5)
    assert nn.AdaptiveMaxPool2D(2, return_mask=True).return_indices
    fold = nn.Fold([4, 5], 2, strides=3)
    assert (fold.output_size, fold.kernel_size, fold.stride) == ([4, 5], 2, 3)
    unpool = nn.MaxUnPool1D(2)
    values, places = F.max_pool1d(paddle.to_tensor([[[1.0, 3.0, 2.0]]]), 2, return_mask=True)
    assert unpool(values, places, output_size=[3]).tolist() == [[[0.0, 3.0, 0.0]]]


def test_what_layers_and_tensors_cannot_have_says_why():
    with pytest.raises(NotImplementedError, match="register_buffer"):
        paddle.nn.Linear(1, 1).get_extra_state()
    with pytest.raises(NotImplementedError, match="renames"):
        paddle.nn.Linear(1, 1).full({"rules": []})
    for name in ("coalesce", "indices", "values", "crows", "cols", "nnz"):
        with pytest.raises(NotImplementedError, match=rf"{name}\(\)"):
            getattr(paddle.ones([2]), name)()
    with pytest.raises(NotImplementedError, match="wandb"):
        paddle.callbacks.WandbCallback("project")
    with pytest.raises(NotImplementedError, match="CUDA"):
        F.moe_permute(None, None, None, None, 2, [1], 4)
