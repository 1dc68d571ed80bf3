"""The settings of layers without parameters, as PaddlePaddle spells them: subclasses in users' code read them."""

from __future__ import annotations

import pytest

import sampan as paddle
from sampan import nn


@pytest.mark.parametrize(
    ("layer", "settings"),
    [
        (nn.AdaptiveAvgPool2D(1), {"_output_size": 1, "_data_format": "NCHW"}),
        (nn.AdaptiveMaxPool3D(2, return_mask=True), {"_output_size": 2, "_return_mask": True}),
        (nn.MaxPool2D(3, 2, 1), {"ksize": 3, "kernel_size": 3, "stride": 2, "padding": 1, "name": None}),
        (nn.AvgPool3D(2), {"ksize": 2, "exclusive": True}),
        (nn.LeakyReLU(0.2), {"_negative_slope": 0.2}),
        (nn.Softmax(1), {"_axis": 1, "_name": None}),
        (nn.Pad2D([1, 2, 3, 4], "reflect"), {"padding": [1, 2, 3, 4], "_mode": "reflect", "_data_format": "NCHW"}),
        (nn.PixelShuffle(2), {"_upscale_factor": 2, "_data_format": "NCHW"}),
        (nn.NLLLoss(ignore_index=3), {"_ignore_index": 3, "_reduction": "mean", "_weight": None}),
        (nn.ReLU(name="gate"), {"name": "gate", "_name": "gate"}),
    ],
    ids=lambda v: type(v).__name__,
)
def test_settings_have_paddles_names(layer, settings):
    assert {key: getattr(layer, key) for key in settings} == settings


def test_a_subclass_changes_a_setting():
    class Global(nn.AdaptiveAvgPool2D):
        def __init__(self):
            super().__init__(3)
            self._output_size = 1

    assert Global()(paddle.ones([2, 3, 5, 5])).shape == [2, 3, 1, 1]


def test_the_repr_shows_them_without_underscores():
    assert repr(nn.MaxPool2D(3, 2)) == "MaxPool2D(kernel_size=3, stride=2, padding=0)"
    assert repr(nn.LeakyReLU(0.2)) == "LeakyReLU(negative_slope=0.2)"
    assert repr(nn.Pad1D(1)) == "Pad1D(padding=[1, 1], mode=constant, value=0.0, data_format=NCL)"


def test_the_name_of_a_sublayer_may_hold_dots():
    net = nn.Layer()
    net.add_sublayer("blocks.0", nn.Linear(2, 3))
    assert list(net.state_dict()) == ["blocks.0.weight", "blocks.0.bias"]
    other = nn.Layer()
    other.add_sublayer("blocks.0", nn.Linear(2, 3))
    assert other.set_state_dict(net.state_dict()) == ([], [])
    with pytest.raises(KeyError, match="contain a dot"):
        net.add_parameter("a.b", None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.ReLU(True),
        lambda: nn.LeakyReLU(0.2, True),
        lambda: nn.Softmax(-1, True),
        lambda: nn.CrossEntropyLoss(name=3),
        lambda: nn.AvgPool2D(2, 2, 0, False, True, None, "NCHW", True),
    ],
)
def test_a_layers_name_may_be_anything_since_nothing_depends_on_it(make):
    assert isinstance(make(), nn.Layer)


def test_an_embedding_takes_the_positional_arguments_of_earlier_versions():
    twos = paddle.ParamAttr(initializer=nn.initializer.Constant(2.0))
    for is_sparse in (False, True):
        layer = nn.Embedding(5, 3, None, is_sparse, twos, None)
        assert (layer.weight.numpy() == 2).all()
        layer(paddle.to_tensor([1])).sum().backward()
        assert layer.weight.grad.is_selected_rows() is is_sparse
    assert nn.Embedding(5, 3, None, 1.5, 1.0)(paddle.to_tensor([1])).shape == [1, 3]
    for norm_type, error in ((0, ValueError), (twos, TypeError)):
        with pytest.raises(error, match=r"Embedding\(\): norm_type is "):
            nn.Embedding(5, 3, None, 1.5, norm_type)
    with pytest.raises(ValueError, match=r"Embedding\(\): max_norm is -1"):
        nn.Embedding(5, 3, None, -1)


@pytest.mark.parametrize("kind", [nn.SimpleRNN, nn.LSTM, nn.GRU])
def test_flattening_recurrent_parameters_changes_nothing(kind):
    layer, x = kind(3, 4, num_layers=2), paddle.rand([2, 5, 3])
    before = layer(x)[0].numpy()
    layer.flatten_parameters()
    assert (layer(x)[0].numpy() == before).all()
