"""Networks for images: shapes, options, errors; and Paddle's own weight files in them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from front.reference import ask_paddle, needs_paddle

import sampan as paddle
from sampan.base.errors import ArgumentError, UnsupportedError
from sampan.vision import models
from sampan.vision.models import resnet

#: Calls that make every kind of network and of option. Big ones stand without their classifier.
BUILDS = [
    "LeNet()",
    "LeNet(num_classes=0)",
    "resnet18(num_classes=7)",
    "resnet34(num_classes=0)",
    "resnet50(num_classes=0, with_pool=False)",
    "resnext50_32x4d(num_classes=0)",
    "resnext50_64x4d(num_classes=3)",
    "wide_resnet50_2(num_classes=0)",
    "vgg11(num_classes=0)",
    "vgg13(batch_norm=True, num_classes=0, with_pool=False)",
    "vgg16(num_classes=0)",
    "vgg19(batch_norm=True, num_classes=0)",
    "mobilenet_v1(scale=0.25, num_classes=5)",
    "mobilenet_v1(scale=0.5, num_classes=0, with_pool=False)",
    "mobilenet_v2(scale=0.35, num_classes=5)",
    "mobilenet_v2(scale=1.5, num_classes=0)",
]

SHAPES_SCRIPT = """
import json, sys, paddle
models = paddle.vision.models
print(json.dumps([
    [[k, list(v.shape)] for k, v in eval("models." + call).state_dict().items()] for call in json.loads(sys.argv[1])
]))
"""
FORWARD_SCRIPT = """
import json, sys, numpy, paddle
paddle.seed(7)
model = eval("paddle.vision.models." + sys.argv[1])
model.eval()
paddle.save(model.state_dict(), sys.argv[2])
x = paddle.to_tensor(numpy.random.RandomState(0).rand(*json.loads(sys.argv[3])).astype("float32"))
print(json.dumps(model(x).flatten().tolist()))
"""


def build(call: str):
    return eval(f"models.{call}", {"models": models})


@needs_paddle
def test_parameters_have_paddles_names_and_shapes():
    wanted = ask_paddle(SHAPES_SCRIPT, json.dumps(BUILDS))
    for call, want in zip(BUILDS, wanted, strict=True):
        got = [[k, list(v.shape)] for k, v in build(call).state_dict().items()]
        assert got == want, call


@needs_paddle
@pytest.mark.parametrize(
    ("call", "shape"),
    [
        ("LeNet()", (2, 1, 28, 28)),
        ("resnet18(num_classes=7)", (1, 3, 64, 64)),
        ("resnext50_32x4d(num_classes=7)", (1, 3, 64, 64)),
        ("vgg11(num_classes=0, batch_norm=True)", (1, 3, 64, 64)),
        ("mobilenet_v1(scale=0.25, num_classes=5)", (1, 3, 64, 64)),
        ("mobilenet_v2(scale=0.25, num_classes=5)", (1, 3, 64, 64)),
    ],
)
def test_paddles_weight_file_gives_paddles_result(call, shape, tmp_path):
    path = str(tmp_path / "model.pdparams")
    want = ask_paddle(FORWARD_SCRIPT, call, path, json.dumps(shape))
    model = build(call)
    assert model.set_state_dict(paddle.load(path)) == ([], [])
    model.eval()
    x = paddle.to_tensor(np.random.RandomState(0).rand(*shape).astype("float32"))
    got = model(x).flatten().numpy()
    np.testing.assert_allclose(got, np.array(want), rtol=1e-3, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize(
    ("call", "image", "shape"),
    [
        ("LeNet(num_classes=0)", (2, 1, 28, 28), [2, 16, 5, 5]),
        ("resnet18(num_classes=0)", (2, 3, 33, 64), [2, 512, 1, 1]),
        ("resnet18(num_classes=-1, with_pool=False)", (2, 3, 32, 64), [2, 512, 1, 2]),
        ("resnet50(num_classes=3)", (1, 3, 32, 32), [1, 3]),
        ("vgg11(num_classes=0, with_pool=False)", (1, 3, 64, 32), [1, 512, 2, 1]),
        ("mobilenet_v1(scale=0.25, num_classes=0, with_pool=False)", (1, 3, 64, 64), [1, 256, 2, 2]),
        ("mobilenet_v2(scale=0.25, num_classes=0)", (1, 3, 64, 64), [1, 1280, 1, 1]),
    ],
)
def test_options_give_these_shapes(call, image, shape):
    model = build(call)
    model.eval()
    assert list(model(paddle.ones(image)).shape) == shape


def test_a_residual_net_learns_two_images():
    paddle.seed(1)
    model = models.resnet18(num_classes=2)
    optimizer = paddle.optimizer.Adam(1e-3, parameters=model.parameters())
    images = paddle.to_tensor(np.random.RandomState(0).rand(4, 3, 32, 32).astype("float32"))
    labels = paddle.to_tensor([0, 1, 0, 1])
    losses = []
    for _ in range(8):
        loss = paddle.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    assert losses[-1] < 0.3 * losses[0]


def test_a_depth_that_is_none_is_refused():
    with pytest.raises(ArgumentError, match="depth=20"):
        models.ResNet(models.resnet.BasicBlock, 20)


def test_groups_need_bottleneck_blocks():
    with pytest.raises(ArgumentError, match="groups=2"):
        models.ResNet(models.resnet.BasicBlock, 18, groups=2)


@pytest.mark.parametrize("name", ["resnet18", "vgg16", "mobilenet_v1", "mobilenet_v2"])
def test_pretrained_weights_are_refused_with_the_way_out(name):
    with pytest.raises(UnsupportedError, match=rf"{name}\.pdparams"):
        getattr(models, name)(pretrained=True)


def test_a_convolution_without_normalisation_has_a_bias():
    block = paddle.vision.ops.ConvNormActivation(3, 4, kernel_size=5, norm_layer=None, activation_layer=None, dilation=2)
    assert [k for k, _ in block.named_parameters()] == ["0.weight", "0.bias"]
    assert list(block(paddle.ones([1, 3, 9, 8])).shape) == [1, 4, 9, 8]


def test_a_subclass_makes_its_own_stages():
    class Dilated(resnet.ResNet):
        def __init__(self):
            super().__init__(resnet.BottleneckBlock, 50, num_classes=0, with_pool=False)
            self.inplanes = 512
            self.layer3 = self._make_layer(resnet.BottleneckBlock, 256, 2, stride=2, dilate=True)
            self.layer4 = self._make_layer(resnet.BottleneckBlock, 512, 1)

    net = Dilated()
    assert net(paddle.ones([1, 3, 64, 64])).shape == [1, 2048, 8, 8]
    assert (net.layer3[0].conv2._dilation, net.layer4[0].conv2._dilation) == ([1, 1], [2, 2])
